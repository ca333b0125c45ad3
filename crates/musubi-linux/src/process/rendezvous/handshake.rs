//! What the messages of the rendezvous do.
//!
//! What you may rely on: a message that does not fit the plan or the stage of its connection cuts the connection off
//! and changes nothing else. Who it is comes from the kernel, not from the message: the user from the socket, the slot
//! from who holds its name.
//!
//! How it works: HELLO (with section) is answered by WELCOME (with section) or REFUSE. Either side then tells its open
//! ends and its segments and closes with READY.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::net::{SocketFlags, accept_with};

use crate::direction::Direction;
use crate::os::clock::now_ns;
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::os::packet_socket::{Answer, call};
use crate::os::sealed::Unusable;
use crate::process::channel::doorbell::is_doorbell;
use crate::process::rendezvous::connection::{Connection, Incoming, Stage};
use crate::process::rendezvous::message::{Garbage, Message, Party, Refusal};
use crate::process::rendezvous::obstacles::Obstacle;
use crate::process::rendezvous::registry::{
    CONNECTIONS_MAX, HALF_OPEN_MAX, HALF_OPEN_NS_MAX, OBSERVERS_MAX, OBSERVERS_OF_USER_MAX, Registry, RemoteEnd, Shared,
};
use crate::process::section::PeerSection;

/// Most connections accepted, and most packets taken from one connection, before others get their turn.
const TURN_MAX: usize = 32;
/// Pause before accepting again when the process has no descriptors left or the kernel no room, in nanoseconds.
pub(crate) const ACCEPT_PAUSE_NS: u64 = 10_000_000;

