//! Messages that wait for receives: none is lost, none ends the connection, whatever the order of posting; and counts that lie.

use super::*;
use proptest::prelude::*;

fn credited(reliability: Reliability) -> (Side, Side) {
    connected_as(ViAttributes { credit: true, ..attributes(reliability) })
}

/// What happens; the first of each is the side, by its place.
#[derive(Clone, Debug)]
enum Step {
    /// A receive is posted.
    Receive(usize),
    /// So many bytes are sent.
    Send(usize, u32),
    /// So many bytes are written, and said so with immediate data or not.
    Write(usize, u32, bool),
    /// Some bytes are read.
    Read(usize),
    /// Frames are carried from this side to the other.
    Carry(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (side, bytes) = (0..2usize, 0..300u32);
    let step = prop_oneof![
        4 => side.clone().prop_map(Step::Receive),
        4 => (side.clone(), bytes.clone()).prop_map(|(side, bytes)| Step::Send(side, bytes)),
        2 => (side.clone(), bytes, any::<bool>()).prop_map(|(side, bytes, told)| Step::Write(side, bytes, told)),
        1 => side.clone().prop_map(Step::Read),
        3 => side.prop_map(Step::Carry),
    ];
    prop::collection::vec(step, 1..50)
}

fn carry_from(sides: &mut [Side; 2], from: usize) -> bool {
    let [one, other] = sides;
    if from == 0 { carry_one_way(one, other) } else { carry_one_way(other, one) }
}

fn receive_at(side: &mut Side, name: u64) {
    let receive = send(side, name, BASE + 4096, 300);
    side.post(Queue::Receive, receive);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_message_finds_a_receive(
        level in prop::sample::select(&Reliability::ALL[..]),
        steps in steps(),
        piece in 1..400u32,
        room in 1..5usize,
        numbered in any::<bool>(),
        begins in prop::option::of(u32::MAX - 20..u32::MAX),
    ) {
        let (one, other) = credited(level);
        let mut sides = [one, other];
        for side in &mut sides {
            (side.line.payload_bytes_max, side.line.room) = (piece, room);
            side.line.numbers = numbered.then_some(0);
            if let Some(count) = begins {
                side.vi.credit.count_from(count);
            }
        }
        let (mut arrives, mut posted) = ([Vec::new(), Vec::new()], [0u64; 2]);
        let mut expected = [0usize; 2];
        for (name, step) in (1000..).zip(&steps) {
            match *step {
                Step::Receive(side) => {
                    posted[side] += 1;
                    receive_at(&mut sides[side], posted[side]);
                }
                Step::Send(side, bytes) => {
                    let message = send(&sides[side], name, BASE, bytes);
                    sides[side].post(Queue::Send, message);
                    arrives[1 - side].push((bytes, None));
                    expected[side] += 1;
                }
                Step::Write(side, bytes, told) => {
                    let to = RemotePlace { address: BASE + 2048, handle: sides[1 - side].handle };
                    let write = sides[side].message(name, Operation::Write, &[(BASE, bytes)]);
                    let immediate = told.then_some(name as u32);
                    sides[side].post(Queue::Send, Descriptor { remote: to, immediate, ..write });
                    if told {
                        arrives[1 - side].push((bytes, immediate));
                    }
                    expected[side] += 1;
                }
                Step::Read(side) if level.is_reliable() => {
                    let from = RemotePlace { address: BASE, handle: sides[1 - side].handle };
                    let read = sides[side].message(name, Operation::Read, &[(BASE + 7000, 40)]);
                    sides[side].post(Queue::Send, Descriptor { remote: from, ..read });
                    expected[side] += 1;
                }
                Step::Read(_) => {}
                Step::Carry(side) => {
                    carry_from(&mut sides, side);
                }
            }
        }
        while carry_from(&mut sides, 0) | carry_from(&mut sides, 1) {}
        for side in [0, 1] {
            while posted[side] < arrives[side].len() as u64 {
                posted[side] += 1;
                receive_at(&mut sides[side], posted[side]);
                while carry_from(&mut sides, 0) | carry_from(&mut sides, 1) {}
            }
        }
        for side in [0, 1] {
            prop_assert_eq!(sides[side].vi.state(), ViState::Connected);
            prop_assert!(!sides[side].vi.take_happened().has_errors());
            let completed = sides[side].ram.completed.borrow();
            let received: Vec<(u32, Option<u32>)> = completed
                .iter()
                .filter(|(name, _)| *name < 1000)
                .map(|(_, c)| (c.bytes, c.status.has(Status::IMMEDIATE).then_some(c.immediate)))
                .collect();
            prop_assert!(completed.iter().all(|(_, c)| !c.status.is_error()));
            prop_assert_eq!(&received, &arrives[side]);
            prop_assert_eq!(completed.len() - received.len(), expected[side], "all that was sent has completed");
        }
    }

    /// A peer that says any counts: what it is sent beyond its receives ends its own connection, or waits; nothing panics.
    #[test]
    fn counts_that_lie_grant_no_more_than_a_queue_holds(
        counts in prop::collection::vec(
            prop_oneof![0..200u32, any::<u32>(), u32::MAX - 3..=u32::MAX, 0x7fff_fff0..0x8000_0010u32], 1..40),
        sends in 1..60u64,
    ) {
        let (mut one, _) = credited(Reliability::Delivery);
        for name in 0..sends {
            let message = send(&one, name, BASE, 8);
            one.post(Queue::Send, message);
        }
        let mut most = 0;
        for count in counts {
            one.hear(&ViFrame::Credit { receives: count }, &[]);
            most = most.max(if count <= (1 << 20) + 60 { count } else { 0 });
        }
        prop_assert!(one.line.frames.len() as u64 <= u64::from(most).min(sends));
        prop_assert_eq!(one.vi.state(), ViState::Connected);
        one.vi.disconnect(&mut one.ram);
        prop_assert_eq!(one.completed().len() as u64, sends);
    }
}

#[test]
fn counts_that_come_again_or_late_change_nothing() {
    let (mut one, _) = credited(Reliability::Delivery);
    let gone = |one: &mut Side, receives| {
        one.hear(&ViFrame::Credit { receives }, &[]);
        one.line.frames.len()
    };
    for name in 0..10 {
        let message = send(&one, name, BASE, 8);
        one.post(Queue::Send, message);
    }
    assert_eq!(
        [3, 3, 1, 0, 5, 4, u32::MAX, 1 << 31, 6].map(|count| gone(&mut one, count)),
        [3, 3, 3, 3, 5, 5, 5, 5, 6]
    );
}

#[test]
fn what_is_told_is_gathered() {
    let frames = |side: &mut Side| side.line.frames.drain(..).filter(|(frame, _)| is_credit(frame)).count();
    let (mut one, mut other) = credited(Reliability::Delivery);
    (0..32).for_each(|name| receive_at(&mut other, name));
    assert_eq!(frames(&mut other), 6, "1, 2, 4, 8, 16 and 32 of 32");
    one.hear(&ViFrame::Credit { receives: 32 }, &[]);
    let mut told = 0;
    for name in 0..320 {
        let message = send(&one, name, BASE, 8);
        one.post(Queue::Send, message);
        while let Some((frame, payload)) = one.line.frames.pop_front() {
            other.hear(&frame, &payload);
        }
        while !matches!(other.vi.dequeue(Queue::Receive), Dequeue::Pending | Dequeue::Empty) {
            receive_at(&mut other, name);
        }
        while !matches!(one.vi.dequeue(Queue::Send), Dequeue::Pending | Dequeue::Empty) {}
        while let Some((frame, payload)) = other.line.frames.pop_front() {
            told += u32::from(is_credit(&frame));
            one.hear(&frame, &payload);
        }
    }
    assert_eq!((one.vi.is_empty(Queue::Send), told), (true, 20), "one for half of the queue");
}

fn is_credit(frame: &ViFrame) -> bool {
    matches!(frame, ViFrame::Credit { .. })
}

#[test]
fn without_it_nothing_is_told_and_a_count_ends_the_connection() {
    let (mut one, mut other) = connected(Reliability::Delivery);
    receive_at(&mut other, 1);
    carry(&mut one, &mut other);
    assert!(other.line.frames.is_empty() && !other.vi.has_receives_to_tell());
    other.hear(&ViFrame::Credit { receives: 1 }, &[]);
    assert_eq!(other.vi.state(), ViState::Error);
    assert!(other.vi.take_happened().has(AsyncError::Transport));
}

#[test]
fn a_descriptor_with_a_mistake_takes_no_receive() {
    let (mut one, mut other) = credited(Reliability::Unreliable);
    receive_at(&mut other, 1);
    carry(&mut one, &mut other);
    // It has taken the receive, and finds its memory gone when there is room.
    let permits = MemoryAttributes { tag: one.tag, remote_write: false, remote_read: false };
    let soon_gone = one.protection.register(BASE, 64, permits).unwrap();
    one.line.room = 0;
    let message = send(&one, 5, BASE, 8);
    let mut doomed = message;
    doomed.segments = Segments::NONE;
    doomed.segments.push(LocalPlace { address: BASE, handle: soon_gone, bytes: 8 }).unwrap();
    one.post(Queue::Send, doomed);
    one.protection.deregister(BASE, soon_gone).unwrap();
    let message = send(&one, 6, BASE, 8);
    one.post(Queue::Send, message);
    one.line.room = usize::MAX;
    carry(&mut one, &mut other);
    assert_eq!(one.completed(), [(5, Status(0x5)), (6, Status::DONE)]);
    assert_eq!(other.completed(), [(1, DONE_RECEIVE)]);
}
