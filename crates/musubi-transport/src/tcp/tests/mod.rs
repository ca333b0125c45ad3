//! Carriers of one process, driven by one thread: what a link plans, when what came is acknowledged, what is read and held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;

use super::TcpCarrier;
use super::link::{Dial, Link};
use crate::carrier::{Describe as _, Drive as _, Frames as _};
use crate::frame::{Header, Kinds, Shape};
use crate::links::{Loss, NoBlock, Payload, Report, Sent};
use crate::session::{Identity, Session};
use crate::status::AcceptorStatus;
use crate::topology::{Network, Place, Topology};
use crate::{NodeId, Priority};

/// Of kind 1 the acknowledgement is awaited.
const KINDS: &Kinds = &Kinds {
    least_urgent: Priority::LEAST_URGENT,
    shapes: &[
        Some(Shape { payload_max: 1 << 20, awaited: false }),
        Some(Shape { payload_max: 1 << 20, awaited: true }),
    ],
};
const PATIENCE: Duration = Duration::from_secs(20);
const MS: u64 = 1_000_000;

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

/// A link of node `me` with node 2, without a connection.
fn link() -> Link {
    let identity = Identity { system: "test".into(), hash: 7, node: id(3), incarnation: 1 };
    let session = Session::new(&identity, id(2), &Network::default(), KINDS);
    Link::new(id(2), session, Arc::new(Descriptor::epoll().unwrap()))
}

#[test]
fn a_connection_is_sought_while_it_is_wanted_with_growing_pauses() {
    let mut link = link();
    assert!(!link.lacks_connection() && !link.is_connected() && !link.is_full());
    link.plan_dial(100, id(3));
    assert_eq!((link.dial, link.deadline_ns(), link.status().state), (Dial::Idle, u64::MAX, 0));
    link.wanted = true;
    assert!(link.lacks_connection());
    link.plan_dial(100, id(3));
    assert_eq!((link.dial, link.deadline_ns(), link.status().state), (Dial::At(100), 100, 2));
    link.plan_dial(200, id(3));
    assert_eq!(link.dial, Dial::At(100), "it is planned");
    // The larger number lets the other one begin, where both know that there is a link to bring back.
    for (known, me, at_ns) in [(true, 3, 500 + 10 * MS), (true, 1, 500), (false, 3, 500)] {
        (link.dial, link.known) = (Dial::Idle, known);
        link.plan_dial(500, id(me));
        assert_eq!(link.dial, Dial::At(at_ns), "{known} {me}");
    }
    link.dial = Dial::Underway;
    assert_eq!((link.deadline_ns(), link.status().state), (u64::MAX, 2));
    let mut pauses_ms = Vec::new();
    for _ in 0..8 {
        assert_eq!(link.is_tried_in_vain(), pauses_ms.len() >= 6);
        link.plan_again(1_000);
        let Dial::At(at_ns) = link.dial else { panic!("{:?}", link.dial) };
        pauses_ms.push((at_ns - 1_000) / MS);
    }
    assert_eq!(pauses_ms, [10, 20, 40, 80, 160, 320, 500, 500]);
    link.wanted = false;
    link.plan_again(1_000);
    assert_eq!((link.dial, link.status().state), (Dial::Idle, 0));
}

#[test]
fn what_came_is_acknowledged_at_once_if_awaited_and_else_when_it_is_quiet() {
    let mut link = link();
    let mut came = |now_ns, awaited| {
        link.came(now_ns, awaited);
        link.acknowledge_ns
    };
    assert_eq!(came(1_000, false), 1_000 + 100_000);
    assert_eq!(came(2_000, false), 2_000 + 1_000_000, "a stream");
    assert_eq!(came(3_000, true), 3_000);
    assert_eq!(came(3_000, false), 3_000, "it is due");
    assert_eq!(came(2_999, false), 2_999 + 1_000_000);
}

/// A carrier with what it hangs on.
struct Station {
    carrier: TcpCarrier,
    epoll: Arc<Descriptor>,
}

/// Two that are nodes 1 and 2 of a system.
fn stations(name: &str) -> [Station; 2] {
    static NEXT: AtomicU16 = AtomicU16::new(7911);
    let [low, middle, high, _] = std::process::id().to_le_bytes();
    let address = || {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("127.{}.{middle}.{low}:{port}", 64 + high % 128)
    };
    let place = || Place { tcp: Some(address()), ..Place::default() };
    let nodes = [(id(1), place()), (id(2), place())].into();
    let network = Network { silence_ms: 60_000, heartbeat_ms: 30_000, ..Network::default() };
    let topology = Arc::new(Topology { system: name.into(), hash: 7, nodes, network });
    [1, 2].map(|node| {
        let epoll = Arc::new(Descriptor::epoll().unwrap());
        let carrier = TcpCarrier::open(Arc::clone(&topology), id(node), node, Arc::clone(&epoll), KINDS).unwrap();
        Station { carrier, epoll }
    })
}

