use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::layout::{awaited, link, record};
use crate::sync::Ordering;

const HEAD: usize = 6;

/// What a receiver gets: the number in the head, and the payload.
fn take(link: &mut Link<'_>, returns: &mut Returns<'_>) -> Result<Option<(u32, Vec<u8>)>, Error> {
    let mut data = [0; RECORD_BYTES_MAX];
    let Some(message) = link.receive::<HEAD>(&mut data)? else { return Ok(None) };
    let payload = match message.payload {
        Payload::Copied(bytes) => data[..bytes].to_vec(),
        Payload::Block { block, bytes } => {
            returns.hold(block)?;
            let place = link.place(block, bytes);
            let payload = (0..bytes as usize).map(|index| peek(place.wrapping_add(index))).collect();
            returns.give_back(block)?;
            payload
        }
    };
    Ok(Some((message.head[0], payload)))
}

fn peek(byte: *const u8) -> u8 {
    // SAFETY: the link checked that the byte lies inside the section.
    unsafe { byte.read_volatile() }
}

fn head(number: u32) -> [u32; HEAD] {
    [number, 1, 2, 3, 4, u32::MAX]
}

fn payload(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index as u32 * 7 + number) as u8).collect()
}

#[test]
fn messages_of_every_length_arrive_over_the_end_of_the_ring() {
    let memory = Memory::new(64, 2, 4096);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    for number in (0..RECORD_BYTES_MAX as u32).step_by(if cfg!(miri) { 59 } else { 1 }) {
        let bytes = number as usize;
        let sent = if bytes + HEAD * 4 <= RECORD_BYTES_MAX {
            here.send(&head(number), &payload(number, bytes), 0)
        } else {
            here.send_block(&head(number), &payload(number, bytes), 0)
        };
        assert_eq!(sent, Ok(()), "{number}");
        assert_eq!(take(&mut there, &mut returns), Ok(Some((number, payload(number, bytes)))));
        assert_eq!(take(&mut there, &mut returns), Ok(None));
    }
    assert_eq!(here.send(&head(0), &[0; RECORD_BYTES_MAX], 0), Err(Error::TooLong));
    assert_eq!(here.send_block(&head(0), &[0; 4097], 0), Err(Error::TooLong));
}

