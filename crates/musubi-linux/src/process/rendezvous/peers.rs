//! Peers that come and go.
//!
//! What you may rely on: of each slot one incarnation at most is a peer; a newer one is the older one's death. A peer is gone
//! when its process has ended, or with its last connection, whichever is known first; then all that hung on it is told.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::Waker;

use rustix::event::epoll;

use crate::os::credentials::{Mortality, mortality};
use crate::process::rendezvous::connection::Stage;
use crate::process::rendezvous::message::Party;
use crate::process::rendezvous::registry::{Peer, Registry, Shared, Token};
use crate::process::section::PeerSection;

impl Registry {
    /// Takes in a peer, or another connection of one; an older incarnation in the same slot is dead. False if it has
    /// died meanwhile.
    pub(crate) fn admit(&mut self, shared: &Shared, id: u32, party: Party, section: Arc<PeerSection>) -> bool {
        let known = self.peers.iter().find(|peer| peer.party.participant == party.participant);
        if let Some(older) = known.map(|peer| peer.party.epoch).filter(|epoch| *epoch != party.epoch) {
            self.lose(shared, party.participant, older);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.party == party) {
            connection.stage = Stage::Linked(party.participant, party.epoch);
            peer.connections.push(id);
            return true;
        }
        let credentials = connection.credentials.clone();
        let pidfd = match mortality(connection.as_fd(), &credentials) {
            Mortality::Watched(pidfd) => Some(pidfd),
            Mortality::Dead => return false,
            Mortality::Unknown => None,
        };
        connection.stage = Stage::Linked(party.participant, party.epoch);
        self.obstacles.forget(party.participant);
        let process = self.new_id();
        if let Some(pidfd) = &pidfd {
            let _ = epoll::add(&shared.epoll, pidfd, Token::Process(process).data(), epoll::EventFlags::IN);
        }
        let (connections, ends) = (vec![id], BTreeMap::new());
        self.peers.push(Peer { party, section, credentials, id: process, pidfd, connections, ready: false, ends });
        self.refresh_tickets(shared, party.domain);
        self.refresh(shared);
        true
    }

    /// The process of this peer has ended.
    pub(crate) fn process_ended(&mut self, shared: &Shared, id: u32) {
        let ended = self.peers.iter().find(|peer| peer.id == id).map(|peer| (peer.party.participant, peer.party.epoch));
        if let Some((participant, epoch)) = ended {
            self.lose(shared, participant, epoch);
        }
    }

    /// A peer is gone: what it held comes back, and who waits for it hears of it.
    pub(crate) fn lose(&mut self, shared: &Shared, participant: u16, epoch: u32) {
        let Some(index) = self.peer_index(participant, epoch) else { return };
        let peer = self.peers.swap_remove(index);
        if let Some(pidfd) = &peer.pidfd {
            let _ = epoll::delete(&shared.epoll, pidfd);
        }
        for id in &peer.connections {
            if let Some(connection) = self.connections.remove(id) {
                let _ = epoll::delete(&shared.epoll, connection.as_fd());
                self.abandon(connection);
            }
            self.dial_over(shared, participant, *id);
        }
        for (&(fifo, direction), end) in &peer.ends {
            self.end_lost(shared, (participant, epoch, end.serial), fifo, direction);
        }
        for &(fifo, _) in peer.ends.keys() {
            self.link_ends(shared, fifo);
        }
        self.refresh_tickets(shared, peer.party.domain);
        self.create_segments(shared);
        self.refresh(shared);
    }

    /// Recomputes what depends on who is there, and tells those who wait.
    pub(crate) fn refresh(&mut self, shared: &Shared) {
        for member in &self.segments {
            let domains = shared.plan.smems[usize::from(member.number)].domains;
            let concerns =
                |participant: &u16| shared.plan.domain_of(*participant).is_some_and(|d| domains.contains(&d));
            // Who has told all and is called again has long known our ticket, and we its.
            let is_ready = |number: &u16| self.peers.iter().any(|peer| peer.ready && peer.party.participant == *number);
            member.view.settle(!self.dials.keys().any(|number| concerns(number) && !is_ready(number)));
        }
        shared.changed.notify_all();
    }

    /// Whether every participant that was there when we came has answered and told all.
    pub(crate) fn all_answered(&self) -> bool {
        self.dials.is_empty() && self.peers.iter().all(|peer| peer.ready)
    }

    /// Drops everything that others can see; gives the wakers of those who wait, to be woken outside the lock.
    #[must_use]
    pub(crate) fn leave(&mut self, shared: &Shared) -> Vec<Waker> {
        self.left = true;
        let mut wakers = Vec::new();
        for holding in std::mem::take(&mut self.holdings) {
            wakers.extend(holding.core.leave(&shared.epoll));
        }
        while let Some((participant, epoch)) = self.peers.last().map(|peer| (peer.party.participant, peer.party.epoch))
        {
            self.lose(shared, participant, epoch);
        }
        self.listener = None;
        self.connections.clear();
        self.dials.clear();
        self.parked.clear();
        self.segments.clear();
        shared.changed.notify_all();
        wakers
    }
}
