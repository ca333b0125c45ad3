//! The MDCOM interface (seed 000, table 2) in Rust: typed channels between domains.
//!
//! What you may rely on: what the C interface answers with a code does not compile here. A block is a value that is
//! consumed by `enqueue` or `free` and goes back by itself when it is dropped; it knows its channel; there is no id to
//! get wrong, no lock to release twice, and nothing can be called after `term`, because everything borrows the
//! attachment. Every wait takes a [`Wait`].
//!
//! How it works: [`Mdcom::init`] on a port's attachment, then a [`Sender`], [`Receiver`] or [`Shared`] a channel, each
//! for one thread at a time (they are `Send` where the port's ends are, and not `Sync`).
//!
//! | table 2 | here |
//! | --- | --- |
//! | `mdcom_init`, `mdcom_term` | [`Mdcom::init`], dropping the attachment |
//! | `mdcom_sense_process` | [`Mdcom::sense_process`] |
//! | `mdcom_sense_fifo` | [`Sender::sense`], [`Receiver::sense`] |
//! | `mdcom_fifo_alloc` / `_free` | [`Sender::alloc`] / dropping a [`Block`] or a [`Message`] |
//! | `mdcom_fifo_get` | dereferencing a [`Block`], [`Message::read`] |
//! | `mdcom_fifo_enqueue` / `_dequeue` | [`Block::enqueue`] / [`Receiver::dequeue`] |
//! | `mdcom_fifo_notify` / `_wait` | `notify` / `wait` of either end |
//! | `mdcom_filter_set` | [`Sender::set_filter`] |
//! | `mdcom_fifo_init` | [`Sender::reset`], [`Receiver::reset`] |
//! | `mdcom_smemch_get`, `_trylock`, `_unlock` | [`Mdcom::shared`], [`Shared::try_lock`], dropping a [`Guard`] |
//!
//! What it does not do: name a port. A program brings one, for example `musubi-linux`.
#![no_std]
#![forbid(unsafe_code)]

mod mdcom;
mod receiver;
mod sender;
mod shared;
mod wait;
mod wait_set;

pub use mdcom::{Channel, Mdcom, OpenError};
pub use musubi_core::Error;
pub use musubi_core::channel::Usage;
pub use musubi_core::fifo::Notified;
pub use musubi_core::plan::FilterRule;
pub use receiver::{Message, Receiver};
pub use sender::{Block, Rejected, Sender};
pub use shared::{Guard, Shared};
pub use wait::Wait;
pub use wait_set::{Member, WaitSet};
pub use zerocopy;

/// What a typed channel carries: plain data without padding or pointers, of at most 16-byte alignment.
///
/// Implemented for every type that derives `zerocopy`'s `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout`.
pub trait Payload: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout {}

impl<T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout> Payload for T {}

/// Marks a channel of plain bytes of any length up to the block size.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}
