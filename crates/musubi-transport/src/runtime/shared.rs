//! What the threads of a node share, and how a call comes in and goes out.
//!
//! How it works: one lock over engine and links. A thread that finds it taken counts itself into
//! [`Shared::wanted`]; a leader that spins holds the lock, looks at that word each round and makes way. The background
//! thread never waits for the lock: it sets [`TICK`] there, and whoever drives the links does its round.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::thread::{JoinHandle, ThreadId};

use musubi_linux::descriptor::Descriptor;
use musubi_linux::forks::Run;
use musubi_linux::futex;
use musubi_linux::inheriting::{InheritingGuard, InheritingMutex, Told};
use rustix::event::epoll;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::Options;
use super::bells::{TOKEN_ALARM, TOKEN_WAKE, ring};
use super::event_loop::EventLoop;
use super::node_links::{Block, NodeLinks};
use super::state::{Driver, State, Taken};
use super::urgency::Waiting;
use super::wiring::Wiring;
use crate::LinkError;
use crate::notifier::Notifier;
use crate::protocol::Protocol;
use crate::wakers::Wakers;

/// Bit of [`Shared::wanted`]: the background thread asks for a round of service. Below: how many want the lock.
pub(super) const TICK: u32 = 1 << 31;
/// Pauses for which a thread that gave the lock up leaves it to those who want it, before it queues for it itself.
const WAY_LOOKS: u32 = 2_000;

#[derive(Debug)]
pub(super) struct Shared<P: Protocol<Block = Block>> {
    state: InheritingMutex<State<P>>,
    pub wanted: AtomicU32,
    pub follow: Told,
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
            waiting: Waiting::default(),
            taken: Taken::NOTHING,
            wakers: Wakers::new(),
            told: 0,
            notifier: Notifier::of(wiring.topology.rules_of(wiring.me)).map(Box::new),
            finished: false,
        };
        Ok(Shared {
            state: InheritingMutex::new(state),
            wanted: AtomicU32::new(0),
            follow: Told::new(),
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
    pub fn lock(&self) -> Result<InheritingGuard<'_, State<P>>, LinkError> {
        if !self.run.is_this() {
            return Err(LinkError::Ended);
        }
        let state = self.lock_anyway();
        if state.finished { Err(LinkError::Ended) } else { Ok(state) }
    }

    /// The lock, for a call that could wait: the background thread leaves the links to it.
    #[inline(always)]
    pub fn enter(&self) -> Result<InheritingGuard<'_, State<P>>, LinkError> {
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
    pub fn lock_anyway(&self) -> InheritingGuard<'_, State<P>> {
        self.try_lock().unwrap_or_else(|| self.lock_contended())
    }

    /// The lock, if nobody has it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<InheritingGuard<'_, State<P>>> {
        self.state.try_lock()
    }

    #[cold]
    fn lock_contended(&self) -> InheritingGuard<'_, State<P>> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
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

    /// Takes the links from a less urgent thread that has them, which finds out when it runs.
    #[cold]
    pub fn oust_leader(&self, state: &mut State<P>) {
        state.driver = Driver::Nobody;
        if std::mem::take(&mut state.asleep) && !state.has_finished() {
            state.links.finish_sleep();
        }
        state.waiting.end_lead();
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
    pub fn unlock(&self, mut state: InheritingGuard<'_, State<P>>) {
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
    fn unlock_watched(&self, mut state: InheritingGuard<'_, State<P>>, sent: bool) {
        let wakers = self.settle_flushed(&mut state, sent);
        let others_first = state.followers != 0 && state.taken.has_more_urgent();
        drop(state);
        wake_all(wakers);
        if others_first || self.wanted.load(Ordering::Relaxed) & !TICK != 0 {
            std::thread::yield_now();
        }
    }

    /// As [`Shared::unlock`], for a future's task: somebody must have the links while it is suspended.
    pub fn unlock_aside(&self, mut state: InheritingGuard<'_, State<P>>) {
        let wakers = self.settle(&mut state);
        if state.driver == Driver::Nobody && !state.wakers.is_empty() {
            self.ring_background();
        }
        drop(state);
        wake_all(wakers);
    }

    /// Gives the lock up for a moment.
    pub fn make_way<'n>(&'n self, mut state: InheritingGuard<'n, State<P>>) -> InheritingGuard<'n, State<P>> {
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
        if state.asleep {
            let is_blocked = state.links.take_newly_blocked();
            let is_hastened = state.engine.take_hastened();
            if is_blocked || sent || is_hastened || state.links.holds_reports() {
                self.hasten(state, is_blocked);
            }
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
    /// has read from the kernel and left; nor room for what was refused, for which it is not rung as it did not ask for that.
    #[cold]
    fn hasten(&self, state: &mut State<P>, is_blocked: bool) {
        if is_blocked || state.links.holds_reports() || state.due_ns() < state.sleep_until_ns {
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
            self.follow.tell_all();
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
        self.follow.tell_all();
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
