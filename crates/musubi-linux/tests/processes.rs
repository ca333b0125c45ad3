//! Participants in processes of their own: start orders, deaths, stops, users, strangers.

mod actor;
mod system;

use std::time::{Duration, Instant};

use actor::Actor;
use musubi_core::layout::tx;
use musubi_linux::{Direction, Error, Observer, Options, Participant};
use rustix::process::{Pid, Signal, kill_process};
use system::*;

#[test]
fn actor() {
    actor::play();
}

// ---- start orders ----

#[test]
fn any_start_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut actors = [Actor::start(), Actor::start(), Actor::start()];
    for order in orders {
        let instance = instance();
        for domain in order {
            actors[usize::from(domain)].attach(domain, &instance);
        }
        assert!(!actors[0].ask("wait 1 2000").starts_with("error"));
        assert!(!actors[0].ask("wait 2 2000").starts_with("error"));
        assert!(!actors[1].ask("wait 0 2000").starts_with("error"));
        assert!(!actors[2].ask("wait 0 2000").starts_with("error"));
        assert_eq!(actors[1].ask("peers"), "[0]", "gateway and storage share nothing");
        assert_eq!(actors[0].ask("peers"), "[1, 2]");
        actors.iter_mut().for_each(|actor| assert_eq!(actor.ask("leave"), "left"));
    }
}

#[test]
fn both_start_at_once() {
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let mut slowest = Duration::ZERO;
    for round in 0..200 {
        let instance = instance();
        let begin = Instant::now();
        control.say(&format!("attach 0 {instance} plan 2000"));
        gateway.say(&format!("attach 1 {instance} plan 2000"));
        let answers = (control.hear(), gateway.hear());
        assert!(answers.0.starts_with("attached 0") && answers.1.starts_with("attached 1"), "{round}: {answers:?}");
        let waits = (control.ask("wait 1 2000"), gateway.ask("wait 0 2000"));
        assert!(!waits.0.starts_with("error") && !waits.1.starts_with("error"), "{round}: {waits:?}");
        slowest = slowest.max(begin.elapsed());
        let segments = (control.ask("segment 2000"), gateway.ask("segment 2000"));
        assert_eq!(segments.0, segments.1, "one memory, round {round}");
        assert_eq!((control.ask("leave"), gateway.ask("leave")), ("left".to_owned(), "left".to_owned()));
    }
    println!("slowest of 200: {slowest:?}");
}

// ---- deaths ----

#[test]
fn a_kill_is_noticed_and_the_successor_is_another() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let (mut epochs, mut noticed) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let mut gateway = Actor::start();
        let (_, epoch) = gateway.attach(GATEWAY, &instance);
        assert_eq!(gateway.ask(&format!("claim {TELEMETRY} receive")), "claimed");
        eventually("the receiver", || send.own().words().get(tx::LINK_EPOCH) == epoch);
        let begin = Instant::now();
        gateway.kill();
        eventually("the death", || send.own().words().get(tx::LINK_EPOCH) == 0);
        noticed.push(begin.elapsed());
        eventually("the end of the peer", || control.peers().is_empty());
        assert!(!epochs.contains(&epoch));
        epochs.push(epoch);
    }
    assert_eq!(send.tx_links().unwrap().lock().gone, 20);
    noticed.sort_unstable();
    println!("deaths were noticed after {:?} to {:?}", noticed[0], noticed[19]);
    // On a machine that is busy for a while some take longer.
    assert!(noticed[10] < Duration::from_millis(100), "{noticed:?}");
}

/// A child that an actor forked; it must not outlive the test.
struct Orphan(Pid);

