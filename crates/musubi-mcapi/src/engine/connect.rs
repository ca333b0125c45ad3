//! Connecting: by either end's node, or by one that owns neither.
//!
//! What you may rely on: two ends are connected on both nodes or on neither, whoever asks and however many ask at once;
//! the first whose question reaches the owner of the sending end wins, others are told that the end is connected. Two
//! connections of the same ends in opposite directions that cross: the one whose sending end has the smaller name wins.
//!
//! How it works: `Connect` goes to the owner of the sending end, `ConnectAccept` from there to the owner of the receiving
//! end, the answers the same way back. The second question's request number is the connection's number. A connecting
//! that is cancelled is undone as long as the sending end has not been opened. Who gives a connection up that was never
//! used parts its end and tells the other owner; nothing waits for an answer, so a peer that gives none keeps nothing.
//!
//! Where the standard contradicts itself: an endpoint that somebody has got cannot be connected, but every program gets
//! it before it connects. Here gets by the connecting node and by the two owners do not count; one by anybody else does.

use super::channel::end::{Asker, Asking, ChannelEnd, ChannelRequest, OF_RECEIVER, Wire};
use super::channel::state::{Role, Todo};
use super::requests::Doing;
use super::{ChannelKind, Engine, Outcome, RequestId};
use crate::engine::frame::{Header, Kind, class_of};
use crate::limits::PACKET_BYTES_MAX;
use crate::{EndpointId, Error, NodeId};
use alloc::vec::Vec;
use musubi_transport::links::{Block, Links, Payload};

/// Bit of the memory type: an operation that would have to wait for memory fails instead.
const FAIL_ON_MEMORY_LIMIT: u32 = 0x0001_0000;
/// Attributes that both ends must have equal: payload, buffer type, memory type, priorities, priority.
const COMPARED: usize = 5;
const COMPARED_BYTES: usize = 4 * COMPARED;

impl<B: Block> Engine<B> {
    /// Connects two endpoints anywhere; completes with `Outcome::Plain` once both owners know.
    ///
    /// # Errors
    /// At once: [`Error::EndpointInvalid`] (also if both are one), [`Error::RequestLimit`]. From the request:
    /// [`Error::EndpointInvalid`], [`Error::ChannelConnected`], [`Error::ChannelClosePending`], [`Error::EndpointGetLimit`],
    /// [`Error::AttributeIncompatible`], [`Error::Transmission`].
    pub fn connect(
        &mut self,
        kind: ChannelKind,
        from: EndpointId,
        to: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        self.alive()?;
        if from == to {
            return Err(Error::EndpointInvalid);
        }
        for end in [from, to] {
            if self.known_node(end, links)? == self.me && self.endpoints.get(end).is_none() {
                return Err(Error::EndpointInvalid);
            }
        }
        let doing = Doing::Channel(ChannelRequest::Connect { kind, from, to });
        let request = self.ask(from.node(), doing, links)?;
        self.settle(links);
        Ok(request)
    }

    /// The question of a request, said to the owner of the end that it is about.
    pub(super) fn channel_question(&mut self, doing: ChannelRequest) -> Option<(Header, Vec<u8>)> {
        match doing {
            ChannelRequest::Connect { kind, from, to } => {
                let (from, to) = (from.bits(), to.bits());
                Some((Header { from, to, value: kind.number(), ..Header::new(Kind::Connect as u8) }, Vec::new()))
            }
            ChannelRequest::Accept { from } => {
                let asking = self.end_at(from)?.asking?;
                let asker = self.peers.at(asking.asker.place).node.index() as u32;
                let (to, value) = (asking.to.bits(), asking.kind.number() | asker << 16);
                let header = Header { from: from.bits(), to, value, ..Header::new(Kind::ConnectAccept as u8) };
                Some((header, self.compared(from)?.iter().flat_map(|value| value.to_le_bytes()).collect()))
            }
            _ => None,
        }
    }

