//! Two nodes that meet, part, leave and begin anew, turn by turn and against each other's garbage.

use proptest::prelude::*;

use super::*;
use crate::layout::{LINK_MAGIC, LINK_VERSION, link, record};
use crate::sync::Ordering;

const NUMBERS: [u16; 2] = [3, 7];

impl Memory {
    /// A new incarnation of one node.
    fn begin(&self, node: usize, incarnation: u32) -> Meeting<'_> {
        self.begin_as(node, incarnation, 0xabcd_ef01_2345)
    }

    fn begin_as(&self, node: usize, incarnation: u32, hash: u64) -> Meeting<'_> {
        let (own, peer) = (OwnWords::of(&self.sections[node]), OwnWords::of(&self.sections[1 - node]).as_peer());
        let numbers = [NUMBERS[node], NUMBERS[1 - node]];
        Meeting::begin(own, peer, self.shape, hash, numbers, incarnation)
    }
}

/// Both in turns until neither has anything to do; gives what each was told last.
fn settle<'m>(one: &mut Meeting<'m>, other: &mut Meeting<'m>) -> [Option<u32>; 2] {
    let mut linked = [None; 2];
    for _ in 0..8 {
        for (side, told) in [&mut *one, &mut *other].into_iter().zip(&mut linked) {
            let had_news = side.has_news();
            match side.turn() {
                Turn::Nothing => (),
                Turn::Said => assert!(had_news),
                Turn::Linked { incarnation } => *told = Some(incarnation),
                Turn::Ended { .. } => panic!("nobody ended a link"),
            }
        }
    }
    linked
}

fn send(side: &mut Meeting<'_>, number: u32) {
    side.link().unwrap().0.send(&[number], &[], 0).unwrap();
}

fn receive(side: &mut Meeting<'_>) -> Option<u32> {
    let message = side.link().unwrap().0.receive::<1>(&mut [0; RECORD_BYTES_MAX]).unwrap()?;
    Some(message.head[0])
}

#[test]
fn two_meet_in_memory_that_was_never_used() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, mut other) = (memory.begin(0, 5), memory.begin(1, 9));
    assert_eq!(settle(&mut one, &mut other), [Some(9), Some(5)]);
    assert!(!one.has_news() && !other.has_news());
    send(&mut one, 17);
    assert!(other.has_news());
    assert_eq!(receive(&mut other), Some(17));
}

#[test]
fn a_section_is_clear_before_the_other_is_told_so() {
    let memory = Memory::new(16, 3, 64);
    let rubbish = |word: usize| 0xdead_0000 | word as u32;
    memory.sections[0].iter().enumerate().for_each(|(at, word)| word.store(rubbish(at), Ordering::Relaxed));
    let (mut one, mut other) = (memory.begin(0, 5), memory.begin(1, 9));
    assert_eq!(settle(&mut one, &mut other), [Some(9), Some(5)]);
    let words = OwnWords::of(&memory.sections[0]);
    let slots = memory.shape.slots_at();
    (0..16).for_each(|slot| assert_eq!(words.get(slots + slot * record::WORDS + record::TAG), 0, "slot {slot}"));
    (0..3).for_each(|block| assert_eq!(words.get(link::RETURNS + block), 0, "return {block}"));
    assert_eq!((words.get(link::TAKEN), words.get(link::WAITING)), (0, 0));
}

#[test]
fn who_begins_anew_is_drained_and_met_again() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, mut other) = (memory.begin(0, 1), memory.begin(1, 1));
    settle(&mut one, &mut other);
    send(&mut one, 17);
    send(&mut other, 18);
    let mut one = memory.begin(0, 2);
    // The new one says and clears nothing that the other still reads.
    for _ in 0..4 {
        one.turn();
    }
    assert_eq!(other.turn(), Turn::Ended { gone: true });
    assert_eq!((receive(&mut other), receive(&mut other)), (Some(17), None));
    assert_eq!(other.turn(), Turn::Ended { gone: true }, "until it parts");
    other.part();
    assert_eq!(settle(&mut one, &mut other), [Some(1), Some(2)]);
    assert_eq!((receive(&mut one), receive(&mut other)), (None, None), "nothing of the former link");
    send(&mut other, 19);
    assert_eq!(receive(&mut one), Some(19));
}

#[test]
fn a_link_that_one_side_gives_up_comes_back() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, mut other) = (memory.begin(0, 1), memory.begin(1, 1));
    settle(&mut one, &mut other);
    one.part();
    assert_eq!(other.turn(), Turn::Ended { gone: false });
    other.part();
    assert_eq!(settle(&mut one, &mut other), [Some(1), Some(1)]);
}

#[test]
fn who_leaves_is_there_no_more_until_it_begins_again() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, mut other) = (memory.begin(0, 1), memory.begin(1, 1));
    settle(&mut one, &mut other);
    assert!(one.is_peer_there());
    other.leave();
    assert_eq!(one.turn(), Turn::Ended { gone: true });
    one.part();
    assert!(!one.is_peer_there());
    assert_eq!(settle(&mut one, &mut memory.begin(1, 2)), [Some(2), Some(1)]);
}

