//! Ends of channels: what an endpoint has while it is connected or being opened, and what comes in for it.
//!
//! What you may rely on: an end is found by its handle and by a frame in a few steps; frames of a connection that has ended
//! change nothing; when a link ends every connection over it ends on both sides, and every request about it completes.
//!
//! How it works: [`ChannelState`] decides, this file carries out what it says ([`Engine::carry_out`]). A handle names an
//! endpoint's place and one opening of it, so that it means nothing after the close.
//!
//! What it does not do: connecting ([`super::connect`]), opening and closing ([`super::opening`]), traffic
//! ([`super::packets`], [`super::scalars`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::channel::end::ChannelEnd;
use super::channel::state::Todo;
use super::table::Endpoint;
use super::{ChannelHandle, ChannelKind, Engine, Outcome, RequestId, endpoint_type};
use crate::engine::frame::{Header, Kind};
use crate::limits::ENDPOINTS_MAX;
use crate::{EndpointId, Error, NodeId};
use musubi_transport::links::{Block, Links, Loss, Payload};

/// Bits of a handle that name the endpoint's place; the others, below the highest, name the opening.
const SLOT_BITS: u32 = ENDPOINTS_MAX.trailing_zeros();
const OPENING_MAX: u32 = (1 << (31 - SLOT_BITS)) - 1;

/// What the channels of a node have in common.
#[derive(Debug, Default)]
pub(super) struct Channels {
    openings: u32,
    /// Places of endpoints whose sending waits for room on a link, by the peer's place.
    blocked: Vec<Vec<u16>>,
}

impl Channels {
    pub fn next_handle(&mut self, at: EndpointId) -> u32 {
        self.openings = if self.openings == OPENING_MAX { 1 } else { self.openings + 1 };
        self.openings << SLOT_BITS | u32::from(at.slot())
    }

    pub fn block(&mut self, place: u16, slot: u16) {
        if self.blocked.len() <= usize::from(place) {
            self.blocked.resize_with(usize::from(place) + 1, Vec::new);
        }
        self.blocked[usize::from(place)].push(slot);
    }
}

impl ChannelKind {
    /// The value of an endpoint's type attribute, also on the wire.
    pub(super) fn number(self) -> u32 {
        match self {
            ChannelKind::Packet => endpoint_type::PACKET_CHANNEL,
            ChannelKind::Scalar => endpoint_type::SCALAR_CHANNEL,
        }
    }

    pub(super) fn from_number(number: u32) -> Option<ChannelKind> {
        match number {
            endpoint_type::PACKET_CHANNEL => Some(ChannelKind::Packet),
            endpoint_type::SCALAR_CHANNEL => Some(ChannelKind::Scalar),
            _ => None,
        }
    }
}

impl<B: Block> Engine<B> {
    /// The endpoint of a handle, for its timeout attribute.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`].
    pub fn channel_endpoint(&self, handle: ChannelHandle) -> Result<EndpointId, Error> {
        let found = self
            .endpoints
            .in_slot(slot_of(handle))
            .filter(|endpoint| endpoint.channel.as_ref().is_some_and(|end| end.handle == handle.0));
        found.map(|endpoint| endpoint.id).ok_or_else(|| self.no_channel())
    }

    /// The end of a handle.
    #[inline]
    pub(super) fn end_of(&mut self, handle: ChannelHandle) -> Result<&mut ChannelEnd<B>, Error> {
        let left = self.left;
        let end = self.endpoints.in_slot_mut(slot_of(handle)).and_then(|endpoint| endpoint.channel.as_deref_mut());
        match end {
            Some(end) if end.handle == handle.0 && handle.0 != 0 => Ok(end),
            _ if left => Err(Error::NodeNotInitialized),
            _ => Err(Error::ChannelInvalid),
        }
    }

    fn no_channel(&self) -> Error {
        if self.left { Error::NodeNotInitialized } else { Error::ChannelInvalid }
    }

    /// The end of one of our endpoints, if it is one of a channel.
    pub(super) fn end_at(&mut self, at: EndpointId) -> Option<&mut ChannelEnd<B>> {
        self.endpoints.get_mut(at)?.channel.as_deref_mut()
    }

