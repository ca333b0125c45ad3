//! Participants of one process: linking, ends, segments, events, late times. Processes are in `processes.rs`.

mod system;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

use musubi_core::layout::{rx, tx, waiting};
use musubi_core::port::Doorbell;
use musubi_linux::futex::{Watch, sleep};
use musubi_linux::{Direction, End, Error, LinkDoorbell, Participant};
use rustix::event::{PollFd, PollFlags, poll};
use system::*;

fn pair() -> (Participant, Participant) {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let gateway = Participant::attach(options(GATEWAY, &instance)).unwrap();
    (control, gateway)
}

fn telemetry(control: &Participant, gateway: &Participant) -> (End, End) {
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let bell = send.own().words().get(tx::BELL);
    let receive = gateway.claim_end(TELEMETRY, Direction::Receive).unwrap();
    eventually("the receiver", || send.tx_links().unwrap().lock().receiver.is_some());
    eventually("the sender", || receive.rx_links().unwrap().lock().senders.len() == 1);
    // A receiver that saw us and fell asleep before it was linked must hear of it.
    eventually("the ring", || send.own().words().get(tx::BELL) != bell);
    (send, receive)
}

fn is_readable(fd: impl AsFd) -> bool {
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() > 0
}

#[test]
fn peers_know_each_other() {
    let (control, gateway) = pair();
    let of_gateway = gateway.peers();
    assert_eq!(of_gateway.len(), 1);
    assert_eq!((of_gateway[0].participant, of_gateway[0].epoch), (control.number(), control.epoch()));
    assert_eq!(of_gateway[0].pid, std::process::id() as i32);
    assert_eq!(gateway.wait_for_master(within(0)).unwrap(), (0, control.epoch()));
    assert_eq!(control.wait_for(GATEWAY, within(1_000)).unwrap(), (1, gateway.epoch()));
    assert_ne!(control.epoch(), gateway.epoch());
    eventually("a heartbeat", || !control.peers()[0].stalled && control.peers()[0].heartbeat_age_ms < 50);
    drop(gateway);
    eventually("the leave", || control.peers().is_empty());
}

#[test]
fn ends_link_and_unlink() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    let own = send.own().words();
    assert_eq!(own.get(tx::LINK_EPOCH), gateway.epoch());
    assert_eq!(own.get(tx::LINK_PARTICIPANT), u32::from(gateway.number()));
    assert_eq!(receive.rx_links().unwrap().lock().senders[0].words.words().get(tx::OPEN), 1);

    let version = send.tx_links().unwrap().version();
    drop(receive);
    eventually("the loss", || send.tx_links().unwrap().lock().receiver.is_none());
    assert_ne!(send.tx_links().unwrap().version(), version);
    assert_eq!(own.get(tx::LINK_EPOCH), 0);
    assert_eq!(send.tx_links().unwrap().lock().gone, 1);

    let again = gateway.claim_end(TELEMETRY, Direction::Receive).unwrap();
    eventually("the next opening", || send.tx_links().unwrap().lock().receiver.is_some());
    drop(send);
    eventually("the sender's close", || !again.rx_links().unwrap().lock().senders[0].alive);
    assert_eq!(again.rx_links().unwrap().lock().senders[0].words.words().get(tx::OPEN), 0);
}

#[test]
fn an_end_has_one_holder() {
    let (control, gateway) = pair();
    let held = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    assert!(matches!(control.claim_end(TELEMETRY, Direction::Send), Err(Error::EndInUse { .. })));
    assert!(matches!(control.claim_end(TELEMETRY, Direction::Receive), Err(Error::NotOurs { .. })));
    assert!(matches!(gateway.claim_end(99, Direction::Receive), Err(Error::NotOurs { .. })));
    drop(held);
    control.claim_end(TELEMETRY, Direction::Send).unwrap();
}

#[test]
fn a_reopened_sender_is_another_one() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    drop(send);
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    eventually("both openings", || receive.rx_links().unwrap().lock().senders.len() == 2);
    let alive: Vec<bool> = receive.rx_links().unwrap().lock().senders.iter().map(|sender| sender.alive).collect();
    assert_eq!(alive, [false, true]);
    eventually("the link", || send.tx_links().unwrap().lock().receiver.is_some());
}

#[test]
fn incarnations_are_bounded() {
    let (control, gateway) = pair();
    let (mut send, receive) = telemetry(&control, &gateway);
    for _ in 0..6 {
        drop(send);
        send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    }
    eventually("the last", || receive.rx_links().unwrap().lock().senders.back().is_some_and(|sender| sender.alive));
    eventually("the forgetting", || receive.rx_links().unwrap().lock().forgotten == 3);
    assert_eq!(receive.rx_links().unwrap().lock().senders.len(), musubi_linux::links::INCARNATIONS_MAX);
    drop(send);
}

