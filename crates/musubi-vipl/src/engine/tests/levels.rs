//! The reliability table: what becomes of a message that does not fit, at each level (facts on VIPL, section 2.3).

use super::*;

const REMOTE_DESCRIPTOR: Status = Status(0x101);

#[test]
fn a_message_without_a_receive() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        let descriptor = send(&one, 1, BASE, 8);
        one.post(Queue::Send, descriptor);
        carry(&mut one, &mut other);
        assert!(other.vi.take_happened().has(AsyncError::ReceiveQueueEmpty), "{level:?}");
        let is_lost = one.vi.take_happened().has(AsyncError::ConnectionLost);
        assert_eq!(is_lost, level.is_reliable(), "{level:?}");
        let expected = if level.is_reliable() { ViState::Error } else { ViState::Connected };
        assert_eq!((one.vi.state(), other.vi.state()), (expected, expected), "{level:?}");
        let status = if level == Reliability::Reception { REMOTE_DESCRIPTOR } else { Status::DONE };
        assert_eq!(one.completed(), [(1, status)], "{level:?}");
    }
}

#[test]
fn a_message_that_is_longer_than_its_receive() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        other.ram.write(BASE, &[0xee; 16]);
        let (receive, next) = (send(&other, 5, BASE, 8), send(&other, 6, BASE + 8, 8));
        other.post(Queue::Receive, receive);
        other.post(Queue::Receive, next);
        let descriptor = send(&one, 1, BASE, 9);
        one.post(Queue::Send, descriptor);
        carry(&mut one, &mut other);
        let completed = other.completed();
        assert_eq!(completed[0], (5, Status(0x1_0009)), "{level:?}");
        assert_eq!(completed.len(), if level.is_reliable() { 2 } else { 1 }, "{level:?}");
        assert_eq!(other.ram.read(BASE, 16), [0xee; 16], "nothing is placed");
        let status = if level == Reliability::Reception { REMOTE_DESCRIPTOR } else { Status::DONE };
        assert_eq!(one.completed(), [(1, status)], "{level:?}");
        assert_eq!(one.vi.state() == ViState::Error, level.is_reliable(), "{level:?}");
        if !level.is_reliable() {
            let descriptor = send(&one, 2, BASE, 8);
            one.post(Queue::Send, descriptor);
            carry(&mut one, &mut other);
            assert_eq!(other.completed(), [(6, DONE_RECEIVE)], "the next fits");
        }
    }
}

fn write_of(side: &Side, name: u64, to: RemotePlace, bytes: u32) -> Descriptor {
    Descriptor { remote: to, ..side.message(name, Operation::Write, &[(BASE, bytes)]) }
}

#[test]
fn a_write_that_is_not_permitted() {
    for level in Reliability::ALL {
        for immediate in [None, Some(9)] {
            let (mut one, mut other) = connected(level);
            other.ram.write(BASE, &[0xee; 16]);
            let receive = send(&other, 5, BASE + 64, 8);
            other.post(Queue::Receive, receive);
            let to = RemotePlace { address: BASE + BYTES as u64 - 4, handle: other.handle };
            let write = Descriptor { immediate, ..write_of(&one, 1, to, 5) };
            one.post(Queue::Send, write);
            carry(&mut one, &mut other);
            let happened = other.vi.take_happened();
            let in_receive = other.completed().first().copied();
            assert_eq!(happened.has(AsyncError::WriteProtection), immediate.is_none() || level.is_reliable());
            match (immediate, level) {
                (Some(_), _) => assert_eq!(in_receive, Some((5, Status(0x3_0081))), "{level:?}"),
                (None, Reliability::Unreliable) => assert_eq!(in_receive, None),
                (None, _) => assert_eq!(in_receive, Some((5, Status(0x1_0021))), "{level:?}"),
            }
            let status = if level == Reliability::Reception { Status(0x2_0081) } else { Status(0x2_0001) };
            assert_eq!(one.completed(), [(1, status)], "{level:?}");
            assert_eq!(one.vi.state() == ViState::Error, level.is_reliable(), "{level:?}");
        }
    }
}

#[test]
fn a_send_ends_when_its_level_says() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        one.line.numbers = Some(0);
        let (receive, descriptor) = (send(&other, 5, BASE, 8), send(&one, 1, BASE, 8));
        other.post(Queue::Receive, receive);
        one.post(Queue::Send, descriptor);
        let is_done = |side: &Side| !side.ram.completed.borrow().is_empty();
        assert_eq!(is_done(&one), level == Reliability::Unreliable, "handed over, {level:?}");
        one.vi.accepted(1, &one.protection, &mut one.line, &mut one.ram);
        assert_eq!(is_done(&one), level != Reliability::Reception, "accepted, {level:?}");
        carry(&mut one, &mut other);
        assert_eq!(one.completed(), [(1, Status::DONE)], "placed, {level:?}");
    }
}

