//! What the rules of a NIC do to who waits: classes that may not wake now disturb nobody, and hold up nobody more urgent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_transport::topology::{ClassRule, Place, Topology};
use musubi_transport::{FilterRule, Priority, Regulation};
use musubi_vipl::engine::{Dequeue, Queue, Reliability, ViAttributes};
use musubi_vipl::nic::{Notification, ViNumber};
use musubi_vipl::process::NicSystem;

use super::{BYTES, Side, at, soon, system};

/// The class with a rule, and the most urgent one.
const FLOOD: u8 = 3;
const URGENT: u8 = 0;

/// A system of one NIC for four processes, whose class [`FLOOD`] wakes at most each `interval`.
pub(crate) fn ruled(interval: Duration) -> NicSystem {
    let interval_ns = interval.as_nanos() as u64;
    let filter = FilterRule { interval_ns_min: interval_ns, latest_ns: interval_ns, ..FilterRule::EACH };
    let rule = ClassRule { class: Priority::new(FLOOD).unwrap(), regulation: Regulation::NONE, filter };
    let place = || Place { shared_memory: Some("here".to_owned()), rules: vec![rule.clone()], ..Place::default() };
    let NicSystem { directory, topology } = system();
    let nodes = (0..4).map(|slot| (musubi_vipl::address::NicNumber(0).node(slot).unwrap(), place())).collect();
    let topology = Topology { hash: 1, nodes, ..Arc::unwrap_or_clone(topology) };
    NicSystem::new(directory.nics.into_iter().map(|nic| (nic.name, 4)), topology)
}

/// Connects a VI of each, of a class.
fn connect(client: &Side, server: &Side, class: u8) -> (ViNumber, ViNumber) {
    connect_with(client, server, class, Notification::default())
}

/// The same, the server's with a notification policy.
pub(crate) fn connect_with(client: &Side, server: &Side, class: u8, asked: Notification) -> (ViNumber, ViNumber) {
    let name = [class];
    let vi = |side: &Side| {
        let attributes = ViAttributes {
            reliability: Reliability::Delivery,
            transfer_bytes_max: 4096,
            class,
            tag: side.tag,
            remote_write: false,
            remote_read: false,
            credit: false,
        };
        side.nic.with(|nic| nic.create_vi(attributes, None, None)).unwrap()
    };
    let (a, b) = (vi(client), vi(server));
    server.nic.with(|nic| nic.set_notification(b, asked)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (caller, ..) = server.nic.wait_caller(&at(&name), soon()).unwrap();
            server.nic.accept(caller, b, soon()).unwrap();
        });
        while client.nic.request(a, at(b"client"), at(&name), soon()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (a, b)
}

/// Descriptors of a side lie this far apart from its beginning on, what is sent and received behind them.
const APART: usize = 128;
const OUT: usize = BYTES - 128;
const INTO: usize = BYTES - 64;

pub(crate) fn send(side: &Side, vi: ViNumber, turn: usize) {
    side.write(turn * APART, 0, OUT, 8);
    side.post(vi, Queue::Send, turn * APART);
}

pub(crate) fn receives(side: &Side, vi: ViNumber, turns: std::ops::Range<usize>) {
    for turn in turns {
        side.write(turn * APART, 0, INTO, 64);
        side.post(vi, Queue::Receive, turn * APART);
    }
}

/// Waits, so that nobody who is told looks anew for another reason.
pub(crate) fn wait(side: &Side, vi: ViNumber, until: Duration) -> bool {
    match side.nic.wait(vi, Queue::Receive, Deadline::after(until)) {
        Ok(Dequeue::Complete { is_error, .. }) => !is_error,
        _ => false,
    }
}

