//! The running node: an engine, its links, and the tasks that call.
//!
//! What you may rely on: a task that waits keeps no other one out: it rests without the latch. Whoever changes something
//! makes those that rest look again.
//!
//! How it works: who is about to rest announces it to the peers and notes [`Shared::moves`], both under the latch, and lets
//! go of it. The host's last look before it sleeps is at that count, and at the links if nobody else has the latch; who has
//! it tells when it lets go. While one rests, everybody who lets go announces again, as links may have come or filled up.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;

use musubi_core::lane::Region;
use musubi_core::mapped::{Guard, Host, Latch};

use super::links::MappedLinks;
use super::{Deadline, Table};
use crate::limits::REPORTS_MAX;
use crate::links::NoBlock;
use crate::protocol::Protocol;
use crate::running::{Running, Ways as _};
use crate::wakers::Wakers;
use crate::{LinkError, NodeId};

/// Longest rest between two looks, nanoseconds: what a ring that was lost costs at most.
const REST_NS_MAX: u64 = 10_000_000;
/// Most looks at the links of one [`Running::with_arrivals`].
const ARRIVALS_MAX: u32 = 16;

/// How a node behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rounds that a waiting call looks at the links before it lets the host rest.
    pub looks: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { looks: 64 }
    }
}

/// A running node; clones are handles of the same one. The last handle that is dropped ends it.
#[derive(Debug)]
pub struct Node<P: Protocol<Block = NoBlock>, B: Host + Sync + 'static> {
    shared: Arc<Shared<P, B>>,
}

#[derive(Debug)]
struct Shared<P: Protocol<Block = NoBlock>, B: Host + 'static> {
    me: NodeId,
    host: &'static B,
    options: Options,
    state: Latch<State<P, B>>,
    /// How often something was changed that who rests may wait for. Writer: who has the latch.
    moves: AtomicU32,
}

#[derive(Debug)]
struct State<P: Protocol<Block = NoBlock>, B: 'static> {
    engine: P,
    links: MappedLinks<B>,
    wakers: Wakers<P::Request>,
    /// [`Protocol::changes`] when the wakers were last asked.
    told: u64,
    /// [`Protocol::changes`] at the last of [`Shared::moves`].
    moved: u64,
    /// Tasks that rest, or are about to.
    resting: u32,
    has_finished: bool,
}

/// How far a waiting call is.
struct Wait {
    /// Rounds in vain since something changed.
    looks: u32,
    /// [`Protocol::changes`] when it last asked for its result.
    seen: u64,
}

/// What a waiting call does next.
enum Next<R> {
    Return(Result<R, LinkError>),
    /// Rest until this instant at most.
    Rest(u64),
}

/// Gives the engine what the links have, at most [`REPORTS_MAX`] reports.
fn take_in<P: Protocol<Block = NoBlock>, B: Host>(engine: &mut P, links: &mut MappedLinks<B>) {
    for _ in 0..REPORTS_MAX {
        let now_ns = links.now_ns();
        let Some(report) = links.next_report(now_ns) else { return };
        engine.report(now_ns, report, links);
    }
}

impl<P: Protocol<Block = NoBlock>, B: Host> State<P, B> {
    /// Takes in what the links have and does what is due; gives when something is due again.
    fn round(&mut self) -> u64 {
        take_in(&mut self.engine, &mut self.links);
        let now_ns = self.links.now_ns();
        let due_ns = self.engine.tick(now_ns, &mut self.links);
        self.links.flush();
        due_ns.min(self.links.deadline_ns())
    }

    /// What is left to do before the latch is given back; gives who is to be woken after that.
    fn settle(&mut self) -> Vec<Waker> {
        self.links.flush();
        let changes = self.engine.changes();
        if self.wakers.is_empty() || core::mem::replace(&mut self.told, changes) == changes {
            return Vec::new();
        }
        self.wakers.due(&self.engine)
    }

    fn finish(&mut self) -> Vec<Waker> {
        self.has_finished = true;
        self.engine.end();
        self.links.leave();
        self.wakers.all()
    }
}

