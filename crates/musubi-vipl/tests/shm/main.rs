//! Two opened NICs of one machine: what every program does.

mod holding;
#[path = "../../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;
mod offers;
mod policies;
mod rules;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::{Place, Topology};
use musubi_vipl::ViError;
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::engine::{
    Dequeue, LocalPlace, MemoryAttributes, MemoryHandle, Queue, Reliability, TagHandle, ViAttributes,
};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::ViNumber;
use musubi_vipl::process::{Nic, NicSystem};

/// Bytes of a side's memory: descriptors at its begin, 64 bytes and more apart, buffers behind.
const BYTES: usize = 1 << 20;

struct Side {
    nic: Nic,
    tag: TagHandle,
    base: u64,
    handle: MemoryHandle,
}

fn system() -> NicSystem {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut system = NicSystem::single_machine();
    let topology = std::sync::Arc::make_mut(&mut system.topology);
    topology.system = format!("vi-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    system
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

impl Side {
    fn open(system: &NicSystem) -> Side {
        Side::open_nic(system, NicNumber(0))
    }

    fn open_nic(system: &NicSystem, number: NicNumber) -> Side {
        let nic = Nic::open(system, number, Options::default()).unwrap();
        let tag = nic.with(|nic| nic.create_tag()).unwrap();
        let attributes = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let (base, handle) = nic.with(|nic| nic.register_own(Lines::zeroed(BYTES), attributes)).unwrap();
        Side { nic, tag, base, handle }
    }

    fn get(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let place = LocalPlace { address: self.base + offset as u64, handle: self.handle, bytes: bytes as u32 };
        let mut got = Vec::new();
        assert!(self.nic.with(|nic| Ok(nic.memory().copy_out(place, &mut got))).unwrap());
        got
    }

    fn put(&self, offset: usize, bytes: &[u8]) {
        let place = LocalPlace { address: self.base + offset as u64, handle: self.handle, bytes: bytes.len() as u32 };
        assert!(self.nic.with(|nic| Ok(nic.memory().copy_in(place, bytes))).unwrap());
    }

    fn vi(&self, reliability: Reliability) -> ViNumber {
        let attributes = ViAttributes {
            reliability,
            transfer_bytes_max: 1 << 20,
            class: 3,
            tag: self.tag,
            remote_write: true,
            remote_read: reliability.is_reliable(),
            credit: false,
        };
        self.nic.with(|nic| nic.create_vi(attributes, None, None)).unwrap()
    }

    fn address(&self, offset: usize) -> u64 {
        self.base + offset as u64
    }

    /// Writes a descriptor of one segment.
    fn write(&self, at: usize, control: u16, from: usize, bytes: u32) {
        let mut descriptor = [0; 48];
        descriptor[12..14].copy_from_slice(&1_u16.to_le_bytes());
        descriptor[14..16].copy_from_slice(&control.to_le_bytes());
        descriptor[24..28].copy_from_slice(&bytes.to_le_bytes());
        descriptor[32..40].copy_from_slice(&self.address(from).to_le_bytes());
        descriptor[40..44].copy_from_slice(&self.handle.0.to_le_bytes());
        descriptor[44..48].copy_from_slice(&bytes.to_le_bytes());
        self.put(at, &descriptor);
    }

    fn post(&self, vi: ViNumber, queue: Queue, at: usize) {
        let address = self.address(at);
        self.nic.post(vi, queue, (address, self.handle)).unwrap();
    }

    fn done(&self, vi: ViNumber, queue: Queue) -> (u64, bool) {
        match self.nic.wait(vi, queue, soon()).unwrap() {
            Dequeue::Complete { address, is_error } => (address, is_error),
            other => panic!("{other:?}"),
        }
    }
}

fn at(discriminator: &[u8]) -> Address {
    Address::new(NicNumber(0), discriminator).unwrap()
}

/// Connects a VI of each.
fn connect(client: &Side, server: &Side, reliability: Reliability) -> (ViNumber, ViNumber) {
    let (a, b) = (client.vi(reliability), server.vi(reliability));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let (caller, from, attributes) = server.nic.wait_caller(&at(b"port"), soon()).unwrap();
            assert_eq!((from, attributes.class), (at(b"client"), 3));
            server.nic.accept(caller, b, soon()).unwrap();
        });
        let attributes = loop {
            match client.nic.request(a, at(b"client"), at(b"port"), soon()) {
                Err(ViError::NoMatch) => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        };
        assert_eq!(attributes.transfer_bytes_max, 1 << 20);
        waiting.join().unwrap();
    });
    (a, b)
}

#[test]
fn messages_of_every_size_arrive_whole() {
    let system = system();
    for reliability in Reliability::ALL {
        let (client, server) = (Side::open(&system), Side::open(&system));
        let (a, b) = connect(&client, &server, reliability);
        for bytes in [0, 1, 4, 8, 9, 64, 400, 401, 4096, 65_536, 65_537, 300_000] {
            let filled: Vec<u8> = (0..bytes).map(|place| (place * 7 + bytes) as u8).collect();
            client.put(8192, &filled);
            server.write(0, 0, 8192, 400_000);
            server.post(b, Queue::Receive, 0);
            client.write(64, 0, 8192, bytes as u32);
            client.post(a, Queue::Send, 64);
            let address = server.address(0);
            assert_eq!(server.done(b, Queue::Receive), (address, false), "{bytes}");
            assert_eq!(server.get(24, 4), (bytes as u32).to_le_bytes());
            assert_eq!(server.get(8192, bytes), filled);
            let address = client.address(64);
            assert_eq!(client.done(a, Queue::Send), (address, false), "{bytes}");
        }
    }
}