impl Station {
    /// Descriptors that are ready, and what is due.
    fn turn(&mut self) {
        let mut events = [musubi_linux::epoll::NO_EVENT; 8];
        let count = musubi_linux::epoll::wait(&self.epoll, &mut events, Some(0));
        for event in &events[..count] {
            let data = event.data;
            self.carrier.ready(now_ns(), data.u64());
        }
        if self.carrier.deadline_ns() <= now_ns() {
            self.carrier.tick(now_ns());
        }
    }

    fn is_readable(&self) -> bool {
        musubi_linux::epoll::wait(&self.epoll, &mut [musubi_linux::epoll::NO_EVENT; 8], Some(0)) > 0
    }

    fn send(&mut self, kind: u8, bytes: usize, tag: u32) -> Sent {
        let header = Header { class: Priority::new(1).unwrap(), length: bytes as u32, tag, ..Header::new(kind) };
        let peer = if self.carrier.find(id(2)).is_some() { id(2) } else { id(1) };
        self.carrier.send(now_ns(), peer, &header, &vec![tag as u8; bytes])
    }
}

/// The next report of one, while both go on.
fn report(stations: &mut [Station; 2], of: usize) -> Report<NoBlock> {
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < end, "nothing is reported");
        stations.iter_mut().for_each(Station::turn);
        if let Some(report) = stations[of].carrier.next_report(now_ns()) {
            return report;
        }
        std::thread::yield_now();
    }
}

fn linked(name: &str) -> [Station; 2] {
    let mut stations = stations(name);
    stations[0].carrier.want(now_ns(), id(2), true);
    assert!(matches!(report(&mut stations, 0), Report::Up { peer, incarnation: 2 } if peer == id(2)));
    assert!(matches!(report(&mut stations, 1), Report::Up { peer, incarnation: 1 } if peer == id(1)));
    stations
}

/// Tag and length of a frame, whose bytes are right.
fn frame(report: Report<NoBlock>) -> (u32, usize) {
    let Report::Frame { header, payload, .. } = report else { panic!("{report:?}") };
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(&mut bytes);
    assert!(bytes.iter().all(|byte| *byte == header.tag as u8) && bytes.len() == header.length as usize);
    if let Payload::Owned(bytes) = payload {
        assert!(bytes.len() > 95);
    }
    (header.tag, header.length as usize)
}

#[test]
fn frames_go_are_acknowledged_and_counted() {
    let mut stations = linked("tcp-frames");
    assert!(stations[0].carrier.has_delivered());
    let lengths = [0, 8, 95, 96, 5_000, 70_000, 300_000];
    for (tag, bytes) in (1..).zip(lengths) {
        assert_eq!(stations[0].send(1, bytes, tag), Sent::Numbered(tag.into()));
        assert!(!stations[0].carrier.has_delivered());
        assert_eq!(frame(report(&mut stations, 1)), (tag, bytes));
        stations[1].carrier.flush(now_ns());
        assert!(matches!(report(&mut stations, 0), Report::Acknowledged { number, .. } if number == u64::from(tag)));
        assert!(stations[0].carrier.has_delivered());
    }
    let status = stations.each_ref().map(|one| one.carrier.link(id(2)).or(one.carrier.link(id(1))).unwrap());
    let of = |at: usize| (status[at].node, status[at].kind, status[at].state, status[at].connections);
    assert_eq!((of(0), of(1)), ((id(2), 2, 1, 1), (id(1), 2, 1, 1)));
    assert_eq!((status[0].frames_sent, status[1].frames_received), (7, 7));
    // The hello is read before there is a link.
    let hello = crate::session::Hello::BYTES as u64;
    assert_eq!(status[0].bytes_sent, status[1].bytes_received + hello);
    assert_eq!(status[1].bytes_sent, status[0].bytes_received);
    assert!(status[0].bytes_sent > lengths.iter().sum::<usize>() as u64);
    let mut doors = [AcceptorStatus::default(); 2];
    stations.iter().zip(&mut doors).for_each(|(one, door)| one.carrier.describe_acceptor(door));
    assert_eq!((doors[0].dialed, doors[1].accepted, doors[1].admitted), (1, 1, 1));
    // One that leaves is gone; the one that wants it seeks it.
    let [first, second] = &mut stations;
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| second.carrier.leave(now_ns()));
        while !leaving.is_finished() {
            first.turn();
        }
    });
    assert!(matches!(report(&mut stations, 0), Report::Down { loss: Loss::Gone, .. }));
    assert_eq!(stations[0].carrier.link(id(2)).unwrap().state, 2);
}

