//! Where connections of a node come in and go out: a thread of its own, so that neither a flood of garbage nor a slow
//! handshake takes time from the links that stand.
//!
//! What you may rely on: how many connections are half open, and how many come in a time, is bounded, by address and
//! apart for those that the description names ([`super::admission`]); who is too many is put out at once, so nobody has to
//! wait behind it in the kernel's queue; accepting is limited in its rate. The node's lock is never held here. Whoever is refused is counted and
//! written to the [`EventLog`], and told why if it speaks the protocol.
//!
//! How it works: the carrier leaves orders (dial this node) and takes arrivals (somebody has called; the dialed one
//! stands; it could not be reached). Each side wakes the other by an eventfd; the carrier's is in the node's epoll
//! instance. A token bucket lets [`ACCEPTS_BURST`] connections in at once and then one every [`ACCEPT_NS`]; while it is
//! empty the listener is not looked at, and the kernel's queue holds who comes.
//!
//! What it does not do: decide between two connections of one node; the session does ([`Reason::Crossed`]).

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::epoll::NO_EVENT;
use rustix::event::epoll;

use super::admission::{Admission, Bucket, Rate, Room, Source};
use super::event_log::{EventLog, explained};
use super::names::{self, Resolver};
use super::pending::{PENDING_NS_MAX, Pending, Progress};
use super::sockets;
use super::stream::Stream;
use super::tls::{self, Tls};
use crate::keys;
use crate::session::{Hello, Identity, Reason};
use crate::topology::{Topology, Way};
use crate::{NodeId, notices};

/// Connections that are accepted without delay after a quiet time: all that the kernel's queue holds.
pub const ACCEPTS_BURST: u64 = 4096;
/// After a burst, one connection is accepted each time that this has passed, nanoseconds. A whole queue of them goes by in a
/// quarter of a second, and costs about a tenth of a processor's time.
pub const ACCEPT_NS: u64 = 60_000;
const ACCEPTS: Rate = Rate { burst: ACCEPTS_BURST, each_ns: ACCEPT_NS };
/// Arrivals that the node has not looked at yet; more are refused.
const ARRIVALS_MAX: usize = 256;
/// Connections accepted at one look, so that those that were let in have their turn.
const ACCEPTS_MAX: usize = 256;
/// Events taken at one look.
const EVENTS_MAX: usize = 64;

const BELL: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_PENDING: u64 = 2;

/// Who this node is, for those who check others.
#[derive(Debug)]
pub(super) struct Us {
    pub(super) topology: Arc<Topology>,
    pub(super) identity: Identity,
    pub(super) tls: Option<Tls>,
}

impl Us {
    /// What the certificate of `node` must name.
    pub(super) fn certified(&self, node: NodeId) -> keys::Identity {
        keys::Identity { system: self.topology.system.clone(), node }
    }
}

/// What came of that.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A node has called and said this.
    Called { stream: Stream, remote: SocketAddr, hello: Hello },
    /// The dialed node's connection stands.
    Reached { peer: NodeId, stream: Stream },
    /// It could not be reached.
    Unreachable { peer: NodeId },
}

#[derive(Debug)]
enum Order {
    Dial(NodeId),
    Forget(NodeId),
    Found(NodeId, Vec<SocketAddr>),
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Vec<Order>>,
    arrivals: Mutex<VecDeque<Arrival>>,
    /// Wakes the worker.
    inside: Descriptor,
    /// Wakes the node.
    outside: Descriptor,
    stopping: AtomicBool,
}

