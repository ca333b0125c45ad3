//! Nodes in processes that die.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use musubi_linux::clock::now_ns;
use musubi_transport::carrier::Drive;
use musubi_transport::links::{Loss, Report, Sent};
use musubi_transport::topology::Topology;

use super::actor::Actor;
use super::driver::*;

const ROUNDS: u32 = 30;

/// Node 2: sends back what comes from node 1.
pub fn echo(system: &Arc<Topology>) {
    let mut own = Driver::open(system, 2, std::process::id());
    own.await_up(1);
    while let Some(report) = own.report_within(PATIENCE) {
        if let Report::Frame { .. } = report {
            let (number, payload) = frame(report);
            own.send(1, number, &payload);
        }
    }
}

/// Node 2: sends numbered frames of all sizes as fast as it can.
pub fn flood(system: &Arc<Topology>) {
    let mut own = Driver::open(system, 2, std::process::id());
    own.await_up(1);
    for number in 0.. {
        own.send(1, number, &pattern(number, number as usize * 37 % 5000));
    }
}

#[test]
fn processes_speak() {
    let system = system("processes");
    let mut here = Driver::open(&system, 1, 1);
    let _there = Actor::start("echo", &system);
    here.await_up(2);
    for (number, bytes) in [0, 1, 95, 96, 700, 701, 65_536, 1 << 20].into_iter().enumerate() {
        let payload = pattern(number as u32, bytes);
        here.send(2, number as u32, &payload);
        assert_eq!(frame(here.report()), (number as u32, payload));
    }
}

/// A node is killed at any instant of a flood. What it committed comes whole and in order, then its end, once; its
/// successor begins at once, and nothing of it is left.
#[test]
fn a_killed_node_is_drained_reported_once_and_succeeded() {
    // In a process of its own, whose descriptors and mappings are those of this test.
    Actor::start("survivor", &system("killed")).end();
}

