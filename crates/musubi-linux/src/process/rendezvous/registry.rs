//! What a participant knows: its connections, its peers, its own channel ends and segments, all behind one lock.
//!
//! What you may rely on: nothing in here waits, so the lock is held for a bounded time; peers number at most
//! [`musubi_core::plan::PARTICIPANTS_MAX`], connections at most [`CONNECTIONS_MAX`] a peer plus
//! [`HALF_OPEN_MAX`] and [`OBSERVERS_MAX`].
//!
//! How it works: the attendant feeds it with events ([`super::handshake`] for messages); threads of the program open
//! and close ends through it. Announcements go to a peer on all of its connections, each of which keeps the order; the
//! serial of an opening makes a late copy harmless.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use musubi_core::plan::Plan;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::direction::Direction;
use crate::os::clock::{Deadline, DeadlineExt, now_ns};
use crate::os::credentials::{Credentials, Mortality, mortality};
use crate::os::descriptor::Descriptor;
use crate::os::forks::{Kept, Process};
use crate::os::packet_socket::{Answer, call};
use crate::process::channel::latest_timer::LateTimer;
use crate::process::channel::mailbox::TxLink;
use crate::process::rendezvous::connection::{Connection, Outgoing, Sent, Stage};
use crate::process::rendezvous::dial::Dial;
use crate::process::rendezvous::holding::Holding;
use crate::process::rendezvous::in_flight::Abandoned;
use crate::process::rendezvous::membership::SmemMember;
use crate::process::rendezvous::message::{Message, Party, Refusal};
use crate::process::rendezvous::obstacles::{Obstacle, Obstacles};
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
    pub(crate) abandoned: Vec<Abandoned>,
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
    id: u32,
    pidfd: Option<Descriptor>,
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
    fn new_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// Takes in a connection and watches it; `None` if that is not possible.
    pub(crate) fn add_connection(&mut self, shared: &Shared, connection: Connection) -> Option<u32> {
        let id = self.new_id();
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&shared.epoll, connection.as_fd(), Token::Connection(id).data(), flags).ok()?;
        self.connections.insert(id, connection);
        Some(id)
    }

    /// Sends on one connection. One that the peer has closed shows itself as hung up to the attendant.
    pub(crate) fn send(&mut self, shared: &Shared, id: u32, message: Message, fd: Option<Arc<Descriptor>>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let sent = connection.send(Outgoing { message, fd }, now_ns());
        self.after_sending(shared, id, sent);
    }

    /// Sees to it that what could not be sent is sent later, or that the failure is told.
    fn after_sending(&mut self, shared: &Shared, id: u32, sent: Sent) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let whom = connection.stage.participant();
        let failed = match sent {
            Sent::Done => return,
            Sent::Waiting => return watch_writable(shared, id, connection, true),
            Sent::Held(why) => why,
            // These are what the other end closes with.
            Sent::Broken(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return,
            Sent::Broken(errno) => {
                // Later, since who sends may be going through the peers.
                self.broken.push(id);
                Some(errno)
            }
        };
        if let (Some(errno), Some(participant)) = (failed, whom) {
            self.hindered(shared, participant, Obstacle::System("sending to a participant (sendmsg)", errno));
        }
        self.strangers.withheld = self.strangers.withheld.wrapping_add(u32::from(failed.is_some()));
        shared.wake_attendant();
    }

    /// Tries again to send what was held back, and ends what cannot be sent on.
    pub(crate) fn send_again(&mut self, shared: &Shared, now: u64) {
        for id in std::mem::take(&mut self.broken) {
            self.hung_up(shared, id);
        }
        let is_due = |connection: &Connection| connection.retry.is_some_and(|retry| retry.due_ns <= now);
        let due: Vec<u32> = self.connections.iter().filter(|(_, of)| is_due(of)).map(|(id, _)| *id).collect();
        for id in due {
            self.writable(shared, id);
        }
    }

    /// Sends to a peer on all its connections.
    pub(crate) fn tell(&mut self, shared: &Shared, peer: usize, message: Message, fd: Option<Arc<Descriptor>>) {
        for id in self.peers[peer].connections.clone() {
            self.send(shared, id, message, fd.clone());
        }
    }

    /// The socket has room again, or it is time to try.
    pub(crate) fn writable(&mut self, shared: &Shared, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let sent = connection.flush(now_ns());
        watch_writable(shared, id, connection, sent == Sent::Waiting);
        match (sent, connection.stage) {
            (Sent::Done, Stage::Linked(participant, _)) => self.obstacles.forget(participant),
            _ => self.after_sending(shared, id, sent),
        }
    }

    /// A connection has ended.
    pub(crate) fn hung_up(&mut self, shared: &Shared, id: u32) {
        let Some(connection) = self.connections.remove(&id) else { return };
        let _ = epoll::delete(&shared.epoll, connection.as_fd());
        let stage = connection.stage;
        self.abandon(connection);
        match stage {
            Stage::Accepted | Stage::Observer => (),
            Stage::Dialed(participant) => self.dial_broken(shared, participant),
            Stage::Linked(participant, epoch) => {
                self.dial_over(shared, participant, id);
                self.connection_lost(shared, participant, epoch, id);
            }
        }
    }

    /// Ends a connection on which came what no participant sends; a peer loses all its connections.
    pub(crate) fn cut_off(&mut self, shared: &Shared, id: u32) {
        self.strangers.garbage = self.strangers.garbage.wrapping_add(1);
        let stage = self.connections.get(&id).map(|connection| connection.stage);
        match stage {
            Some(Stage::Linked(participant, epoch)) => self.lose(shared, participant, epoch),
            _ => self.hung_up(shared, id),
        }
    }

    fn connection_lost(&mut self, shared: &Shared, participant: u16, epoch: u32, id: u32) {
        let Some(peer) = self.peer_mut(participant, epoch) else { return };
        peer.connections.retain(|of_peer| *of_peer != id);
        if peer.connections.is_empty() {
            self.lose(shared, participant, epoch);
        }
    }

    // ---- calls to those who may be there ----

    /// Calls whoever is due.
    pub(crate) fn call_due(&mut self, shared: &Shared, now: u64) {
        let is_due = |dial: &Dial| dial.connection.is_none() && dial.due_ns <= now;
        let due: Vec<u16> =
            self.dials.iter().filter(|(_, dial)| is_due(dial)).map(|(participant, _)| *participant).collect();
        for participant in due {
            self.call_participant(shared, participant, now);
        }
        self.refresh(shared);
    }

    fn call_participant(&mut self, shared: &Shared, participant: u16, now: u64) {
        let (socket, credentials) = match call(&shared.names.participant(participant)) {
            Ok(Answer::Connected(socket, credentials)) => (socket, credentials),
            Ok(Answer::Absent) => {
                self.dials.remove(&participant);
                return;
            }
            Ok(Answer::Busy) => return self.postpone(participant, now),
            Err(error) => {
                self.failed_at(shared, participant, &error);
                return self.postpone(participant, now);
            }
        };
        let domain = shared.plan.domain_of(participant);
        let allowed = domain.is_some_and(|domain| credentials.may_attach(&shared.plan.domains[usize::from(domain)]));
        if !allowed {
            // A stranger on a name of ours gets nothing, the section least of all.
            self.strangers.squatter = Some((participant, credentials.uid));
            self.hindered(shared, participant, Obstacle::Foreign(credentials.uid));
            self.dials.remove(&participant);
            return;
        }
        if !self.may_be_given(credentials.uid) {
            return self.postpone(participant, now);
        }
        let connection = Connection::new(socket, Stage::Dialed(participant), credentials, now);
        let Some(id) = self.add_connection(shared, connection) else { return self.postpone(participant, now) };
        if let Some(dial) = self.dials.get_mut(&participant) {
            dial.connection = Some(id);
        }
        self.send(shared, id, Message::Hello(shared.me), Some(shared.section.fd()));
    }

    fn postpone(&mut self, participant: u16, now: u64) {
        if let Some(dial) = self.dials.get_mut(&participant) {
            dial.postpone(now);
        }
    }

    /// A dialed connection ended before it was answered: busy or just dying. Called again unless the peer has come to
    /// us meanwhile and told all.
    fn dial_broken(&mut self, shared: &Shared, participant: u16) {
        let is_linked = self.peers.iter().any(|peer| peer.party.participant == participant);
        if is_linked && !self.is_incomplete(participant) {
            self.dials.remove(&participant);
        } else {
            self.postpone(participant, now_ns());
        }
        self.refresh(shared);
    }

    /// The dial that used this connection is over.
    pub(crate) fn dial_over(&mut self, shared: &Shared, participant: u16, connection: u32) {
        if self.dials.get(&participant).is_some_and(|dial| dial.connection == Some(connection)) {
            self.dials.remove(&participant);
            self.refresh(shared);
        }
    }

    // ---- peers ----

    pub(crate) fn peer_index(&self, participant: u16, epoch: u32) -> Option<usize> {
        self.peers.iter().position(|peer| (peer.party.participant, peer.party.epoch) == (participant, epoch))
    }

    pub(crate) fn peer_mut(&mut self, participant: u16, epoch: u32) -> Option<&mut Peer> {
        let index = self.peer_index(participant, epoch)?;
        Some(&mut self.peers[index])
    }

    /// Takes in a peer, or another connection of one; an older incarnation in the same slot is dead. False if it has
    /// died meanwhile.
    pub(crate) fn admit(&mut self, shared: &Shared, id: u32, party: Party, section: Arc<PeerSection>) -> bool {
        let known = self.peers.iter().find(|peer| peer.party.participant == party.participant);
        if let Some(older) = known.map(|peer| peer.party.epoch).filter(|epoch| *epoch != party.epoch) {
            self.lose(shared, party.participant, older);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.party == party) {
            connection.stage = Stage::Linked(party.participant, party.epoch);
            peer.connections.push(id);
            return true;
        }
        let credentials = connection.credentials.clone();
        let pidfd = match mortality(connection.as_fd(), &credentials) {
            Mortality::Watched(pidfd) => Some(pidfd),
            Mortality::Dead => return false,
            Mortality::Unknown => None,
        };
        connection.stage = Stage::Linked(party.participant, party.epoch);
        self.obstacles.forget(party.participant);
        let process = self.new_id();
        if let Some(pidfd) = &pidfd {
            let _ = epoll::add(&shared.epoll, pidfd, Token::Process(process).data(), epoll::EventFlags::IN);
        }
        let (connections, ends) = (vec![id], BTreeMap::new());
        self.peers.push(Peer { party, section, credentials, id: process, pidfd, connections, ready: false, ends });
        self.refresh_tickets(shared, party.domain);
        self.refresh(shared);
        true
    }

    /// The process of this peer has ended.
    pub(crate) fn process_ended(&mut self, shared: &Shared, id: u32) {
        let ended = self.peers.iter().find(|peer| peer.id == id).map(|peer| (peer.party.participant, peer.party.epoch));
        if let Some((participant, epoch)) = ended {
            self.lose(shared, participant, epoch);
        }
    }

    /// A peer is gone: what it held comes back, and who waits for it hears of it.
    pub(crate) fn lose(&mut self, shared: &Shared, participant: u16, epoch: u32) {
        let Some(index) = self.peer_index(participant, epoch) else { return };
        let peer = self.peers.swap_remove(index);
        if let Some(pidfd) = &peer.pidfd {
            let _ = epoll::delete(&shared.epoll, pidfd);
        }
        for id in &peer.connections {
            if let Some(connection) = self.connections.remove(id) {
                let _ = epoll::delete(&shared.epoll, connection.as_fd());
                self.abandon(connection);
            }
            self.dial_over(shared, participant, *id);
        }
        for (&(fifo, direction), end) in &peer.ends {
            self.end_lost(shared, (participant, epoch, end.serial), fifo, direction);
        }
        for &(fifo, _) in peer.ends.keys() {
            self.link_ends(shared, fifo);
        }
        self.refresh_tickets(shared, peer.party.domain);
        self.create_segments(shared);
        self.refresh(shared);
    }

    /// Recomputes what depends on who is there, and tells those who wait.
    pub(crate) fn refresh(&mut self, shared: &Shared) {
        for member in &self.segments {
            let domains = shared.plan.smems[usize::from(member.number)].domains;
            let concerns =
                |participant: &u16| shared.plan.domain_of(*participant).is_some_and(|d| domains.contains(&d));
            // Who has told all and is called again has long known our ticket, and we its.
            let is_ready = |number: &u16| self.peers.iter().any(|peer| peer.ready && peer.party.participant == *number);
            member.view.settle(!self.dials.keys().any(|number| concerns(number) && !is_ready(number)));
        }
        shared.changed.notify_all();
    }

    /// Whether every participant that was there when we came has answered and told all.
    pub(crate) fn all_answered(&self) -> bool {
        self.dials.is_empty() && self.peers.iter().all(|peer| peer.ready)
    }

    /// Drops everything that others can see; gives the wakers of those who wait, to be woken outside the lock.
    #[must_use]
    pub(crate) fn leave(&mut self, shared: &Shared) -> Vec<Waker> {
        self.left = true;
        let mut wakers = Vec::new();
        for holding in std::mem::take(&mut self.holdings) {
            wakers.extend(holding.core.leave(&shared.epoll));
        }
        while let Some((participant, epoch)) = self.peers.last().map(|peer| (peer.party.participant, peer.party.epoch))
        {
            self.lose(shared, participant, epoch);
        }
        self.listener = None;
        self.connections.clear();
        self.dials.clear();
        self.parked.clear();
        self.segments.clear();
        shared.changed.notify_all();
        wakers
    }
}

fn watch_writable(shared: &Shared, id: u32, connection: &Connection, wanted: bool) {
    let readable = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
    let flags = if wanted { readable | epoll::EventFlags::OUT } else { readable };
    let _ = epoll::modify(&shared.epoll, connection.as_fd(), Token::Connection(id).data(), flags);
}
