//! Where connections of a node come in and go out: a thread of its own, so that neither a flood of garbage nor a slow
//! handshake takes time from the links that stand.
//!
//! What you may rely on: how many connections are half open, and how many come in a time, is bounded, by address and
//! apart for those that the description names ([`super::admission`]); who is too many is put out at once, so nobody has to
//! wait behind it in the kernel's queue; accepting is limited in its rate. The node's lock is never held here. Whoever is refused is counted and
//! written to the [`EventLog`], and told why if it speaks the protocol.
//!
//! How it works: the carrier leaves orders (dial this node) and takes arrivals (somebody has called; the dialed one
//! stands; it could not be reached). Each side wakes the other by an eventfd; the carrier's is in the node's epoll
//! instance. A token bucket lets [`ACCEPTS_BURST`](super::ACCEPTS_BURST) connections in at once and then one every [`ACCEPT_NS`](super::ACCEPT_NS); while it is
//! empty the listener is not looked at, and the kernel's queue holds who comes.
//!
//! What it does not do: decide between two connections of one node; the session does ([`Reason::Crossed`](crate::session::Reason::Crossed)).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use musubi_linux::descriptor::Descriptor;

use super::event_log::EventLog;
use super::stream::Stream;
use super::tls::Tls;
use super::worker::Worker;
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

/// What came of that.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A node has called and said this.
    Called { stream: Stream, remote: SocketAddr, hello: Hello },
    /// The dialed node's connection stands.
    Reached { peer: NodeId, stream: Stream },
    /// It could not be reached.
    Unreachable { peer: NodeId },
}

#[derive(Debug)]
pub(super) enum Order {
    Dial(NodeId),
    Forget(NodeId),
    Found(NodeId, Vec<SocketAddr>),
    /// Addresses of hosts of the description.
    Named(Vec<(String, Vec<SocketAddr>)>),
}

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

/// The carrier's side of it.
#[derive(Debug)]
pub(super) struct Acceptor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts the thread. `listener` is the socket that others connect to, if this node has an address.
    pub(super) fn open(us: Arc<Us>, listener: Option<Descriptor>, event_log: Arc<EventLog>) -> io::Result<Acceptor> {
        let shared = Arc::new(Shared::new()?);
        let worker = Worker::new(us, Arc::clone(&shared), listener, event_log)?;
        let thread = std::thread::Builder::new().name("musubi-accept".into()).spawn(move || worker.run())?;
        Ok(Acceptor { shared, thread: Some(thread) })
    }

    /// What becomes readable when something has arrived.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.shared.outside.as_fd()
    }

    /// Everything that has arrived.
    pub(super) fn arrivals(&self) -> VecDeque<Arrival> {
        silence(&self.shared.outside);
        std::mem::take(&mut *locked(&self.shared.arrivals))
    }

    /// Tries once to reach `peer`; [`Arrival::Reached`] or [`Arrival::Unreachable`] follows.
    pub(super) fn dial(&self, peer: NodeId) {
        self.order(Order::Dial(peer));
    }

    /// An attempt to reach `peer` is no longer of use; nothing follows, unless it already has.
    pub(super) fn forget(&self, peer: NodeId) {
        self.order(Order::Forget(peer));
    }

    fn order(&self, order: Order) {
        locked(&self.shared.orders).push(order);
        ring(&self.shared.inside);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        ring(&self.shared.inside);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to do about it.
            let _ = thread.join();
        }
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
