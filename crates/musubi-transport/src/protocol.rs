//! What a running node asks of the protocol that its frames belong to.
//!
//! What you may rely on: calls come one at a time; a protocol reads no clock, touches no socket, starts no thread, and hands
//! every frame out through the [`Links`] that it is given, which never wait. Links hand in only frames whose kind, class and
//! length [`Protocol::KINDS`] allows; everything else in them is the peer's claim.
//!
//! How it works: the owner of both (a runtime, or a simulation) pulls from the links what has come and gives it to the
//! protocol; whoever waits looks again when [`Protocol::changes`] has moved. Nodes are made for one protocol when the program
//! is compiled, so a call through here costs what a call of the protocol's own costs.

use core::fmt::Debug;

use crate::NodeId;
use crate::frame::{Header, Kinds};
use crate::links::{Block, Links, Payload, Report};

/// The pure half of a node: what it has, what it waits for, what frames mean.
pub trait Protocol: Debug + Send + 'static {
    /// Payload that lies where the peer put it.
    type Block: Block;
    /// Names something that completes later, for who waits for it.
    type Request: Copy + PartialEq + Debug + Send;
    /// The frames that it speaks.
    const KINDS: &'static Kinds;

    /// A node that has nothing yet. `incarnation` tells this run from earlier ones.
    fn new(me: NodeId, incarnation: u32) -> Self;

    /// Says, before anything else, that the links carry payloads of so many bytes at most, the same at all nodes.
    fn limit_payload(&mut self, bytes: u32);

    /// Counts everything that a waiting thread could wait for. If it has not moved, nothing that was blocked has changed.
    fn changes(&self) -> u64;

    /// Whether a frame is about how long something took, and wants the clock read anew when it comes.
    fn is_timed(header: &Header) -> bool;

    /// A frame came whose payload is at most a word: little-endian, its `header.length` first bytes count.
    fn word(
        &mut self,
        now_ns: u64,
        from: NodeId,
        header: &Header,
        word: u64,
        links: &mut impl Links<Block = Self::Block>,
    );

    /// A frame came.
    fn frame(
        &mut self,
        now_ns: u64,
        from: NodeId,
        header: &Header,
        payload: Payload<Self::Block>,
        links: &mut impl Links<Block = Self::Block>,
    );

    /// A frame came whose payload lies in these bytes until the call returns.
    fn bytes(
        &mut self,
        now_ns: u64,
        from: NodeId,
        header: &Header,
        bytes: &[u8],
        links: &mut impl Links<Block = Self::Block>,
    ) {
        self.frame(now_ns, from, header, Payload::of_bytes(bytes), links);
    }

    /// A link reports something, a frame or what became of it.
    fn report(&mut self, now_ns: u64, report: Report<Self::Block>, links: &mut impl Links<Block = Self::Block>);

    /// Does what is due by time; gives the next instant at which something is, `u64::MAX` if nothing. Called at least whenever
    /// the owner has looked at its links and before it sleeps.
    fn tick(&mut self, now_ns: u64, links: &mut impl Links<Block = Self::Block>) -> u64;

    /// Whether the clock is to be read anew for each frame that comes, as something is timed that headers do not tell of.
    fn wants_time(&self) -> bool {
        false
    }

    /// Whether it puts wake-ups off of its own: see [`Protocol::shut`].
    fn holding(&self) -> Holding {
        Holding::Nothing
    }

    /// Classes whose frames would wake nobody now, a bit each, never that of control, and the instant at which to look again: when
    /// one more may wake, or something that was put off is due; `u64::MAX` if never. `None` where nothing was ever put off.
    fn shut(&self, _now_ns: u64) -> Option<(u8, u64)> {
        None
    }

    /// Whether a tick is due earlier than the last one said; says so once. Who sleeps until then has to be up by that.
    fn take_hastened(&mut self) -> bool {
        false
    }

    /// Classes whose wake-ups were put off and have come due in ticks since it was last asked, a bit each, and how many of
    /// [`Protocol::changes`] that was: a rule of the class may put them off further.
    fn take_put_off(&mut self) -> (u8, u64) {
        (0, 0)
    }

    /// Ends the node: what is pending completes with an error, and nothing is sent any more.
    fn end(&mut self);

    /// Whether a request has completed or is no more.
    fn is_over(&self, request: Self::Request) -> bool;
}

/// What of the wake-ups that frames ask for a protocol puts off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nothing.
    Nothing,
    /// All of some classes: it is enough that who sleeps is not disturbed by those, see [`Protocol::shut`].
    Classes,
    /// A part of a class: who sleeps must not be who is disturbed by frames.
    Some,
}

/// A protocol that says nothing and waits for nothing: for tests of what runs one.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Silent<B>(core::marker::PhantomData<B>);

#[cfg(test)]
impl<B: Block> Protocol for Silent<B> {
    type Block = B;
    type Request = ();
    const KINDS: &'static Kinds = Kinds::NONE;

    fn new(_: NodeId, _: u32) -> Self {
        Silent(core::marker::PhantomData)
    }
    fn limit_payload(&mut self, _: u32) {}
    fn changes(&self) -> u64 {
        0
    }
    fn is_timed(_: &Header) -> bool {
        false
    }
    fn word(&mut self, _: u64, _: NodeId, _: &Header, _: u64, _: &mut impl Links<Block = B>) {}
    fn frame(&mut self, _: u64, _: NodeId, _: &Header, _: Payload<B>, _: &mut impl Links<Block = B>) {}
    fn report(&mut self, _: u64, _: Report<B>, _: &mut impl Links<Block = B>) {}
    fn tick(&mut self, _: u64, _: &mut impl Links<Block = B>) -> u64 {
        u64::MAX
    }
    fn end(&mut self) {}
    fn is_over(&self, (): ()) -> bool {
        true
    }
}
