//! Payload that is read to where it stays.

use musubi_transport::links::{Payload, Report, Sent};
use musubi_transport::topology::Network;

use crate::world::{World, bytes_of, header, payload};

/// Whole frames, one piece each.
fn world() -> World {
    let mut world = World::of(&Network { piece_bytes: 65_536, ..Network::default() }, usize::MAX);
    world.settle();
    world
}

/// Sends a frame of so many bytes, and gives what goes over the connection.
fn sent(world: &mut World, length: usize) -> Vec<u8> {
    let number = world.next;
    let taken = world.sessions[0].enqueue(&header(1, length, number), &payload(number, length));
    assert!(matches!(taken, Sent::Numbered(_)));
    world.next += 1;
    world.sessions[0].fill(world.now_ns, usize::MAX);
    let bytes: Vec<u8> = world.sessions[0].slices().flatten().copied().collect();
    world.sessions[0].consumed(world.now_ns, bytes.len());
    bytes
}

/// Reads as `readv` does; gives the bytes of the one frame that this completes, and whether they lie where they were read to.
fn read(world: &mut World, bytes: &[u8], expects: bool) -> (Vec<u8>, bool) {
    let session = &mut world.sessions[1];
    let mut spare = core::ptr::null();
    match session.landing() {
        Some(parts) => {
            assert!(expects, "a place for what is not expected");
            let mut rest = bytes;
            spare = parts[2].as_ptr();
            for part in parts {
                let (here, behind) = rest.split_at(rest.len().min(part.len()));
                part[..here.len()].copy_from_slice(here);
                rest = behind;
            }
            session.landed(world.now_ns, bytes.len() - rest.len()).unwrap();
            session.input(world.now_ns, rest).unwrap();
        }
        None => {
            assert!(!expects, "no place for what is expected");
            session.input(world.now_ns, bytes).unwrap();
        }
    }
    let mut frames = core::iter::from_fn(|| session.next_report()).filter_map(|report| match report {
        Report::Frame { payload, .. } => Some(payload),
        _ => None,
    });
    let frame = frames.next().expect("a frame");
    assert!(frames.next().is_none());
    let in_place = matches!(&frame, Payload::Owned(bytes) if bytes.as_ptr() == spare);
    (bytes_of(&frame).to_vec(), in_place)
}

#[test]
fn a_large_frame_behind_one_like_it_is_not_copied() {
    let mut world = world();
    // How long each is, whether a place was offered for it, and whether it stayed there.
    let frames = [
        (20_000, false, false),
        (20_000, true, true),
        (20_000, true, true),
        (4_096, true, true),
        (5_000, true, false),
        (4_095, true, false),
        (20_000, false, false),
        (100, true, false),
        (20_000, false, false),
        (19_999, true, true),
        (0, true, false),
    ];
    for (length, expects, in_place) in frames {
        let number = world.next;
        let bytes = sent(&mut world, length);
        let (came, stayed) = read(&mut world, &bytes, expects);
        assert!(came == payload(number, length), "{length}");
        assert_eq!(stayed, in_place, "{length}");
    }
}

#[test]
fn one_frame_that_is_ready_is_the_only_one() {
    let mut world = world();
    for (length, parts) in [(10, 1), (100, 1), (40_000, 1)] {
        let number = world.next;
        world.next += 1;
        world.sessions[0].enqueue(&header(1, length, number), &payload(number, length));
        world.sessions[0].fill(world.now_ns, usize::MAX);
        let only = world.sessions[0].only_frame().expect("one frame is ready");
        assert_eq!(only.iter().filter(|part| !part.is_empty()).count(), parts);
        let ready = world.ready(0);
        assert_eq!(only.iter().map(|part| part.len()).sum::<usize>(), ready);
        world.sessions[0].consumed(world.now_ns, ready);
        assert!(world.sessions[0].only_frame().is_none());
    }
}
