//! The mailboxes between the attendant and the data path: who is at the other side of a channel end.
//!
//! What you may rely on: `version` changes whenever the state does, after the state has changed and before sleepers on
//! `version` are woken. The lock is held for a few instructions by either side, never across a system call that waits. Whoever
//! holds it must not call a method of [`crate::End`] or [`crate::Participant`]: these take the registry's lock first.
//!
//! How it works: the data path remembers the version it has read; while that is unchanged it needs no lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::os::descriptor::Descriptor;
use crate::os::futex;
use crate::process::section::PeerPart;

/// Most sender incarnations that a receive end keeps, the living one included.
pub const INCARNATIONS_MAX: usize = 4;

/// Something that changes now and then, with a version that can be watched and slept on.
#[derive(Debug)]
pub struct Versioned<T> {
    version: AtomicU32,
    state: Mutex<T>,
}

/// Mailbox of a send end.
pub type TxLinks = Versioned<TxState>;
/// Mailbox of a receive end.
pub type RxLinks = Versioned<RxState>;

impl<T> Versioned<T> {
    pub(crate) fn new(state: T) -> Self {
        Versioned { version: AtomicU32::new(0), state: Mutex::new(state) }
    }

    /// The version now; another value means another state.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::SeqCst)
    }

    /// The version as a word of this process to sleep on ([`crate::os::futex::sleep`]).
    #[inline]
    pub fn version_word(&self) -> &AtomicU32 {
        &self.version
    }

    /// The state. Whoever reads it should read [`Versioned::version`] while holding it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whoever sleeps on the version.
    pub(crate) fn change<R>(&self, by: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.lock();
        let result = by(&mut state);
        self.version.fetch_add(1, Ordering::SeqCst);
        drop(state);
        futex::wake_local(&self.version);
        result
    }
}

/// What a send end knows of its receiver.
#[derive(Debug, Default)]
pub struct TxState {
    /// The receiver of the present session.
    pub receiver: Option<TxLink>,
    /// Receivers lost so far.
    pub gone: u32,
    /// Position where the present or next session begins.
    pub start: u32,
    /// Receivers lost since the data path last looked, with the position where each began, in order; at most
    /// [`INCARNATIONS_MAX`], the oldest give way. What they returned before they went is still to be read.
    pub lost: VecDeque<(TxLink, u32)>,
}

/// Who holds the other end of a channel: one opening of it, which no predecessor and no successor shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counterpart {
    /// Global number of the participant.
    pub participant: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Which opening of its end.
    pub serial: u32,
}

/// One receiver.
#[derive(Clone, Debug)]
pub struct TxLink {
    /// Global number of the participant.
    pub participant: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Which opening of its end.
    pub serial: u32,
    /// Its receive end.
    pub words: PeerPart,
    /// Rings it if it watches descriptors.
    pub doorbell: Option<Arc<Descriptor>>,
}

/// What a receive end knows of its senders.
#[derive(Debug, Default)]
pub struct RxState {
    /// Senders in order of arrival. The data path takes off the front one when it is dead and drained.
    pub senders: VecDeque<RxSender>,
    /// Senders dropped undrained because more than [`INCARNATIONS_MAX`] came.
    pub forgotten: u32,
}

/// One sender incarnation.
#[derive(Clone, Debug)]
pub struct RxSender {
    /// Global number of the participant.
    pub participant: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Which opening of its end.
    pub serial: u32,
    /// Its transmit end; stays mapped although the sender may be dead.
    pub words: PeerPart,
    /// Rings it if it watches descriptors.
    pub doorbell: Option<Arc<Descriptor>>,
    /// False once it has died or closed its end: what is committed can be read, nothing more comes.
    pub alive: bool,
}

impl TxLink {
    /// Who this is.
    pub fn counterpart(&self) -> Counterpart {
        Counterpart { participant: self.participant, epoch: self.epoch, serial: self.serial }
    }

    /// Whether both are one incarnation in one mapping of its memory. A peer that introduces itself twice is mapped twice.
    pub(crate) fn is(&self, other: &TxLink) -> bool {
        self.counterpart() == other.counterpart() && Arc::ptr_eq(self.words.section(), other.words.section())
    }
}

