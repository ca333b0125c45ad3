//! A thread that waits: as the leader, who drives the links, or as a follower, who sleeps until it is told. Where wake-ups are
//! filtered there are followers only: a leader sleeps on the links, and each frame would wake it.

use std::sync::atomic::Ordering;

use musubi_linux::clock::now_ns;
use musubi_linux::inheriting::InheritingGuard;
use musubi_linux::{Deadline, DeadlineExt};

use super::Block;
use super::bells::{ring, silence};
use super::kernel_events::Events;
use super::shared::{Shared, TICK, wake_all};
use super::state::{Driver, Ready, State};
use super::urgency::Urgency;
use crate::LinkError;
use crate::protocol::Protocol;

/// Rounds between two readings of the clock while spinning, where a round makes no system call; else there is one.
const LOOKS: u32 = 128;
/// Time between two looks at descriptors while spinning, nanoseconds: new connections, and those that were idle.
const EVENTS_NS: u64 = 20_000;

type Held<'n, P> = InheritingGuard<'n, State<P>>;

/// What a step of waiting came to: what was waited for, or an error; or, with the lock, that one must go on.
enum Step<'n, P: Protocol<Block = Block>> {
    End(Held<'n, P>, Result<(), LinkError>),
    On(Held<'n, P>),
}

/// Waits until `ready` is so; the first try was in vain, and there were so many changes before it.
#[inline(never)]
pub(super) fn in_vain<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    before: u64,
    deadline: Deadline,
    ready: Ready<P>,
) -> Result<(), LinkError> {
    let found = state.attempt_again(before, ready) || shared.first_round(&mut state, deadline, ready);
    if found || deadline == Deadline::Poll {
        shared.unlock(state);
        return if found { Ok(()) } else { Err(LinkError::Timeout) };
    }
    if state.driver == Driver::Nobody && shared.options.spin_ns != 0 {
        // What comes soon takes the short way, not through the steps of a wait. With the lock held nobody asks who leads.
        let mut seen = state.engine.changes();
        if look_awhile(shared, &mut state, &mut seen, ready) {
            stop_waiting(shared, state);
            return Ok(());
        }
    }
    blocked(shared, state, deadline, ready)
}

/// Gives the lock back after a wait.
#[inline(always)]
fn stop_waiting<'n, P: Protocol<Block = Block>>(shared: &'n Shared<P>, state: Held<'n, P>) {
    // A successor: also where we were about to become the leader and need not any more.
    if state.driver == Driver::Nobody && state.followers != 0 {
        if state.is_filtered() {
            shared.ring_background();
        } else if state.waiting.has_urgent() {
            // The most urgent is to be the one.
            shared.follow.tell_all();
        } else {
            shared.follow.tell_one();
        }
    }
    shared.unlock(state);
}

/// Looks a few times: until `ready` is so, or there is something else to do.
#[inline(always)]
fn look_awhile<P: Protocol<Block = Block>>(
    shared: &Shared<P>,
    state: &mut State<P>,
    seen: &mut u64,
    ready: Ready<P>,
) -> bool {
    for _ in 0..LOOKS {
        if shared.look(state, seen, ready) {
            return true;
        }
        if shared.wanted.load(Ordering::Relaxed) & !TICK != 0 || state.links.polls_the_kernel() {
            return false;
        }
    }
    false
}

/// Waits until `ready` is so; the first try and the first round were in vain.
fn blocked<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    deadline: Deadline,
    ready: Ready<P>,
) -> Result<(), LinkError> {
    let urgency = Urgency::own();
    state.waiting.note(urgency);
    loop {
        let step = match state.driver {
            Driver::Caller if state.waiting.may_oust(urgency, state.asleep) => {
                shared.oust_leader(&mut state);
                lead(shared, state, urgency, deadline, ready)
            }
            Driver::Caller => {
                if state.waiting.is_above_leader(urgency) {
                    // It sleeps as one that did not know of more urgent ones.
                    ring(&shared.wake);
                }
                follow(shared, state, urgency, deadline, ready)
            }
            _ if state.is_filtered() => {
                shared.ring_background();
                follow(shared, state, urgency, deadline, ready)
            }
            Driver::Nobody if state.waiting.has_above(urgency) => {
                shared.follow.tell_all();
                follow(shared, state, urgency, deadline, ready)
            }
            Driver::Nobody | Driver::Background | Driver::Loop => lead(shared, state, urgency, deadline, ready),
        };
        match step {
            Step::On(on) => state = on,
            Step::End(state, result) => {
                stop_waiting(shared, state);
                return result;
            }
        }
    }
}

/// Sleeps until told; comes back when there is no leader.
fn follow<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    urgency: Urgency,
    deadline: Deadline,
    ready: Ready<P>,
) -> Step<'n, P> {
    wake_all(shared.settle(&mut state));
    state.followers += 1;
    state.waiting.follow(urgency, true);
    state = shared.follow.wait(state, deadline);
    state.waiting.follow(urgency, false);
    state.followers -= 1;
    judge(state, deadline, ready)
}

/// Drives the links until `ready` is so, or a more urgent thread does.
fn lead<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    urgency: Urgency,
    deadline: Deadline,
    ready: Ready<P>,
) -> Step<'n, P> {
    if state.driver != Driver::Nobody {
        shared.oust(&mut state);
    }
    state.driver = Driver::Caller;
    let number = state.waiting.begin_lead(urgency);
    state.links.flush();
    loop {
        let step = match spin(shared, state, number, deadline, ready) {
            Step::On(state) if state.waiting.is_lead(number) => sleep(shared, state, number, deadline, ready),
            other => other,
        };
        match step {
            Step::On(mut on) if on.waiting.is_lead(number) => {
                if on.waiting.has_above(urgency) {
                    step_down(shared, &mut on);
                    return Step::On(on);
                }
                state = on;
            }
            Step::End(mut end, result) if end.waiting.is_lead(number) => {
                end.driver = Driver::Nobody;
                shared.unpark_background(&mut end);
                return Step::End(end, result);
            }
            // Somebody else leads.
            ousted => return ousted,
        }
    }
}

