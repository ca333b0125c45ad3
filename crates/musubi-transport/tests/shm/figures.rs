//! Figures: what a frame costs against the bare machine. Run in a release build, alone:
//! `cargo test --release -p musubi-transport --test shm figures -- --ignored --nocapture`.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use musubi_linux::bare::{BarePages, futex_wait, futex_wake};
use musubi_linux::clock::now_ns;
use musubi_linux::realtime;
use musubi_mcapi::engine::frame::{Header, Kind, class_of};
use musubi_transport::Priority;
use musubi_transport::carrier::{Drive, Frames};
use musubi_transport::links::{Block as _, Payload, Report, Sent};
use musubi_transport::topology::Topology;

use super::actor::Actor;
use super::driver::*;

const TURNS: u32 = 40_000;
const SLEEPS: u32 = 1_000;
const BULK: usize = 65_536;

fn pin(index: usize) {
    // As they were before the first pinning.
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    let cores = CORES.get_or_init(realtime::cores);
    realtime::pin_to_core(cores[index % cores.len()]).unwrap();
}

/// The other side of a figure: `role path`.
pub fn play(role: &str, system: &Arc<Topology>) {
    let mut words = role.split(' ');
    let (what, path) = (words.next().unwrap(), words.next().unwrap());
    let pages = BarePages::open(Path::new(path)).unwrap();
    match what {
        "bare" => bare(&pages, true),
        "futex" => sleeping_bare(&pages, true),
        "copy" => {
            pages.word(512).store(1, Ordering::Release);
            copy(&pages, true);
        }
        "lane" => {
            let mut own = Driver::open(system, 2, 1);
            own.await_up(1);
            answer(&mut own, false);
        }
        "asleep" => {
            let mut own = Driver::open(system, 2, 1);
            own.await_up(1);
            answer(&mut own, true);
        }
        "packets" => {
            let mut own = Driver::open(system, 2, 1);
            own.await_up(1);
            packets(&mut own);
        }
        other => panic!("{other}"),
    }
}

fn bare(pages: &BarePages, is_pong: bool) {
    let (ping, pong) = (pages.word(4096), pages.word(4096 + 128));
    for turn in 1..=TURNS {
        if is_pong {
            while ping.load(Ordering::Acquire) != turn {}
            pong.store(turn, Ordering::Release);
        } else {
            ping.store(turn, Ordering::Release);
            while pong.load(Ordering::Acquire) != turn {}
        }
    }
}

fn sleeping_bare(pages: &BarePages, is_pong: bool) {
    let (ping, pong) = (pages.word(8192), pages.word(8192 + 128));
    for turn in 1..=SLEEPS {
        if is_pong {
            futex_wait(ping, turn - 1);
            pong.store(turn, Ordering::Release);
            futex_wake(pong);
        } else {
            ping.store(turn, Ordering::Release);
            futex_wake(ping);
            futex_wait(pong, turn - 1);
        }
    }
}

const COPIES: u32 = 4_000;

fn copy(pages: &BarePages, is_pong: bool) {
    let (filled, emptied) = (pages.word(0), pages.word(256));
    let mut data = vec![1; BULK];
    for turn in 0..COPIES {
        let buffer = 16384 + (turn as usize & 1) * BULK;
        if is_pong {
            while filled.load(Ordering::Acquire) == turn {}
            pages.copy_out(buffer, &mut data);
            emptied.store(turn + 1, Ordering::Release);
        } else {
            while turn.wrapping_sub(emptied.load(Ordering::Acquire)) >= 2 {}
            pages.copy_in(buffer, &data);
            filled.store(turn + 1, Ordering::Release);
        }
    }
}

fn poll(own: &mut Driver) -> Report<musubi_transport::shm::Block> {
    loop {
        if let Some(report) = own.carrier.next_report(0) {
            return report;
        }
    }
}

fn give(own: &mut Driver, peer: u32, header: &Header, payload: &[u8]) {
    while own.carrier.send(0, node(peer), header, payload) != Sent::Delivered {
        let _ = own.carrier.next_report(0);
    }
    own.carrier.flush(0);
}

/// Sends back what comes until a frame of class 0.
fn answer(own: &mut Driver, asleep: bool) {
    loop {
        let report = if asleep { own.report() } else { poll(own) };
        match report {
            Report::Frame { header, payload, .. } => {
                let mut bytes = [0; 4096];
                let count = payload.copy_to(&mut bytes);
                drop(payload);
                give(own, 1, &header, &bytes[..count]);
                if header.class == Priority::MOST_URGENT {
                    return;
                }
            }
            Report::Down { .. } => return,
            other => panic!("{other:?}"),
        }
    }
}

