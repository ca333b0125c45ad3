//! What each call at an end says and does, between two participants of one process.

mod talk;

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _, Usage};
use musubi_core::fifo::Notified;
use musubi_core::plan::FilterRule;
use musubi_core::{Error, words::PeerWord};
use musubi_linux::{DeadlineExt, Participant, ReceivingEnd, SendingEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use talk::{attach, instance, receive, send};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not come");
        thread::yield_now();
    }
}

/// The participants, and both ends of the first channel, which know each other.
fn linked() -> (Participant, Participant, SendingEnd, ReceivingEnd) {
    let instance = instance();
    let (control, gateway) = (attach("control", &instance), attach("gateway", &instance));
    let (down, receiving) = (control.open_sending(0).unwrap(), gateway.open_receiving(0).unwrap());
    eventually("the other end", || down.usage().connected && receiving.usage().connected);
    // The first message opens the session; from then on both know all of it.
    send(&down, 0).unwrap();
    assert_eq!(receive(&receiving), Ok(0));
    (control, gateway, down, receiving)
}

fn is_readable(fd: impl AsFd, within: Duration) -> bool {
    let time = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&time)).unwrap() > 0
}

#[test]
fn an_end_says_how_large_urgent_and_full_its_channel_is() {
    let (control, gateway, down, receiving) = linked();
    let (other, up) = (control.open_receiving(1).unwrap(), gateway.open_sending(1).unwrap());
    assert_eq!((down.block_bytes(), receiving.block_bytes()), (64, 64));
    assert_eq!((up.block_bytes(), other.block_bytes()), (4096, 4096));
    assert_eq!((receiving.priority(), other.priority()), (0, 3));
    (1..4).for_each(|value| send(&down, value).unwrap());
    let loan = down.allocate(Deadline::Poll).unwrap();
    assert_eq!(down.usage(), Usage { blocks: 8, free: 4, queued: 3, held: 1, connected: true });
    let received = receiving.dequeue().unwrap();
    assert_eq!(receiving.usage(), Usage { blocks: 8, free: 0, queued: 2, held: 1, connected: true });
    assert!(receiving.free(received).is_ok() && down.free(loan).is_ok());
    assert_eq!(receiving.usage(), Usage { blocks: 8, free: 0, queued: 2, held: 0, connected: true });
    assert_eq!(down.usage(), Usage { blocks: 8, free: 6, queued: 2, held: 0, connected: true });
}

#[test]
fn an_end_names_who_is_at_the_other_one() {
    let (control, gateway, down, receiving) = linked();
    let (sender, receiver) = (receiving.sender().unwrap(), down.receiver().unwrap());
    assert_eq!((sender.participant, sender.epoch), (control.number(), control.epoch()));
    assert_eq!((receiver.participant, receiver.epoch), (gateway.number(), gateway.epoch()));
    send(&down, 5).unwrap();
    let (received, from) = receiving.dequeue_from().unwrap();
    assert_eq!((received.len(), from), (4, sender));
    assert!(receiving.free(received).is_ok());
    assert_eq!(receiving.dequeue_from().err(), Some(Error::Empty));
    drop((down, control));
    eventually("the loss", || receiving.has_loss());
    assert_eq!(receiving.sender(), None);
    assert!(receiving.is_ready() && receiving.take_loss() && !receiving.take_loss() && !receiving.has_loss());
    assert!(!receiving.is_ready() && !receiving.usage().connected);
}

#[test]
fn a_filter_that_is_set_holds_notifications_back_and_can_be_taken_off() {
    let (_control, _gateway, down, receiving) = linked();
    let put = || {
        let loan = down.allocate(Deadline::Poll).unwrap();
        assert!(down.enqueue(loan, 1).is_ok());
        down.notify()
    };
    down.set_filter(FilterRule { every: 2, ..FilterRule::EACH });
    assert!(matches!(put(), Notified::Held { .. }));
    assert_eq!(receiving.wait(Deadline::Poll), Err(Error::Timeout));
    assert_eq!(put(), Notified::Raised);
    assert_eq!(receiving.wait(Deadline::Poll), Ok(()));
    down.set_filter(FilterRule::EACH);
    assert_eq!((put(), put()), (Notified::Raised, Notified::Raised));
}

#[test]
fn either_end_begins_the_channel_anew() {
    let (_control, _gateway, down, receiving) = linked();
    (1..4).for_each(|value| send(&down, value).unwrap());
    down.reset();
    send(&down, 4).unwrap();
    assert_eq!(receive(&receiving), Ok(4), "nothing from before");
    (5..8).for_each(|value| send(&down, value).unwrap());
    receiving.reset();
    assert_eq!((receiving.usage().queued, receiving.dequeue().err()), (0, Some(Error::Empty)));
    send(&down, 8).unwrap();
    assert_eq!((receive(&receiving), down.usage().free), (Ok(8), 8));
}

