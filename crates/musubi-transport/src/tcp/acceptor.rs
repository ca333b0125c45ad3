//! Where connections of a node come in and go out: a thread of its own, so that neither a flood of garbage nor a slow
//! handshake takes time from the links that stand.
//!
//! What you may rely on: how many connections are half open, and how many come in a time, is bounded, by address and
//! apart for those that the description names ([`super::admission`]); who is too many is put out at once, so nobody has to
//! wait behind it in the kernel's queue; accepting is limited in its rate. The node's lock is never held here. Whoever is refused is counted and
//! written to the [`EventLog`], and told why if it speaks the protocol.
//!
//! How it works: the carrier leaves orders (dial this node) and takes arrivals (somebody has called; the dialed one
//! stands; it could not be reached), through [`super::exchange`]; the carrier's bell is in the node's epoll instance. A token bucket lets [`ACCEPTS_BURST`](super::ACCEPTS_BURST) connections in at once and then one every [`ACCEPT_NS`](super::ACCEPT_NS); while it is
//! empty the listener is not looked at, and the kernel's queue holds who comes.
//!
//! What it does not do: decide between two connections of one node; the session does ([`Reason::Crossed`](crate::session::Reason::Crossed)).

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use musubi_linux::descriptor::Descriptor;

use super::event_log::EventLog;
use super::exchange::{Arrival, Order, Shared, Us, locked, ring, silence};
use super::worker::Worker;
use crate::NodeId;

/// The carrier's side of the acceptor.
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
