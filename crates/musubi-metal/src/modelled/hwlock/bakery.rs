//! The single-writer algorithm behind the same trait, for chips without semaphore hardware.
//!
//! How it works: see [`musubi_core::lock::Bakery`]. A contender that is dead is passed over by the algorithm itself, so
//! freeing a lock from it is marking it dead.

use musubi_core::lock::{Bakery, Contender};

use super::HardwareLock;

/// One party's part in a lock of `OTHERS` others.
#[derive(Debug)]
pub struct BakeryLock<'m, const OTHERS: usize> {
    own: Bakery<'m>,
    me: u32,
    others: [Contender<'m>; OTHERS],
}

impl<'m, const OTHERS: usize> BakeryLock<'m, OTHERS> {
    /// The part of party `me`. `others` are all that may contend, whether they have started or not.
    pub fn new(me: u32, own: Bakery<'m>, others: [Contender<'m>; OTHERS]) -> Self {
        Self { own, me, others }
    }
}

impl<const OTHERS: usize> HardwareLock for BakeryLock<'_, OTHERS> {
    fn try_lock(&mut self) -> bool {
        self.own.try_lock(&self.others).is_ok()
    }

    fn unlock(&mut self) -> bool {
        self.own.unlock().is_ok()
    }

    fn holder(&self) -> Option<u32> {
        // A dead one that was inside holds nothing: it is passed over.
        let inside = |other: &&Contender<'_>| other.alive && other.line.get(musubi_core::layout::ticket::HOLDS) != 0;
        if self.own.holds() { Some(self.me) } else { self.others.iter().find(inside).map(|o| o.participant.into()) }
    }

    fn free_from_dead(&mut self, party: u32) -> bool {
        let holds = self.holder() == Some(party) && party != self.me;
        for other in self.others.iter_mut().filter(|other| u32::from(other.participant) == party) {
            other.alive = false;
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use core::cell::UnsafeCell;

    use musubi_core::layout::ticket;
    use musubi_core::words::{OwnWords, PeerWords};

    use super::*;

    #[repr(align(64))]
    struct Line(UnsafeCell<[u32; ticket::WORDS as usize]>);

    fn party<'m>(lines: &'m [Line; 2], me: usize) -> BakeryLock<'m, 1> {
        // SAFETY: the lines outlive the views; each has one writing view.
        let own = unsafe { OwnWords::new(lines[me].0.get().cast(), ticket::WORDS) };
        // SAFETY: as above; the view only reads.
        let line = unsafe { PeerWords::new(lines[1 - me].0.get().cast_const().cast(), ticket::WORDS) };
        let other = Contender { participant: 1 - me as u16, line, alive: true };
        BakeryLock::new(me as u32, Bakery::new(me as u16, own), [other])
    }

    #[test]
    fn one_at_a_time_and_a_dead_holder_is_passed_over() {
        let lines = [const { Line(UnsafeCell::new([0; ticket::WORDS as usize])) }; 2];
        let (mut a, mut b) = (party(&lines, 0), party(&lines, 1));
        assert!(a.try_lock() && !b.try_lock() && !a.try_lock());
        assert_eq!((a.holder(), b.holder()), (Some(0), Some(0)));
        assert!(!b.unlock());
        assert!(a.unlock() && b.try_lock() && !a.try_lock());
        assert!(!a.free_from_dead(0));
        assert!(a.free_from_dead(1) && a.try_lock(), "b is dead");
    }
}
