//! What a participant could not take, for want of descriptors or memory of its own, costs no peer: it is asked for again.

mod actor;
mod system;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use actor::Actor;
use actor::forged::{Flaw, Forged, post, take};
use musubi_core::layout::segment_bytes;
use musubi_linux::message::{Message, Refusal};
use musubi_linux::names::Names;
use musubi_linux::{Direction, Participant};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use system::*;

#[test]
fn actor() {
    actor::play();
}

/// Memory that can be that of the SMEM channel.
fn segment() -> OwnedFd {
    let bytes = u64::from(segment_bytes(PLAN.smems[usize::from(PARAMETERS)].bytes).unwrap());
    let memory = memfd_create("segment", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, bytes).unwrap();
    fallocate(&memory, FallocateFlags::empty(), 0, bytes).unwrap();
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    memory
}

/// Bytes that the other end has not read.
fn unread(socket: &OwnedFd) -> i32 {
    let mut bytes = 0;
    // SAFETY: the call writes one `int` at the address of `bytes`.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    assert_eq!(result, 0);
    bytes
}

/// Takes packets until one fits.
fn until<T>(socket: &OwnedFd, fits: impl Fn(&Message) -> Option<T>) -> T {
    let soon = rustix::time::Timespec { tv_sec: 30, tv_nsec: 0 };
    loop {
        assert_eq!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&soon)).unwrap(), 1, "nothing came");
        let (message, _) = take(socket).expect("the connection was cut");
        if let Some(found) = fits(&message) {
            return found;
        }
    }
}

/// Accepts the call of a linked participant and answers it with the section; gives the connection.
fn answer_call(forged: &Forged) -> OwnedFd {
    loop {
        let call = forged.next_call();
        // Calls that were given up meanwhile say nothing.
        if !matches!(take(&call), Some((Message::Hello(_), _))) {
            continue;
        }
        let section = forged.section(Flaw::None);
        if post(&call, &Message::Welcome(forged.party).bytes(), &[section.as_fd()]) {
            return call;
        }
    }
}

#[test]
fn memory_that_there_was_no_descriptor_for_is_asked_for_again() {
    let instance = instance();
    // The Master is forged: the memory is its to make.
    let forged = Forged::of(&PLAN, CONTROL, &instance);
    let mut gateway = Actor::start();
    gateway.say(&format!("attach {GATEWAY} {instance} plan 30000"));
    let first = answer_call(&forged);
    post(&first, &Message::Ready.bytes(), &[]);
    assert!(gateway.hear().starts_with("attached"));
    let memory = segment();
    assert_eq!(gateway.ask("room 3"), "done");
    post(&first, &Message::Segment { smem: PARAMETERS, generation: 7 }.bytes(), &[memory.as_fd()]);
    eventually("the loss", || unread(&first) == 0);
    assert_eq!(gateway.ask("room 256"), "done");

    let again = answer_call(&forged);
    post(&again, &Message::Segment { smem: PARAMETERS, generation: 7 }.bytes(), &[memory.as_fd()]);
    post(&again, &Message::Ready.bytes(), &[]);
    assert!(gateway.ask("segment 20000").starts_with("generation 7"));
    assert_eq!(gateway.ask("peers"), "[0]", "the link has lasted");
    // What was incomplete is not needed any more.
    while take(&first).is_some() {}
}

#[test]
fn doorbells_are_given_again_on_a_further_connection() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    send.event_fd().unwrap();
    let forged = Forged::new(&instance);
    let first = forged.linked();
    let end = Message::End { fifo: TELEMETRY, direction: Direction::Receive, open: true, serial: 1 };
    post(&first, &end.bytes(), &[]);
    let is_bell = |message: &Message| matches!(message, Message::Doorbell { fifo: TELEMETRY, .. }).then_some(());
    until(&first, is_bell);
    for _ in 0..10 {
        let further = forged.linked();
        until(&further, is_bell);
    }
    assert_eq!(control.peers().len(), 1);
}

#[test]
fn a_section_that_we_have_no_memory_for_is_no_fault_of_its_owner() {
    let instance = instance();
    let mut control = Actor::start();
    control.attach(CONTROL, &instance);
    assert_eq!(control.ask(&format!("refuse-all {} {}", libc::SYS_fallocate, libc::ENOMEM)), "refused");
    let forged = Forged::new(&instance);
    let (_socket, answer) = forged.call(Flaw::None);
    assert!(matches!(answer, Some(Message::Refuse { reason: Refusal::Busy, .. })), "{answer:?}");
    let (_socket, answer) = forged.call(Flaw::NotSealed);
    assert!(matches!(answer, Some(Message::Refuse { reason: Refusal::Section, .. })), "{answer:?}");
}

/// Nobody comes or goes meanwhile, and the creator's program does not ask: only time brings the next try.
#[test]
fn memory_whose_name_another_held_is_created_when_it_lets_go() {
    let instance = instance();
    let name = Names::new(PLAN.name, Some(&instance)).unwrap().segment(PARAMETERS);
    let holder = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    bind(&holder, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    let mut control = Actor::start();
    control.attach(CONTROL, &instance);
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    assert!(gateway.ask("segment 200").starts_with("error"), "the name is held");
    drop(holder);
    assert!(gateway.ask("segment 30000").starts_with("generation"));
}
