//! What both sides of the ZCU102 demo know: the plan of their system, and what its channels carry.
//!
//! What you may rely on: both sides are built from one description (`system.toml`), and refuse each other otherwise. The
//! messages have the same bytes on both: fixed widths, no padding, little-endian.
#![no_std]
#![forbid(unsafe_code)]

pub mod control;
pub mod digester;
#[cfg(feature = "nodes")]
pub mod nics;
#[cfg(feature = "nodes")]
pub mod nodes;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The generated plan.
pub mod system {
    include!(concat!(env!("OUT_DIR"), "/musubi_zcu102.rs"));
}

/// Channel of [`Telemetry`], real-time loop to Linux.
pub const TELEMETRY: &str = "telemetry";
/// Channel of the file, Linux to digester: each message a [`StreamHeader`] and bytes of the file.
pub const STREAM: &str = "stream";
/// Channel of [`Answer`], digester to Linux.
pub const ANSWERS: &str = "answers";
/// Channel of [`Parameters`], written by Linux.
pub const PARAMETERS: &str = "parameters";

/// One period of the real-time loop.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Telemetry {
    /// Counts the messages that this incarnation of the loop has enqueued, from 0.
    pub sequence: u64,
    /// The period, from 0.
    pub period: u64,
    /// Nanoseconds of the loop's clock when it was enqueued.
    pub sent_ns: u64,
    /// How late the loop began this period, in nanoseconds.
    pub lateness_ns: u32,
    /// Incarnation of the loop: its participant's epoch.
    pub incarnation: u32,
    /// Generation of the parameters that the loop works with.
    pub generation: u32,
    /// Periods that the loop left out since it began, because it was later than a whole one.
    pub skipped: u32,
    /// Messages that the loop could not send since it began, because no block was free.
    pub unsent: u32,
    /// Keeps the length a multiple of 8.
    pub reserved: u32,
}

/// What Linux wants of the loop. All zero: nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Parameters {
    /// Counts the changes.
    pub generation: u32,
    /// Telemetry is sent every so many periods; 0: not at all, as nobody wants it yet.
    pub every: u32,
    /// Incarnation that shall crash, by an undefined instruction in the middle of a message; 0: none.
    pub crash: u32,
    /// Keeps the length a multiple of 8.
    pub reserved: u32,
}

/// What precedes the bytes of the file in a message.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StreamHeader {
    /// Counts the messages of the sending process, from 0.
    pub sequence: u64,
    /// Incarnation of the sender: its participant's epoch.
    pub sender: u32,
    /// Counts its passes over the file, from 0.
    pub pass: u16,
    /// [`part`]: what this message is in its pass.
    pub part: u16,
}

/// Values of [`StreamHeader::part`].
pub mod part {
    /// The first of a pass.
    pub const FIRST: u16 = 1;
    /// Neither the first nor the last.
    pub const MIDDLE: u16 = 2;
    /// The last of a pass; it carries no bytes.
    pub const LAST: u16 = 3;
}

/// What the digester made of one pass, or of a sender that has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Answer {
    /// BLAKE3 of the pass's bytes; zero if the pass was not whole.
    pub digest: [u8; 32],
    /// Number of those bytes.
    pub bytes: u64,
    /// Sequence number of the first message that this incarnation received from this sender.
    pub first_sequence: u64,
    /// Messages received from it since then.
    pub messages: u64,
    /// Of those, messages of a pass whose begin this incarnation has not seen.
    pub stale: u64,
    /// Sequence numbers that were left out in what it received from this sender.
    pub gaps: u32,
    /// Sequence numbers that came again, or in the wrong order.
    pub repeated: u32,
    /// The sender's incarnation.
    pub sender: u32,
    /// Incarnation of the digester: its participant's epoch.
    pub incarnation: u32,
    /// The pass.
    pub pass: u32,
    /// 1: the pass is whole. 0: another sender came, and this is what became of the former one.
    pub whole: u32,
}

const _: () = assert!(size_of::<Telemetry>() == 48 && size_of::<Parameters>() <= 64 && size_of::<Answer>() <= 128);
