//! Peers of the same user that do not keep to the rules: what they can do to us ends with their own link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_core::lane::RECORD_BYTES_MAX;
use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::node::{Dialed, Event, Link, Options, Presence, Source};
use musubi_mcapi::EndpointId;
use musubi_mcapi::engine::Sending;
use musubi_mcapi::engine::frame::{KINDS, Kind, class_of};
use musubi_mcapi::process::Running as Node;
use musubi_transport::Priority;
use musubi_transport::frame::{Header, VERSION};
use musubi_transport::links::{Loss, Report};
use musubi_transport::runtime::{Deadline, DeadlineExt, Options as RunOptions};
use musubi_transport::shm::records::{self, SHAPE};
use musubi_transport::topology::Topology;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::driver::*;

const ALONE: &str = "MUSUBI_TEST_ALONE";

/// Runs a test in a process of its own, whose descriptors are those of its two nodes. True in that process.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let again = again.args(["--exact", test, "--test-threads=1", "--nocapture"]).env(ALONE, "1");
    assert!(again.status().unwrap().success());
    false
}

/// A hostile node 2.
fn stranger(system: &Arc<Topology>) -> Presence {
    let options = Options {
        system: system.system.clone(),
        hash: system.hash,
        node: node(2).index() as u16,
        nodes: musubi_transport::NodeId::COUNT as u16,
        incarnation: 5,
        shape: SHAPE,
        frames: VERSION,
        epoll: Arc::new(Descriptor::epoll().unwrap()),
        token: 1 << 56,
    };
    Presence::open(options).unwrap()
}

/// The link of a hostile node 2 with our node 1, by which it can write anything into its lane.
fn forged(system: &Arc<Topology>, ours: &mut Driver) -> (Presence, Box<Link>) {
    let mut theirs = stranger(system);
    assert_eq!(theirs.dial(node(1).index() as u16, now_ns()), Dialed::Begun);
    assert!(matches!(ours.report(), Report::Up { .. }));
    let link = (0..10).find_map(|id| {
        theirs.ready(Source::Socket(id), now_ns());
        match theirs.next_event() {
            Some(Event::Linked(link)) => Some(link),
            _ => None,
        }
    });
    (theirs, link.expect("no link"))
}

/// Ends all connections of this process, as their peers see it, and keeps everything else.
fn hang_up() {
    let me = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    for fd in 0..1000 {
        let name = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        if name.is_ok_and(|name| name.to_string_lossy().starts_with("socket:")) {
            let socket = pidfd_getfd(&me, fd, PidfdGetfdFlags::empty()).unwrap();
            // A listener has no other side.
            let _ = shutdown(&socket, Shutdown::Both);
        }
    }
}

#[test]
fn who_hangs_up_and_goes_on_writing_is_over_after_what_a_lane_holds() {
    if !is_alone("hostile::who_hangs_up_and_goes_on_writing_is_over_after_what_a_lane_holds") {
        return;
    }
    let system = system("hanging");
    let mut ours = Driver::open(&system, 1, 1);
    let (_theirs, mut link) = forged(&system, &mut ours);
    let mut write = || {
        let header = Header { class: class_of(1), ..Header::new(Kind::Packet as u8) };
        while link.with(|lanes| records::send(lanes, &header, b"")).is_ok() {}
    };
    write();
    hang_up();
    let mut frames = 0;
    loop {
        // As a runtime looks at descriptors now and then.
        ours.sleep(Duration::ZERO);
        match ours.report() {
            Report::Frame { .. } => frames += 1,
            Report::Down { loss, .. } => break assert_eq!(loss, Loss::Gone),
            other => panic!("{other:?}"),
        }
        assert!(frames <= 4 * SHAPE.slots, "{frames} frames since the peer hung up");
        write();
    }
    assert!(frames >= SHAPE.slots / 2, "{frames}: what was there before is delivered");
}

/// A number that is likely to mean something: small ones, those near the ends, names of endpoints of nodes 1 to 3.
fn telling(random: &mut impl FnMut() -> u32) -> u32 {
    match random() % 6 {
        0 => random() % 4,
        1 => random() % 300,
        2 => u32::MAX - random() % 3,
        3 => EndpointId::new(node(1 + random() % 3), (random() % 4) as u16, (1 + random() % 63) as u8).bits(),
        4 => 1 << (random() % 32),
        _ => random(),
    }
}

