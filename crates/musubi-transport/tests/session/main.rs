//! Two sessions over connections that cut anywhere, deliver in pieces, and overtake each other.

mod answers;
mod exact;
mod landing;
mod random;
mod regulation;
mod times;
mod world;

use std::sync::Arc;

use musubi_transport::Priority;
use musubi_transport::links::{Loss, Report, Sent, SharedBytes};
use musubi_transport::session::{Broken, Hello, Reason, Record, Session, State, Word};
use musubi_transport::topology::Network;
use world::{KINDS, World, header, identity, network, payload, session};

/// Classes of a link.
const CLASSES: u8 = Priority::COUNT as u8;
const MILLISECOND_NS: u64 = 1_000_000;

/// Both sides linked, nothing under way.
fn linked() -> World {
    let mut world = World::new();
    world.settle();
    assert!(world.sessions.iter().all(Session::is_up));
    world
}

#[test]
fn what_a_cut_took_comes_again_and_nothing_twice() {
    let mut world = linked();
    for number in 0..20 {
        world.send(0, 1 + number % (CLASSES - 1), 1500);
    }
    (0..4).for_each(|_| world.write(0, 3333));
    let last = world.connections.len() - 1;
    world.read(1, last, 2222);
    assert!(world.came[1].iter().sum::<usize>() > 0);
    world.cut();
    world.settle();
    assert_eq!(world.came[1].iter().sum::<usize>(), world.sent[0].iter().map(Vec::len).sum::<usize>());
    assert!(world.sessions[0].counts().repeated > 0);
    assert_eq!((world.sessions[1].counts().resumed, world.downs), (1, 0));
}

/// Head and payload lie in two places: whatever of them got through before the cut, the rest joins on.
#[test]
fn a_shared_frame_is_whole_after_a_cut_at_any_byte() {
    let network = Network { piece_bytes: 1000, window_bytes: 20_000, ..Network::default() };
    const PAYLOAD_BYTES: usize = 4200;
    for arrived in 0..PAYLOAD_BYTES + 200 {
        let mut world = World::of(&network, 2500);
        world.settle();
        world.next = 1;
        world.send(0, 1, PAYLOAD_BYTES);
        (0..4).for_each(|round| world.write(0, arrived.saturating_sub(2000 * round).min(2000)));
        let last = world.connections.len() - 1;
        world.read(1, last, arrived);
        world.cut();
        world.settle();
        assert_eq!((world.came[1][1], world.downs), (1, 0), "cut after {arrived} bytes");
    }
}

#[test]
fn shared_memory_is_let_go_when_it_is_acknowledged_or_the_link_ends() {
    let mut world = linked();
    let bytes = Arc::new(payload(0, 5000));
    let users = || Arc::strong_count(&bytes) - 1;
    let header = header(1, bytes.len(), 0);
    let shared = SharedBytes::from(Arc::clone(&bytes));
    assert!(matches!(world.sessions[0].enqueue_shared(&header, &shared), Sent::Numbered(_)));
    world.sent[0][1].push(0);
    drop(shared);
    assert_eq!(users(), 1);
    world.write(0, 3000);
    world.cut();
    assert_eq!(users(), 1, "it may have to be sent again");
    world.settle();
    assert_eq!((users(), world.came[1][1]), (0, 1));

    assert!(matches!(world.sessions[0].enqueue_shared(&header, &Arc::clone(&bytes).into()), Sent::Numbered(_)));
    world.cut();
    assert_eq!(users(), 1);
    world.now_ns += u64::from(network().resume_ms) * MILLISECOND_NS;
    world.sessions[0].tick(world.now_ns).unwrap();
    assert_eq!(users(), 0);
}

#[test]
fn a_short_payload_is_copied_though_it_could_be_shared() {
    let mut world = linked();
    let bytes = Arc::new(payload(0, 100));
    let sent = world.sessions[0].enqueue_shared(&header(1, bytes.len(), 0), &Arc::clone(&bytes).into());
    assert!(matches!(sent, Sent::Numbered(_)));
    assert_eq!(Arc::strong_count(&bytes), 1);
}

