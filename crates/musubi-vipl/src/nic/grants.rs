//! What other nodes take of each class, as they have granted it to this one.
//!
//! What you may rely on: a message, write or read of a class that the description bounds at the target's NIC begins only if the
//! target has granted a message, and at least one byte, that nothing before took; one that has begun goes on. VIs that wait
//! for that keep their turns. Without a bound this costs one comparison a frame.
//!
//! How it works: see [`super::intake`], which is the other side of it. Whether a class is bounded both sides know from the
//! description, which is the same for both or there is no link; so nothing is sent before the first grant.

use alloc::boxed::Box;

use musubi_transport::links::{Block, Links};
use musubi_transport::topology::ClassIntake;

use super::NicState;
use super::carriage::{CLASSES, PeerNode};
use super::intake::Amount;
use crate::address::NicNumber;

/// What one class of one peer may still be sent.
#[derive(Debug, Default)]
pub(super) struct ClassGrant {
    bounds_messages: bool,
    bounds_bytes: bool,
    granted: Amount,
    used: Amount,
}

impl ClassGrant {
    /// Whether something may begin.
    pub(super) fn admits(&self) -> bool {
        let left = |granted: u64, used: u64| granted.wrapping_sub(used) as i64 > 0;
        (!self.bounds_messages || left(self.granted.messages, self.used.messages))
            && (!self.bounds_bytes || left(self.granted.bytes, self.used.bytes))
    }

    /// A frame has gone.
    pub(super) fn pay(&mut self, begins: bool, bytes: u32) {
        self.used.messages = self.used.messages.wrapping_add(u64::from(begins));
        self.used.bytes = self.used.bytes.wrapping_add(u64::from(bytes));
    }

    /// The peer's totals, which wrap; older ones change nothing.
    fn raise(&mut self, messages: u32, bytes: u32) {
        let raise = |total: &mut u64, said: u32| {
            let more = said.wrapping_sub(*total as u32);
            if more < 1 << 31 {
                *total = total.wrapping_add(u64::from(more));
            }
        };
        raise(&mut self.granted.messages, messages);
        raise(&mut self.granted.bytes, bytes);
    }
}

/// What one peer has granted.
#[derive(Debug, Default)]
pub(super) struct Grants {
    classes: [Option<Box<ClassGrant>>; CLASSES],
    /// What was said of this link before the description was known here, by class.
    early: [(u32, u32); CLASSES],
    /// Messages that had to wait, and their bytes, by class.
    pub(super) held: [(u64, u64); CLASSES],
}

impl Grants {
    fn of(intakes: &[ClassIntake]) -> Grants {
        let mut grants = Grants::default();
        for ClassIntake { class, regulation } in intakes.iter().filter(|one| !one.regulation.is_none()) {
            let (bounds_messages, bounds_bytes) = (regulation.messages_per_s > 0, regulation.bytes_per_s > 0);
            let grant = ClassGrant { bounds_messages, bounds_bytes, ..ClassGrant::default() };
            grants.classes[class.index()] = Some(Box::new(grant));
        }
        grants
    }

    /// Of one class; `None` if that is not bounded.
    pub(super) fn class(&mut self, class: usize) -> Option<&mut ClassGrant> {
        self.classes.get_mut(class)?.as_deref_mut()
    }
}

impl PeerNode {
    /// Whether this peer's class is bounded.
    pub(super) fn bounds(&self, class: usize) -> bool {
        self.grants.classes.get(class).is_some_and(Option::is_some)
    }
}

impl<B: Block> NicState<B> {
    /// A link is new: nothing was said of it.
    pub(super) fn renew_grants(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        self.carriage.peer(peer).grants.early = Default::default();
        self.begin_grants(peer, links);
    }

    /// What the description says is known: what both sides take begins at nothing, and what was said already.
    pub(super) fn begin_grants(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let nic = NicNumber::of_node(self.carriage.peer(peer).node).map(|(nic, _)| nic);
        let Grants { held, early, .. } = self.carriage.peer(peer).grants;
        let grants = nic.map_or_else(Grants::default, |nic| Grants::of(self.directory.intakes(nic)));
        let mut grants = Grants { held, early, ..grants };
        for (class, (messages, bytes)) in early.into_iter().enumerate() {
            if let Some(grant) = grants.class(class) {
                grant.raise(messages, bytes);
            }
        }
        self.carriage.peer(peer).grants = grants;
        self.intake.begin(peer);
        self.tick_intake(links);
    }

    /// A peer grants.
    pub(super) fn grant_came(
        &mut self,
        peer: u16,
        class: u8,
        (messages, bytes): (u32, u32),
        links: &mut impl Links<Block = B>,
    ) {
        let class = usize::from(class);
        let is_early = self.directory.nics.is_empty();
        let grants = &mut self.carriage.peer(peer).grants;
        if let (true, Some(early)) = (is_early, grants.early.get_mut(class)) {
            *early = (messages, bytes);
            return;
        }
        let Some(grant) = grants.class(class) else { return self.refuse() };
        grant.raise(messages, bytes);
        self.serve(peer, class, links);
    }
}
