//! Questions for endpoints: they wait at the owner until the endpoint exists.
//!
//! What you may rely on: a question survives that its node dies and comes back; a cancelled one leaves nothing behind, also
//! if its answer was already on the way.
//!
//! How it works: the owner keeps questions by port, at most [`QUESTIONS_MAX`] of one node. It counts the gets of each node at
//! each endpoint. An answer that nobody waits for any more is given back by who asked.

use alloc::vec::Vec;

use super::peers::{ME, QUESTIONS_MAX};
use super::requests::{Doing, Pending};
use super::{Engine, Outcome, RequestId, endpoint_type};
use crate::engine::frame::{Header, Kind};
use crate::limits::{DOMAIN_MAX, PORT_MAX};
use crate::{EndpointId, Error, NodeId};
use musubi_transport::links::{Block, Links};

impl<B: Block> Engine<B> {
    /// Asks for the endpoint at a port, however long it takes to exist; completes with `Outcome::Endpoint`.
    ///
    /// # Errors
    /// [`Error::DomainInvalid`], [`Error::NodeInvalid`], [`Error::PortInvalid`], [`Error::RequestLimit`]. The request may fail with
    /// [`Error::EndpointGetLimit`].
    pub fn get_endpoint(
        &mut self,
        (domain, node): (u32, u32),
        port: u32,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let node = self.node_of(domain, node, links)?;
        if port > PORT_MAX {
            return Err(Error::PortInvalid);
        }
        let request = self.ask(node, Doing::Get { port }, links)?;
        self.settle(links);
        Ok(request)
    }

    /// The node of these numbers, if it can be one of this system.
    pub(super) fn node_of(&self, domain: u32, node: u32, links: &impl Links<Block = B>) -> Result<NodeId, Error> {
        self.alive()?;
        if domain > DOMAIN_MAX {
            return Err(Error::DomainInvalid);
        }
        NodeId::new(domain, node).filter(|node| *node == self.me || links.knows(*node)).ok_or(Error::NodeInvalid)
    }

    /// Gives one get of an endpoint back. Connecting counts as one: if its owner has no other, whoever else has, it gives up
    /// the connection, which is undone if its sending end was not opened.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`]; [`Error::MemoryLimit`] if too much is held back for a node that does not keep up.
    pub fn release_endpoint(&mut self, endpoint: EndpointId, links: &mut impl Links<Block = B>) -> Result<(), Error> {
        let node = self.known_node(endpoint, links)?;
        if node == self.me {
            self.our(endpoint)?;
        }
        if node == self.me && self.gets_of(ME, endpoint) == 0 {
            self.give_up_connection(endpoint, links);
        }
        if let Some(place) = self.peers.find(node) {
            if self.is_crowded(place) {
                return Err(Error::MemoryLimit);
            }
            self.emit_at(place, Header { to: endpoint.bits(), ..Header::new(Kind::Release as u8) }, &[], links);
        }
        self.settle(links);
        Ok(())
    }

    /// The owner of an endpoint, if it can be a node of this system.
    pub(super) fn known_node(&self, endpoint: EndpointId, links: &impl Links<Block = B>) -> Result<NodeId, Error> {
        self.alive()?;
        let node = endpoint.node();
        if node == self.me || links.knows(node) { Ok(node) } else { Err(Error::EndpointInvalid) }
    }

    pub(super) fn get(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        if let Some(endpoint) = self.endpoints.at_port(header.value) {
            return self.answer_get(place, header.tag, endpoint, links);
        }
        let peer = self.peers.at(place);
        if peer.gets_held as usize >= QUESTIONS_MAX || header.value > PORT_MAX {
            self.counters.crowded_out += 1;
            let status = Error::RequestLimit.wire();
            return self.emit_at(
                place,
                Header { tag: header.tag, status, ..Header::new(Kind::GetReply as u8) },
                &[],
                links,
            );
        }
        peer.gets_held += 1;
        self.expected.entry(header.value).or_default().push((place, header.tag));
    }

    /// Answers all who have waited for the port of a new endpoint.
    pub(super) fn answer_expected(&mut self, port: u32, endpoint: EndpointId, links: &mut impl Links<Block = B>) {
        for (place, tag) in self.expected.remove(&port).unwrap_or_default() {
            self.peers.at(place).gets_held -= 1;
            self.answer_get(place, tag, endpoint, links);
        }
    }

    fn answer_get(&mut self, place: u16, tag: u32, id: EndpointId, links: &mut impl Links<Block = B>) {
        let answer = Header { tag, ..Header::new(Kind::GetReply as u8) };
        match self.count_get(place, id) {
            Ok(()) => self.emit_at(place, Header { to: id.bits(), ..answer }, &[], links),
            Err(error) => self.emit_at(place, Header { status: error.wire(), ..answer }, &[], links),
        }
    }

