//! Peers that answer the rendezvous with anything, or not at all: what it costs the others.

mod actor;
mod system;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actor::Actor;
use actor::forged::{Flaw, Forged, fill_the_queue, knock, post, take};
use musubi_core::plan::{LockKind, Plan, Smem};
use musubi_linux::message::{Message, Refusal};
use musubi_linux::observe::Silent;
use musubi_linux::{Direction, Error, Observer, Options, Participant};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendFlags, SocketFlags, accept_with, send as send_to};
use system::*;

#[test]
fn actor() {
    actor::play();
}

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

const ANSWERS: [Answer; 14] = [
    Answer::Refuse(Refusal::Plan),
    Answer::Refuse(Refusal::User),
    Answer::Refuse(Refusal::Section),
    Answer::Refuse(Refusal::Slot),
    Answer::Refuse(Refusal::Version),
    Answer::Refuse(Refusal::Busy),
    Answer::Welcome(Flaw::NotSealed),
    Answer::Welcome(Flaw::Epoch),
    Answer::Welcome(Flaw::Lingers),
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
                    open.extend(reply(&forged, answer, accept_with(&forged.name, SocketFlags::CLOEXEC).unwrap()));
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
        Answer::Welcome(flaw) => {
            let section = forged.section(flaw);
            let posted = post(&call, &Message::Welcome(forged.party).bytes(), &[section.as_fd()]);
            // If ours is the last copy, its end is ours to wait for.
            std::thread::spawn(move || drop(section));
            posted
        }
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

/// Whatever the Master answers, two Remotes that it does not refuse go on with each other, and both are linked with an honest
/// Master that takes its place.
#[test]
fn remotes_beside_a_hostile_master_go_on_and_take_its_successor() {
    for answer in [Answer::Refuse(Refusal::Busy), Answer::Garbage, Answer::HangUp, Answer::Nothing] {
        let instance = instance();
        let liar = Liar::start(Forged::of(&PLAN_OF_NEIGHBOURS, 0, &instance), answer);
        let attach = |domain| {
            let attached = Participant::attach(options_of(&PLAN_OF_NEIGHBOURS, domain, &instance));
            attached.unwrap_or_else(|error| panic!("{answer:?}: {error}"))
        };
        let gateway = attach(GATEWAY);
        drop(attach(STORAGE));
        let storage = attach(STORAGE);
        gateway.wait_for(STORAGE, within(30_000)).unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        assert!(gateway.wait_for(CONTROL, within(20)).is_err(), "{answer:?}");
        drop(liar);
        let control = attach(CONTROL);
        for remote in [&gateway, &storage] {
            remote.wait_for(CONTROL, within(30_000)).unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        }
        drop(control);
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
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB | MemfdFlags::ALLOW_SEALING;
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

/// Users of [`PLAN_OF_THREE_USERS`].
const USERS: [u32; 3] = [65531, 65532, 65533];
/// Descriptors that the Master's process may have open, and so its user in flight.
const MASTERS_LIMIT: usize = 256;

#[test]
fn descriptors_that_one_user_never_reads_are_missing_to_nobody_else() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: needs root to act as other users");
    }
    let instance = instance();
    let [mut control, mut hostile, mut storage] = USERS.map(|uid| Actor::start_as(Some(uid)));
    assert_eq!(control.ask(&format!("limit nofile {MASTERS_LIMIT}")), "limited");
    let answer = control.ask(&format!("attach {CONTROL} {instance} three 2000"));
    assert!(answer.starts_with("attached"), "{answer}");
    let before = control.settled_descriptors();
    assert!(hostile.ask(&format!("flood {instance} 800")).ends_with("unread"));
    // A newcomer of another user, twice, and an observer: all get what they ask for.
    for _ in 0..2 {
        let answer = storage.ask(&format!("attach {STORAGE} {instance} three 2000"));
        assert!(answer.starts_with("attached"), "{answer}");
        assert!(storage.ask("wait 0 2000").starts_with('0'));
        assert!(control.ask("wait 2 2000").starts_with('2'));
        assert_eq!(storage.ask("leave"), "left");
    }
    let mut observer = Observer::new(&PLAN_OF_THREE_USERS, Some(&instance)).unwrap();
    observer.refresh(within(2_000)).unwrap();
    assert!(observer.participants().iter().any(|seen| seen.section.participant() == 0));
    let kept: usize = control.ask("descriptors").parse().unwrap();
    assert!(kept < before + 140, "{before} descriptors have become {kept}");
    let withheld: u32 = control.ask("withheld").parse().unwrap();
    assert!(withheld > 100, "{withheld}");
    // When the sockets go, so does what was kept of them.
    hostile.kill();
    drop(observer);
    eventually("the descriptors' end", || control.ask("descriptors") == before.to_string());
}

#[test]
fn a_linked_peer_that_does_not_read_has_few_descriptors_on_their_way() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let _events = send.event_fd().unwrap();
    let forged = Forged::new(&instance);
    let socket = forged.linked();
    const OPENINGS: u32 = 200;
    for serial in 1..=OPENINGS {
        let direction = Direction::Receive;
        assert!(post(&socket, &Message::End { fifo: TELEMETRY, direction, open: true, serial }.bytes(), &[]));
    }
    eventually("the last opening", || {
        send.tx_links().unwrap().lock().receiver.as_ref().is_some_and(|link| link.serial == OPENINGS)
    });
    rustix::io::ioctl_fionbio(&socket, true).unwrap();
    let bells = || {
        let packets = std::iter::from_fn(|| take(&socket));
        packets.filter_map(|(message, fd)| fd.filter(|_| matches!(message, Message::Doorbell { .. })))
    };
    let mut came: Vec<OwnedFd> = bells().collect();
    assert!((1..=17).contains(&came.len()), "{} doorbells were on their way", came.len());
    // Now that they are read, the one of the last opening comes: the only one that still rings.
    eventually("the last doorbell", || {
        came.extend(bells());
        came.last().is_some_and(|bell| send_to(bell, &[1], SendFlags::NOSIGNAL).is_ok())
    });
    assert!(came.len() <= 20, "{} doorbells came", came.len());
    assert_eq!(control.strangers().garbage, 0);
    assert_eq!(control.peers().len(), 1);
}

