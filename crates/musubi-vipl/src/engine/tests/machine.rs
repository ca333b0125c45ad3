//! The state table, row by row: call, state, result (facts on VIPL, section 2.1).

use super::*;

/// A VI in each state, with a receive posted where the state permits it to stay.
fn in_state(state: ViState) -> Side {
    let mut side = Side::new(attributes(Reliability::Delivery));
    let peer = PeerVi { attributes: attributes(Reliability::Delivery) };
    match state {
        ViState::Idle => {}
        ViState::ConnectPending => side.vi.request().unwrap(),
        ViState::Connected => side.vi.accept(peer).unwrap(),
        ViState::Error => {
            side.vi.accept(peer).unwrap();
            side.vi.lose(&mut side.ram);
        }
    }
    assert_eq!(side.vi.state(), state);
    side
}

const STATES: [ViState; 4] = [ViState::Idle, ViState::ConnectPending, ViState::Connected, ViState::Error];
const FLUSHED_RECEIVE: Status = Status(0x1_0021);
const FLUSHED_SEND: Status = Status(0x21);

#[test]
fn a_receive_stays_unless_the_connection_was_lost() {
    for state in STATES {
        let mut side = in_state(state);
        let descriptor = send(&side, 7, BASE, 8);
        side.post(Queue::Receive, descriptor);
        let expected = if state == ViState::Error { std::vec![(7, FLUSHED_RECEIVE)] } else { std::vec![] };
        assert_eq!(side.completed(), expected, "{state:?}");
        let dequeued = side.vi.dequeue(Queue::Receive);
        match state {
            ViState::Error => assert_eq!(dequeued, Dequeue::Complete { address: 7, is_error: true }),
            _ => assert_eq!(dequeued, Dequeue::Pending, "{state:?}"),
        }
    }
}

#[test]
fn a_send_goes_out_when_connected_and_completes_in_error_elsewhere() {
    for state in STATES {
        let mut side = in_state(state);
        let descriptor = send(&side, 7, BASE, 8);
        side.post(Queue::Send, descriptor);
        let is_sent = !side.line.frames.is_empty();
        assert_eq!(is_sent, state == ViState::Connected, "{state:?}");
        let status = if is_sent { Status::DONE } else { FLUSHED_SEND };
        assert_eq!(side.completed(), [(7, status)], "{state:?}");
        assert_eq!(side.vi.take_happened().sends, 1);
    }
}

#[test]
fn calls_are_refused_in_the_states_that_the_table_says() {
    let peer = PeerVi { attributes: attributes(Reliability::Delivery) };
    let only = |allowed: ViState, call: &dyn Fn(&mut Side) -> Result<(), StateError>| {
        for state in STATES {
            assert_eq!(call(&mut in_state(state)).is_ok(), state == allowed, "{state:?}");
        }
    };
    only(ViState::Idle, &|side| side.vi.request());
    only(ViState::Idle, &|side| side.vi.accept(peer));
    only(ViState::Idle, &|side| side.vi.set_attributes(attributes(Reliability::Reception)));
    only(ViState::Idle, &|side| side.vi.check_destroyable());
    only(ViState::ConnectPending, &|side| side.vi.establish(peer));
    only(ViState::ConnectPending, &|side| side.vi.refuse());
}

#[test]
fn disconnecting_is_possible_in_every_state_and_flushes_in_order() {
    for state in STATES {
        let mut side = in_state(state);
        side.line.room = 0;
        for name in [1, 2, 3] {
            let descriptor = send(&side, name, BASE, 8);
            side.post(Queue::Receive, descriptor.clone());
            side.post(Queue::Send, Descriptor { address: name + 10, ..descriptor });
        }
        side.vi.disconnect(&mut side.ram);
        assert_eq!(side.vi.state(), ViState::Idle);
        let completed = side.completed();
        for (queue, status) in [(0, FLUSHED_RECEIVE), (10, FLUSHED_SEND)] {
            let of_queue: Vec<_> = completed.iter().filter(|(name, _)| name / 10 * 10 == queue).copied().collect();
            assert_eq!(of_queue, [1, 2, 3].map(|name| (name + queue, status)), "{state:?}");
        }
        assert_eq!(side.vi.check_destroyable(), Err(StateError), "not dequeued");
        for queue in [Queue::Send, Queue::Receive] {
            for _ in 0..3 {
                assert!(matches!(side.vi.dequeue(queue), Dequeue::Complete { is_error: true, .. }));
            }
            assert_eq!(side.vi.dequeue(queue), Dequeue::Empty);
        }
        side.vi.check_destroyable().unwrap();
    }
}