#[test]
fn a_write_lands_and_immediate_data_takes_a_receive() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        let receive = send(&other, 5, BASE + 64, 8);
        other.post(Queue::Receive, receive);
        one.ram.write(BASE, &[1, 2, 3, 4, 5]);
        let to = RemotePlace { address: BASE + 100, handle: other.handle };
        let silent = write_of(&one, 1, to, 5);
        one.post(Queue::Send, silent);
        carry(&mut one, &mut other);
        assert_eq!((other.ram.read(BASE + 99, 7), other.completed()), (std::vec![0, 1, 2, 3, 4, 5, 0], std::vec![]));
        let told = Descriptor { immediate: Some(77), ..write_of(&one, 2, to, 5) };
        one.post(Queue::Send, told);
        carry(&mut one, &mut other);
        let completion = other.ram.completed.borrow_mut().pop().unwrap().1;
        assert_eq!(completion, Completion { bytes: 5, immediate: 77, status: Status(0xb_0001) });
        assert_eq!(one.completed(), [(1, Status(0x2_0001)), (2, Status(0x2_0001))]);
    }
}

#[test]
fn a_read_is_answered_refused_or_not_offered() {
    for level in Reliability::ALL {
        for permitted in [true, false] {
            let (mut one, mut other) = connected(level);
            other.ram.write(BASE + 100, &[1, 2, 3, 4, 5]);
            let permits = MemoryAttributes { tag: other.tag, remote_write: true, remote_read: permitted };
            other.protection.set_attributes(BASE, other.handle, permits).unwrap();
            let from = RemotePlace { address: BASE + 100, handle: other.handle };
            let read = Descriptor { remote: from, ..one.message(1, Operation::Read, &[(BASE, 2), (BASE + 10, 3)]) };
            one.post(Queue::Send, read);
            carry(&mut one, &mut other);
            let status = match (level, permitted) {
                (Reliability::Unreliable, _) => Status(0x4_0003),
                (_, true) => Status(0x4_0001),
                (_, false) => Status(0x4_0081),
            };
            assert_eq!(one.completed(), [(1, status)], "{level:?}");
            let expected = if status == Status(0x4_0001) { [1, 2, 0, 3, 4, 5] } else { [0; 6] };
            let there = [one.ram.read(BASE, 3), one.ram.read(BASE + 10, 3)].concat();
            assert_eq!(there, expected, "{level:?}");
            let is_refused = level.is_reliable() && !permitted;
            assert_eq!(other.vi.take_happened().has(AsyncError::ReadProtection), is_refused, "{level:?}");
            assert_eq!(one.vi.state() == ViState::Error, is_refused, "{level:?}");
        }
    }
}

#[test]
fn what_is_refused_after_its_first_part_says_why() {
    for (operation, status) in [(Operation::SendReceive, Status(0x111)), (Operation::Write, Status(0x2_0091))] {
        let (mut one, mut other) = connected(Reliability::Reception);
        (one.line.payload_bytes_max, one.line.room) = (4, 1);
        let to = RemotePlace { address: BASE, handle: MemoryHandle(77) };
        let message = Descriptor { remote: to, ..one.message(1, operation, &[(BASE, 12)]) };
        one.post(Queue::Send, message);
        carry(&mut one, &mut other);
        assert_eq!(one.completed(), [(1, status)]);
    }
}

#[test]
fn reads_are_answered_in_the_order_in_which_they_were_asked() {
    let (mut one, mut other) = connected(Reliability::Reception);
    other.ram.write(BASE + 100, &[1, 2, 3, 4]);
    other.line.room = 0;
    let receive = send(&other, 5, BASE, 8);
    other.post(Queue::Receive, receive);
    let message = send(&one, 1, BASE, 8);
    one.post(Queue::Send, message);
    for (name, handle) in [(2, other.handle), (3, MemoryHandle(77))] {
        let from = RemotePlace { address: BASE + 100, handle };
        let read = Descriptor { remote: from, ..one.message(name, Operation::Read, &[(BASE + 200, 4)]) };
        one.post(Queue::Send, read);
    }
    carry_one_way(&mut one, &mut other);
    // From here on there is room: what was asked first is answered first, and what is in its place was told before.
    other.line.room = usize::MAX;
    carry(&mut one, &mut other);
    assert_eq!(one.completed(), [(1, Status::DONE), (2, Status(0x4_0001)), (3, Status(0x4_0081))]);
    assert_eq!(one.ram.read(BASE + 200, 4), [1, 2, 3, 4]);
}

#[test]
fn a_mistake_of_the_peers_own_is_not_ours() {
    let (mut one, mut other) = connected(Reliability::Reception);
    other.line.room = 0;
    let receive = send(&other, 5, BASE, 8);
    other.post(Queue::Receive, receive);
    let (message, bad) = (send(&one, 1, BASE, 8), send(&other, 9, BASE + BYTES as u64, 1));
    one.post(Queue::Send, message);
    other.line.room = usize::MAX;
    other.post(Queue::Send, bad);
    carry(&mut one, &mut other);
    assert_eq!(one.completed(), [(1, Status(0x21))], "flushed, with nothing said of it");
}

