//! What the threads of a node share, and how a call comes in and goes out.
//!
//! How it works: one lock over engine and links. A thread that finds it taken counts itself into
//! [`Shared::wanted`]; a leader that spins holds the lock, looks at that word each round and makes way. The background
//! thread never waits for the lock: it sets [`TICK`] there, and whoever drives the links does its round.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;
use std::thread::{JoinHandle, ThreadId};

use musubi_linux::descriptor::Descriptor;
use musubi_linux::forks::Run;
use musubi_linux::futex;
use rustix::event::epoll;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::Options;
use super::events::EventLoop;
use super::intake::{self, REPORTS_MAX};
use super::kernel_events::{TOKEN_ALARM, TOKEN_WAKE, ring};
use super::node_links::{Block, NodeLinks, Wiring};
use crate::notifier::{Notifier, WakeCounts};
use crate::protocol::Protocol;
use crate::wakers::Wakers;
use crate::{LinkError, Priority};

/// Tries what a thread waits for; true if it is there.
pub(super) type Ready<'r, P> = &'r mut dyn FnMut(&mut P, &mut NodeLinks) -> bool;

/// Bit of [`Shared::wanted`]: the background thread asks for a round of service. Below: how many want the lock.
pub(super) const TICK: u32 = 1 << 31;
/// Pauses for which a thread that gave the lock up leaves it to those who want it, before it queues for it itself.
const WAY_LOOKS: u32 = 2_000;

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
    /// What the call that has the lock has taken in.
    pub taken: Taken,
    pub wakers: Wakers<P::Request>,
    /// [`Protocol::changes`] when the waiting were last told, or as of what they are not to be told yet.
    told: u64,
    /// Puts wake-ups off; `None` where each frame wakes.
    notifier: Option<Box<Notifier>>,
    finished: bool,
}

#[derive(Debug)]
pub(super) struct Shared<P: Protocol<Block = Block>> {
    state: Mutex<State<P>>,
    pub wanted: AtomicU32,
    pub follow: Condvar,
    /// Rouses the background thread from a tick.
    pub bell: AtomicU32,
    /// Rouses a caller from the kernel; registered under token 0.
    pub wake: Descriptor,
    /// Ends a sleep when something is due; registered under token 1.
    pub alarm: Descriptor,
    /// Rouses the background thread from the kernel.
    pub kick: Descriptor,
    pub event_loop: EventLoop,
    pub handles: AtomicUsize,
    pub thread: Mutex<Option<JoinHandle<()>>>,
    pub options: Options,
    pub wiring: Wiring,
    run: Run,
}

impl<P: Protocol<Block = Block>> Shared<P> {
    pub fn new(wiring: Wiring, links: NodeLinks, mut options: Options) -> Result<Shared<P>, LinkError> {
        let event = || Descriptor::event().map_err(|_| LinkError::Unavailable);
        let (wake, kick) = (event()?, event()?);
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map(Descriptor::from)
            .map_err(|_| LinkError::Unavailable)?;
        for (event, token) in [(&wake, TOKEN_WAKE), (&alarm, TOKEN_ALARM)] {
            epoll::add(&wiring.epoll, event, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
                .map_err(|_| LinkError::Unavailable)?;
        }
        let event_loop = EventLoop::new(&wiring.epoll)?;
        if !musubi_linux::realtime::spin_allowed() {
            options.spin_ns = 0;
        }
        let state = State {
            engine: P::new(wiring.me, wiring.incarnation),
            links,
            driver: Driver::Nobody,
            asleep: false,
            sleeps: 0,
            sleep_until_ns: 0,
            alarm_ns: u64::MAX,
            background_parked: false,
            calls: 0,
            armed_at: 0,
            armed_by: None,
            followers: 0,
            taken: Taken::NOTHING,
            wakers: Wakers::new(),
            told: 0,
            notifier: Notifier::of(wiring.topology.rules_of(wiring.me)).map(Box::new),
            finished: false,
        };
        Ok(Shared {
            state: Mutex::new(state),
            wanted: AtomicU32::new(0),
            follow: Condvar::new(),
            bell: AtomicU32::new(0),
            wake,
            alarm,
            kick,
            event_loop,
            handles: AtomicUsize::new(1),
            thread: Mutex::new(None),
            options,
            wiring,
            run: Run::this(),
        })
    }

    /// False in a child made by `fork`.
    pub fn is_ours(&self) -> bool {
        self.run.is_this()
    }

    /// The lock, if the node runs.
    #[inline(always)]
    pub fn lock(&self) -> Result<MutexGuard<'_, State<P>>, LinkError> {
        if !self.run.is_this() {
            return Err(LinkError::Ended);
        }
        let state = self.lock_anyway();
        if state.finished { Err(LinkError::Ended) } else { Ok(state) }
    }