    /// Somebody asks this node to connect its endpoint `from`.
    pub(super) fn connect_asked(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let asker = Asker { place, tag: header.tag };
        if let Err(error) = self.begin_asking(asker, header, links) {
            self.answer(asker, Err(error), links);
        }
    }

    fn begin_asking(&mut self, asker: Asker, header: &Header, links: &mut impl Links<Block = B>) -> Result<(), Error> {
        let (kind, from, to) = named(header)?;
        let node = self.known_node(to, links)?;
        if self.endpoints.get(from).is_none() {
            return Err(Error::EndpointInvalid);
        }
        let asker_node = self.peers.at(asker.place).node;
        self.may_connect(from, to, asker_node)?;
        let end = self.end_made_at(from)?;
        end.state.ask(Role { kind, receives: false });
        end.asking = Some(Asking { kind, to, asker, request: RequestId(0) });
        let asked = self.ask(node, Doing::Channel(ChannelRequest::Accept { from }), links);
        let Some(end) = self.end_at(from) else { return Ok(()) };
        match (asked, &mut end.asking) {
            (Ok(request), Some(asking)) => asking.request = request,
            (Err(error), _) => {
                end.asking = None;
                let todo = end.state.ask_failed();
                self.carry_out(from, todo, links);
                return Err(error);
            }
            (Ok(_), None) => {}
        }
        Ok(())
    }

    /// Whether an endpoint of ours may be connected with `other`, at the wish of `asker`.
    fn may_connect(&mut self, ours: EndpointId, other: EndpointId, asker: NodeId) -> Result<(), Error> {
        if let Some(end) = self.end_at(ours) {
            end.state.may_join()?;
        }
        let counts = |node: NodeId| node != asker && node != ours.node() && node != other.node();
        match self.getters(ours).iter().any(|(node, _)| counts(*node)) {
            true => Err(Error::EndpointGetLimit),
            false => Ok(()),
        }
    }

    /// The owner of a sending end asks us to accept its connection with our endpoint `to`.
    pub(super) fn accept_asked(
        &mut self,
        place: u16,
        header: &Header,
        payload: &Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        let asker = Asker { place, tag: header.tag };
        let accepted = self.accept(place, header, payload, links);
        let joined = accepted.ok().zip(EndpointId::from_bits(header.from)).and_then(|((kind, to), from)| {
            let todo = self.join(to, from, Role { kind, receives: true }, header.tag, links)?;
            Some((to, todo))
        });
        self.answer(asker, accepted.map(|_| ()), links);
        if let Some((to, todo)) = joined {
            self.carry_out(to, todo, links);
        }
    }

    fn accept(
        &mut self,
        place: u16,
        header: &Header,
        payload: &Payload<B>,
        links: &mut impl Links<Block = B>,
    ) -> Result<(ChannelKind, EndpointId), Error> {
        let (kind, from, to) = named(header)?;
        let asker = NodeId::from_index((header.value >> 16) as usize).ok_or(Error::NodeInvalid)?;
        if from.node() != self.peers.at(place).node {
            self.refuse(place, |counters| &mut counters.not_theirs);
            return Err(Error::EndpointInvalid);
        }
        let ours = self.compared(to).ok_or(Error::EndpointInvalid)?;
        self.clear_for(from, to, place, links);
        self.may_connect(to, from, asker)?;
        let mut theirs = [0; COMPARED_BYTES];
        let equal = payload.copy_to(&mut theirs) == COMPARED_BYTES
            && ours.iter().zip(theirs.chunks(4)).all(|(ours, theirs)| ours.to_le_bytes() == theirs);
        if equal && header.tag != 0 && header.tag < OF_RECEIVER {
            Ok((kind, to))
        } else {
            Err(Error::AttributeIncompatible)
        }
    }

    /// What stands in the way of a connection only because its news is still on the way, or because it yields, goes.
    fn clear_for(&mut self, from: EndpointId, to: EndpointId, place: u16, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(to) else { return };
        if end.state.is_closing() && end.wire.place == place && end.wire.to == from.bits() {
            // Its owner connects it anew, so it has closed it; that news is behind data that we discard.
            let todo = end.state.lost();
            self.carry_out(to, todo, links);
        } else if end.asking.is_some_and(|asking| asking.to == from) && from < to {
            self.asking_over(to, Err(Error::ChannelConnected), links);
        }
    }

