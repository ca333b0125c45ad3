//! What the kernel tells a node: descriptors that are ready, and the alarm that ends a sleep in time.
//!
//! How it works: the node's epoll instance has the carriers' descriptors and two of the runtime's own, by token
//! ([`super::bells`]).

use std::os::fd::AsFd;

use musubi_linux::descriptor::Descriptor;
use musubi_linux::epoll::NO_EVENT;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};

use super::bells::{TOKEN_ALARM, TOKEN_WAKE, silence, timespec};
use super::node_links::Block;
use super::shared::Shared;
use super::state::State;
use crate::protocol::Protocol;

/// Descriptors that one look asks for.
pub(super) const EVENTS_MAX: usize = 32;

impl<P: Protocol<Block = Block>> Shared<P> {
    /// Sees to it that a sleep on the descriptors ends at this instant at the latest. The alarm may ring earlier: what is
    /// due moves on with every frame, and leaving the alarm where it was costs nothing, where a time-out of each sleep
    /// would set a timer of the kernel each time.
    pub fn set_alarm(&self, state: &mut State<P>, due_ns: u64) {
        if state.alarm_ns <= due_ns {
            return;
        }
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(due_ns.max(1)) };
        // Fails for no time that a timespec can say.
        let _ = timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &once);
        state.alarm_ns = due_ns;
    }

    /// Tokens of the descriptors that are ready; without the lock unless `timeout_ns` is 0.
    pub fn await_events(&self, timeout_ns: Option<u64>) -> Events {
        let mut events = Events::default();
        let mut space = [NO_EVENT; EVENTS_MAX];
        let count = musubi_linux::epoll::wait(&self.wiring.epoll, &mut space, timeout_ns);
        for event in &space[..count] {
            let data = event.data;
            events.tokens[events.count] = data.u64();
            events.count += 1;
        }
        events
    }

    /// Sleeps until some descriptor is ready, `away` is rung, or for so long: without taking any event.
    pub fn await_any(&self, away: &Descriptor, timeout_ns: Option<u64>) {
        let timeout = timeout_ns.map(timespec);
        let mut watched = [
            PollFd::from_borrowed_fd(self.wiring.epoll.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(away.as_fd(), PollFlags::IN),
        ];
        // Interrupted or not: the caller looks.
        let _ = poll(&mut watched, timeout.as_ref());
    }

    /// Acts on descriptors that are ready. What is to rouse a thread that sleeps on them is left for that thread: silenced by
    /// another it would never come back.
    pub fn hand_events(&self, state: &mut State<P>, events: &Events) {
        for token in &events.tokens[..events.count] {
            match *token {
                TOKEN_WAKE | TOKEN_ALARM if state.asleep => {}
                TOKEN_WAKE => silence(&self.wake),
                TOKEN_ALARM => {
                    silence(&self.alarm);
                    state.alarm_ns = u64::MAX;
                }
                token => state.links.ready(token),
            }
        }
    }
}

/// Tokens of descriptors that are ready.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub tokens: [u64; EVENTS_MAX],
    pub count: usize,
}