    /// The lock, for a call that could wait: the background thread leaves the links to it.
    #[inline(always)]
    pub fn enter(&self) -> Result<MutexGuard<'_, State<P>>, LinkError> {
        let mut state = self.lock()?;
        state.calls = state.calls.wrapping_add(1);
        state.taken = Taken::NOTHING;
        if matches!(state.driver, Driver::Background | Driver::Loop) {
            self.oust(&mut state);
            state.links.now_ns();
        }
        Ok(state)
    }

    #[inline(always)]
    pub fn lock_anyway(&self) -> MutexGuard<'_, State<P>> {
        self.try_lock().unwrap_or_else(|| self.lock_contended())
    }

    /// The lock, if nobody has it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, State<P>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, State<P>> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Takes the links from the sleeping background thread, or from an event loop.
    #[cold]
    pub fn oust(&self, state: &mut State<P>) {
        let driver = std::mem::replace(&mut state.driver, Driver::Nobody);
        if std::mem::take(&mut state.asleep) {
            state.links.finish_sleep();
        }
        match driver {
            Driver::Background => ring(&self.kick),
            _ => self.unpark_background(state),
        }
        // A loop that calls is awake, and compares changes when it arms again.
        if driver == Driver::Loop && state.armed_by == Some(std::thread::current().id()) {
            state.armed_by = None;
        }
    }

    /// Nobody sleeps on the links any more: the background thread goes on ticking.
    pub fn unpark_background(&self, state: &mut State<P>) {
        if std::mem::take(&mut state.background_parked) {
            self.ring_background();
        }
    }

    /// Gives the lock back after a call: flushes, and tells those who wait if something has changed. Where another thread
    /// wants the lock, or was sent something more urgent than what this call got, it goes first: on the same core, who
    /// carries a stream would otherwise take the lock again and again until its time slice is over.
    #[inline(always)]
    pub fn unlock(&self, mut state: MutexGuard<'_, State<P>>) {
        let sent = state.links.flush();
        if state.is_watched() {
            return self.unlock_watched(state, sent);
        }
        state.told = state.engine.changes();
        drop(state);
        if self.wanted.load(Ordering::Relaxed) & !TICK != 0 {
            std::thread::yield_now();
        }
    }

    /// [`Shared::unlock`] where somebody may have to be told.
    #[inline(never)]
    fn unlock_watched(&self, mut state: MutexGuard<'_, State<P>>, sent: bool) {
        let wakers = self.settle_flushed(&mut state, sent);
        let others_first = state.followers != 0 && state.taken.has_more_urgent();
        drop(state);
        wake_all(wakers);
        if others_first || self.wanted.load(Ordering::Relaxed) & !TICK != 0 {
            std::thread::yield_now();
        }
    }

    /// As [`Shared::unlock`], for a future's task: somebody must have the links while it is suspended.
    pub fn unlock_aside(&self, mut state: MutexGuard<'_, State<P>>) {
        let wakers = self.settle(&mut state);
        if state.driver == Driver::Nobody && !state.wakers.is_empty() {
            self.ring_background();
        }
        drop(state);
        wake_all(wakers);
    }

    /// Gives the lock up for a moment.
    pub fn make_way<'n>(&'n self, mut state: MutexGuard<'n, State<P>>) -> MutexGuard<'n, State<P>> {
        let wakers = self.settle(&mut state);
        drop(state);
        wake_all(wakers);
        for _ in 0..WAY_LOOKS {
            if self.wanted.load(Ordering::Relaxed) & !TICK == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        self.lock_anyway()
    }

    /// What must be done before the lock is given up: gives the wakers that are to be woken after that.
    pub fn settle(&self, state: &mut State<P>) -> Vec<Waker> {
        let sent = state.links.flush();
        self.settle_flushed(state, sent)
    }

    fn settle_flushed(&self, state: &mut State<P>, sent: bool) -> Vec<Waker> {
        if state.asleep && (sent || state.links.holds_reports()) {
            self.hasten(state);
        }
        if state.has_news() {
            state.told = state.engine.changes();
            if state.is_watched() {
                return self.tell(state);
            }
        }
        Vec::new()
    }

    /// Who sleeps on the links must not oversleep what has become due by what was just sent, nor reports that another thread
    /// has read from the kernel and left.
    #[cold]
    fn hasten(&self, state: &mut State<P>) {
        if state.links.holds_reports() || state.due_ns() < state.sleep_until_ns {
            match state.driver {
                Driver::Background => ring(&self.kick),
                Driver::Loop => self.event_loop.wake(state),
                Driver::Caller | Driver::Nobody => ring(&self.wake),
            }
        }
    }

    /// Something has changed: everybody who waits looks again.
    #[cold]
    fn tell(&self, state: &mut State<P>) -> Vec<Waker> {
        state.links.wakes.woken += u64::from(state.followers != 0);
        if let Some(notifier) = &mut state.notifier {
            notifier.woken(state.links.last_ns());
        }
        if state.followers != 0 {
            self.follow.notify_all();
        }
        if state.driver == Driver::Caller && state.asleep {
            ring(&self.wake);
        }
        self.event_loop.wake(state);
        state.wakers.due(&state.engine)
    }

    /// Rouses the background thread from a tick or from being parked.
    pub fn ring_background(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        futex::wake_local(&self.bell);
    }

    /// See [`super::Node::finish`].
    pub fn finish(&self) -> Result<(), LinkError> {
        let mut state = self.lock()?;
        let State { engine, links, .. } = &mut *state;
        engine.end();
        let leaving = links.close();
        state.finished = true;
        let wakers = state.wakers.all();
        self.event_loop.wake(&mut state);
        drop(state);
        self.follow.notify_all();
        ring(&self.wake);
        ring(&self.kick);
        self.ring_background();
        wake_all(wakers);
        // Without the lock: calls of other threads end at once.
        leaving.leave();
        self.join();
        Ok(())
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let this: ThreadId = std::thread::current().id();
        // A waker that the background thread wakes may hold the last handle.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != this) {
            let _ = thread.join();
        }
    }
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
            self.links.count_wakes(notifier.totals());
            if !raise && !had_news {
                self.told = self.engine.changes();
            }
        }
        Some(class)
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
            self.links.count_wakes(notifier.totals());
            self.told = self.engine.changes().wrapping_sub(1);
        }
    }

    /// Whether frames of some classes wake nobody at once. Then nobody who waits may sleep on the links, where each frame
    /// would wake it: the background thread does.
    #[inline(always)]
    pub fn is_filtered(&self) -> bool {
        self.notifier.is_some()
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
        let now_ns = self.links.last_ns();
        self.engine.tick(now_ns, &mut self.links);
    }

    /// When something is due next, by engine or links.
    pub fn due_ns(&mut self) -> u64 {
        let now_ns = self.links.last_ns();
        let due_ns = self.engine.tick(now_ns, &mut self.links).min(self.links.deadline_ns());
        self.notifier.as_ref().map_or(due_ns, |notifier| notifier.due_ns(now_ns).min(due_ns))
    }
}

