//! Attributes of endpoints and nodes: numbers, sizes, ranges, values.
//!
//! What you may rely on: a value has the size of its attribute everywhere; what cannot be set says why. Numbers are those
//! of the standard's header. On the wire a value is one or two little-endian words.
//!
//! How it works: attributes that the standard calls implementation defined are these. The type can be set, so that an
//! endpoint can be kept for one getter from the beginning; connecting sets it too. Payloads can be made smaller than the
//! limits of the type, priorities fewer. How many messages may wait to be sent, and how many buffers are free, can only be
//! read. Nothing can be set while the endpoint is connected.

use alloc::vec::Vec;

use super::ChannelKind;
use crate::Error;
use crate::limits::{MESSAGE_BYTES_MAX, PACKET_BYTES_MAX, PRIORITIES};

/// Values of the attribute that says what an endpoint is for.
pub mod endpoint_type {
    /// Messages: what every endpoint is at first.
    pub const MESSAGE: u32 = 1;
    /// A packet channel.
    pub const PACKET_CHANNEL: u32 = 2;
    /// A scalar channel.
    pub const SCALAR_CHANNEL: u32 = 4;
}

/// Bits of the attribute that says how an endpoint stands. The lower half has the published values, in which two groups share
/// bits: of those only connected, open, open pending, close pending (1, 2, 4, 8) and got ([`endpoint_status::GET_PENDING`]) are given.
pub mod endpoint_status {
    /// Somebody has got the endpoint and not released it.
    pub const GET_PENDING: u32 = 0x10;
    /// Connected; here and below: the bit that means nothing else.
    pub const CONNECTED: u32 = 1 << 16;
    /// Open on both sides.
    pub const OPEN: u32 = 1 << 17;
    /// Opened here, not yet on the other side.
    pub const OPEN_PENDING: u32 = 1 << 18;
    /// Closed here, not yet on the other side.
    pub const CLOSE_PENDING: u32 = 1 << 19;
    /// An end of a packet channel.
    pub const PACKET_CHANNEL: u32 = 1 << 20;
    /// An end of a scalar channel.
    pub const SCALAR_CHANNEL: u32 = 1 << 21;
    /// The sending end.
    pub const SEND: u32 = 1 << 22;
    /// The receiving end.
    pub const RECEIVE: u32 = 1 << 23;
}

/// Numbers of the attributes of an endpoint.
pub(super) mod number {
    pub const TYPE: u32 = 0;
    pub const GET_COUNT: u32 = 1;
    pub const GET_SOURCE: u32 = 2;
    pub const PAYLOAD_MAX: u32 = 3;
    pub const BUFFER_TYPE: u32 = 4;
    pub const MEMORY_TYPE: u32 = 5;
    pub const PRIORITIES: u32 = 6;
    pub const PRIORITY: u32 = 7;
    pub const SEND_BUFFERS: u32 = 8;
    pub const RECEIVE_BUFFERS: u32 = 9;
    pub const STATUS: u32 = 10;
    pub const TIMEOUT: u32 = 11;
    pub const END: u32 = 12;
    /// From here organisations have ranges of their own, of which four are known and none is used here.
    pub const OTHERS_FIRST: u32 = 64;
    pub const OTHERS_END: u32 = OTHERS_FIRST + 4 * 32;
}

pub(super) const READ_ONLY: [u32; 5] =
    [number::GET_COUNT, number::GET_SOURCE, number::SEND_BUFFERS, number::RECEIVE_BUFFERS, number::STATUS];

/// Numbers of the attributes of a node: there is one, its type, and the type is always regular.
const NODE_TYPE: u32 = 0;
const NODE_TYPE_REGULAR: u32 = 0;

/// The attributes of an endpoint that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub kind: u32,
    pub payload_max: u32,
    pub memory_type: u32,
    pub priorities: u32,
    pub priority: u32,
    pub timeout_ms: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes {
            kind: endpoint_type::MESSAGE,
            payload_max: PACKET_BYTES_MAX as u32,
            memory_type: 0,
            priorities: u32::from(PRIORITIES),
            priority: 0,
            timeout_ms: u32::MAX,
        }
    }
}