#[test]
fn a_cut_that_lasts_ends_the_link_on_both_sides_and_the_next_begins_anew() {
    let mut world = linked();
    world.send(0, 1, 100);
    world.cut();
    world.now_ns += u64::from(network().resume_ms) * MILLISECOND_NS;
    for side in 0..2 {
        assert_eq!(world.sessions[side].deadline_ns(), world.now_ns);
        world.sessions[side].tick(world.now_ns).unwrap();
        let report = world.sessions[side].next_report();
        assert!(matches!(report, Some(Report::Down { loss: Loss::Cut, .. })), "{report:?}");
        assert!(!world.sessions[side].is_up());
    }
    world.sent = Default::default();
    world.settle();
    world.send(0, 1, 100);
    world.settle();
    assert_eq!(world.came[1][1], 1);
}

#[test]
fn one_side_that_has_given_up_tells_the_other() {
    let mut world = linked();
    world.cut();
    world.sessions[1].tick(u64::from(network().resume_ms) * MILLISECOND_NS).unwrap();
    assert!(!world.sessions[1].is_up());
    world.settle();
    assert_eq!(world.downs, 2);
    assert_eq!(world.sessions[0].counts().refused.of(Reason::SessionUnknown), 1);
}

#[test]
fn a_successor_ends_the_link_of_its_predecessor_and_late_connections_of_that_are_refused() {
    let mut world = linked();
    world.cut();
    // The predecessor's last connection is under way when it dies.
    world.dial(0);
    let late = world.connections.len() - 1;
    world.sessions[0] = session(0, 2);
    world.used[0] = None;
    world.dial(0);
    let new = world.connections.len() - 1;
    world.read(1, new, usize::MAX);
    // That a hello came proves nothing yet.
    assert_eq!(world.downs, 0);
    world.read(0, new, usize::MAX);
    world.write(0, usize::MAX);
    world.read(1, new, usize::MAX);
    assert_eq!(world.sessions[1].state(), State::Live);
    world.read(1, late, usize::MAX);
    assert_eq!((world.used[1], world.downs), (Some(new), 1));
}

#[test]
fn the_late_hello_of_a_dead_incarnation_that_nobody_knew_changes_nothing() {
    let mut world = World::new();
    world.sessions[0] = session(0, 2);
    world.dial(0);
    let late = world.connections.len() - 1;
    world.sessions[0] = session(0, 3);
    world.used[0] = None;
    world.settle();
    world.send(0, 1, 200);
    world.read(1, late, usize::MAX);
    world.used[1] = None;
    world.cut();
    world.settle();
    assert_eq!((world.downs, world.came[1][1]), (0, 1));
    assert_eq!(world.sessions[1].counts().resumed, 1);
}

#[test]
fn of_two_that_dial_at_once_the_connection_of_the_smaller_is_kept() {
    let mut world = World::new();
    world.dial(0);
    world.dial(1);
    for round in 0..4 {
        for side in 0..2 {
            world.write(side, usize::MAX);
            world.read(side, round % 2, usize::MAX);
            world.read(side, 1 - round % 2, usize::MAX);
        }
    }
    assert_eq!(world.used, [Some(0), Some(0)]);
    assert!(world.sessions.iter().all(Session::is_up));
}

#[test]
fn a_welcome_that_is_lost_costs_nothing() {
    let mut world = World::new();
    world.dial(0);
    world.read(1, 0, usize::MAX);
    world.read(0, 0, usize::MAX);
    assert!(world.sessions[0].is_up() && !world.sessions[1].is_up());
    world.send(0, 1, 500);
    world.cut();
    world.dial(1);
    world.settle();
    assert_eq!((world.downs, world.came[1][1]), (0, 1));
}

#[test]
fn an_urgent_frame_waits_for_one_piece() {
    let mut world = linked();
    for _ in 0..5 {
        world.send(0, 4, 3000);
    }
    world.sessions[0].fill(0, 1);
    world.send(0, 1, 10);
    // What was ready, at most one piece with its heads, then the urgent one.
    world.write(0, 16 + 24 + 300 + 16 + 24 + 10);
    let last = world.connections.len() - 1;
    world.read(1, last, usize::MAX);
    assert_eq!((world.came[1][1], world.came[1][4]), (1, 0));
}

#[test]
fn once_half_is_ready_a_frame_that_does_not_go_whole_waits() {
    let mut world = linked();
    let whole = |length: usize| 16 + 24 + length;
    for _ in 0..3 {
        world.send(0, 1, 700);
    }
    assert_eq!(world.sessions[0].fill(0, 1000), whole(700));
    assert_eq!(world.sessions[0].fill(0, 2 * whole(700)), 2 * whole(700));
    world.settle();
    // Rounded up to pieces of 300: 700 beside 700 does, and what is larger than everything is cut.
    for length in [700, 700, 5000] {
        world.send(0, 1, length);
    }
    assert_eq!(world.sessions[0].fill(0, whole(700) + 601), 2 * whole(700));
    world.write(0, 2 * whole(700));
    assert_eq!(world.sessions[0].fill(0, 1000), whole(1200));
    world.settle();
    assert_eq!(world.came[1][1], world.sent[0][1].len());
}