    fn count_get(&mut self, place: u16, id: EndpointId) -> Result<(), Error> {
        let node = self.peers.at(place).node;
        let endpoint = self.endpoints.get(id).ok_or(Error::EndpointInvalid)?;
        let counted = endpoint.gets > 0 || self.channel_is_connected(endpoint);
        if endpoint.attributes.kind != endpoint_type::MESSAGE && counted {
            return Err(Error::EndpointGetLimit);
        }
        let Some(endpoint) = self.endpoints.get_mut(id) else { return Err(Error::EndpointInvalid) };
        endpoint.gets = endpoint.gets.checked_add(1).ok_or(Error::EndpointGetLimit)?;
        endpoint.get_source = Some(node);
        self.intake(place, id).gets += 1;
        Ok(())
    }

    pub(super) fn get_reply(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let owner = self.peers.at(place).node;
        let Some((request, Doing::Get { .. })) = self.question(place, header.tag) else {
            // The answer crossed the question's being taken back: so is the get.
            if header.status == 0 {
                self.emit_at(place, Header { to: header.to, ..Header::new(Kind::Release as u8) }, &[], links);
            }
            return;
        };
        let result = match Error::from_wire(header.status) {
            Some(error) => Err(error),
            None => match EndpointId::from_bits(header.to).filter(|id| id.node() == owner) {
                Some(id) => Ok(Outcome::Endpoint(id)),
                None => {
                    self.refuse(place, |counters| &mut counters.not_theirs);
                    Err(Error::General)
                }
            },
        };
        self.complete(request, result);
    }

    pub(super) fn cancel_get(
        &mut self,
        request: RequestId,
        pending: &Pending,
        port: u32,
        links: &mut impl Links<Block = B>,
    ) {
        let Some((place, _)) = pending.asked.filter(|_| pending.said) else { return };
        let header = Header { tag: request.0, value: port, ..Header::new(Kind::GetCancel as u8) };
        self.emit_at(place, header, &[], links);
    }

    /// A question is taken back. If it is not here any more it was answered, and the answer is given back.
    pub(super) fn get_cancel(&mut self, place: u16, header: &Header) {
        if let Some(waiting) = self.expected.get_mut(&header.value)
            && let Some(at) = waiting.iter().position(|question| *question == (place, header.tag))
        {
            waiting.remove(at);
            if waiting.is_empty() {
                self.expected.remove(&header.value);
            }
            self.peers.at(place).gets_held -= 1;
        }
    }

    pub(super) fn release(&mut self, place: u16, header: &Header) {
        match EndpointId::from_bits(header.to) {
            Some(endpoint) => self.give_back(place, endpoint),
            None => self.refuse(place, |counters| &mut counters.malformed),
        }
    }

    fn give_back(&mut self, place: u16, id: EndpointId) {
        if self.endpoints.get(id).is_none() {
            return;
        }
        let intake = self.intake(place, id);
        if intake.gets == 0 {
            return;
        }
        intake.gets -= 1;
        self.gets_gone(id, 1);
    }

    /// So many gets of an endpoint are no more.
    pub(super) fn gets_gone(&mut self, id: EndpointId, count: u32) {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return };
        endpoint.gets = endpoint.gets.saturating_sub(count);
        if endpoint.gets == 0 {
            endpoint.get_source = None;
        }
    }

    /// The questions of a peer whose link has ended; it asks again.
    pub(super) fn forget_gets_held(&mut self, place: u16) {
        if self.peers.at(place).gets_held == 0 || place == ME {
            return;
        }
        self.peers.at(place).gets_held = 0;
        self.expected.retain(|_, waiting| {
            waiting.retain(|(peer, _)| *peer != place);
            !waiting.is_empty()
        });
    }

    /// How many gets of an endpoint of ours a node holds.
    fn gets_of(&self, place: u16, id: EndpointId) -> u32 {
        let intakes = &self.peers.list[usize::from(place)].intakes;
        let intake = intakes.get(usize::from(id.slot())).filter(|intake| intake.generation == id.generation());
        intake.map_or(0, |intake| intake.gets)
    }

    /// The nodes that hold gets of an endpoint of ours, and how many.
    pub(super) fn getters(&self, id: EndpointId) -> Vec<(NodeId, u32)> {
        let Some(endpoint) = self.endpoints.get(id) else { return Vec::new() };
        let of = |place: &u16| (self.peers.list[usize::from(*place)].node, self.gets_of(*place, id));
        endpoint.senders.iter().map(of).filter(|(_, gets)| *gets > 0).collect()
    }
}
