//! What each call of the interface does, over two participants in one process.
#![forbid(unsafe_code)]
#![cfg(not(miri))]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use musubi_config::parse;
use musubi_linux::{Options, Participant};
use musubi_mdcom::{Error, FilterRule, Mdcom, Notified, OpenError, Receiver, Sender, Wait, WaitSet};

const SYSTEM: &str = r#"
[system]
name = "interface"

[[domain]]
name = "control"
role = "master"

[[domain]]
name = "panel"
role = "remote"
participants = 2

[[fifo]]
name = "bytes"
from = "control"
to = "panel"
block_size = "64 B"
blocks = 2

[[fifo]]
name = "values"
from = "control"
to = "panel"
block_size = "16 B"
blocks = 4
priority = 0

[[fifo]]
name = "slow"
from = "control"
to = "panel"
block_size = "16 B"
blocks = 4
regulation = { messages = "1 /s", messages_burst = 1 }

[[smem]]
name = "few"
domains = ["control", "panel"]
size = "16 B"

[[smem]]
name = "more"
domains = ["control", "panel"]
size = "64 B"
"#;

/// Longer than any of this takes, even beside many others; what takes longer hangs. The environment may know better.
fn patience() -> Duration {
    let told = std::env::var("MUSUBI_HANG_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(told.unwrap_or(60))
}

/// As a wait.
fn long() -> Wait {
    Wait::For(patience())
}

/// Both participants of an instance of the system that no other test uses.
fn attach(test: &str) -> (Participant, Participant) {
    attach_of(SYSTEM, test)
}

fn attach_of(system: &str, test: &str) -> (Participant, Participant) {
    let plan = parse("interface.toml", system).unwrap_or_else(|report| panic!("{report}")).leak();
    let instance = format!("mdcom-{test}-{}", std::process::id());
    let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
    (at("control").unwrap(), at("panel").unwrap())
}

/// Waits until each end knows the other, so that what follows does not depend on when the two were linked.
fn linked<S, R>(sender: &Sender<'_, Participant, S>, receiver: &Receiver<'_, Participant, R>) {
    let begin = Instant::now();
    while !sender.sense().connected || !receiver.sense().connected {
        assert!(begin.elapsed() < patience(), "they never met");
        std::thread::yield_now();
    }
}

/// Polls a future until it is done.
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let begin = Instant::now();
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        assert!(begin.elapsed() < patience(), "it never came");
        std::thread::yield_now();
    }
}

fn bytes<'a>(
    (control, panel): &'a (Participant, Participant),
) -> (Sender<'a, Participant, musubi_mdcom::Bytes>, Receiver<'a, Participant, musubi_mdcom::Bytes>) {
    let (sender, receiver) =
        (Mdcom::init(control).sender("bytes").unwrap(), Mdcom::init(panel).receiver("bytes").unwrap());
    linked(&sender, &receiver);
    (sender, receiver)
}

#[test]
fn channels_and_domains_are_found_by_name_and_number() {
    let both = attach("names");
    let (control, panel) = (Mdcom::init(&both.0), Mdcom::init(&both.1));
    assert_eq!(control.sender(0).unwrap().block_bytes(), 64);
    assert_eq!(control.sender("values").unwrap().block_bytes(), 16);
    assert_eq!(panel.receiver(1).unwrap().block_bytes(), 16);
    assert_eq!(panel.receiver("bytes").unwrap().block_bytes(), 64);
    assert!(
        matches!(control.sender(3), Err(OpenError::Unknown)) && matches!(control.sender(9), Err(OpenError::Unknown))
    );
    assert!(matches!(control.sender("few"), Err(OpenError::Unknown)));
    assert!(matches!(control.shared::<u32>("bytes", long()), Err(OpenError::Unknown)));
    assert!(matches!(control.shared::<u32>(2, long()), Err(OpenError::Unknown)));
    assert!(control.shared::<u32>(1, long()).is_ok());
    assert!(matches!(panel.sender("bytes"), Err(OpenError::Port(_))), "that end is the other domain's");
    assert_eq!(control.sense_process("control").unwrap(), 1);
    assert_eq!(panel.sense_process(0).unwrap(), 1);
    assert!(matches!(control.sense_process(2), Err(OpenError::Unknown)));
    assert!(matches!(control.sense_process("nobody"), Err(OpenError::Unknown)));
}

