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

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::cell::Cell;

    use super::*;
    use crate::NodeId;
    use crate::frame::{Header, Kinds};
    use crate::links::{Links, NoBlock, Payload, Report};

    /// Requests up to this number are over; so often it may be asked, so that who asks for ever fails.
    #[derive(Debug)]
    struct Over(u32, Cell<u32>);

    impl Protocol for Over {
        type Block = NoBlock;
        type Request = u32;
        const KINDS: &'static Kinds = Kinds::NONE;
        fn new(_: NodeId, _: u32) -> Self {
            Over(0, Cell::new(100))
        }
        fn limit_payload(&mut self, _: u32) {}
        fn changes(&self) -> u64 {
            0
        }
        fn is_timed(_: &Header) -> bool {
            false
        }
        fn word(&mut self, _: u64, _: NodeId, _: &Header, _: u64, _: &mut impl Links<Block = NoBlock>) {}
        fn frame(&mut self, _: u64, _: NodeId, _: &Header, _: Payload<NoBlock>, _: &mut impl Links<Block = NoBlock>) {}
        fn report(&mut self, _: u64, _: Report<NoBlock>, _: &mut impl Links<Block = NoBlock>) {}
        fn tick(&mut self, _: u64, _: &mut impl Links<Block = NoBlock>) -> u64 {
            u64::MAX
        }
        fn end(&mut self) {}
        fn is_over(&self, request: u32) -> bool {
            self.1.set(self.1.get() - 1);
            request <= self.0
        }
    }

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    fn over(to: u32) -> Over {
        Over(to, Cell::new(100))
    }

    #[test]
    fn who_awaits_is_due_when_the_request_is_over_and_once() {
        let all: Vec<Waker> = (0..5).map(|_| Waker::from(Arc::new(Nobody))).collect();
        let mut wakers = Wakers::new();
        assert!(wakers.is_empty());
        assert!(wakers.register(&over(3), 3, &all[0]) && wakers.is_empty(), "it is over");
        for request in [4, 1, 3, 2] {
            assert!(!wakers.register(&over(0), request, &all[request as usize]));
        }
        assert!(!wakers.is_empty());
        // The last one counts.
        assert!(!wakers.register(&over(0), 4, &all[0]));
        assert!(wakers.due(&over(0)).is_empty());
        let which = |due: Vec<Waker>| {
            let place = |one: &Waker| all.iter().position(|known| known.will_wake(one)).unwrap();
            let mut places: Vec<usize> = due.iter().map(place).collect();
            places.sort_unstable();
            places
        };
        assert_eq!(which(wakers.due(&over(2))), [1, 2]);
        assert_eq!(which(wakers.due(&over(2))), []);
        wakers.register_for_change(&all[1]);
        wakers.register_for_change(&all[1]);
        wakers.register_for_change(&all[2]);
        assert_eq!(which(wakers.due(&over(0))), [1, 2]);
        wakers.register_for_change(&all[1]);
        assert_eq!(which(wakers.all()), [0, 1, 3]);
        assert!(wakers.is_empty());
        wakers.register_for_change(&all[1]);
        assert!(!wakers.is_empty());
    }
}
