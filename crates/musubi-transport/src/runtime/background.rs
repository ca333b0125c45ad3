//! The node's own thread: sees to the links while nobody calls.
//!
//! How it works: it *ticks* while the program calls (looks every [`TICK_NS`] whether anybody did, and does a round of
//! service without ever waiting for the lock), *drives* the links once a tick went by without a call or as soon as a future
//! waits, and is *parked* while a caller or the program's event loop sleeps on the links for long. A driving thread sleeps on the epoll descriptor as
//! a whole and on an event descriptor by which callers send it away; so it never takes an event from a caller.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;
use musubi_linux::futex::{self, Watch};
use musubi_linux::inheriting::InheritingGuard;
use rustix::event::{PollFd, PollFlags, poll};

use super::Block;
use super::bells::{silence, timespec};
use super::shared::{Shared, TICK, wake_all};
use super::state::{Driver, State};
use crate::LinkError;
use crate::protocol::Protocol;

/// Time between two looks while the program calls, nanoseconds: how long a peer may wait for an answer while a program
/// computes.
pub const TICK_NS: u64 = 2_000_000;

/// Starts the thread of a node.
pub(super) fn start<P: Protocol<Block = Block>>(shared: &Arc<Shared<P>>) -> Result<(), LinkError> {
    let of_thread = Arc::clone(shared);
    let name = format!("musubi {}", shared.wiring.me);
    let thread = std::thread::Builder::new().name(name).spawn(move || run(&of_thread));
    let thread = thread.map_err(|_| LinkError::Unavailable)?;
    *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(())
}

/// What was seen at the last tick.
#[derive(Default)]
pub(super) struct Seen {
    calls: u64,
    sleeps: u64,
}

fn run<P: Protocol<Block = Block>>(shared: &Shared<P>) {
    musubi_linux::signals::leave_to_program();
    let mut seen = Seen::default();
    loop {
        let bell = shared.bell.load(Ordering::Acquire);
        let rest = match shared.try_lock() {
            None => {
                shared.wanted.fetch_or(TICK, Ordering::Relaxed);
                Deadline::At(now_ns() + TICK_NS)
            }
            Some(state) if state.has_finished() => return,
            Some(state) => look(shared, state, &mut seen),
        };
        rest_until(&shared.bell, bell, rest);
    }
}

fn rest_until(bell: &AtomicU32, expected: u32, rest: Deadline) {
    futex::sleep(None, Watch { word: bell.into(), expected }, rest);
}

/// Looks who has the links, and serves them if nobody sleeps on them; says how long to rest.
pub(super) fn look<P: Protocol<Block = Block>>(
    shared: &Shared<P>,
    mut state: InheritingGuard<'_, State<P>>,
    seen: &mut Seen,
) -> Deadline {
    let calls = std::mem::replace(&mut seen.calls, state.calls);
    let sleeps = std::mem::replace(&mut seen.sleeps, state.sleeps);
    match state.driver {
        Driver::Caller | Driver::Loop if state.asleep && sleeps == state.sleeps => {
            state.background_parked = true;
            return Deadline::Forever;
        }
        Driver::Caller | Driver::Loop if state.asleep => (),
        Driver::Nobody if state.is_left_to_background(calls == state.calls) => {
            drive(shared, state);
            return Deadline::Poll;
        }
        _ => {
            shared.serve(&mut state);
            shared.unlock(state);
        }
    }
    Deadline::At(now_ns() + TICK_NS)
}

/// Has the links until a caller comes.
fn drive<'n, P: Protocol<Block = Block>>(shared: &'n Shared<P>, mut state: InheritingGuard<'n, State<P>>) {
    state.driver = Driver::Background;
    while state.driver == Driver::Background && !state.has_finished() {
        shared.serve(&mut state);
        let due_ns = state.due_ns();
        if state.prepare_sleep() {
            state.links.finish_sleep();
            state = shared.make_way(state);
            continue;
        }
        let until_ns = due_ns.min(state.put_off_ns());
        state.asleep = true;
        state.sleep_until_ns = until_ns;
        let wakers = shared.settle(&mut state);
        drop(state);
        wake_all(wakers);
        sleep(shared, until_ns);
        state = shared.lock_anyway();
        if state.driver == Driver::Background && !state.has_finished() {
            state.asleep = false;
            state.links.finish_sleep();
        }
    }
}

/// Sleeps until a descriptor of the links is ready, somebody kicks, or the instant.
fn sleep<P: Protocol<Block = Block>>(shared: &Shared<P>, until_ns: u64) {
    let timeout = (until_ns != u64::MAX).then(|| timespec(until_ns.saturating_sub(now_ns())));
    let mut watched = [
        PollFd::from_borrowed_fd(shared.wiring.epoll.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(shared.kick.as_fd(), PollFlags::IN),
    ];
    // Interrupted or not: the caller looks again.
    let _ = poll(&mut watched, timeout.as_ref());
    silence(&shared.kick);
}
