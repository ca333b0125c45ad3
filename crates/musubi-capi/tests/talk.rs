//! C programs talk to each other and to this process, which is in Rust.

mod programs;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use musubi_linux::{Options, Participant};
use musubi_mdcom::{Error, Mdcom, Wait};
use programs::{Process, instance, system, test_program};

const SIZES: [usize; 6] = [1, 7, 48, 49, 64, 100_000];
const SOON: Wait = Wait::For(Duration::from_secs(20));
/// Time between two starts, so that their order is the one that is meant.
const GAP: Duration = Duration::from_millis(100);

fn peer() -> &'static Path {
    static PEER: OnceLock<PathBuf> = OnceLock::new();
    PEER.get_or_init(|| test_program("peer"))
}

fn start(arguments: &str, instance: &str) -> Process {
    Process::start(peer(), arguments, instance, &system())
}

fn attach(domain: &str, instance: &str) -> Participant {
    let plan = musubi_config::load(&system()).unwrap().leak();
    Participant::attach(Options { instance: Some(instance.to_owned()), ..Options::new(plan, domain) }).unwrap()
}

/// Two C programs, in both orders of start.
fn both_ways(one: &str, other: &str) {
    for (first, second) in [(one, other), (other, one)] {
        let instance = instance();
        let mut first = start(first, &instance);
        std::thread::sleep(GAP);
        let mut second = start(second, &instance);
        second.succeed();
        first.succeed();
    }
}

/// As tests/c/common.h.
fn pattern(n: u32, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|i| if i < 4 { (n >> (8 * i)) as u8 } else { n.wrapping_mul(31).wrapping_add(i as u32) as u8 })
        .collect()
}

#[test]
fn blocks_of_any_size_arrive_between_c_programs() {
    for size in SIZES {
        let count = if size > 1000 { 50 } else { 2000 };
        both_ways(
            &format!("send control size-{size} {count} {size}"),
            &format!("receive remote size-{size} {count} {size}"),
        );
    }
}

#[test]
fn messages_of_any_length_arrive() {
    both_ways("send control size-49 1000", "receive remote size-49 1000");
}

#[test]
fn several_blocks_are_in_flight_at_both_sides() {
    both_ways("send-bundles control size-64 400 64", "receive-bundles remote size-64 400 64");
}

#[test]
fn event_loops_watch_both_sides() {
    both_ways("send-events control size-49 3000 49", "receive-events remote size-49 3000 49");
    both_ways("send-events control size-100000 50 100000", "receive-events remote size-100000 50 100000");
}

#[test]
fn a_c_sender_and_a_rust_receiver_in_either_order() {
    for c_first in [true, false] {
        for size in SIZES {
            let (instance, arguments) = (instance(), format!("send control size-{size} 100 {size}"));
            let early = c_first.then(|| start(&arguments, &instance));
            std::thread::sleep(GAP);
            let participant = attach("remote", &instance);
            let receiver = Mdcom::init(&participant).receiver(format!("size-{size}").as_str()).unwrap();
            let mut c = early.unwrap_or_else(|| start(&arguments, &instance));
            let mut bytes = vec![0; size];
            for n in 0..100 {
                let message = receiver.next(SOON).unwrap();
                assert_eq!(message.read_into(&mut bytes).unwrap(), pattern(n, size));
            }
            c.succeed();
        }
    }
}

#[test]
fn a_rust_sender_and_a_c_receiver_in_either_order() {
    for c_first in [true, false] {
        for size in SIZES {
            let (instance, arguments) = (instance(), format!("receive remote size-{size} 100 {size}"));
            let early = c_first.then(|| start(&arguments, &instance));
            std::thread::sleep(GAP);
            let participant = attach("control", &instance);
            let sender = Mdcom::init(&participant).sender(format!("size-{size}").as_str()).unwrap();
            let mut c = early.unwrap_or_else(|| start(&arguments, &instance));
            for n in 0..100 {
                sender.send(&pattern(n, size), SOON).unwrap();
            }
            c.succeed();
        }
    }
}

#[test]
fn every_second_request_is_passed_on_and_none_is_lost() {
    both_ways("filter control size-64", "echo remote size-64");
}

#[test]
fn waits_keep_their_time_at_the_sender() {
    both_ways("sender-times control size-64", "echo remote size-64");
}

#[test]
fn waits_keep_their_time_at_the_receiver() {
    both_ways("receiver-times remote size-64", "send-when-notified control size-64");
}

#[test]
fn the_lock_excludes_between_processes() {
    both_ways("add control shared 3000", "add remote shared 3000");
}

#[test]
fn a_lock_holder_that_is_killed_is_passed_over() {
    let instance = instance();
    let participant = attach("control", &instance);
    let mut shared = Mdcom::init(&participant).shared::<u64>("shared", SOON).unwrap();
    let mut holder = start("hold remote shared", &instance);
    let mut held = [0; 4];
    holder.child.stdout.take().unwrap().read_exact(&mut held).unwrap();
    assert_eq!(shared.try_lock().err(), Some(Error::Locked));
    holder.kill();
    drop(shared.lock(SOON).unwrap());
}

#[test]
fn a_c_receiver_is_killed_and_the_sender_goes_on() {
    const COUNT: u32 = 30_000;
    const KILLS: usize = 4;
    let instance = instance();
    let mut sender = start(&format!("send control size-64 {COUNT} 64"), &instance);
    let mut numbers = Vec::new();
    for kill in 0..=KILLS {
        let mut receiver = start("report remote size-64", &instance);
        let output = receiver.child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let (mut output, mut bytes) = (output, Vec::new());
            output.read_to_end(&mut bytes).unwrap();
            bytes.chunks_exact(4).map(|n| u32::from_le_bytes(n.try_into().unwrap())).collect::<Vec<u32>>()
        });
        if kill < KILLS {
            std::thread::sleep(Duration::from_millis(30));
        } else {
            sender.succeed();
        }
        receiver.kill();
        numbers.extend(reader.join().unwrap());
    }
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    // One that was dequeued and not yet written down goes with its receiver.
    let missing = COUNT as usize - numbers.len();
    assert!(missing <= KILLS, "{missing} missing");
}

#[test]
fn a_c_sender_is_killed_and_the_receiver_goes_on() {
    let instance = instance();
    let participant = attach("remote", &instance);
    let receiver = Mdcom::init(&participant).receiver("size-64").unwrap();
    for _ in 0..3 {
        let mut sender = start("send control size-64 1000000 64", &instance);
        for n in 0..1000 {
            assert_eq!(receiver.next(SOON).unwrap().read_into(&mut [0; 64]).unwrap(), pattern(n, 64));
        }
        sender.kill();
        let mut bytes = [0; 64];
        let mut n = 1000;
        let end = loop {
            match receiver.next(SOON) {
                Ok(message) => assert_eq!(message.read_into(&mut bytes).unwrap(), pattern(n, 64)),
                Err(error) => break error,
            }
            n += 1;
        };
        assert_eq!(end, Error::PeerGone, "told once all committed messages were taken");
    }
}

#[test]
fn two_processes_of_a_domain_do_not_share_an_end() {
    let instance = instance();
    let mut first = start("echo remote size-64", &instance);
    let control = attach("control", &instance);
    let sender = Mdcom::init(&control).sender("size-64").unwrap();
    sender.send(&[1], SOON).unwrap();
    sender.wait(SOON).unwrap();
    start("is-busy remote size-64", &instance).succeed();
    drop(sender);
    drop(control);
    first.succeed();
}
