//! Whole runs: whatever both sides post, in whatever pieces it travels, what arrives is what was sent, in order.

use super::*;
use proptest::prelude::*;

/// What a side does.
#[derive(Clone, Debug)]
enum Step {
    /// Sends from an offset so many bytes.
    Send(u32, u32),
    /// Writes so many bytes to an offset, and says so or not.
    Write(u32, u32, bool),
    /// Reads so many bytes from an offset.
    Read(u32, u32),
    /// Carries some frames.
    Carry,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (at, bytes) = (0..400u32, 0..300u32);
    let step = prop_oneof![
        3 => (at.clone(), bytes.clone()).prop_map(|(at, bytes)| Step::Send(at, bytes)),
        2 => (at.clone(), bytes.clone(), any::<bool>()).prop_map(|(at, bytes, told)| Step::Write(at, bytes, told)),
        2 => (at, bytes).prop_map(|(at, bytes)| Step::Read(at, bytes)),
        2 => Just(Step::Carry),
    ];
    prop::collection::vec(step, 1..20)
}

/// Where received messages go, one behind another, and where reads go.
const RECEIVED: u64 = BASE + 1024;
const READ: u64 = BASE + 4096;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_arrives_is_what_was_sent(
        level in prop::sample::select(&[Reliability::Delivery, Reliability::Reception][..]),
        steps in steps(),
        piece in 1..200u32,
        room in 1..5usize,
        numbered in any::<bool>(),
    ) {
        let (mut one, mut other) = connected(level);
        for side in [&mut one, &mut other] {
            (side.line.payload_bytes_max, side.line.room) = (piece, room);
            side.line.numbers = numbered.then_some(0);
        }
        let source: Vec<u8> = (0..1024u32).map(|at| (at * 7 + at / 256) as u8).collect();
        one.ram.write(BASE, &source);
        other.ram.write(BASE, &source);
        let mut target = source.clone();
        let (mut arrives, mut reads) = (Vec::new(), Vec::new());
        let mut names = 0..;
        for step in &steps {
            let name = names.next().unwrap();
            match *step {
                Step::Send(at, bytes) => {
                    let receive = send(&other, 1000 + name, RECEIVED + 300 * arrives.len() as u64 % 3000, 300);
                    other.post(Queue::Receive, receive);
                    let halves = [(BASE + u64::from(at), bytes / 2), (BASE + u64::from(at + bytes / 2), bytes - bytes / 2)];
                    let message = one.message(name, Operation::SendReceive, &halves);
                    one.post(Queue::Send, message);
                    arrives.push((bytes, None));
                }
                Step::Write(at, bytes, told) => {
                    if told {
                        let receive = other.message(1000 + name, Operation::SendReceive, &[]);
                        other.post(Queue::Receive, receive);
                        arrives.push((bytes, Some(at)));
                    }
                    let to = RemotePlace { address: BASE + u64::from(at), handle: other.handle };
                    let write = one.message(name, Operation::Write, &[(BASE + 300, bytes)]);
                    one.post(Queue::Send, Descriptor { remote: to, immediate: told.then_some(at), ..write });
                    target[at as usize..(at + bytes) as usize].copy_from_slice(&source[300..300 + bytes as usize]);
                }
                Step::Read(at, bytes) => {
                    let from = RemotePlace { address: BASE + u64::from(at), handle: other.handle };
                    let to = READ + 300 * (reads.len() as u64 % 10);
                    // A fence before and after, so that the bytes are those of this moment.
                    let read = Descriptor { remote: from, ..one.message(name, Operation::Read, &[(to, bytes)]) };
                    one.post(Queue::Send, read);
                    carry(&mut one, &mut other);
                    let expected = &target[at as usize..(at + bytes) as usize];
                    prop_assert_eq!(&one.ram.read(to, bytes)[..], expected);
                    reads.push(name);
                }
                Step::Carry => {
                    carry_one_way(&mut one, &mut other);
                }
            }
        }
        carry(&mut one, &mut other);
        prop_assert_eq!((one.vi.state(), other.vi.state()), (ViState::Connected, ViState::Connected));
        let sent = one.completed();
        prop_assert!(sent.iter().all(|(_, status)| !status.is_error()));
        let expected: Vec<u64> =
            (0..).zip(&steps).filter(|(_, step)| !matches!(step, Step::Carry)).map(|(name, _)| name).collect();
        prop_assert_eq!(sent.iter().map(|(name, _)| *name).collect::<Vec<u64>>(), expected);
        let received: Vec<(u32, Option<u32>)> = other
            .ram
            .completed
            .borrow()
            .iter()
            .map(|(_, c)| (c.bytes, c.status.has(Status::IMMEDIATE).then_some(c.immediate)))
            .collect();
        prop_assert_eq!(received, arrives);
        prop_assert_eq!(other.ram.read(BASE, 1024), target);
    }
}

#[test]
fn a_message_comes_whole_into_several_places() {
    let (mut one, mut other) = connected(Reliability::Delivery);
    one.line.payload_bytes_max = 3;
    one.ram.write(BASE, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let receive =
        other.message(5, Operation::SendReceive, &[(BASE, 1), (BASE + 10, 0), (BASE + 20, 5), (BASE + 30, 4)]);
    let message = one.message(1, Operation::SendReceive, &[(BASE, 8)]);
    other.post(Queue::Receive, receive);
    one.post(Queue::Send, message);
    carry(&mut one, &mut other);
    let parts = [(BASE, 1), (BASE + 20, 5), (BASE + 30, 4)].map(|(address, bytes)| other.ram.read(address, bytes));
    assert_eq!(parts.concat(), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
    let (_, completion) = other.ram.completed.borrow()[0];
    assert_eq!(completion, Completion { bytes: 8, immediate: 0, status: DONE_RECEIVE });
}

#[test]
fn an_unreliable_message_is_dropped_not_held_back() {
    let (mut one, mut other) = connected(Reliability::Unreliable);
    for name in 0..3 {
        let message = send(&one, name, BASE, 8);
        one.post(Queue::Send, message);
    }
    carry(&mut one, &mut other);
    let receive = send(&other, 5, BASE, 8);
    other.post(Queue::Receive, receive);
    let message = send(&one, 3, BASE, 8);
    one.post(Queue::Send, message);
    carry(&mut one, &mut other);
    assert_eq!((one.completed().len(), other.completed()), (4, std::vec![(5, DONE_RECEIVE)]));
}

#[test]
fn completion_queues_keep_order_and_say_when_they_are_full() {
    let mut queue = CompletionQueue::new(2);
    let source = |vi| CompletionSource { vi, queue: Queue::Receive };
    queue.push(source(1)).unwrap();
    queue.push(source(2)).unwrap();
    assert_eq!(queue.push(source(3)), Err(AsyncError::Overrun));
    assert_eq!(queue.resize(1), Err(TooSmall));
    assert_eq!(queue.resize(0), Err(TooSmall));
    queue.resize(3).unwrap();
    queue.push(source(3)).unwrap();
    queue.bind();
    queue.unbind(source(2));
    assert!(!queue.is_bound());
    assert_eq!((queue.len(), queue.pop(), queue.pop(), queue.pop()), (2, Some(source(1)), Some(source(3)), None));
    assert!(queue.is_empty());
}
