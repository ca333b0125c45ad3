//! Endpoints of this node: creation, deletion, their attributes.
//!
//! What you may rely on: an endpoint that is connected is not deleted. Of one that is, every node that had sent to it or got it is
//! told, and whoever waits at it hears [`Error::EndpointDeleted`].
//!
//! How it works: names are given by the table of endpoints; who waited for the port of a new one is answered at once.

use super::attributes::{READ_ONLY, Value, check_endpoint_attribute, endpoint_status, number};
use super::messages::SEND_BUFFERS;
use super::table::Endpoint;
use super::{Engine, Outcome};
use crate::engine::frame::{Header, Kind};
use crate::limits::MESSAGE_CREDIT;
use crate::{EndpointId, Error};
use musubi_transport::links::{Block, Links};

impl<B: Block> Engine<B> {
    /// Creates an endpoint; `None` takes any free port.
    ///
    /// # Errors
    /// [`Error::PortInvalid`], [`Error::EndpointExists`].
    pub fn create_endpoint(
        &mut self,
        port: Option<u32>,
        links: &mut impl Links<Block = B>,
    ) -> Result<EndpointId, Error> {
        self.alive()?;
        let id = self.endpoints.create(port)?;
        let port = self.our(id)?.port;
        self.answer_expected(port, id, links);
        self.settle(links);
        Ok(id)
    }

    /// Deletes an endpoint of this node; what is queued there is dropped. Nodes that sent to it or got it are told.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::EndpointNotOwner`], [`Error::ChannelConnected`].
    pub fn delete_endpoint(&mut self, endpoint: EndpointId, links: &mut impl Links<Block = B>) -> Result<(), Error> {
        if self.known_node(endpoint, links)? != self.me {
            return Err(Error::EndpointNotOwner);
        }
        self.our(endpoint)?;
        if self.channel_forbids_delete(endpoint) {
            return Err(Error::ChannelConnected);
        }
        self.channel_endpoint_deleted(endpoint);
        let Some(gone) = self.endpoints.remove(endpoint) else { return Err(Error::EndpointInvalid) };
        self.changes += 1;
        for request in gone.receivers {
            self.complete(request, Err(Error::EndpointDeleted));
        }
        for place in gone.senders {
            let header = Header { from: endpoint.bits(), ..Header::new(Kind::Deleted as u8) };
            self.emit_at(place, header, &[], links);
        }
        self.settle(links);
        Ok(())
    }

    /// An endpoint of a peer has gone: what waits to be sent to it is dropped, and a later one of that name begins anew.
    pub(super) fn deleted(&mut self, place: u16, header: &Header) {
        let owner = self.peers.at(place).node;
        let Some(id) = EndpointId::from_bits(header.from).filter(|id| id.node() == owner) else {
            self.refuse(place, |counters| &mut counters.not_theirs);
            return;
        };
        self.peers.at(place).connected.retain(|slot, of| (*slot, *of) != (id.slot(), id.generation()));
        let waiting = self.peers.at(place).end_flow(id);
        self.changes += 1;
        for message in waiting {
            self.complete(message.request, Ok(Outcome::Sent(message.payload.len())));
        }
    }

    /// An error if this node has left.
    pub(super) fn alive(&self) -> Result<(), Error> {
        if self.left { Err(Error::NodeNotInitialized) } else { Ok(()) }
    }

    /// Our endpoint of this name.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::NodeNotInitialized`].
    #[inline]
    pub(super) fn our(&self, id: EndpointId) -> Result<&Endpoint<B>, Error> {
        self.endpoints.get(id).ok_or(if self.left { Error::NodeNotInitialized } else { Error::EndpointInvalid })
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn our_mut(&mut self, id: EndpointId) -> Result<&mut Endpoint<B>, Error> {
        let error = if self.left { Error::NodeNotInitialized } else { Error::EndpointInvalid };
        self.endpoints.get_mut(id).ok_or(error)
    }

    /// Sets an attribute of an endpoint of this node.
    ///
    /// # Errors
    /// [`Error::EndpointRemote`], [`Error::EndpointInvalid`], [`Error::AttributeNumber`], [`Error::AttributeNotSupported`],
    /// [`Error::AttributeSize`], [`Error::AttributeReadOnly`], [`Error::ChannelConnected`], [`Error::AttributeValue`]: the first of
    /// these that holds.
    pub fn set_endpoint_attribute(&mut self, endpoint: EndpointId, number: u32, value: &[u8]) -> Result<(), Error> {
        self.alive()?;
        if endpoint.node() != self.me {
            return Err(Error::EndpointRemote);
        }
        let ours = self.our(endpoint)?;
        check_endpoint_attribute(number, value.len())?;
        if READ_ONLY.contains(&number) {
            return Err(Error::AttributeReadOnly);
        }
        if self.channel_is_connected(ours) {
            return Err(Error::ChannelConnected);
        }
        let word = value.try_into().map(u32::from_ne_bytes).map_err(|_| Error::AttributeSize)?;
        if number == number::PAYLOAD_MAX && word > self.endpoints.payload_max {
            return Err(Error::AttributeValue);
        }
        self.our_mut(endpoint)?.attributes.set(number, word)
    }

    /// The timeout attribute of one of our endpoints, in milliseconds; `u32::MAX` is for ever.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`].
    pub fn endpoint_timeout_ms(&self, endpoint: EndpointId) -> Result<u32, Error> {
        Ok(self.our(endpoint)?.attributes.timeout_ms)
    }

    /// The value of an attribute of an endpoint of ours.
    pub(super) fn attribute_value(&self, endpoint: EndpointId, number: u32) -> Result<Value, Error> {
        let endpoint = self.our(endpoint)?;
        let attributes = &endpoint.attributes;
        let word = match number {
            number::TYPE => attributes.kind,
            number::GET_COUNT => endpoint.gets.max(u32::from(self.channel_is_connected(endpoint))),
            number::GET_SOURCE => {
                let source = endpoint.get_source.map_or([u32::MAX; 2], |node| [node.domain(), node.node()]);
                return Ok(Value::Two(source));
            }
            number::PAYLOAD_MAX => attributes.payload_max_now(),
            number::BUFFER_TYPE => 0,
            number::MEMORY_TYPE => attributes.memory_type,
            number::PRIORITIES => attributes.priorities,
            number::PRIORITY => attributes.priority,
            number::SEND_BUFFERS => SEND_BUFFERS as u32,
            number::RECEIVE_BUFFERS => self.receive_buffers(endpoint),
            number::STATUS => self.status(endpoint),
            number::TIMEOUT => attributes.timeout_ms,
            _ => return check_endpoint_attribute(number, 4).and(Err(Error::AttributeNumber)),
        };
        Ok(Value::One(word))
    }

    /// Buffers that are free: of messages, those that a single node can still fill if all that is unread is from it.
    fn receive_buffers(&self, endpoint: &Endpoint<B>) -> u32 {
        let of_messages = || MESSAGE_CREDIT.saturating_sub(endpoint.queued as u32);
        self.channel_buffers(endpoint).unwrap_or_else(of_messages)
    }

    pub(super) fn status(&self, endpoint: &Endpoint<B>) -> u32 {
        let channel = self.channel_status(endpoint);
        let got = if endpoint.gets > 0 { endpoint_status::GET_PENDING } else { 0 };
        channel | (channel >> 16 & 0xf) | got
    }
}
