//! Musubi's port for processes on one Linux kernel.
//!
//! What you may rely on: a participant's section is memory that only its process can write; others hold sealed
//! read-only mappings. No daemon, no files: only memfds and abstract Unix sockets, which the kernel takes back when
//! the last process has gone, killed or not. No call here waits beyond its deadline.
//!
//! How it works: [`Participant::attach`] claims a slot of its domain by binding a socket name, then exchanges section
//! descriptors with every participant that shares a channel with it. A background thread, the attendant, answers those
//! who come later, notices deaths (pidfd or hang-up), and keeps the mailboxes ([`process::channel::mailbox`]) that the data path reads. It
//! is never on the data path itself.
//!
//! After a `fork`, the child has no part in Musubi: it loses the sockets and the mapping of the section, and dropping
//! a [`Participant`] there does nothing. A child made by a raw `clone` system call that keeps running after its parent
//! died keeps the parent's slot name occupied; the death itself is noticed all the same, by pidfd.
//!
//! [`uio`] is the port for processes that share memory with other cores of a chip instead.
//!
//! What it does not do: name an interface (MDCOM, MCAPI, VIPL), or cross a network namespace.

pub mod bench;
pub mod error;
pub mod node;
pub mod os;
pub mod process;
pub mod uio;

mod direction;

pub use bench::{bare, cores};
pub use os::{
    addresses, clock, descriptor, epoll, forks, futex, hint, inheriting, peer_memory, realtime, round_trip, signals,
};
pub use process::channel::{mailbox as links, wait as sleep};
pub use process::rendezvous::{message, socket_names as names};
pub use process::{observer as observe, section};

pub use direction::Direction;
pub use error::Error;
pub use os::clock::{Deadline, DeadlineExt, MonotonicClock};
pub use process::channel::claim::End;
pub use process::channel::coherence::Hints;
pub use process::channel::doorbell::LinkDoorbell;
pub use process::channel::mailbox::{Counterpart, RxLinks, RxSender, TxLink, TxLinks};
pub use process::channel::receiver::ReceivingEnd;
pub use process::channel::segment::{Segment, TicketPeer, Tickets};
pub use process::channel::sender::SendingEnd;
pub use process::channel::smem::SharedEnd;
pub use process::observer::Observer;
pub use process::participant::{Memory, Options, Participant, PeerInfo};
pub use process::section::{OwnPart, PeerPart, PeerSection};
pub use process::tap::{ChannelTap, Glance};
