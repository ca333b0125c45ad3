//! Looks at the links: what a thread does that has the lock, in place of all that wait.
//!
//! How it works: a *look* polls the links, hands what has come to the protocol, and tries what the thread waits for whenever
//! something has changed; a *round* is a look with what is due by time. The background thread's round, with the kernel's
//! events, is done by whoever has the lock when it asks for it ([`TICK`]).

use std::sync::atomic::Ordering;

use musubi_linux::Deadline;

use super::node_links::Block;
use super::shared::{Shared, TICK};
use super::state::{Ready, State};
use crate::Priority;
use crate::limits::REPORTS_MAX;
use crate::protocol::Protocol;

impl<P: Protocol<Block = Block>> Shared<P> {
    /// The first round of a wait.
    pub fn first_round(&self, state: &mut State<P>, deadline: Deadline, ready: Ready<P>) -> bool {
        let sleeps_at_once = self.options.spin_ns == 0 && deadline != Deadline::Poll;
        state.links.before_look(sleeps_at_once);
        let before = state.engine.changes();
        let found = self.round(state, ready);
        state.links.note_look(found || state.engine.changes() != before);
        found
    }

    /// A look for the good of others, by a thread that has what it wants.
    #[cold]
    pub fn glance(&self, state: &mut State<P>) {
        state.links.now_ns();
        let mut seen = state.engine.changes();
        let _ = self.look(state, &mut seen, &mut |_, _| false);
    }

    /// A look at the links with everything that belongs to one, then tries `ready` if something changed.
    pub fn round(&self, state: &mut State<P>, ready: Ready<P>) -> bool {
        let mut seen = state.engine.changes();
        if self.look(state, &mut seen, ready) {
            return true;
        }
        state.tick_engine();
        state.engine.changes() != seen && state.attempt(ready)
    }

    /// Takes in what the links have, at most [`REPORTS_MAX`] reports, and tries `ready` as soon as the engine's changes
    /// are not those `seen` at the last try.
    #[inline(always)]
    pub fn look(&self, state: &mut State<P>, seen: &mut u64, ready: Ready<P>) -> bool {
        if self.wanted.load(Ordering::Relaxed) & TICK != 0 {
            self.serve(state);
        }
        state.links.poll();
        for _ in 0..REPORTS_MAX {
            let came = state.take_in_one();
            if state.engine.changes() != *seen {
                state.taken.note(came.unwrap_or(Priority::MOST_URGENT));
                let found = state.attempt(ready);
                *seen = state.engine.changes();
                if found {
                    state.take_in_more();
                    return true;
                }
            }
            if came.is_none() {
                break;
            }
        }
        false
    }

    /// The background thread's round, done by whoever has the lock: descriptors that are ready, what is due, reports.
    /// Not while somebody sleeps on the links: what makes descriptors ready wakes that one, who must find it there. If we
    /// silenced a ring before it has run, it would sleep on, and the alarm that we took would not be set again.
    #[cold]
    pub fn serve(&self, state: &mut State<P>) {
        self.wanted.fetch_and(!TICK, Ordering::Relaxed);
        if state.asleep {
            return;
        }
        let events = self.await_events(Some(0));
        state.links.now_ns();
        self.hand_events(state, &events);
        state.links.tick();
        state.links.poll();
        state.take_in();
        state.tick_engine();
        state.raise_due();
        state.links.flush_all();
    }
}
