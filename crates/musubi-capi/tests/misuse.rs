//! Mistakes of C programs are answered with a code and change nothing; ends and beginnings; threads.

mod programs;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use musubi_linux::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};
use programs::{Process, instance, system, test_program};

const SOON: Wait = Wait::For(Duration::from_secs(20));

fn start(program: &Path, arguments: &str, instance: &str) -> Process {
    Process::start(program, arguments, instance, &system())
}

fn misuse() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| test_program("misuse"))
}

fn threads() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| test_program("threads"))
}

fn attach(domain: &str, instance: &str) -> Participant {
    let plan = musubi_config::load(&system()).unwrap().leak();
    Participant::attach(Options { instance: Some(instance.to_owned()), ..Options::new(plan, domain) }).unwrap()
}

/// Message number `n` of 64 bytes as tests/c/common.h fills it.
fn message(n: u32) -> [u8; 64] {
    std::array::from_fn(|i| if i < 4 { (n >> (8 * i)) as u8 } else { n.wrapping_mul(31).wrapping_add(i as u32) as u8 })
}

#[test]
fn a_sender_makes_mistakes() {
    let instance = instance();
    let participant = attach("remote", &instance);
    let receiver = Mdcom::init(&participant).receiver("size-64").unwrap();
    let mut c = start(misuse(), "sender", &instance);
    assert_eq!(receiver.next(SOON).unwrap().len(), 64, "the one message of the first part");
    assert_eq!(receiver.recv_bytes(), message(1), "and none in between");
    c.succeed();
}

/// The next message.
trait RecvBytes {
    fn recv_bytes(&self) -> [u8; 64];
}

impl<A: musubi_core::channel::Attachment> RecvBytes for musubi_mdcom::Receiver<'_, A, musubi_mdcom::Bytes> {
    fn recv_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        self.next(SOON).unwrap().read_into(&mut bytes).unwrap();
        bytes
    }
}

#[test]
fn a_receiver_makes_mistakes() {
    let instance = instance();
    let participant = attach("control", &instance);
    let sender = Mdcom::init(&participant).sender("size-64").unwrap();
    let mut c = start(misuse(), "receiver", &instance);
    for n in 0..5 {
        sender.send(&message(n), SOON).unwrap();
    }
    sender.wait(SOON).unwrap();
    let blocks: Vec<_> = (0..4).map(|_| sender.alloc(SOON).unwrap()).collect();
    drop(blocks);
    sender.send(&message(99), SOON).unwrap();
    c.succeed();
}

#[test]
fn the_lock_is_misused() {
    start(misuse(), "memory", &instance()).succeed();
}

#[test]
fn before_init_after_term_and_in_a_fork() {
    start(misuse(), "lifecycle", &instance()).succeed();
}

#[test]
fn term_wakes_every_thread_that_waits() {
    start(threads(), "term", &instance()).succeed();
}

#[test]
fn four_threads_share_four_channels_on_both_sides() {
    let instance = instance();
    let mut receiver = start(threads(), "receive", &instance);
    let mut sender = start(threads(), "send", &instance);
    receiver.succeed();
    sender.succeed();
}