#[test]
fn a_remote_that_refuses_observers_is_named_and_hides_nobody() {
    for answer in ANSWERS {
        let instance = instance();
        let _liar = Liar::start(Forged::of(&PLAN, 1, &instance), answer);
        let _control = Participant::attach(options(CONTROL, &instance)).unwrap();
        let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
        observer.refresh(within(100)).unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        let seen: Vec<u16> = observer.participants().iter().map(|seen| seen.section.participant()).collect();
        assert_eq!(seen, [0], "{answer:?}");
        let (silent, refused) = (observer.silent().len(), observer.refused().len());
        match answer {
            Answer::Nothing | Answer::HangUp => assert_eq!((silent, refused), (1, 0), "{answer:?}"),
            _ => assert_eq!((silent, refused, observer.refused()[0].participant), (0, 1, 1), "{answer:?}"),
        }
    }
}

#[test]
fn an_observer_sees_that_a_participant_is_there_whom_too_many_call() {
    let instance = instance();
    let _gateway = Forged::new(&instance);
    let _callers = fill_the_queue(&instance, 1);
    let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
    observer.refresh(within(20)).unwrap();
    assert_eq!(observer.silent(), [Silent { participant: 1, pid: 0 }]);
}

/// Whoever answers for a slot must be the participant of that slot: neither another one of its domain, nor one that says so
/// of another domain.
#[test]
fn an_observer_does_not_believe_who_answers_for_another_slot() {
    for (participant, domain) in [(3, STORAGE), (2, GATEWAY)] {
        let instance = instance();
        let mut liar = Forged::of(&PLAN, 2, &instance);
        let section_bytes = musubi_core::layout::section_bytes(&PLAN, domain).unwrap();
        liar.party = musubi_linux::message::Party { participant, domain, section_bytes, ..liar.party };
        let answers = std::thread::spawn(move || {
            let call = liar.next_call();
            take(&call);
            post(&call, &Message::Welcome(liar.party).bytes(), &[liar.section(Flaw::None).as_fd()]);
            (call, liar)
        });
        let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
        assert!(matches!(observer.refresh(within(5_000)), Err(Error::NotLetIn { participant: 2, .. })));
        assert!(observer.participants().is_empty());
        drop(answers.join().unwrap());
    }
}

#[test]
fn an_observer_forgets_who_has_gone() {
    let instance = instance();
    let gateway = Forged::new(&instance);
    let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
    let departure = std::thread::spawn(move || {
        let call = gateway.next_call();
        take(&call);
        drop(gateway);
    });
    observer.refresh(within(5_000)).unwrap();
    departure.join().unwrap();
    assert!(observer.silent().is_empty() && observer.refused().is_empty());
}

/// Memory that a member may hand on, without a page in it.
fn hollow_memory(bytes: u64) -> OwnedFd {
    let memory = memfd_create("hollow", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, bytes).unwrap();
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    memory
}

#[test]
fn who_waits_for_shared_memory_hears_that_the_kernel_has_none() {
    let instance = instance();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    let master = Forged::of(&PLAN, 0, &instance);
    let call = knock(&instance, 1);
    post(&call, &Message::Hello(master.party).bytes(), &[master.section(Flaw::None).as_fd()]);
    assert!(matches!(take(&call), Some((Message::Welcome(_), _))));
    gateway.ask(&format!("refuse-all {} {}", libc::SYS_fallocate, libc::ENOSPC));
    let memory = hollow_memory(12_288);
    post(&call, &Message::Segment { smem: PARAMETERS, generation: 3 }.bytes(), &[memory.as_fd()]);
    post(&call, &Message::Ready.bytes(), &[]);
    assert!(gateway.ask("wait 0 2000").starts_with('0'));
    let answer = gateway.ask("segment 50");
    assert!(answer.starts_with("error") && answer.contains("fallocate"), "{answer}");
    assert_eq!(gateway.ask("peers"), "[0]", "it costs the memory, not the link");
}