#[test]
fn what_is_brief_comes_as_a_word_and_nothing_else_does() {
    let memory = Memory::new(4, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    assert_eq!(there.receive_brief::<HEAD>(), None);
    for number in 0..12 {
        let bytes = number as usize;
        let sent = payload(number, bytes);
        here.send(&head(number), &sent, 0).unwrap();
        here.send(&head(number), &sent, 0).unwrap();
        let brief = there.receive_brief::<HEAD>();
        assert_eq!(brief.is_some(), bytes <= BRIEF_BYTES_MAX, "{number}");
        if let Some(Brief { head: [first, ..], bytes, word }) = brief {
            assert_eq!((first, &word.to_le_bytes()[..bytes]), (number, &*sent));
        } else {
            assert_eq!(take(&mut there, &mut returns), Ok(Some((number, sent.clone()))));
        }
        assert_eq!(take(&mut there, &mut returns), Ok(Some((number, sent))));
        assert_eq!((there.receive_brief::<HEAD>(), take(&mut there, &mut returns)), (None, Ok(None)));
    }
    // A block's record is as brief.
    here.send_block(&head(1), &payload(1, 60), 0).unwrap();
    assert_eq!(there.receive_brief::<HEAD>(), None);
    assert_eq!(take(&mut there, &mut returns), Ok(Some((1, payload(1, 60)))));
}

#[test]
fn laps_that_wrap_are_told_apart() {
    let memory = Memory::new(4, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    let laps = if cfg!(miri) { 40 } else { (1 << 16) + 3 };
    for number in 0..laps * 4 / 3 {
        here.send(&head(number), &[7; 100], 0).unwrap();
        assert!(take(&mut there, &mut returns).unwrap().is_some());
        assert_eq!(take(&mut there, &mut returns), Ok(None));
    }
}

#[test]
fn payload_is_never_taken_for_a_tag() {
    let memory = Memory::new(4, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    // Each word of the payload is what the tag of some lap would be.
    for lap in 1..20u32 {
        let tag = (lap << 16 | 100).to_le_bytes();
        let bytes: Vec<u8> = tag.iter().copied().cycle().take(90).collect();
        here.send(&head(lap), &bytes, 0).unwrap();
        assert_eq!(take(&mut there, &mut returns), Ok(Some((lap, bytes))));
        assert_eq!(take(&mut there, &mut returns), Ok(None));
    }
}

#[test]
fn a_full_lane_has_room_again_after_a_quarter() {
    let memory = Memory::new(16, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    let fill = |here: &mut Link<'_>| (0..).take_while(|number| here.send(&head(*number), &[], 0).is_ok()).count();
    assert_eq!(fill(&mut here), 16);
    assert_eq!(here.has_room(), Ok(false));
    assert_eq!(here.announce(true), Ok(false));
    for _ in 0..3 {
        take(&mut there, &mut returns).unwrap();
        assert!(!there.must_ring());
    }
    take(&mut there, &mut returns).unwrap();
    assert!(there.must_ring(), "a quarter was read and the sender sleeps");
    here.withdraw();
    assert_eq!(fill(&mut here), 4);
    assert_eq!(here.send(&head(0), &[], 0), Err(Error::Full));
}

#[test]
fn spare_slots_are_kept() {
    let memory = Memory::new(16, 1, 64);
    let (mut here, _) = memory.side(0);
    let sent = (0..).take_while(|number| here.send(&head(*number), &[], 4).is_ok()).count();
    assert_eq!(sent, 12);
    assert_eq!(here.send_block(&head(0), &[], 4), Err(Error::Full));
    assert_eq!(here.send_block(&head(0), &[], 0), Ok(()), "the block that was refused is still free");
}

#[test]
fn the_block_that_came_back_last_is_used_first() {
    let memory = Memory::new(16, 4, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    let mut data = [0; RECORD_BYTES_MAX];
    let mut next = |here: &mut Link<'_>, there: &mut Link<'_>| {
        here.send_block(&head(0), &[1], 0).unwrap();
        match there.receive::<HEAD>(&mut data).unwrap().unwrap().payload {
            Payload::Block { block, .. } => block,
            copied => panic!("{copied:?}"),
        }
    };
    let blocks: Vec<u32> = (0..4).map(|_| next(&mut here, &mut there)).collect();
    assert_eq!(blocks, [0, 1, 2, 3]);
    assert_eq!(here.send_block(&head(0), &[1], 0), Err(Error::NoBlock));
    for block in [0, 1, 2, 3] {
        returns.hold(block).unwrap();
    }
    for block in [1, 3, 2] {
        assert_eq!(returns.give_back(block), Ok(false));
    }
    assert_eq!([next(&mut here, &mut there), next(&mut here, &mut there)], [2, 3]);
    assert_eq!((returns.hold(0), returns.give_back(1)), (Err(Error::PeerFault), Err(Error::NotHeld)));
}

#[test]
fn a_sleeper_is_rung_and_a_busy_one_is_not() {
    let memory = Memory::new(16, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    here.send(&head(1), &[], 0).unwrap();
    assert!(!here.must_ring());
    assert_eq!(there.announce(false), Ok(true), "it is there already");
    there.withdraw();
    take(&mut there, &mut returns).unwrap();
    assert_eq!(there.announce(false), Ok(false));
    here.send_block(&head(2), &[1, 2], 0).unwrap();
    assert!(here.must_ring() && !here.must_ring(), "one ring for what was sent");
    there.withdraw();
    // A sender that waits for the only block is rung at its return.
    assert_eq!(here.send_block(&head(3), &[], 0), Err(Error::NoBlock));
    assert_eq!(here.announce(true), Ok(false));
    let mut data = [0; RECORD_BYTES_MAX];
    there.receive::<HEAD>(&mut data).unwrap();
    returns.hold(0).unwrap();
    assert_eq!(returns.give_back(0), Ok(true));
    assert_eq!(here.has_room(), Ok(true));
}

#[test]
fn who_sleeps_for_some_classes_is_rung_for_those() {
    let memory = Memory::new(16, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    let sends = |here: &mut Link<'_>, class: Option<u8>| {
        here.send(&head(1), &[], 0).unwrap();
        if let Some(class) = class {
            here.tell_class(class);
        }
        here.must_ring()
    };
    assert_eq!(there.announce_classes(0b1001, false), Ok(false));
    assert_eq!(
        [Some(1), Some(0), Some(2), Some(3), Some(7), None].map(|class| sends(&mut here, class)),
        [false, true, false, true, false, false]
    );
    assert_eq!([0, 1, 3, 7].map(|class| here.must_ring_to_empty(class)), [true, false, true, false]);
    assert_eq!(there.announce(false), Ok(true), "what nobody was rung for is there all the same");
    assert!(here.must_ring_to_empty(1));
    assert!(sends(&mut here, Some(6)) && sends(&mut here, None), "who sleeps for all is rung for each");
    there.withdraw();
    assert!(!sends(&mut here, Some(0)), "awake");
    for _ in 0..9 {
        assert!(take(&mut there, &mut returns).unwrap().is_some());
    }
    // For no class at all: for room alone.
    assert_eq!(there.announce_classes(0, true), Ok(true), "there is room");
}

#[test]
fn lines_ahead_are_told_in_streams_only_and_lie_behind_the_next_record() {
    let memory = Memory::new(16, 1, 64);
    let (mut here, _) = memory.side(0);
    let (mut there, mut returns) = memory.side(1);
    let slot = |position: u32| {
        let word = memory.shape.slots_at() + position % 16 * record::WORDS;
        std::ptr::from_ref(&memory.sections[0][word as usize]).cast::<u8>()
    };
    for sent in 1..=14 {
        assert_eq!(here.send(&head(0), &[], 0), Ok(()));
        assert_eq!(here.lines_ahead(), Some([slot(sent + 2), slot(sent + 3)]), "{sent}");
    }
    // Who answers has perhaps nothing more to send.
    assert!(there.is_ready_in_lane() && !here.is_ready_in_lane());
    assert_eq!(there.send(&head(0), &[], 0), Ok(()));
    assert!(take(&mut there, &mut returns).unwrap().is_some());
    let (_, mut returns) = memory.side(0);
    assert!(take(&mut here, &mut returns).unwrap().is_some());
    assert_eq!((here.send(&head(0), &[], 0), here.lines_ahead()), (Ok(()), None));
    assert_eq!(here.lines_ahead(), Some([slot(17), slot(18)]));
}

/// Every word that a hostile peer may have written, alone, at the place where it is read next.
#[test]
fn impossible_words_break_the_link_and_nothing_else() {
    let tag = |lap: u32, mark: u32, bytes: u32| lap << 16 | mark << 12 | bytes;
    for word in
        [tag(2, 0, 30), tag(0xffff, 0, 30), tag(1, 15, 0), tag(1, 0, 23), tag(1, 0, 961), tag(1, 0, 0xfff), 1 << 31]
    {
        let memory = Memory::new(16, 1, 64);
        let (mut there, mut returns) = memory.side(1);
        memory.sections[0][(memory.shape.slots_at() + record::TAG) as usize].store(word, Ordering::Relaxed);
        assert!(there.is_ready() && there.announce(false) == Ok(true));
        assert_eq!(take(&mut there, &mut returns), Err(Error::PeerFault), "{word:08x}");
        memory.sections[0][(memory.shape.slots_at() + record::TAG) as usize].store(0, Ordering::Relaxed);
        assert_eq!(take(&mut there, &mut returns), Err(Error::PeerFault), "broken for good");
    }
    for taken in [1, 17, u32::MAX] {
        let memory = Memory::new(16, 1, 64);
        let (mut here, _) = memory.side(0);
        memory.sections[1][link::TAKEN as usize].store(taken, Ordering::Relaxed);
        let results: Vec<_> = (0..17).map(|_| here.send(&head(0), &[], 0)).collect();
        assert!(results[..16].iter().all(|sent| sent.is_ok()));
        let expected = if taken == 1 { Ok(()) } else { Err(Error::PeerFault) };
        assert_eq!(results[16], expected, "{taken} of 16 sent");
    }
    for entry in [1 << 16, 1 << 16 | 1, 1 << 16 | 0xffff] {
        let memory = Memory::new(16, 1, 64);
        let (mut here, _) = memory.side(0);
        memory.sections[1][link::RETURNS as usize].store(entry, Ordering::Relaxed);
        assert_eq!(here.send_block(&head(0), &[], 0), Err(Error::PeerFault), "{entry:08x}");
        assert_eq!(here.has_room(), Err(Error::PeerFault));
    }
}

#[test]
fn blocks_that_are_none_are_refused() {
    for (block, bytes) in [(1u32, 0u32), (0, 65), (u32::MAX, 1), (0, u32::MAX)] {
        let memory = Memory::new(16, 1, 64);
        let (mut there, mut returns) = memory.side(1);
        let (own, peer) = (OwnWords::of(&memory.sections[0]), OwnWords::of(&memory.sections[1]).as_peer());
        let slots = own.part(memory.shape.slots_at(), 16 * record::WORDS);
        let mut liar = Sender::new(slots, peer.part(link::TAKEN, 1)).unwrap();
        let mut named = [0; 8];
        named[..4].copy_from_slice(&block.to_le_bytes());
        named[4..].copy_from_slice(&bytes.to_le_bytes());
        liar.send(1, &head(0), &named, 0).unwrap();
        assert_eq!(take(&mut there, &mut returns), Err(Error::PeerFault));
    }
}

#[test]
fn views_that_are_too_short_are_refused() {
    let memory = Memory::new(16, 1, 64);
    let short = &memory.sections[0][..memory.sections[0].len() - 1];
    let peer = OwnWords::of(&memory.sections[1]).as_peer();
    assert!(matches!(Link::new(OwnWords::of(short), peer, memory.shape), Err(Error::Plan)));
    for shape in [(3, 1, 64), (16, 0, 64), (16, 33, 64), (1 << 17, 1, 64), (16, 32, u32::MAX)] {
        let (slots, blocks, block_bytes) = shape;
        let shape = layout::LinkShape { slots, blocks, block_bytes };
        assert!(!shape.is_sound(), "{shape:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    Take,
    Room,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..1200).prop_map(Step::Send),
        4 => Just(Step::Take),
        1 => Just(Step::Room),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 20 } else { 200 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// A queue in ordinary memory is the model.
    #[test]
    fn a_link_is_a_queue(steps in steps()) {
        let memory = Memory::new(64, 3, 2048);
        let (mut here, _) = memory.side(0);
        let (mut there, mut returns) = memory.side(1);
        let mut model = VecDeque::new();
        let mut number = 0;
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    let payload = payload(number, bytes);
                    let sent = match bytes {
                        0..700 => here.send(&head(number), &payload, 0),
                        _ => here.send_block(&head(number), &payload, 0),
                    };
                    match sent {
                        Ok(()) => model.push_back((number, payload)),
                        Err(error) => prop_assert!(matches!(error, Error::Full | Error::NoBlock)),
                    }
                    number += 1;
                }
                Step::Take => prop_assert_eq!(take(&mut there, &mut returns).unwrap(), model.pop_front()),
                Step::Room => {
                    // Who has read everything has given room.
                    there.must_ring();
                    prop_assert!(!model.is_empty() || here.has_room().unwrap());
                }
            }
        }
    }

    /// Whatever stands in the peer's section, nothing panics and every loop ends.
    #[test]
    fn garbage_is_survived(words in proptest::collection::vec((0u32..1200, any::<u32>()), 1..60), lengths in proptest::collection::vec(0usize..2000, 1..60)) {
        let memory = Memory::new(16, 3, 2048);
        let (mut here, mut returns) = memory.side(0);
        for ((place, word), length) in words.iter().zip(lengths.iter().cycle()) {
            let place = *place as usize % memory.sections[1].len();
            memory.sections[1][place].store(*word, Ordering::Relaxed);
            let _ = take(&mut here, &mut returns);
            let _ = if *length < 900 { here.send(&head(0), &vec![1; *length], 0) } else { here.send_block(&head(0), &vec![1; *length], 0) };
            let _ = (here.must_ring(), here.announce(true), here.has_room(), here.is_ready());
            here.withdraw();
        }
        prop_assert_eq!(memory.sections[0][link::WAITING as usize].load(Ordering::Relaxed) & awaited::ROOM, 0);
    }
}

#[test]
fn a_block_is_filled_to_its_last_byte_and_no_further() {
    let memory = Memory::new(16, 2, 4096);
    let ((mut from, _), (mut to, mut returns)) = (memory.side(0), memory.side(1));
    let whole = payload(5, 4096);
    from.send_block(&head(5), &whole, 0).unwrap();
    assert_eq!(from.send_block(&head(6), &payload(6, 4097), 0), Err(Error::TooLong));
    let message = to.receive::<HEAD>(&mut [0; RECORD_BYTES_MAX]).unwrap().unwrap();
    let Payload::Block { block, bytes: 4096 } = message.payload else { panic!("{message:?}") };
    returns.hold(block).unwrap();
    let mut copy = vec![0; 4096];
    to.copy_block(block, &mut copy);
    assert_eq!(copy, whole);
    let first = to.place(block, 4096);
    assert_eq!(peek(first.wrapping_add(4095)), whole[4095]);
    returns.give_back(block).unwrap();
    assert_eq!(to.receive::<HEAD>(&mut [0; RECORD_BYTES_MAX]), Ok(None));
}
