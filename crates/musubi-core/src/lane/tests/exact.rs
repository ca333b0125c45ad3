//! What a link and its blocks do, word by word: who rings, when there is room, what is written and what is never accepted.

use super::*;
use crate::lane::tag::{Seen, Tag};
use crate::layout::{link, record};
use crate::sync::Ordering;

impl Memory {
    fn word(&self, node: usize, at: u32) -> &AtomicU32 {
        &self.sections[node][at as usize]
    }
}

/// The block in which the next message came.
fn block_of(there: &mut Link<'_>) -> u32 {
    match there.receive::<1>(&mut [0; RECORD_BYTES_MAX]).unwrap().unwrap().payload {
        Payload::Block { block, .. } => block,
        copied => panic!("{copied:?}"),
    }
}

#[test]
fn a_block_that_has_come_back_does_not_come_back_again() {
    for block in [0, 1, 3] {
        let memory = Memory::new(16, 4, 64);
        let (mut here, _) = memory.side(0);
        for number in 0..4 {
            here.send_block(&[number], &[1], 0).unwrap();
        }
        memory.word(1, link::RETURNS).store(1 << 16 | block, Ordering::Relaxed);
        assert!(here.send_block(&[4], &[1], 0).is_ok(), "it was returned, and goes out again");
        memory.word(1, link::RETURNS + 1).store(1 << 16 | block, Ordering::Relaxed);
        here.has_room().unwrap();
        memory.word(1, link::RETURNS + 2).store(1 << 16 | block, Ordering::Relaxed);
        assert_eq!(here.has_room(), Err(Error::PeerFault), "block {block} is free already");
    }
}

#[test]
fn a_receiver_knows_what_it_holds() {
    let memory = Memory::new(16, 4, 64);
    let (_, mut returns) = memory.side(1);
    assert_eq!(returns.held(), (0, 4));
    for (held, block) in [2, 0, 3].into_iter().enumerate() {
        assert_eq!((returns.hold(block), returns.hold(block)), (Ok(()), Err(Error::PeerFault)));
        assert_eq!(returns.held(), (held as u32 + 1, 4));
    }
    assert_eq!(returns.hold(4), Err(Error::PeerFault));
    assert_eq!((returns.give_back(0), returns.give_back(0)), (Ok(false), Err(Error::NotHeld)));
    assert_eq!((returns.give_back(1), returns.held()), (Err(Error::NotHeld), (2, 4)));
}

/// Behind a payload stands one zero byte if the block has room for it, and nothing else is touched.
#[test]
fn a_payload_ends_with_a_zero_if_there_is_room() {
    for bytes in [0, 1, 3, 62, 63, 64] {
        let memory = Memory::new(16, 2, 64);
        let at = memory.shape.blocks_at() / 4;
        memory.sections[0][at as usize..].iter().for_each(|word| word.store(u32::MAX, Ordering::Relaxed));
        let (mut here, _) = memory.side(0);
        let (mut there, _) = memory.side(1);
        here.send_block(&[0], &vec![7; bytes], 0).unwrap();
        assert_eq!(block_of(&mut there), 0);
        let found: Vec<u8> = memory.sections[0][at as usize..]
            .iter()
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        let mut expected = vec![0xff; found.len()];
        expected[..bytes].fill(7);
        if bytes < 64 {
            expected[bytes] = 0;
        }
        assert_eq!(found, expected, "{bytes} bytes");
    }
}

#[test]
fn a_record_that_names_no_block_is_a_fault() {
    for (block, bytes, is_one) in [(0u32, 64u32, true), (1, 0, false), (0, 65, false)] {
        let memory = Memory::new(16, 1, 64);
        let (mut there, _) = memory.side(1);
        let own = OwnWords::of(&memory.sections[0]);
        let peer = OwnWords::of(&memory.sections[1]).as_peer();
        let slots = own.part(memory.shape.slots_at(), 16 * record::WORDS);
        let mut liar = Sender::new(slots, peer.part(link::TAKEN, 1)).unwrap();
        let mut named = [0; 8];
        named[..4].copy_from_slice(&block.to_le_bytes());
        named[4..].copy_from_slice(&bytes.to_le_bytes());
        liar.send(1, &[0], &named, 0).unwrap();
        let came = there.receive::<1>(&mut [0; RECORD_BYTES_MAX]).map(|message| message.unwrap().payload);
        assert_eq!(came, if is_one { Ok(Payload::Block { block, bytes }) } else { Err(Error::PeerFault) });
    }
}

/// Of a short lane half is free, of a long one a quarter, in between the longest record fits.
#[test]
fn there_is_room_from_a_certain_slot_on() {
    for (slots, wanted) in [(8, 4), (16, 8), (64, 16), (128, 32)] {
        let memory = Memory::new(slots, 1, 64);
        let (mut here, _) = memory.side(0);
        for sent in 0..=slots {
            assert_eq!(here.has_room(), Ok(slots - sent >= wanted), "{sent} of {slots} sent");
            assert_eq!(here.send(&[sent], &[], 0), if sent < slots { Ok(()) } else { Err(Error::Full) });
        }
    }
}

/// Who sends without a block is heard, and who only reads rings for room and for nothing else.
#[test]
fn each_sleeper_is_rung_for_what_it_waits_for() {
    let memory = Memory::new(8, 1, 64);
    let ((mut here, _), (mut there, _)) = (memory.side(0), memory.side(1));
    assert!(!there.peer_sleeps() && !here.peer_sleeps());
    assert_eq!(there.announce(false), Ok(false));
    assert!(here.peer_sleeps() && !there.peer_sleeps());
    here.send(&[0], &[], 0).unwrap();
    assert!(!here.must_ring_for_room(), "nothing was read");
    assert!(here.must_ring() && !here.must_ring());
    there.withdraw();
    assert!(!here.peer_sleeps());
    (1..8).for_each(|number| here.send(&[number], &[], 0).unwrap());
    assert!(!here.must_ring());
    assert_eq!(here.announce(true), Ok(false));
    for number in 0..8 {
        assert_eq!(there.receive::<1>(&mut [0; RECORD_BYTES_MAX]).unwrap().unwrap().head, [number]);
    }
    assert_eq!(there.receive::<1>(&mut [0; RECORD_BYTES_MAX]), Ok(None));
    assert!(there.must_ring_for_room(), "eight slots are free again");
    assert!(!there.must_ring_for_room() && !there.must_ring());
    here.withdraw();
}

#[test]
fn a_slot_that_continues_a_record_begins_none() {
    assert_eq!(Tag::continued(1).word(), 0x1_f000);
    assert_eq!(Tag::seen(Tag::continued(1).word(), 1), Seen::Impossible);
}
