//! What goes out: frames, questions, confirmations.
//!
//! What you may rely on: a control frame to a linked peer is handed to its link in order, whenever there is room; it is
//! lost only together with the link, which both sides notice, or by that peer's own doing. A question is asked again with every
//! new link until it is answered, cancelled, or its request has failed.
//!
//! How it works: [`Engine::emit`] holds back what a full link refuses; as long as anything is held back nothing else
//! passes, so order is kept. [`Engine::transmit_at`] refuses instead: data waits where it came from. Links over a network number
//! what they take; the numbers are kept by class until the link confirms.
//!
//! What others, or a program in a loop, could make us say to a peer without end is no frame that is held back but a state that is
//! said when there is room: questions that were not taken back meanwhile, and [`super::peer::news`]; both, as far as others
//! wish them, so often at a time. So what is held back is
//! answers to the peer's own questions, of which no more are taken while much is held back ([`Engine::is_crowded`]), and what
//! opens and ends: openings are refused by then, and each asking, opening and connection has few frames that end it.

use alloc::vec::Vec;

use super::channel::end::ChannelRequest;
use super::peer::news::NEWS_NS;
use super::peers::{ME, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX, QUESTIONS_MAX, Unconfirmed};
use super::requests::Doing;
use super::{Engine, Outcome, RequestId};
use crate::engine::frame::{Header, Kind};
use crate::{Error, NodeId};
use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Payload, Sent, SharedBytes, Short};

