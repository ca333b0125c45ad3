//! The acceptor's thread: its loop, and connections of both kinds until it is known who speaks.
//!
//! How it works: every connection that is not known yet is [`Pending`], under a token of this thread's own epoll instance.
//! What comes in is in [`super::accepting`], what goes out in [`super::dialing`].

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::epoll::NO_EVENT;
use rustix::event::epoll;

use super::accepting::ACCEPTS;
use super::acceptor::{Arrival, Order, Shared, Us, locked, ring, silence};
use super::admission::{Admission, Bucket, Room};
use super::event_log::{EventLog, explained};
use super::names::{self, Resolver};
use super::pending::{PENDING_NS_MAX, Pending, Progress};
use super::stream::Stream;
use super::tls;
use crate::session::{Hello, Identity, Reason};
use crate::{NodeId, notices};

/// Arrivals that the node has not looked at yet; more are refused.
const ARRIVALS_MAX: usize = 256;
/// Events taken at one look.
const EVENTS_MAX: usize = 64;

const BELL: u64 = 0;
pub(super) const LISTENER: u64 = 1;
const FIRST_PENDING: u64 = 2;
/// What the thread has.
pub(super) struct Worker {
    pub(super) us: Arc<Us>,
    pub(super) shared: Arc<Shared>,
    pub(super) event_log: Arc<EventLog>,
    pub(super) resolver: Resolver,
    pub(super) epoll: Descriptor,
    pub(super) listener: Option<Descriptor>,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// Addresses that are still to be tried.
    pub(super) dials: BTreeMap<NodeId, VecDeque<SocketAddr>>,
    pub(super) next_token: u64,
    pub(super) accepts: Bucket,
    pub(super) admission: Admission,
    /// The listener is not looked at.
    pub(super) closed: bool,
}

