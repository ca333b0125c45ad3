//! A node's place in the cases, and the steps that most begin and end with.

use musubi_mcapi::over::{Endpoint, Node, PacketReceiver, PacketSender, Remote, Running};
use musubi_mcapi::{Error, NodeId};

use crate::{Failure, PATIENCE_NS, Setup, ensure, have};

/// First port of the cases, and how many each has.
const PORT_FIRST: u32 = 100;
const PORTS: u32 = 32;
/// The port of a case at which partners meet first; each time they do they take another one.
const MEETING: u32 = 16;

/// A node in the cases.
pub struct Part<'s, R: Running> {
    setup: &'s Setup<'s, R>,
    /// `None` while it is begun anew.
    node: Option<Node<R>>,
    first_port: u32,
    meetings: u32,
}

impl<'s, R: Running> Part<'s, R> {
    pub(crate) fn new(setup: &'s Setup<'s, R>) -> Self {
        Part { setup, node: Some((setup.start)()), first_port: PORT_FIRST, meetings: 0 }
    }

    pub(crate) fn begin(&mut self, case: u32) -> Result<(), Failure> {
        (self.first_port, self.meetings) = (PORT_FIRST + PORTS * case, 0);
        Ok(())
    }

    /// The node.
    pub(crate) fn node(&self) -> Node<R> {
        self.node.clone().unwrap_or_else(|| (self.setup.start)())
    }

    /// The node begins anew: `leaves` in an orderly way, or as after a reset.
    pub(crate) fn begin_anew(&mut self, leaves: bool) -> Result<(), Failure> {
        if let Some(node) = self.node.take() {
            if leaves {
                have!(node.finalize(), "the node leaves");
            }
            // Its run is neither ended nor called any more.
            core::mem::forget(node);
        }
        self.node = Some((self.setup.start)());
        Ok(())
    }

    /// Whether this node sends in a case of two.
    pub(crate) fn sends(&self) -> bool {
        self.setup.place.is_multiple_of(2)
    }

    pub(crate) fn place(&self) -> usize {
        self.setup.place
    }

    pub(crate) fn nodes(&self) -> &'s [NodeId] {
        self.setup.nodes
    }

    pub(crate) fn partner(&self) -> NodeId {
        self.setup.nodes[self.setup.place ^ 1]
    }

    pub(crate) fn within(&self, ns: u64) -> R::Deadline {
        (self.setup.within)(ns)
    }

    pub(crate) fn soon(&self) -> R::Deadline {
        self.within(PATIENCE_NS)
    }

    /// This node's endpoint at a port of the case.
    pub(crate) fn endpoint(&self, port: u32) -> Result<Endpoint<R>, Failure> {
        Ok(have!(self.node().create_endpoint(Some(self.first_port + port)), "a port of the case is free"))
    }

    /// The endpoint of a node at a port of the case.
    pub(crate) fn of(&self, node: NodeId, port: u32) -> Result<Remote<R>, Failure> {
        let found = self.node().get_endpoint((node.domain(), node.node()), self.first_port + port, self.soon());
        Ok(have!(found, "the endpoint of the other node is found"))
    }

    /// Looks in vain for an endpoint of the partner's at a port of the case.
    pub(crate) fn misses(&self, port: u32, ns: u64) -> Result<(), Failure> {
        let other = self.partner();
        let found = self.node().get_endpoint((other.domain(), other.node()), self.first_port + port, self.within(ns));
        ensure!(matches!(found, Err(Error::Timeout)), "nobody made this endpoint");
        Ok(())
    }

    /// Both partners are here.
    pub(crate) fn meet(&mut self) -> Result<(), Failure> {
        let mine = self.endpoint(MEETING + self.meetings)?;
        let theirs = self.of(self.partner(), MEETING + self.meetings)?;
        self.meetings += 1;
        let word = self.meetings.to_le_bytes();
        have!(mine.send(&theirs, 0, &word, self.soon()), "word is given to the partner");
        let message = have!(mine.receive(self.soon()), "the partner comes, too");
        ensure!(message.to_vec() == word, "the partner is at the same place");
        Ok(())
    }

    /// A packet channel of the case, open: the sending end here, or the receiving one.
    pub(crate) fn packets(&self, port: u32) -> Result<Ends<R>, Failure> {
        let mine = self.endpoint(port)?;
        if !self.sends() {
            let mut opening = have!(PacketReceiver::open(&mine), "the receiving end opens");
            return Ok(Ends::Receiving(have!(opening.wait(self.soon()), "both ends are open")));
        }
        let theirs = self.of(self.partner(), port)?;
        let mut connected = have!(self.node().connect_packets(&mine, &theirs), "a channel is made");
        have!(connected.wait(self.soon()), "both nodes know of the channel");
        let mut opening = have!(PacketSender::open(&mine), "the sending end opens");
        Ok(Ends::Sending(have!(opening.wait(self.soon()), "both ends are open")))
    }
}

/// This node's end of a packet channel.
pub(crate) enum Ends<R: Running> {
    Sending(PacketSender<R>),
    Receiving(PacketReceiver<R>),
}