/// Who waits for the first of several short messages takes the next ones in with it.
#[test]
fn short_messages_behind_the_one_that_was_waited_for_come_with_it() {
    const MESSAGES: usize = 12;
    let system = system();
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (a, b) = connect(&client, &server, Reliability::Delivery);
    for turn in 0..MESSAGES {
        server.write(turn * 64, 0, 8192 + turn * 64, 64);
        server.post(b, Queue::Receive, turn * 64);
        client.write(turn * 64, 0, 8192, 64);
    }
    for turn in 0..MESSAGES {
        client.put(8192, &[turn as u8; 64]);
        client.post(a, Queue::Send, turn * 64);
    }
    assert_eq!(server.done(b, Queue::Receive), (server.address(0), false));
    // Without a look at the links, as many as are taken in at a time are there, in order.
    for turn in 1..9 {
        let given = server.nic.with(|nic| nic.dequeue(b, Queue::Receive)).unwrap();
        assert_eq!(given, Dequeue::Complete { address: server.address(turn * 64), is_error: false });
        assert_eq!(server.get(8192 + turn * 64, 64), [turn as u8; 64]);
    }
    for turn in 9..MESSAGES {
        assert_eq!(server.done(b, Queue::Receive), (server.address(turn * 64), false));
    }
}

#[test]
fn a_disconnected_vi_can_be_connected_again() {
    let system = system();
    let (client, server) = (Side::open(&system), Side::open(&system));
    for _ in 0..20 {
        let (a, b) = connect(&client, &server, Reliability::Delivery);
        client.nic.disconnect(a).unwrap();
        let lost = server.nic.wait_news(soon()).unwrap();
        assert_eq!(lost.vi, Some(b));
        server.nic.disconnect(b).unwrap();
        for (side, vi) in [(&client, a), (&server, b)] {
            side.nic.with(|nic| nic.destroy_vi(vi)).unwrap();
        }
    }
}

#[test]
fn who_is_not_there_is_no_match_at_once() {
    let system = system();
    let (client, _server) = (Side::open(&system), Side::open(&system));
    let vi = client.vi(Reliability::Delivery);
    assert_eq!(client.nic.request(vi, at(b""), at(b"nobody"), soon()), Err(ViError::NoMatch));
    assert_eq!(
        client.nic.request(vi, at(b""), Address::new(NicNumber(5), b"x").unwrap(), soon()),
        Err(ViError::NotReachable)
    );
    client.nic.with(|nic| nic.destroy_vi(vi)).unwrap();
}

/// A system of one NIC for two processes, so that no other slot is looked for now and then, which would wake who sleeps.
fn system_of_two() -> NicSystem {
    let NicSystem { directory, topology } = system();
    let place = || Place { shared_memory: Some("here".to_owned()), ..Place::default() };
    let nodes = (0..2).map(|slot| (NicNumber(0).node(slot).unwrap(), place())).collect();
    let topology = Topology { hash: 1, nodes, ..std::sync::Arc::unwrap_or_clone(topology) };
    NicSystem::new(directory.nics.into_iter().map(|nic| (nic.name, 2)), topology)
}

#[test]
fn who_waits_for_room_is_told_of_it_while_another_thread_sleeps_on_the_links() {
    let system = system_of_two();
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (a, _b) = connect(&client, &server, Reliability::Unreliable);
    std::thread::scope(|scope| {
        let (full, is_full) = std::sync::mpsc::channel::<()>();
        let (held, is_held) = std::sync::mpsc::channel();
        // Leads, and falls asleep before there is a reason to be told of room, and what follows a connection is over.
        scope
            .spawn(|| assert_eq!(client.nic.wait_news(Deadline::after(Duration::from_secs(40))), Err(ViError::Closed)));
        std::thread::sleep(Duration::from_millis(1500));
        // Nobody takes anything in there until the link is full.
        let server = &server;
        scope.spawn(move || {
            server.nic.with(|_| {
                held.send(()).unwrap();
                let _ = is_full.recv_timeout(Duration::from_secs(20));
                Ok(())
            })
        });
        is_held.recv().unwrap();
        client.write(0, 0, 4096, 8192);
        let mut posted = 0;
        loop {
            // Who leads is told of each that completes, and falls asleep again before the next.
            std::thread::sleep(Duration::from_millis(2));
            client.post(a, Queue::Send, 0);
            posted += 1;
            match client.nic.with(|nic| nic.dequeue(a, Queue::Send)).unwrap() {
                Dequeue::Complete { .. } => assert!(posted < 10_000),
                _ => break,
            }
        }
        let waiting = scope.spawn(|| client.nic.wait(a, Queue::Send, soon()));
        // Asleep as well by now, very likely; else there is less to be seen.
        std::thread::sleep(Duration::from_millis(100));
        full.send(()).unwrap();
        let begun = std::time::Instant::now();
        let waited = waiting.join().unwrap();
        let elapsed = begun.elapsed();
        client.nic.close().unwrap();
        assert!(matches!(waited, Ok(Dequeue::Complete { is_error: false, .. })), "{waited:?}");
        // What is there at the deadline only is found, too; nobody was told of it then.
        assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
    });
}