/// One frame that no honest node would send, in a lane that is sound; now and then one that is no frame at all.
fn mischief(link: &mut Link, random: &mut impl FnMut() -> u32) -> bool {
    let kind = Kind::ALL[random() as usize % Kind::ALL.len()];
    let bytes = vec![random() as u8; random() as usize % (1 + kind.payload_max().min(700))];
    let mut header = Header {
        class: Priority::new((random() % 5) as u8).unwrap(),
        length: bytes.len() as u32,
        ..Header::new(kind as u8)
    };
    (header.status, header.flags) = (telling(random) as u8, telling(random) as u8);
    (header.from, header.to) = (telling(random), telling(random));
    (header.tag, header.value) = (telling(random), telling(random));
    let mut words = header.to_words();
    if random().is_multiple_of(2000) {
        words[random() as usize % 2] = telling(random);
    }
    link.with(
        |lanes| if bytes.len() <= 400 { lanes.send(&words, &bytes, 0) } else { lanes.send_block(&words, &bytes, 0) },
    )
    .is_ok()
}

/// Speaks to node 1 whatever it likes for so many frames; over another link when that one has been ended.
fn harass(system: &Arc<Topology>, seed: u32, frames: u32) -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b1) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut own = stranger(system);
    let (mut link, mut links, mut said) = (None::<Box<Link>>, 0, 0);
    let end = Instant::now() + PATIENCE;
    while said < frames && Instant::now() < end {
        if link.as_ref().is_none_or(|link| link.has_ended()) {
            own.dial(node(1).index() as u16, now_ns());
            (0..2 * links + 10).for_each(|id| own.ready(Source::Socket(id), now_ns()));
            own.tick(now_ns());
            if let Some(Event::Linked(new)) = own.next_event() {
                (link, links) = (Some(new), links + 1);
            }
        }
        let Some(link) = &mut link else { continue };
        if mischief(link, &mut random) {
            said += 1;
        } else {
            // What comes back is not read, but for the room it takes.
            link.ring();
            link.with(|lanes| while let Ok(Some(_)) = records::receive(lanes, &mut [0; RECORD_BYTES_MAX], &KINDS) {});
            std::thread::yield_now();
        }
    }
    assert_eq!(said, frames, "seed {seed}: {links} links");
    links
}

/// Whatever a neighbour says, a node goes on serving an honest one, and keeps its messages whole and in order.
#[test]
fn frames_that_lie_harm_nobody_else() {
    const FRAMES: u32 = 20_000;
    for seed in 1..=5 {
        let system = system(&format!("liar-{seed}"));
        let start = |number| Node::start(Arc::clone(&system), node(number), RunOptions::default()).unwrap();
        let (ours, honest) = (start(1), start(3));
        let create = |of: &Node| of.with(|engine, links| engine.create_endpoint(None, links)).unwrap().unwrap();
        let (inbox, from) = (create(&ours), create(&honest));
        let soon = || Deadline::after(PATIENCE);
        std::thread::scope(|scope| {
            let liar = scope.spawn(|| harass(&system, seed, FRAMES));
            let mut rounds = 0u32;
            while rounds < 200 || !liar.is_finished() {
                let payload = rounds.to_le_bytes().repeat(100);
                let sent = honest.wait_for(soon(), |engine, links| {
                    match engine.send_message(from, inbox, 0, &payload, links) {
                        Ok(Sending::Blocked) => None,
                        other => Some(other),
                    }
                });
                assert_eq!(sent, Ok(Ok(Sending::Done)), "seed {seed}");
                // The liar may send to our endpoint, too, as anybody may; but not in another's name.
                let came = ours.wait_for(soon(), |engine, links| {
                    loop {
                        match engine.receive_message(inbox, links) {
                            Ok(Some(message)) if message.from == from => break Some(message.payload),
                            Ok(Some(message)) => assert_eq!(message.from.node(), node(2), "seed {seed}"),
                            Ok(None) => break None,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
                let (came, mut bytes) = (came.expect("in time"), [0; 500]);
                let length = came.copy_to(&mut bytes);
                assert_eq!(&bytes[..length], &payload, "seed {seed}");
                rounds += 1;
            }
            let links = liar.join().unwrap();
            let refused = ours.with(|engine, _| engine.counters()).unwrap();
            assert!(refused.not_theirs + refused.malformed + refused.unasked > 100, "{refused:?}");
            println!("seed {seed}: {links} links of the liar, {rounds} messages of the honest meanwhile; {refused:?}");
        });
    }
}