/// Leaves the links to a more urgent thread, which follows.
#[cold]
fn step_down<P: Protocol<Block = Block>>(shared: &Shared<P>, state: &mut State<P>) {
    shared.oust_leader(state);
    shared.unpark_background(state);
}

/// Looks again and again for the time that the options say.
fn spin<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    number: u64,
    deadline: Deadline,
    ready: Ready<P>,
) -> Step<'n, P> {
    if shared.options.spin_ns == 0 {
        return Step::On(state);
    }
    let begin_ns = state.links.now_ns();
    let mut events_ns = begin_ns + EVENTS_NS;
    let end_ns = match deadline {
        Deadline::At(ns) => ns.min(begin_ns.saturating_add(shared.options.spin_ns)),
        Deadline::Poll | Deadline::Forever => begin_ns.saturating_add(shared.options.spin_ns),
    };
    let mut seen = state.engine.changes();
    loop {
        if look_awhile(shared, &mut state, &mut seen, ready) {
            return Step::End(state, Ok(()));
        }
        let now_ns = state.links.now_ns();
        if now_ns >= end_ns {
            return judge(state, deadline, ready);
        }
        if now_ns >= events_ns {
            events_ns = now_ns + EVENTS_NS;
            shared.serve(&mut state);
        } else {
            state.tick_engine();
        }
        if state.has_news() || shared.wanted.load(Ordering::Relaxed) & !TICK != 0 {
            match judge(shared.make_way(state), deadline, ready) {
                Step::On(on) if on.waiting.is_lead(number) => state = on,
                other => return other,
            }
            seen = state.engine.changes();
        }
    }
}

/// Sleeps in the kernel until a peer rings, something is due, or the deadline; then looks.
fn sleep<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    number: u64,
    deadline: Deadline,
    ready: Ready<P>,
) -> Step<'n, P> {
    state.links.now_ns();
    state.links.flush_all();
    let (mut due_ns, before) = (state.due_ns(), state.engine.changes());
    if state.prepare_sleep() {
        state.links.finish_sleep();
        // Under a stream that never lets us sleep the others have their turn all the same.
        if state.has_news() || shared.wanted.load(Ordering::Relaxed) & !TICK != 0 {
            state = shared.make_way(state);
        }
    } else if state.attempt_again(before, ready) {
        // It was among what would have woken nobody.
        state.links.finish_sleep();
        return Step::End(state, Ok(()));
    } else {
        due_ns = due_ns.min(state.put_off_ns());
        let until_ns = match deadline {
            Deadline::At(ns) => ns.min(due_ns),
            Deadline::Poll | Deadline::Forever => due_ns,
        };
        state = sleep_prepared(shared, state, number, (until_ns, due_ns));
    }
    if !state.waiting.is_lead(number) {
        return judge(state, deadline, ready);
    }
    if state.has_finished() {
        return Step::End(state, Err(LinkError::Ended));
    }
    if state.links.last_ns() >= due_ns {
        state.tick();
    }
    if shared.round(&mut state, ready) {
        return Step::End(state, Ok(()));
    }
    judge(state, deadline, ready)
}

/// Sleeps until `until_ns`, which is `due_ns` unless a deadline is earlier, or somebody more urgent has taken the links.
fn sleep_prepared<'n, P: Protocol<Block = Block>>(
    shared: &'n Shared<P>,
    mut state: Held<'n, P>,
    number: u64,
    (until_ns, due_ns): (u64, u64),
) -> Held<'n, P> {
    if due_ns != u64::MAX && until_ns == due_ns {
        shared.set_alarm(&mut state, due_ns);
    }
    let wakers = shared.settle(&mut state);
    state.sleeps += 1;
    state.links.wakes.woken += 1;
    state.asleep = true;
    state.sleep_until_ns = until_ns;
    let away = state.waiting.fall_asleep();
    drop(state);
    wake_all(wakers);
    let timeout_ns = (until_ns != due_ns).then(|| until_ns.saturating_sub(now_ns()));
    let Some(away) = away else {
        let events = shared.await_events(timeout_ns);
        return rise(shared, shared.lock_anyway(), &events);
    };
    shared.await_any(&away, timeout_ns);
    let mut state = shared.lock_anyway();
    if !state.waiting.is_lead(number) {
        // It was rung before that.
        silence(&away);
        return state;
    }
    state.waiting.wake_up();
    let events = shared.await_events(Some(0));
    rise(shared, state, &events)
}

/// Is up again, with these events.
fn rise<'n, P: Protocol<Block = Block>>(shared: &'n Shared<P>, mut state: Held<'n, P>, events: &Events) -> Held<'n, P> {
    state.asleep = false;
    if !state.has_finished() {
        state.links.finish_sleep();
        state.links.now_ns();
        shared.hand_events(&mut state, events);
    }
    state
}

/// Whether to go on waiting.
fn judge<'n, P: Protocol<Block = Block>>(mut state: Held<'n, P>, deadline: Deadline, ready: Ready<P>) -> Step<'n, P> {
    if state.has_finished() {
        return Step::End(state, Err(LinkError::Ended));
    }
    if state.attempt(ready) {
        return Step::End(state, Ok(()));
    }
    if deadline.passed() {
        return Step::End(state, Err(LinkError::Timeout));
    }
    Step::On(state)
}
