//! Records of a picture and their fields, to bytes and back.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{EndpointId, NodeId};

/// What a field is on the wire.
pub(super) trait Field: Sized {
    fn put(self, bytes: &mut Vec<u8>);
    fn get(reader: &mut Reader<'_>) -> Option<Self>;
}

impl Field for u32 {
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Option<u32> {
        reader.u32()
    }
}

impl Field for u64 {
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Option<u64> {
        let (word, rest) = reader.bytes.split_first_chunk::<8>()?;
        reader.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }
}

/// A count that was added to the end of a record: a node of before does not say it.
impl Field for Option<u64> {
    fn put(self, bytes: &mut Vec<u8>) {
        self.unwrap_or(0).put(bytes);
    }
    fn get(reader: &mut Reader<'_>) -> Option<Option<u64>> {
        if reader.bytes.is_empty() { Some(None) } else { u64::get(reader).map(Some) }
    }
}

impl Field for NodeId {
    fn put(self, bytes: &mut Vec<u8>) {
        (self.index() as u32).put(bytes);
    }
    fn get(reader: &mut Reader<'_>) -> Option<NodeId> {
        NodeId::from_index(reader.u32()? as usize)
    }
}

impl Field for EndpointId {
    fn put(self, bytes: &mut Vec<u8>) {
        self.bits().put(bytes);
    }
    fn get(reader: &mut Reader<'_>) -> Option<EndpointId> {
        EndpointId::from_bits(reader.u32()?)
    }
}

/// How many bytes, as a `u32`, and the bytes. Text of a peer may be shown on a terminal, so whatever could control one
/// is taken out.
impl Field for String {
    fn put(self, bytes: &mut Vec<u8>) {
        (self.len() as u32).put(bytes);
        bytes.extend_from_slice(self.as_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Option<String> {
        let length = reader.u32()? as usize;
        let (text, rest) = reader.bytes.split_at_checked(length)?;
        reader.bytes = rest;
        Some(
            String::from_utf8_lossy(text)
                .chars()
                .map(|letter| if letter.is_control() { ' ' } else { letter })
                .collect(),
        )
    }
}

/// What has a record of its own.
pub(super) trait Written: Sized {
    fn write(self, bytes: &mut Vec<u8>);
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

/// Gives a structure its record: its kind, and its fields in their order.
macro_rules! record {
    ($structure:ident, $kind:expr, $($field:ident),+) => {
        impl $crate::engine::inspect::fields::Written for $structure {
            fn write(self, bytes: &mut Vec<u8>) {
                let start = bytes.len();
                bytes.extend_from_slice(&[$kind, 0, 0, 0]);
                $($crate::engine::inspect::fields::Field::put(self.$field, bytes);)+
                let length = (bytes.len() - start - 4) as u16;
                bytes[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
            }
            fn read(reader: &mut $crate::engine::inspect::fields::Reader<'_>) -> Option<Self> {
                Some($structure { $($field: $crate::engine::inspect::fields::Field::get(reader)?),+ })
            }
        }
    };
}

/// What is left of a part, or of a record.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// The next record: its kind, its fields.
    pub(super) fn record(&mut self) -> Option<(u8, Reader<'a>)> {
        let (head, rest) = self.bytes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (fields, rest) = rest.split_at_checked(length)?;
        self.bytes = rest;
        Some((head[0], Reader { bytes: fields }))
    }
}

pub(super) use record;