impl Registry {
    /// Takes in those who connect.
    pub(crate) fn accept(&mut self, shared: &Shared) {
        for _ in 0..TURN_MAX {
            let Some(listener) = &self.listener else { return };
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.accepted(shared, Kept::new(Descriptor::of_others(socket))),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => (),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => return self.pause_accepting(shared),
            }
        }
    }

    fn accepted(&mut self, shared: &Shared, socket: Kept) {
        let Some(credentials) = Credentials::of_peer(socket.as_fd()) else { return };
        self.make_room(shared);
        let allowed = credentials.may_observe(shared.plan);
        let connection = Connection::new(socket, Stage::Accepted, credentials, now_ns());
        let Some(id) = self.add_connection(shared, connection) else { return };
        if allowed {
            // Who means it has spoken already.
            self.readable(shared, id);
        } else {
            self.refuse(shared, id, u16::MAX, Refusal::User, 0);
        }
    }

    /// Keeps the number of connections that have said nothing within its bound.
    fn make_room(&mut self, shared: &Shared) {
        let silent = |connection: &Connection| connection.stage == Stage::Accepted;
        let count = self.connections.values().filter(|connection| silent(connection)).count();
        if count >= HALF_OPEN_MAX {
            let oldest = self.connections.iter().filter(|(_, c)| silent(c)).min_by_key(|(_, c)| c.since_ns);
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.cut_off(shared, id);
            }
        }
    }

    fn pause_accepting(&mut self, shared: &Shared) {
        if let Some(listener) = &self.listener {
            let _ = rustix::event::epoll::delete(&shared.epoll, listener);
            self.accept_again_ns = Some(now_ns() + ACCEPT_PAUSE_NS);
        }
    }

    /// Cuts off who has been silent for too long.
    pub(crate) fn drop_silent(&mut self, shared: &Shared, now: u64) {
        let overdue = |c: &Connection| c.stage == Stage::Accepted && c.since_ns + HALF_OPEN_NS_MAX <= now;
        let silent: Vec<u32> = self.connections.iter().filter(|(_, c)| overdue(c)).map(|(id, _)| *id).collect();
        for id in silent {
            self.cut_off(shared, id);
        }
    }

    /// Takes what has come on a connection.
    pub(crate) fn readable(&mut self, shared: &Shared, id: u32) {
        for _ in 0..TURN_MAX {
            let Some(connection) = self.connections.get(&id) else { return };
            match connection.receive() {
                Incoming::Message(message, fd) => self.message(shared, id, message, fd),
                Incoming::Nothing => return,
                Incoming::Closed => return self.hung_up(shared, id),
                Incoming::Truncated => self.missed(shared, id),
                Incoming::Garbage(garbage) => return self.garbage(shared, id, garbage),
            }
        }
    }

    fn garbage(&mut self, shared: &Shared, id: u32, garbage: Garbage) {
        let stage = self.connections.get(&id).map(|connection| connection.stage);
        match (stage, garbage) {
            (Some(Stage::Accepted), Garbage::Version) => self.refuse(shared, id, u16::MAX, Refusal::Version, 0),
            (Some(Stage::Dialed(participant)), Garbage::Version) => {
                self.turned_down(shared, id, participant, Refusal::Version, 0);
            }
            _ => self.cut_off(shared, id),
        }
    }

    fn message(&mut self, shared: &Shared, id: u32, message: Message, fd: Option<Descriptor>) {
        let Some(stage) = self.connections.get(&id).map(|connection| connection.stage) else { return };
        match (stage, message, fd) {
            (Stage::Accepted, Message::Hello(party), Some(fd)) => self.hello(shared, id, party, fd),
            (Stage::Accepted, Message::Observe { hash }, None) => self.observe(shared, id, hash),
            (Stage::Dialed(whom), Message::Welcome(party), Some(fd)) => self.welcome(shared, id, whom, party, fd),
            (Stage::Dialed(whom), Message::Refuse { reason, hash }, None) => {
                self.turned_down(shared, id, whom, reason, hash);
            }
            (Stage::Linked(participant, epoch), message, fd) => {
                self.told(shared, id, (participant, epoch), message, fd);
            }
            _ => self.cut_off(shared, id),
        }
    }

    // ---- those who come to us ----

    fn hello(&mut self, shared: &Shared, id: u32, party: Party, fd: Descriptor) {
        let section = match self.examine(shared, id, party, &fd) {
            Err(reason) => return self.refuse(shared, id, party.participant, reason, party.hash),
            Ok(section) => section,
        };
        if !self.admit(shared, id, party, section) {
            return self.hung_up(shared, id);
        }
        self.send(shared, id, Message::Welcome(shared.me), Some(shared.section.fd()));
        self.tell_all(shared, id, party);
    }

    /// Whether who calls may be let in, and its section.
    fn examine(
        &mut self,
        shared: &Shared,
        id: u32,
        party: Party,
        fd: &Descriptor,
    ) -> Result<Arc<PeerSection>, Refusal> {
        let plan = shared.plan;
        if party.hash != plan.hash {
            return Err(Refusal::Plan);
        }
        let is_slot =
            plan.domain_of(party.participant) == Some(party.domain) && party.participant != shared.me.participant;
        if !is_slot || !shared.is_linked_with(party.domain) || party.epoch == 0 {
            return Err(Refusal::Slot);
        }
        let caller = &self.connections.get(&id).ok_or(Refusal::Busy)?.credentials;
        if !caller.may_attach(&plan.domains[usize::from(party.domain)]) {
            return Err(Refusal::User);
        }
        let known = self.peers.iter().find(|peer| peer.party == party);
        if known.is_some_and(|peer| peer.connections.len() >= CONNECTIONS_MAX || !peer.credentials.same_process(caller))
        {
            return Err(Refusal::Busy);
        }
        match call(&shared.names.participant(party.participant)) {
            Ok(Answer::Connected(_, holder)) if holder.same_process(caller) => (),
            Ok(Answer::Connected(..) | Answer::Absent) => return Err(Refusal::Slot),
            Ok(Answer::Busy) | Err(_) => return Err(Refusal::Busy),
        }
        let uid = caller.uid;
        let section = match self.section_of(shared, party, fd) {
            Ok(section) => section,
            Err(Unusable::Unfit) => return Err(Refusal::Section),
            Err(Unusable::NoRoom(error)) => {
                self.failed_at(shared, party.participant, &error);
                return Err(Refusal::Busy);
            }
        };
        if self.may_be_given(uid) { Ok(section) } else { Err(Refusal::Busy) }
    }

    /// The peer's section: mapped already, or checked and mapped now.
    fn section_of(&self, shared: &Shared, party: Party, fd: &Descriptor) -> Result<Arc<PeerSection>, Unusable> {
        match self.peers.iter().find(|peer| peer.party == party) {
            Some(peer) => Ok(Arc::clone(&peer.section)),
            None => PeerSection::adopt(shared.plan, fd, party),
        }
    }

    fn refuse(&mut self, shared: &Shared, id: u32, participant: u16, reason: Refusal, hash: u64) {
        if let Some(caller) = self.connections.get(&id).map(|connection| connection.credentials.clone()) {
            self.not_let_in(shared, participant, &caller, (reason, hash));
        }
        self.send(shared, id, Message::Refuse { reason, hash: shared.plan.hash }, None);
        if let Some(connection) = self.connections.get(&id) {
            // A socket closed with packets unread would reset the connection, and the refusal would not be read.
            let is_last = |_: &usize| {
                matches!(
                    connection.receive(),
                    Incoming::Nothing | Incoming::Closed | Incoming::Garbage(Garbage::Foreign)
                )
            };
            let _ = (0..TURN_MAX).find(is_last);
        }
        self.hung_up(shared, id);
    }

    fn observe(&mut self, shared: &Shared, id: u32, hash: u64) {
        let Some(uid) = self.connections.get(&id).map(|connection| connection.credentials.uid) else { return };
        let observers = || self.connections.values().filter(|connection| connection.stage == Stage::Observer);
        let count = observers().count();
        let of_user = observers().filter(|connection| connection.credentials.uid == uid).count();
        if hash != shared.plan.hash {
            return self.refuse(shared, id, u16::MAX, Refusal::Plan, hash);
        }
        if count >= OBSERVERS_MAX || of_user >= OBSERVERS_OF_USER_MAX || !self.may_be_given(uid) {
            return self.refuse(shared, id, u16::MAX, Refusal::Busy, hash);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.stage = Stage::Observer;
        }
        self.send(shared, id, Message::Welcome(shared.me), Some(shared.section.fd()));
    }

    // ---- those we went to ----

    fn welcome(&mut self, shared: &Shared, id: u32, whom: u16, party: Party, fd: Descriptor) {
        if party.hash != shared.plan.hash {
            return self.turned_down(shared, id, whom, Refusal::Plan, party.hash);
        }
        let fits = party.participant == whom && shared.plan.domain_of(whom) == Some(party.domain) && party.epoch != 0;
        let section = match if fits { self.section_of(shared, party, &fd) } else { Err(Unusable::Unfit) } {
            Ok(section) => section,
            Err(Unusable::Unfit) => return self.turned_down(shared, id, whom, Refusal::Section, party.hash),
            Err(Unusable::NoRoom(error)) => {
                self.failed_at(shared, whom, &error);
                return self.hung_up(shared, id);
            }
        };
        if self.admit(shared, id, party, section) {
            self.tell_all(shared, id, party);
        } else {
            self.hung_up(shared, id);
        }
    }

    /// Whom we called does not let us in, or we it: that costs the link with it.
    fn turned_down(&mut self, shared: &Shared, id: u32, whom: u16, reason: Refusal, hash: u64) {
        if reason == Refusal::Busy {
            return self.hung_up(shared, id);
        }
        self.strangers.refused = self.strangers.refused.wrapping_add(1);
        self.strangers.last = Some((whom, reason, hash));
        self.hindered(shared, whom, Obstacle::Refused(reason, hash));
        self.dials.remove(&whom);
        self.hung_up(shared, id);
    }

    // ---- linked peers ----

    /// Tells a peer what there is to tell at the handshake.
    fn tell_all(&mut self, shared: &Shared, id: u32, party: Party) {
        self.announce_all(shared, id, party.domain);
        self.give_doorbells_again(shared, id, party);
        self.offer_segments(shared, id, party.domain);
        self.send(shared, id, Message::Ready, None);
    }

    fn told(&mut self, shared: &Shared, id: u32, peer: (u16, u32), message: Message, fd: Option<Descriptor>) {
        match (message, fd) {
            (Message::Ready, None) => self.peer_ready(shared, id, peer),
            (Message::End { fifo, direction, open, serial }, None) if is_end_of(shared, peer.0, fifo, direction) => {
                self.end_told(shared, peer, fifo, direction, (open, serial));
            }
            (Message::Doorbell { fifo, direction, serial }, Some(fd)) if is_end_of(shared, peer.0, fifo, direction) => {
                if !is_doorbell(fd.as_fd()) {
                    return self.cut_off(shared, id);
                }
                self.doorbell_told(peer, fifo, direction, (serial, fd));
            }
            (Message::Segment { smem, generation }, Some(fd)) => {
                match self.segment_told(shared, peer, smem, generation, fd) {
                    Ok(()) => (),
                    Err(Unusable::Unfit) => self.cut_off(shared, id),
                    Err(Unusable::NoRoom(_)) => self.missed(shared, id),
                }
            }
            _ => self.cut_off(shared, id),
        }
    }

    fn peer_ready(&mut self, shared: &Shared, id: u32, (participant, epoch): (u16, u32)) {
        let Some(peer) = self.peer_mut(participant, epoch) else { return };
        peer.ready = true;
        // It knows us and our tickets by now, whichever of us called: what it owes on another connection is no news.
        self.obstacles.forget(participant);
        self.told_all(shared, id, (participant, epoch));
        self.refresh(shared);
    }

    /// A peer has opened or closed an end. Copies of old news carry old serials.
    fn end_told(&mut self, shared: &Shared, peer: (u16, u32), fifo: u16, direction: Direction, news: (bool, u32)) {
        let (participant, epoch) = peer;
        let (open, serial) = news;
        let Some(of_peer) = self.peer_mut(participant, epoch) else { return };
        let known = of_peer.ends.get(&(fifo, direction)).map(|end| (end.open, end.serial));
        if let Some((was_open, was)) = known {
            let older = serial.wrapping_sub(was) > u32::MAX / 2;
            if older || (serial == was && (!was_open || open)) {
                return;
            }
        }
        of_peer.ends.insert((fifo, direction), RemoteEnd { serial, open, doorbell: None });
        if let Some((true, was)) = known {
            self.end_lost(shared, (participant, epoch, was), fifo, direction);
        }
        self.link_ends(shared, fifo);
    }

    fn doorbell_told(&mut self, peer: (u16, u32), fifo: u16, direction: Direction, bell: (u32, Descriptor)) {
        let (serial, fd) = bell;
        let Some(of_peer) = self.peer_mut(peer.0, peer.1) else { return };
        let end = of_peer.ends.get_mut(&(fifo, direction)).filter(|end| end.open && end.serial == serial);
        // An end that has been closed meanwhile needs no doorbell.
        let Some(end) = end else { return };
        end.doorbell = Some(Arc::new(fd));
        self.doorbell_came((peer.0, peer.1, serial), fifo, direction);
    }
}

/// Whether a participant's domain has this end of this channel.
fn is_end_of(shared: &Shared, participant: u16, fifo: u16, direction: Direction) -> bool {
    let Some(channel) = shared.plan.fifos.get(usize::from(fifo)) else { return false };
    let domain = match direction {
        Direction::Send => channel.from,
        Direction::Receive => channel.to,
    };
    shared.plan.domain_of(participant) == Some(domain)
}
