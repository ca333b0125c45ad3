//! What a participant knows: its connections, its peers, its own channel ends and segments, all behind one lock.
//!
//! What you may rely on: nothing in here waits, so the lock is held for a bounded time; peers number at most
//! [`musubi_core::plan::PARTICIPANTS_MAX`], connections at most [`CONNECTIONS_MAX`] a peer plus
//! [`HALF_OPEN_MAX`] and [`OBSERVERS_MAX`].
//!
//! How it works: this file is what is known; what happens to it is beside it, a concept a file: connections and what goes
//! over them (`traffic.rs`), calls (`calls.rs`), peers that come and go (`peers.rs`), messages (`handshake.rs`), ends
//! (`linking.rs`), memory (`segments.rs`), what went wrong (`obstacles.rs`, `in_flight.rs`). The attendant feeds it with
//! events; threads of the program open and close ends through it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use musubi_core::plan::Plan;
use rustix::event::epoll;

use crate::direction::Direction;
use crate::os::clock::{Deadline, DeadlineExt};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::{Kept, Process};
use crate::process::channel::latest_timer::LateTimer;
use crate::process::channel::mailbox::TxLink;
use crate::process::rendezvous::connection::Connection;
use crate::process::rendezvous::dial::Dial;
use crate::process::rendezvous::holding::Holding;
use crate::process::rendezvous::in_flight::Abandoned;
use crate::process::rendezvous::membership::SmemMember;
use crate::process::rendezvous::message::{Party, Refusal};
use crate::process::rendezvous::obstacles::Obstacles;
use crate::process::rendezvous::socket_names::Names;
use crate::process::section::{OwnSection, PeerSection};

/// Most accepted connections that have not said who they are; a newcomer replaces the oldest.
pub const HALF_OPEN_MAX: usize = 32;
/// How long such a connection may stay silent, in nanoseconds.
pub const HALF_OPEN_NS_MAX: u64 = 1_000_000_000;
/// Most observers at once.
pub const OBSERVERS_MAX: usize = 64;
/// Most of them that one user has.
pub const OBSERVERS_OF_USER_MAX: usize = 16;

/// Most connections of one peer; two are usual when both started at once.
pub const CONNECTIONS_MAX: usize = 4;

/// What all threads of a participant share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: &'static Plan<'static>,
    pub(crate) names: Names,
    pub(crate) me: Party,
    pub(crate) process: Process,
    pub(crate) section: Arc<OwnSection>,
    pub(crate) epoll: Descriptor,
    pub(crate) wake: Descriptor,
    pub(crate) late: LateTimer,
    pub(crate) stopping: AtomicBool,
    pub(crate) serial: AtomicU32,
    /// Signalled when peers, segments or the handshakes change.
    pub(crate) changed: Condvar,
    pub(crate) registry: Mutex<Registry>,
}

/// What an epoll event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Listener,
    Wake,
    Late,
    Connection(u32),
    Process(u32),
    Waker(u32),
}

impl Token {
    pub(crate) fn data(self) -> epoll::EventData {
        let (kind, number) = match self {
            Token::Listener => (0u64, 0),
            Token::Wake => (1, 0),
            Token::Late => (2, 0),
            Token::Connection(id) => (3, id),
            Token::Process(id) => (4, id),
            Token::Waker(serial) => (5, serial),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(number))
    }

    pub(crate) fn of(data: epoll::EventData) -> Option<Token> {
        let number = data.u64() as u32;
        Some(match data.u64() >> 32 {
            0 => Token::Listener,
            1 => Token::Wake,
            2 => Token::Late,
            3 => Token::Connection(number),
            4 => Token::Process(number),
            5 => Token::Waker(number),
            _ => return None,
        })
    }
}

/// State behind the lock.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) listener: Option<Kept>,
    pub(crate) connections: BTreeMap<u32, Connection>,
    /// Connections that cannot be sent on, to be ended by the attendant.
    pub(crate) broken: Vec<u32>,
    pub(crate) abandoned: Abandoned,
    pub(crate) peers: Vec<Peer>,
    pub(crate) dials: BTreeMap<u16, Dial>,
    pub(crate) holdings: Vec<Holding>,
    /// Receivers of closed send ends, whose progress the next opening continues.
    pub(crate) parked: BTreeMap<u16, TxLink>,
    pub(crate) segments: Vec<SmemMember>,
    /// The first handshakes are over.
    pub(crate) joined: bool,
    pub(crate) left: bool,
    pub(crate) accept_again_ns: Option<u64>,
    /// When memory that is ours to create, and is not there, is tried again.
    pub(crate) create_again_ns: Option<u64>,
    pub(crate) next_id: u32,
    pub(crate) strangers: Strangers,
    /// Why present participants are not linked with us.
    pub(crate) obstacles: Obstacles,
}

/// Those who tried and were not let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Connections cut off for packets that no participant sends, or for silence.
    pub garbage: u32,
    /// Handshakes refused.
    pub refused: u32,
    /// Descriptors not given, or later than they should: the caller's user leaves too many unread, or the kernel has no room.
    pub withheld: u32,
    /// The last refusal: participant that they claimed to be, reason, hash of their plan.
    pub last: Option<(u16, Refusal, u64)>,
    /// A slot of a peer whose name is held by a user that may not, and that user.
    pub squatter: Option<(u16, u32)>,
}

/// One living participant that we are linked with.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) party: Party,
    pub(crate) section: Arc<PeerSection>,
    pub(crate) credentials: Credentials,
    pub(crate) id: u32,
    pub(crate) pidfd: Option<Descriptor>,
    pub(crate) connections: Vec<u32>,
    /// It has told all there was at the handshake.
    pub(crate) ready: bool,
    pub(crate) ends: BTreeMap<(u16, Direction), RemoteEnd>,
}

/// A channel end of a peer, as announced.
#[derive(Clone, Debug)]
pub(crate) struct RemoteEnd {
    pub(crate) serial: u32,
    pub(crate) open: bool,
    pub(crate) doorbell: Option<Arc<Descriptor>>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change of the registry; `None` if the deadline passed.
    pub(crate) fn wait_changed<'a>(
        &self,
        registry: MutexGuard<'a, Registry>,
        deadline: Deadline,
    ) -> Option<MutexGuard<'a, Registry>> {
        match deadline.left_ns() {
            Some(0) => None,
            Some(ns) => {
                let waited = self.changed.wait_timeout(registry, Duration::from_nanos(ns));
                Some(waited.unwrap_or_else(PoisonError::into_inner).0)
            }
            None => Some(self.changed.wait(registry).unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Makes the attendant look at the registry.
    pub(crate) fn wake_attendant(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_linked_with(&self, domain: u16) -> bool {
        self.plan.linked(self.me.domain, domain)
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

impl Registry {
    pub(crate) fn new_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    pub(crate) fn peer_index(&self, participant: u16, epoch: u32) -> Option<usize> {
        self.peers.iter().position(|peer| (peer.party.participant, peer.party.epoch) == (participant, epoch))
    }

    pub(crate) fn peer_mut(&mut self, participant: u16, epoch: u32) -> Option<&mut Peer> {
        let index = self.peer_index(participant, epoch)?;
        Some(&mut self.peers[index])
    }
}