#[test]
fn who_spins_reads_links_in_use_for_a_moment() {
    let mut stations = linked("tcp-hot");
    let [first, second] = &mut stations;
    while second.carrier.next_report(now_ns()).is_some() {}
    // Until it is there.
    first.send(0, 8, 1);
    let end = Instant::now() + PATIENCE;
    while !second.is_readable() {
        assert!(Instant::now() < end);
    }
    let later_ns = now_ns() + 3_600_000 * MS;
    second.carrier.poll(later_ns);
    assert!(second.carrier.next_report(later_ns).is_none(), "nothing was there for long");
    assert!(second.carrier.hot.is_empty());
    second.turn();
    assert!(second.carrier.holds_reports() && second.carrier.prepare_sleep());
    assert!(second.carrier.next_report(now_ns()).is_some() && second.carrier.next_report(now_ns()).is_none());
    assert!(!second.carrier.holds_reports() && !second.carrier.prepare_sleep());
    assert_eq!(second.carrier.hot.len(), 1);
    first.send(0, 8, 2);
    while !second.is_readable() {
        assert!(Instant::now() < end);
    }
    let hot_ns = second.carrier.links[0].hot_until_ns - 1;
    second.carrier.poll(hot_ns);
    assert!(second.carrier.next_report(hot_ns).is_some(), "without a look at descriptors");
}

#[test]
fn what_is_held_goes_together_when_it_is_released_or_enough() {
    let mut stations = linked("tcp-held");
    let [first, second] = &mut stations;
    while second.carrier.next_report(now_ns()).is_some() {}
    second.turn();
    first.carrier.hold();
    assert_eq!([first.send(0, 8, 1), first.send(0, 8, 2)], [Sent::Numbered(1), Sent::Numbered(2)]);
    assert_eq!((first.carrier.held.len(), first.carrier.held_bytes), (1, 16));
    let sent = first.carrier.link(id(2)).unwrap().bytes_sent;
    first.carrier.release(now_ns());
    assert_eq!((first.carrier.held.len(), first.carrier.held_bytes), (0, 0));
    assert!(first.carrier.link(id(2)).unwrap().bytes_sent > sent);
    assert_eq!([1, 2].map(|_| frame(report(&mut stations, 1)).0), [1, 2]);
    stations[0].carrier.hold();
    stations[0].send(0, 128 * 1024 - 1, 3);
    assert_eq!(stations[0].carrier.held_bytes, 128 * 1024 - 1);
    stations[0].send(0, 1, 4);
    assert_eq!((stations[0].carrier.held.len(), stations[0].carrier.held_bytes), (0, 0), "it is enough");
    assert_eq!([3, 4].map(|_| frame(report(&mut stations, 1)).0), [3, 4]);
}

#[test]
fn acknowledgements_wait_their_time_and_no_longer() {
    let mut stations = linked("tcp-acknowledge");
    while stations[1].carrier.next_report(now_ns()).is_some() {}
    stations[0].send(0, 8, 1);
    assert_eq!(frame(report(&mut stations, 1)).0, 1);
    let second = &mut stations[1].carrier;
    let due_ns = second.acknowledge_ns;
    assert!(due_ns != u64::MAX && second.deadline_ns() <= due_ns);
    second.flush(due_ns - 1);
    assert_eq!((second.acknowledge_ns, second.touched.len()), (due_ns, 1), "not yet");
    second.tick(due_ns - 1);
    assert_eq!(second.touched.len(), 1);
    second.tick(due_ns);
    assert_eq!((second.acknowledge_ns, second.touched.len()), (u64::MAX, 0));
    assert!(matches!(report(&mut stations, 0), Report::Acknowledged { number: 1, .. }));
}

#[test]
fn a_connection_that_breaks_is_brought_back_and_the_link_stays() {
    let mut stations = linked("tcp-broken");
    stations[0].carrier.break_connection(now_ns(), id(9));
    stations[0].carrier.break_connection(now_ns(), id(2));
    assert_eq!(stations[0].carrier.link(id(2)).unwrap().state, 3, "to be resumed");
    assert_eq!(stations[0].send(0, 8, 5), Sent::Numbered(1), "it waits");
    assert_eq!(frame(report(&mut stations, 1)).0, 5);
    let status = stations[0].carrier.link(id(2)).unwrap();
    assert_eq!((status.state, status.connections, status.resumed, status.cuts), (1, 2, 1, 0));
    let said: Vec<String> = stations[0].carrier.log().into_iter().map(|entry| entry.text).collect();
    assert!(said.iter().any(|text| text.contains("node 0:2 has closed the connection")), "{said:?}");
}

#[test]
fn links_over_the_network_are_for_who_has_another_on_it() {
    let place = |shared: Option<&str>, tcp: Option<&str>| Place {
        shared_memory: shared.map(String::from),
        tcp: tcp.map(String::from),
        ..Place::default()
    };
    let mut topology = Topology::single_machine();
    assert!(!TcpCarrier::is_needed(&topology, id(1)));
    topology.nodes.insert(id(1), place(Some("a"), None));
    topology.nodes.insert(id(2), place(Some("a"), None));
    assert!(!TcpCarrier::is_needed(&topology, id(1)));
    topology.nodes.insert(id(3), place(None, Some("127.0.0.1:1")));
    assert!(TcpCarrier::is_needed(&topology, id(1)) && TcpCarrier::is_needed(&topology, id(3)));
}
