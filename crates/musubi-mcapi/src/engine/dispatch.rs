//! What comes in: frames by their kinds, and what becomes of links.
//!
//! What you may rely on: a frame of a node with which there is no link changes nothing but a count. Of a peer for which too much is
//! held back already no question is taken.
//!
//! How it works: a frame counts only while there is a link with its sender. A link that ends takes with it, on both
//! sides, everything between the two nodes: credit, gets, held questions, frames held back. Questions for endpoints are
//! asked again with the next link; all others fail.

use super::peers::{ME, Standing};
use super::requests::Doing;
use super::{Counters, Engine, RequestId};
use crate::engine::frame::{Header, Kind};
use crate::{Error, NodeId};
use musubi_transport::links::{Block, Links, Loss, Payload};

/// How long a link is still tried for when nothing is pending that needs it: a thread may be about to try again.
const WANTED_NS: u64 = 10_000_000_000;

impl<B: Block> Engine<B> {
    #[inline]
    pub(super) fn frame_came(
        &mut self,
        node: NodeId,
        header: Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        if let Some(place) = self.sender_of_frame(node) {
            self.dispatch(place, header, payload, links);
        }
    }

    /// The place of the linked node that has sent a frame.
    #[inline]
    pub(super) fn sender_of_frame(&mut self, node: NodeId) -> Option<u16> {
        if let Some(place) = self.peers.find(node).filter(|place| *place != ME) {
            let peer = self.peers.at(place);
            if peer.is_linked() {
                peer.counters.frames_received += 1;
                return Some(place);
            }
        }
        self.counters.unlinked += 1;
        None
    }

    #[inline]
    pub(super) fn dispatch(
        &mut self,
        place: u16,
        header: Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        // Links let no other kinds pass.
        let Some(kind) = Kind::of(header.kind) else { return self.refuse(place, |counters| &mut counters.malformed) };
        if kind.asks() && self.is_crowded(place) {
            return self.refuse(place, |counters| &mut counters.crowded_out);
        }
        match kind {
            Kind::Message => self.message(place, &header, payload, links),
            Kind::MessageCredit => self.message_credit(place, &header, links),
            Kind::Get => self.get(place, &header, links),
            Kind::GetReply => self.get_reply(place, &header, links),
            Kind::GetCancel => self.get_cancel(place, &header),
            Kind::Release => self.release(place, &header),
            Kind::AttributeGet => self.attribute_get(place, &header, links),
            Kind::AttributeReply => self.attribute_reply(place, &header, &payload),
            Kind::Deleted => self.deleted(place, &header),
            Kind::Ping => self.pinged(place, &header, payload, links),
            Kind::Pong => self.pong(place, &header),
            Kind::Connected => self.connected(place, &header, links),
            Kind::Inspect => self.inspected(place, &header, links),
            Kind::InspectReply => self.inspect_reply(place, &header, &payload),
            Kind::Connect
            | Kind::ConnectAccept
            | Kind::ConnectReply
            | Kind::Open
            | Kind::Close
            | Kind::Packet
            | Kind::Scalar
            | Kind::ChannelCredit
            | Kind::Disconnect => self.channel_frame(place, kind, header, payload, links),
        }
    }

    /// Counts a frame of a peer's that is against the rules.
    #[cold]
    pub(super) fn refuse(&mut self, place: u16, what: fn(&mut Counters) -> &mut u64) {
        *what(&mut self.counters) += 1;
        self.peers.at(place).counters.refused += 1;
    }

    pub(super) fn up(&mut self, node: NodeId, incarnation: u32, links: &mut impl Links<Block = B>) {
        let place = self.peers.enter(node);
        if place == ME {
            self.counters.not_theirs += 1;
            return;
        }
        if self.peers.at(place).is_linked() {
            self.down(node, Loss::Cut, links);
        }
        let peer = self.peers.at(place);
        peer.standing = Standing::Linked;
        peer.incarnation = incarnation;
        peer.absent = false;
        peer.counters.links += 1;
        peer.begin_flows();
        self.changes += 1;
        self.begin_news(place, links);
        for request in self.peers.at(place).asked.clone() {
            self.put_question(place, request, links);
        }
        self.send_waiting(place, links);
    }