#[test]
fn leaving_makes_ends_dead_but_not_dangling() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    control.leave();
    assert_eq!(send.own().words().get(tx::OPEN), 0);
    assert!(send.tx_links().unwrap().lock().receiver.is_none());
    eventually("the leave", || !receive.rx_links().unwrap().lock().senders[0].alive);
    assert!(receive.rx_links().unwrap().lock().senders[0].words.section().terminated());
}

#[test]
fn a_sleeper_hears_the_bell_of_a_peer() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    let sender = receive.rx_links().unwrap().lock().senders[0].words.clone();
    let bell = sender.words().word(tx::BELL);
    let (bell_before, version) = (bell.load(Ordering::SeqCst), receive.rx_links().unwrap().version());
    let ringer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        LinkDoorbell { socket: None }.ring(send.own().words().word(tx::BELL), waiting::ASLEEP);
        send
    });
    let local = Watch { word: receive.rx_links().unwrap().version_word().into(), expected: version };
    sleep(Some(Watch { word: bell, expected: bell_before }), local, within(5_000));
    assert_eq!(bell.load(Ordering::SeqCst), bell_before.wrapping_add(1));
    ringer.join().unwrap();
}

#[test]
fn the_event_descriptor_hears_rings_and_changes() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    let fd = receive.event_fd().unwrap();
    let ring = || {
        let doorbell = send.tx_links().unwrap().lock().receiver.as_ref().and_then(|link| link.doorbell.clone());
        LinkDoorbell { socket: doorbell.as_deref() }.ring(send.own().words().word(tx::BELL), waiting::ARMED);
    };
    let has_doorbell = || send.tx_links().unwrap().lock().receiver.as_ref().is_some_and(|link| link.doorbell.is_some());
    eventually("the doorbell", has_doorbell);
    eventually("the first ring, for what was before the doorbell", || is_readable(fd));
    receive.clear_event();
    assert!(!is_readable(fd));
    ring();
    assert!(is_readable(fd));
    receive.clear_event();
    assert!(!is_readable(fd));

    let before = std::time::Instant::now();
    (0..100_000).for_each(|_| ring());
    println!("a ring of a full socket: {:?}", before.elapsed() / 100_000);
    receive.clear_event();
    assert!(!is_readable(fd));

    drop(send);
    eventually("the change", || is_readable(fd));
    receive.clear_event();
    assert!(!is_readable(fd));
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    eventually("the next sender", || is_readable(fd));
    let has_doorbell = || send.tx_links().unwrap().lock().receiver.as_ref().is_some_and(|link| link.doorbell.is_some());
    eventually("the next doorbell", has_doorbell);
}

struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_waker_is_woken_once() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    let count = Arc::new(Count(AtomicU32::new(0)));
    receive.event_fd().unwrap();
    let doorbell = || send.tx_links().unwrap().lock().receiver.as_ref().and_then(|link| link.doorbell.clone());
    eventually("the doorbell", || doorbell().is_some());
    for round in 1..=20 {
        receive.clear_event();
        receive.set_waker(Waker::from(Arc::clone(&count))).unwrap();
        assert_eq!(count.0.load(Ordering::SeqCst), round - 1);
        LinkDoorbell { socket: doorbell().as_deref() }.ring(send.own().words().word(tx::BELL), waiting::ARMED);
        eventually("the waker", || count.0.load(Ordering::SeqCst) == round);
    }
    // Readable before the waker was set: it is woken at once.
    LinkDoorbell { socket: doorbell().as_deref() }.ring(send.own().words().word(tx::BELL), waiting::ARMED);
    receive.set_waker(Waker::from(Arc::clone(&count))).unwrap();
    eventually("the waker", || count.0.load(Ordering::SeqCst) == 21);
}

#[test]
fn a_waker_hears_of_the_leave() {
    let (control, gateway) = pair();
    let (_send, receive) = telemetry(&control, &gateway);
    let count = Arc::new(Count(AtomicU32::new(0)));
    receive.set_waker(Waker::from(Arc::clone(&count))).unwrap();
    eventually("the first ring", || count.0.load(Ordering::SeqCst) == 1);
    receive.clear_event();
    receive.set_waker(Waker::from(Arc::clone(&count))).unwrap();
    gateway.leave();
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    assert!(matches!(receive.set_waker(Waker::from(count)), Err(Error::Left)));
}

#[test]
fn late_times_of_two_ends_are_kept_apart() {
    let (control, _gateway) = pair();
    let first = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let second = control.claim_end(COMMANDS, Direction::Send).unwrap();
    let now = musubi_linux::clock::now_ns();
    second.arm_late(now + 60_000_000);
    first.arm_late(now + 20_000_000);
    eventually("the first", || first.own().words().get(tx::EVENTS) == 1);
    assert_eq!(second.own().words().get(tx::EVENTS), 0);
    eventually("the second", || second.own().words().get(tx::EVENTS) == 1);
}