#[test]
fn nobody_there_is_no_news() {
    let memory = Memory::new(16, 2, 64);
    let mut one = memory.begin(0, 1);
    assert!(!one.has_news(), "nobody was ever there");
    let mut other = memory.begin(1, 1);
    assert!(one.has_news(), "somebody offers");
    settle(&mut one, &mut other);
    other.leave();
    assert!(one.has_news(), "it has left");
    assert_eq!(one.turn(), Turn::Ended { gone: true });
    one.part();
    assert!(!one.has_news(), "nobody is there again");
    assert_eq!(one.turn(), Turn::Nothing);
}

#[test]
fn who_has_not_come_closer_is_no_news() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, _other) = (memory.begin(0, 1), memory.begin(1, 1));
    assert_eq!(one.turn(), Turn::Said, "it has seen the offer");
    // SEEN is said; the other has not seen us, so there is nothing to be made ready for.
    assert!(!one.has_news());
    assert_eq!(one.turn(), Turn::Nothing);
    let words = OwnWords::of(&memory.sections[1]);
    words.set(link::SEEN, OwnWords::of(&memory.sections[0]).get(link::OFFER));
    assert!(one.has_news());
    assert_eq!(one.turn(), Turn::Said, "it is ready");
    assert!(!one.has_news(), "the other is not");
    assert_eq!(one.turn(), Turn::Nothing);
}

#[test]
fn another_description_is_not_met() {
    let memory = Memory::new(16, 2, 64);
    let (mut one, mut other) = (memory.begin(0, 1), memory.begin_as(1, 1, 99));
    assert_eq!(settle(&mut one, &mut other), [None; 2]);
    assert!(one.is_refused() && other.is_refused() && !one.is_peer_there());
}

#[test]
fn an_image_of_another_version_is_not_met_and_is_known_to_be_there() {
    for version in [0, 1, LINK_VERSION - 1, LINK_VERSION + 1, u32::MAX] {
        let memory = Memory::new(16, 2, 64);
        let (mut one, mut other) = (memory.begin(0, 1), memory.begin(1, 1));
        OwnWords::of(&memory.sections[1]).set(link::VERSION, version);
        assert_eq!(settle(&mut one, &mut other), [None; 2]);
        assert!(one.is_refused() && !one.is_peer_there());
    }
}

#[test]
fn a_region_has_a_section_for_each_pair() {
    let shape = LinkShape { slots: 4, blocks: 1, block_bytes: 64 };
    let bytes = Region::bytes(3, shape).unwrap();
    assert_eq!(bytes, 6 * shape.section_bytes().unwrap());
    assert_eq!((Region::bytes(1, shape), Region::bytes(u16::MAX, shape)), (None, None));
    let memory = zeroed(bytes / 4);
    let base = memory.as_ptr().cast_mut().cast::<u8>();
    let region = |place| {
        // SAFETY: the memory is that long, zero, and each place is used once.
        unsafe { Region::whole(base, 3, place, shape) }
    };
    assert!(region(3).is_none());
    let numbers = [10, 20, 30];
    let mut rows: Vec<Vec<Meeting<'_>>> =
        (0..3).map(|place| region(place).unwrap().begin(&numbers, 1).take(9).collect()).collect();
    let peers = |row: &Vec<Meeting<'_>>| row.iter().map(Meeting::peer).collect::<Vec<_>>();
    assert_eq!(rows.iter().map(peers).collect::<Vec<_>>(), [[20, 30], [10, 30], [10, 20]]);
    for _ in 0..4 {
        rows.iter_mut().flatten().for_each(|meeting| {
            meeting.turn();
        });
    }
    assert!(rows.iter().flatten().all(Meeting::is_linked));
    send(&mut rows[2][0], 5);
    assert_eq!((receive(&mut rows[0][1]), receive(&mut rows[0][0]), receive(&mut rows[1][1])), (Some(5), None, None));
    // A new incarnation has a number of its own.
    drop(rows);
    let kept = region(1).unwrap();
    // SAFETY: of what was begun before, nothing is left.
    let again = unsafe { kept.again() };
    assert_eq!((again.place(), again.nodes(), again.shape()), (1, 3, shape));
    let row = again.begin(&numbers, 1);
    assert_eq!(row.incarnation(), 2);
    assert_eq!(row.map(|meeting| meeting.peer()).collect::<Vec<_>>(), [10, 30]);
    assert_eq!(kept.begin(&numbers, 1).incarnation(), 3, "once more in the same memory");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever one side's section holds at whatever time, the other's turns end and neither panics; a link stays a link.
    #[test]
    fn garbage_is_survived(
        words in prop::collection::vec((0u32..64, prop_oneof![0u32..8, any::<u32>(), Just(LINK_MAGIC)]), 1..40),
    ) {
        let memory = Memory::new(4, 1, 64);
        let mut one = memory.begin(0, 1);
        let mut other = memory.begin(1, 1);
        settle(&mut one, &mut other);
        for (word, value) in words {
            memory.sections[1][word as usize].store(value, crate::sync::Ordering::Relaxed);
            for _ in 0..3 {
                let _ = one.has_news();
                match one.turn() {
                    Turn::Ended { .. } => one.part(),
                    _ => if let Some((link, _)) = one.link()
                        && link.receive::<1>(&mut [0; RECORD_BYTES_MAX]).is_err() { one.part() },
                }
            }
        }
        // An honest successor is met all the same.
        let mut other = memory.begin(1, memory.sections[1][link::INCARNATION as usize].load(crate::sync::Ordering::Relaxed).wrapping_add(1));
        if let Turn::Ended { .. } = one.turn() {
            one.part();
        }
        prop_assert!(settle(&mut one, &mut other).iter().all(Option::is_some));
    }
}