    pub(super) fn down(&mut self, node: NodeId, loss: Loss, links: &mut impl Links<Block = B>) {
        let Some(place) = self.peers.find(node).filter(|place| *place != ME) else { return };
        let now_ns = self.now_ns;
        let peer = self.peers.at(place);
        if !peer.is_linked() {
            return;
        }
        peer.standing = match loss {
            Loss::Gone => Standing::Gone,
            Loss::Cut => Standing::Cut,
        };
        // What is unread from now on belongs to no link: taking it gives no credit back.
        peer.epoch = peer.epoch.wrapping_add(1);
        if loss == Loss::Gone {
            peer.end_flows();
        }
        // The links try again for one that was wanted; for how long is counted from now.
        peer.lingers |= core::mem::take(&mut peer.wanted);
        (peer.wanted_ns, peer.absent) = (now_ns, false);
        peer.heard = false;
        peer.connected.clear();
        peer.news.end();
        peer.outbox.clear();
        peer.unsaid.clear();
        peer.outbox_bytes = 0;
        let unconfirmed = core::mem::take(&mut peer.unconfirmed);
        self.changes += 1;
        for request in unconfirmed.into_iter().flatten().filter_map(|frame| frame.request) {
            self.complete(request, Err(Error::Transmission));
        }
        self.channel_peer_down(node, loss, links);
        self.fail_waiting(place, Err(Error::Transmission));
        self.fail_questions(place, Error::Transmission, Error::Transmission);
        self.forget_intakes(place);
        self.forget_gets_held(place);
        if !self.peers.at(place).asked.is_empty() {
            self.want(place, links);
        }
    }

    pub(super) fn room(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let Some(place) = self.peers.find(node).filter(|place| *place != ME) else { return };
        self.changes += 1;
        self.empty_outbox(place, links);
        self.tell_news(place, links);
        self.send_waiting(place, links);
        self.channel_room(node, links);
        self.say_questions(place, links);
    }

    /// Nobody answers for a node. Of one that never was there nothing is to be had; one that has gone takes and drops
    /// messages; of one that was cut off nobody knows.
    pub(super) fn absent(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let Some(place) = self.peers.find(node).filter(|place| *place != ME) else { return };
        let now_ns = self.now_ns;
        let peer = self.peers.at(place);
        let standing = peer.standing;
        if standing == Standing::Linked {
            return;
        }
        peer.absent = true;
        self.changes += 1;
        match standing {
            Standing::Linked => {}
            Standing::Unknown => self.fail_questions(place, Error::EndpointInvalid, Error::NodeInvalid),
            Standing::Gone => self.fail_questions(place, Error::EndpointInvalid, Error::Transmission),
            Standing::Cut => self.fail_questions(place, Error::Transmission, Error::Transmission),
        }
        self.channel_peer_absent(node, links);
        self.fail_waiting(place, standing.fate());
        if now_ns.saturating_sub(self.peers.at(place).wanted_ns) > WANTED_NS {
            self.want_no_more(place, links);
        }
    }

    /// Ends all questions at a peer but those for endpoints, which wait: those about endpoints with one error, those about
    /// the node with the other.
    fn fail_questions(&mut self, place: u16, of_endpoint: Error, of_node: Error) {
        let asked: alloc::vec::Vec<RequestId> = self.peers.at(place).asked.clone();
        for request in asked {
            match self.requests.pending(request).map(|pending| pending.doing) {
                None | Some(Doing::Get { .. }) => {}
                Some(Doing::Attribute { of: Some(_), .. } | Doing::Channel(_)) => {
                    self.complete(request, Err(of_endpoint));
                }
                Some(_) => self.complete(request, Err(of_node)),
            }
        }
    }
}

impl Standing {
    /// What becomes of a message to a node with which there is no link, and that does not answer.
    pub(super) fn fate(self) -> Result<(), Error> {
        match self {
            Standing::Linked | Standing::Gone => Ok(()),
            Standing::Unknown => Err(Error::EndpointInvalid),
            Standing::Cut => Err(Error::Transmission),
        }
    }
}
