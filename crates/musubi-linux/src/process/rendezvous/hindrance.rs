//! How an obstacle is noted, and how it is told.
//!
//! What you may rely on: only the Master's answer, and only while we start, is an answer about our start.
//!
//! What it does not do: believe a stranger. What somebody claims to be is noted only for a user who may be that.

use musubi_core::plan::Role;
use rustix::io::Errno;

use crate::error::Error;
use crate::os::credentials::Credentials;
use crate::process::rendezvous::message::Refusal;
use crate::process::rendezvous::obstacles::{Obstacle, Obstacles};
use crate::process::rendezvous::registry::{Registry, Shared};

impl Registry {
    /// Notes what keeps us from a participant that we called. Only the Master's answer, and only while we start, is an
    /// answer about our start.
    pub(crate) fn hindered(&mut self, shared: &Shared, participant: u16, obstacle: Obstacle) {
        let domain = shared.plan.domain_of(participant).map(|domain| &shared.plan.domains[usize::from(domain)]);
        let is_answer = matches!(obstacle, Obstacle::Refused(..));
        if is_answer && !self.joined && domain.is_some_and(|domain| domain.role == Role::Master) {
            self.obstacles.of_master = Some(participant);
        }
        self.obstacles.of.insert(participant, obstacle);
    }

    /// Notes that the kernel keeps us from a participant.
    pub(crate) fn failed_at(&mut self, shared: &Shared, participant: u16, error: &Error) {
        if let Error::System { action, source } = error {
            let errno = source.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
            self.hindered(shared, participant, Obstacle::System(action, errno));
        }
    }

    /// Notes that we did not let in who calls itself `participant`.
    pub(crate) fn not_let_in(&mut self, shared: &Shared, participant: u16, caller: &Credentials, why: (Refusal, u64)) {
        let (reason, hash) = why;
        self.strangers.refused = self.strangers.refused.wrapping_add(1);
        self.strangers.last = Some((participant, reason, hash));
        let Some(domain) = shared.plan.domain_of(participant) else { return };
        let is_linked = self.peers.iter().any(|peer| peer.party.participant == participant);
        if !is_linked && reason != Refusal::Busy && caller.may_attach(&shared.plan.domains[usize::from(domain)]) {
            self.obstacles.of.insert(participant, Obstacle::NotLetIn(reason, hash, caller.uid));
        }
    }
}

impl Obstacle {
    /// The same as an error of whoever waits for that participant.
    pub(crate) fn error(self, shared: &Shared, participant: u16) -> Error {
        let (plan, me) = (shared.plan, shared.me);
        let name_of = |domain: u16| plan.domains[usize::from(domain)].name.to_owned();
        match self {
            Obstacle::Refused(Refusal::Plan, theirs) | Obstacle::NotLetIn(Refusal::Plan, theirs, _) => {
                Error::PlanMismatch { participant, ours: me.hash, theirs }
            }
            Obstacle::Refused(Refusal::Version, _) | Obstacle::NotLetIn(Refusal::Version, ..) => {
                Error::VersionMismatch { participant }
            }
            Obstacle::Refused(Refusal::User, _) => {
                Error::RefusedUser { participant, uid: Credentials::own().uid, domain: name_of(me.domain) }
            }
            Obstacle::NotLetIn(Refusal::User, _, uid) => {
                let domain = plan.domain_of(participant).map(name_of).unwrap_or_default();
                Error::UserNotAllowed { uid, domain }
            }
            Obstacle::Refused(reason, _) => Error::Refused { participant, reason: reason.words() },
            Obstacle::NotLetIn(reason, ..) => Error::NotLetIn { participant, reason: reason.words() },
            Obstacle::Foreign(uid) => Error::NameForeign { name: shared.names.participant(participant), uid },
            Obstacle::System(action, errno) => Error::System { action, source: errno.into() },
        }
    }
}

impl Obstacles {
    /// Why our start fails, if it does.
    pub(crate) fn of_start(&self, shared: &Shared) -> Option<Error> {
        let master = self.of_master?;
        Some(self.of.get(&master)?.error(shared, master))
    }

    /// Why nobody of a domain is linked with us, as far as is known.
    pub(crate) fn of_domain(&self, shared: &Shared, domain: u16) -> Option<Error> {
        let is_of = |(participant, _): &(&u16, &Obstacle)| shared.plan.domain_of(**participant) == Some(domain);
        self.of.iter().find(is_of).map(|(participant, obstacle)| obstacle.error(shared, *participant))
    }

    /// All of them.
    pub(crate) fn all(&self, shared: &Shared) -> Vec<(u16, Error)> {
        self.of.iter().map(|(participant, obstacle)| (*participant, obstacle.error(shared, *participant))).collect()
    }
}
