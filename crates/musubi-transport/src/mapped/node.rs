//! The running node: an engine, its links, and the one task that calls.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;

use musubi_core::lane::Region;
use musubi_core::mapped::{Guard, Host, Latch};

use super::links::MappedLinks;
use super::{Deadline, Table};
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
}

#[derive(Debug)]
struct State<P: Protocol<Block = NoBlock>, B: 'static> {
    engine: P,
    links: MappedLinks<B>,
    wakers: Wakers<P::Request>,
    /// [`Protocol::changes`] when the wakers were last asked.
    told: u64,
    has_finished: bool,
}

impl<P: Protocol<Block = NoBlock>, B: Host> State<P, B> {
    /// Takes in what the links have and does what is due; gives when something is due again.
    fn round(&mut self) -> u64 {
        self.links.take_in(&mut self.engine);
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
        let state = State { engine, links, wakers: Wakers::new(), told: 0, has_finished: false };
        Ok(Node { shared: Arc::new(Shared { me, host, options, state: Latch::new(state) }) })
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
        Self::unlock(state);
        Ok(())
    }

    fn enter(&self) -> Result<Guard<'_, State<P, B>>, LinkError> {
        let state = self.shared.state.lock(self.shared.host);
        if state.has_finished { Err(LinkError::Ended) } else { Ok(state) }
    }

    fn unlock(mut state: Guard<'_, State<P, B>>) {
        let wakers = state.settle();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Looks again and again, then rests in between, until `ready` gives something.
    fn look_until<R>(
        &self,
        state: &mut State<P, B>,
        deadline: Deadline,
        ready: &mut impl FnMut(&mut P, &mut MappedLinks<B>) -> Option<R>,
    ) -> Result<R, LinkError> {
        let mut looks = 0;
        let mut seen = u64::MAX;
        loop {
            if core::mem::replace(&mut seen, state.engine.changes()) != state.engine.changes()
                && let Some(result) = ready(&mut state.engine, &mut state.links)
            {
                return Ok(result);
            }
            let due_ns = state.round();
            if state.engine.changes() != seen {
                if deadline == Deadline::Poll {
                    return ready(&mut state.engine, &mut state.links).ok_or(LinkError::Timeout);
                }
                looks = 0;
                continue;
            }
            let until_ns = match deadline {
                Deadline::Poll => return Err(LinkError::Timeout),
                Deadline::At(ns) if state.links.now_ns() >= ns => return Err(LinkError::Timeout),
                Deadline::At(ns) => ns,
                Deadline::Forever => u64::MAX,
            };
            if looks < self.shared.options.looks {
                looks += 1;
                core::hint::spin_loop();
            } else {
                self.rest(state, until_ns.min(due_ns));
            }
        }
    }

    fn rest(&self, state: &mut State<P, B>, until_ns: u64) {
        let host = self.shared.host;
        let until_ns = until_ns.min(host.now_ns().saturating_add(REST_NS_MAX));
        let announces = host.can_be_woken();
        if !(announces && state.links.prepare_sleep()) {
            let links = &state.links;
            host.rest(until_ns, &|| !links.has_news());
        }
        if announces {
            state.links.finish_sleep();
        }
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

    fn with<R>(&self, operation: impl FnOnce(&mut P, &mut MappedLinks<B>) -> R) -> Result<R, LinkError> {
        let mut state = self.enter()?;
        let now = &mut *state;
        let result = operation(&mut now.engine, &mut now.links);
        Self::unlock(state);
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
        Self::unlock(state);
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
        let result = self.look_until(&mut state, deadline, &mut ready);
        Self::unlock(state);
        result
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
        drop(state);
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