    /// An answer to a question about connecting: of a program here, or our own to the receiving end's owner.
    pub(super) fn connect_reply(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((request, doing)) = self.question(place, header.tag) else { return };
        let result = Error::from_wire(header.status).map_or(Ok(()), Err);
        match doing {
            Doing::Channel(ChannelRequest::Connect { .. }) => {
                self.complete(request, result.map(|()| Outcome::Plain));
            }
            Doing::Channel(ChannelRequest::Accept { from }) => self.asking_over(from, result, links),
            _ => self.refuse(place, |counters| &mut counters.unasked),
        }
    }

    /// The receiving end's owner has accepted or refused, or cannot be asked.
    pub(super) fn asking_over(
        &mut self,
        from: EndpointId,
        result: Result<(), Error>,
        links: &mut impl Links<Block = B>,
    ) {
        let Some(end) = self.end_at(from) else { return };
        let Some(asking) = end.asking.take() else { return };
        self.forget_asking(asking);
        let joined = result.ok().and_then(|()| {
            self.end_at(from)?.connected_by = Some(asking.asker);
            let role = Role { kind: asking.kind, receives: false };
            self.join(from, asking.to, role, asking.request.0, links)
        });
        self.answer(asking.asker, result, links);
        match (result, joined) {
            (Ok(()), Some(todo)) => self.carry_out(from, todo, links),
            (Ok(()), None) => {}
            (Err(_), _) => self.ask_failed(from, links),
        }
    }

    fn ask_failed(&mut self, from: EndpointId, links: &mut impl Links<Block = B>) {
        if let Some(end) = self.end_at(from) {
            let todo = end.state.ask_failed();
            self.carry_out(from, todo, links);
        }
    }

    fn forget_asking(&mut self, asking: Asking) {
        self.complete(asking.request, Ok(Outcome::Plain));
        let _ = self.take_outcome(asking.request);
    }

    /// Says to who asked what became of it; the question's tag says of which.
    fn answer(&mut self, asker: Asker, result: Result<(), Error>, links: &mut impl Links<Block = B>) {
        let status = result.map_or_else(Error::wire, |()| 0);
        let header = Header { tag: asker.tag, status, ..Header::new(Kind::ConnectReply as u8) };
        self.emit_at(asker.place, header, &[], links);
    }

    /// Our end is connected from now on, and others are told that it takes no messages; gives what is to be done once the
    /// answer has been said. That comes after: who hears that the ends are connected knows what goes with it.
    fn join(
        &mut self,
        at: EndpointId,
        with: EndpointId,
        role: Role,
        number: u32,
        links: &mut impl Links<Block = B>,
    ) -> Option<Todo> {
        let place = self.peers.find(with.node())?;
        let endpoint = self.endpoints.get_mut(at)?;
        let attributes = endpoint.attributes;
        endpoint.attributes.kind = role.kind.number();
        let end = self.end_made_at(at).ok()?;
        let class = class_of(attributes.priority as u8);
        let (mut number, mut expected) = (number, number | OF_RECEIVER);
        if role.receives {
            core::mem::swap(&mut number, &mut expected);
        }
        end.wire = Wire { place, class, to: with.bits(), number, expected };
        end.set_limits(attributes.payload_max, attributes.memory_type);
        let todo = end.state.join(role);
        self.changes += 1;
        self.announce_connected(at, links);
        Some(todo)
    }

    /// The owner of an end gives up a connection that nobody has used: it is undone if the sending end has not been opened,
    /// as far as is known here. Ours is free at once, whatever the other owner makes of the news.
    pub(super) fn give_up_connection(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(at).filter(|end| end.state.is_joined()) else { return };
        let wire = end.wire;
        if end.state.role().is_some_and(|role| !role.receives) {
            return self.undo(at, links);
        }
        let Ok(todo) = end.state.give_up() else { return };
        let header = Header { to: wire.to, tag: wire.number, value: 2, ..Header::new(Kind::Disconnect as u8) };
        self.emit_at(wire.place, header, &[], links);
        self.carry_out(at, todo, links);
    }

