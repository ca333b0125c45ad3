//! What happened to connections: counts by reason, and a short log for people.
//!
//! What you may rely on: memory is bounded whatever others do; an entry that repeats is counted, not added, so a flood
//! does not wash away what it has nothing to do with.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use musubi_linux::clock::now_ns;

use super::tls::Fault;
use crate::session::{Reason, Refusals};
use crate::status::AcceptorStatus;
use crate::{NodeId, notices};

/// Entries of the log; the oldest goes first.
const ENTRIES_MAX: usize = 64;
/// Bytes of an entry; of a longer one the beginning is kept.
const ENTRY_BYTES_MAX: usize = 240;

/// Connections of a node by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that others began.
    pub accepted: u64,
    /// Of those, how many said who they are and were let in.
    pub admitted: u64,
    /// Connections that this node began and that came to stand.
    pub dialed: u64,
    /// Attempts to begin one that came to nothing.
    pub dials_failed: u64,
    /// Of both, those that this node refused, by reason.
    pub refused: Refusals,
    /// Handshakes of TLS that failed, for whatever cause.
    pub tls_failed: u64,
    /// Of those: a certificate of another authority.
    pub other_authority: u64,
    /// Of those: a certificate that has expired, or is not valid yet.
    pub expired: u64,
    /// Of those: no certificate.
    pub no_certificate: u64,
    /// Of those: the other side does not believe ours.
    pub disbelieved: u64,
    /// Connections that ended before they had said who they are.
    pub hung_up: u64,
    /// Accepting was put off because too many came at once or the system refused to, or a connection was left alone.
    pub throttled: u64,
}

/// Something that happened, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When last, nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// How often.
    pub times: u64,
    /// What.
    pub text: String,
}

/// What happened to a node's connections; shared by the acceptor and the links.
#[derive(Debug, Default)]
pub struct EventLog(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    counters: Counters,
    log: VecDeque<Entry>,
}

impl Counters {
    /// One more handshake of TLS that failed.
    pub(super) fn count_tls(&mut self, fault: Fault) {
        self.tls_failed += 1;
        match fault {
            Fault::OtherAuthority => self.other_authority += 1,
            Fault::Expired => self.expired += 1,
            Fault::NoCertificate => self.no_certificate += 1,
            Fault::Disbelieved => self.disbelieved += 1,
            Fault::Other => {}
        }
    }

    /// The same for tools.
    pub(super) fn describe(&self, acceptor: &mut AcceptorStatus) {
        let of = |reason| self.refused.of(reason);
        let explained = self.other_authority + self.expired + self.no_certificate + self.disbelieved;
        *acceptor = AcceptorStatus {
            accepted: self.accepted,
            admitted: self.admitted,
            dialed: self.dialed,
            dials_failed: self.dials_failed,
            hung_up: self.hung_up,
            throttled: self.throttled,
            garbage: of(Reason::Garbage),
            version: of(Reason::Version),
            system: of(Reason::System),
            plan: of(Reason::Plan),
            recipient: of(Reason::Recipient),
            unknown_node: of(Reason::UnknownNode),
            identity: of(Reason::Identity),
            busy: of(Reason::Busy),
            crossed: of(Reason::Crossed),
            stale: of(Reason::Stale),
            session_unknown: of(Reason::SessionUnknown),
            leaving: of(Reason::Leaving),
            time_out: of(Reason::TimeOut),
            other_authority: self.other_authority,
            expired: self.expired,
            no_certificate: self.no_certificate,
            disbelieved: self.disbelieved,
            other_tls: self.tls_failed.saturating_sub(explained),
            ..*acceptor
        };
    }
}

