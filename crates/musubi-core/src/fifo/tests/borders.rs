//! Where the ends of a channel say yes the last time and no the first: lengths, laps, clocks, blocks that are none.

use super::*;
use crate::Error;
use crate::fifo::pool::Pool;
use crate::histogram;
use crate::layout::{rx, slot, tx};

/// A clock that stands still at this instant.
struct At(u64);
impl Clock for At {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

fn send(sender: &mut TestSender<'_>, bytes: &[u8]) {
    let mut loan = sender.allocate().unwrap();
    loan[..bytes.len()].copy_from_slice(bytes);
    sender.enqueue(loan, bytes.len() as u32, &NoClock).unwrap();
}

fn take<'m>(receiver: &mut TestReceiver<'m>) -> Result<Received<'m>, Error> {
    receiver.dequeue(&NoClock, &CountingBell::default())
}

fn give_back(receiver: &mut TestReceiver<'_>, received: Received<'_>) {
    receiver.free(received, &CountingBell::default()).unwrap();
}

/// Where clocks differ a little, the receiver's may be behind: by up to 2^27 ns this counts as no time at all.
#[test]
fn a_latency_that_comes_out_negative_counts_as_none() {
    let longest = u32::MAX - (1 << 27);
    for (latency_ns, counted) in [(0, 0), (1 << 27, 1 << 27), (longest, longest), (longest + 1, 0), (u32::MAX, 0)] {
        let fifo = Fifo { sample_every: 1, ..fifo(1) };
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let loan = sender.allocate().unwrap();
        sender.enqueue(loan, 0, &At(5_000_000_000)).unwrap();
        let now = At(u64::from((5_000_000_000u64 as u32).wrapping_add(latency_ns)));
        let received = receiver.dequeue(&now, &CountingBell::default()).unwrap();
        give_back(&mut receiver, received);
        let own = OwnWords::of(&memory.rx);
        assert_eq!(own.get(rx::HISTOGRAM + histogram::MAX), counted, "{latency_ns}");
        let bucket = histogram::FIRST_BUCKET + histogram::bucket(counted);
        assert_eq!(own.get(rx::HISTOGRAM + bucket), 1, "{latency_ns}");
    }
}

#[test]
fn a_message_is_read_from_any_byte_on() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let whole: Vec<u8> = (10..20).collect();
    send(&mut sender, &whole);
    send(&mut sender, &[]);
    let received = take(&mut receiver).unwrap();
    assert!(!received.is_empty());
    for offset in 0..12 {
        let mut into = [0; 4];
        let expected = &whole[offset.min(10)..(offset + 4).min(10)];
        let count = received.copy_to(offset as u32, &mut into);
        assert_eq!(into[..count], *expected, "from {offset}");
    }
    assert_eq!(received.trusted_bytes(), None, "its sender may write it meanwhile");
    let empty = take(&mut receiver).unwrap();
    assert!(empty.is_empty() && empty.copy_to(0, &mut [0; 4]) == 0);
}

#[test]
fn the_bytes_of_a_trusted_sender_are_read_in_place() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let mut sender = memory.sender(&fifo);
    let held = vec![0; TestReceiver::held_words(2)];
    let (own, tx) = (OwnWords::of(&memory.rx), OwnWords::of(&memory.tx).as_peer());
    let mut receiver = Receiver::new(own, tx, &fifo, RECEIVER, SENDER, Trust::Trusted, held, Coherent).unwrap();
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    assert!(receiver.begin());
    send(&mut sender, &[7, 8, 9]);
    let received = receiver.dequeue(&NoClock, &CountingBell::default()).unwrap();
    assert_eq!(received.trusted_bytes(), Some(&[7, 8, 9][..]));
    assert_eq!(received.trusted_bytes().unwrap().as_ptr(), received.address());
}

/// The look that begins the session also sees what is queued.
#[test]
fn who_finds_the_session_open_looks_at_once() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = (memory.sender(&fifo), memory.receiver(&fifo, RECEIVER.1));
    send(&mut sender, &[1]);
    sender.notify(&NoClock, &CountingBell::default());
    assert!(!receiver.ready(), "there is no session");
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    assert!(receiver.ready());
}

#[test]
fn a_stream_is_four_messages_in_a_row() {
    let fifo = fifo(8);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for (messages, is_stream) in [(0, false), (3, false), (4, true), (7, true), (1, false)] {
        (0..messages).for_each(|_| send(&mut sender, &[1]));
        for _ in 0..messages {
            let received = take(&mut receiver).unwrap();
            give_back(&mut receiver, received);
        }
        assert_eq!(receiver.stream_ran_dry(), is_stream, "{messages}");
        assert!(!receiver.stream_ran_dry(), "it says so once");
    }
}

#[test]
fn a_wait_that_slept_is_counted() {
    let fifo = fifo(1);
    let memory = Memory::new(&fifo);
    let mut receiver = memory.receiver(&fifo, RECEIVER.1);
    (0..3).for_each(|_| receiver.note_sleep());
    assert_eq!(OwnWords::of(&memory.rx).get(rx::SLEPT), 3);
}

#[test]
fn a_message_in_a_block_that_is_none_is_refused() {
    for (block, is_one) in [(2, true), (3, false), (4, false), (0xffff, false)] {
        let fifo = fifo(3);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        assert_eq!(tap.sender(), SENDER);
        send(&mut sender, &[1]);
        let at = Shape::of(&fifo).unwrap().slot(0) + slot::BLOCK;
        OwnWords::of(&memory.tx).set(at, SENDER.1 << 16 | block);
        let find = |_, _| Some(OwnWords::of(&memory.rx).as_peer());
        let look = tap.look(OwnWords::of(&memory.tx).as_peer(), find, &mut [0; 16]);
        assert_eq!(matches!(look, Look::Message(_)), is_one, "{block}: {look:?}");
        let result = take(&mut receiver).map(|received| received.block());
        assert_eq!(result, if is_one { Ok(block) } else { Err(Error::PeerFault) });
    }
}