#[test]
fn an_event_of_either_end_is_seen_once_by_a_look_or_a_wait() {
    let (_control, _gateway, down, receiving) = linked();
    assert!(!receiving.look() && !down.look().event && down.look().block);
    receiving.notify();
    assert!(down.look().event);
    assert_eq!((down.wait(Deadline::Poll), down.wait(Deadline::Poll)), (Ok(()), Err(Error::Timeout)));
    assert_eq!(down.notify(), Notified::Raised);
    assert!(receiving.is_ready() && receiving.look() && !receiving.look() && !receiving.is_ready());
    assert_eq!(down.notify(), Notified::Raised);
    assert_eq!((receiving.wait(Deadline::Poll), receiving.wait(Deadline::Poll)), (Ok(()), Err(Error::Timeout)));
}

#[test]
fn an_armed_receivers_descriptor_is_readable_when_it_was_notified() {
    let (_control, _gateway, down, receiving) = linked();
    let fd = receiving.event_fd().unwrap();
    eventually("an armed sender's knowledge of the descriptor", || {
        assert!(!receiving.arm(), "nothing is there");
        send(&down, 1).unwrap();
        let is_rung = is_readable(&fd, Duration::from_millis(100));
        assert!(receiving.arm(), "a message is there");
        assert_eq!(receive(&receiving), Ok(1));
        is_rung
    });
    assert!(!receiving.arm());
    assert!(!is_readable(&fd, Duration::ZERO), "cleared, and nothing has come");
}

#[test]
fn an_armed_senders_descriptor_is_readable_when_a_block_has_come_back() {
    let (_control, _gateway, down, receiving) = linked();
    let fd = down.event_fd().unwrap();
    let fill = || (0..8).for_each(|value| send(&down, value).unwrap());
    let empty = || (0..8).for_each(|value| assert_eq!(receive(&receiving), Ok(value)));
    eventually("the receiver's knowledge of the descriptor", || {
        fill();
        assert!(!down.arm(), "no block is free");
        empty();
        let is_rung = is_readable(&fd, Duration::from_millis(100));
        assert!(down.arm(), "all are free");
        is_rung
    });
    fill();
    assert!(!down.arm());
    down.disarm();
    empty();
    assert!(!is_readable(&fd, Duration::ZERO), "it was taken back");
}

#[test]
fn who_is_made_look_again_does_not_sleep_and_without_a_sleeper_nothing_changes() {
    let (_control, _gateway, down, receiving) = linked();
    let long = || Deadline::after(PATIENCE);
    let (sleep, ready) = receiving.prepare_sleep();
    let links = receiving.links();
    receiving.wake_sleepers();
    assert!(!ready && sleep.sleep(links.version_word(), long()));
    receiving.finish_sleep();
    let version = links.version();
    receiving.wake_sleepers();
    assert_eq!(links.version(), version);
    let (sleep, ready) = down.prepare_sleep();
    let links = down.links();
    down.wake_sleepers();
    assert!(!ready.event && sleep.sleep(links.version_word(), long()));
    down.finish_sleep();
    let version = links.version();
    down.wake_sleepers();
    assert_eq!((links.version(), PeerWord::from(links.version_word()).load(Ordering::SeqCst)), (version, version));
}

#[test]
fn a_participant_knows_its_peers_and_waits_for_them() {
    let instance = instance();
    let control = attach("control", &instance);
    assert!(control.peers().is_empty() && control.wait_for(1, Deadline::Poll).is_err());
    let gateway = attach("gateway", &instance);
    let long = || Deadline::after(PATIENCE);
    assert_eq!(control.wait_for(1, long()).unwrap(), (gateway.number(), gateway.epoch()));
    assert_eq!(gateway.wait_for_master(long()).unwrap(), (control.number(), control.epoch()));
    let peers = control.peers();
    let [peer] = &peers[..] else { panic!("{peers:?}") };
    assert_eq!((peer.participant, peer.domain, peer.epoch), (gateway.number(), 1, gateway.epoch()));
    assert_eq!((peer.pid as u32, peer.section.participant()), (std::process::id(), gateway.number()));
    eventually("a heartbeat that is some milliseconds old", || {
        let peers = control.peers();
        let (age_ms, stalled) = (peers[0].heartbeat_age_ms, peers[0].stalled);
        assert_eq!(stalled, age_ms > 500, "{age_ms} ms");
        age_ms >= 3
    });
    assert_eq!((control.domain(), gateway.domain(), control.attached(0), control.attached(1)), (0, 1, 1, 1));
    assert!(control.obstacles().is_empty() && gateway.obstacles().is_empty());
    assert_eq!(Attachment::domain(&gateway), 1);
    let begin = Instant::now();
    let now_ns = Attachment::now_ns(&control);
    control.sleep_until(now_ns + 20_000_000);
    assert!(begin.elapsed() >= Duration::from_millis(20));
    drop(gateway);
    eventually("the leaving", || control.peers().is_empty() && control.attached(1) == 0);
}
