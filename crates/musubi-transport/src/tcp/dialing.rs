//! Dialing: the addresses of a node one after the other, until one stands or none is left.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use musubi_linux::clock::now_ns;

use super::acceptor::{Arrival, Order, locked, ring};
use super::names;
use super::pending::Pending;
use super::worker::Worker;
use crate::NodeId;
use crate::topology::Way;

impl Worker {
    pub(super) fn look_up(&mut self, peer: NodeId) {
        let Some(Way::Tcp(Some(place))) = self.us.topology.way(self.us.identity.node, peer) else {
            return self.arrive(Arrival::Unreachable { peer });
        };
        self.dials.insert(peer, VecDeque::new());
        if let Some(address) = names::numeric(place) {
            return self.found(peer, vec![address]);
        }
        let shared = Arc::clone(&self.shared);
        let asked = self.resolver.ask(place.to_owned(), move |addresses| {
            locked(&shared.orders).push(Order::Found(peer, addresses));
            ring(&shared.inside);
        });
        if !asked {
            self.unreachable(peer);
        }
    }

    pub(super) fn found(&mut self, peer: NodeId, addresses: Vec<SocketAddr>) {
        if addresses.is_empty() {
            self.event_log.note(format!("node {peer}: its host has no address"));
        }
        addresses.iter().for_each(|address| self.admission.know(address.ip()));
        // Else it has been forgotten meanwhile.
        if let Some(dial) = self.dials.get_mut(&peer) {
            dial.extend(addresses);
            self.try_next(peer);
        }
    }

    /// Tries the next address of a node that is dialed.
    pub(super) fn try_next(&mut self, peer: NodeId) {
        while let Some(address) = self.dials.get_mut(&peer).and_then(VecDeque::pop_front) {
            let begun = Pending::dial(address, peer, now_ns()).and_then(|pending| self.enter(pending));
            match begun {
                Ok(()) => return,
                Err(error) => self.event_log.note(format!("node {peer} at {address}: {error}")),
            }
        }
        self.unreachable(peer);
    }

    fn unreachable(&mut self, peer: NodeId) {
        if self.dials.remove(&peer).is_some() {
            self.event_log.count(|counters| counters.dials_failed += 1);
            self.arrive(Arrival::Unreachable { peer });
        }
    }
}
