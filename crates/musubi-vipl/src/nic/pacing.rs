//! The rates that a VI keeps to, as its quality of service asks: what is posted beyond waits in its queue.
//!
//! What you may rely on: messages, writes and reads of this side begin as its rates allow, in the order in which they were
//! posted; answers to the other side's reads are not held back. One that has begun goes on. What waits for nothing but its
//! rates goes out when the node looks next after that, in a tick.
//!
//! How it works: token buckets ([`Regulator`]) that a descriptor passes once, before its first frame; one that has passed and finds the
//! link full does not pay again.

use alloc::vec::Vec;

use musubi_transport::links::{Block, Links};
use musubi_transport::{Regulation, Regulator};

use super::{NicState, ViEntry, ViNumber};
use crate::engine::ViState;
use crate::error::ViError;
use crate::slots::Slots;

/// The rates of one VI.
#[derive(Debug)]
pub(super) struct Pace {
    regulator: Regulator,
    /// The next descriptor has passed, and was not handed over yet.
    has_leave: bool,
    /// When it is to be tried again; `u64::MAX` if it does not wait for that.
    due_ns: u64,
    /// Since when it waits, if it does.
    since_ns: Option<u64>,
    /// Descriptors that waited, and how long they did together, nanoseconds.
    held: u64,
    held_ns: u64,
}

impl Pace {
    fn new(regulation: Regulation) -> Pace {
        Pace {
            regulator: Regulator::new(regulation),
            has_leave: false,
            due_ns: u64::MAX,
            since_ns: None,
            held: 0,
            held_ns: 0,
        }
    }

    /// Whether the next descriptor, of so many bytes, may begin.
    pub(super) fn admits(&mut self, now_ns: u64, bytes: u32) -> bool {
        if !self.has_leave {
            match self.regulator.admit(now_ns, bytes) {
                Ok(()) => {
                    (self.has_leave, self.due_ns) = (true, u64::MAX);
                    let since_ns = self.since_ns.take().unwrap_or(now_ns);
                    self.held_ns += now_ns.saturating_sub(since_ns);
                }
                Err(retry_ns) => {
                    self.due_ns = now_ns.saturating_add(retry_ns);
                    self.held += u64::from(self.since_ns.is_none());
                    self.since_ns.get_or_insert(now_ns);
                }
            }
        }
        self.has_leave
    }

    /// Descriptors that the rates have held back, and for how long together, nanoseconds.
    pub(super) fn totals(&self) -> [u64; 2] {
        [self.held, self.held_ns]
    }

    /// It was handed over.
    pub(super) fn has_begun(&mut self) {
        self.has_leave = false;
    }
}

/// VIs that wait for their rates.
#[derive(Debug)]
pub(super) struct Paced {
    /// Whether any VI has some, so that the time matters when it posts.
    is_used: bool,
    /// Their places; those that do not wait any more are left out with the next look.
    places: Vec<u16>,
    /// None is due before.
    next_ns: u64,
}

impl Default for Paced {
    fn default() -> Paced {
        Paced { is_used: false, places: Vec::new(), next_ns: u64::MAX }
    }
}

impl<B: Block> NicState<B> {
    /// Sets the rates of an idle VI; no bound where they have none.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::State`] unless it is idle.
    pub fn set_pace(&mut self, vi: ViNumber, regulation: Regulation) -> Result<(), ViError> {
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        if entry.vi.state() != ViState::Idle {
            return Err(ViError::State);
        }
        self.counts
            .get_mut(usize::from(entry.vi.attributes().class))
            .into_iter()
            .for_each(|counts| counts.add_pace(entry.pace.as_deref()));
        self.paced.is_used |= !regulation.is_none();
        entry.pace = (!regulation.is_none()).then(|| alloc::boxed::Box::new(Pace::new(regulation)));
        Ok(())
    }

    /// Whether [`NicState::note_time`] is to be called before something is posted or taken: some VI has rates or a budget.
    #[inline]
    pub fn needs_time(&self) -> bool {
        self.paced.is_used || self.notifying.is_used
    }

    /// Says what time it is.
    pub fn note_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// After a VI has spoken: whether it waits for its rates now.
    #[inline]
    pub(super) fn note_pace(&mut self, place: u16) {
        let Some((_, ViEntry { pace: Some(pace), .. })) = self.vis.at_place_mut(place) else { return };
        let due_ns = pace.due_ns;
        if due_ns == u64::MAX || (due_ns >= self.paced.next_ns && self.paced.places.contains(&place)) {
            return;
        }
        if !self.paced.places.contains(&place) {
            self.paced.places.push(place);
        }
        self.paced.next_ns = self.paced.next_ns.min(due_ns);
        // Who sleeps on the links has to be up by then.
        self.changes += 1;
    }

    /// Lets those speak that are due; gives when the next one is.
    pub(super) fn tick_paces(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) -> u64 {
        if now_ns < self.paced.next_ns {
            return self.paced.next_ns;
        }
        self.paced.next_ns = u64::MAX;
        for place in core::mem::take(&mut self.paced.places) {
            let Some((number, ViEntry { pace: Some(pace), .. })) = self.vis.at_place_mut(place) else { continue };
            if pace.due_ns > now_ns {
                self.paced.next_ns = self.paced.next_ns.min(pace.due_ns);
                if pace.due_ns < u64::MAX {
                    self.paced.places.push(place);
                }
                continue;
            }
            pace.due_ns = u64::MAX;
            self.pump(Slots::<ViEntry>::place(number), links);
        }
        self.carry_local(links);
        self.paced.next_ns
    }
}