/// All that is queued may be void, but nothing that lies further ahead than that.
#[test]
fn a_sender_that_begins_anew_voids_at_most_what_can_be_queued() {
    for (ahead, is_void) in [(0, false), (1, true), (3, true), (4, false), (100, false)] {
        let fifo = fifo(3);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        (0..3).for_each(|number| send(&mut sender, &[number]));
        OwnWords::of(&memory.tx).set(tx::SKIP, ahead + 1);
        let mut first = [0xff];
        if let Ok(received) = take(&mut receiver) {
            received.copy_to(0, &mut first);
        }
        let expected = if is_void { [ahead as u8, 0xff][usize::from(ahead == 3)] } else { 0 };
        assert_eq!(first, [expected], "{ahead} ahead");
    }
}

#[test]
fn an_end_needs_as_many_words_and_entries_as_the_plan_says() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let made = |words: usize, entries: usize| {
        let own = OwnWords::of(&memory.tx[..words]);
        TestSender::new(own, &fifo, SENDER, vec![Entry::NEW; entries], Coherent).map(|_| ())
    };
    let words = memory.tx.len();
    assert_eq!(made(words, 3), Ok(()));
    for (words, entries) in [(words - 1, 3), (words, 2), (words, 4), (words - 1, 2)] {
        assert_eq!(made(words, entries), Err(Error::Plan), "{words} words, {entries} entries");
    }
}

#[test]
fn a_regulated_end_holds_back_and_counts() {
    let fifo = Fifo { regulation: Regulation { messages_per_s: 1, messages_burst: 1, ..Regulation::NONE }, ..fifo(2) };
    let memory = Memory::new(&fifo);
    let (mut sender, _receiver) = memory.pair(&fifo);
    send(&mut sender, &[1]);
    let loan = sender.allocate().unwrap();
    let (error, loan) = sender.enqueue(loan, 1, &NoClock).unwrap_err();
    assert_eq!(error, Error::Throttled { retry_ns: 1_000_000_000 });
    assert_eq!(OwnWords::of(&memory.tx).get(tx::THROTTLED), 1);
    assert!(sender.enqueue(loan, 1, &At(1_000_000_001)).is_ok());
}

/// A loan of another channel, which has the same number as one of ours that is out.
#[test]
fn a_loan_of_another_channel_is_refused() {
    let fifo = fifo(2);
    let (memory, other_memory) = (Memory::new(&fifo), Memory::new(&fifo));
    let (mut sender, mut other) = (memory.sender(&fifo), other_memory.sender(&fifo));
    let foreign = other.allocate().unwrap();
    let foreign = sender.free(foreign).unwrap_err();
    let own = sender.allocate().unwrap();
    assert_eq!(own.block(), foreign.block());
    let foreign = sender.free(foreign).unwrap_err();
    let (error, foreign) = sender.enqueue(foreign, 1, &NoClock).unwrap_err();
    assert_eq!((error, sender.held()), (Error::NotHeld, 1));
    assert!(other.free(foreign).is_ok() && sender.free(own).is_ok());
    let loan = sender.allocate().unwrap();
    let text = std::format!("Loan {{ block: {}, bytes: 16 }}", loan.block());
    assert_eq!(std::format!("{loan:?}"), text);
}

#[test]
fn a_sender_without_blocks_is_ready_when_one_has_come_back() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    assert!(sender.poll().block);
    (0..2).for_each(|number| send(&mut sender, &[number]));
    assert!(!sender.poll().block && !sender.announce_wait(1).block);
    let received = take(&mut receiver).unwrap();
    assert!(!sender.poll().block);
    give_back(&mut receiver, received);
    assert!(sender.poll().block);
    sender.withdraw_wait(0);
}

/// A receiver that has gone says how far it was; where that cannot be, the next one begins behind what is queued.
#[test]
fn the_place_that_a_gone_receiver_claims_is_believed_if_it_can_be() {
    let (ring, tail) = (Ring::new(3), 10);
    for (taken, is_possible) in
        [(10, true), (7, true), (6, false), (11, false), (ring.last(), false), (u32::MAX, false)]
    {
        for on_restart in [OnRestart::Keep, OnRestart::Drop] {
            let fifo = fifo(3);
            let memory = Memory::new(&fifo);
            let (own, peer) = (OwnWords::of(&memory.tx), OwnWords::of(&memory.rx));
            own.set(tx::TAIL, tail);
            peer.set(rx::LINK_PARTICIPANT, u32::from(SENDER.0));
            peer.set(rx::LINK_EPOCH, SENDER.1);
            peer.set(rx::TAKEN, taken);
            let start = session::end_link(&own, Some(peer.as_peer()), ring, SENDER, 0, on_restart);
            let keeps = is_possible && on_restart == OnRestart::Keep;
            assert_eq!(start, if keeps { taken } else { tail }, "{taken}");
            assert_eq!(own.get(tx::REFUSED), u32::from(!is_possible), "{taken}");
            let dropped = if is_possible && !keeps { tail - taken } else { 0 };
            assert_eq!((own.get(tx::DROPPED), own.get(tx::START)), (dropped, start), "{taken}");
        }
    }
}

#[test]
fn a_block_in_hand_is_not_reclaimed() {
    let mut pool = Pool::new(vec![Entry::NEW; 3]);
    let blocks = [0; 3].map(|_| pool.take(0).unwrap());
    pool.send(blocks[0], 5);
    assert_eq!(pool.reclaim(|_| true), 1);
    assert_eq!((pool.free(), pool.held()), (1, 2));
}