    /// The end of one of our endpoints; it has one from now on.
    pub(super) fn end_made_at(&mut self, at: EndpointId) -> Result<&mut ChannelEnd<B>, Error> {
        let endpoint = self.endpoints.get_mut(at).ok_or(Error::EndpointInvalid)?;
        Ok(endpoint.channel.get_or_insert_with(|| Box::new(ChannelEnd::new())))
    }

    /// Forgets an end of which nothing is left.
    pub(super) fn forget_idle(&mut self, at: EndpointId) {
        if let Some(endpoint) = self.endpoints.get_mut(at) {
            endpoint.channel.take_if(|end| end.state.is_idle());
        }
    }

    /// A frame about channels, from a node that is linked or from this one.
    pub(super) fn channel_frame(
        &mut self,
        place: u16,
        kind: Kind,
        header: Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        match kind {
            Kind::Packet => self.packet(place, &header, payload, links),
            Kind::Scalar => self.scalar(place, &header, payload.word(), links),
            Kind::ChannelCredit => self.channel_credit(place, &header, links),
            Kind::Connect => self.connect_asked(place, &header, links),
            Kind::ConnectAccept => self.accept_asked(place, &header, &payload, links),
            Kind::ConnectReply => self.connect_reply(place, &header, links),
            Kind::Disconnect => self.disconnect(place, &header, links),
            Kind::Open => self.peer_opened(place, &header, links),
            Kind::Close => self.peer_closed(place, &header, links),
            _ => self.refuse(place, |counters| &mut counters.malformed),
        }
    }

    /// Our end `to` of a peer's connection `number`, if it is still that one's.
    #[inline]
    pub(super) fn end_for(&mut self, place: u16, to: u32, number: u32) -> Option<(EndpointId, &mut ChannelEnd<B>)> {
        let found = EndpointId::from_bits(to).and_then(|id| {
            let end = self.endpoints.get_mut(id)?.channel.as_deref_mut()?;
            (end.wire.expected == number && number != 0 && end.wire.place == place).then_some((id, end))
        });
        if found.is_none() {
            self.counters.late += 1;
        }
        found
    }

    /// Counts a frame that a peer which follows the protocol does not send.
    pub(super) fn contradicts(&mut self, place: u16) {
        self.refuse(place, |counters| &mut counters.contradictory);
    }

    /// Does what the state of an end has decided.
    pub(super) fn carry_out(&mut self, at: EndpointId, todo: Todo, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(at) else { return };
        let wire = end.wire;
        if let Some(open) = todo.tell_open {
            let header =
                Header { to: wire.to, tag: wire.number, value: u32::from(open), ..Header::new(Kind::Open as u8) };
            self.emit_at(wire.place, header, &[], links);
        }
        if let Some(result) = todo.opened {
            self.opened(at, result);
        }
        if let Some(error) = todo.peer_ended {
            self.peer_ended(at, error);
        }
        if todo.tell_close {
            self.tell_close(at, wire, todo.parted, links);
        }
        if todo.closed {
            self.closed(at);
        }
        if todo.parted {
            self.part(at, links);
        }
    }

    fn opened(&mut self, at: EndpointId, result: Result<(), Error>) {
        let Some(end) = self.end_at(at) else { return };
        if result.is_err() {
            end.handle = 0;
        }
        if let Some(request) = end.opening.take() {
            self.complete(request, result.map(|()| Outcome::Plain));
        }
    }

    /// Nothing more comes from the other end, and it takes nothing more: those who wait are told.
    fn peer_ended(&mut self, at: EndpointId, error: Error) {
        self.changes += 1;
        let Some(end) = self.end_at(at) else { return };
        let mut waiting: Vec<RequestId> = end.queue.drain(..).map(|packet| packet.request).collect();
        end.queue_bytes = 0;
        if end.unread() == 0 {
            waiting.extend(end.receivers.drain(..));
        }
        for request in waiting {
            self.complete(request, Err(error));
        }
    }

