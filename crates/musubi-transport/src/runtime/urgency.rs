//! How urgent the threads are that wait in a node, so that a real-time one does not wait until an ordinary one has run.
//!
//! What you may rely on: a thread that comes to wait takes the links from a less urgent one that has them, asleep or not, without
//! waiting for it; no thread takes or keeps them while a more urgent one follows. Where all threads are alike, as ordinary ones are, nothing
//! of this happens.
//!
//! How it works: all of it is under the node's lock. Each leadership has a number, by which a thread that was ousted meanwhile finds
//! out. Who sleeps in `epoll_wait` cannot be taken out of the kernel's queue, and may be given the one wake-up that there is for
//! what comes; so once a more urgent thread has been seen in the node, a leader sleeps on the epoll instance as a whole and on a
//! descriptor of its own, as the background thread does. That costs it a system call more a sleep, and the most urgent thread nothing.
//!
//! What it does not do: notice at once that a thread's priority has changed: it asks with its first wait and each [`ASK_EVERY`]th.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use musubi_linux::descriptor::Descriptor;

use super::bells::ring;

/// Waits of a thread between two looks at its priority.
const ASK_EVERY: u32 = 64;

/// A thread's: 0 of an ordinary one, else its real-time priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency(u8);

thread_local! {
    static OWN: Cell<(Urgency, u32)> = const { Cell::new((Urgency(0), 0)) };
    static AWAY: RefCell<Option<Arc<Descriptor>>> = const { RefCell::new(None) };
}

impl Urgency {
    /// This thread's.
    #[inline]
    pub fn own() -> Urgency {
        let (known, waits) = OWN.get();
        if waits == 0 {
            return Urgency::ask();
        }
        OWN.set((known, waits - 1));
        known
    }

    #[cold]
    fn ask() -> Urgency {
        let urgency = Urgency(musubi_linux::realtime::fifo_priority());
        OWN.set((urgency, ASK_EVERY - 1));
        urgency
    }

    #[cfg(test)]
    pub fn of(priority: u8) -> Urgency {
        Urgency(priority)
    }

    /// What this thread is taken for, whatever it is.
    #[cfg(test)]
    pub fn pretend(priority: u8) {
        OWN.set((Urgency(priority), u32::MAX));
    }
}

/// Who waits in a node.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The most urgent that ever did.
    most: Urgency,
    /// Of those that follow, without ordinary ones.
    followers: Vec<Urgency>,
    leader: Urgency,
    /// Counts leaderships; what a leader was given names its own.
    leads: u64,
    /// What has the leader get up that sleeps now, if it can be ousted.
    away: Option<Arc<Descriptor>>,
}

impl Waiting {
    /// A thread waits.
    #[inline]
    pub fn note(&mut self, urgency: Urgency) {
        self.most = self.most.max(urgency);
    }

    /// A thread leads from now on: the number of that.
    #[inline]
    pub fn begin_lead(&mut self, urgency: Urgency) -> u64 {
        self.leader = urgency;
        self.leads += 1;
        self.leads
    }

    /// How many there were.
    #[cfg(test)]
    pub fn leads(&self) -> u64 {
        self.leads
    }

    /// Whether nobody else has led since.
    #[inline]
    pub fn is_lead(&self, number: u64) -> bool {
        self.leads == number
    }

    /// The leader does not lead any more.
    #[cold]
    pub fn end_lead(&mut self) {
        self.leads += 1;
        if let Some(away) = self.away.take() {
            ring(&away);
        }
    }

    /// Whether a thread may take the links from the leader now, which sleeps or not.
    #[inline]
    pub fn may_oust(&self, urgency: Urgency, is_asleep: bool) -> bool {
        urgency > self.leader && (!is_asleep || self.away.is_some())
    }

    /// Whether a thread is more urgent than the leader.
    pub fn is_above_leader(&self, urgency: Urgency) -> bool {
        urgency > self.leader
    }

    /// A thread follows, or does not any more.
    #[inline]
    pub fn follow(&mut self, urgency: Urgency, does: bool) {
        if urgency == Urgency::default() {
            return;
        }
        if does {
            self.followers.push(urgency);
        } else if let Some(place) = self.followers.iter().position(|one| *one == urgency) {
            self.followers.swap_remove(place);
        }
    }

    /// Whether a more urgent thread follows.
    #[inline]
    pub fn has_above(&self, urgency: Urgency) -> bool {
        self.followers.iter().any(|one| *one > urgency)
    }

    /// Whether any that follows is not an ordinary one.
    #[inline]
    pub fn has_urgent(&self) -> bool {
        !self.followers.is_empty()
    }

    /// The leader falls asleep: what it is to sleep on besides the links, if a more urgent thread may come.
    #[inline]
    pub fn fall_asleep(&mut self) -> Option<Arc<Descriptor>> {
        if self.leader >= self.most {
            return None;
        }
        self.away = away_of_thread();
        self.away.clone()
    }

    /// The leader is up again.
    #[inline]
    pub fn wake_up(&mut self) {
        self.away = None;
    }
}

/// This thread's descriptor; none where the system has no more.
#[cold]
fn away_of_thread() -> Option<Arc<Descriptor>> {
    AWAY.try_with(|away| {
        let mut away = away.try_borrow_mut().ok()?;
        if away.is_none() {
            *away = Descriptor::event().ok().map(Arc::new);
        }
        away.clone()
    })
    .ok()
    .flatten()
}