impl<B: Block> Engine<B> {
    /// Hands a frame of data over; to this node itself (place [`ME`]) it always goes. The header's length is filled in.
    pub(super) fn transmit_at(
        &mut self,
        place: u16,
        header: Header,
        payload: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Sent {
        let node = self.peers.at(place).node;
        self.transmit_to(place, node, header, payload, links)
    }

    /// The same where it is called, to the node of this place: a header that is known there is never put together in
    /// memory.
    #[inline(always)]
    pub(super) fn transmit_to(
        &mut self,
        place: u16,
        node: NodeId,
        header: Header,
        payload: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Sent {
        self.transmit_by(place, header, payload, links, |links, header| links.send(node, header, payload))
    }

    /// As [`Engine::transmit_at`], of payload that the link may keep where it lies.
    pub(super) fn transmit_shared_at(
        &mut self,
        place: u16,
        header: Header,
        payload: &SharedBytes,
        links: &mut impl Links<Block = B>,
    ) -> Sent {
        let node = self.peers.at(place).node;
        let send = |links: &mut _, header: &Header| Links::send_shared(links, node, header, payload);
        self.transmit_by(place, header, payload, links, send)
    }

    #[inline(always)]
    fn transmit_by<L: Links<Block = B>>(
        &mut self,
        place: u16,
        header: Header,
        payload: &[u8],
        links: &mut L,
        send: impl FnOnce(&mut L, &Header) -> Sent,
    ) -> Sent {
        let header = Header { length: payload.len() as u32, ..header };
        if place == ME {
            self.own.push_back((header, copied(payload)));
            return Sent::Delivered;
        }
        let peer = self.peers.at(place);
        if !peer.is_linked() {
            return Sent::NoLink;
        }
        if !peer.outbox.is_empty() {
            return Sent::Full;
        }
        let sent = send(links, &header);
        if let Sent::Numbered(number) = sent {
            peer.unconfirmed[header.class.index()].push_back(Unconfirmed { number, request: None });
        }
        sent
    }

    /// Lets a request complete when the frame that was just handed over (and numbered) is confirmed or lost.
    pub(super) fn confirm_latest(&mut self, to: NodeId, class: Priority, request: RequestId) {
        let Some(place) = self.peers.find(to) else { return };
        if let Some(latest) = self.peers.at(place).unconfirmed[class.index()].back_mut() {
            latest.request = Some(request);
        }
    }

    /// Hands a control frame over, later if there is no room now. Without a link it is dropped: what it is about ends
    /// with the link.
    pub(super) fn emit(&mut self, to: NodeId, header: Header, payload: &[u8], links: &mut impl Links<Block = B>) {
        if let Some(place) = self.peers.find(to) {
            self.emit_at(place, header, payload, links);
        }
    }

    /// The same for a place in the table.
    pub(super) fn emit_at(&mut self, place: u16, header: Header, payload: &[u8], links: &mut impl Links<Block = B>) {
        if self.transmit_at(place, header, payload, links) != Sent::Full {
            return;
        }
        let peer = self.peers.at(place);
        if peer.outbox.len() >= OUTBOX_FRAMES_MAX || peer.outbox_bytes + payload.len() > OUTBOX_BYTES_MAX {
            self.counters.crowded_out += 1;
            return;
        }
        peer.outbox_bytes += payload.len();
        peer.outbox.push_back((Header { length: payload.len() as u32, ..header }, payload.to_vec()));
    }

    /// Whether so much is held back for a peer that nothing is to be begun with it.
    pub(super) fn is_crowded(&mut self, place: u16) -> bool {
        self.peers.at(place).is_crowded()
    }

    /// Hands over what was held back, as far as there is room.
    pub(super) fn empty_outbox(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let peer = self.peers.at(place);
        while let Some((header, payload)) = peer.outbox.front() {
            match links.send(peer.node, header, payload) {
                Sent::Full | Sent::NoLink => return,
                Sent::Delivered => {}
                Sent::Numbered(number) => {
                    peer.unconfirmed[header.class.index()].push_back(Unconfirmed { number, request: None });
                }
            }
            peer.outbox_bytes -= payload.len();
            peer.outbox.pop_front();
        }
    }

    /// Dispatches what this node has said to itself.
    #[inline(always)]
    pub(super) fn settle(&mut self, links: &mut impl Links<Block = B>) {
        if !self.own.is_empty() {
            self.dispatch_own(links);
        }
    }

    #[cold]
    fn dispatch_own(&mut self, links: &mut impl Links<Block = B>) {
        while let Some((header, payload)) = self.own.pop_front() {
            self.dispatch(ME, header, payload, links);
        }
    }

    /// The link has confirmed a frame, and with it all earlier ones of its class.
    pub(super) fn acknowledged(&mut self, node: NodeId, number: u64) {
        let Some(place) = self.peers.find(node) else { return };
        let peer = self.peers.at(place);
        let class =
            peer.unconfirmed.iter().position(|frames| frames.binary_search_by_key(&number, |f| f.number).is_ok());
        let Some(class) = class else { return };
        while let Some(frame) = self.peers.at(place).unconfirmed[class].pop_front_if(|frame| frame.number <= number) {
            if let Some(request) = frame.request {
                self.confirmed(request);
            }
        }
    }

    fn confirmed(&mut self, request: RequestId) {
        if let Some(Doing::Confirm { bytes }) = self.requests.pending(request).map(|pending| pending.doing) {
            self.complete(request, Ok(Outcome::Sent(bytes as usize)));
        }
    }

    /// Makes a request that a node's answer completes, and asks. The answer carries the request's number as its tag.
    ///
    /// # Errors
    /// [`Error::RequestLimit`].
    pub(super) fn ask(
        &mut self,
        node: NodeId,
        doing: Doing,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let place = self.peers.enter(node);
        let asked = self.peers.at(place).asked.len();
        if asked >= QUESTIONS_MAX {
            return Err(Error::RequestLimit);
        }
        let request = self.requests.create(doing)?;
        if let Some(pending) = self.requests.pending_mut(request) {
            pending.asked = Some((place, asked as u32));
        }
        self.peers.at(place).asked.push(request);
        match self.peers.at(place).is_linked() {
            true => self.put_question(place, request, links),
            false => self.want(place, links),
        }
        Ok(request)
    }

    /// Says the question of a request to a linked peer, behind those for which there was no room yet.
    pub(super) fn put_question(&mut self, place: u16, request: RequestId, links: &mut impl Links<Block = B>) {
        if self.peers.at(place).unsaid.is_empty() && self.say_question(place, request, links) {
            return;
        }
        if let Some(pending) = self.requests.pending_mut(request) {
            pending.said = false;
        }
        let Engine { peers, requests, .. } = self;
        let unsaid = &mut peers.at(place).unsaid;
        if unsaid.len() >= 2 * QUESTIONS_MAX {
            // At most half of them are still asked.
            unsaid.retain(|request| requests.pending(*request).is_some());
        }
        unsaid.push_back(request);
    }

    /// Says the questions for which there was no room, as far as there is; those that nobody asks any more are left out.
    pub(super) fn say_questions(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        while let Some(request) = self.peers.at(place).unsaid.front().copied() {
            if !self.say_question(place, request, links) {
                return;
            }
            self.peers.at(place).unsaid.pop_front();
        }
    }

    /// False if there is no room for it, or if it is another node's wish and enough of those were said.
    fn say_question(&mut self, place: u16, request: RequestId, links: &mut impl Links<Block = B>) -> bool {
        let of_others = self.is_wish_of_others(place, request);
        let now_ns = self.now_ns;
        if of_others && !self.peers.at(place).wishes.admits(now_ns) {
            self.say_later(place);
            return false;
        }
        let Some((header, payload)) = self.question_of(request) else { return true };
        if self.transmit_at(place, Header { tag: request.0, ..header }, &payload, links) == Sent::Full {
            return false;
        }
        if let Some(pending) = self.requests.pending_mut(request) {
            pending.said = true;
        }
        if of_others {
            self.peers.at(place).wishes.count();
        }
        true
    }

    /// Whether neither this node nor the one that is asked, another one, wishes it.
    fn is_wish_of_others(&mut self, place: u16, request: RequestId) -> bool {
        if place == ME {
            return false;
        }
        let doing = self.requests.pending(request).map(|pending| pending.doing);
        let Some(Doing::Channel(ChannelRequest::Accept { from })) = doing else { return false };
        let asking = self.end_at(from).and_then(|end| end.asking);
        asking.is_some_and(|asking| asking.asker.place != ME && asking.asker.place != place)
    }

    /// A peer is to be told something, but not now.
    pub(super) fn say_later(&mut self, place: u16) {
        if core::mem::replace(&mut self.peers.at(place).held, true) {
            return;
        }
        if self.held.is_empty() {
            self.held_due_ns = self.now_ns + NEWS_NS;
        }
        self.held.push(place);
    }

    /// Says what had to wait, if it is time; gives the instant when it will be.
    #[inline]
    pub(super) fn say_held(&mut self, links: &mut impl Links<Block = B>) -> u64 {
        if !self.held.is_empty() && self.now_ns >= self.held_due_ns {
            for place in core::mem::take(&mut self.held) {
                self.peers.at(place).held = false;
                self.say_questions(place, links);
                self.tell_news(place, links);
            }
        }
        if self.held.is_empty() { u64::MAX } else { self.held_due_ns }
    }

    fn question_of(&mut self, request: RequestId) -> Option<(Header, Vec<u8>)> {
        let now_ns = self.now_ns;
        let pending = self.requests.pending_mut(request)?;
        if let Doing::Ping { started_ns, .. } = &mut pending.doing {
            *started_ns = now_ns;
        }
        let doing = pending.doing;
        Some(match doing {
            Doing::Get { port } => (Header { value: port, ..Header::new(Kind::Get as u8) }, Vec::new()),
            Doing::Attribute { of, number } => {
                let to = of.map_or(0, |endpoint| endpoint.bits());
                (Header { to, value: number, ..Header::new(Kind::AttributeGet as u8) }, Vec::new())
            }
            Doing::Ping { bytes, .. } => (Header::new(Kind::Ping as u8), alloc::vec![0; bytes as usize]),
            Doing::Inspect { part } => (Header { value: part, ..Header::new(Kind::Inspect as u8) }, Vec::new()),
            Doing::Channel(doing) => return self.channel_question(doing),
            Doing::Send { .. } | Doing::Confirm { .. } | Doing::Receive { .. } => return None,
        })
    }

    /// Whether the link took the question of a request: who takes it back has to say so.
    pub(super) fn was_asked(&self, request: RequestId) -> bool {
        self.requests.pending(request).is_some_and(|pending| pending.said)
    }

    /// The request that a peer's answer is for, if it was asked of that peer; counts it otherwise.
    pub(super) fn question(&mut self, place: u16, tag: u32) -> Option<(RequestId, Doing)> {
        let request = RequestId(tag);
        match self.requests.pending(request) {
            Some(pending) if pending.said && pending.asked.is_some_and(|(peer, _)| peer == place) => {
                Some((request, pending.doing))
            }
            _ => {
                self.refuse(place, |counters| &mut counters.unasked);
                None
            }
        }
    }

    /// Takes a request off a peer's list of questions.
    pub(super) fn forget_question(&mut self, place: u16, at: u32) {
        let asked = &mut self.peers.at(place).asked;
        if (at as usize) < asked.len() {
            asked.swap_remove(at as usize);
        }
        let moved = asked.get(at as usize).copied();
        if let Some(pending) = moved.and_then(|moved| self.requests.pending_mut(moved)) {
            pending.asked = Some((place, at));
        }
    }

    /// Asks the links for a link with a peer.
    pub(super) fn want(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let now_ns = self.now_ns;
        let peer = self.peers.at(place);
        peer.wanted_ns = now_ns;
        if !peer.wanted && !peer.is_linked() {
            (peer.wanted, peer.lingers) = (true, false);
            links.want(peer.node, true);
        }
    }

    /// Asks for it no longer, if nothing needs it.
    pub(super) fn want_no_more(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let peer = self.peers.at(place);
        let tried_for = peer.wanted || peer.lingers;
        if tried_for && !peer.is_linked() && peer.asked.is_empty() && peer.busy.is_empty() {
            (peer.wanted, peer.lingers) = (false, false);
            peer.absent = false;
            links.want(peer.node, false);
        }
    }
}

/// A payload of this node's own.
pub(super) fn copied<B>(bytes: &[u8]) -> Payload<B> {
    match Short::new(bytes) {
        Some(short) => Payload::Short(short),
        None => {
            // With room for one more: see the C interface, which ends packets with a zero.
            let mut owned = Vec::with_capacity(bytes.len() + 1);
            owned.extend_from_slice(bytes);
            Payload::Owned(owned)
        }
    }
}