/// Classes of the frames of data that a call has taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    last: Priority,
    most_urgent: Priority,
}

impl Taken {
    const NOTHING: Taken = Taken { last: Priority::MOST_URGENT, most_urgent: Priority::LEAST_URGENT };

    /// Control is nobody's news of its own.
    #[inline]
    pub fn note(&mut self, class: Priority) {
        if class != Priority::MOST_URGENT {
            *self = Taken { last: class, most_urgent: self.most_urgent.min(class) };
        }
    }

    /// Whether something came for others that is more urgent than the last, which is what the call has waited for.
    fn has_more_urgent(self) -> bool {
        self.most_urgent < self.last
    }
}

#[inline]
pub(super) fn wake_all(wakers: Vec<Waker>) {
    if !wakers.is_empty() {
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::NodeId;
    use crate::protocol::Silent;
    use crate::runtime::Node;
    use crate::runtime::switchboard::Switchboard;
    use crate::topology::Topology;

    #[test]
    fn a_bell_is_left_for_who_sleeps_on_the_links() {
        let (board, system) = (Switchboard::new(), Arc::new(Topology::single_machine()));
        let me = NodeId::new(0, 1).unwrap();
        let node = Node::<Silent<Block>>::start_with(system, me, Options::default(), |wiring| board.join(wiring));
        let node = node.unwrap();
        let shared = &node.shared;
        let rings = || {
            let events = shared.await_events(Some(0));
            events.tokens[..events.count].contains(&TOKEN_WAKE)
        };
        let mut state = shared.enter().unwrap();
        (state.driver, state.asleep) = (Driver::Caller, true);
        ring(&shared.wake);
        shared.serve(&mut state);
        assert!(rings(), "another thread has silenced it");
        state.asleep = false;
        shared.serve(&mut state);
        assert!(!rings());
        state.driver = Driver::Nobody;
        drop(state);
        node.finish().unwrap();
    }
}