#[test]
fn a_domains_participants_are_counted() {
    let plan = parse("interface.toml", SYSTEM).unwrap_or_else(|report| panic!("{report}")).leak();
    let instance = format!("mdcom-count-{}", std::process::id());
    let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
    let control = at("control").unwrap();
    assert_eq!(Mdcom::init(&control).sense_process("panel").unwrap(), 0);
    let _panels = [at("panel").unwrap(), at("panel").unwrap()];
    let begin = Instant::now();
    while Mdcom::init(&control).sense_process("panel").unwrap() != 2 {
        assert!(begin.elapsed() < patience(), "they never met");
        std::thread::yield_now();
    }
}

#[test]
fn a_type_fits_a_channel_or_is_refused() {
    let both = attach("types");
    let (control, panel) = (Mdcom::init(&both.0), Mdcom::init(&both.1));
    assert!(control.sender_of::<[u8; 16]>("values").is_ok());
    assert!(panel.receiver_of::<[u8; 16]>("values").is_ok());
    let refused = control.sender_of::<[u8; 17]>("slow").err().unwrap();
    assert!(matches!(refused, OpenError::TypeDoesNotFit { type_bytes: 17, block_bytes: 16 }));
    assert_eq!(refused.to_string(), "a type of 17 bytes does not fit a block of 16 bytes aligned to 16");
    assert!(matches!(panel.receiver_of::<[u8; 17]>("slow"), Err(OpenError::TypeDoesNotFit { .. })));
    assert!(matches!(control.shared::<[u8; 5000]>("few", long()), Err(OpenError::TypeDoesNotFit { .. })));
    assert_eq!(control.sender("none").err().unwrap().to_string(), "the description has no such channel");
    let port = panel.sender("bytes").err().unwrap().to_string();
    assert!(!port.is_empty() && port != OpenError::<musubi_linux::Error>::Unknown.to_string(), "{port}");
}

#[test]
fn a_block_carries_what_was_written_and_comes_back() {
    let both = attach("blocks");
    let (sender, receiver) = bytes(&both);
    let mut block = sender.alloc(long()).unwrap();
    assert_eq!((block.len(), sender.sense().held), (64, 1));
    block[..5].copy_from_slice(b"hello");
    assert_eq!(&block[..5], b"hello");
    block.enqueue(5).unwrap();
    assert_eq!((sender.sense().held, sender.sense().queued, sender.sense().blocks), (0, 1, 2));
    let message = receiver.dequeue().unwrap();
    let mut part = [0; 4];
    assert_eq!((message.len(), message.is_empty(), message.copy_to(3, &mut part)), (5, false, 2));
    assert_eq!((&part[..2], receiver.sense().held), (&b"lo"[..], 1));
    assert!(!message.address().is_null() && message.trusted_bytes().is_none(), "control may crash");
    let mut into = [0; 6];
    assert_eq!(message.read_into(&mut into).unwrap(), b"hello");
    assert_eq!(message.read_into(&mut into[..4]).unwrap_err(), Error::TooLong);
    drop(message);
    assert_eq!(receiver.sense().held, 0);
    sender.alloc(long()).unwrap().enqueue(0).unwrap();
    let empty = receiver.next(long()).unwrap();
    assert_eq!((empty.is_empty(), empty.len()), (true, 0));
    empty.free();
    sender.alloc(long()).unwrap().free();
    assert_eq!(sender.sense().held, 0);
}

#[test]
fn what_a_trusted_domain_sent_is_read_in_place() {
    let trusting = SYSTEM.replace("role = \"master\"", "role = \"master\"\ntrust = \"trusted\"");
    let both = attach_of(&trusting, "in-place");
    let (sender, receiver) = bytes(&both);
    let mut block = sender.alloc(long()).unwrap();
    block[..3].copy_from_slice(&[7, 8, 9]);
    block.enqueue(3).unwrap();
    let message = receiver.dequeue().unwrap();
    let in_place = message.trusted_bytes().unwrap();
    assert_eq!((in_place, in_place.as_ptr()), (&[7, 8, 9][..], message.address()));
}

