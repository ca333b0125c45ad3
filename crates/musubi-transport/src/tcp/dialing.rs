//! Dialing: the addresses of a node one after the other, until one stands or none is left.
//!
//! What you may rely on: a node has one attempt at a time. Each ends with a connection whose peer has spoken, with word that the
//! node cannot be reached, or in silence because it was forgotten. The thread never waits for a resolver.
//!
//! How it works: addresses as numbers are tried at once; names are asked for elsewhere ([`names`]) and come back as an order.
//! Hosts of the description are looked up every [`NAMES_NS`], so that they are known when they call.

use std::net::SocketAddr;
use std::sync::Arc;

use musubi_linux::clock::now_ns;

use super::exchange::{Arrival, Order, locked, ring};
use super::names;
use super::pending::Pending;
use super::worker::{Dial, Worker};
use crate::NodeId;
use crate::topology::Way;

/// How long after their hosts were looked up that is done again, nanoseconds.
pub(super) const NAMES_NS: u64 = 30_000_000_000;

impl Worker {
    pub(super) fn look_up(&mut self, peer: NodeId) {
        let Some(Way::Tcp(Some(place))) = self.us.topology.way(self.us.identity.node, peer) else {
            return self.arrive(Arrival::Unreachable { peer });
        };
        self.dials.insert(peer, Dial::default());
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
        if let Some(Way::Tcp(Some(place))) = self.us.topology.way(self.us.identity.node, peer) {
            self.admission.known.name(place, addresses.iter().map(SocketAddr::ip));
        }
        // Else it has been forgotten meanwhile, or was dialed again and an earlier question's answer came first.
        if let Some(dial) = self.dials.get_mut(&peer).filter(|dial| dial.under_way.is_none()) {
            dial.addresses.extend(addresses);
            self.try_next(peer);
        }
    }

    /// Tries the next address of a node that is dialed.
    pub(super) fn try_next(&mut self, peer: NodeId) {
        loop {
            let token = self.new_token();
            let Some(dial) = self.dials.get_mut(&peer) else { return };
            let Some(address) = dial.addresses.pop_front() else { break };
            dial.under_way = Some(token);
            match Pending::dial(address, peer, now_ns()).and_then(|pending| self.enter(token, pending)) {
                Ok(()) => return,
                Err(error) => self.event_log.note(format!("node {peer} at {address}: {error}")),
            }
        }
        self.unreachable(peer);
    }

    /// Asks for the addresses of all hosts that the description names, so that they are known before they call.
    pub(super) fn look_up_names(&mut self) {
        let (shared, places) = (Arc::clone(&self.shared), self.names.iter().cloned().collect());
        let asked = names::ask_all(places, move |hosts| {
            locked(&shared.orders).push(Order::Named(hosts));
            ring(&shared.inside);
        });
        // While they are asked for they are not due.
        self.names_due_ns = (!asked).then(|| now_ns() + NAMES_NS);
    }

    pub(super) fn named(&mut self, hosts: Vec<(String, Vec<SocketAddr>)>) {
        for (place, addresses) in hosts {
            self.admission.known.name(&place, addresses.iter().map(SocketAddr::ip));
        }
        self.names_due_ns = Some(now_ns() + NAMES_NS);
    }

    fn unreachable(&mut self, peer: NodeId) {
        if self.dials.remove(&peer).is_some() {
            self.event_log.count(|counters| counters.dials_failed += 1);
            self.arrive(Arrival::Unreachable { peer });
        }
    }
}