    /// Undoes the connection, or connecting, of our sending end, if it has not been opened.
    fn undo(&mut self, from: EndpointId, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(from).filter(|end| end.state.may_part()) else { return };
        let (other, number) = match end.asking {
            Some(asking) => (asking.to.bits(), asking.request.0),
            None => (end.wire.to, end.wire.number),
        };
        let asking = end.asking.take();
        let parted = end.state.part();
        let was_asked = asking.is_none_or(|asking| self.was_asked(asking.request));
        if let Some(asking) = asking {
            self.forget_asking(asking);
        }
        if let Some(other) = EndpointId::from_bits(other).filter(|_| was_asked) {
            let header = Header { to: other.bits(), tag: number, value: 1, ..Header::new(Kind::Disconnect as u8) };
            self.emit(other.node(), header, &[], links);
        }
        if let Ok(todo) = parted {
            self.carry_out(from, todo, links);
        }
    }

    /// A connecting is taken back by who asked for it, or undone by the owner of the sending end.
    pub(super) fn disconnect(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        match header.value {
            0 => self.take_back(Asker { place, tag: header.tag }, header.from, links),
            1 => self.undone(place, header, links),
            2 => self.given_up(place, header, links),
            _ => self.refuse(place, |counters| &mut counters.malformed),
        }
    }

    fn take_back(&mut self, asker: Asker, from: u32, links: &mut impl Links<Block = B>) {
        let Some(from) = EndpointId::from_bits(from) else {
            return self.refuse(asker.place, |counters| &mut counters.malformed);
        };
        let Some(end) = self.end_at(from) else { return };
        let theirs = match end.asking {
            Some(asking) => asking.asker == asker,
            None => end.connected_by == Some(asker),
        };
        if theirs {
            self.undo(from, links);
        }
    }

    /// The owner of the receiving end has given the connection up.
    fn given_up(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        let sends = end.state.role().is_some_and(|role| !role.receives);
        match if sends { end.state.given_up() } else { return self.contradicts(place) } {
            Ok(todo) => {
                end.close_due = false;
                self.carry_out(at, todo, links);
            }
            Err(_) => self.contradicts(place),
        }
    }

    fn undone(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        let receives = end.state.role().is_some_and(|role| role.receives);
        match if receives { end.state.part() } else { return self.contradicts(place) } {
            Ok(todo) => self.carry_out(at, todo, links),
            Err(_) => self.contradicts(place),
        }
    }

    /// Attributes of our endpoint that must be equal at the other end.
    fn compared(&self, at: EndpointId) -> Option<[u32; COMPARED]> {
        let attributes = &self.endpoints.get(at)?.attributes;
        let buffer_type = 0;
        let priorities = (attributes.priorities, attributes.priority);
        Some([attributes.payload_max, buffer_type, attributes.memory_type, priorities.0, priorities.1])
    }
}

impl<B> ChannelEnd<B> {
    fn set_limits(&mut self, payload_max: u32, memory_type: u32) {
        self.payload_max = (payload_max as usize).min(PACKET_BYTES_MAX);
        self.fails_when_full = memory_type & FAIL_ON_MEMORY_LIMIT != 0;
    }
}

/// What a question about connecting names.
fn named(header: &Header) -> Result<(ChannelKind, EndpointId, EndpointId), Error> {
    let kind = ChannelKind::from_number(header.value & 0xffff).ok_or(Error::Parameter)?;
    let ends = EndpointId::from_bits(header.from).zip(EndpointId::from_bits(header.to));
    let (from, to) = ends.filter(|(from, to)| from != to).ok_or(Error::EndpointInvalid)?;
    Ok((kind, from, to))
}
