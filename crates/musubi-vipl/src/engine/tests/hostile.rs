//! A peer that says anything: nothing outside what was registered for it changes, nothing panics, every descriptor completes
//! once.

use super::*;
use proptest::prelude::*;

/// The region that the peer may write and read lies here; the rest of the memory is not for it.
const OPEN_FROM: u64 = BASE + 4096;
const OPEN_BYTES: u64 = 1000;
/// Posted receives point here.
const RECEIVES_FROM: u64 = BASE + 6000;

fn places(open: MemoryHandle, closed: MemoryHandle) -> impl Strategy<Value = RemotePlace> {
    let address = prop_oneof![
        (OPEN_FROM - 40)..(OPEN_FROM + OPEN_BYTES + 40),
        Just(OPEN_FROM),
        any::<u64>(),
        Just(u64::MAX - 3),
        Just(BASE)
    ];
    let handle = prop_oneof![4 => Just(open), 1 => Just(closed), 1 => any::<u32>().prop_map(MemoryHandle)];
    (address, handle).prop_map(|(address, handle)| RemotePlace { address, handle })
}

fn frames(open: MemoryHandle, closed: MemoryHandle) -> impl Strategy<Value = ViFrame> {
    let bytes = prop_oneof![0..80u32, any::<u32>()];
    let offset = prop_oneof![6 => Just(0u32), 3 => 0..80u32, 1 => any::<u32>()];
    let immediate = prop::option::of(any::<u32>());
    let head = (bytes, offset, immediate);
    prop_oneof![
        4 => head.clone().prop_map(|(bytes, offset, immediate)| ViFrame::Send { bytes, offset, immediate }),
        4 => (places(open, closed), head)
            .prop_map(|(to, (bytes, offset, immediate))| ViFrame::Write { to, bytes, offset, immediate }),
        2 => (places(open, closed), prop_oneof![0..80u32, any::<u32>()]).prop_map(|(from, bytes)| ViFrame::Read { from, bytes }),
        1 => prop_oneof![0..80u32, any::<u32>()].prop_map(|offset| ViFrame::Data { offset }),
        1 => prop_oneof![0..20u32, any::<u32>()].prop_map(|receives| ViFrame::Credit { receives }),
        1 => (0..3u32).prop_map(|messages| ViFrame::ReadRefused { messages }),
        1 => prop_oneof![0..3u32, any::<u32>()].prop_map(|messages| ViFrame::Placed { messages }),
        1 => (0..3u32, any::<u32>()).prop_map(|(messages, status)| ViFrame::Broken { messages, status: Status(status) }),
    ]
}