#[test]
fn a_flood_wakes_no_oftener_than_its_rule_says_and_arrives_whole() {
    const MESSAGES: usize = 200;
    let interval = Duration::from_millis(200);
    let system = ruled(interval);
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (a, b) = connect(&client, &server, FLOOD);
    receives(&server, b, 0..MESSAGES);
    let counts = || server.nic.node().wake_counts(Priority::new(FLOOD).unwrap()).unwrap();
    let (before, counted) = (server.nic.node().times_woken().unwrap(), counts());
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..MESSAGES {
                send(&client, a, turn);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for _ in 0..MESSAGES {
            assert!(wait(&server, b, Duration::from_secs(20)));
        }
    });
    let intervals = began.elapsed().as_millis() / interval.as_millis();
    let woken = server.nic.node().times_woken().unwrap() - before;
    // A sleep for each interval that a message ended, one until the rule opens again, and one at begin and end.
    assert!(u128::from(woken) <= 2 * intervals + 4, "{woken} times in {intervals} intervals");
    let raised = counts().raised + counts().deferred - counted.raised - counted.deferred;
    assert!(u128::from(raised) <= intervals + 2, "{raised} in {intervals} intervals");
}

#[test]
fn what_may_not_wake_holds_up_nobody_more_urgent() {
    const TURNS: usize = 1300;
    // No message of the class wakes twice while this test lasts.
    let system = ruled(Duration::from_secs(600));
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (flood_there, flood_here) = connect(&client, &server, FLOOD);
    let (there, here) = connect(&client, &server, URGENT);
    receives(&server, flood_here, 0..2 * TURNS);
    receives(&server, here, 2 * TURNS..3 * TURNS);
    let come = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            (0..TURNS).all(|turn| {
                let begun = std::time::Instant::now();
                let has_come = wait(&server, here, Duration::from_secs(20));
                come.store(turn + 1, Ordering::Release);
                // What is there at the deadline only is found, too; nobody was woken for it then.
                has_come && begun.elapsed() < Duration::from_secs(18)
            })
        });
        for turn in 0..TURNS {
            // At any moment of who falls asleep; what was put off lies before it in the same lane.
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_nanos((turn as u64 % 211) * 200) {}
            (0..2).for_each(|step| send(&client, flood_there, 2 * turn + step));
            send(&client, there, 2 * TURNS + turn);
            while come.load(Ordering::Acquire) <= turn && !waiting.is_finished() {}
        }
        assert!(waiting.join().unwrap());
    });
    // Who asks has them, and who waits for them too: they are there.
    assert!((0..2 * TURNS).all(|_| wait(&server, flood_here, Duration::from_secs(20))));
}

#[test]
fn a_lane_full_of_what_may_not_wake_is_emptied_for_what_may() {
    const FLOODS: usize = 600;
    const LESS_URGENT: u8 = 1;
    let system = ruled(Duration::from_secs(600));
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (flood_there, flood_here) = connect(&client, &server, FLOOD);
    let (there, here) = connect(&client, &server, LESS_URGENT);
    receives(&server, flood_here, 0..FLOODS);
    receives(&server, here, FLOODS..FLOODS + 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let begun = std::time::Instant::now();
            wait(&server, here, Duration::from_secs(20)) && begun.elapsed() < Duration::from_secs(18)
        });
        // Asleep by now, very likely; else there is less to be seen.
        std::thread::sleep(Duration::from_millis(100));
        (0..FLOODS).for_each(|turn| send(&client, flood_there, turn));
        send(&client, there, FLOODS);
        assert!(waiting.join().unwrap());
    });
    assert!((0..FLOODS).all(|_| wait(&server, flood_here, Duration::from_secs(20))));
}

#[test]
fn two_that_wait_for_different_classes_have_each_their_own() {
    let system = ruled(Duration::from_millis(2));
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (flood_there, flood_here) = connect(&client, &server, FLOOD);
    let (there, here) = connect(&client, &server, URGENT);
    receives(&server, flood_here, 0..1000);
    receives(&server, here, 1000..1050);
    std::thread::scope(|scope| {
        scope.spawn(|| assert!((0..1000).all(|_| wait(&server, flood_here, Duration::from_secs(20)))));
        scope.spawn(|| assert!((0..50).all(|_| wait(&server, here, Duration::from_secs(20)))));
        for turn in 0..1000 {
            send(&client, flood_there, turn);
            if turn % 20 == 0 {
                send(&client, there, 1000 + turn / 20);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
}
