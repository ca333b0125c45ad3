//! What a node may put onto its links in shared memory, by class: the same rules as a session's.
//!
//! How it works: a lane has no queue to wait in, so a frame without budget is refused as by a full lane, and room is
//! reported when its class may go on. Admission comes before the lane; where that has no room, the next frame of the class
//! finds the admission paid.
//!
//! What it does not do: keep the time. The carrier asks [`Bounds::due_ns`] and [`Bounds::release`].

use musubi_linux::clock::now_ns;

use crate::Priority;
use crate::frame::Header;
use crate::session::Regulators;
use crate::topology::ClassRule;

/// The rules of a node, and how far each of its links has used them.
#[derive(Debug)]
pub(super) struct Bounds {
    rules: Vec<ClassRule>,
    /// By place of the peer; of a later incarnation of a peer too.
    links: Vec<Bounded>,
    /// A class was held since somebody last asked.
    has_held: bool,
}

#[derive(Debug)]
struct Bounded {
    regulators: Regulators,
    /// Bytes of a frame that was admitted and not sent, by class.
    paid: [Option<u32>; Priority::COUNT],
}

impl Bounds {
    /// `None` if the rules bound nothing.
    pub(super) fn of(rules: &[ClassRule]) -> Option<Box<Bounds>> {
        Regulators::of(rules)?;
        Some(Box::new(Bounds { rules: rules.to_vec(), links: Vec::new(), has_held: false }))
    }

    fn link(&mut self, place: u16) -> Option<&mut Bounded> {
        while self.links.len() <= usize::from(place) {
            let regulators = Regulators::of(&self.rules)?;
            self.links.push(Bounded { regulators, paid: [None; Priority::COUNT] });
        }
        self.links.get_mut(usize::from(place))
    }

    /// Whether a frame may go to this peer; room will be reported if not. Reads the clock where its class has a rule.
    pub(super) fn admits(&mut self, place: u16, header: &Header) -> bool {
        if !self.rules.iter().any(|rule| rule.class == header.class) {
            return true;
        }
        let Some(bounded) = self.link(place) else { return true };
        let paid = &mut bounded.paid[header.class.index()];
        if paid.is_some_and(|bytes| header.length <= bytes) {
            return true;
        }
        let admitted = bounded.regulators.admit(now_ns(), header.class, header.length);
        if admitted {
            *paid = Some(header.length);
        }
        self.has_held |= !admitted;
        admitted
    }

    /// A frame of this class has gone.
    pub(super) fn sent(&mut self, place: u16, class: Priority) {
        if let Some(bounded) = self.links.get_mut(usize::from(place)) {
            bounded.paid[class.index()] = None;
        }
    }

    /// Peers to which something may go again that was held.
    pub(super) fn release(&mut self, now_ns: u64) -> impl Iterator<Item = u16> {
        let links = self.links.iter_mut().enumerate();
        links.filter_map(move |(place, bounded)| (bounded.regulators.release(now_ns) != 0).then_some(place as u16))
    }

    /// When that is so next; `u64::MAX` if nothing is held.
    pub(super) fn due_ns(&self) -> u64 {
        self.links.iter().map(|bounded| bounded.regulators.due_ns()).min().unwrap_or(u64::MAX)
    }

    /// Whether [`Bounds::due_ns`] may have become earlier; says so once.
    pub(super) fn take_held(&mut self) -> bool {
        std::mem::take(&mut self.has_held)
    }

    /// Frames to a peer that waited.
    pub(super) fn waited(&self, place: u16) -> u64 {
        let bounded = self.links.get(usize::from(place));
        bounded.map_or(0, |bounded| Priority::all().map(|class| bounded.regulators.waited(class)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FilterRule, Regulation};

    fn header(class: u8, length: u32) -> Header {
        Header { class: Priority::new(class).unwrap(), length, ..Header::new(0) }
    }

    #[test]
    fn what_was_admitted_and_not_sent_is_paid() {
        assert!(Bounds::of(&[]).is_none());
        let regulation = Regulation { messages_per_s: 1, messages_burst: 1, ..Regulation::NONE };
        let rule = ClassRule { class: Priority::new(3).unwrap(), regulation, filter: FilterRule::EACH };
        let mut bounds = Bounds::of(&[rule]).unwrap();
        assert_eq!((bounds.due_ns(), bounds.waited(2)), (u64::MAX, 0));
        bounds.sent(2, Priority::new(3).unwrap());
        assert!((0..9).all(|_| bounds.admits(2, &header(1, 8))), "no rule");
        for length in [8, 8, 7, 0] {
            assert!(bounds.admits(2, &header(3, length)), "the lane was full: paid");
        }
        assert!(!bounds.admits(2, &header(3, 9)), "a longer one was not");
        assert!(bounds.take_held() && !bounds.take_held());
        assert!(bounds.admits(2, &header(3, 8)), "it still is");
        assert!(bounds.admits(0, &header(3, 9)), "another link has its own budget");
        let due_ns = bounds.due_ns();
        assert_eq!(bounds.release(due_ns - 1).collect::<Vec<_>>(), []);
        assert_eq!(bounds.release(due_ns).collect::<Vec<_>>(), [2]);
        assert_eq!((bounds.due_ns(), bounds.waited(2), bounds.waited(0), bounds.waited(7)), (u64::MAX, 1, 0, 0));
        bounds.sent(2, Priority::new(3).unwrap());
        assert!(!bounds.admits(2, &header(3, 0)), "it has gone");
    }
}
