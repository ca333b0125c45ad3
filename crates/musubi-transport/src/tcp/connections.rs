//! How connections of links begin and end: what the acceptor brings, what a connection's end means, when the next one is
//! tried, and the goodbyes.
//!
//! What you may rely on: an end is noted once, with the reason that the peer or the system gave. A node is reported absent only
//! while the engine wants it and no link of it is known. The goodbyes take [`LEAVE_NS_MAX`] at most.
//!
//! How it works: the acceptor's thread finds out who is there; what it brings is taken up here, under the node's lock. A
//! session decides whether a connection carries it on; this file plans the next try, or reports that there will be none.
//!
//! What it does not do: hellos and their rules (`crate::session`), sockets that nobody has spoken on yet ([`worker`]).

use std::net::SocketAddr;

use musubi_linux::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::acceptor::Acceptor;
use super::exchange::Arrival;
use super::link::{Dial, End, Link};
use super::stream::Stream;
use super::{LEAVE_NS_MAX, TcpCarrier, event_log, tls, worker};
use crate::NodeId;
use crate::session::{Broken, Hello, Reason, State};

impl TcpCarrier {
    /// A connection may have ended: says so, and plans the next one.
    #[inline]
    pub(super) fn ended(&mut self, now_ns: u64, place: usize, result: Result<(), End>) {
        if let Err(end) = result {
            self.end_connection(now_ns, place, &end);
            self.settle(place);
        }
    }

    #[cold]
    fn end_connection(&mut self, now_ns: u64, place: usize, end: &End) {
        let me = self.us.identity.node;
        let (state, peer) = (self.links[place].session.state(), self.links[place].peer);
        self.links[place].detach();
        let mut hopeless = false;
        match end {
            End::Closed if state == State::Ended => {}
            End::Closed => self.event_log.note(format!("node {peer} has closed the connection")),
            End::Failed(error) => hopeless = self.note_failure(peer, error),
            End::Broken(Broken::Refused(reason)) => {
                hopeless = is_final(*reason);
                let text = format!("node {peer} refuses: {}", event_log::explained(*reason));
                if hopeless { self.event_log.note_hopeless(me, peer, text) } else { self.event_log.note(text) }
            }
            End::Broken(Broken::Silent) => self.event_log.note(format!("node {peer} is silent")),
            End::Broken(Broken::Protocol) => self.event_log.note(format!("node {peer} broke the protocol")),
        }
        let link = &mut self.links[place];
        if !matches!(end, End::Broken(_)) {
            link.session.disconnected(now_ns);
        }
        let was_live = matches!(state, State::Live | State::Ended);
        if was_live {
            link.plan_dial(now_ns, me)
        } else {
            link.plan_again(now_ns)
        }
        // A session that is up has `known` set, and waits.
        if hopeless || matches!(end, End::Broken(Broken::Silent)) || self.links[place].is_tried_in_vain() {
            self.report_absent(place);
        }
    }

    /// True if it was TLS: the peer does not believe our certificate, as we learn after we believed its.
    fn note_failure(&mut self, peer: NodeId, error: &std::io::Error) -> bool {
        let Some((fault, why)) = tls::explained(error) else {
            self.event_log.note(format!("connection with node {peer}: {error}"));
            return false;
        };
        self.event_log.count(|counters| counters.count_tls(fault));
        self.event_log.note_hopeless(self.us.identity.node, peer, format!("connection with node {peer}: {why}"));
        true
    }

    /// Nobody is there, as far as can be known, and there is no link that waits for it.
    fn report_absent(&mut self, place: usize) {
        let link = &self.links[place];
        if link.wanted && !link.known && !self.absent.contains(&link.peer) {
            self.absent.push_back(link.peer);
        }
    }

    pub(super) fn look_at_acceptor(&mut self, now_ns: u64) {
        let arrivals = self.acceptor.as_ref().map(Acceptor::arrivals).unwrap_or_default();
        for arrival in arrivals {
            match arrival {
                Arrival::Called { stream, remote, hello } => self.called(now_ns, stream, remote, &hello),
                Arrival::Reached { peer, stream } => self.reached(now_ns, peer, stream),
                Arrival::Unreachable { peer } => self.unreachable(now_ns, peer),
            }
        }
    }