impl<P: Protocol<Block = NoBlock>, B: Host + Sync + 'static> Node<P, B> {
    /// Starts the node at the region's place of the table. Its former incarnation, if there was one, is over by that.
    ///
    /// # Errors
    /// [`LinkError::Unavailable`] if the table is not that of the memory, or says the same node twice or too small links.
    pub fn start(
        table: Table<'_>,
        region: Region<'static>,
        host: &'static B,
        options: Options,
    ) -> Result<Node<P, B>, LinkError> {
        table.check(&region)?;
        let me = table.nodes[usize::from(region.place())];
        let numbers: Vec<u16> = table.nodes.iter().map(|node| node.index() as u16).collect();
        let row = region.begin(&numbers, table.hash());
        let mut engine = P::new(me, row.incarnation());
        engine.limit_payload(table.shape.block_bytes);
        let links = MappedLinks::new(host, row, table.nodes, table.shape.block_bytes, P::KINDS);
        let state = State { engine, links, wakers: Wakers::new(), told: 0, moved: 0, resting: 0, has_finished: false };
        let moves = AtomicU32::new(0);
        Ok(Node { shared: Arc::new(Shared { me, host, options, state: Latch::new(state), moves }) })
    }

    /// Nanoseconds of the clock that deadlines are on.
    pub fn now_ns(&self) -> u64 {
        self.shared.host.now_ns()
    }

    /// The instant so far from now.
    pub fn within(&self, ns: u64) -> Deadline {
        Deadline::At(self.now_ns().saturating_add(ns))
    }

    /// Looks at the links once: answers peers, wakes futures. For a program that computes, an executor, an idle loop; not
    /// for a handler of interrupts.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    pub fn serve(&self) -> Result<(), LinkError> {
        let mut state = self.enter()?;
        state.round();
        self.unlock(state);
        Ok(())
    }

    fn enter(&self) -> Result<Guard<'_, State<P, B>>, LinkError> {
        let state = self.shared.state.lock(self.shared.host);
        if state.has_finished { Err(LinkError::Ended) } else { Ok(state) }
    }

    /// Lets go of the latch; wakes futures, and those that rest if there is something for them. Gives the moves so far.
    fn unlock(&self, mut state: Guard<'_, State<P, B>>) -> u32 {
        let host = self.shared.host;
        let wakers = state.settle();
        let changes = state.engine.changes();
        let has_moved = core::mem::replace(&mut state.moved, changes) != changes;
        if has_moved {
            self.shared.moves.fetch_add(1, Ordering::Release);
        }
        let moves = self.shared.moves.load(Ordering::Relaxed);
        let rouses = state.resting > 0 && (has_moved | (host.can_be_woken() && state.links.prepare_sleep()));
        drop(state);
        if rouses {
            host.rouse();
        }
        wakers.into_iter().for_each(Waker::wake);
        moves
    }

    /// Looks again and again, until `ready` gives something, or it is time for a rest.
    fn look<R>(
        &self,
        state: &mut State<P, B>,
        deadline: Deadline,
        wait: &mut Wait,
        ready: &mut impl FnMut(&mut P, &mut MappedLinks<B>) -> Option<R>,
    ) -> Next<R> {
        loop {
            if core::mem::replace(&mut wait.seen, state.engine.changes()) != state.engine.changes()
                && let Some(result) = ready(&mut state.engine, &mut state.links)
            {
                return Next::Return(Ok(result));
            }
            let due_ns = state.round();
            if state.engine.changes() != wait.seen {
                if deadline == Deadline::Poll {
                    return Next::Return(ready(&mut state.engine, &mut state.links).ok_or(LinkError::Timeout));
                }
                wait.looks = 0;
                continue;
            }
            let until_ns = match deadline {
                Deadline::Poll => return Next::Return(Err(LinkError::Timeout)),
                Deadline::At(ns) if state.links.now_ns() >= ns => return Next::Return(Err(LinkError::Timeout)),
                Deadline::At(ns) => ns,
                Deadline::Forever => u64::MAX,
            };
            if wait.looks >= self.shared.options.looks {
                return Next::Rest(until_ns.min(due_ns));
            }
            wait.looks += 1;
            core::hint::spin_loop();
        }
    }

    /// Lets others have the latch until there is news, or `until_ns`.
    fn rest<'s>(
        &'s self,
        mut state: Guard<'s, State<P, B>>,
        until_ns: u64,
    ) -> Result<Guard<'s, State<P, B>>, LinkError> {
        let host = self.shared.host;
        let until_ns = until_ns.min(host.now_ns().saturating_add(REST_NS_MAX));
        let announces = host.can_be_woken();
        let has_news = announces && state.links.prepare_sleep();
        if !has_news {
            state.resting += 1;
            let moves = self.unlock(state);
            host.rest(until_ns, &|| self.is_quiet_since(moves));
            state = self.shared.state.lock(host);
            state.resting -= 1;
        }
        if state.has_finished {
            return Err(LinkError::Ended);
        }
        if announces && state.resting == 0 {
            state.links.finish_sleep();
        }
        Ok(state)
    }

    /// Whether nothing was changed since, and nothing has come. Does not wait: who has the latch now may be changing
    /// something, and is let finish.
    fn is_quiet_since(&self, moves: u32) -> bool {
        let state = self.shared.state.try_lock();
        state.is_some_and(|state| !state.links.has_news()) && self.shared.moves.load(Ordering::Acquire) == moves
    }
}