    /// The connection is no more; an opening that is pending stays so.
    fn part(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        self.changes += 1;
        let Some(endpoint) = self.endpoints.get_mut(at) else { return };
        let Some(end) = endpoint.channel.take() else { return };
        if end.wire.number != 0 {
            endpoint.attributes.kind = endpoint_type::MESSAGE;
        }
        let waiting = end.queue.iter().map(|packet| packet.request).chain(end.receivers.iter().copied());
        let waiting: Vec<RequestId> = waiting.collect();
        if !end.state.is_idle() {
            let (state, handle, opening) = (end.state, end.handle, end.opening);
            endpoint.channel = Some(Box::new(ChannelEnd { state, handle, opening, ..ChannelEnd::new() }));
        }
        for request in waiting {
            self.complete(request, Err(Error::ChannelInvalid));
        }
        if end.wire.number != 0 {
            self.announce_connected(at, links);
        }
    }

    /// The link with a node has ended: so have the connections over it, and what was asked of it.
    pub(super) fn channel_peer_down(&mut self, node: NodeId, _loss: Loss, links: &mut impl Links<Block = B>) {
        let Some(place) = self.peers.find(node) else { return };
        for at in self.channel_ends() {
            let Some(end) = self.end_at(at) else { continue };
            end.connected_by.take_if(|by| by.place == place);
            if end.asking.is_some_and(|asking| asking.to.node() == node) {
                self.asking_over(at, Err(Error::Transmission), links);
            } else if end.wire.number != 0 && end.wire.place == place {
                let todo = end.state.lost();
                self.carry_out(at, todo, links);
            }
        }
        if let Some(blocked) = self.channels.blocked.get_mut(usize::from(place)) {
            *blocked = Vec::new();
        }
    }

    /// Nobody answers for a node: what was asked of it has failed.
    pub(super) fn channel_peer_absent(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        for at in self.channel_ends() {
            let asking = self.end_at(at).and_then(|end| end.asking).filter(|asking| asking.to.node() == node);
            if let Some(Ok(Some(Err(error)))) = asking.map(|asking| self.take_outcome(asking.request)) {
                self.asking_over(at, Err(error), links);
            }
        }
    }

    /// The link with a node has room again.
    pub(super) fn channel_room(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        let Some(place) = self.peers.find(node) else { return };
        let Some(blocked) = self.channels.blocked.get_mut(usize::from(place)) else { return };
        for slot in core::mem::take(blocked) {
            let Some(at) = self.endpoints.in_slot(slot).map(|endpoint| endpoint.id) else { continue };
            if let Some(end) = self.end_at(at) {
                end.blocked = false;
                self.send_queued(at, links);
            }
        }
    }

    /// Whether an endpoint is an end of a channel: no messages, no attributes to be set.
    pub(super) fn channel_is_connected(&self, endpoint: &Endpoint<B>) -> bool {
        endpoint.channel.as_ref().is_some_and(|end| end.state.is_bound())
    }

    /// Whether an endpoint may not be deleted. An opening that waits for a connection is no hindrance.
    pub(super) fn channel_forbids_delete(&self, endpoint: EndpointId) -> bool {
        self.endpoints.get(endpoint).is_some_and(|endpoint| self.channel_is_connected(endpoint))
    }

    /// An endpoint that is not connected is about to be deleted: an opening of it fails.
    pub(super) fn channel_endpoint_deleted(&mut self, endpoint: EndpointId) {
        if let Some(request) = self.end_at(endpoint).and_then(|end| end.opening.take()) {
            self.complete(request, Err(Error::EndpointDeleted));
        }
    }

    fn channel_ends(&self) -> Vec<EndpointId> {
        self.endpoints
            .beginning_at(0)
            .filter(|endpoint| endpoint.channel.is_some())
            .map(|endpoint| endpoint.id)
            .collect()
    }
}

#[inline]
fn slot_of(handle: ChannelHandle) -> u16 {
    handle.0 as u16 & (ENDPOINTS_MAX as u16 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_openings_begin_anew_after_the_last_and_never_are_none() {
        let owner = NodeId::new(0, 1).unwrap();
        let at = EndpointId::new(owner, ENDPOINTS_MAX as u16 - 1, 1);
        let mut channels = Channels { openings: OPENING_MAX - 2, ..Channels::default() };
        let handles = [(); 4].map(|()| ChannelHandle(channels.next_handle(at)));
        let openings = handles.map(|handle| handle.0 >> SLOT_BITS);
        assert_eq!(openings, [OPENING_MAX - 1, OPENING_MAX, 1, 2]);
        for handle in handles {
            assert_eq!((slot_of(handle), handle.0 >> 31), (at.slot(), 0));
        }
    }
}
