//! Messages: no connection, priorities, credit per pair of sending node and receiving endpoint.
//!
//! What you may rely on: a message that was sent ([`Sending::Done`], or its request completed) is in the receiving node;
//! messages of one priority from one node to one endpoint arrive in the order they were sent, in both forms of sending.
//!
//! A message to an endpoint that is connected is refused, here and elsewhere, as soon as this node has heard of the connection;
//! one that was sent before is queued like those that were there: it can be received. Over a new link nothing is sent before
//! the peer has said which of its endpoints are connected.
//!
//! How it works: see `peer::flow` for the credit, `inbox` for the receiving side. A node tells every linked one which of its endpoints
//! are connected, see `peer::news`. The blocking form sends or refuses; the other
//! queues its message in the flow, where nothing of the blocking form overtakes it.

use alloc::vec::Vec;

use super::output::copied;
use super::peer::flow::Waiting;
use super::peer::news::Item;
use super::peers::{ME, Unconfirmed};
use super::requests::{Doing, REQUESTS_MAX};
use super::table::Endpoint;
use super::{Engine, Outcome, RequestId, Sending};
use crate::engine::frame::{Header, Kind, class_of};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::{EndpointId, Error};
use musubi_transport::links::{Block, Links, Sent};

/// Most messages that may wait to be sent to one endpoint, and packets on one channel.
pub const SEND_BUFFERS: usize = 256;

impl<B: Block> Engine<B> {
    /// Sends a message now, if it can go. An endpoint that has gone takes and drops it.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::MessageSize`], [`Error::Priority`], [`Error::General`] for a connected endpoint.
    #[inline]
    pub fn send_message(
        &mut self,
        from: EndpointId,
        to: EndpointId,
        priority: u32,
        payload: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        self.check_message(from, priority, payload.len())?;
        let place = self.destination(to, links)?;
        let sending = self.send_now(place, from, to, priority as u8, payload, links)?;
        self.settle(links);
        Ok(sending)
    }

    /// Sends a message when it can go; completes with `Outcome::Sent` or [`Error::Transmission`].
    ///
    /// # Errors
    /// As above; [`Error::RequestLimit`], [`Error::MemoryLimit`].
    pub fn send_message_later(
        &mut self,
        from: EndpointId,
        to: EndpointId,
        priority: u32,
        payload: Vec<u8>,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        self.check_message(from, priority, payload.len())?;
        let place = self.destination(to, links)?;
        if self.requests.live() >= REQUESTS_MAX {
            return Err(Error::RequestLimit);
        }
        let request = match self.send_now(place, from, to, priority as u8, &payload, links)? {
            Sending::Done => self.requests.create_complete(Ok(Outcome::Sent(payload.len())))?,
            Sending::Confirming(request) => request,
            Sending::Blocked => self.queue_message(place, from, to, priority as u8, payload)?,
        };
        self.settle(links);
        Ok(request)
    }

    #[inline]
    fn check_message(&self, from: EndpointId, priority: u32, bytes: usize) -> Result<(), Error> {
        let endpoint = self.our(from)?;
        if bytes > MESSAGE_BYTES_MAX || bytes > endpoint.attributes.payload_max as usize {
            return Err(Error::MessageSize);
        }
        if priority >= endpoint.attributes.priorities {
            return Err(Error::Priority);
        }
        Ok(())
    }

    /// The place of an endpoint's owner.
    #[inline]
    fn destination(&mut self, to: EndpointId, links: &mut impl Links<Block = B>) -> Result<u16, Error> {
        match self.peers.find(to.node()) {
            Some(place) => Ok(place),
            None if links.knows(to.node()) => Ok(self.peers.enter(to.node())),
            None => Err(Error::EndpointInvalid),
        }
    }

    #[inline]
    fn send_now(
        &mut self,
        place: u16,
        from: EndpointId,
        to: EndpointId,
        priority: u8,
        payload: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        let peer = self.peers.at(place);
        if !peer.heard {
            return self.send_unheard(place, to, links);
        }
        if peer.refuses(to) {
            return Err(Error::General);
        }
        if !peer.outbox.is_empty() {
            return Ok(Sending::Blocked);
        }
        let Some(flow) = peer.flow(to) else { return Ok(Sending::Blocked) };
        if !flow.waiting.is_empty() || !flow.has_credit() {
            return Ok(Sending::Blocked);
        }
        let header = message_header(from, to, priority, payload.len());
        if place == ME {
            if self.endpoints.never_had(to) {
                return Err(Error::EndpointInvalid);
            }
            flow.sent = flow.sent.wrapping_add(1);
            peer.counters.count_sent(payload.len());
            self.message(ME, &header, copied(payload), links);
            return Ok(Sending::Done);
        }
        if self.requests.live() >= REQUESTS_MAX {
            return Ok(Sending::Blocked);
        }
        let sent = links.send(to.node(), &header, payload);
        if matches!(sent, Sent::Full | Sent::NoLink) {
            return Ok(Sending::Blocked);
        }
        flow.sent = flow.sent.wrapping_add(1);
        peer.counters.count_sent(payload.len());
        let Sent::Numbered(number) = sent else { return Ok(Sending::Done) };
        let request = self.requests.create(Doing::Confirm { bytes: payload.len() as u32 })?;
        let unconfirmed = Unconfirmed { number, request: Some(request) };
        self.peers.at(place).unconfirmed[header.class.index()].push_back(unconfirmed);
        Ok(Sending::Confirming(request))
    }