impl Worker {
    pub(super) fn new(
        us: Arc<Us>,
        shared: Arc<Shared>,
        listener: Option<Descriptor>,
        event_log: Arc<EventLog>,
    ) -> io::Result<Worker> {
        let epoll = Descriptor::epoll()?;
        epoll::add(&epoll, &shared.inside, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        if let Some(listener) = &listener {
            epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        }
        let (resolver, next_token) = (Resolver::default(), FIRST_PENDING);
        let (pending, dials) = (BTreeMap::new(), BTreeMap::new());
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let mut admission = Admission::new(Room::of_descriptors(descriptors));
        let places = us.topology.nodes.values().filter_map(|place| names::numeric(place.tcp.as_deref()?));
        places.for_each(|place| admission.know(place.ip()));
        Ok(Worker {
            us,
            shared,
            event_log,
            resolver,
            epoll,
            listener,
            pending,
            dials,
            next_token,
            accepts: Bucket::default(),
            admission,
            closed: false,
        })
    }

    pub(super) fn run(mut self) {
        musubi_linux::signals::leave_to_program();
        let mut events = [NO_EVENT; EVENTS_MAX];
        while !self.shared.stopping.load(Ordering::Acquire) {
            let sleep_ns = self.sleep_ns();
            let count = musubi_linux::epoll::wait(&self.epoll, &mut events, sleep_ns);
            for event in &events[..count] {
                match event.data.u64() {
                    BELL => silence(&self.shared.inside),
                    LISTENER => self.accept(),
                    token => self.step(token),
                }
            }
            self.take_orders();
            self.expire();
        }
    }

    /// How long to sleep; `None` for as long as nothing comes.
    fn sleep_ns(&self) -> Option<u64> {
        let reopening = self.closed.then(|| self.accepts.due_ns(ACCEPTS, now_ns()));
        let due_ns = self.pending.values().map(|pending| pending.until_ns).chain(reopening).min()?;
        Some(due_ns.saturating_sub(now_ns()).min(PENDING_NS_MAX))
    }

    fn take_orders(&mut self) {
        let orders = std::mem::take(&mut *locked(&self.shared.orders));
        for order in orders {
            match order {
                Order::Dial(peer) => self.look_up(peer),
                Order::Found(peer, addresses) => self.found(peer, addresses),
                Order::Forget(peer) => {
                    self.dials.remove(&peer);
                    self.pending.retain(|_, pending| pending.dialed != Some(peer));
                }
            }
        }
    }

    pub(super) fn enter(&mut self, pending: Pending) -> io::Result<()> {
        let token = self.next_token;
        self.next_token += 1;
        // Of one that came in each step reads all that is there, unless it waits for more: nothing is told twice.
        let flags = match (pending.awaits_writable(), pending.ticket.is_some()) {
            (true, _) => epoll::EventFlags::OUT,
            (false, true) => epoll::EventFlags::IN | epoll::EventFlags::ET,
            (false, false) => epoll::EventFlags::IN,
        };
        let added = epoll::add(&self.epoll, &pending.stream, epoll::EventData::new_u64(token), flags);
        self.pending.insert(token, pending);
        if let Err(error) = added {
            drop(self.take(token));
            return Err(error.into());
        }
        Ok(())
    }

    pub(super) fn step(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        match pending.step(&self.us) {
            Progress::Waits if pending.ticket.is_some() => {}
            Progress::Knocked => self.knocked(token),
            Progress::Waits => {
                let (stream, data) = (&pending.stream, epoll::EventData::new_u64(token));
                // Cannot fail: it is registered.
                let _ = epoll::modify(&self.epoll, stream, data, epoll::EventFlags::IN);
            }
            Progress::Reached => self.reached(token),
            Progress::Greeted(hello) => self.greeted(token, hello),
            Progress::Failed(error) => self.failed(token, &error),
            Progress::Refused(reason, whom) => self.refuse(token, reason, whom),
        }
    }

    pub(super) fn take(&mut self, token: u64) -> Option<Pending> {
        let mut pending = self.pending.remove(&token)?;
        if let Some(ticket) = pending.ticket.take() {
            self.admission.done(ticket);
        }
        // It is registered, or it was refused that.
        let _ = epoll::delete(&self.epoll, &pending.stream);
        Some(pending)
    }

    fn reached(&mut self, token: u64) {
        let Some(Pending { stream, dialed: Some(peer), .. }) = self.take(token) else { return };
        self.dials.remove(&peer);
        self.event_log.count(|counters| counters.dialed += 1);
        self.arrive(Arrival::Reached { peer, stream });
    }

    fn greeted(&mut self, token: u64, hello: Hello) {
        if locked(&self.shared.arrivals).len() >= ARRIVALS_MAX {
            return self.refuse(token, Reason::Busy, Some(hello.identity.node));
        }
        let Some(Pending { stream, remote, .. }) = self.take(token) else { return };
        self.event_log.count(|counters| counters.admitted += 1);
        if stream.is_encrypted() {
            self.admission.proved(remote.ip());
        }
        self.arrive(Arrival::Called { stream, remote, hello });
    }

    pub(super) fn failed(&mut self, token: u64, error: &io::Error) {
        let Some(pending) = self.take(token) else { return };
        let tls = tls::explained(error);
        self.event_log.count(|counters| match (&tls, pending.dialed) {
            (Some((fault, _)), _) => counters.count_tls(*fault),
            (None, None) => counters.hung_up += 1,
            (None, Some(_)) => {}
        });
        match (pending.dialed, tls.map(|(_, why)| why)) {
            (Some(peer), tls) => {
                // So is a certificate that this node lacks.
                let hopeless = tls.is_some() || error.kind() == io::ErrorKind::Unsupported;
                let why = tls.unwrap_or_else(|| error.to_string());
                let text = format!("node {peer} at {}: {why}", pending.remote);
                match hopeless {
                    true => self.event_log.note_hopeless(self.us.identity.node, text),
                    false => self.event_log.note(text),
                }
                self.try_next(peer);
            }
            (None, Some(why)) => self.event_log.note(format!("refused {}: {why}", pending.remote.ip())),
            (None, None) => self.event_log.note(format!("{} hung up before it said who it is", pending.remote.ip())),
        }
    }

    fn refuse(&mut self, token: u64, reason: Reason, whom: Option<NodeId>) {
        if !self.may_cost(token) {
            let Some(pending) = self.pending.get(&token) else { return };
            return self.event_log.refused(reason, pending.remote.ip());
        }
        let Some(mut pending) = self.take(token) else { return };
        match pending.dialed.or(whom) {
            Some(node) => self.event_log.refused(reason, format_args!("node {node} at {}", pending.remote.ip())),
            None => self.event_log.refused(reason, pending.remote.ip()),
        }
        if let Some(peer) = pending.dialed {
            let (me, why) = (self.us.identity.node, explained(reason));
            notices::say(|| format!("node {me}: no link: node {peer} at {}: {why}", pending.remote));
        }
        tell(&mut pending.stream, &self.us.identity, whom, reason);
        if let Some(peer) = pending.dialed {
            self.try_next(peer);
        }
    }

    fn expire(&mut self) {
        let now_ns = now_ns();
        if self.closed && self.accepts.due_ns(ACCEPTS, now_ns) <= now_ns {
            self.look_at_listener(true);
        }
        let late = |(token, pending): (&u64, &Pending)| (pending.until_ns <= now_ns).then_some(*token);
        let late: Vec<u64> = self.pending.iter().filter_map(late).collect();
        for token in late {
            let Some(pending) = self.take(token) else { continue };
            match pending.dialed {
                None if pending.ignored => {}
                Some(peer) => {
                    self.event_log.note(format!("node {peer} at {}: no answer", pending.remote));
                    self.try_next(peer);
                }
                None => self.event_log.refused(Reason::TimeOut, pending.remote.ip()),
            }
        }
    }

    pub(super) fn arrive(&self, arrival: Arrival) {
        locked(&self.shared.arrivals).push_back(arrival);
        ring(&self.shared.outside);
    }
}

/// Tells the other side why it is refused, if it said who it is, and ends the connection.
pub(super) fn tell(stream: &mut Stream, identity: &Identity, whom: Option<NodeId>, reason: Reason) {
    if let Some(node) = whom {
        let refusal = Hello::refusal(identity, node, reason).encode();
        // It fits into the buffer of a connection on which nothing has been said; if not, nobody waits for it.
        let _ = stream.write(&[IoSlice::new(&refusal)]);
    }
    stream.end();
}