impl RxSender {
    /// Who this is.
    pub fn counterpart(&self) -> Counterpart {
        Counterpart { participant: self.participant, epoch: self.epoch, serial: self.serial }
    }

    /// As [`TxLink::is`].
    pub(crate) fn is(&self, other: &RxSender) -> bool {
        self.counterpart() == other.counterpart() && Arc::ptr_eq(self.words.section(), other.words.section())
    }
}

impl RxState {
    /// Takes in a sender; the oldest dead one gives way if there are too many. False if there was no room.
    pub(crate) fn arrive(&mut self, sender: RxSender) -> bool {
        if self.senders.len() >= INCARNATIONS_MAX {
            let Some(oldest) = self.senders.iter().position(|sender| !sender.alive) else { return false };
            self.senders.remove(oldest);
            self.forgotten = self.forgotten.wrapping_add(1);
        }
        self.senders.push_back(sender);
        true
    }

    pub(crate) fn find(&mut self, who: (u16, u32, u32)) -> Option<&mut RxSender> {
        self.senders.iter_mut().find(|sender| (sender.participant, sender.epoch, sender.serial) == who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::section::PeerSection;
    use crate::process::section::tests::{both, party};
    use musubi_core::layout::Part;

    fn sender(epoch: u32, alive: bool) -> RxSender {
        let words = both(party(0, epoch)).1.part(Part::Tx(0)).unwrap();
        RxSender { participant: 0, epoch, serial: 1, words, doorbell: None, alive }
    }

    fn epochs(state: &RxState) -> Vec<u32> {
        state.senders.iter().map(|sender| sender.epoch).collect()
    }

    #[test]
    fn the_oldest_dead_sender_gives_way_and_is_counted() {
        let mut state = RxState::default();
        for (epoch, alive) in [(1, true), (2, false), (3, false), (4, true)] {
            assert!(state.arrive(sender(epoch, alive)));
        }
        assert_eq!((epochs(&state), state.forgotten), (vec![1, 2, 3, 4], 0));
        assert!(state.arrive(sender(5, true)) && state.arrive(sender(6, true)));
        assert_eq!((epochs(&state), state.forgotten), (vec![1, 4, 5, 6], 2));
        assert!(!state.arrive(sender(7, true)), "all live");
        assert_eq!((epochs(&state), state.forgotten), (vec![1, 4, 5, 6], 2));
    }

    #[test]
    fn a_sender_is_found_by_all_that_names_it() {
        let mut state = RxState::default();
        assert!(state.arrive(sender(1, true)) && state.arrive(sender(2, true)));
        assert_eq!(state.find((0, 2, 1)).map(|sender| sender.counterpart().epoch), Some(2));
        for other in [(1, 2, 1), (0, 3, 1), (0, 2, 2)] {
            assert!(state.find(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn one_incarnation_in_one_mapping_is_itself() {
        let section = both(party(0, 3)).1;
        let other = both(party(0, 3)).1;
        let part = |of: &Arc<PeerSection>| of.part(Part::Tx(0)).unwrap();
        let link = |of, serial| TxLink { participant: 0, epoch: 3, serial, words: part(of), doorbell: None };
        assert!(link(&section, 1).is(&link(&section, 1)));
        assert!(!link(&section, 1).is(&link(&section, 2)), "another opening");
        assert!(!link(&section, 1).is(&link(&other, 1)), "another mapping");
        assert!(!link(&section, 1).is(&link(&other, 2)));
        let sender =
            |of, serial| RxSender { participant: 0, epoch: 3, serial, words: part(of), doorbell: None, alive: true };
        assert!(sender(&section, 1).is(&sender(&section, 1)));
        assert!(!sender(&section, 1).is(&sender(&section, 2)) && !sender(&section, 1).is(&sender(&other, 1)));
    }

    #[test]
    fn each_change_is_another_version() {
        let versioned = Versioned::new(3);
        let before = versioned.version();
        assert_eq!(versioned.change(|state| core::mem::replace(state, 4)), 3);
        assert_ne!(versioned.version(), before);
        assert_eq!((*versioned.lock(), versioned.version_word().load(Ordering::SeqCst)), (4, versioned.version()));
    }
}
