//! Endpoints of this node: creation, deletion.
//!
//! What you may rely on: an endpoint that is connected is not deleted. Of one that is, every node that had sent to it or got it is
//! told, and whoever waits at it hears [`Error::EndpointDeleted`].
//!
//! How it works: names are given by the table of endpoints; who waited for the port of a new one is answered at once.

use super::table::Endpoint;
use super::{Engine, Outcome};
use crate::engine::frame::{Header, Kind};
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
}
