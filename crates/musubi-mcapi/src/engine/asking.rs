//! Questions about nodes and endpoints anywhere: attributes, ping, pictures.
//!
//! What you may rely on: a question has one answer, or fails with the link or the node that it was for; an answer that nobody asked
//! that node for is counted and changes nothing.
//!
//! How it works: a request whose number is the question's tag. What concerns this node itself goes the same way and is
//! answered before the call returns.

use alloc::vec::Vec;

use super::attributes::{check_endpoint_attribute, check_node_attribute, from_wire, node_attribute_value};
use super::requests::Doing;
use super::{Engine, Outcome, RequestId};
use crate::engine::frame::{Header, Kind};
use crate::{EndpointId, Error, NodeId};
use musubi_transport::links::{Block, Links, Payload};

/// Most bytes of a ping.
pub const PING_BYTES_MAX: usize = Kind::Ping.payload_max();

impl<B: Block> Engine<B> {
    /// Asks for an attribute of an endpoint anywhere; completes (at once for our own) with `Outcome::Attribute`, the
    /// value's bytes in this machine's order.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::AttributeNumber`], [`Error::AttributeSize`], [`Error::AttributeNotSupported`],
    /// [`Error::RequestLimit`].
    pub fn endpoint_attribute(
        &mut self,
        endpoint: EndpointId,
        number: u32,
        size: usize,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let node = self.known_node(endpoint, links)?;
        if node == self.me {
            self.our(endpoint)?;
        }
        check_endpoint_attribute(number, size)?;
        self.ask_now(node, Doing::Attribute { of: Some(endpoint), number }, links)
    }

    /// Asks for an attribute of a node anywhere; completes with `Outcome::Attribute`.
    ///
    /// # Errors
    /// [`Error::DomainInvalid`], [`Error::NodeInvalid`], [`Error::AttributeNumber`], [`Error::AttributeSize`], [`Error::RequestLimit`].
    pub fn node_attribute(
        &mut self,
        (domain, node): (u32, u32),
        number: u32,
        size: usize,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let node = self.node_of(domain, node, links)?;
        check_node_attribute(number, size)?;
        self.ask_now(node, Doing::Attribute { of: None, number }, links)
    }

    /// Sends so many bytes to a node and back; completes with `Outcome::Pong`.
    ///
    /// # Errors
    /// [`Error::NodeInvalid`], [`Error::MessageSize`], [`Error::RequestLimit`].
    pub fn ping(
        &mut self,
        now_ns: u64,
        node: NodeId,
        bytes: usize,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        self.now_ns = now_ns;
        self.node_of(node.domain(), node.node(), links)?;
        if bytes > PING_BYTES_MAX {
            return Err(Error::MessageSize);
        }
        self.ask_now(node, Doing::Ping { bytes: bytes as u32, started_ns: now_ns }, links)
    }

    /// Asks a node for a picture of itself ([`super::inspect`]), from part `part` on; completes with `Outcome::Picture`.
    ///
    /// # Errors
    /// [`Error::NodeInvalid`], [`Error::RequestLimit`].
    pub fn inspect(&mut self, node: NodeId, part: u32, links: &mut impl Links<Block = B>) -> Result<RequestId, Error> {
        self.node_of(node.domain(), node.node(), links)?;
        self.ask_now(node, Doing::Inspect { part }, links)
    }

    fn ask_now(&mut self, node: NodeId, doing: Doing, links: &mut impl Links<Block = B>) -> Result<RequestId, Error> {
        let request = self.ask(node, doing, links)?;
        self.settle(links);
        Ok(request)
    }

    pub(super) fn attribute_get(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let value = match header.to {
            0 => node_attribute_value(header.value),
            bits => EndpointId::from_bits(bits)
                .ok_or(Error::EndpointInvalid)
                .and_then(|endpoint| self.attribute_value(endpoint, header.value)),
        };
        let answer = Header { tag: header.tag, ..Header::new(Kind::AttributeReply as u8) };
        match value {
            Ok(value) => self.emit_at(place, answer, &value.to_wire(), links),
            Err(error) => self.emit_at(place, Header { status: error.wire(), ..answer }, &[], links),
        }
    }

    pub(super) fn attribute_reply(&mut self, place: u16, header: &Header, payload: &Payload<B>) {
        let Some((request, Doing::Attribute { of, number })) = self.question(place, header.tag) else { return };
        let mut bytes = [0; 64];
        let length = payload.copy_to(&mut bytes);
        let size = [4, 8].into_iter().find(|size| match of {
            Some(_) => check_endpoint_attribute(number, *size).is_ok(),
            None => check_node_attribute(number, *size).is_ok(),
        });
        let value = || size.and_then(|size| from_wire(&bytes[..length], size));
        let result = match Error::from_wire(header.status) {
            Some(error) => Err(error),
            None => value().map(Outcome::Attribute).ok_or(Error::General),
        };
        self.complete(request, result);
    }

    pub(super) fn pinged(
        &mut self,
        place: u16,
        header: &Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        let answer = Header { tag: header.tag, ..Header::new(Kind::Pong as u8) };
        self.emit_at(place, answer, &bytes_of(&payload), links);
    }

    pub(super) fn pong(&mut self, place: u16, header: &Header) {
        let Some((request, Doing::Ping { bytes, started_ns })) = self.question(place, header.tag) else { return };
        let result = match header.length == bytes {
            true => Ok(Outcome::Pong(self.now_ns.saturating_sub(started_ns))),
            false => Err(Error::General),
        };
        self.complete(request, result);
    }

    pub(super) fn inspected(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let answer = Header { tag: header.tag, value: header.value, ..Header::new(Kind::InspectReply as u8) };
        let picture = self.picture(header.value, links);
        self.emit_at(place, answer, &picture, links);
    }

    pub(super) fn inspect_reply(&mut self, place: u16, header: &Header, payload: &Payload<B>) {
        let Some((request, Doing::Inspect { .. })) = self.question(place, header.tag) else { return };
        self.complete(request, Ok(Outcome::Picture(bytes_of(payload))));
    }
}

fn bytes_of<B: Block>(payload: &Payload<B>) -> Vec<u8> {
    let mut bytes = alloc::vec![0; payload.len()];
    let length = payload.copy_to(&mut bytes);
    bytes.truncate(length);
    bytes
}