    fn called(&mut self, now_ns: u64, mut stream: Stream, remote: SocketAddr, hello: &Hello) {
        let peer = hello.identity.node;
        let Some(place) = self.link_with(peer) else { return };
        if let Err(reason) = self.links[place].session.accept(now_ns, hello) {
            self.event_log.refused(reason, format_args!("node {peer} at {}", remote.ip()));
            return worker::tell(&mut stream, &self.us.identity, Some(peer), reason);
        }
        if let (Dial::Underway, Some(acceptor)) = (self.links[place].dial, &self.acceptor) {
            acceptor.forget(peer);
        }
        self.attach(now_ns, place, stream);
    }

    fn reached(&mut self, now_ns: u64, peer: NodeId, stream: Stream) {
        let Some(place) = self.find(peer) else { return };
        let link = &mut self.links[place];
        link.dial = Dial::Idle;
        if link.lacks_connection() {
            link.session.dial(now_ns);
            self.attach(now_ns, place, stream);
        }
    }

    fn attach(&mut self, now_ns: u64, place: usize, stream: Stream) {
        let attached = self.links[place].attach(stream).map_err(End::Failed);
        self.ended(now_ns, place, attached);
        self.write(now_ns, place);
        // What came before the connection was watched makes nothing ready if TLS has it.
        self.read(now_ns, place);
        // Also where nothing came: an answer is awaited for some time only.
        self.settle(place);
    }

    fn unreachable(&mut self, now_ns: u64, peer: NodeId) {
        let Some(place) = self.find(peer) else { return };
        self.links[place].plan_again(now_ns);
        self.settle(place);
        self.report_absent(place);
    }

    pub(super) fn do_what_is_due(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        if link.session.deadline_ns() <= now_ns {
            // What lies unread is not silence.
            self.read(now_ns, place);
            let link = &mut self.links[place];
            let result = link.session.tick(now_ns).map_err(End::Broken);
            let result = result.and_then(|()| self.write_ready(now_ns, place));
            self.ended(now_ns, place, result);
            self.settle(place);
        }
        let (me, link) = (self.us.identity.node, &mut self.links[place]);
        link.plan_dial(now_ns, me);
        if let (Dial::At(at_ns), Some(acceptor)) = (link.dial, &self.acceptor)
            && at_ns <= now_ns
        {
            link.dial = if link.lacks_connection() { Dial::Underway } else { Dial::Idle };
            if link.dial == Dial::Underway {
                acceptor.dial(link.peer);
            }
        }
    }

    /// Waits until the goodbyes have been exchanged, or the time for it is over.
    pub(super) fn wait_for_goodbyes(&mut self) {
        let until_ns = clock::now_ns() + LEAVE_NS_MAX;
        loop {
            let now_ns = clock::now_ns();
            let staying = |link: &&Link| link.is_connected() && !link.session.has_left();
            let waiting: Vec<usize> = (0..self.links.len()).filter(|&at| staying(&&self.links[at])).collect();
            if waiting.is_empty() || now_ns >= until_ns {
                return;
            }
            let streams = waiting.iter().filter_map(|&place| self.links[place].stream().map(|stream| (place, stream)));
            let flags = |place: usize| if self.links[place].is_full() { PollFlags::OUT } else { PollFlags::empty() };
            let mut watched: Vec<PollFd<'_>> =
                streams.map(|(place, stream)| PollFd::new(stream, flags(place) | PollFlags::IN)).collect();
            // What a rule holds back goes as far as there is time for it.
            let due_ns = waiting.iter().map(|&place| self.links[place].session.deadline_ns()).min().unwrap_or(until_ns);
            let sleep_ns = due_ns.min(until_ns).saturating_sub(now_ns);
            let timeout = Timespec { tv_sec: 0, tv_nsec: sleep_ns as i64 };
            // A signal ends it early; then it is looked and waited again.
            let _ = poll(&mut watched, Some(&timeout));
            let now_ns = clock::now_ns();
            for place in waiting {
                self.read(now_ns, place);
                // Nobody takes them in any more.
                while self.links[place].session.next_report().is_some() {}
                self.do_what_is_due(now_ns, place);
            }
        }
    }
}

/// Reasons that trying again does not change.
fn is_final(reason: Reason) -> bool {
    use Reason::*;
    matches!(reason, Garbage | Version | System | Plan | Recipient | UnknownNode | Identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trying_again_does_not_change_is_final() {
        use Reason::*;
        for reason in Reason::ALL {
            let may_change = matches!(reason, Busy | Crossed | Stale | SessionUnknown | Leaving | TimeOut);
            assert_eq!(is_final(reason), !may_change, "{reason:?}");
        }
    }
}