    /// There is no link, or the peer has not said yet which of its endpoints take no messages: it does so first thing.
    #[cold]
    fn send_unheard(
        &mut self,
        place: u16,
        to: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        let peer = self.peers.at(place);
        match (peer.is_linked(), peer.refuses(to)) {
            (false, _) => self.send_unlinked(place, to, links),
            (true, true) => Err(Error::General),
            (true, false) => Ok(Sending::Blocked),
        }
    }

    /// There is no link. To a node that has gone, what we knew of it has gone too. Anything else is tried for.
    fn send_unlinked(
        &mut self,
        place: u16,
        to: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        let peer = self.peers.at(place);
        if peer.known_flow(to).is_some_and(|flow| flow.dead) {
            return Ok(Sending::Done);
        }
        if !core::mem::take(&mut peer.absent) {
            self.want(place, links);
            return Ok(Sending::Blocked);
        }
        let fate = self.peers.at(place).standing.fate();
        self.want_no_more(place, links);
        fate.map(|()| Sending::Done)
    }

    fn queue_message(
        &mut self,
        place: u16,
        from: EndpointId,
        to: EndpointId,
        priority: u8,
        payload: Vec<u8>,
    ) -> Result<RequestId, Error> {
        if self.our(from)?.attributes.fails_on_memory_limit() {
            return Err(Error::MemoryLimit);
        }
        let peer = self.peers.at(place);
        let Some(flow) = peer.flow(to).filter(|flow| flow.waiting.len() < SEND_BUFFERS) else {
            return Err(Error::MemoryLimit);
        };
        let request = self.requests.create(Doing::Send { to })?;
        let first = flow.waiting.is_empty();
        flow.waiting.push_back(Waiting { request, from, priority, payload });
        if first {
            peer.busy.push(to);
        }
        Ok(request)
    }

    /// An endpoint of ours has been connected or parted: this node knows at once, linked ones as soon as they have room.
    pub(super) fn announce_connected(&mut self, id: EndpointId, links: &mut impl Links<Block = B>) {
        let header = self.connected_frame(id);
        self.emit_at(ME, header, &[], links);
        for place in 1..self.peers.list.len() as u16 {
            let peer = self.peers.at(place);
            if peer.is_linked() {
                peer.news.changed(id.slot(), id.generation());
                self.tell_news(place, links);
            }
        }
    }

    /// A link begins: the peer is told of all our endpoints that are connected, and then that this was all.
    pub(super) fn begin_news(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let endpoints = self.endpoints.beginning_at(0);
        let connected = endpoints.filter(|endpoint| is_announced(endpoint)).map(|endpoint| endpoint.id);
        let connected: Vec<_> = connected.map(|id| (id.slot(), id.generation())).collect();
        self.peers.at(place).news.begin(connected.into_iter());
        self.tell_news(place, links);
    }

    /// Tells a peer what it was not told yet, as much as there is room for and may be told at a time.
    pub(super) fn tell_news(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let now_ns = self.now_ns;
        while let Some(item) = self.peers.at(place).news.next(now_ns) {
            let header = match item {
                Item::Endpoint(slot, generation) => self.connected_frame(EndpointId::new(self.me, slot, generation)),
                Item::ThatWasAll => Header::new(Kind::Connected as u8),
            };
            if matches!(self.transmit_at(place, header, &[], links), Sent::Full | Sent::NoLink) {
                return;
            }
            self.peers.at(place).news.was_told(item);
        }
        if !self.peers.at(place).news.is_empty() {
            self.say_later(place);
        }
    }

    /// What is said of an endpoint of ours now, which may have gone.
    fn connected_frame(&self, id: EndpointId) -> Header {
        let connected = self.endpoints.get(id).is_some_and(is_announced);
        Header { from: id.bits(), value: u32::from(connected), ..Header::new(Kind::Connected as u8) }
    }