/// The carrier's side of it.
#[derive(Debug)]
pub(super) struct Acceptor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts the thread. `listener` is the socket that others connect to, if this node has an address.
    pub(super) fn open(us: Arc<Us>, listener: Option<Descriptor>, event_log: Arc<EventLog>) -> io::Result<Acceptor> {
        let shared = Arc::new(Shared {
            orders: Mutex::default(),
            arrivals: Mutex::default(),
            inside: Descriptor::event()?,
            outside: Descriptor::event()?,
            stopping: AtomicBool::new(false),
        });
        let worker = Worker::new(us, Arc::clone(&shared), listener, event_log)?;
        let thread = std::thread::Builder::new().name("musubi-accept".into()).spawn(move || worker.run())?;
        Ok(Acceptor { shared, thread: Some(thread) })
    }

    /// What becomes readable when something has arrived.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.shared.outside.as_fd()
    }

    /// Everything that has arrived.
    pub(super) fn arrivals(&self) -> VecDeque<Arrival> {
        silence(&self.shared.outside);
        std::mem::take(&mut *locked(&self.shared.arrivals))
    }

    /// Tries once to reach `peer`; [`Arrival::Reached`] or [`Arrival::Unreachable`] follows.
    pub(super) fn dial(&self, peer: NodeId) {
        self.order(Order::Dial(peer));
    }

    /// An attempt to reach `peer` is no longer of use; nothing follows, unless it already has.
    pub(super) fn forget(&self, peer: NodeId) {
        self.order(Order::Forget(peer));
    }

    fn order(&self, order: Order) {
        locked(&self.shared.orders).push(order);
        ring(&self.shared.inside);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        ring(&self.shared.inside);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to do about it.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Worker {
    us: Arc<Us>,
    shared: Arc<Shared>,
    event_log: Arc<EventLog>,
    resolver: Resolver,
    epoll: Descriptor,
    listener: Option<Descriptor>,
    pending: BTreeMap<u64, Pending>,
    /// Addresses that are still to be tried.
    dials: BTreeMap<NodeId, VecDeque<SocketAddr>>,
    next_token: u64,
    accepts: Bucket,
    admission: Admission,
    /// The listener is not looked at.
    closed: bool,
}

impl Worker {
    fn new(
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

    fn run(mut self) {
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

    // Dialing.

    fn look_up(&mut self, peer: NodeId) {
        let Some(Way::Tcp(Some(place))) = self.us.topology.way(self.us.identity.node, peer) else {
            return self.arrive(Arrival::Unreachable { peer });
        };
        self.dials.insert(peer, VecDeque::new());
        if let Some(address) = names::numeric(place) {
            return self.found(peer, vec![address]);
        }
        let shared = Arc::clone(&self.shared);
        let asked = self.resolver.ask(place.to_owned(), move |addresses| {
            locked(&shared.orders).push(Order::Found(peer, addresses));
            ring(&shared.inside);
        });
        if !asked {
            self.unreachable(peer);
        }
    }

    fn found(&mut self, peer: NodeId, addresses: Vec<SocketAddr>) {
        if addresses.is_empty() {
            self.event_log.note(format!("node {peer}: its host has no address"));
        }
        addresses.iter().for_each(|address| self.admission.know(address.ip()));
        // Else it has been forgotten meanwhile.
        if let Some(dial) = self.dials.get_mut(&peer) {
            dial.extend(addresses);
            self.try_next(peer);
        }
    }

    /// Tries the next address of a node that is dialed.
    fn try_next(&mut self, peer: NodeId) {
        while let Some(address) = self.dials.get_mut(&peer).and_then(VecDeque::pop_front) {
            let begun = Pending::dial(address, peer, now_ns()).and_then(|pending| self.enter(pending));
            match begun {
                Ok(()) => return,
                Err(error) => self.event_log.note(format!("node {peer} at {address}: {error}")),
            }
        }
        self.unreachable(peer);
    }

    fn unreachable(&mut self, peer: NodeId) {
        if self.dials.remove(&peer).is_some() {
            self.event_log.count(|counters| counters.dials_failed += 1);
            self.arrive(Arrival::Unreachable { peer });
        }
    }

    // Accepting.

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let now_ns = now_ns();
            if !self.accepts.take(ACCEPTS, now_ns) {
                self.event_log.count(|counters| counters.throttled += 1);
                return self.look_at_listener(false);
            }
            let Some(listener) = &self.listener else { return };
            match sockets::accept(listener) {
                Ok(Some((socket, remote))) => self.receive(Stream::plain(socket), remote, now_ns),
                Ok(None) => return,
                // The connection has ended again, or there are no descriptors left: either costs a token too.
                Err(error) => self.event_log.note(format!("accepting: {error}")),
            }
        }
    }

    fn look_at_listener(&mut self, open: bool) {
        self.closed = !open;
        let flags = if open { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        if let Some(listener) = &self.listener {
            // Cannot fail: the listener is registered.
            let _ = epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), flags);
        }
    }

    fn receive(&mut self, stream: Stream, remote: SocketAddr, now_ns: u64) {
        self.event_log.count(|counters| counters.accepted += 1);
        if let Some((source, known)) = self.admission.too_many(remote.ip()) {
            self.make_room(source, known);
        }
        let ticket = self.admission.admit(remote.ip(), now_ns);
        let begun = Pending::receive(stream, remote, &self.us, now_ns);
        // Its ticket is given back wherever it ends.
        let entered = match begun {
            Ok(mut pending) => {
                pending.ticket = Some(ticket);
                self.enter(pending)
            }
            Err(error) => {
                self.admission.done(ticket);
                Err(error)
            }
        };
        if let Err(error) = entered {
            self.event_log.note(format!("{}: {error}", remote.ip()));
        }
    }

    /// Puts the oldest connection of an address out, or of all that are as well known as it.
    fn make_room(&mut self, source: Source, known: bool) {
        let alike =
            |pending: &Pending| pending.ticket.as_ref().filter(|ticket| ticket.known == known).map(|of| of.source);
        let of = |(token, pending): (&u64, &Pending)| (alike(pending) == Some(source)).then_some(*token);
        let any = |(token, pending): (&u64, &Pending)| alike(pending).map(|_| *token);
        let oldest = self.pending.iter().find_map(of).or_else(|| self.pending.iter().find_map(any));
        let Some(pending) = oldest.and_then(|token| self.take(token)) else { return };
        if !pending.ignored {
            self.event_log.refused(Reason::Busy, pending.remote.ip());
        }
    }

    /// Whether something that costs is done for a connection that came in; else it is left alone from now on, so that who has
    /// come does not come again at once.
    fn may_cost(&mut self, token: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&token) else { return false };
        let Some(ticket) = &pending.ticket else { return true };
        if self.admission.may_cost(ticket, now_ns()) {
            return true;
        }
        self.ignore(token);
        false
    }

    fn ignore(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        pending.ignored = true;
        // Cannot fail: it is registered.
        let _ = epoll::delete(&self.epoll, &pending.stream);
        self.event_log.count(|counters| counters.throttled += 1);
    }

    fn knocked(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        let allowed = pending.ticket.as_mut().is_none_or(|ticket| self.admission.may_shake_hands(ticket, now_ns()));
        if !allowed {
            return self.ignore(token);
        }
        match pending.shake_hands(&self.us) {
            Ok(()) => self.step(token),
            Err(error) => self.failed(token, &error),
        }
    }

    // Visits of both kinds.

    fn enter(&mut self, pending: Pending) -> io::Result<()> {
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

    fn step(&mut self, token: u64) {
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

    fn take(&mut self, token: u64) -> Option<Pending> {
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

    fn failed(&mut self, token: u64, error: &io::Error) {
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

    fn arrive(&self, arrival: Arrival) {
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

fn ring(bell: &Descriptor) {
    // Fails only if the count is at its limit: then it is ringing.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

fn silence(bell: &Descriptor) {
    // Nothing to read is no mistake.
    let _ = rustix::io::read(bell, &mut [0_u8; 8]);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is whole at every instant: a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
