//! What becomes of links, and what is due by time.

use alloc::vec::Vec;

use musubi_transport::NodeId;
use musubi_transport::links::{Block, Links};

use super::connecting::{Attempt, Listener, Manner};
use super::frames::Edge;
use super::{NicState, ViEntry};
use crate::address::NicNumber;
use crate::error::ViError;
use crate::slots::Slots;
use crate::wire::{Refusal, ViName};

impl<B: Block> NicState<B> {
    /// There is a link with a node.
    pub(super) fn up(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let peer = self.carriage.enter(node);
        if self.carriage.peer(peer).is_linked {
            self.down(node, links);
        }
        let known = self.carriage.peer(peer);
        (known.is_linked, known.is_absent) = (true, false);
        self.changes += 1;
        self.renew_grants(peer, links);
        self.tell_reach(peer, links);
        self.ask_if_asked(peer, links);
        self.for_attempts_at(
            node,
            |state, place, links| {
                state.ask_peer_if(place, peer, links);
                state.advance(place, links);
            },
            links,
        );
    }

    /// Nobody answers for a node.
    pub(super) fn absent(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let peer = self.carriage.enter(node);
        self.carriage.peer(peer).is_absent = true;
        self.for_attempts_at(node, |state, place, links| state.advance(place, links), links);
    }

    /// The link with a node has ended: so have all connections with its VIs.
    pub(super) fn down(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let Some(peer) = self.carriage.find(node) else { return };
        self.carriage.forget(peer);
        self.changes += 1;
        let callers = self.connecting.callers.iter().filter(|(_, caller)| caller.peer == peer);
        let callers: Vec<u32> = callers.map(|(number, _)| number).collect();
        callers.into_iter().for_each(|caller| self.caller_went(caller, links));
        let is_with = |entry: &ViEntry| entry.connection.as_ref().is_some_and(|connection| connection.peer == peer);
        let connected: Vec<u16> = self.places(is_with);
        for place in connected {
            let Some((_, entry)) = self.vis.at_place_mut(place) else { continue };
            entry.connection = None;
            entry.vi.lose(&mut Edge::<B>::of(&self.memory));
            self.settle(place);
        }
        let has_asked = |entry: &ViEntry| entry.attempt.as_ref().is_some_and(|attempt| attempt.asked == Some(peer));
        for place in self.places(has_asked) {
            self.pass_over(place, peer, links);
        }
        self.review_wants(links);
    }

    /// Does something with each VI that asks at the NIC of a node.
    fn for_attempts_at<L: Links<Block = B>>(
        &mut self,
        node: NodeId,
        mut by: impl FnMut(&mut NicState<B>, u16, &mut L),
        links: &mut L,
    ) {
        let Some((nic, _)) = NicNumber::of_node(node) else { return };
        let asks = |entry: &ViEntry| entry.attempt.as_ref().is_some_and(|attempt| attempt.remote.nic == nic);
        for place in self.places(asks) {
            by(self, place, links);
        }
        self.carry_local(links);
    }

    fn ask_peer_if(&mut self, place: u16, peer: u16, links: &mut impl Links<Block = B>) {
        let Some((_, ViEntry { attempt: Some(attempt), .. })) = self.vis.at_place_mut(place) else { return };
        if matches!(attempt.manner, Manner::PeerNode { .. }) && attempt.outcome.is_none() {
            self.ask_peer(place, peer, ViName::default(), links);
        }
    }

    fn places(&self, of: impl Fn(&ViEntry) -> bool) -> Vec<u16> {
        let them = self.vis.iter().filter(|(_, entry)| of(entry));
        them.map(|(number, _)| Slots::<ViEntry>::place(number)).collect()
    }

    /// A link with this node is wanted; if there is none it is tried for now.
    pub(super) fn want(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let me = self.carriage.me;
        let known = self.carriage.peer(peer);
        if known.node == me || (known.is_linked && known.is_wanted) {
            return;
        }
        if known.is_wanted {
            links.want(known.node, false);
        }
        (known.is_wanted, known.is_absent) = (true, false);
        links.want(known.node, true);
    }

    /// Links that nothing needs any more are not tried for again.
    pub(super) fn review_wants(&mut self, links: &mut impl Links<Block = B>) {
        for peer in 0..self.carriage.peers.len() as u16 {
            let known = self.carriage.peer(peer);
            let node = known.node;
            if known.is_wanted && !self.vis.iter().any(|(_, entry)| needs(entry, peer, node)) {
                self.carriage.peer(peer).is_wanted = false;
                links.want(node, false);
            }
        }
    }

    /// Does what is due; gives the next instant at which something is.
    pub(super) fn tick_attempts(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) -> u64 {
        if now_ns >= self.connecting.attempts_due_ns {
            self.end_attempts(now_ns, links);
        }
        let is_left = |one: &Listener| one.waiting == 0;
        let over: Vec<Listener> =
            self.connecting.listeners.extract_if(.., |one| is_left(one) && one.until_ns <= now_ns).collect();
        for number in over.into_iter().flat_map(|listener| listener.callers) {
            if let Some(caller) = self.connecting.callers.remove(number) {
                self.refuse_caller(caller.peer, caller.name, Refusal::NoMatch, links);
            }
        }
        self.carry_local(links);
        let left = self.connecting.listeners.iter().filter(|one| is_left(one));
        left.map(|one| one.until_ns).fold(self.connecting.attempts_due_ns, u64::min)
    }

    /// Ends the attempts whose time is over; looks when the next one's is.
    #[cold]
    fn end_attempts(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) {
        let due_ns = |entry: &ViEntry| entry.attempt.as_ref().map_or(u64::MAX, Attempt::due_ns);
        for place in self.places(|entry| due_ns(entry) <= now_ns) {
            self.abort(place, ViError::Timeout, links);
        }
        self.connecting.attempts_due_ns = self.vis.iter().map(|(_, entry)| due_ns(entry)).fold(u64::MAX, u64::min);
    }
}

/// Whether a VI needs a link with this peer.
fn needs(entry: &ViEntry, peer: u16, node: NodeId) -> bool {
    let asks = |attempt: &Attempt| {
        attempt.outcome.is_none() && NicNumber::of_node(node).is_some_and(|(nic, _)| nic == attempt.remote.nic)
    };
    entry.connection.as_ref().is_some_and(|connection| connection.peer == peer)
        || entry.attempt.as_ref().is_some_and(asks)
}