#[test]
fn late_times_from_many_threads_are_all_kept() {
    let (control, _gateway) = pair();
    let ends =
        [control.claim_end(TELEMETRY, Direction::Send).unwrap(), control.claim_end(COMMANDS, Direction::Send).unwrap()];
    std::thread::scope(|scope| {
        for end in &ends {
            scope.spawn(move || {
                for round in 0..500u64 {
                    let before = end.own().words().get(tx::EVENTS);
                    let due = musubi_linux::clock::now_ns() + (round % 7) * 100_000;
                    end.arm_late(due);
                    eventually("the late event", || end.own().words().get(tx::EVENTS) == before + 1);
                }
            });
        }
    });
}

#[test]
fn a_late_time_raises_an_event() {
    let (control, gateway) = pair();
    let (send, receive) = telemetry(&control, &gateway);
    let own = send.own().words();
    let in_ms = |ms: u64| musubi_linux::clock::now_ns() + ms * 1_000_000;

    send.arm_late(in_ms(30));
    send.disarm_late();
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(own.get(tx::EVENTS), 0);

    receive.own().words().set(rx::WAITING, waiting::ASLEEP);
    let bell = own.get(tx::BELL);
    let due = in_ms(20);
    send.arm_late(in_ms(500));
    send.arm_late(due);
    send.arm_late(in_ms(900));
    eventually("the late event", || own.get(tx::EVENTS) == 1);
    let late_ns = musubi_linux::clock::now_ns() - due;
    println!("late by {} us", late_ns / 1_000);
    assert!(late_ns < 200_000_000, "not before 500 ms: {late_ns}");
    eventually("the ring", || own.get(tx::BELL) == bell.wrapping_add(1));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(own.get(tx::EVENTS), 1, "once");
}

#[test]
fn members_share_a_segment() {
    let (control, gateway) = pair();
    let of_control = control.open_segment(PARAMETERS, within(0)).unwrap();
    let of_gateway = gateway.open_segment(PARAMETERS, within(2_000)).unwrap();
    assert_eq!(of_control.generation(), control.epoch());
    assert_eq!(of_gateway.generation(), control.epoch());
    assert_ne!(of_control.address(), of_gateway.address());
    let (at_control, at_gateway) = (of_control.address() as usize, of_gateway.address() as usize);
    // SAFETY: both mappings are live and larger than a byte; the test uses them from this thread only.
    unsafe { (at_control as *mut u8).write_volatile(77) };
    // SAFETY: as above.
    assert_eq!(unsafe { (at_gateway as *const u8).read_volatile() }, 77);
    assert!(of_control.settled() && of_gateway.settled());
    let (version, tickets) = of_control.tickets();
    assert_eq!((tickets.len(), tickets[0].participant), (1, gateway.number()));
    assert_eq!(of_control.tickets_version(), version);
    drop(gateway);
    eventually("the ticket's end", || of_control.tickets().1.is_empty());
    assert!(matches!(control.open_segment(7, within(0)), Err(Error::NotOurs { .. })));
}

#[test]
fn a_new_segment_takes_the_old_place() {
    let instance = instance();
    let gateway = Participant::attach(options(GATEWAY, &instance)).unwrap();
    assert!(matches!(gateway.open_segment(PARAMETERS, within(20)), Err(Error::TimedOut(_))));
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let segment = gateway.open_segment(PARAMETERS, within(2_000)).unwrap();
    let (address, first) = (segment.address(), segment.generation());
    drop(control);
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let again = control.open_segment(PARAMETERS, within(0)).unwrap();
    assert_eq!((again.generation(), segment.generation()), (first, first), "handed on by the gateway");
    assert_eq!(segment.address(), address);
}

#[test]
fn who_is_not_let_in_is_named_with_the_reason() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    assert!(control.obstacles().is_empty());
    let strange = musubi_linux::Options { plan: &OTHER_PLAN, ..options(GATEWAY, &instance) };
    let refused = Participant::attach(strange).unwrap_err();
    assert!(matches!(refused, Error::PlanMismatch { participant: 0, .. }), "{refused}");
    eventually("the note", || !control.obstacles().is_empty());
    let obstacles = control.obstacles();
    let [(1, Error::PlanMismatch { participant: 1, ours, theirs })] = obstacles[..] else { panic!("{obstacles:?}") };
    assert_eq!((ours, theirs), (PLAN.hash, OTHER_PLAN.hash));
    let _gateway = Participant::attach(options(GATEWAY, &instance)).unwrap();
    assert!(control.obstacles().is_empty(), "it is linked");
}

#[test]
fn a_late_time_is_armed_until_it_is_taken_back() {
    let (control, gateway) = pair();
    let (send, _receive) = telemetry(&control, &gateway);
    assert!(!send.is_late_armed());
    send.arm_late(musubi_linux::clock::now_ns() + 3_600_000_000_000);
    assert!(send.is_late_armed());
    send.disarm_late();
    assert!(!send.is_late_armed());
}