impl EventLog {
    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.kept().counters
    }

    /// The log, oldest entry first.
    pub fn log(&self) -> Vec<Entry> {
        self.kept().log.iter().cloned().collect()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.kept().counters);
    }

    /// Counts a refusal of ours and says why.
    pub(super) fn refused(&self, reason: Reason, whom: impl core::fmt::Display) {
        self.count(|counters| counters.refused.count(reason));
        self.note(format!("refused {whom}: {}", explained(reason)));
    }

    /// Notes what trying again does not change, about `peer`, which `me` has dialed; a person is told.
    pub(super) fn note_hopeless(&self, me: NodeId, peer: NodeId, text: String) {
        notices::say_of(peer, || format!("node {me}: no link: {text}"));
        self.note(text);
    }

    pub(super) fn note(&self, mut text: String) {
        text.truncate(text.floor_char_boundary(ENTRY_BYTES_MAX));
        let at_ns = now_ns();
        let mut kept = self.kept();
        let place = kept.log.iter().position(|entry| entry.text == text);
        let mut entry = place.and_then(|place| kept.log.remove(place)).unwrap_or(Entry { at_ns, times: 0, text });
        (entry.at_ns, entry.times) = (at_ns, entry.times + 1);
        if kept.log.len() == ENTRIES_MAX {
            kept.log.pop_front();
        }
        kept.log.push_back(entry);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Counts and entries are whole at every instant: a panic elsewhere does not spoil them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason as a person reads it.
pub(super) fn explained(reason: Reason) -> &'static str {
    match reason {
        Reason::Garbage => "does not speak this protocol (or TLS is used on one side only)",
        Reason::Version => "speaks another version of the protocol",
        Reason::System => "is of another system",
        Reason::Plan => "has another description of the system",
        Reason::Recipient => "means another node",
        Reason::UnknownNode => "is no node that has a way to this one",
        Reason::Identity => "has the certificate of another node",
        Reason::Busy => "too many connections at a time",
        Reason::Crossed => "both dialed, the other connection is kept",
        Reason::Stale => "a newer connection came first",
        Reason::SessionUnknown => "the session has been given up",
        Reason::Leaving => "the node is leaving",
        Reason::TimeOut => "did not say in time who it is",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_counted_and_the_rest_is_bounded() {
        let log = EventLog::default();
        log.note("kept".into());
        for _ in 0..10_000 {
            log.refused(Reason::Garbage, "10.0.0.9");
        }
        let kept = log.log();
        assert_eq!((kept.len(), kept[0].text.as_str(), kept[1].times), (2, "kept", 10_000));
        assert_eq!(log.counters().refused.of(Reason::Garbage), 10_000);
        (0..1000).for_each(|number| log.note(format!("entry {number} {}", "ä".repeat(1000))));
        let kept = log.log();
        assert_eq!(kept.len(), ENTRIES_MAX);
        assert!(kept.iter().all(|entry| entry.text.len() <= ENTRY_BYTES_MAX));
    }

    /// Every count another number, so that none can stand for another.
    #[test]
    fn tools_are_told_each_count_as_what_it_is() {
        const FAULTS: [Fault; 5] =
            [Fault::OtherAuthority, Fault::Expired, Fault::NoCertificate, Fault::Disbelieved, Fault::Other];
        let mut counters = Counters { accepted: 101, admitted: 102, dialed: 103, ..Counters::default() };
        (counters.dials_failed, counters.hung_up, counters.throttled) = (104, 105, 106);
        for reason in Reason::ALL {
            (0..reason as usize).for_each(|_| counters.refused.count(reason));
        }
        for (times, fault) in FAULTS.into_iter().enumerate() {
            (0..21 + times).for_each(|_| counters.count_tls(fault));
        }
        // What is not the counters' stays.
        let mut told = AcceptorStatus { memory_refused: 201, memory_strangers: 202, ..AcceptorStatus::default() };
        counters.describe(&mut told);
        let own = [told.accepted, told.admitted, told.dialed, told.dials_failed, told.hung_up, told.throttled];
        assert_eq!(own, [101, 102, 103, 104, 105, 106]);
        let refused = [
            [told.garbage, told.version, told.system, told.plan],
            [told.recipient, told.unknown_node, told.identity, told.busy],
            [told.crossed, told.stale, told.session_unknown, told.leaving],
        ];
        assert_eq!(refused, [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]);
        assert_eq!(told.time_out, 13);
        let tls = [told.other_authority, told.expired, told.no_certificate, told.disbelieved, told.other_tls];
        assert_eq!(tls, [21, 22, 23, 24, 25]);
        assert_eq!((counters.tls_failed, told.memory_refused, told.memory_strangers), (115, 201, 202));
    }
}
