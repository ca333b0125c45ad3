//! Looking on at a channel: what is shown is true, what is not shown is counted, and nobody notices.

mod talk;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_linux::{ChannelTap, DeadlineExt, Glance};
use talk::{PLAN, attach, instance};

/// From gateway to control, 4 blocks of 4 KiB.
const UP: u16 = 1;
const BLOCK_BYTES: usize = 4096;
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(40);

fn soon() -> Deadline {
    Deadline::after(PATIENCE)
}

/// What a message of this number holds, of a length of its own.
fn payload(number: u32) -> Vec<u8> {
    let words = 1 + number as usize * 7 % (BLOCK_BYTES / 4);
    let mut bytes: Vec<u8> =
        (0..words as u32).flat_map(|at| (number ^ at.wrapping_mul(0x9e37_79b9)).to_le_bytes()).collect();
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn send(end: &impl SendingEnd, number: u32) {
    let bytes = payload(number);
    let mut loan = loop {
        // That a receiver has gone is news, once.
        match end.allocate(soon()) {
            Ok(loan) => break loan,
            Err(error) => assert_eq!(error, Error::PeerGone),
        }
    };
    loan[..bytes.len()].copy_from_slice(&bytes);
    assert!(end.enqueue(loan, bytes.len() as u32).is_ok());
    end.notify();
}

/// Takes a message and gives it back after what is done in between.
fn receive(end: &impl ReceivingEnd, between: impl FnOnce()) {
    let begin = Instant::now();
    let message = loop {
        let _ = end.wait(Deadline::after(Duration::from_millis(100)));
        assert!(begin.elapsed() < PATIENCE, "no message");
        if let Ok(message) = end.dequeue() {
            break message;
        }
    };
    between();
    assert!(end.free(message).is_ok());
}

/// What an observer was shown.
struct Watching {
    tap: ChannelTap,
    shown: Vec<(u32, u32)>,
}

impl Watching {
    fn new(instance: &str) -> Watching {
        Watching { tap: ChannelTap::new(&PLAN, UP, Some(instance)).unwrap(), shown: Vec::new() }
    }

    /// One look; each message shown is what its sender wrote.
    fn look(&mut self) {
        let mut into = vec![0; BLOCK_BYTES];
        if let Glance::Message((_, epoch), message) = self.tap.look(&mut into).unwrap() {
            let number = u32::from_le_bytes(into[..4].try_into().unwrap());
            assert_eq!(into[..message.bytes as usize], payload(number), "position {}", message.position);
            self.shown.push((epoch, number));
        }
    }

    fn passed(&self) -> u64 {
        self.tap.unseen() + self.shown.len() as u64
    }

    /// Looks until so many messages have passed.
    fn until_passed(&mut self, count: u64) {
        let begin = Instant::now();
        while self.passed() < count {
            assert!(begin.elapsed() < PATIENCE, "{} of {count} passed", self.passed());
            self.look();
        }
        assert_eq!(self.passed(), count);
    }
}

#[test]
fn all_messages_to_a_slow_receiver_are_shown() {
    let instance = instance();
    let (control, gateway) = (attach("control", &instance), attach("gateway", &instance));
    let (receiving, sending) = (control.open_receiving(UP).unwrap(), gateway.open_sending(UP).unwrap());
    let mut watching = Watching::new(&instance);
    for number in 0..200 {
        send(&sending, number);
        // Some are shown while they are queued, the others while the receiver has them.
        if number % 2 == 0 {
            watching.until_passed(u64::from(number) + 1);
        }
        receive(&receiving, || watching.until_passed(u64::from(number) + 1));
    }
    let numbers: Vec<u32> = watching.shown.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert_eq!(watching.tap.unseen(), 0);
}

/// More than an observer can follow: what it shows is true all the same, and it says how much it missed.
#[test]
fn of_a_flood_what_is_shown_is_true_and_the_rest_is_counted() {
    const COUNT: u32 = 30_000;
    let instance = instance();
    let (control, gateway) = (attach("control", &instance), attach("gateway", &instance));
    let (receiving, sending) = (control.open_receiving(UP).unwrap(), gateway.open_sending(UP).unwrap());
    let mut watching = Watching::new(&instance);
    thread::scope(|scope| {
        scope.spawn(move || (0..COUNT).for_each(|number| send(&sending, number)));
        scope.spawn(move || (0..COUNT).for_each(|_| receive(&receiving, || {})));
        watching.until_passed(u64::from(COUNT));
    });
    assert!(watching.shown.is_sorted_by(|one, other| one.1 < other.1));
    println!("{} shown, {} passed unseen", watching.shown.len(), watching.tap.unseen());
}

#[test]
fn an_observer_that_comes_late_begins_with_what_is_queued() {
    let instance = instance();
    let (control, gateway) = (attach("control", &instance), attach("gateway", &instance));
    let (receiving, sending) = (control.open_receiving(UP).unwrap(), gateway.open_sending(UP).unwrap());
    for number in 0..9 {
        send(&sending, number);
        receive(&receiving, || {});
    }
    send(&sending, 9);
    send(&sending, 10);
    let mut watching = Watching::new(&instance);
    watching.until_passed(2);
    assert_eq!(watching.shown.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [9, 10]);
}

/// Senders one after the other; the first and the last message of each lie in its queue when it leaves or is there.
#[test]
fn a_sender_that_restarts_is_followed() {
    let instance = instance();
    let control = attach("control", &instance);
    let receiving = control.open_receiving(UP).unwrap();
    let mut watching = Watching::new(&instance);
    let mut passed = 0;
    for life in 0..4 {
        let gateway = attach("gateway", &instance);
        let sending = gateway.open_sending(UP).unwrap();
        for number in life * 10..life * 10 + 3 {
            send(&sending, number);
            passed += 1;
            watching.until_passed(passed);
            receive(&receiving, || {});
        }
        // The last ones are still queued when it has gone.
        (3..5).for_each(|number| send(&sending, life * 10 + number));
        passed += 2;
        watching.look();
        drop((sending, gateway));
        watching.until_passed(passed);
        receive(&receiving, || {});
        receive(&receiving, || {});
    }
    assert_eq!(watching.tap.unseen(), 0);
    let expected: Vec<u32> = (0..4).flat_map(|life| life * 10..life * 10 + 5).collect();
    assert_eq!(watching.shown.iter().map(|(_, number)| *number).collect::<Vec<_>>(), expected);
    let mut epochs: Vec<u32> = watching.shown.iter().map(|(epoch, _)| *epoch).collect();
    epochs.dedup();
    assert_eq!(epochs.len(), 4, "each life has an epoch of its own");
}

/// Receivers one after the other: what a successor gets is shown once, and what the sender took back is not shown.
#[test]
fn a_receiver_that_restarts_hides_nothing_that_is_queued() {
    let instance = instance();
    let gateway = attach("gateway", &instance);
    let sending = gateway.open_sending(UP).unwrap();
    let mut watching = Watching::new(&instance);
    for life in 0..4_u32 {
        send(&sending, life * 10);
        watching.until_passed(u64::from(life) * 4 + 1);
        let control = attach("control", &instance);
        let receiving = control.open_receiving(UP).unwrap();
        receive(&receiving, || {});
        send(&sending, life * 10 + 1);
        // Before it is taken: of what a receiver took before we knew its memory nothing is certain.
        watching.until_passed(u64::from(life) * 4 + 2);
        receive(&receiving, || {});
        send(&sending, life * 10 + 2);
        send(&sending, life * 10 + 3);
        receive(&receiving, || watching.until_passed(u64::from(life) * 4 + 4));
        receive(&receiving, || {});
        drop((receiving, control));
    }
    let expected: Vec<u32> = (0..4).flat_map(|life| life * 10..life * 10 + 4).collect();
    assert_eq!(watching.shown.iter().map(|(_, number)| *number).collect::<Vec<_>>(), expected);
    assert_eq!(watching.tap.unseen(), 0);
}

/// Both sides come and go in the middle of a flood; nothing wrong is shown, whatever the observer can follow of it.
#[test]
fn restarts_in_a_flood_show_nothing_wrong() {
    let instance = instance();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for life in 0..6 {
                let gateway = attach("gateway", &instance);
                let sending = gateway.open_sending(UP).unwrap();
                (0..300).for_each(|number| send(&sending, life * 1_000 + number));
            }
            ended.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let control = attach("control", &instance);
                let receiving = control.open_receiving(UP).unwrap();
                let until = Instant::now() + Duration::from_millis(40);
                while Instant::now() < until && !ended.load(Ordering::Acquire) {
                    if receiving.wait(Deadline::after(Duration::from_millis(5))).is_ok()
                        && let Ok(message) = receiving.dequeue()
                    {
                        assert!(receiving.free(message).is_ok());
                    }
                }
            }
        });
        let mut watching = Watching::new(&instance);
        while !ended.load(Ordering::Acquire) {
            watching.look();
        }
        println!("{} shown, {} passed unseen", watching.shown.len(), watching.tap.unseen());
    });
}
