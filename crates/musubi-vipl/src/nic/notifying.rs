//! When completions of a VI wake who sleeps, and whether they are taken in time, as its quality of service asks.
//!
//! What you may rely on: a completion is written, and seen by who polls, at once; only the wake-up is put off, until the VI's
//! [`Notification::latest_ns`] at most, and while that stands its completions wake no oftener than once in
//! [`Notification::interval_ns`]. Errors wake at once. Any other wake-up is good for what was put off.
//!
//! How it works: core's [`Filter`] for each VI that asks for one; a completion that it holds moves no count of changes, until a
//! tick finds it due. With a budget the instant of each completion is kept until the program takes it.
//!
//! What it does not do: wake, or keep the time; keep who sleeps from being disturbed by frames, for which the node asks
//! [`Protocol::shut`](musubi_transport::protocol::Protocol::shut).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use musubi_transport::links::Block;
use musubi_transport::protocol::Holding;
use musubi_transport::{Filter, FilterRule, Priority, Verdict};

use super::counts::ClassCounts;
use super::{NicState, ViEntry, ViNumber};
use crate::engine::{Happened, Queue, ViState};
use crate::error::ViError;
use crate::slots::Slots;

/// What a VI asks about those who wait for its completions; 0 asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// Least time between two wake-ups, nanoseconds, as long as `latest_ns` allows it.
    pub interval_ns: u64,
    /// Longest time from a completion to its wake-up, nanoseconds; 0: when the interval is over.
    pub latest_ns: u64,
    /// Longest time from a completion to when the program takes it that is as it should be, nanoseconds.
    pub budget_ns: u64,
}

impl Notification {
    fn rule(&self) -> FilterRule {
        let latest_ns = if self.latest_ns == 0 { self.interval_ns } else { self.latest_ns };
        match self.interval_ns {
            0 => FilterRule::EACH,
            interval_ns_min => FilterRule { interval_ns_min, latest_ns, ..FilterRule::EACH },
        }
    }
}

/// The policy of one VI.
#[derive(Debug)]
pub(super) struct Policy {
    filter: Filter,
    budget_ns: u64,
    /// When the oldest completion came that nobody was woken for, if there is one.
    held_since_ns: Option<u64>,
    /// When somebody is to be woken for it; `u64::MAX` if there is none.
    due_ns: u64,
    /// When those completions came that the program has not taken, by queue; only with a budget.
    completed_ns: [VecDeque<u64>; 2],
}

impl Policy {
    fn new(asked: &Notification) -> Policy {
        Policy {
            filter: Filter::new(asked.rule()),
            budget_ns: asked.budget_ns,
            held_since_ns: None,
            due_ns: u64::MAX,
            completed_ns: Default::default(),
        }
    }

    /// Completions came: when who sleeps is woken for them; `None`: now.
    pub(super) fn completed(&mut self, now_ns: u64, happened: &Happened, counts: &mut ClassCounts) -> Option<u64> {
        if self.budget_ns > 0 {
            for (instants, count) in self.completed_ns.iter_mut().zip([happened.sends, happened.receives]) {
                instants.extend(core::iter::repeat_n(now_ns, count as usize));
            }
        }
        if self.filter.is_each() {
            return None;
        }
        counts.asked += 1;
        // Of an error everybody hears at once, and of this with it.
        match self.filter.offer(now_ns, 0) {
            Verdict::Hold { latest_at_ns } if !happened.has_errors() => {
                self.held_since_ns.get_or_insert(now_ns);
                self.due_ns = latest_at_ns;
                return Some(latest_at_ns);
            }
            Verdict::Hold { .. } => self.filter.raised(now_ns),
            Verdict::Raise => {}
        }
        counts.raised += 1;
        (self.held_since_ns, self.due_ns) = (None, u64::MAX);
        None
    }

    /// The program takes the oldest completion of a queue.
    #[cold]
    pub(super) fn taken(&mut self, now_ns: u64, queue: Queue, counts: &mut ClassCounts) {
        let Some(completed_ns) = self.completed_ns[queue as usize].pop_front() else { return };
        let latency_ns = now_ns.saturating_sub(completed_ns);
        counts.timed += 1;
        counts.over_budget += u64::from(latency_ns > self.budget_ns);
        counts.longest_ns = counts.longest_ns.max(latency_ns);
    }

    /// Whether somebody must be woken now for what was put off; `is_there` says that the program has not taken it meanwhile.
    fn due(&mut self, now_ns: u64, is_there: bool, counts: &mut ClassCounts) -> bool {
        if !self.filter.due(now_ns) {
            return false;
        }
        let since_ns = self.held_since_ns.take().unwrap_or(now_ns);
        self.due_ns = u64::MAX;
        if is_there {
            counts.deferred += 1;
            counts.longest_deferral_ns = counts.longest_deferral_ns.max(now_ns.saturating_sub(since_ns));
        }
        is_there
    }
}

/// VIs whose completions wait to be told.
#[derive(Debug)]
pub(super) struct Notifying {
    /// Whether any VI ever had a policy, so that the time matters.
    pub(super) is_used: bool,
    holding: Holding,
    /// Places of VIs with completions that were put off; those that are not any more are left out with the next look.
    places: Vec<u16>,
    /// None is due before.
    next_ns: u64,
    /// That has become earlier since somebody asked.
    is_hastened: bool,
    /// Classes for which a tick has woken since it was last asked, a bit each, and how many changes that were.
    put_off: (u8, u64),
}

impl Default for Notifying {
    fn default() -> Notifying {
        Notifying {
            is_used: false,
            holding: Holding::Nothing,
            places: Vec::new(),
            next_ns: u64::MAX,
            is_hastened: false,
            put_off: (0, 0),
        }
    }
}