fn victim(level: Reliability, credit: bool) -> (Side, MemoryHandle) {
    let mut side = Side::new(ViAttributes { credit, ..attributes(level) });
    let closed = MemoryAttributes { tag: side.tag, remote_write: false, remote_read: false };
    side.protection.set_attributes(BASE, side.handle, closed).unwrap();
    let permits = MemoryAttributes { tag: side.tag, remote_write: true, remote_read: true };
    let open = side.protection.register(OPEN_FROM, OPEN_BYTES, permits).unwrap();
    side.ram.write(BASE, &[0xee; BYTES]);
    (side, open)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn neighbours_never_change(
        level in prop::sample::select(&Reliability::ALL[..]),
        // Handles are the same in every run: the first two of a table.
        said in prop::collection::vec(
            (frames(MemoryHandle((1 << 20) | 2), MemoryHandle((1 << 20) | 1)), 0..90usize, any::<bool>()), 1..60),
        room in 0..6usize,
        credit in any::<bool>(),
    ) {
        let (mut side, open) = victim(level, credit);
        prop_assert_eq!((open, side.handle), (MemoryHandle((1 << 20) | 2), MemoryHandle((1 << 20) | 1)));
        side.line.room = room;
        side.vi.accept(PeerVi { attributes: attributes(level) }).unwrap();
        let mut posted = 0;
        for index in 0..8 {
            let receive = send(&side, 100 + index, RECEIVES_FROM + 64 * index, 64);
            let from = RemotePlace { address: 1, handle: MemoryHandle(1) };
            let read = Descriptor { remote: from, ..side.message(200 + index, Operation::Read, &[(RECEIVES_FROM + 600, 40)]) };
            let message = send(&side, 300 + index, BASE, 10);
            side.post(Queue::Receive, receive);
            side.post(Queue::Send, read);
            side.post(Queue::Send, message);
            posted += 3;
        }
        for (frame, bytes, fits) in said {
            let bytes = match frame {
                ViFrame::Send { bytes, offset, .. } | ViFrame::Write { bytes, offset, .. } if fits => {
                    bytes.saturating_sub(offset).min(80) as usize
                }
                _ => bytes,
            };
            side.hear(&frame, &[0x11; 90][..bytes]);
            side.line.frames.pop_front();
        }
        side.vi.disconnect(&mut side.ram);
        let completed = side.completed();
        let mut names: Vec<u64> = completed.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!((names.len(), completed.len()), (posted, posted), "each completes once");
        for queue in [(100..200), (200..400)] {
            let order: Vec<u64> =
                completed.iter().map(|(name, _)| *name).filter(|name| queue.contains(name)).map(|name| name % 100).collect();
            prop_assert!(order.is_sorted(), "in the order of posting: {:?}", order);
        }
        let may_change = [(OPEN_FROM, OPEN_BYTES), (RECEIVES_FROM, 64 * 8), (RECEIVES_FROM + 600, 40)];
        for (at, byte) in side.ram.bytes.borrow().iter().enumerate() {
            let address = BASE + at as u64;
            let may = may_change.iter().any(|&(from, bytes)| address >= from && address < from + bytes);
            prop_assert!(may || *byte == 0xee, "{address:#x} changed");
        }
    }
}

#[test]
fn more_reads_than_agreed_end_the_connection() {
    let (mut one, _) = connected(Reliability::Delivery);
    one.line.room = 0;
    let from = RemotePlace { address: BASE, handle: one.handle };
    for _ in 0..16 {
        one.hear(&ViFrame::Read { from, bytes: 8 }, &[]);
        assert_eq!(one.vi.state(), ViState::Connected);
    }
    one.hear(&ViFrame::Read { from, bytes: 8 }, &[]);
    assert_eq!(one.vi.state(), ViState::Error);
    assert!(one.vi.take_happened().has(AsyncError::Transport));
}

#[test]
fn a_region_that_is_given_up_in_the_middle_is_left_alone() {
    let (mut one, _) = connected(Reliability::Unreliable);
    let to = RemotePlace { address: BASE, handle: one.handle };
    one.hear(&ViFrame::Write { to, bytes: 8, offset: 0, immediate: None }, &[1; 4]);
    one.protection.deregister(BASE, one.handle).unwrap();
    one.hear(&ViFrame::Write { to, bytes: 8, offset: 4, immediate: None }, &[2; 4]);
    assert_eq!(one.ram.read(BASE, 8), [1, 1, 1, 1, 0, 0, 0, 0]);
    assert!(one.vi.take_happened().has(AsyncError::WriteProtection));
    assert_eq!(one.vi.state(), ViState::Connected);
}

#[test]
fn the_last_word_waits_for_room() {
    let (mut one, mut other) = connected(Reliability::Reception);
    let receive = send(&other, 5, BASE, 8);
    other.post(Queue::Receive, receive);
    for name in [1, 2] {
        let descriptor = send(&one, name, BASE, 8);
        one.post(Queue::Send, descriptor);
    }
    other.line.room = 0;
    carry(&mut one, &mut other);
    assert_eq!((other.vi.state(), one.vi.state()), (ViState::Error, ViState::Connected));
    other.line.room = 1;
    carry(&mut one, &mut other);
    assert_eq!(one.completed(), [(1, Status::DONE), (2, Status(0x101))]);
}