impl Orphan {
    fn of(answer: &str) -> Orphan {
        Orphan(Pid::from_raw(answer.strip_prefix("forked ").unwrap().parse().unwrap()).unwrap())
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_forked_child_does_not_hide_the_death() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    assert_eq!(gateway.ask(&format!("claim {TELEMETRY} receive")), "claimed");
    let _child = Orphan::of(&gateway.ask("fork"));
    gateway.kill();
    eventually("the death", || control.peers().is_empty());
    // The child lives on and keeps neither the slot nor the end.
    let mut successor = Actor::start();
    successor.attach(GATEWAY, &instance);
    assert_eq!(successor.ask(&format!("claim {TELEMETRY} receive")), "claimed");
}

#[test]
fn a_raw_clone_does_not_hide_the_death_either() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    let _child = Orphan::of(&gateway.ask("clone"));
    let begin = Instant::now();
    gateway.kill();
    eventually("the death", || control.peers().is_empty());
    println!("noticed by pidfd after {:?}", begin.elapsed());
}

#[test]
fn a_stopped_peer_does_not_hold_up_others() {
    let instance = instance();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    gateway.signal(Signal::STOP);
    let begin = Instant::now();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let took = begin.elapsed();
    println!("attached beside a stopped peer after {took:?}");
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert!(control.peers().is_empty());
    let segment = control.open_segment(PARAMETERS, within(0)).unwrap();
    assert!(!segment.settled(), "the stopped peer may hold the lock");
    gateway.signal(Signal::CONT);
    control.wait_for(GATEWAY, within(2_000)).unwrap();
    eventually("the settling", || segment.settled());

    gateway.signal(Signal::STOP);
    eventually("the stall", || control.peers().first().is_some_and(|peer| peer.stalled));
    assert_eq!(control.peers().len(), 1, "stopped is not dead");
    gateway.signal(Signal::CONT);
    eventually("the heartbeat", || control.peers().first().is_some_and(|peer| !peer.stalled));
    gateway.signal(Signal::STOP);
    gateway.kill();
    eventually("the death of a stopped one", || control.peers().is_empty());
}

#[test]
fn a_segment_survives_the_master() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let (_, epoch) = control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {epoch} settled true"));
    assert!(gateway.ask("segment 2000").starts_with(&format!("generation {epoch}")));
    assert_eq!(control.ask("write 42"), "written");
    control.kill();
    assert_eq!(gateway.ask("read"), "42");
    let mut control = Actor::start();
    control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {epoch} settled true"));
    assert_eq!(control.ask("read"), "42");
    assert_eq!(control.ask("write 43"), "written");
    assert_eq!(gateway.ask("read"), "43");
    control.kill();
    gateway.kill();
    // Nobody kept it: the next Master makes another.
    let mut control = Actor::start();
    let (_, next) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {next} settled true"));
    assert_eq!(control.ask("read"), "0");
}

#[test]
fn a_member_that_was_stopped_takes_the_masters_new_segment() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let (_, first) = control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert!(gateway.ask("segment 2000").starts_with(&format!("generation {first}")));
    gateway.signal(Signal::STOP);
    control.kill();
    let mut control = Actor::start();
    let (_, second) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {second} settled false"));
    assert_eq!(control.ask("write 9"), "written");
    gateway.signal(Signal::CONT);
    eventually("the new generation", || gateway.ask("generation") == second.to_string());
    assert_eq!(gateway.ask("read"), "9", "at the same address");
}

#[test]
fn killed_at_any_moment() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let segment = control.open_segment(PARAMETERS, within(0)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let mut next = numbers();
    for _ in 0..100 {
        let mut gateway = Actor::start();
        gateway.ask("hello");
        gateway.say(&format!("attach 1 {instance} plan 2000"));
        gateway.say(&format!("claim {TELEMETRY} receive"));
        std::thread::sleep(Duration::from_micros(next() % 3_000));
        gateway.kill();
        // Connections of one that died in the middle of the handshake, too.
        eventually("the death", || control.peers().is_empty());
        eventually("the end of the session", || send.own().words().get(tx::LINK_EPOCH) == 0);
        eventually("the settling", || segment.settled());
    }
    let mut gateway = Actor::start();
    let (_, epoch) = gateway.attach(GATEWAY, &instance);
    assert_eq!(gateway.ask(&format!("claim {TELEMETRY} receive")), "claimed");
    eventually("the link", || send.own().words().get(tx::LINK_EPOCH) == epoch);
    println!("sessions that came to be: {}", send.tx_links().unwrap().lock().gone);
}

