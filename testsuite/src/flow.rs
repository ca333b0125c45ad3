//! Messages and blocks: order, back-pressure, sizes.

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd, SendingEnd};
use musubi_core::fifo::{Loan, Received};

use crate::stage::{Stage, enqueue, expect, holds, is_empty, send};
use crate::{Failure, Wrapper, ensure, have, plan};

/// A deadline that is soon, in nanoseconds.
const SHORT_NS: u64 = 10_000_000;
/// Laps of a channel that a long test makes.
const LAPS: u32 = 40;

pub fn messages_come_in_order<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for number in 0..100u32 {
        send(&sending, &number.to_le_bytes())?;
        ensure!(receiving.wait(Deadline::Poll).is_ok(), "a notified message is waited for");
        expect(&receiving, &number.to_le_bytes())?;
    }
    Ok(())
}

pub fn both_directions_are_independent<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (down, from_master) = stage.channel(plan::DOWN)?;
    let (up, from_remote) = stage.channel(plan::UP)?;
    for number in 0..20u32 {
        send(&down, &number.to_le_bytes())?;
        ensure!(is_empty(&from_remote), "nothing in the other direction");
        send(&up, &(!number).to_le_bytes())?;
        expect(&from_remote, &(!number).to_le_bytes())?;
        expect(&from_master, &number.to_le_bytes())?;
    }
    Ok(())
}

pub fn a_full_queue_gives_no_block<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for number in 0..plan::BLOCKS as u8 {
        send(&sending, &[number])?;
    }
    ensure!(matches!(sending.allocate(Deadline::Poll), Err(Error::NoBlock)), "no block is free");
    ensure!(receiving.usage().queued == plan::BLOCKS as u32, "all blocks are queued");
    (0..plan::BLOCKS as u8).try_for_each(|number| expect(&receiving, &[number]))?;
    ensure!(is_empty(&receiving), "nothing is left");
    Ok(())
}

pub fn a_freed_block_can_be_allocated_again<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    (0..plan::BLOCKS as u8).try_for_each(|number| send(&sending, &[number]))?;
    for number in 0..50 {
        ensure!(matches!(sending.allocate(Deadline::Poll), Err(Error::NoBlock)), "no block is free");
        expect(&receiving, &[number])?;
        send(&sending, &[number + plan::BLOCKS as u8])?;
    }
    Ok(())
}

pub fn waiting_for_a_block_ends_at_the_deadline<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, _receiving) = stage.channel(plan::SINGLE)?;
    send(&sending, &[1])?;
    let begin_ns = stage.now_ns();
    let deadline = stage.within(SHORT_NS);
    ensure!(matches!(sending.allocate(deadline), Err(Error::Timeout)), "the deadline passes");
    let took_ns = stage.now_ns() - begin_ns;
    ensure!((SHORT_NS..crate::PATIENCE_NS).contains(&took_ns), "not before the deadline, and soon after it");
    Ok(())
}

pub fn several_blocks_go_out_in_the_order_of_enqueuing<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for _ in 0..LAPS {
        let mut loans: [Option<Loan<'_>>; 4] = core::array::from_fn(|_| sending.allocate(Deadline::Poll).ok());
        for number in [2u8, 0, 3, 1] {
            let mut loan = have!(loans[usize::from(number)].take().ok_or(()), "four blocks are out at once");
            loan[0] = number;
            ensure!(sending.enqueue(loan, 1).is_ok(), "a block is enqueued");
        }
        [2u8, 0, 3, 1].iter().try_for_each(|number| expect(&receiving, &[*number]))?;
    }
    Ok(())
}

pub fn blocks_can_be_freed_out_of_order<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for lap in 0..LAPS as u8 {
        (0..4).try_for_each(|number| send(&sending, &[number, lap]))?;
        let mut held: [Option<Received<'_>>; 4] = core::array::from_fn(|_| receiving.dequeue().ok());
        for number in [3u8, 1, 0, 2] {
            let received = have!(held[usize::from(number)].take().ok_or(()), "four messages are held at once");
            ensure!(holds(&received, &[number, lap]), "a held message stays as it is");
            ensure!(receiving.free(received).is_ok(), "a held block is freed");
        }
    }
    ensure!(sending.usage().free == plan::BLOCKS as u32, "every block has come back");
    Ok(())
}

pub fn a_kept_message_does_not_hold_up_others<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::ODD)?;
    send(&sending, b"kept")?;
    let kept = have!(receiving.dequeue(), "a message is queued");
    for number in 0..LAPS as u8 {
        send(&sending, &[number])?;
        expect(&receiving, &[number])?;
    }
    ensure!(holds(&kept, b"kept"), "a held message stays as it is");
    ensure!(receiving.free(kept).is_ok(), "a held block is freed");
    Ok(())
}

