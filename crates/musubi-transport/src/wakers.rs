//! Wakers of futures that wait for requests, or for any change.
//!
//! How it works: a table of the requests that somebody awaits. When something has changed, each is asked whether it is
//! complete: a step per awaiting future, not per request.

use alloc::vec::Vec;
use core::task::Waker;

use crate::protocol::Protocol;

/// Who is to be woken.
#[derive(Debug)]
pub(crate) struct Wakers<R> {
    requests: Vec<(R, Waker)>,
    changes: Vec<Waker>,
}

impl<R: Copy + PartialEq> Wakers<R> {
    pub fn new() -> Self {
        Wakers { requests: Vec::new(), changes: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.changes.is_empty()
    }

    /// Takes out the wakers whose time has come.
    pub fn due<P: Protocol<Request = R>>(&mut self, engine: &P) -> Vec<Waker> {
        let mut due = core::mem::take(&mut self.changes);
        let mut place = 0;
        while let Some((request, _)) = self.requests.get(place) {
            if engine.is_over(*request) {
                due.push(self.requests.swap_remove(place).1);
            } else {
                place += 1;
            }
        }
        due
    }

    /// Takes out all.
    pub fn all(&mut self) -> Vec<Waker> {
        let mut all = core::mem::take(&mut self.changes);
        all.extend(self.requests.drain(..).map(|(_, waker)| waker));
        all
    }

    /// Notes who awaits a request, the last one counts. True, and nobody is noted, if it is complete or no more.
    pub fn register<P: Protocol<Request = R>>(&mut self, engine: &P, request: R, waker: &Waker) -> bool {
        if engine.is_over(request) {
            return true;
        }
        match self.requests.iter_mut().find(|(of, _)| *of == request) {
            Some((_, old)) => old.clone_from(waker),
            None => self.requests.push((request, waker.clone())),
        }
        false
    }

    /// Notes who is to be woken at the next change of anything.
    pub fn register_for_change(&mut self, waker: &Waker) {
        if !self.changes.iter().any(|known| known.will_wake(waker)) {
            self.changes.push(waker.clone());
        }
    }
}
