//! The acceptor's thread: its loop, and connections of both kinds until it is known who speaks.
//!
//! What you may rely on: connections of which nobody knows who they are cost a node bounded memory and descriptors, and each has
//! its time; at most [`ARRIVALS_MAX`] wait for the node. The loop sleeps where nothing is due.
//!
//! How it works: every connection that is not known yet is [`Pending`], under a token of this thread's own epoll instance.
//! What comes in is in [`super::accepting`], what goes out in [`super::dialing`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::{Descriptor, read_file};
use musubi_linux::epoll::NO_EVENT;
use rustix::event::epoll;

use super::admission::{Admission, Bucket, Room};
use super::event_log::{EventLog, explained};
use super::exchange::{Arrival, Order, Shared, Us, locked, ring, silence};
use super::names::{self, Resolver};
use super::pending::{Pending, Progress};
use super::stream::Stream;
use super::tls;
use crate::session::{Hello, Identity, Reason};
use crate::{NodeId, notices};

/// Arrivals that the node has not looked at yet; more are refused.
const ARRIVALS_MAX: usize = 256;
/// Events taken at one look.
const EVENTS_MAX: usize = 64;

/// Bytes of the list of limits, at most.
const LIMITS_BYTES: usize = 16 * 1024;

const BELL: u64 = 0;
pub(super) const LISTENER: u64 = 1;
const FIRST_PENDING: u64 = 2;

/// An attempt to reach a node.
#[derive(Debug, Default)]
pub(super) struct Dial {
    /// Addresses that are still to be tried.
    pub(super) addresses: VecDeque<SocketAddr>,
    /// Token of the connection that is being tried.
    pub(super) under_way: Option<u64>,
}

/// What the thread has.
pub(super) struct Worker {
    pub(super) us: Arc<Us>,
    pub(super) shared: Arc<Shared>,
    pub(super) event_log: Arc<EventLog>,
    pub(super) resolver: Resolver,
    pub(super) epoll: Descriptor,
    pub(super) listener: Option<Descriptor>,
    /// By their tokens. Later ones are larger, and each has the same time, so the first one's is over first.
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) dials: BTreeMap<NodeId, Dial>,
    /// Places of nodes that are written as names.
    pub(super) names: BTreeSet<String>,
    /// When they are looked up again; `None` while they are, or if there are none.
    pub(super) names_due_ns: Option<u64>,
    next_token: u64,
    pub(super) accepts: Bucket,
    pub(super) admission: Admission,
    /// Until when the listener is not looked at, if it is not.
    pub(super) closed_until_ns: Option<u64>,
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
        let mut admission = Admission::new(Room::of_descriptors(descriptors_max()));
        let mut names = BTreeSet::new();
        for place in us.topology.nodes.values().filter_map(|place| place.tcp.as_deref()) {
            match names::numeric(place) {
                Some(address) => admission.known.name(place, [address.ip()]),
                None => {
                    names.insert(place.to_owned());
                }
            }
        }
        let names_due_ns = (!names.is_empty()).then_some(0);
        Ok(Worker {
            us,
            shared,
            event_log,
            resolver,
            epoll,
            listener,
            pending,
            dials,
            names,
            names_due_ns,
            next_token,
            accepts: Bucket::default(),
            admission,
            closed_until_ns: None,
        })
    }

    pub(super) fn run(mut self) {
        musubi_linux::signals::leave_to_program();
        while !self.shared.stopping.load(Ordering::Acquire) {
            self.round();
        }
    }

    /// Sleeps until there is something to do, and does it.
    fn round(&mut self) {
        let mut events = [NO_EVENT; EVENTS_MAX];
        let count = musubi_linux::epoll::wait(&self.epoll, &mut events, self.sleep_ns());
        for event in &events[..count] {
            match event.data.u64() {
                BELL => silence(&self.shared.inside),
                LISTENER => self.accept(),
                token => self.step(token),
            }
        }
        self.take_orders();
        self.do_what_is_due();
    }

    /// How long to sleep; `None` for as long as nothing comes.
    fn sleep_ns(&self) -> Option<u64> {
        let oldest = self.pending.first_key_value().map(|(_, pending)| pending.until_ns);
        let due_ns = [oldest, self.closed_until_ns, self.names_due_ns].into_iter().flatten().min()?;
        Some(due_ns.saturating_sub(now_ns()))
    }

    fn take_orders(&mut self) {
        let orders = std::mem::take(&mut *locked(&self.shared.orders));
        for order in orders {
            match order {
                Order::Dial(peer) => self.look_up(peer),
                Order::Found(peer, addresses) => self.found(peer, addresses),
                Order::Named(hosts) => self.named(hosts),
                Order::Forget(peer) => {
                    let dial = self.dials.remove(&peer);
                    dial.and_then(|dial| dial.under_way).and_then(|token| self.take(token));
                }
            }
        }
    }

    pub(super) fn new_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token - 1
    }

    pub(super) fn enter(&mut self, token: u64, pending: Pending) -> io::Result<()> {
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
            Progress::Garbled => self.garbled(token),
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
            self.admission.known.proved(remote.ip());
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
                    true => self.event_log.note_hopeless(self.us.identity.node, peer, text),
                    false => self.event_log.note(text),
                }
                self.try_next(peer);
            }
            (None, Some(why)) => self.event_log.note(format!("refused {}: {why}", pending.remote.ip())),
            (None, None) => self.event_log.note(format!("{} hung up before it said who it is", pending.remote.ip())),
        }
    }

    fn refuse(&mut self, token: u64, reason: Reason, whom: Option<NodeId>) {
        if !self.may_answer(token) {
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
            notices::say_of(peer, || format!("node {me}: no link: node {peer} at {}: {why}", pending.remote));
        }
        tell(&mut pending.stream, &self.us.identity, whom, reason);
        if let Some(peer) = pending.dialed {
            self.try_next(peer);
        }
    }

    fn do_what_is_due(&mut self) {
        let now_ns = now_ns();
        if self.closed_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.look_at_listener_again();
        }
        if self.names_due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.look_up_names();
        }
        while let Some((&token, pending)) = self.pending.first_key_value()
            && pending.until_ns <= now_ns
        {
            self.expire(token);
        }
    }

    fn expire(&mut self, token: u64) {
        let Some(pending) = self.take(token) else { return };
        match pending.dialed {
            None if pending.ignored => {}
            Some(peer) => {
                self.event_log.note(format!("node {peer} at {}: no answer", pending.remote));
                self.try_next(peer);
            }
            None => self.event_log.refused(Reason::TimeOut, pending.remote.ip()),
        }
    }

    pub(super) fn arrive(&self, arrival: Arrival) {
        locked(&self.shared.arrivals).push_back(arrival);
        ring(&self.shared.outside);
    }
}

