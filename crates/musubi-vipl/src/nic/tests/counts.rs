//! What a NIC counts, and pictures of it: encoded, asked for, decoded.

use musubi_transport::Regulation;
use musubi_transport::notifier::WakeCounts;
use proptest::prelude::*;

use super::*;
use crate::nic::counts::PICTURE_BYTES_MAX;
use crate::wire::NicFrame;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const MS: u64 = 1_000_000;
/// The class of [`PLAIN`].
const CLASS: u8 = 3;

/// The picture that a node gives another one which asks.
fn asked(world: &mut World, from: NodeId, of: NodeId) -> Option<NicPicture> {
    let Host { nic, wires, .. } = world.host(from);
    nic.ask_picture(of, wires);
    world.settle();
    world.host(from).nic.take_picture(of)
}

#[test]
fn descriptors_connections_and_what_rates_hold_back_are_counted() {
    let mut world = World::new(&[A(), B(), node(2, 0)]);
    let (a, b) = (world.host(A()).vi(PLAIN()), world.host(B()).vi(PLAIN()));
    let slow = Regulation { messages_per_s: 10, messages_burst: 2, ..Regulation::NONE };
    world.host(A()).nic.set_pace(a, slow).unwrap();
    world.connect_vis((A(), a), (B(), b));
    world.tick();
    for index in 0..5 {
        world.host(B()).post_plain(b, Queue::Receive, index, 100 * index, 100);
        world.host(A()).post_plain(a, Queue::Send, index, 100 * index, 100);
    }
    world.settle();
    world.now_ns += 100 * MS;
    world.tick();
    world.settle();
    let counts = world.host(A()).nic.class_counts(CLASS);
    assert_eq!((counts.posted, counts.completed, counts.flushed), (5, 3, 0));
    assert_eq!((counts.held, counts.held_ns), (2, 100 * MS), "one waited, one waits");
    world.disconnect(A(), a);
    let counts = world.host(A()).nic.class_counts(CLASS);
    assert_eq!((counts.posted, counts.completed, counts.flushed), (5, 5, 2));
    let seen = asked(&mut world, node(2, 0), A()).unwrap();
    assert_eq!((seen.vis, seen.connected, seen.in_error, seen.connections, seen.lost), (1, 0, 0, 1, 0));
    let seen = asked(&mut world, node(2, 0), B()).unwrap();
    assert_eq!((seen.vis, seen.connected, seen.in_error, seen.connections, seen.lost), (1, 0, 1, 1, 1));
    let of_class = seen.classes.iter().find(|picture| picture.class == u64::from(CLASS)).unwrap();
    assert_eq!((of_class.vis, of_class.counts.posted, of_class.counts.flushed), (1, 5, 2));
    assert_eq!(seen.classes.len(), 8);
    // What is no more stays counted.
    let before = world.host(A()).nic.class_counts(CLASS);
    world.host(A()).all_done(a, Queue::Send);
    world.host(A()).nic.note_handled(a, 7);
    world.host(A()).nic.note_handled(a, 5);
    world.host(A()).nic.destroy_vi(a).unwrap();
    world.host(A()).nic.note_handled(a, 9);
    assert_eq!(world.host(A()).nic.class_counts(CLASS), ClassCounts { handled: 2, handled_ns: 12, ..before });
}

#[test]
fn only_who_was_asked_gives_a_picture_and_once() {
    let mut world = World::new(&[A(), B()]);
    assert!(asked(&mut world, A(), B()).is_some());
    assert_eq!(world.host(A()).nic.take_picture(B()), None, "taken");
    // Asked anew over the link that stands.
    assert!(asked(&mut world, A(), B()).is_some());
    let unasked = NicFrame::Picture(NicPicture::default().encode());
    let said = |world: &mut World, frame: &NicFrame| {
        let (header, payload) = frame.write(ViName::default(), ViName::default(), Priority::MOST_URGENT, 0);
        let before = world.host(A()).nic.refused();
        world.report(A(), Report::Frame { peer: B(), header, payload: Payload::of_bytes(&payload) });
        world.host(A()).nic.refused() - before
    };
    assert_eq!(said(&mut world, &unasked), 1);
    assert_eq!(world.host(A()).nic.take_picture(B()), None);
    let Host { nic, wires, .. } = world.host(A());
    nic.ask_picture(B(), wires);
    assert_eq!(said(&mut world, &NicFrame::Picture(alloc::vec![7; 100])), 1, "no picture");
    assert_eq!(said(&mut world, &unasked), 0);
    assert_eq!(world.host(A()).nic.take_picture(B()), Some(NicPicture::default()));
}

#[test]
fn what_a_picture_does_not_have_is_0_and_what_nobody_knows_is_passed_over() {
    let mut bytes = alloc::vec![1, 0, 0, 0, 99, 0, 2, 0, 5, 5];
    assert_eq!(NicPicture::decode(&bytes), None, "without the NIC itself");
    bytes.extend([1, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(NicPicture::decode(&bytes), Some(NicPicture { vis: 9, ..NicPicture::default() }));
    assert_eq!(NicPicture::decode(&bytes[..bytes.len() - 1]), None);
    bytes[0] = 2;
    assert_eq!(NicPicture::decode(&bytes), None, "another version");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 10 } else { 500 }) })]

    #[test]
    fn a_picture_is_read_as_it_was_written(seed in any::<u64>(), classes in 0..9_u64) {
        let mut next = seed;
        let mut value = || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            next
        };
        let counts = ClassCounts { asked: value(), longest_ns: value(), held_ns: value(), flushed: value(), ..ClassCounts::default() };
        let by_rule = WakeCounts { frames: value(), longest_deferral_ns: value(), ..WakeCounts::default() };
        let picture = NicPicture {
            vis: value(),
            errors_lost: value(),
            classes: (0..classes.min(8)).map(|class| ClassPicture { class, vis: class, by_rule, counts }).collect(),
            ..NicPicture::default()
        };
        let bytes = picture.encode();
        prop_assert!(bytes.len() <= PICTURE_BYTES_MAX);
        prop_assert_eq!(NicPicture::decode(&bytes), Some(picture));
    }

    #[test]
    fn bytes_of_any_kind_are_a_picture_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..400), like in any::<bool>()) {
        let mut bytes = bytes;
        if like && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[1, 0, 0, 0]);
        }
        if let Some(picture) = NicPicture::decode(&bytes) {
            prop_assert!(picture.classes.len() <= 8);
        }
    }
}