impl Notifying {
    /// What completed at a place is told at this instant.
    pub(super) fn hold(&mut self, place: u16, due_ns: u64) {
        if !self.places.contains(&place) {
            self.places.push(place);
        }
        if due_ns < self.next_ns {
            (self.next_ns, self.is_hastened) = (due_ns, true);
        }
    }
}

impl<B: Block> NicState<B> {
    /// Sets when completions of an idle VI wake who waits for them, and how long they may lie.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::State`] unless it is idle.
    pub fn set_notification(&mut self, vi: ViNumber, asked: Notification) -> Result<(), ViError> {
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        if entry.vi.state() != ViState::Idle {
            return Err(ViError::State);
        }
        let has_some = asked.interval_ns > 0 || asked.budget_ns > 0;
        entry.policy = has_some.then(|| Box::new(Policy::new(&asked)));
        self.notifying.is_used |= has_some;
        self.review_holding();
        Ok(())
    }

    /// VIs, their classes or their policies are others now: how what they put off can be kept from who sleeps.
    pub(super) fn review_holding(&mut self) {
        if !self.notifying.is_used {
            return;
        }
        let (mut filtered, mut each) = (0_u8, 0_u8);
        for (_, entry) in self.vis.iter() {
            let bit = 1 << (entry.vi.attributes().class & 7);
            let is_filtered = entry.policy.as_ref().is_some_and(|policy| !policy.filter.is_each());
            if is_filtered { filtered |= bit } else { each |= bit }
        }
        // Whoever sleeps is always rung for the most urgent class.
        each |= 1 << Priority::MOST_URGENT.class();
        self.notifying.holding = match (filtered, filtered & each) {
            (0, _) => Holding::Nothing,
            (_, 0) => Holding::Classes,
            _ => Holding::Some,
        };
    }

    /// See [`Protocol::holding`](musubi_transport::protocol::Protocol::holding).
    pub(super) fn holding_now(&self) -> Holding {
        self.notifying.holding
    }

    /// See [`Protocol::shut`](musubi_transport::protocol::Protocol::shut).
    #[cold]
    pub(super) fn shut_now(&self, now_ns: u64) -> (u8, u64) {
        let held_ns = self.notifying.next_ns;
        let is_awaited = self.connecting.listeners.iter().any(|listener| listener.waiting > 0)
            || self.vis.iter().any(|(_, entry)| entry.attempt.is_some());
        // Frames of the connection manager are in the classes of VIs.
        if self.notifying.holding != Holding::Classes || is_awaited {
            return (0, held_ns);
        }
        let (mut shut, mut open, mut until_ns) = (0_u8, 0_u8, [u64::MAX; Priority::COUNT]);
        for (_, entry) in self.vis.iter().filter(|(_, entry)| entry.connection.is_some()) {
            let class = entry.vi.attributes().class & 7;
            let of = entry.policy.as_ref().and_then(|policy| policy.filter.shut_until_ns(now_ns));
            match of {
                Some(instant_ns) => {
                    shut |= 1 << class;
                    until_ns[usize::from(class)] = until_ns[usize::from(class)].min(instant_ns);
                }
                None => open |= 1 << class,
            }
        }
        shut &= !open;
        let opens_ns = (0..Priority::COUNT).filter(|class| shut & 1 << class != 0).map(|class| until_ns[class]).min();
        (shut, held_ns.min(opens_ns.unwrap_or(u64::MAX)))
    }

    /// See [`Protocol::take_hastened`](musubi_transport::protocol::Protocol::take_hastened).
    pub(super) fn take_hastened_now(&mut self) -> bool {
        core::mem::take(&mut self.notifying.is_hastened)
    }

    /// See [`Protocol::take_put_off`](musubi_transport::protocol::Protocol::take_put_off).
    pub(super) fn take_put_off_now(&mut self) -> (u8, u64) {
        core::mem::take(&mut self.notifying.put_off)
    }

    /// Tells of what was put off and is due; gives when the next is.
    pub(super) fn tick_notifications(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.notifying.next_ns {
            return self.notifying.next_ns;
        }
        self.notifying.next_ns = u64::MAX;
        for place in core::mem::take(&mut self.notifying.places) {
            let Some((_, ViEntry { vi, policy: Some(policy), .. })) = self.vis.at_place_mut(place) else { continue };
            let class = vi.attributes().class;
            let is_there = vi.has_complete(Queue::Send) || vi.has_complete(Queue::Receive);
            let Some(counts) = self.counts.get_mut(usize::from(class)) else { continue };
            if policy.due_ns <= now_ns && policy.due(now_ns, is_there, counts) {
                self.changes += 1;
                self.notifying.put_off.0 |= 1 << (class & 7);
                self.notifying.put_off.1 += 1;
            } else if policy.due_ns < u64::MAX {
                self.notifying.next_ns = self.notifying.next_ns.min(policy.due_ns);
                self.notifying.places.push(place);
            }
        }
        self.notifying.next_ns
    }

    /// A completion of a queue of this VI is taken, if its program wants to know how long that takes.
    #[inline]
    pub(super) fn note_taken(&mut self, place: u16, queue: Queue) {
        if self.notifying.is_used {
            self.time_taken(place, queue);
        }
    }

    #[cold]
    fn time_taken(&mut self, place: u16, queue: Queue) {
        let Some((_, ViEntry { vi, policy: Some(policy), .. })) = self.vis.at_place_mut(place) else { return };
        if let Some(counts) = self.counts.get_mut(usize::from(vi.attributes().class)) {
            policy.taken(self.now_ns, queue, counts);
        }
    }

    /// The place of a VI.
    #[inline]
    pub(super) fn place_of(vi: ViNumber) -> u16 {
        Slots::<ViEntry>::place(vi.0)
    }
}
