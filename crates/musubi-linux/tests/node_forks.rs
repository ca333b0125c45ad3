//! Nodes and the processes that come from theirs.
//!
//! Apart from the other tests of nodes, since a child has copies of every socket of its process for a moment, so that
//! a listener that another test closes stays open for that moment.

use std::io::{BufRead, BufReader};
use std::os::fd::BorrowedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use musubi_core::lane::{Payload, RECORD_BYTES_MAX};
use musubi_linux::node::{Dialed, Event, Options, Presence, Source};

mod neighbours;

use neighbours::options;

#[test]
fn a_forked_child_may_drop_a_block() {
    let (mut one, mut two) = (Presence::open(options("lent", 1)).unwrap(), Presence::open(options("lent", 2)).unwrap());
    assert_eq!(one.dial(2, 0), Dialed::Begun);
    two.ready(Source::Listener, 0);
    let Some(Event::Linked(mut sender)) = two.next_event() else { panic!("no link") };
    let receiver = (0..10).find_map(|id| {
        one.ready(Source::Socket(id), 0);
        one.next_event()
    });
    let Some(Event::Linked(mut receiver)) = receiver else { panic!("no link") };
    sender.with(|lanes| lanes.send_block(&[1], &[7; 1000], 0)).unwrap();
    let message = receiver.with(|lanes| lanes.receive::<1>(&mut [0; RECORD_BYTES_MAX])).unwrap().unwrap();
    let Payload::Block { block, bytes } = message.payload else { panic!("{message:?}") };
    let lent = receiver.lend(block, bytes).unwrap();
    // SAFETY: the child only drops what it has a copy of, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(lent);
        // SAFETY: ends the child at once, without what the test's process does at its end.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the kernel to write.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child has ended by itself");
    let mut read = [0; 1000];
    assert_eq!((lent.copy_to(0, &mut read), read), (1000, [7; 1000]));
    drop(lent);
    assert_eq!(sender.with(|lanes| lanes.has_room()), Ok(true));
}

const SPOILER: &str = "MUSUBI_TEST_SPOILER";

/// The next test, in a process of its own, all of whose eventfds are those of its two nodes.
#[test]
fn spoiler() {
    if std::env::var_os(SPOILER).is_none() {
        return;
    }
    let (mut one, mut two) =
        (Presence::open(options("spoil", 1)).unwrap(), Presence::open(options("spoil", 2)).unwrap());
    assert_eq!(one.dial(2, 0), Dialed::Begun);
    two.ready(Source::Listener, 0);
    let Some(Event::Linked(link)) = two.next_event() else { panic!("no link") };
    let is_bell = |fd: &i32| {
        let name = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        name.is_ok_and(|name| name.to_string_lossy().contains("eventfd"))
    };
    let bells: Vec<i32> = (0..1000).filter(is_bell).collect();
    assert!(bells.len() >= 2);
    // SAFETY: they are open, and stay so for longer than this.
    let bells: Vec<BorrowedFd<'_>> = bells.into_iter().map(|bell| unsafe { BorrowedFd::borrow_raw(bell) }).collect();
    for bell in &bells {
        // As much as goes into it; whoever writes more then has to wait.
        for bit in (0..64).rev() {
            while rustix::io::write(bell, &(1u64 << bit).to_ne_bytes()).is_ok() {}
        }
    }
    // Each is there twice: as its owner's, and as sent.
    for bell in &bells {
        rustix::fs::fcntl_setfl(bell, rustix::fs::OFlags::empty()).unwrap();
    }
    link.ring();
    println!("@rung");
}

#[test]
fn a_bell_that_its_owner_has_spoilt_does_not_make_us_wait() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "spoiler", "--nocapture", "--test-threads=1"]).env(SPOILER, "1");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if std::time::Instant::now() > end {
            child.kill().unwrap();
            panic!("a ring waits");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert!(said.contains("@rung"), "{said}");
}

const FORKER: &str = "MUSUBI_TEST_FORKER";

/// Node 2 of the next test, in a process of its own: links with who calls, forks, and tells the child's number.
#[test]
fn forker() {
    let Ok(system) = std::env::var(FORKER) else { return };
    let mut own = Presence::open(Options { system, ..options("", 2) }).unwrap();
    println!("@here");
    let _link = loop {
        own.ready(Source::Listener, 0);
        match own.next_event() {
            Some(Event::Linked(link)) => break link,
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    // SAFETY: the child calls only what is safe after a fork.
    let child = unsafe { libc::fork() };
    if child != 0 {
        println!("@{child}");
    }
    loop {
        // SAFETY: as above.
        unsafe { libc::pause() };
    }
}

#[test]
fn a_forked_child_keeps_neither_the_number_nor_the_link() {
    use rustix::process::{Pid, Signal, kill_process};
    let mut here = Presence::open(options("forks", 1)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "forker", "--nocapture", "--test-threads=1"]).env(FORKER, &options("forks", 2).system);
    let mut there = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(there.stdout.take().unwrap()).lines();
    let mut hear = || {
        let mut said = lines.by_ref().filter_map(|line| line.unwrap().split_once('@').map(|(_, word)| word.to_owned()));
        said.next().unwrap()
    };
    assert_eq!(hear(), "here");
    assert_eq!(here.dial(2, 0), Dialed::Begun);
    let child = Pid::from_raw(hear().parse().unwrap()).unwrap();
    // The answer is there, since the other has linked before it forked.
    let link = (0..10).find_map(|id| {
        here.ready(Source::Socket(id), 0);
        match here.next_event() {
            Some(Event::Linked(link)) => Some(link),
            _ => None,
        }
    });
    let link = link.expect("no link");
    assert!(!link.has_ended());
    there.kill().unwrap();
    there.wait().unwrap();
    let successor = Presence::open(options("forks", 2));
    let ended = link.has_ended();
    kill_process(child, Signal::KILL).unwrap();
    assert!(ended && successor.is_ok(), "the child lived on meanwhile");
}

/// As a process that is just being started has them: nobody tells it of what its parent closes meanwhile.
fn copies() -> rustix::process::Pid {
    // SAFETY: the child only waits to be killed; a bare system call runs no handlers of forks.
    match unsafe { libc::syscall(libc::SYS_fork) } {
        0 => loop {
            // SAFETY: as above.
            unsafe { libc::pause() };
        },
        child => rustix::process::Pid::from_raw(child as i32).expect("a child"),
    }
}

#[test]
fn what_is_closed_is_closed_for_copies_too() {
    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
    let mut own = Presence::open(options("copied", 1)).unwrap();
    let other = Presence::open(options("copied", 2)).unwrap();
    let child = copies();
    drop(other);
    let dialed = own.dial(2, 0);
    let successor = std::thread::spawn(|| Presence::open(options("copied", 2)));
    std::thread::sleep(Duration::from_millis(50));
    kill_process(child, Signal::KILL).unwrap();
    waitpid(Some(child), WaitOptions::empty()).unwrap();
    assert_eq!(dialed, Dialed::Absent);
    assert!(successor.join().unwrap().is_ok(), "it waits for the copies to go");
}
