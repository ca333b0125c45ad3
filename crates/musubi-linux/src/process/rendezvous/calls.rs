//! Calls to those who may be there.
//!
//! What you may rely on: a participant of another user than the description allows gets nothing, our section least of all.
//! A call that cannot be made now is made again later; nobody is called that has linked with us and told all.

use crate::os::clock::now_ns;
use crate::os::packet_socket::{Answer, call};
use crate::process::rendezvous::connection::{Connection, Stage};
use crate::process::rendezvous::dial::Dial;
use crate::process::rendezvous::message::Message;
use crate::process::rendezvous::obstacles::Obstacle;
use crate::process::rendezvous::registry::{Registry, Shared};

impl Registry {
    /// Calls whoever is due.
    pub(crate) fn call_due(&mut self, shared: &Shared, now: u64) {
        let is_due = |dial: &Dial| dial.connection.is_none() && dial.due_ns <= now;
        let due: Vec<u16> =
            self.dials.iter().filter(|(_, dial)| is_due(dial)).map(|(participant, _)| *participant).collect();
        if due.is_empty() {
            // Nothing has changed; whoever waits need not look.
            return;
        }
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
    pub(crate) fn dial_broken(&mut self, shared: &Shared, participant: u16) {
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
}