#[test]
fn the_rest_of_a_large_frame_lands_with_the_next_however_short_it_is() {
    let network = Network { piece_bytes: 16_384, ..Network::default() };
    let mut world = World::of(&network, 64_000);
    world.settle();
    world.send(0, 1, 9000);
    world.sessions[0].fill(0, 64_000);
    let bytes: Vec<u8> = world.sessions[0].slices().flatten().copied().collect();
    let (most, rest) = bytes.split_at(bytes.len() - 80);
    world.sessions[1].input(0, most).unwrap();
    let parts = world.sessions[1].landing().expect("a place for the rest");
    assert_eq!(parts.map(|part| part.len()), [80, 16 + 24, 9000]);
    world.sessions[1].input(0, rest).unwrap();
    world.sessions[0].consumed(0, bytes.len());
    world.reports(1);
    assert_eq!(world.came[1][1], 1);
}

#[test]
fn without_priorities_frames_keep_their_order() {
    let mut world = linked();
    world.cut();
    world.sessions[0] =
        Session::new(&identity(0, 2), identity(1, 0).node, &Network { priorities: false, ..network() }, &KINDS);
    world.used[0] = None;
    world.settle();
    world.send(0, 4, 3000);
    world.send(0, 1, 10);
    let last = world.connections.len() - 1;
    for _ in 0..20 {
        world.write(0, 300);
        world.read(1, last, 300);
        assert!(world.came[1][4] >= world.came[1][1]);
    }
    world.settle();
    assert_eq!((world.came[1][4], world.came[1][1]), (1, 1));
}

#[test]
fn a_full_class_blocks_no_more_urgent_one() {
    for class in 1..CLASSES {
        let mut world = linked();
        while matches!(world.sessions[0].enqueue(&header(class, 900, 0), &[0; 900]), Sent::Numbered(_)) {}
        // Each of the more urgent ones has a share that nobody else could take.
        for urgent in (0..class).rev() {
            let one = world.sessions[0].enqueue(&header(urgent, 900, 0), &[0; 900]);
            assert!(matches!(one, Sent::Numbered(_)), "{class} blocks {urgent}");
            assert!(world.sessions[0].enqueue(&header(class, 900, 0), &[0; 900]) == Sent::Full);
        }
    }
}

#[test]
fn room_is_reported_when_a_refused_frame_would_fit() {
    let mut world = linked();
    while matches!(world.sessions[0].enqueue(&header(4, 900, 0), &[0; 900]), Sent::Numbered(_)) {}
    let last = world.connections.len() - 1;
    let mut room = false;
    for _ in 0..200 {
        world.sessions[0].fill(0, 2000);
        let bytes: Vec<u8> = world.sessions[0].slices().flatten().copied().collect();
        world.sessions[0].consumed(0, bytes.len());
        world.sessions[1].input(0, &bytes).unwrap();
        world.sessions[1].flush();
        world.write(1, usize::MAX);
        let answer: Vec<u8> = world.connections[last].streams[1].bytes.drain(..).collect();
        world.sessions[0].input(0, &answer).unwrap();
        while let Some(report) = world.sessions[0].next_report() {
            room |= matches!(report, Report::Room { .. });
        }
    }
    assert!(room);
    assert_eq!(world.sessions[0].unacknowledged_bytes(), 0);
}

#[test]
fn leaving_says_everything_first() {
    let mut world = linked();
    world.send(0, 3, 2500);
    world.sessions[0].leave();
    assert_eq!(world.sessions[0].enqueue(&header(1, 0, 0), &[]), Sent::NoLink);
    let last = world.connections.len() - 1;
    for round in 0.. {
        if world.sessions[0].has_left() {
            break;
        }
        assert!(round < 1000, "it never has left");
        for side in 0..2 {
            world.write(side, 500);
            world.read(side, last, 500);
        }
    }
    assert_eq!((world.came[1][3], world.downs), (1, 2));
    assert!(!world.sessions[1].is_up());
    let hello = Hello { attempt: 9, ..hello_of(&mut session(1, 2)) };
    assert_eq!(world.sessions[0].accept(0, &hello), Err(Reason::Leaving));
}

