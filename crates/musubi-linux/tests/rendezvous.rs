//! Peers that answer the rendezvous with anything, or not at all: what it costs the others.

mod forged;
mod system;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forged::{Flaw, Forged, post, take};
use musubi_core::plan::{LockKind, Plan, Smem};
use musubi_linux::message::{Message, Refusal};
use musubi_linux::{Error, Options, Participant};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::accept;
use system::*;

/// How a peer that was called answers.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Refuse(Refusal),
    Welcome(Flaw),
    OtherHash,
    OtherVersion,
    Garbage,
    HangUp,
    Nothing,
}

const ANSWERS: [Answer; 13] = [
    Answer::Refuse(Refusal::Plan),
    Answer::Refuse(Refusal::User),
    Answer::Refuse(Refusal::Section),
    Answer::Refuse(Refusal::Slot),
    Answer::Refuse(Refusal::Version),
    Answer::Refuse(Refusal::Busy),
    Answer::Welcome(Flaw::NotSealed),
    Answer::Welcome(Flaw::Epoch),
    Answer::OtherHash,
    Answer::OtherVersion,
    Answer::Garbage,
    Answer::HangUp,
    Answer::Nothing,
];

/// A participant made by hand that answers everybody in one way until it is dropped.
struct Liar {
    ended: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Liar {
    fn start(forged: Forged, answer: Answer) -> Liar {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut open = Vec::new();
            while !end.load(Ordering::SeqCst) {
                let soon = rustix::time::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                if poll(&mut [PollFd::new(&forged.name, PollFlags::IN)], Some(&soon)).unwrap() > 0 {
                    open.extend(reply(&forged, answer, accept(&forged.name).unwrap()));
                }
            }
        });
        Liar { ended, thread: Some(thread) }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Answers a call; gives the connection if it stays.
fn reply(forged: &Forged, answer: Answer, call: OwnedFd) -> Option<OwnedFd> {
    take(&call);
    match answer {
        Answer::Refuse(reason) => post(&call, &Message::Refuse { reason, hash: 0x77 }.bytes(), &[]),
        Answer::Welcome(flaw) => post(&call, &Message::Welcome(forged.party).bytes(), &[forged.section(flaw).as_fd()]),
        Answer::OtherHash => {
            let mut party = forged.party;
            party.hash = 0x77;
            post(&call, &Message::Welcome(party).bytes(), &[forged.section(Flaw::None).as_fd()])
        }
        Answer::OtherVersion => {
            let mut bytes = Message::Ready.bytes();
            bytes[4] = 9;
            post(&call, &bytes, &[])
        }
        Answer::Garbage => post(&call, b"what?", &[]),
        Answer::HangUp => return None,
        Answer::Nothing => true,
    };
    Some(call)
}

/// What somebody hears who waits for a peer that answers like this.
fn is_said(answer: Answer, error: &Error) -> bool {
    match answer {
        Answer::Refuse(Refusal::Plan) | Answer::OtherHash => matches!(error, Error::PlanMismatch { theirs: 0x77, .. }),
        Answer::Refuse(Refusal::User) => matches!(error, Error::RefusedUser { .. }),
        Answer::Refuse(Refusal::Version) | Answer::OtherVersion => matches!(error, Error::VersionMismatch { .. }),
        Answer::Refuse(Refusal::Busy) | Answer::Garbage | Answer::HangUp | Answer::Nothing => {
            matches!(error, Error::TimedOut(_))
        }
        Answer::Refuse(_) | Answer::Welcome(_) => matches!(error, Error::Refused { .. }),
    }
}

fn options_of(plan: &'static Plan<'static>, domain: u16, instance: &str) -> Options {
    Options { plan, ..options(domain, instance) }
}

#[test]
fn no_answer_of_a_remote_keeps_a_master_or_another_remote_from_starting() {
    for answer in ANSWERS {
        let instance = instance();
        let liar = Liar::start(Forged::of(&PLAN_OF_NEIGHBOURS, 1, &instance), answer);
        for _restart in 0..2 {
            let begin = Instant::now();
            let control = Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, CONTROL, &instance));
            let control = control.unwrap_or_else(|error| panic!("{answer:?} to the Master: {error}"));
            let storage = Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, STORAGE, &instance));
            let storage = storage.unwrap_or_else(|error| panic!("{answer:?} to a Remote: {error}"));
            assert!(begin.elapsed() < Duration::from_secs(5), "{answer:?}: {:?}", begin.elapsed());
            control.wait_for(STORAGE, within(2_000)).unwrap();
            for of in [&control, &storage] {
                let error = of.wait_for(GATEWAY, within(20)).unwrap_err();
                assert!(is_said(answer, &error), "{answer:?}: {error}");
                let named = of.obstacles().iter().any(|(participant, _)| *participant == 1);
                assert_eq!(named, !matches!(error, Error::TimedOut(_)), "{answer:?}");
            }
        }
        drop(liar);
        // An honest successor is linked, and nothing is said of its predecessor any more.
        let control = Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, CONTROL, &instance)).unwrap();
        let _gateway = Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, GATEWAY, &instance)).unwrap();
        control.wait_for(GATEWAY, within(2_000)).unwrap();
        assert!(control.obstacles().is_empty(), "{answer:?}: {:?}", control.obstacles());
    }
}

#[test]
fn what_the_master_refuses_does_not_start() {
    for answer in ANSWERS {
        let instance = instance();
        let _master = Liar::start(Forged::of(&PLAN_OF_NEIGHBOURS, 0, &instance), answer);
        match Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, GATEWAY, &instance)) {
            Ok(_) => assert!(
                matches!(answer, Answer::Refuse(Refusal::Busy) | Answer::Garbage | Answer::HangUp | Answer::Nothing),
                "{answer:?}"
            ),
            Err(error) => assert!(is_said(answer, &error), "{answer:?}: {error}"),
        }
    }
}

/// A plan whose SMEM channel is as large as a huge page.
static PLAN_OF_HUGE_MEMORY: Plan<'static> = Plan {
    smems: &[Smem { name: "parameters", domains: &[CONTROL, GATEWAY], bytes: 2 << 20, lock: LockKind::Bakery }],
    ..PLAN
};

#[test]
fn a_member_that_hands_on_huge_pages_is_cut_off() {
    let instance = instance();
    // The gateway has memory from before the Master's time, as it says.
    let forged = Forged::of(&PLAN_OF_HUGE_MEMORY, 1, &instance);
    let flags = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB | MemfdFlags::ALLOW_SEALING;
    let Ok(huge) = memfd_create("huge", flags) else { return println!("SKIPPED: this kernel has no huge pages") };
    ftruncate(&huge, 2 << 20).unwrap();
    fcntl_add_seals(&huge, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    let master = std::thread::spawn({
        let options = options_of(&PLAN_OF_HUGE_MEMORY, CONTROL, &instance);
        || Participant::attach(options).unwrap()
    });
    let call = forged.next_call();
    take(&call);
    post(&call, &Message::Welcome(forged.party).bytes(), &[forged.section(Flaw::None).as_fd()]);
    post(&call, &Message::Segment { smem: PARAMETERS, generation: 3 }.bytes(), &[huge.as_fd()]);
    post(&call, &Message::Ready.bytes(), &[]);
    let master = master.join().unwrap();
    let segment = master.open_segment(PARAMETERS, within(2_000)).unwrap();
    assert_eq!(segment.generation(), master.epoch(), "the Master's own memory");
    assert_eq!((master.peers().len(), master.strangers().garbage), (0, 1));
}
