//! Attributes of endpoints, with the type that each has.
//!
//! ```
//! # use std::sync::Arc;
//! # use musubi_mcapi::{Deadline, Error, Node, Topology, attribute};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-attribute-{}", std::process::id());
//! # let system = Arc::new(system);
//! let node = Node::initialize(&system, 0, 1)?;
//! let endpoint = node.create_endpoint(Some(5))?;
//! endpoint.set(attribute::PRIORITY, 1)?;
//! assert_eq!(node.attribute(&endpoint, attribute::PRIORITY, Deadline::Forever)?, 1);
//! assert_eq!(endpoint.set(attribute::GET_COUNT, 3), Err(Error::AttributeReadOnly));
//! # Ok(())
//! # }
//! ```

use alloc::vec::Vec;
use core::marker::PhantomData;

/// An attribute with values of type `T`.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<T> {
    number: u32,
    value: PhantomData<T>,
}

impl<T> Attribute<T> {
    const fn new(number: u32) -> Attribute<T> {
        Attribute { number, value: PhantomData }
    }

    /// MCAPI's number of it.
    pub const fn number(self) -> u32
    where
        T: Copy,
    {
        self.number
    }
}

/// What the endpoint is for: messages 1, packets 2, scalars 4.
pub const TYPE: Attribute<u32> = Attribute::new(0);
/// How many gets of it have not been given back. Read only.
pub const GET_COUNT: Attribute<u32> = Attribute::new(1);
/// Domain and node of the last get; `u32::MAX` both if there is none. Read only.
pub const GET_SOURCE: Attribute<[u32; 2]> = Attribute::new(2);
/// Most bytes of a message or packet. Both ends of a channel must agree.
pub const PAYLOAD_MAX: Attribute<i32> = Attribute::new(3);
/// Kind of buffer: 0, first in, first out. Both ends of a channel must agree.
pub const BUFFER_TYPE: Attribute<u32> = Attribute::new(4);
/// Locality (low half: local 0, shared 1, remote 2) and what happens when memory is short (high half: block 0, fail 1).
/// Both ends of a channel must agree.
pub const MEMORY_TYPE: Attribute<u32> = Attribute::new(5);
/// Number of priorities. Both ends of a channel must agree.
pub const PRIORITIES: Attribute<i32> = Attribute::new(6);
/// Priority of a channel connected from now on; 0 is the most urgent. Both ends must agree.
pub const PRIORITY: Attribute<u32> = Attribute::new(7);
/// Number of buffers for sending.
pub const SEND_BUFFERS: Attribute<i32> = Attribute::new(8);
/// Receive buffers that are free now: what a sender on another node looks at to slow down in time.
pub const RECEIVE_BUFFERS: Attribute<u32> = Attribute::new(9);
/// Flags of what it is connected to and how far that is open. Read only.
pub const STATUS: Attribute<u32> = Attribute::new(10);
/// Milliseconds that blocking calls of the C interface wait; `u32::MAX`: for ever. Calls of this crate take a deadline.
pub const TIMEOUT_MS: Attribute<u32> = Attribute::new(11);

/// A type that attributes have.
pub trait Value: Copy + Send + 'static {
    /// Its bytes, in this machine's order.
    const BYTES: usize;
    /// The value with these bytes, if they are as many.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
    /// The bytes.
    fn to_bytes(self) -> Vec<u8>;
}

impl Value for u32 {
    const BYTES: usize = 4;
    fn from_bytes(bytes: &[u8]) -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }
    fn to_bytes(self) -> Vec<u8> {
        self.to_ne_bytes().to_vec()
    }
}

impl Value for i32 {
    const BYTES: usize = 4;
    fn from_bytes(bytes: &[u8]) -> Option<i32> {
        Some(i32::from_ne_bytes(bytes.try_into().ok()?))
    }
    fn to_bytes(self) -> Vec<u8> {
        self.to_ne_bytes().to_vec()
    }
}

impl Value for [u32; 2] {
    const BYTES: usize = 8;
    fn from_bytes(bytes: &[u8]) -> Option<[u32; 2]> {
        let (first, second) = bytes.split_at_checked(4)?;
        Some([u32::from_bytes(first)?, u32::from_bytes(second)?])
    }
    fn to_bytes(self) -> Vec<u8> {
        self.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_bytes() {
        assert_eq!(u32::from_bytes(&7u32.to_bytes()), Some(7));
        assert_eq!(i32::from_bytes(&(-7i32).to_bytes()), Some(-7));
        assert_eq!(<[u32; 2]>::from_bytes(&[3, u32::MAX].to_bytes()), Some([3, u32::MAX]));
        assert_eq!(u32::from_bytes(&[1, 2, 3]), None);
    }
}
