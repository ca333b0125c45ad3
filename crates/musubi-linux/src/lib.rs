//! Musubi's port for processes on one Linux kernel.
//!
//! What you may rely on: a participant's section is memory that only its process can write; others hold sealed
//! read-only mappings. No daemon, no files: only memfds and abstract Unix sockets, which the kernel takes back when
//! the last process has gone, killed or not. No call here waits beyond its deadline.
//!
//! How it works: [`Participant::attach`] claims a slot of its domain by binding a socket name, then exchanges section
//! descriptors with every participant that shares a channel with it. A background thread, the attendant, answers those
//! who come later, notices deaths (pidfd or hang-up), and keeps the mailboxes ([`links`]) that the data path reads. It
//! is never on the data path itself.
//!
//! After a `fork`, the child has no part in Musubi: it loses the sockets and the mapping of the section, and dropping
//! a [`Participant`] there does nothing. A child made by a raw `clone` system call that keeps running after its parent
//! died keeps the parent's slot name occupied; the death itself is noticed all the same, by pidfd.
//!
//! [`uio`] is the port for processes that share memory with other cores of a chip instead.
//!
//! What it does not do: name an interface (MDCOM, MCAPI, VIPL), or cross a network namespace.

pub mod bare;
pub mod clock;
pub mod coherence;
pub mod cores;
pub mod descriptor;
pub mod doorbell;
pub mod end;
pub mod error;
pub mod forks;
pub mod futex;
pub mod links;
pub mod message;
pub mod names;
pub mod node;
pub mod observe;
pub mod participant;
pub mod realtime;
pub mod receiving;
pub mod round_trip;
pub mod section;
pub mod segment;
pub mod sending;
pub mod signals;
pub mod sleep;
pub mod smem;
pub mod uio;

mod attendant;
mod channels;
mod connection;
mod credentials;
mod dial;
mod events;
mod handshake;
mod late;
mod linking;
mod mapping;
mod registry;
mod slot;
mod waiting_set;

pub use clock::{Deadline, MonotonicClock};
pub use coherence::Hints;
pub use doorbell::LinkDoorbell;
pub use end::{Direction, End};
pub use error::Error;
pub use links::{RxLinks, RxSender, TxLink, TxLinks};
pub use observe::Observer;
pub use participant::{Memory, Options, Participant, PeerInfo};
pub use receiving::ReceivingEnd;
pub use section::{OwnPart, PeerPart, PeerSection};
pub use segment::{Segment, TicketPeer, Tickets};
pub use sending::SendingEnd;
pub use smem::SharedEnd;