/// How many descriptors this process may have. Read, not asked for: `getrlimit` has no way to say that it was refused.
fn descriptors_max() -> u64 {
    /// What most systems give a process.
    const USUAL: u64 = 1024;
    let text = read_file(Path::new("/proc/self/limits"), LIMITS_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match text.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()) {
        Some("unlimited") => u64::MAX,
        Some(number) => number.parse().unwrap_or(USUAL),
        None => USUAL,
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

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::keys::{Authority, NodeFiles, Validity};
    use crate::tcp::sockets;
    use crate::tcp::tls::Tls;
    use crate::topology::{Network, Place, Topology};
    use std::io::{Read as _, Write as _};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// The thread of node 1, driven by hand, with node 2 at `peer`; and where it listens.
    fn worker(peer: &str, keys: Option<&std::path::Path>) -> (Worker, std::net::SocketAddr) {
        let [one, two] = [1, 2].map(|node| NodeId::new(0, node).unwrap());
        let place = |tcp: &str| Place { tcp: Some(tcp.into()), ..Place::default() };
        let network = Network {
            tls_on_loopback: keys.is_some(),
            keys: keys.map(|keys| keys.to_str().unwrap().into()),
            ..Network::default()
        };
        let nodes = [(one, place("127.0.0.9:0")), (two, place(peer))].into();
        let topology = Arc::new(Topology { system: "test".into(), hash: 7, nodes, network });
        let identity = Identity { system: "test".into(), hash: 7, node: one, incarnation: 1 };
        let tls = Tls::load(&topology, one).unwrap();
        let listener = sockets::listen("127.0.0.9:0".parse().unwrap()).unwrap();
        let address = rustix::net::getsockname(&listener).unwrap().try_into().unwrap();
        let (us, shared) = (Arc::new(Us { topology, identity, tls }), Arc::new(Shared::new().unwrap()));
        (Worker::new(us, shared, Some(listener), Arc::default()).unwrap(), address)
    }

    /// Goes round until it is so; what the test does meanwhile wakes it.
    fn until(worker: &mut Worker, what: &str, mut so: impl FnMut(&mut Worker) -> bool) {
        let begin = Instant::now();
        while !so(worker) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {:?}", worker.event_log.log());
            ring(&worker.shared.inside);
            worker.round();
        }
    }

    fn issue(directory: &std::path::Path) {
        let authority = Authority::create(directory, "test", Validity::days(1), false).unwrap();
        let stem = directory.join("0-1");
        let files = NodeFiles { certificate: stem.with_extension("crt"), key: stem.with_extension("key") };
        authority.issue(NodeId::new(0, 1).unwrap(), &files, Validity::days(1), false).unwrap();
    }

    #[test]
    fn garbage_from_a_peers_own_address_costs_none_of_its_handshakes() {
        const GARBAGE: usize = 300;
        let directory = tempfile::tempdir().unwrap();
        issue(directory.path());
        let (mut worker, address) = worker("127.0.0.1:1", Some(directory.path()));
        // All before the worker's first look, so that no token comes again in between.
        for number in 0..GARBAGE {
            let said: &[u8] =
                [&b"GET / HTTP/1.1"[..], b"\x16\x03\x01garbage", &[0x16, 3, 3, 0, 8, 2, 0, 0, 4]][number % 3];
            TcpStream::connect(address).unwrap().write_all(said).unwrap();
        }
        let mut peer = TcpStream::connect(address).unwrap();
        let mut hello = worker.us.tls.as_ref().unwrap().dialing().unwrap();
        hello.write_tls(&mut peer).unwrap();
        peer.set_nonblocking(true).unwrap();
        until(&mut worker, "an answer", |_| peer.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0));
        until(&mut worker, "the rest", |worker| worker.event_log.counters().tls_failed == GARBAGE as u64);
    }

    #[test]
    fn an_answer_about_a_host_that_was_asked_for_twice_begins_one_attempt_which_is_forgotten_whole() {
        let (mut worker, address) = worker("127.0.0.1:1", None);
        let peer = NodeId::new(0, 2).unwrap();
        // Dialed, forgotten and dialed again, before the resolver has answered the first time.
        worker.dials.insert(peer, Dial::default());
        worker.found(peer, vec![address]);
        worker.found(peer, vec![address]);
        assert_eq!(worker.pending.len(), 1);
        locked(&worker.shared.orders).push(Order::Forget(peer));
        worker.take_orders();
        assert!(worker.pending.is_empty() && worker.dials.is_empty());
    }

    #[test]
    fn the_limit_of_descriptors_is_the_kernels() {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        assert_eq!(descriptors_max(), limit.unwrap_or(u64::MAX));
    }

    #[test]
    fn a_host_that_the_description_names_is_known_before_it_calls() {
        let found = names::resolve("localhost:1").unwrap_or_default();
        let Some(own) = found.first() else { return println!("SKIPPED: this machine has no localhost") };
        let (mut worker, _) = worker("localhost:1", None);
        assert!(!worker.admission.known.has(own.ip()));
        until(&mut worker, "the name", |worker| worker.admission.known.has(own.ip()));
        // And again after some time, not at once.
        let due_ns = worker.names_due_ns.unwrap();
        assert!(due_ns > now_ns());
    }

    #[test]
    fn the_worker_sleeps_until_the_first_thing_is_due() {
        let (mut worker, _) = worker("127.0.0.1:1", None);
        worker.names_due_ns = None;
        assert_eq!(worker.sleep_ns(), None, "nothing is");
        let later = |s: u64| Some(now_ns() + s * 1_000_000_000);
        worker.names_due_ns = later(3_000);
        assert!((2_000_000_000_000..=3_000_000_000_000).contains(&worker.sleep_ns().unwrap()));
        worker.closed_until_ns = later(1_000);
        assert!((500_000_000_000..=1_000_000_000_000).contains(&worker.sleep_ns().unwrap()));
        worker.closed_until_ns = Some(1);
        assert_eq!(worker.sleep_ns(), Some(0));
    }
}