#[test]
fn who_polls_does_not_wait_and_who_waits_gets_what_comes() {
    let both = attach("waits");
    let (sender, receiver) = bytes(&both);
    assert_eq!(receiver.next(Wait::Poll).err(), Some(Error::Timeout));
    assert_eq!(receiver.dequeue().err(), Some(Error::Empty));
    let begin = Instant::now();
    assert_eq!(receiver.wait(Wait::For(Duration::from_millis(30))), Err(Error::Timeout));
    assert!(begin.elapsed() >= Duration::from_millis(30));
    assert_eq!(receiver.next(Wait::For(Duration::from_millis(1))).err(), Some(Error::Timeout));
    sender.send(b"one", long()).unwrap();
    assert_eq!(receiver.wait(Wait::Poll), Ok(()));
    sender.send(b"two", long()).unwrap();
    assert_eq!(sender.send(b"three", Wait::Poll).err(), Some(Error::NoBlock));
    assert_eq!(sender.alloc(Wait::For(Duration::from_millis(1))).err(), Some(Error::Timeout));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            let receiver = receiver;
            assert_eq!(receiver.next(long()).unwrap().len(), 3);
            assert_eq!(receiver.next(long()).unwrap().len(), 3);
            assert_eq!(receiver.next(long()).unwrap().len(), 5);
        });
        let sender = sender;
        assert_eq!(sender.send(b"three", long()), Ok(Notified::Raised));
    });
}

#[test]
fn what_is_too_long_is_refused_and_the_longest_is_not() {
    let both = attach("lengths");
    let (sender, receiver) = bytes(&both);
    assert_eq!(sender.send(&[1; 65], long()), Err(Error::TooLong));
    assert_eq!(sender.send(&[2; 64], long()), Ok(Notified::Raised));
    assert_eq!(sender.send(&[3; 1], long()), Ok(Notified::Raised));
    assert_eq!((receiver.next(long()).unwrap().len(), receiver.next(long()).unwrap().len()), (64, 1));
    let rejected = sender.alloc(long()).unwrap().enqueue(65).unwrap_err();
    assert_eq!((rejected.error, sender.sense().held), (Error::TooLong, 1));
}

#[test]
fn values_go_over_as_they_are() {
    let both = attach("values");
    let sender = Mdcom::init(&both.0).sender_of::<[u32; 3]>("values").unwrap();
    let receiver = Mdcom::init(&both.1).receiver_of::<[u32; 3]>("values").unwrap();
    linked(&sender, &receiver);
    assert_eq!(sender.send([1, 2, 3], long()), Ok(Notified::Raised));
    assert_eq!(receiver.recv(long()), Ok([1, 2, 3]));
    let mut block = sender.alloc(long()).unwrap();
    *block = [4, 5, 6];
    block[1] += 10;
    assert_eq!(*block, [4, 15, 6]);
    block.enqueue().unwrap();
    let message = receiver.next(long()).unwrap();
    assert_eq!((message.len(), message.read()), (12, Ok([4, 15, 6])));
}

#[test]
fn a_message_of_another_length_is_no_value() {
    let both = attach("mistyped");
    let sender = Mdcom::init(&both.0).sender("values").unwrap();
    let receiver = Mdcom::init(&both.1).receiver_of::<[u32; 2]>("values").unwrap();
    linked(&sender, &receiver);
    sender.send(&[1; 7], long()).unwrap();
    sender.send(&[1; 8], long()).unwrap();
    assert_eq!(receiver.recv(long()), Err(Error::PeerFault));
    assert_eq!(receiver.recv(long()), Ok([0x0101_0101; 2]));
}

#[test]
fn either_end_tells_the_other() {
    let both = attach("events");
    let (sender, receiver) = bytes(&both);
    // Before its first message a receiver may not know that the session is open.
    sender.send(b"first", long()).unwrap();
    assert_eq!(receiver.next(long()).unwrap().len(), 5);
    assert_eq!(sender.wait(Wait::Poll), Err(Error::Timeout));
    receiver.notify();
    assert_eq!(sender.wait(long()), Ok(()));
    assert_eq!(sender.wait(Wait::Poll), Err(Error::Timeout), "once");
    assert_eq!(sender.notify(), Notified::Raised);
    assert_eq!(receiver.wait(long()), Ok(()));
    assert_eq!(receiver.wait(Wait::Poll), Err(Error::Timeout), "once");
}

#[test]
fn a_filter_holds_notifications_back() {
    let both = attach("filter");
    let (sender, receiver) = bytes(&both);
    sender.set_filter(FilterRule { every: 2, ..FilterRule::EACH });
    assert!(matches!(sender.send(b"one", long()), Ok(Notified::Held { .. })));
    assert_eq!(sender.send(b"two", long()), Ok(Notified::Raised));
    assert_eq!(receiver.wait(long()), Ok(()));
}

