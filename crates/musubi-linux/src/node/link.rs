//! A link that has been made: lanes, blocks, the bells of both sides, and the socket whose end is the peer's.
//!
//! What you may rely on: the memory stays mapped as long as the link, or a block lent of it, exists; so what a dead peer had
//! committed can still be read. The end of the socket is the peer's end.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use musubi_core::lane;
use rustix::event::epoll;

use super::hello::Hello;
use super::memory::{Lent, LinkMemory, OwnHalf, PeerHalf, join, new_bell};
use super::packet::{self, Packet};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::{Kept, Process};
use crate::os::peer_memory::PeerMemory;

/// A link with another node of this machine.
#[derive(Debug)]
pub struct Link {
    /// Lives in `memory`, which stands behind it.
    lanes: lane::Link<'static>,
    memory: Arc<LinkMemory>,
    socket: Kept,
    _bell: Bell,
    id: u32,
    peer: u16,
    incarnation: u32,
}

/// What a link is made of, besides the memory.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) id: u32,
    pub(super) socket: Kept,
    /// Ours, rung by the peer.
    pub(super) bell: Bell,
    /// The peer's.
    pub(super) their_bell: Descriptor,
    pub(super) own: OwnHalf,
    pub(super) theirs: PeerHalf,
}

impl Link {
    /// The link with the node that said `they`; `None` if that is not possible.
    pub(super) fn new(parts: Parts, they: &Hello) -> Option<Link> {
        let (lanes, memory) = join(parts.own, parts.theirs, parts.their_bell, they.shape)?;
        let (peer, incarnation) = (they.from, they.incarnation);
        Some(Link { lanes, memory, socket: parts.socket, _bell: parts.bell, id: parts.id, peer, incarnation })
    }

    /// The number in the tokens of this link's descriptors ([`super::Source`]).
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Index of the other node.
    pub fn peer(&self) -> u16 {
        self.peer
    }

    /// Its incarnation.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Uses the lanes. They cannot leave the closure, since nobody outside can name their lifetime.
    #[inline(always)]
    pub fn with<R>(&mut self, using: impl for<'m> FnOnce(&mut lane::Link<'m>) -> R) -> R {
        using(&mut self.lanes)
    }

    /// Takes a block that a message named.
    ///
    /// # Errors
    /// [`musubi_core::Error::PeerFault`] if there is none, or we have it already.
    pub fn lend(&self, block: u32, bytes: u32) -> Result<Lent, musubi_core::Error> {
        Lent::take(&self.memory, block, bytes)
    }

    /// Rings the peer.
    pub fn ring(&self) {
        self.memory.ring();
    }

    /// The memory of the process at the other end, as the kernel knows it; none if it is another user's.
    pub fn peer_memory(&self) -> Option<PeerMemory> {
        let peer = Credentials::of_peer(self.socket.as_fd())?;
        PeerMemory::of(peer.pid, peer.uid)
    }

    /// Whether the other side has closed the link, or its process has ended. Nothing else comes on the socket; what does
    /// is not from a node.
    pub fn has_ended(&self) -> bool {
        !matches!(packet::receive(self.socket.as_fd()), Packet::Nothing)
    }
}

/// A descriptor that rings us, watched until it is dropped. The peer has it too, so closing ours would not end that.
#[derive(Debug)]
pub(super) struct Bell {
    fd: Descriptor,
    epoll: Arc<Descriptor>,
    process: Process,
}

impl Bell {
    /// A new one; `None` if the kernel has none left.
    pub(super) fn new(epoll: &Arc<Descriptor>, token: u64) -> Option<Bell> {
        let fd = new_bell()?;
        let flags = epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(epoll, &fd, epoll::EventData::new_u64(token), flags).ok()?;
        Some(Bell { fd, epoll: Arc::clone(epoll), process: Process::this() })
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // In a forked child the epoll instance is the parent's.
        if self.process.is_this() {
            let _ = epoll::delete(&self.epoll, &self.fd);
        }
    }
}