    /// An endpoint of a peer takes no messages, or takes them again: what waits for it is refused, or goes. Without an
    /// endpoint: that was all as the link began.
    pub(super) fn connected(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let peer = self.peers.at(place);
        if header.from == 0 {
            peer.heard = true;
            self.changes += 1;
            return self.send_waiting(place, links);
        }
        let Some(id) = EndpointId::from_bits(header.from).filter(|id| id.node() == peer.node) else {
            return self.refuse(place, |counters| &mut counters.not_theirs);
        };
        self.changes += 1;
        if header.value == 0 {
            peer.connected.remove(&id.slot());
            return;
        }
        peer.connected.insert(id.slot(), id.generation());
        peer.busy.retain(|busy| *busy != id);
        let waiting = peer.known_flow(id).map(|flow| core::mem::take(&mut flow.waiting));
        for message in waiting.into_iter().flatten() {
            self.complete(message.request, Err(Error::General));
        }
    }

    pub(super) fn cancel_send(&mut self, request: RequestId, to: EndpointId) {
        let Some(place) = self.peers.find(to.node()) else { return };
        let peer = self.peers.at(place);
        let Some(flow) = peer.known_flow(to) else { return };
        flow.waiting.retain(|message| message.request != request);
        if flow.waiting.is_empty() {
            peer.busy.retain(|busy| *busy != to);
        }
    }

    /// Credit has come back.
    pub(super) fn message_credit(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let peer = self.peers.at(place);
        let Some(id) = EndpointId::from_bits(header.from).filter(|id| id.node() == peer.node) else {
            self.refuse(place, |counters| &mut counters.not_theirs);
            return;
        };
        let Some(flow) = peer.known_flow(id) else { return };
        let (back, under_way) = (header.value.wrapping_sub(flow.taken), flow.sent.wrapping_sub(flow.taken));
        if back > under_way {
            self.refuse(place, |counters| &mut counters.malformed);
            return;
        }
        flow.taken = header.value;
        self.changes += 1;
        self.send_from_flow(place, id, links);
    }

    /// Sends what waits for one endpoint, as far as it can go.
    pub(super) fn send_from_flow(&mut self, place: u16, id: EndpointId, links: &mut impl Links<Block = B>) {
        while let Some((sent, message)) = self.send_first(place, id, links) {
            let bytes = message.payload.len();
            match sent {
                Sent::Numbered(_) => {
                    if let Some(pending) = self.requests.pending_mut(message.request) {
                        pending.doing = Doing::Confirm { bytes: bytes as u32 };
                    }
                    let (node, class) = (self.peers.at(place).node, class_of(message.priority));
                    self.confirm_latest(node, class, message.request);
                }
                _ => self.complete(message.request, Ok(Outcome::Sent(bytes))),
            }
        }
    }

    /// Sends the first that waits; `None` if there is none or it cannot go.
    fn send_first(&mut self, place: u16, id: EndpointId, links: &mut impl Links<Block = B>) -> Option<(Sent, Waiting)> {
        let peer = self.peers.at(place);
        if !peer.heard {
            return None;
        }
        let flow = peer.known_flow(id)?;
        if !flow.has_credit() {
            return None;
        }
        let message = flow.waiting.pop_front()?;
        let header = message_header(message.from, id, message.priority, message.payload.len());
        let sent = self.transmit_at(place, header, &message.payload, links);
        let peer = self.peers.at(place);
        let flow = peer.known_flow(id)?;
        if matches!(sent, Sent::Full | Sent::NoLink) {
            flow.waiting.push_front(message);
            return None;
        }
        flow.sent = flow.sent.wrapping_add(1);
        let empty = flow.waiting.is_empty();
        peer.counters.count_sent(message.payload.len());
        if empty {
            peer.busy.retain(|busy| *busy != id);
        }
        Some((sent, message))
    }

    /// Sends all that waits for endpoints of a peer, as far as it can go.
    pub(super) fn send_waiting(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        for id in self.peers.at(place).busy.clone() {
            self.send_from_flow(place, id, links);
        }
    }

    /// All that waits for endpoints of a peer will not go: it was dropped, or failed.
    pub(super) fn fail_waiting(&mut self, place: u16, fate: Result<(), Error>) {
        for id in core::mem::take(&mut self.peers.at(place).busy) {
            let waiting = self.peers.at(place).known_flow(id).map(|flow| core::mem::take(&mut flow.waiting));
            for message in waiting.into_iter().flatten() {
                self.complete(message.request, fate.map(|()| Outcome::Sent(message.payload.len())));
            }
        }
    }
}

/// Whether an endpoint of ours takes no messages because it is connected.
fn is_announced<B>(endpoint: &Endpoint<B>) -> bool {
    endpoint.channel.as_ref().is_some_and(|end| end.wire.number != 0)
}

fn message_header(from: EndpointId, to: EndpointId, priority: u8, bytes: usize) -> Header {
    let header = Header::new(Kind::Message as u8);
    Header { class: class_of(priority), length: bytes as u32, from: from.bits(), to: to.bits(), ..header }
}