#[test]
fn a_channel_begins_anew_from_either_end() {
    let both = attach("reset");
    let (mut sender, mut receiver) = bytes(&both);
    sender.send(b"void", long()).unwrap();
    sender.reset();
    sender.send(b"next", long()).unwrap();
    let mut text = [0; 4];
    assert_eq!(receiver.next(long()).unwrap().read_into(&mut text).unwrap(), b"next");
    sender.send(b"void", long()).unwrap();
    receiver.reset();
    assert_eq!((receiver.dequeue().err(), receiver.sense().queued), (Some(Error::Empty), 0));
}

#[test]
fn who_sends_faster_than_the_rule_waits_or_is_told() {
    let both = attach("regulated");
    let sender = Mdcom::init(&both.0).sender("slow").unwrap();
    let receiver = Mdcom::init(&both.1).receiver("slow").unwrap();
    linked(&sender, &receiver);
    assert!(sender.send(b"first", Wait::Poll).is_ok());
    assert!(matches!(sender.send(b"second", Wait::Poll), Err(Error::Throttled { retry_ns: 1.. })));
    let short = Wait::For(Duration::from_micros(1));
    assert!(matches!(sender.send(b"second", short), Err(Error::Throttled { retry_ns: 1.. })));
    assert!(sender.send(b"second", long()).is_ok());
    assert!(sender.send(b"third", Wait::Forever).is_ok());
    assert_eq!(sender.sense().queued, 3, "each that was refused was not sent");
}

#[test]
fn futures_are_ready_when_something_came() {
    let both = attach("futures");
    let (sender, receiver) = bytes(&both);
    finish(sender.alloc_async()).unwrap().enqueue(3).unwrap();
    sender.notify();
    assert_eq!(finish(receiver.event()), Ok(()));
    assert_eq!(finish(receiver.next_async()).unwrap().len(), 3);
    let mut next = pin!(receiver.next_async());
    assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    sender.send(b"four", long()).unwrap();
    assert_eq!(finish(next).unwrap().len(), 4);
    let _kept = [sender.alloc(long()).unwrap(), sender.alloc(long()).unwrap()];
    assert!(pin!(sender.alloc_async()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn a_set_names_the_most_urgent_that_has_something() {
    let both = attach("sets");
    let (sender, receiver) = bytes(&both);
    let urgent = Mdcom::init(&both.0).sender("values").unwrap();
    let values = Mdcom::init(&both.1).receiver("values").unwrap();
    linked(&urgent, &values);
    let mut set = WaitSet::new([receiver.member(), values.member()]);
    assert_eq!(set.wait(Wait::Poll), Err(Error::Timeout));
    sender.send(b"later", long()).unwrap();
    assert_eq!(set.wait(long()), Ok(0));
    urgent.send(b"now", long()).unwrap();
    assert_eq!(set.wait(long()), Ok(1));
    assert_eq!(values.next(Wait::Poll).unwrap().len(), 3);
    assert_eq!(set.wait(long()), Ok(0));
    assert_eq!(receiver.next(Wait::Poll).unwrap().len(), 5);
    assert_eq!(set.wait(Wait::For(Duration::from_millis(1))), Err(Error::Timeout));
}

#[test]
fn shared_memory_is_read_and_written_under_its_lock() {
    let both = attach("shared");
    let mut ours = Mdcom::init(&both.0).shared::<[u8; 8]>("few", long()).unwrap();
    let mut theirs = Mdcom::init(&both.1).shared::<[u8; 8]>("few", long()).unwrap();
    let mut guard = ours.lock(long()).unwrap();
    guard.write(b"musubi!!");
    guard.write_bytes(6, b"..").unwrap();
    assert_eq!(guard.read(), *b"musubi..");
    assert_eq!(theirs.try_lock().err(), Some(Error::Locked));
    assert_eq!(theirs.lock(Wait::For(Duration::from_millis(1))).err(), Some(Error::Timeout));
    drop(guard);
    let mut part = [0; 3];
    let guard = theirs.lock(long()).unwrap();
    guard.read_bytes(4, &mut part).unwrap();
    assert_eq!((&part, guard.read()), (b"bi.", *b"musubi.."));
    assert_eq!(guard.read_bytes(u32::MAX, &mut part), Err(Error::TooLong));
    drop(guard);
    assert!(ours.lock(long()).unwrap().write_bytes(u32::MAX, b"x").is_err());
}
