//! What the carrier and the acceptor's thread share: who we are, orders, and arrivals.
//!
//! What you may rely on: neither side waits for the other; each lock is held for as long as it takes to put in or to take out.
//!
//! How it works: each side wakes the other by an eventfd after it has put something in.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use musubi_linux::descriptor::Descriptor;

use super::stream::Stream;
use super::tls::Tls;
use crate::NodeId;
use crate::keys;
use crate::session::{Hello, Identity};
use crate::topology::Topology;

/// Who this node is, for those who check others.
#[derive(Debug)]
pub(super) struct Us {
    pub(super) topology: Arc<Topology>,
    pub(super) identity: Identity,
    pub(super) tls: Option<Tls>,
}

impl Us {
    /// What the certificate of `node` must name.
    pub(super) fn certified(&self, node: NodeId) -> keys::Identity {
        keys::Identity { system: self.topology.system.clone(), node }
    }
}

/// What came of an order, or of itself.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A node has called and said this.
    Called { stream: Stream, remote: SocketAddr, hello: Hello },
    /// The dialed node's connection stands.
    Reached { peer: NodeId, stream: Stream },
    /// It could not be reached.
    Unreachable { peer: NodeId },
}

/// What the carrier asks for.
#[derive(Debug)]
pub(super) enum Order {
    Dial(NodeId),
    Forget(NodeId),
    Found(NodeId, Vec<SocketAddr>),
    /// Addresses of hosts of the description.
    Named(Vec<(String, Vec<SocketAddr>)>),
}

/// The two boxes, and the bells beside them.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) orders: Mutex<Vec<Order>>,
    pub(super) arrivals: Mutex<VecDeque<Arrival>>,
    /// Wakes the worker.
    pub(super) inside: Descriptor,
    /// Wakes the node.
    pub(super) outside: Descriptor,
    pub(super) stopping: AtomicBool,
}

impl Shared {
    pub(super) fn new() -> io::Result<Shared> {
        Ok(Shared {
            orders: Mutex::default(),
            arrivals: Mutex::default(),
            inside: Descriptor::event()?,
            outside: Descriptor::event()?,
            stopping: AtomicBool::new(false),
        })
    }
}

pub(super) fn ring(bell: &Descriptor) {
    // Fails only if the count is at its limit: then it is ringing.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

pub(super) fn silence(bell: &Descriptor) {
    // Nothing to read is no mistake.
    let _ = rustix::io::read(bell, &mut [0_u8; 8]);
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is whole at every instant: a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