impl Attributes {
    /// What to do with a message that cannot go: fail, or wait.
    pub fn fails_on_memory_limit(&self) -> bool {
        self.memory_type >> 16 == 1
    }

    /// The largest payload that the endpoint can have while it is of its type.
    pub fn payload_max_now(&self) -> u32 {
        let limit = match self.kind {
            endpoint_type::PACKET_CHANNEL => PACKET_BYTES_MAX,
            endpoint_type::SCALAR_CHANNEL => 8,
            _ => MESSAGE_BYTES_MAX,
        };
        self.payload_max.min(limit as u32)
    }

    pub fn set(&mut self, number: u32, value: u32) -> Result<(), Error> {
        let (place, valid) = match number {
            number::TYPE => (&mut self.kind, matches!(value, 1 | 2 | 4)),
            number::PAYLOAD_MAX => (&mut self.payload_max, (1..=PACKET_BYTES_MAX as u32).contains(&value)),
            number::BUFFER_TYPE => return if value == 0 { Ok(()) } else { Err(Error::AttributeValue) },
            number::MEMORY_TYPE => (&mut self.memory_type, value & 0xffff <= 2 && value >> 16 <= 1),
            number::PRIORITIES => {
                let valid = value > self.priority && value <= u32::from(PRIORITIES);
                (&mut self.priorities, valid)
            }
            number::PRIORITY => (&mut self.priority, value < self.priorities),
            number::TIMEOUT => (&mut self.timeout_ms, true),
            _ => return Err(Error::AttributeNumber),
        };
        if !valid {
            return Err(Error::AttributeValue);
        }
        *place = value;
        Ok(())
    }
}

/// A value: one word or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    One(u32),
    Two([u32; 2]),
}

impl Value {
    pub fn to_wire(self) -> Vec<u8> {
        match self {
            Value::One(word) => word.to_le_bytes().to_vec(),
            Value::Two(words) => words.into_iter().flat_map(u32::to_le_bytes).collect(),
        }
    }
}

/// A value as this machine has it, from the wire; `None` if it has not the size.
pub(super) fn from_wire(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    if bytes.len() != size {
        return None;
    }
    let (words, _) = bytes.as_chunks::<4>();
    Some(words.iter().flat_map(|word| u32::from_le_bytes(*word).to_ne_bytes()).collect())
}

/// Checks that there is an attribute of an endpoint of this number and size.
pub(super) fn check_endpoint_attribute(number: u32, size: usize) -> Result<(), Error> {
    let right = match number {
        number::GET_SOURCE => 8,
        ..number::END => 4,
        number::OTHERS_FIRST..number::OTHERS_END => return Err(Error::AttributeNotSupported),
        _ => return Err(Error::AttributeNumber),
    };
    if size == right { Ok(()) } else { Err(Error::AttributeSize) }
}

/// Checks that there is an attribute of a node of this number and size.
pub(super) fn check_node_attribute(number: u32, size: usize) -> Result<(), Error> {
    match (number, size) {
        (NODE_TYPE, 4) => Ok(()),
        (NODE_TYPE, _) => Err(Error::AttributeSize),
        _ => Err(Error::AttributeNumber),
    }
}

/// Checks an attribute for a node that is going to be.
///
/// # Errors
/// [`Error::AttributeNumber`], [`Error::AttributeSize`], [`Error::AttributeValue`].
pub fn check_new_node_attribute(number: u32, value: &[u8]) -> Result<(), Error> {
    check_node_attribute(number, value.len())?;
    if value == NODE_TYPE_REGULAR.to_ne_bytes() { Ok(()) } else { Err(Error::AttributeValue) }
}

/// The value of an attribute of this node.
pub(super) fn node_attribute_value(number: u32) -> Result<Value, Error> {
    check_node_attribute(number, 4).map(|()| Value::One(NODE_TYPE_REGULAR))
}

/// The bits of an end's kind and direction.
pub(super) fn role_status(kind: ChannelKind, receives: bool) -> u32 {
    let kind = match kind {
        ChannelKind::Packet => endpoint_status::PACKET_CHANNEL,
        ChannelKind::Scalar => endpoint_status::SCALAR_CHANNEL,
    };
    kind | if receives { endpoint_status::RECEIVE } else { endpoint_status::SEND }
}