/// Node 1 of that test.
pub fn survive(system: &Arc<Topology>) {
    let mut here = Driver::open(system, 1, 1);
    let mut there = Actor::start("flood", system);
    let before = kept();
    for round in 0..ROUNDS {
        here.await_up(2);
        let (mut came, mut killed) = (0, false);
        // Another instant each round, also in the midst of a long frame.
        let lasts = round * 41 % 700;
        loop {
            if came == lasts && !killed {
                there.kill();
                killed = true;
                if round + 1 < ROUNDS {
                    there = Actor::start("flood", system);
                }
            }
            match here.report() {
                Report::Down { loss: Loss::Gone, peer } if killed && peer == node(2) => break,
                report => assert_eq!(frame(report), (came, pattern(came, came as usize * 37 % 5000))),
            }
            came += 1;
        }
        assert!(came >= lasts);
    }
    assert!(matches!(here.report(), Report::Absent { .. }));
    // What the dead gave is closed a little later.
    let begin = Instant::now();
    while kept() != before {
        assert!(begin.elapsed() < Duration::from_secs(30), "{before:?} descriptors and mappings became {:?}", kept());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Descriptors and mappings of links in this process.
fn kept() -> (usize, usize) {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:musubi-link").count();
    (fds, maps)
}

/// The same while the survivor sends and does not read.
#[test]
fn what_was_sent_to_the_dead_is_refused_from_then_on() {
    let system = system("to-the-dead");
    let mut here = Driver::open(&system, 1, 1);
    for _ in 0..5 {
        let mut there = Actor::start("echo", &system);
        here.await_up(2);
        while here.try_send(2, 1, &pattern(1, 3000)) == Sent::Delivered {}
        there.kill();
        let mut downs = 0;
        while let Some(report) = here.report_within(Duration::from_millis(if downs == 0 { 20_000 } else { 5 })) {
            match report {
                Report::Down { loss: Loss::Gone, .. } => downs += 1,
                Report::Frame { .. } | Report::Room { .. } | Report::Absent { .. } => (),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(downs, 1);
        assert_eq!(here.try_send(2, 1, &[]), Sent::NoLink);
    }
}

/// A stopped node is not taken for a dead one, and goes on.
#[test]
fn a_stopped_node_is_not_gone() {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    let system = system("stopped");
    let mut here = Driver::open(&system, 1, 1);
    let there = Actor::start("echo", &system);
    here.await_up(2);
    let pid = Pid::from_raw(there.pid()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // The signal is sent, but until the kernel says so the node may still run.
    let status = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
    assert!(status.is_some_and(|(_, status)| status.stopped()));
    here.send(2, 7, &[7]);
    assert!(here.report_within(Duration::from_millis(50)).is_none());
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(frame(here.report()), (7, vec![7]));
}

/// Many die at once, and each is reported once.
#[test]
fn threads_of_one_process_see_the_death_of_another() {
    let system = system("threads-and-process");
    let there = Actor::start("echo", &system);
    let mut there = Some(there);
    let mut first = Driver::open(&system, 1, 1);
    first.await_up(2);
    thread::scope(|scope| {
        for number in [3, 4, 5] {
            let system = &system;
            scope.spawn(move || {
                let mut own = Driver::open(system, number, 1);
                own.await_up(2);
                let down = own.report();
                assert!(matches!(down, Report::Down { loss: Loss::Gone, .. }), "{down:?}");
                let next = own.report();
                assert!(matches!(next, Report::Absent { .. }), "{next:?}");
            });
        }
        // All are linked when the name has been called by all: the frames below are answered after that.
        while musubi_linux::node::present(&system.system).unwrap().len() < 5 {
            assert!(first.report_within(Duration::from_millis(1)).is_none());
        }
        thread::sleep(Duration::from_millis(50));
        first.send(2, 1, &[]);
        assert_eq!(frame(first.report()).0, 1);
        drop(there.take());
        assert!(matches!(first.report(), Report::Down { loss: Loss::Gone, .. }));
    });
    first.carrier.leave(now_ns());
}

/// Node 2: links like any other, then writes anything into all it can write; and again.
pub fn scribble(system: &Arc<Topology>) {
    let mut own = Driver::open(system, 2, std::process::id());
    let memory = File::options().write(true).open("/proc/self/mem").unwrap();
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    loop {
        own.await_up(1);
        for number in 0..20 {
            let _ = own.try_send(1, number, &pattern(number, 3000 * (number as usize % 2)));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ours = maps.lines().find(|line| line.contains("rw-s") && line.contains("memfd:musubi-link")).unwrap();
        let base = u64::from_str_radix(ours.split('-').next().unwrap(), 16).unwrap();
        let control = u64::from(musubi_transport::shm::records::SHAPE.blocks_at());
        while own.report_within(Duration::from_micros(50)).is_none_or(|report| !matches!(report, Report::Down { .. })) {
            let place = match random() % 4 {
                // Where the other looks next, most often.
                0 => 64 * (random() % 16),
                _ => random() % control,
            } & !3;
            let word = match random() % 4 {
                0 => random() as u32,
                1 => (random() % 40) as u32,
                2 => u32::MAX - (random() % 40) as u32,
                _ => ((random() % 3) << 16 | (random() % 2) << 12 | (random() % 100)) as u32,
            };
            let _ = memory.write_at(&word.to_ne_bytes(), base + place);
        }
    }
}

/// Whatever a peer writes into its memory, its link ends as broken and nothing else happens; an honest one's goes on.
#[test]
fn a_hostile_peer_harms_only_its_link() {
    const CUTS: u32 = 20;
    let system = system("hostile");
    let mut here = Driver::open(&system, 1, 1);
    thread::scope(|scope| {
        let honest = || {
            let mut there = Driver::open(&system, 3, 3);
            there.await_up(1);
            while let Report::Frame { header, .. } = there.report() {
                // Node 1 may have left, having seen enough.
                let _ = there.try_send(1, header.tag, &pattern(header.tag, 600));
                there.carrier.flush(now_ns());
            }
        };
        scope.spawn(honest);
        here.await_up(3);
        let _hostile = Actor::start("hostile", &system);
        here.carrier.want(now_ns(), node(2), true);
        let (mut cuts, mut asked, end) = (0, 0, Instant::now() + PATIENCE);
        here.send(3, asked, &[]);
        while cuts < CUTS {
            assert!(Instant::now() < end, "{cuts} cuts, {asked} answers");
            let _ = here.try_send(2, asked, &pattern(asked, asked as usize % 2000));
            match here.report_within(Duration::from_millis(1)) {
                Some(Report::Frame { peer, header, payload }) if peer == node(3) => {
                    assert_eq!((header.tag, payload.len()), (asked, 600));
                    asked += 1;
                    here.send(3, asked, &[]);
                }
                Some(Report::Down { peer, loss }) => {
                    assert_eq!((peer, loss), (node(2), Loss::Cut));
                    cuts += 1;
                }
                _ => (),
            }
        }
        assert!(here.carrier.refusals().faults >= CUTS && asked > 0);
        here.carrier.leave(now_ns());
    });
}
