//! What must be refused, and change nothing.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};

use crate::stage::{Stage, expect, is_empty, send};
use crate::{Failure, Wrapper, ensure, have, plan};

pub fn too_long_a_message_is_refused<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    let mut loan = have!(sending.allocate(Deadline::Poll), "a block is free");
    loan[0] = 7;
    for bytes in [65, 66, 1 << 16, u32::MAX] {
        loan = match sending.enqueue(loan, bytes) {
            Err((Error::TooLong, loan)) => loan,
            _ => return Err(Failure { file: file!(), line: line!(), expected: "too long, with the block" }),
        };
        ensure!(sending.usage().held == 1 && is_empty(&receiving), "nothing has changed");
    }
    ensure!(sending.enqueue(loan, 1).is_ok(), "the block is as good as before");
    expect(&receiving, &[7])
}

pub fn a_block_of_another_channel_is_refused<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    let (other, other_receiving) = stage.channel(plan::ODD)?;
    let loan = have!(sending.allocate(Deadline::Poll), "a block is free");
    let loan = have!(other.free(loan).err().ok_or(()), "the other channel refuses to free it");
    let refused = other.enqueue(loan, 1).err().filter(|(error, _)| *error == Error::NotHeld);
    let (_, mut loan) = have!(refused.ok_or(()), "the other channel refuses to enqueue it");
    ensure!(other.usage().free == 3 && is_empty(&other_receiving), "the other channel is as before");
    loan[0] = 9;
    ensure!(sending.enqueue(loan, 1).is_ok(), "its own channel takes it");
    expect(&receiving, &[9])
}

pub fn a_message_of_another_channel_is_refused<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    let (_other_sending, other) = stage.channel(plan::ODD)?;
    send(&sending, &[1])?;
    let received = have!(receiving.dequeue(), "a message is queued");
    let received = have!(other.free(received).err().ok_or(()), "the other channel refuses it");
    ensure!(other.usage().held == 0 && receiving.usage().held == 1, "nothing has changed");
    ensure!(receiving.free(received).is_ok(), "its own channel takes it");
    ensure!(sending.usage().free == plan::BLOCKS as u32, "it has come back");
    Ok(())
}

pub fn ends_of_others_cannot_be_opened<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (master, remote) = (&stage.master, stage.remote()?);
    ensure!(remote.open_sending(plan::DOWN).is_err(), "only the sender's domain sends");
    ensure!(master.open_receiving(plan::DOWN).is_err(), "only the receiver's domain receives");
    ensure!(master.open_sending(plan::UP).is_err(), "only the sender's domain sends");
    for number in [10, 100, u16::MAX] {
        ensure!(master.open_sending(number).is_err(), "there is no such channel");
        ensure!(master.open_receiving(number).is_err(), "there is no such channel");
        ensure!(master.open_segment(number, Deadline::Poll).is_err(), "there is no such memory");
    }
    Ok(())
}

pub fn an_end_is_open_once<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    ensure!(stage.master.open_sending(plan::DOWN).is_err(), "the sending end is taken");
    ensure!(stage.remote()?.open_receiving(plan::DOWN).is_err(), "the receiving end is taken");
    send(&sending, &[1])?;
    expect(&receiving, &[1])
}

pub fn an_empty_channel_has_nothing<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    ensure!(is_empty(&receiving) && is_empty(&receiving), "nothing to dequeue");
    ensure!(!receiving.is_ready(), "nothing to wait for");
    ensure!(sending.wait(Deadline::Poll) == Err(Error::Timeout), "no event of the receiver");
    ensure!(receiving.wait(Deadline::Poll) == Err(Error::Timeout), "no event of the sender");
    Ok(())
}