/// What a session says first.
fn hello_of(session: &mut Session) -> Hello {
    session.dial(0);
    session.fill(0, usize::MAX);
    let bytes: Vec<u8> = session.slices().flatten().copied().collect();
    Hello::decode(bytes.as_slice().try_into().unwrap()).unwrap()
}

#[test]
fn silence_lets_the_connection_go_and_heartbeats_prevent_it() {
    let mut world = linked();
    for _ in 0..20 {
        world.now_ns += 250 * MILLISECOND_NS;
        let last = world.connections.len() - 1;
        for side in 0..2 {
            world.sessions[side].tick(world.now_ns).unwrap();
            world.write(side, usize::MAX);
        }
        (0..2).for_each(|side| world.read(side, last, usize::MAX));
    }
    world.now_ns += 1000 * MILLISECOND_NS;
    assert_eq!(world.sessions[0].tick(world.now_ns), Err(Broken::Silent));
    assert!(world.sessions[0].is_up() && world.sessions[0].state() == State::Disconnected);
}

#[test]
fn what_breaks_the_protocol_ends_the_link_and_is_counted() {
    let piece = |number: u32, length: u32| {
        let mut bytes = [0; 16];
        bytes[0] = 2;
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let acknowledged_too_much = {
        let mut bytes = [0; 16];
        (bytes[0], bytes[12]) = (3, 77);
        bytes
    };
    for bytes in [[0xff; 16], piece(1, 1), piece(9, 1), piece(1, u32::MAX), acknowledged_too_much] {
        let mut world = linked();
        assert_eq!(world.sessions[0].input(0, &bytes), Err(Broken::Protocol));
        assert_eq!(world.sessions[0].counts().violations, 1);
        let report = world.sessions[0].next_report();
        assert!(matches!(report, Some(Report::Down { loss: Loss::Cut, .. })), "{report:?}");
    }
}

/// A protocol need not use all classes: MCAPI's ends with 4. What is beyond is refused in the record and in the frame's header.
#[test]
fn a_class_that_the_protocol_does_not_use_ends_the_link() {
    let kinds = &musubi_mcapi::engine::frame::KINDS;
    let session_of_mcapi = |side| Session::new(&identity(side, 1), identity(1 - side, 0).node, &network(), kinds);
    for (of_record, of_frame) in [(4, 4), (5, 5), (7, 7), (8, 8), (4, 5), (5, 4)] {
        let mut world = World::new();
        world.sessions[1] = session_of_mcapi(1);
        world.settle();
        world.sessions[0].enqueue(&header(4, 10, 0), &[7; 10]);
        world.sessions[0].fill(0, usize::MAX);
        let mut bytes: Vec<u8> = world.sessions[0].slices().flatten().copied().collect();
        assert_eq!((bytes[0], bytes[1], bytes[Record::BYTES + 1]), (Word::First as u8, 4, 4));
        (bytes[1], bytes[Record::BYTES + 1]) = (of_record, of_frame);
        let right = of_record == 4 && of_frame == 4;
        assert_eq!(world.sessions[1].input(0, &bytes), if right { Ok(()) } else { Err(Broken::Protocol) });
        assert_eq!(world.sessions[1].is_up(), right);
    }
}

/// A frame that is larger than the window passes alone, also after others have passed; a second one waits for it.
#[test]
fn one_frame_alone_always_has_room_again_and_again() {
    let mut world = linked();
    for round in 0..4 {
        for class in 1..CLASSES {
            let large = |world: &mut World| world.sessions[0].enqueue(&header(class, 30_000, 0), &[0; 30_000]);
            assert!(matches!(large(&mut world), Sent::Numbered(_)), "class {class}, round {round}");
            assert_eq!(large(&mut world), Sent::Full, "class {class}, round {round}");
        }
        while world.sessions[0].unacknowledged_bytes() > 0 {
            let last = world.connections.len() - 1;
            world.sessions[0].fill(0, 5000);
            let bytes: Vec<u8> = world.sessions[0].slices().flatten().copied().collect();
            world.sessions[0].consumed(0, bytes.len());
            world.sessions[1].input(0, &bytes).unwrap();
            while world.sessions[1].next_report().is_some() {}
            world.sessions[1].flush();
            world.write(1, usize::MAX);
            world.read(0, last, usize::MAX);
        }
    }
}