/// At every step of a meeting, news are there exactly if the next turn says or brings something.
#[test]
fn news_are_what_a_turn_would_act_on() {
    let memory = Memory::new(4, 1, 64);
    let mut one = memory.begin(0, 1);
    let said = |word: u32| memory.sections[1][word as usize].load(crate::sync::Ordering::Relaxed);
    let say = |word: u32, value| memory.sections[1][word as usize].store(value, crate::sync::Ordering::Relaxed);
    assert!(!one.has_news(), "nobody is there");
    let _other = memory.begin(1, 1);
    let own = |word: u32| memory.sections[0][word as usize].load(crate::sync::Ordering::Relaxed);
    let (offer, theirs) = (own(link::OFFER), said(link::OFFER));
    assert!(one.has_news());
    assert_eq!(one.turn(), Turn::Said, "it uses nothing of the other's section");
    assert!(!one.has_news(), "the other has not said the same");
    assert_eq!(one.turn(), Turn::Nothing);
    say(link::SEEN, offer);
    assert!(one.has_news(), "its section may be cleared");
    assert_eq!(one.turn(), Turn::Said);
    assert_eq!((own(link::SEEN), own(link::READY)), (theirs, theirs));
    assert!(!one.has_news(), "seen by both, but the other's section is not clear yet");
    assert_eq!(one.turn(), Turn::Nothing);
    say(link::READY, offer.wrapping_sub(2));
    assert!(!one.has_news(), "an answer to an earlier offer");
    say(link::READY, offer);
    assert!(one.has_news());
    assert_eq!(one.turn(), Turn::Linked { incarnation: 1 });
    assert!(!one.has_news());
    say(link::OFFER, theirs.wrapping_add(2));
    assert!(one.has_news());
    assert_eq!(one.turn(), Turn::Ended { gone: false });
}

#[test]
fn nobody_is_linked_or_refused_before_somebody_is_there() {
    let memory = Memory::new(16, 2, 64);
    let mut one = memory.begin(0, 1);
    assert!(!one.is_linked() && !one.is_refused() && !one.is_peer_there());
    let mut other = memory.begin(1, 1);
    assert!(!one.is_linked() && !one.is_refused() && one.is_peer_there());
    settle(&mut one, &mut other);
    assert!(one.is_linked() && !one.is_refused());
    other.leave();
    assert!(!one.is_refused() && !one.is_peer_there(), "who has left is not refused");
    other.leave();
    assert!(!one.is_peer_there(), "who leaves twice is not there again");
    one.part();
    assert!(!one.is_linked());
}

/// Each half of the description's hash decides.
#[test]
fn another_description_is_refused() {
    for (hash, is_same) in [(0x1_0000_0002, true), (0x1_0000_0003, false), (0x3_0000_0002, false)] {
        let memory = Memory::new(16, 2, 64);
        let (mut one, mut other) = (memory.begin_as(0, 1, 0x1_0000_0002), memory.begin_as(1, 1, hash));
        settle(&mut one, &mut other);
        assert_eq!((one.is_linked(), one.is_refused()), (is_same, !is_same), "{hash:x}");
    }
}

#[test]
fn a_block_is_copied_and_given_back_at_once() {
    let memory = Memory::new(16, 1, 64);
    let (mut one, mut other) = (memory.begin(0, 1), memory.begin(1, 1));
    assert_eq!(other.take_block(0, &mut []), Err(Error::NotHeld), "there is no link");
    settle(&mut one, &mut other);
    for is_awaited in [false, true] {
        one.link().unwrap().0.send_block(&[0], &[3, 4, 5], 0).unwrap();
        assert_eq!(one.link().unwrap().0.announce(is_awaited), Ok(false));
        let message = other.link().unwrap().0.receive::<1>(&mut [0; RECORD_BYTES_MAX]).unwrap().unwrap();
        assert_eq!(message.payload, Payload::Block { block: 0, bytes: 3 });
        let mut into = [0; 3];
        assert_eq!(other.take_block(0, &mut into), Ok(is_awaited), "rings who waits for room");
        assert_eq!(into, [3, 4, 5]);
        one.link().unwrap().0.withdraw();
    }
}