#[test]
fn a_fence_waits_for_reads_and_what_has_none_does_not() {
    for fence in [false, true] {
        let (mut one, mut other) = connected(Reliability::Delivery);
        let from = RemotePlace { address: BASE, handle: other.handle };
        let read = Descriptor { remote: from, ..one.message(1, Operation::Read, &[(BASE, 8)]) };
        let behind = Descriptor { fence, ..send(&one, 2, BASE, 8) };
        let receive = send(&other, 5, BASE, 8);
        other.post(Queue::Receive, receive);
        one.post(Queue::Send, read);
        one.post(Queue::Send, behind);
        assert_eq!(one.line.frames.len(), if fence { 1 } else { 2 });
        assert_eq!(one.completed(), [], "in order: the send waits for the read");
        carry(&mut one, &mut other);
        assert_eq!(one.completed(), [(1, Status(0x4_0001)), (2, Status::DONE)]);
    }
}

#[test]
fn a_descriptor_with_a_mistake_takes_its_turn() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        one.line.numbers = Some(0);
        let receive = send(&other, 5, BASE, 8);
        other.post(Queue::Receive, receive);
        let (good, bad) = (send(&one, 1, BASE, 8), send(&one, 2, BASE + BYTES as u64, 1));
        let (long, last) = (send(&one, 3, BASE, 4097), send(&one, 4, BASE, 4));
        for descriptor in [good, bad, long, last] {
            one.post(Queue::Send, descriptor);
        }
        carry(&mut one, &mut other);
        let rest = match level.is_reliable() {
            true => [(3, Status(0x21)), (4, Status(0x21))],
            false => [(3, Status(0x9)), (4, Status::DONE)],
        };
        assert_eq!(one.completed(), [&[(1, Status::DONE), (2, Status(0x5))], &rest[..]].concat(), "{level:?}");
        assert_eq!(other.vi.state() == ViState::Error, level.is_reliable(), "the peer hears of it");
    }
}

#[test]
fn a_receive_with_a_mistake_is_used_up_by_a_message() {
    for level in Reliability::ALL {
        let (mut one, mut other) = connected(level);
        let bad = send(&other, 5, BASE + BYTES as u64, 8);
        other.post(Queue::Receive, bad);
        assert_eq!(other.completed(), [], "in its turn");
        let descriptor = send(&one, 1, BASE, 8);
        one.post(Queue::Send, descriptor);
        carry(&mut one, &mut other);
        assert_eq!(other.completed(), [(5, Status(0x1_0005))], "{level:?}");
        assert_eq!(one.vi.state() == ViState::Error, level.is_reliable(), "{level:?}");
    }
}

#[test]
fn what_was_filled_or_sent_in_part_says_so() {
    let (mut one, mut other) = connected(Reliability::Reception);
    (one.line.payload_bytes_max, one.line.room) = (4, 1);
    let (receive, next) = (send(&other, 5, BASE, 8), send(&other, 6, BASE, 8));
    let (message, behind) = (send(&one, 1, BASE, 8), send(&one, 2, BASE, 8));
    other.post(Queue::Receive, receive);
    other.post(Queue::Receive, next);
    one.post(Queue::Send, message);
    one.post(Queue::Send, behind);
    let (frame, payload) = one.line.frames.pop_front().unwrap();
    other.hear(&frame, &payload);
    one.vi.disconnect(&mut one.ram);
    other.vi.lose(&mut other.ram);
    assert_eq!(one.completed(), [(1, Status(0x31)), (2, Status(0x21))]);
    assert_eq!(other.completed(), [(5, Status(0x1_0031)), (6, Status(0x1_0021))]);
}

#[test]
fn the_last_word_goes_out_with_the_call_that_makes_it() {
    for is_read in [false, true] {
        let (mut one, mut other) = connected(Reliability::Delivery);
        if is_read {
            let from = RemotePlace { address: BASE - 1, handle: other.handle };
            let read = Descriptor { remote: from, ..one.message(1, Operation::Read, &[(BASE, 8)]) };
            one.post(Queue::Send, read);
            let (frame, payload) = one.line.frames.pop_front().unwrap();
            other.hear(&frame, &payload);
            assert!(matches!(other.line.frames.pop_front(), Some((ViFrame::ReadRefused { .. }, _))));
        } else {
            let mistaken = Descriptor { refused: Some(Status::FORMAT_ERROR), ..send(&one, 1, BASE, 8) };
            one.post(Queue::Send, mistaken);
            assert!(matches!(one.line.frames.pop_front(), Some((ViFrame::Broken { .. }, _))));
        }
    }
}