// ---- who may not ----

#[test]
fn slots_are_counted() {
    let instance = instance();
    let mut storages = [Actor::start(), Actor::start(), Actor::start()];
    assert_eq!(storages[0].attach(STORAGE, &instance).0, 2);
    assert_eq!(storages[1].attach(STORAGE, &instance).0, 3);
    let answer = storages[2].ask(&format!("attach 2 {instance} plan 50"));
    assert!(answer.contains("all 2 slots of domain storage are taken"), "{answer}");
    assert_eq!(storages[0].ask(&format!("claim {STREAM} send")), "claimed");
    assert!(storages[1].ask(&format!("claim {STREAM} send")).contains("in use"));
    storages[2].say(&format!("attach 2 {instance} plan 5000"));
    storages[0].kill();
    assert!(storages[2].hear().starts_with("attached 2"));
    assert_eq!(storages[1].ask(&format!("claim {STREAM} send")), "claimed");
}

#[test]
fn plans_must_be_equal() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    let answer = gateway.ask(&format!("attach 1 {instance} other 2000"));
    assert!(answer.contains("1111222233334444") && answer.contains("5555666677778888"), "{answer}");
    let error = control.wait_for(GATEWAY, within(100)).unwrap_err();
    assert!(matches!(error, Error::PlanMismatch { participant: 1, theirs: 0x5555_6666_7777_8888, .. }), "{error}");
    let mut observer = Observer::new(&OTHER_PLAN, Some(&instance)).unwrap();
    assert!(matches!(observer.refresh(within(2_000)), Err(Error::PlanMismatch { .. })));
}

#[test]
fn users_must_be_named() {
    let own = rustix::process::geteuid();
    let options = Options { plan: &PLAN_OF_NOBODY, ..options(GATEWAY, &instance()) };
    match Participant::attach(options) {
        Err(Error::UserNotAllowed { uid, domain }) => assert_eq!((uid, domain.as_str()), (own.as_raw(), "gateway")),
        other => panic!("{other:?}"),
    }
}

const NOBODY: u32 = 65534;

fn can_act_as_nobody() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIPPED: needs root to act as another user");
    }
    root
}

#[test]
fn a_foreign_user_is_kept_out() {
    if !can_act_as_nobody() {
        return;
    }
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut foreign = Actor::start_as(Some(NOBODY));
    // Its plan says "our own user": it finds the Master's name in strange hands and gives nothing away.
    foreign.attach(GATEWAY, &instance);
    let answer = foreign.ask("wait 0 50");
    assert!(answer.contains("user 0 holds the socket name"), "{answer}");
    assert!(control.peers().is_empty());
    foreign.ask("leave");
    // It lies about its plan, which is ours but for the users: now the Master refuses.
    for _ in 0..50 {
        let answer = foreign.ask(&format!("attach 1 {instance} two 2000"));
        assert!(answer.contains("refused user 65534"), "{answer}");
    }
    assert!(control.peers().is_empty());
    assert!(control.strangers().refused >= 50);
}

#[test]
fn an_observer_that_may_not_look_hears_so() {
    if !can_act_as_nobody() {
        return;
    }
    let instance = instance();
    let mut foreign = Actor::start_as(Some(NOBODY));
    assert_eq!(foreign.ask(&format!("observe {instance}")), "0 seen");
    let _control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let answer = foreign.ask(&format!("observe {instance}"));
    assert!(answer.starts_with("error: user 0 holds") && answer.contains("does not allow"), "{answer}");
    assert_eq!(Actor::start().ask(&format!("observe {instance}")), "1 seen");
}

#[test]
fn a_squatter_is_named() {
    if !can_act_as_nobody() {
        return;
    }
    let instance = instance();
    let mut foreign = Actor::start_as(Some(NOBODY));
    foreign.attach(CONTROL, &instance);
    match Participant::attach(options(CONTROL, &instance)) {
        Err(Error::NameForeign { uid, .. }) => assert_eq!(uid, NOBODY),
        other => panic!("{other:?}"),
    }
}

