//! The connections of a participant: what goes over them, and how one ends.
//!
//! What you may rely on: nothing that could not be sent is lost in silence: it is sent later, or the failure is noted and
//! the connection ended. Who is not linked gets descriptors only within the bounds of `in_flight.rs`.
//!
//! How it works: announcements go to a peer on all of its connections, each of which keeps the order; the serial of an
//! opening makes a late copy harmless.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::os::clock::now_ns;
use crate::os::descriptor::Descriptor;
use crate::process::rendezvous::connection::{Connection, Outgoing, Sent, Stage};
use crate::process::rendezvous::message::Message;
use crate::process::rendezvous::obstacles::Obstacle;
use crate::process::rendezvous::registry::{Registry, Shared, Token};

impl Registry {
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

    /// Lets a connection go, but keeps count of what is unread of it.
    pub(crate) fn abandon(&mut self, connection: Connection) {
        self.abandoned.take(connection);
    }

    /// Whether a user may be given another descriptor without being linked.
    pub(crate) fn may_be_given(&mut self, uid: u32) -> bool {
        let unlinked = self.connections.values_mut().filter(|of| !matches!(of.stage, Stage::Linked(..)));
        let may = self.abandoned.leave_room(uid, unlinked.map(|of| (of.credentials.uid, of.unread())));
        if !may {
            self.strangers.withheld = self.strangers.withheld.wrapping_add(1);
        }
        may
    }
}

fn watch_writable(shared: &Shared, id: u32, connection: &Connection, wanted: bool) {
    let readable = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
    let flags = if wanted { readable | epoll::EventFlags::OUT } else { readable };
    let _ = epoll::modify(&shared.epoll, connection.as_fd(), Token::Connection(id).data(), flags);
}