pub fn an_unsent_block_goes_back<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::SINGLE)?;
    for _ in 0..LAPS {
        let loan = have!(sending.allocate(Deadline::Poll), "the block is free");
        ensure!(sending.usage().held == 1, "the block is held");
        ensure!(sending.free(loan).is_ok(), "the block goes back");
    }
    ensure!(is_empty(&receiving), "nothing was sent");
    Ok(())
}

pub fn odd_sizes_arrive_exact<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::ODD)?;
    ensure!(sending.block_bytes() as usize == plan::ODD_BYTES, "the planned size, not a rounded one");
    for len in 0..=plan::ODD_BYTES {
        let bytes: [u8; plan::ODD_BYTES] = core::array::from_fn(|offset| (offset * 7 + len) as u8);
        send(&sending, &bytes[..len])?;
        expect(&receiving, &bytes[..len])?;
    }
    Ok(())
}

pub fn a_message_can_be_empty<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    send(&sending, &[])?;
    ensure!(receiving.wait(Deadline::Poll).is_ok(), "an empty message is waited for");
    let received = have!(receiving.dequeue(), "an empty message is queued");
    ensure!(received.is_empty() && received.copy_to(0, &mut [0; 4]) == 0, "there is nothing in it");
    ensure!(receiving.free(received).is_ok(), "its block is freed");
    Ok(())
}

pub fn a_channel_of_one_block_works<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::SINGLE)?;
    for number in 0..100u8 {
        send(&sending, &[number])?;
        ensure!(matches!(sending.allocate(Deadline::Poll), Err(Error::NoBlock)), "the block is on its way");
        expect(&receiving, &[number])?;
    }
    Ok(())
}

pub fn large_blocks_arrive_exact<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::LARGE)?;
    let content = |offset: usize, lap: u32| (offset as u32).wrapping_mul(0x9e37_79b9 ^ lap).to_be_bytes()[0];
    for lap in 0..LAPS {
        let mut loan = have!(sending.allocate(Deadline::Poll), "a block is free");
        loan.iter_mut().enumerate().for_each(|(offset, byte)| *byte = content(offset, lap));
        ensure!(sending.enqueue(loan, plan::LARGE_BYTES as u32).is_ok(), "a whole block is enqueued");
        let received = have!(receiving.dequeue(), "a message is queued");
        let mut part = [0; 64];
        for begin in (0..plan::LARGE_BYTES).step_by(part.len()) {
            ensure!(received.copy_to(begin as u32, &mut part) == part.len(), "all bytes are there");
            let same = (begin..).zip(part).all(|(offset, byte)| byte == content(offset, lap));
            ensure!(same, "the bytes are those that were sent");
        }
        ensure!(receiving.free(received).is_ok(), "the block is freed");
    }
    Ok(())
}

pub fn usage_says_what_is_where<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    let loan = have!(sending.allocate(Deadline::Poll), "a block is free");
    (0..3).try_for_each(|number| send(&sending, &[number]))?;
    let taken = have!(receiving.dequeue(), "a message is queued");
    let (tx, rx) = (sending.usage(), receiving.usage());
    ensure!((tx.blocks, tx.free, tx.held, tx.queued) == (8, 4, 1, 2), "the sender's view");
    ensure!((rx.blocks, rx.held, rx.queued) == (8, 1, 2), "the receiver's view");
    ensure!(receiving.free(taken).is_ok() && sending.free(loan).is_ok(), "both go back");
    ensure!(sending.usage().free == 6, "two are on their way");
    Ok(())
}

pub fn many_laps_keep_order<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::ODD)?;
    let (mut sent, mut received) = (0u32, 0u32);
    for step in 0..20_000u32 {
        // Uneven steps, so that the queue is empty, full and in between at every slot.
        let bit = step.wrapping_mul(0x9e37_79b9) >> 30 & 1;
        if bit == 0 && sent - received < 3 {
            enqueue(&sending, &sent.to_le_bytes())?;
            sent += 1;
        } else if received < sent {
            expect(&receiving, &received.to_le_bytes())?;
            received += 1;
        }
    }
    ensure!(received > 5_000, "enough messages for many laps");
    Ok(())
}

pub fn messages_are_taken_before_their_notification<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    enqueue(&sending, &[1])?;
    ensure!(receiving.wait(Deadline::Poll) == Err(Error::Timeout), "nobody was told");
    expect(&receiving, &[1])
}

pub fn what_a_participant_sent_survives_it<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::UP)?;
    (0..5).try_for_each(|number| enqueue(&sending, &[number]))?;
    drop(sending);
    stage.remote_leaves();
    (0..5).try_for_each(|number| expect(&receiving, &[number]))?;
    let told = stage.eventually(|| receiving.wait(Deadline::Poll) == Err(Error::PeerGone));
    ensure!(told, "the loss is reported once the messages have been taken");
    ensure!(receiving.wait(Deadline::Poll) == Err(Error::Timeout), "it is reported once");
    Ok(())
}