impl<P: Protocol<Block = NoBlock>, B: Host + Sync + 'static> Running for Node<P, B> {
    type Block = NoBlock;
    type Protocol = P;
    type Ways = MappedLinks<B>;
    type Deadline = Deadline;
    const POLL: Deadline = Deadline::Poll;

    fn id(&self) -> NodeId {
        self.shared.me
    }

    fn take_in(engine: &mut P, links: &mut MappedLinks<B>) {
        take_in(engine, links);
    }

    fn with<R>(&self, operation: impl FnOnce(&mut P, &mut MappedLinks<B>) -> R) -> Result<R, LinkError> {
        let mut state = self.enter()?;
        let now = &mut *state;
        let result = operation(&mut now.engine, &mut now.links);
        self.unlock(state);
        Ok(result)
    }

    fn with_arrivals<R>(&self, operation: impl FnOnce(&mut P, &mut MappedLinks<B>) -> R) -> Result<R, LinkError> {
        let mut state = self.enter()?;
        for _ in 0..ARRIVALS_MAX {
            let before = state.engine.changes();
            state.round();
            if state.engine.changes() == before {
                break;
            }
        }
        let now = &mut *state;
        let result = operation(&mut now.engine, &mut now.links);
        self.unlock(state);
        Ok(result)
    }

    fn with_aside<R>(&self, operation: impl FnOnce(&mut P, &mut MappedLinks<B>) -> R) -> Result<R, LinkError> {
        self.with(operation)
    }

    fn wait_for<R>(
        &self,
        deadline: Deadline,
        mut ready: impl FnMut(&mut P, &mut MappedLinks<B>) -> Option<R>,
    ) -> Result<R, LinkError> {
        let mut state = self.enter()?;
        let mut wait = Wait { looks: 0, seen: u64::MAX };
        loop {
            match self.look(&mut state, deadline, &mut wait, &mut ready) {
                Next::Return(result) => {
                    self.unlock(state);
                    return result;
                }
                Next::Rest(until_ns) => state = self.rest(state, until_ns)?,
            }
        }
    }

    fn wake_when_complete(&self, request: P::Request, waker: &Waker) -> Result<bool, LinkError> {
        let mut state = self.enter()?;
        let now = &mut *state;
        Ok(now.wakers.register(&now.engine, request, waker))
    }

    fn wake_when_changed(&self, waker: &Waker) -> Result<(), LinkError> {
        self.enter()?.wakers.register_for_change(waker);
        Ok(())
    }

    fn finish(&self) -> Result<(), LinkError> {
        let mut state = self.enter()?;
        let wakers = state.finish();
        self.shared.moves.fetch_add(1, Ordering::Release);
        drop(state);
        self.shared.host.rouse();
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl<P: Protocol<Block = NoBlock>, B: Host + Sync + 'static> Clone for Node<P, B> {
    fn clone(&self) -> Node<P, B> {
        Node { shared: Arc::clone(&self.shared) }
    }
}

impl<P: Protocol<Block = NoBlock>, B: Host + 'static> Drop for Shared<P, B> {
    fn drop(&mut self) {
        // Nobody else has it any more.
        if let Some(mut state) = self.state.try_lock()
            && !state.has_finished
        {
            state.finish();
        }
    }
}