#[test]
fn a_refused_connection_leaves_the_receives() {
    let mut side = in_state(ViState::ConnectPending);
    let descriptor = send(&side, 7, BASE, 8);
    side.post(Queue::Receive, descriptor);
    side.vi.refuse().unwrap();
    assert_eq!((side.vi.state(), side.completed()), (ViState::Idle, std::vec![]));
    assert_eq!(side.vi.dequeue(Queue::Receive), Dequeue::Pending);
}

#[test]
fn a_lost_connection_is_told_once_and_can_be_made_anew() {
    let (mut one, mut other) = connected(Reliability::Delivery);
    let descriptor = send(&one, 7, BASE, 8);
    one.post(Queue::Receive, descriptor);
    one.vi.lose(&mut one.ram);
    one.vi.lose(&mut one.ram);
    assert_eq!(one.completed(), [(7, FLUSHED_RECEIVE)]);
    let happened = one.vi.take_happened();
    assert!(happened.has(AsyncError::ConnectionLost) && happened.receives == 1);
    assert!(!one.vi.take_happened().has(AsyncError::ConnectionLost));
    one.vi.disconnect(&mut one.ram);
    other.vi.disconnect(&mut other.ram);
    let peer = PeerVi { attributes: attributes(Reliability::Delivery) };
    one.vi.accept(peer).unwrap();
    other.vi.accept(peer).unwrap();
    let (descriptor, receive) = (send(&one, 8, BASE, 8), send(&other, 9, BASE, 8));
    other.post(Queue::Receive, receive);
    one.post(Queue::Send, descriptor);
    carry(&mut one, &mut other);
    assert_eq!((one.completed(), other.completed()), (std::vec![(8, Status::DONE)], std::vec![(9, DONE_RECEIVE)]));
}

#[test]
fn one_descriptor_too_many_is_refused_and_told() {
    let mut side = in_state(ViState::Idle);
    let descriptor = send(&side, 7, BASE, 8);
    for _ in 0..LIMITS.descriptors {
        side.post(Queue::Receive, descriptor.clone());
    }
    assert_eq!(side.vi.post(Queue::Receive, |place| *place = descriptor, &mut side.ram), Err(Overrun));
    assert!(side.vi.take_happened().has(AsyncError::Overrun));
}

#[test]
fn an_empty_queue_is_told_from_one_that_is_not_done() {
    let mut side = in_state(ViState::Connected);
    assert_eq!(side.vi.dequeue(Queue::Receive), Dequeue::Empty);
    let descriptor = send(&side, 7, BASE, 8);
    side.post(Queue::Receive, descriptor);
    assert_eq!(side.vi.dequeue(Queue::Receive), Dequeue::Pending);
}

#[test]
fn attributes_must_be_alike_but_for_what_peers_may() {
    let one = attributes(Reliability::Delivery);
    assert_eq!(one.fits(&ViAttributes { remote_write: false, remote_read: false, tag: TagHandle(9), ..one }), Ok(()));
    let other = ViAttributes { reliability: Reliability::Reception, ..one };
    assert_eq!(one.fits(&other), Err(Mismatch::Reliability));
    assert_eq!(one.fits(&ViAttributes { transfer_bytes_max: 1, ..one }), Err(Mismatch::TransferBytes));
    assert_eq!(one.fits(&ViAttributes { class: 0, ..one }), Err(Mismatch::Class));
    for level in Reliability::ALL {
        assert_eq!(Reliability::from_bits(level.bit()), Some(level));
    }
    assert_eq!((Reliability::from_bits(0), Reliability::from_bits(3)), (None, None));
}
