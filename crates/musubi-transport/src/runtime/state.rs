//! What only the holder of a node's lock touches: engine, links, who drives them, and who is to be told.
//!
//! What you may rely on: nothing here waits or rings. Who gives the lock back tells the waiting what has changed
//! ([`super::shared`]).
//!
//! How it works: the protocol counts its changes; what the waiting were last told is a number of that count. A frame whose
//! class wakes nobody now moves that number along, so that it is no news until its rule's latest time.

use std::thread::ThreadId;

use super::intake::{self, MORE_MAX};
use super::node_links::{Block, NodeLinks};
use super::urgency::Waiting;
use crate::Priority;
use crate::limits::REPORTS_MAX;
use crate::notifier::{Notifier, WakeCounts};
use crate::protocol::{Holding, Protocol};
use crate::shm::ShmCarrier;
use crate::wakers::Wakers;

/// Tries what a thread waits for; true if it is there.
pub(super) type Ready<'r, P> = &'r mut dyn FnMut(&mut P, &mut NodeLinks) -> bool;

/// Who sleeps on, or spins over, the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Nobody,
    /// A thread that waits in a call.
    Caller,
    /// The background thread; the next call takes the links from it.
    Background,
    /// The program's own event loop; likewise.
    Loop,
}

/// What only the holder of the lock touches.
#[derive(Debug)]
pub(super) struct State<P: Protocol<Block = Block>> {
    pub engine: P,
    pub links: NodeLinks,
    pub driver: Driver,
    /// The driver sleeps in the kernel; peers ring.
    pub asleep: bool,
    /// Counts sleeps, so that a sleeper knows its own.
    pub sleeps: u64,
    /// Until when the driver sleeps at most.
    pub sleep_until_ns: u64,
    /// What the alarm is set to; `u64::MAX` if it is not.
    pub alarm_ns: u64,
    /// The background thread sleeps until it is rung, because a caller has the links.
    pub background_parked: bool,
    /// Calls that came in, so that the background thread sees whether any did.
    pub calls: u64,
    /// [`Protocol::changes`] when the program's event loop last armed.
    pub armed_at: u64,
    /// The thread of the program's event loop, which sleeps, or is about to, until it is told of a change.
    pub armed_by: Option<ThreadId>,
    /// Threads that wait without being the leader.
    pub followers: u32,
    /// How urgent those are that wait.
    pub waiting: Waiting,
    /// What the call that has the lock has taken in.
    pub taken: Taken,
    pub wakers: Wakers<P::Request>,
    /// [`Protocol::changes`] when the waiting were last told, or as of what they are not to be told yet.
    pub told: u64,
    /// Puts wake-ups off; `None` where each frame wakes.
    pub notifier: Option<Box<Notifier>>,
    pub finished: bool,
}

impl<P: Protocol<Block = Block>> State<P> {
    /// Whether the node has ended.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// Whether something has changed that those who wait were not told.
    pub fn has_news(&self) -> bool {
        self.engine.changes() != self.told
    }