#[test]
fn a_member_that_came_by_itself_owes_no_answer_to_our_call() {
    let instance = instance();
    let gateway = Forged::new(&instance);
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let call = gateway.next_call();
    let segment = control.open_segment(PARAMETERS, within(2_000)).unwrap();
    assert!(!segment.settled(), "whether the gateway knows our ticket is not known");
    let _link = gateway.linked();
    eventually("the right to take the lock", || segment.settled());
    drop(call);
    assert_eq!(control.peers().len(), 1);
}

/// Descriptors of every wrong kind, and some of the right one.
fn palette(forged: &Forged) -> Vec<OwnedFd> {
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let pair = |kind| rustix::net::socketpair(rustix::net::AddressFamily::UNIX, kind, flags, None).unwrap().0;
    let flaws =
        [Flaw::None, Flaw::NotSealed, Flaw::WritableByOthers, Flaw::Short, Flaw::Long, Flaw::Sparse, Flaw::File];
    let mut all = vec![pipe, pair(rustix::net::SocketType::STREAM), pair(rustix::net::SocketType::DGRAM)];
    all.extend(flaws.map(|flaw| forged.section(flaw)));
    all.extend(memfd_create("huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::ALLOW_SEALING).ok());
    all
}

/// Messages of every kind, some of them with numbers that the plan does not have.
fn anything(forged: &Forged, next: &mut impl FnMut() -> u64) -> Vec<u8> {
    let (number, serial) = ((next() % 4) as u16, next() as u32 % 5);
    let direction = if next().is_multiple_of(2) { Direction::Send } else { Direction::Receive };
    let messages = [
        Message::Hello(forged.party),
        Message::Welcome(forged.party),
        Message::Observe { hash: PLAN.hash },
        Message::Refuse { reason: Refusal::Slot, hash: 1 },
        Message::Ready,
        Message::End { fifo: number, direction, open: next().is_multiple_of(2), serial },
        Message::Doorbell { fifo: number, direction, serial },
        Message::Segment { smem: number % 2, generation: serial },
    ];
    let mut bytes = messages[(next() % 8) as usize].bytes().to_vec();
    if next().is_multiple_of(6) {
        let at = (next() % bytes.len() as u64) as usize;
        bytes[at] = next() as u8;
    }
    bytes
}

/// One connection on which the gateway made by hand says a few things.
fn misbehave(forged: &Forged, socket: &OwnedFd, fds: &[OwnedFd], next: &mut impl FnMut() -> u64) {
    rustix::io::ioctl_fionbio(socket, true).unwrap();
    for _ in 0..next() % 6 {
        let bytes = anything(forged, next);
        let with: Vec<_> = (0..next() % 4).map(|_| fds[(next() % fds.len() as u64) as usize].as_fd()).collect();
        // As many as belong to the message, more often than not.
        let with = if next().is_multiple_of(3) { &with[..] } else { &with[..with.len().min(1)] };
        post(socket, &bytes, with);
        if next().is_multiple_of(2)
            && let Some((message, Some(fd))) = take(socket)
        {
            // What it was given goes back to whom it came from.
            post(socket, &message.bytes(), &[fd.as_fd()]);
        }
    }
    if next().is_multiple_of(4) {
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
    }
}

#[test]
fn whatever_a_peer_says_at_any_step_the_others_start_link_and_share() {
    let instance = instance();
    let forged = Forged::new(&instance);
    let fds = palette(&forged);
    let mut next = numbers();
    let mut open = Vec::new();
    let mut control = Actor::start();
    let mut storage = Actor::start();
    storage.attach(STORAGE, &instance);
    for restart in 0..6 {
        // While it starts it is lied to, on what it calls and by what calls it.
        control.say(&format!("attach {CONTROL} {instance} plan 2000"));
        let call = forged.next_call();
        misbehave(&forged, &call, &fds, &mut next);
        open.push(call);
        let answer = control.hear();
        assert!(answer.starts_with("attached"), "restart {restart}: {answer}");
        for round in 0..100 {
            let (socket, _) = if round % 3 == 0 { forged.call(Flaw::None) } else { (knock(&instance, 0), None) };
            misbehave(&forged, &socket, &fds, &mut next);
            if next().is_multiple_of(3) {
                open.push(socket);
            }
        }
        assert!(control.ask("wait 2 2000").starts_with('2'), "restart {restart}");
        assert!(storage.ask("wait 0 2000").starts_with('0'), "restart {restart}");
        assert!(control.ask("segment 2000").starts_with("generation"), "restart {restart}");
        assert_eq!((control.ask("write 7"), control.ask("read")), ("written".to_owned(), "7".to_owned()));
        let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
        observer.refresh(within(500)).unwrap();
        assert!(observer.participants().iter().any(|seen| seen.section.participant() == 0), "restart {restart}");
        open.clear();
        assert_eq!(control.ask("leave"), "left");
    }
    let cpu_ms: u64 = control.ask("cpu").parse().unwrap();
    assert!(cpu_ms < 5_000, "{cpu_ms} ms of processor time");
}
