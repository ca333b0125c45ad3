//! What is agreed about VIs and memory: attributes, limits, and whether two VIs fit each other.
//!
//! What you may rely on: [`ViAttributes::fits`] is the one place that says which attributes must be alike on both sides.

use super::protection::TagHandle;

/// `VIP_RELIABILITY_LEVEL`: what a completion of a send promises, and what an error does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reliability {
    /// A send completes when it is handed over. What does not fit at the receiver is dropped there; the connection stays.
    Unreliable,
    /// A send completes when the remote side has accepted it. What does not fit there breaks the connection.
    Delivery,
    /// A send completes when its data is in the target's memory; what does not fit there is told in its descriptor, and
    /// breaks the connection.
    Reception,
}

impl Reliability {
    /// Every level.
    pub const ALL: [Reliability; 3] = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

    /// Whether an error ends the connection.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Reliability::Unreliable)
    }

    /// The bit that stands for the level in `vipl.h`.
    pub const fn bit(self) -> u16 {
        match self {
            Reliability::Unreliable => 0x01,
            Reliability::Delivery => 0x02,
            Reliability::Reception => 0x04,
        }
    }

    /// The level of a VI that is asked for with these bits: exactly one of them.
    pub fn from_bits(bits: u16) -> Option<Reliability> {
        Reliability::ALL.into_iter().find(|level| level.bit() == bits)
    }
}

/// `VIP_VI_ATTRIBUTES`, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViAttributes {
    /// Level of the connection.
    pub reliability: Reliability,
    /// Most bytes of one message.
    pub transfer_bytes_max: u32,
    /// Class of the VI's traffic, 0 the most urgent.
    pub class: u8,
    /// Regions of this tag are the VI's to use.
    pub tag: TagHandle,
    /// Whether the peer may write into regions that permit it.
    pub remote_write: bool,
    /// Whether the peer may read regions that permit it.
    pub remote_read: bool,
    /// Whether messages wait until the peer has told of a receive for them, both ways: an extension. Without it, as the
    /// standard says, one that finds none is lost, and at the reliable levels ends the connection.
    pub credit: bool,
}

/// Why two VIs cannot be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// `VIP_INVALID_RELIABILITY_LEVEL`.
    Reliability,
    /// `VIP_INVALID_MTU`: the largest messages differ.
    TransferBytes,
    /// `VIP_INVALID_QOS`: the classes differ.
    Class,
    /// `VIP_INVALID_QOS`: one waits for receives, and the other does not tell of them.
    Credit,
}

impl ViAttributes {
    /// Whether a VI of these attributes can be connected with one of `other`'s: level, largest message, class and credit are
    /// alike. What the peer may write and read need not be; each side hears the other's.
    ///
    /// # Errors
    /// The first that differs, in the order of the standard's text.
    pub fn fits(&self, other: &ViAttributes) -> Result<(), Mismatch> {
        if self.reliability != other.reliability {
            return Err(Mismatch::Reliability);
        }
        if self.transfer_bytes_max != other.transfer_bytes_max {
            return Err(Mismatch::TransferBytes);
        }
        if self.class != other.class {
            return Err(Mismatch::Class);
        }
        if self.credit != other.credit { Err(Mismatch::Credit) } else { Ok(()) }
    }
}

/// `VIP_MEM_ATTRIBUTES`, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAttributes {
    /// VIs of this tag may use the region.
    pub tag: TagHandle,
    /// Whether their peers may write it.
    pub remote_write: bool,
    /// Whether their peers may read it.
    pub remote_read: bool,
}

/// The limits of one opened NIC, as `VipQueryNic` tells them. They hold: one more is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Regions registered at a time.
    pub regions: u32,
    /// Bytes of one region.
    pub region_bytes: u64,
    /// Bytes of all regions together.
    pub registered_bytes: u64,
    /// Protection tags at a time.
    pub tags: u32,
    /// Descriptors posted to one queue and not dequeued.
    pub descriptors: u32,
    /// Segments of one descriptor, the address segment included.
    pub segments: u16,
    /// Bytes of one message.
    pub transfer_bytes: u32,
    /// Entries of one completion queue.
    pub completion_entries: u32,
    /// VIs at a time.
    pub vis: u32,
    /// Completion queues at a time.
    pub completion_queues: u32,
}

impl Limits {
    /// What a NIC has unless its description says otherwise.
    pub const DEFAULT: Limits = Limits {
        regions: 16_384,
        region_bytes: 1 << 40,
        registered_bytes: 1 << 42,
        tags: 1_024,
        descriptors: 4_096,
        segments: 256,
        transfer_bytes: 1 << 30,
        completion_entries: 1 << 20,
        vis: 4_096,
        completion_queues: 1_024,
    };
}
