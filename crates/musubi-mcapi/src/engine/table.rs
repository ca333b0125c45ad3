//! The endpoints of this node: places, generations, ports.
//!
//! What you may rely on: an endpoint is found by its name in one step and by its port in a logarithmic number; a name is
//! given again only after its place was used 63 times, and places rest before they are used again.
//!
//! How it works: a slab. The generation that a place begins with depends on the node's incarnation: incarnations that do
//! not differ by a multiple of 63 begin with other names, so those of an earlier run mean nothing in this one.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::attributes::Attributes;
use super::channel::end::ChannelEnd;
use super::steps::step;
use super::{Message, RequestId};
use crate::limits::{ENDPOINTS_MAX, PACKET_BYTES_MAX, PORT_MAX, PRIORITIES};
use crate::{EndpointId, Error, NodeId};

/// As long as fewer places rest than this, new ones are taken into use.
const PLACES_RESTING: usize = 32;
/// Where the ports begin that are given to those who take any.
const PORT_ANY_FIRST: u32 = 32_768;

/// A message in an endpoint's queue, and of which link with its sender; of none if its credit has been given back.
#[derive(Debug)]
pub(super) struct Queued<B> {
    pub message: Message<B>,
    pub epoch: Option<u32>,
}

/// An endpoint of this node.
#[derive(Debug)]
pub(super) struct Endpoint<B> {
    pub id: EndpointId,
    pub port: u32,
    pub attributes: Attributes,
    /// Gets that have not been released, and the node of the latest.
    pub gets: u32,
    pub get_source: Option<NodeId>,
    /// Unread messages by priority, and how many in all.
    pub queues: [VecDeque<Queued<B>>; PRIORITIES as usize],
    pub queued: usize,
    /// Requests that wait for messages, in order. While there are any, no message is queued.
    pub receivers: VecDeque<RequestId>,
    /// Peers (places in the table) that have an intake for this endpoint.
    pub senders: Vec<u16>,
    /// Messages that have come, ever.
    pub messages: u64,
    /// What it is in a channel: connected or about to be.
    pub channel: Option<Box<ChannelEnd<B>>>,
}

#[derive(Debug)]
struct Place<B> {
    generation: u8,
    endpoint: Option<Endpoint<B>>,
}

/// The slab.
#[derive(Debug)]
pub(super) struct Endpoints<B> {
    me: NodeId,
    first_generation: u8,
    places: Vec<Place<B>>,
    resting: VecDeque<u16>,
    ports: BTreeMap<u32, u16>,
    port_any: u32,
    /// Most bytes of a payload that the links can carry.
    pub payload_max: u32,
}

impl<B> Endpoints<B> {
    pub fn new(me: NodeId, incarnation: u32) -> Self {
        let first_generation = 1 + (incarnation % u32::from(EndpointId::GENERATION_MAX)) as u8;
        let (places, resting, ports) = (Vec::new(), VecDeque::new(), BTreeMap::new());
        let payload_max = PACKET_BYTES_MAX as u32;
        Endpoints { me, first_generation, places, resting, ports, port_any: PORT_ANY_FIRST, payload_max }
    }

    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Our endpoint of this name.
    #[inline]
    pub fn get(&self, id: EndpointId) -> Option<&Endpoint<B>> {
        step();
        let endpoint = self.places.get(usize::from(id.slot()))?.endpoint.as_ref()?;
        (endpoint.id == id).then_some(endpoint)
    }

    /// Our endpoint of this name.
    #[inline]
    pub fn get_mut(&mut self, id: EndpointId) -> Option<&mut Endpoint<B>> {
        step();
        let endpoint = self.places.get_mut(usize::from(id.slot()))?.endpoint.as_mut()?;
        (endpoint.id == id).then_some(endpoint)
    }

    /// Whatever is in this place.
    pub fn in_slot(&self, slot: u16) -> Option<&Endpoint<B>> {
        self.places.get(usize::from(slot))?.endpoint.as_ref()
    }

    /// Whatever is in this place.
    #[inline]
    pub fn in_slot_mut(&mut self, slot: u16) -> Option<&mut Endpoint<B>> {
        self.places.get_mut(usize::from(slot))?.endpoint.as_mut()
    }

    /// Whether no endpoint ever had this name's place.
    #[inline]
    pub fn never_had(&self, id: EndpointId) -> bool {
        usize::from(id.slot()) >= self.places.len()
    }

    /// Our endpoint at this port.
    pub fn at_port(&self, port: u32) -> Option<EndpointId> {
        let slot = *self.ports.get(&port)?;
        Some(self.in_slot(slot)?.id)
    }

    /// All, from this place on.
    pub fn beginning_at(&self, slot: u16) -> impl Iterator<Item = &Endpoint<B>> {
        self.places.iter().skip(usize::from(slot)).inspect(|_| step()).filter_map(|place| place.endpoint.as_ref())
    }

    /// Makes one; `None` takes any free port.
    ///
    /// # Errors
    /// [`Error::PortInvalid`] also if there is no place, [`Error::EndpointExists`].
    pub fn create(&mut self, port: Option<u32>) -> Result<EndpointId, Error> {
        let port = match port {
            Some(port) if port > PORT_MAX => return Err(Error::PortInvalid),
            Some(port) if self.ports.contains_key(&port) => return Err(Error::EndpointExists),
            _ if self.ports.len() == ENDPOINTS_MAX => return Err(Error::PortInvalid),
            Some(port) => port,
            None => self.free_port(),
        };
        let slot = self.free_place();
        let place = &mut self.places[usize::from(slot)];
        let id = EndpointId::new(self.me, slot, place.generation);
        place.endpoint = Some(Endpoint::new(id, port, self.payload_max));
        self.ports.insert(port, slot);
        Ok(id)
    }

    /// There are fewer endpoints than ports, so the search ends.
    fn free_port(&mut self) -> u32 {
        loop {
            let port = self.port_any;
            self.port_any = if port == PORT_MAX { PORT_ANY_FIRST } else { port + 1 };
            if !self.ports.contains_key(&port) {
                return port;
            }
        }
    }

    /// There are fewer endpoints than places.
    fn free_place(&mut self) -> u16 {
        if self.resting.len() < PLACES_RESTING && self.places.len() < ENDPOINTS_MAX {
            self.places.push(Place { generation: self.first_generation, endpoint: None });
            return (self.places.len() - 1) as u16;
        }
        self.resting.pop_front().unwrap_or(0)
    }

    /// Takes one out.
    pub fn remove(&mut self, id: EndpointId) -> Option<Endpoint<B>> {
        self.get(id)?;
        let place = self.places.get_mut(usize::from(id.slot()))?;
        let endpoint = place.endpoint.take()?;
        place.generation = if place.generation == EndpointId::GENERATION_MAX { 1 } else { place.generation + 1 };
        self.ports.remove(&endpoint.port);
        self.resting.push_back(id.slot());
        Some(endpoint)
    }
}

impl<B> Endpoint<B> {
    fn new(id: EndpointId, port: u32, payload_max: u32) -> Self {
        Endpoint {
            id,
            port,
            attributes: Attributes { payload_max, ..Attributes::default() },
            gets: 0,
            get_source: None,
            queues: [const { VecDeque::new() }; PRIORITIES as usize],
            queued: 0,
            receivers: VecDeque::new(),
            senders: Vec::new(),
            messages: 0,
            channel: None,
        }
    }
}