    /// Whether anybody is to be told of changes, or sleeps on the links.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.followers != 0 || self.asleep || self.armed_by.is_some() || !self.wakers.is_empty()
    }

    /// Tries; again if the try itself has changed something (a sender that asks its own node for credit has it at once),
    /// of which nobody else would tell.
    #[inline(always)]
    pub fn attempt(&mut self, ready: Ready<P>) -> bool {
        let before = self.engine.changes();
        ready(&mut self.engine, &mut self.links) || self.attempt_again(before, ready)
    }

    /// The second of these tries, if something has changed since `before` the first one.
    #[inline]
    pub fn attempt_again(&mut self, before: u64, ready: Ready<P>) -> bool {
        self.engine.changes() != before && ready(&mut self.engine, &mut self.links)
    }

    /// Gives the engine one report: see [`intake::one`]. A frame whose class wakes nobody now changes nothing of what
    /// the waiting were told.
    #[inline(always)]
    pub fn take_in_one(&mut self) -> Option<Priority> {
        if self.notifier.is_some() { self.take_in_quietly() } else { intake::one(&mut self.engine, &mut self.links) }
    }

    #[cold]
    fn take_in_quietly(&mut self) -> Option<Priority> {
        let (had_news, before) = (self.has_news(), self.engine.changes());
        let class = intake::one(&mut self.engine, &mut self.links)?;
        if self.engine.changes() != before
            && let Some(notifier) = &mut self.notifier
        {
            let raise = notifier.came(self.links.last_ns(), class);
            self.links.count_wakes(notifier);
            if !raise && !had_news {
                self.told = self.engine.changes();
            }
        }
        Some(class)
    }

    /// Takes in a few of the frames behind the one that was waited for, if they are short: who waits for the next one finds
    /// it without a look at the links.
    #[inline]
    pub fn take_in_more(&mut self) {
        for _ in 0..MORE_MAX {
            let is_there = self.links.memory.as_mut().is_some_and(ShmCarrier::has_short_frame);
            let Some(class) = is_there.then(|| self.take_in_one()).flatten() else { return };
            self.taken.note_other(class);
        }
    }

    /// Gives the engine what the links have, at most [`REPORTS_MAX`] reports.
    pub fn take_in(&mut self) {
        for _ in 0..REPORTS_MAX {
            if self.take_in_one().is_none() {
                return;
            }
        }
    }

    /// What was put off and is due is news.
    pub fn raise_due(&mut self) {
        if let Some(notifier) = &mut self.notifier
            && notifier.due(self.links.last_ns())
        {
            self.links.count_wakes(notifier);
            self.told = self.engine.changes().wrapping_sub(1);
        }
    }

    /// Whether frames of some classes wake nobody at once, and yet would wake who sleeps on the links: over a network, or where
    /// a rule counts frames. Then nobody who waits may sleep there: the background thread does.
    #[inline(always)]
    pub fn is_filtered(&self) -> bool {
        let has_rules = self.notifier.is_some();
        let of_classes = |notifier: &Notifier| self.links.has_network() || !notifier.is_by_time_alone();
        self.notifier.as_deref().is_some_and(of_classes)
            || match self.engine.holding() {
                Holding::Nothing => false,
                // Who wakes for the protocol's time looks at everything, which its class's rule may not allow yet.
                Holding::Classes => has_rules || self.links.has_network(),
                Holding::Some => true,
            }
    }

    /// Announces sleep on the links, to be rung for what may wake now; true if there is something meanwhile. What classes
    /// that may not wake have left there is taken in first, so much as was there when sleep was announced.
    pub fn prepare_sleep(&mut self) -> bool {
        let now_ns = self.links.last_ns();
        let shut = self.engine.shut(now_ns);
        if self.notifier.is_none() && shut.is_none() {
            return self.links.prepare_sleep();
        }
        let open = self.notifier.as_ref().map_or(u8::MAX, |notifier| notifier.open(now_ns).0);
        let open = open & !shut.map_or(0, |(classes, _)| classes);
        let is_filtered = self.is_filtered();
        self.links.ring_for(if is_filtered { u8::MAX } else { open });
        if self.links.prepare_sleep() {
            return true;
        }
        for _ in 0..self.links.left_unseen() {
            if self.take_in_one().is_none() {
                break;
            }
        }
        self.has_news()
    }

    /// Whether the background thread is to have the links that nobody has. `idle` says that the program does not call.
    pub fn is_left_to_background(&self, idle: bool) -> bool {
        let idle = idle || !self.wakers.is_empty();
        if self.is_filtered() { idle || self.followers != 0 } else { idle && self.followers == 0 }
    }

    /// What became of the wake-ups by frames of a class.
    pub fn wake_counts(&self, class: Priority) -> WakeCounts {
        self.notifier.as_ref().map_or_else(WakeCounts::default, |notifier| notifier.counts(class))
    }

    /// Does what is due by time.
    pub fn tick(&mut self) {
        self.links.tick();
        self.tick_engine();
        self.raise_due();
    }

    /// Lets the engine do what it puts off until the links have been looked at.
    #[inline]
    pub fn tick_engine(&mut self) {
        self.tick_protocol();
    }

    /// The same, and says when something is due next. What a rule of its class still puts off is no news.
    #[inline]
    fn tick_protocol(&mut self) -> u64 {
        let (now_ns, had_news, before) = (self.links.last_ns(), self.has_news(), self.engine.changes());
        let due_ns = self.engine.tick(now_ns, &mut self.links);
        if self.engine.changes() != before && self.notifier.is_some() {
            self.put_off_by_class(now_ns, had_news, before);
        }
        due_ns
    }

    #[cold]
    fn put_off_by_class(&mut self, now_ns: u64, had_news: bool, before: u64) {
        let (classes, changes) = self.engine.take_put_off();
        let Some(notifier) = &mut self.notifier else { return };
        let all = (0..Priority::COUNT as u8).filter_map(Priority::new);
        let due = all.filter(|class| classes & 1 << class.class() != 0);
        // Each is told, whether another has raised already or not.
        let raised = due.filter(|class| notifier.came(now_ns, *class)).count() > 0;
        self.links.count_wakes(notifier);
        if !raised && !had_news && self.engine.changes() == before.wrapping_add(changes) {
            self.told = self.engine.changes();
        }
    }

    /// When something is due next, by engine or links.
    pub fn due_ns(&mut self) -> u64 {
        let due_ns = self.tick_protocol().min(self.links.deadline_ns());
        due_ns.min(self.put_off_ns())
    }

    /// When somebody must look for what was put off, or may be there and disturbs nobody; `u64::MAX` if never.
    pub fn put_off_ns(&self) -> u64 {
        let now_ns = self.links.last_ns();
        let shut_ns = self.engine.shut(now_ns).map_or(u64::MAX, |(_, look_at_ns)| look_at_ns);
        let Some(notifier) = &self.notifier else { return shut_ns };
        let look_at_ns = if self.is_filtered() { u64::MAX } else { notifier.open(now_ns).1 };
        notifier.due_ns(now_ns).min(look_at_ns).min(shut_ns)
    }
}

/// Classes of the frames of data that a call has taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    last: Priority,
    most_urgent: Priority,
}

impl Taken {
    pub const NOTHING: Taken = Taken { last: Priority::MOST_URGENT, most_urgent: Priority::LEAST_URGENT };

    /// Control is nobody's news of its own.
    #[inline]
    pub fn note(&mut self, class: Priority) {
        if class != Priority::MOST_URGENT {
            *self = Taken { last: class, most_urgent: self.most_urgent.min(class) };
        }
    }

    /// The same of what may be for others.
    #[inline]
    pub fn note_other(&mut self, class: Priority) {
        if class != Priority::MOST_URGENT {
            self.most_urgent = self.most_urgent.min(class);
        }
    }

    /// Whether something came for others that is more urgent than the last, which is what the call has waited for.
    pub fn has_more_urgent(self) -> bool {
        self.most_urgent < self.last
    }
}
