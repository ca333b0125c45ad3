//! Descriptors as programs write them.

use super::*;
use proptest::prelude::*;

#[derive(Debug)]
struct Written {
    control: ControlWords,
    segments: Vec<SegmentWords>,
}

/// A descriptor with these control bits, this length and these segments.
fn written(bits: u16, length: u32, segments: &[SegmentWords]) -> Written {
    let count = segments.len() as u16;
    let control = ControlWords { segments: count, control: bits, immediate: 7, length };
    Written { control, segments: segments.to_vec() }
}

fn read(written: &Written, queue: Queue) -> Descriptor {
    let mut descriptor = Descriptor::NONE;
    read_over(&mut descriptor, written, queue);
    descriptor
}

fn read_over(place: &mut Descriptor, written: &Written, queue: Queue) {
    place.read((99, MemoryHandle::NONE), &written.control, &written.segments, queue, &LIMITS);
}

#[test]
fn every_field_is_taken() {
    let descriptor = read(&written(0b1101, 30, &[(5, 6, 99), (10, 1, 10), (20, 2, 20)]), Queue::Send);
    assert_eq!((descriptor.address, descriptor.operation, descriptor.refused), (99, Operation::Write, None));
    assert_eq!((descriptor.immediate, descriptor.fence), (Some(7), true));
    assert_eq!(descriptor.remote, RemotePlace { address: 5, handle: MemoryHandle(6) });
    let place = |address, handle, bytes| LocalPlace { address, handle: MemoryHandle(handle), bytes };
    assert_eq!(descriptor.segments.places(), [place(10, 1, 10), place(20, 2, 20)]);
    assert_eq!(descriptor.bytes(), 30);
}

/// Control bits, length, segments, queue, and what is wrong.
type Case<'c> = (u16, u32, &'c [SegmentWords], Queue, Option<Status>);

#[test]
fn what_is_no_descriptor_is_refused() {
    let format = Some(Status::FORMAT_ERROR);
    let length = Some(Status::LENGTH_ERROR);
    let many: Vec<_> = (0..=LIMITS.segments).map(|_| (0, 0, 0)).collect();
    let cases: [Case<'_>; 14] = [
        (0, 0, &[], Queue::Send, None),
        (4, 0, &[(1, 1, 0)], Queue::Send, None),
        (0, 0, &[], Queue::Receive, None),
        (0, 77, &[(1, 1, 8)], Queue::Receive, None),
        (3, 0, &[(1, 1, 0)], Queue::Send, format),
        (0x10, 0, &[], Queue::Send, format),
        (0x8000, 0, &[], Queue::Receive, format),
        (1, 0, &[], Queue::Send, format),
        (2, 0, &[], Queue::Send, format),
        (2 | 4, 0, &[(1, 1, 0)], Queue::Send, format),
        (1, 0, &[(1, 1, 0)], Queue::Receive, format),
        (0, 0, &many, Queue::Send, format),
        (0, 9, &[(1, 1, 8)], Queue::Send, length),
        (0, 7, &[(1, 1, u32::MAX), (1, 1, 8)], Queue::Send, length),
    ];
    for (bits, bytes, segments, queue, expected) in cases {
        assert_eq!(read(&written(bits, bytes, segments), queue).refused, expected, "{bits:#x} {segments:?}");
    }
    let few = Written { segments: Vec::new(), ..written(0, 8, &[(1, 1, 8)]) };
    assert_eq!(read(&few, Queue::Send).refused, format, "fewer segments than it says");
    assert_eq!(read(&written(0, 0, &many[1..]), Queue::Send).refused, None, "as many as are allowed");
}

#[test]
fn a_receive_ignores_the_bits_of_sends() {
    let descriptor = read(&written(4 | 8, 8, &[(1, 1, 8)]), Queue::Receive);
    assert_eq!((descriptor.refused, descriptor.immediate, descriptor.fence), (None, None, false));
}

/// All that counts of a descriptor.
fn told(descriptor: &Descriptor) -> (Descriptor, Vec<LocalPlace>) {
    let places = descriptor.segments.places().to_vec();
    (Descriptor { segments: Segments::NONE, ..descriptor.clone() }, places)
}

prop_compose! {
    fn any_written()(
        (segments, control) in any::<(u16, u16)>(),
        (immediate, length) in any::<(u32, u32)>(),
        list in prop::collection::vec(any::<SegmentWords>(), 0..12),
        is_true in any::<bool>(),
    ) -> Written {
        let segments = if is_true { list.len() as u16 } else { segments };
        let control = if is_true { control & 0xf } else { control };
        Written { control: ControlWords { segments, control, immediate, length }, segments: list }
    }
}

proptest! {
    #[test]
    fn anything_is_survived_and_leaves_nothing_to_the_next(
        all in prop::collection::vec((any_written(), any::<bool>()), 2),
    ) {
        let mut place = Descriptor::NONE;
        for (written, is_send) in all {
            let queue = if is_send { Queue::Send } else { Queue::Receive };
            read_over(&mut place, &written, queue);
            let sum: u64 = place.segments.places().iter().map(|place| u64::from(place.bytes)).sum();
            prop_assert!(place.refused == Some(Status::LENGTH_ERROR) || sum == u64::from(place.bytes()));
            prop_assert!(place.segments.places().len() <= usize::from(LIMITS.segments));
            prop_assert_eq!(told(&place), told(&read(&written, queue)));
        }
    }

    #[test]
    fn parts_cover_the_places_in_order(
        lengths in prop::collection::vec(0..50u32, 0..7),
        offset in 0..300u32,
        bytes in 0..300u32,
    ) {
        let mut segments = Segments::NONE;
        let mut addresses = Vec::new();
        for (index, &bytes) in lengths.iter().enumerate() {
            let address = 1000 * index as u64;
            segments.push(LocalPlace { address, handle: MemoryHandle(1), bytes }).unwrap();
            addresses.extend((address..).take(bytes as usize));
        }
        let part: Vec<LocalPlace> = segments.part(offset, bytes).collect();
        prop_assert!(part.iter().all(|place| place.bytes > 0));
        let covered: Vec<u64> = part.iter().flat_map(|place| (place.address..).take(place.bytes as usize)).collect();
        let expected: Vec<u64> = addresses.into_iter().skip(offset as usize).take(bytes as usize).collect();
        prop_assert_eq!(covered, expected);
    }
}