fn oneway(own: &mut Driver, kind: Kind, bytes: usize, turns: u32, asleep: bool) -> f64 {
    let mut payload = vec![0; bytes];
    let mut samples = Vec::new();
    for turn in 0..turns {
        payload[0] = turn as u8;
        let header = Header { class: class_of(0), length: bytes as u32, tag: turn, ..Header::new(kind as u8) };
        let before = now_ns();
        give(own, 2, &header, &payload);
        let report = if asleep { own.report() } else { poll(own) };
        samples.push((now_ns() - before) as f64 / 2.0);
        let Report::Frame { header, payload: came, .. } = report else { panic!("{report:?}") };
        assert_eq!(header.tag, turn);
        let mut first = [0];
        came.copy_to(&mut first);
        assert_eq!(first[0], turn as u8);
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn packets(own: &mut Driver) {
    loop {
        match poll(own) {
            Report::Frame { header, payload, .. } => {
                if let Payload::Lent(block) = &payload {
                    assert!(block.len() > 700);
                }
                drop(payload);
                if header.class == Priority::MOST_URGENT {
                    give(own, 1, &header, &[]);
                    return;
                }
            }
            Report::Down { .. } => return,
            other => panic!("{other:?}"),
        }
    }
}

fn median(mut of: impl FnMut() -> f64) -> f64 {
    let mut values: Vec<f64> = (0..5).map(|_| of()).collect();
    values.sort_by(f64::total_cmp);
    values[2]
}

fn timed(turns: u32, act: impl FnOnce()) -> f64 {
    let before = now_ns();
    act();
    (now_ns() - before) as f64 / f64::from(turns)
}

/// The other side, born on its core: a spinning parent would keep it from its first step.
fn partner(role: &str, system: &Topology) -> Actor {
    pin(1);
    let there = Actor::start(role, system);
    pin(0);
    there
}

fn report_bare(pages: &BarePages, system: &Topology) -> (f64, f64, f64) {
    let path = pages.path();
    let line = median(|| {
        for offset in [4096, 4096 + 128] {
            pages.word(offset).store(0, Ordering::Release);
        }
        let there = partner(&format!("bare {path}"), system);
        let value = ping_bare(pages);
        there.end();
        value
    });
    println!("cacheline_oneway      {line:8.1} ns");
    let there = partner(&format!("futex {path}"), system);
    let futex = timed(SLEEPS, || sleeping_bare(pages, false)) / 2.0;
    there.end();
    println!("futex_oneway          {futex:8.1} ns");
    let there = partner(&format!("copy {path}"), system);
    while pages.word(512).load(Ordering::Acquire) == 0 {}
    let rate = BULK as f64 * 1000.0 / timed(COPIES, || copy(pages, false));
    there.end();
    println!("shm_copy_64k          {rate:8.0} MB/s");
    (line, futex, rate)
}

/// The first turn waits for the other side and does not count.
fn ping_bare(pages: &BarePages) -> f64 {
    let (ping, pong) = (pages.word(4096), pages.word(4096 + 128));
    ping.store(1, Ordering::Release);
    while pong.load(Ordering::Acquire) != 1 {}
    let before = now_ns();
    for turn in 2..=TURNS {
        ping.store(turn, Ordering::Release);
        while pong.load(Ordering::Acquire) != turn {}
    }
    (now_ns() - before) as f64 / f64::from(TURNS - 1) / 2.0
}

fn report_polling(here: &mut Driver, line: f64) {
    for (what, kind, bytes) in [
        ("message 1", Kind::Message, 1),
        ("scalar 8", Kind::Scalar, 8),
        ("message 64", Kind::Message, 64),
        ("message 128", Kind::Message, 128),
        ("message 256", Kind::Message, 256),
        ("message 350", Kind::Message, 350),
        ("message 500", Kind::Message, 500),
        ("message 700", Kind::Message, 700),
        ("message 701", Kind::Message, 701),
        ("message 1024", Kind::Message, 1024),
        ("message 4096", Kind::Message, 4096),
    ] {
        let value = median(|| oneway(here, kind, bytes, TURNS / 10, false));
        println!("{what:22}{value:8.1} ns  {:.2} x", value / line);
    }
}

fn report_packets(here: &mut Driver, bare_rate: f64) {
    for bytes in [64, 700, 1024, 4096, 32_768, 262_144, 1 << 20] {
        let payload = vec![7; bytes];
        let header = Header { class: class_of(1), length: bytes as u32, ..Header::new(Kind::Packet as u8) };
        let turns = (1 << 28) / (bytes as u32).max(4096) / 4;
        let rate = median(|| {
            let each = timed(turns, || (0..turns).for_each(|_| give(here, 2, &header, &payload)));
            bytes as f64 * 1000.0 / each
        });
        println!("packets {bytes:8}      {rate:8.0} MB/s {:.2} x shm_copy_64k", rate / bare_rate);
    }
}

/// Ends the other side's role and waits for its end.
fn dismiss(here: &mut Driver, there: Actor) {
    give(here, 2, &Header::new(Kind::Message as u8), &[]);
    while !matches!(here.report(), Report::Down { .. }) {}
    there.end();
}

#[test]
#[ignore = "takes the machine for some seconds"]
fn figures() {
    let system = system("figures");
    let pages = BarePages::create(1 << 20).unwrap();
    let path = pages.path();
    let (line, futex, bare_rate) = report_bare(&pages, &system);

    let mut here = Driver::open(&system, 1, 1);
    let there = partner(&format!("lane {path}"), &system);
    here.await_up(2);
    report_polling(&mut here, line);
    dismiss(&mut here, there);

    let there = partner(&format!("asleep {path}"), &system);
    here.await_up(2);
    let value = oneway(&mut here, Kind::Message, 1, SLEEPS, true);
    println!("message 1 asleep      {value:8.1} ns  {:.2} x futex_oneway", value / futex);
    dismiss(&mut here, there);

    let there = partner(&format!("packets {path}"), &system);
    here.await_up(2);
    report_packets(&mut here, bare_rate);
    dismiss(&mut here, there);
}