#[test]
fn users_that_the_plan_names_are_let_in() {
    if !can_act_as_nobody() {
        return;
    }
    let instance = instance();
    let control = Participant::attach(Options { plan: &PLAN_OF_TWO_USERS, ..options(CONTROL, &instance) }).unwrap();
    let mut gateway = Actor::start_as(Some(NOBODY));
    let answer = gateway.ask(&format!("attach 1 {instance} two 2000"));
    assert!(answer.starts_with("attached"), "{answer}");
    control.wait_for(GATEWAY, within(2_000)).unwrap();
    assert!(gateway.ask("wait 0 2000").starts_with('0'));
    gateway.kill();
    eventually("the death of another user's process", || control.peers().is_empty());
}

#[test]
fn a_missing_permission_is_named() {
    if !can_act_as_nobody() {
        return;
    }
    let mut nobody = Actor::start_as(Some(NOBODY));
    nobody.ask("limit rtprio 0");
    nobody.ask("limit memlock 65536");
    let answer = nobody.ask("priority 10");
    assert!(answer.contains("CAP_SYS_NICE") && answer.contains("RLIMIT_RTPRIO is 0"), "{answer}");
    let answer = nobody.ask("lock");
    assert!(answer.contains("CAP_IPC_LOCK") && answer.contains("RLIMIT_MEMLOCK is 65536 bytes"), "{answer}");
    let mut root = Actor::start();
    assert_eq!(root.ask("priority 10"), "set");
    // ThreadSanitizer's shadow memory is larger than any machine; it cannot be locked.
    if std::env::var_os("TSAN_OPTIONS").is_none() {
        assert_eq!(root.ask("lock"), "locked");
    }
}

// ---- what is left, what is seen ----

#[test]
fn nothing_is_left_behind() {
    let listing = |directory: &str| {
        let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let ours = |names: Vec<std::ffi::OsString>| {
        names.into_iter().filter(|name| name.to_string_lossy().contains("musubi")).collect::<Vec<_>>()
    };
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    control.ask("segment 2000");
    gateway.ask("segment 2000");
    let named = || std::fs::read_to_string("/proc/net/unix").unwrap().lines().filter(|l| l.contains(&instance)).count();
    assert!(named() >= 2);
    control.kill();
    gateway.kill();
    assert_eq!(named(), 0);
    assert!(ours(listing("/dev/shm")).is_empty() && ours(listing("/run")).is_empty());
}

#[test]
fn an_observer_sees_from_outside() {
    let instance = instance();
    let mut control = Actor::start();
    let (_, epoch) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask(&format!("claim {TELEMETRY} send")), "claimed");
    let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
    observer.refresh(within(2_000)).unwrap();
    let seen = observer.participants();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].section.epoch(), seen[0].pid, seen[0].alive()), (epoch, control.pid(), true));
    assert!(seen[0].heartbeat_age_ms() < 1_000);
    assert_eq!(observer.holders(TELEMETRY, Direction::Send).count(), 1);
    assert_eq!(observer.holders(TELEMETRY, Direction::Receive).count(), 0);
    control.kill();
    assert!(!observer.participants()[0].alive());
    observer.refresh(within(2_000)).unwrap();
    assert!(observer.participants().is_empty());
}

// ---- waiting ----

#[test]
fn who_waits_for_a_participant_sleeps_while_nothing_changes() {
    let switches = || -> u32 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap().trim().parse().unwrap()
    };
    let control = Participant::attach(options(CONTROL, &instance())).unwrap();
    // Meanwhile the attendant looks at its clock a hundred times.
    let before = switches();
    assert!(matches!(control.wait_for(GATEWAY, within(1_000)), Err(Error::TimedOut(_))));
    assert!(switches() - before < 10, "woken {} times", switches() - before);
}
