//! What a VI's own notification policy does to who waits for it.

use std::time::{Duration, Instant};

use musubi_vipl::engine::{Dequeue, Queue};
use musubi_vipl::nic::Notification;

use super::rules::{connect_with, receives, ruled, send, wait};
use super::{Side, system};

const INTERVAL: Duration = Duration::from_millis(200);
/// The class of all VIs here.
const CLASS: u8 = 3;
const MESSAGES: usize = 150;

fn seldom() -> Notification {
    Notification { interval_ns: INTERVAL.as_nanos() as u64, ..Notification::default() }
}

/// Sends messages 5 ms apart to a VI that is to wake once in an interval: how often threads of its side were woken, and in how many
/// intervals. `is_alone` says that no other VI of its side is in its class.
fn woken_by_stream(is_alone: bool) -> (u64, u64) {
    let system = system();
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (a, b) = connect_with(&client, &server, CLASS, seldom());
    if !is_alone {
        connect_with(&client, &server, CLASS, Notification::default());
    }
    receives(&server, b, 0..MESSAGES);
    let before = server.nic.node().times_woken().unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..MESSAGES {
                send(&client, a, turn);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for _ in 0..MESSAGES {
            assert!(wait(&server, b, Duration::from_secs(60)));
        }
    });
    let intervals = began.elapsed().as_nanos() / INTERVAL.as_nanos();
    (server.nic.node().times_woken().unwrap() - before, intervals as u64)
}

#[test]
fn a_stream_wakes_no_oftener_than_its_vi_asks() {
    let (woken, intervals) = woken_by_stream(true);
    assert!(woken <= 2 * intervals + 6, "{woken} times in {intervals} intervals");
}

#[test]
fn the_same_beside_a_vi_of_its_class_that_asks_for_nothing() {
    let (woken, intervals) = woken_by_stream(false);
    assert!(woken <= 2 * intervals + 6, "{woken} times in {intervals} intervals");
}

#[test]
fn who_polls_sees_what_wakes_nobody() {
    let system = system();
    let (client, server) = (Side::open(&system), Side::open(&system));
    let never = Notification { interval_ns: 600_000_000_000, ..Notification::default() };
    let (a, b) = connect_with(&client, &server, CLASS, never);
    receives(&server, b, 0..50);
    for turn in 0..50 {
        send(&client, a, turn);
        let until = Instant::now() + Duration::from_secs(30);
        while matches!(server.nic.dequeue(b, Queue::Receive), Ok(Dequeue::Pending)) {
            assert!(Instant::now() < until, "message {turn}");
            std::thread::yield_now();
        }
    }
    assert_eq!(server.nic.with(|nic| Ok(nic.class_counts(CLASS).asked)).unwrap(), 50);
}

#[test]
fn a_vi_wakes_within_what_the_rule_of_its_class_allows() {
    let system = ruled(Duration::from_secs(2));
    let (client, server) = (Side::open(&system), Side::open(&system));
    let often = Notification { interval_ns: 20_000_000, ..Notification::default() };
    // The class wakes for this, and then not for two seconds.
    let (a, b) = connect_with(&client, &server, CLASS, often);
    receives(&server, b, 0..2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            // The VI would wake for the first at once, and for the second when its interval is over.
            (0..2).for_each(|turn| send(&client, a, turn));
        });
        let began = Instant::now();
        assert!(wait(&server, b, Duration::from_secs(60)));
        assert!(began.elapsed() >= Duration::from_millis(1200), "woken after {:?}", began.elapsed());
    });
}
