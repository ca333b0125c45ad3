//! Initialising a channel anew while the other side goes on.

use musubi_core::channel::{Deadline, ReceivingEnd, SendingEnd};

use crate::stage::{Stage, enqueue, expect, is_empty, send};
use crate::{Failure, Wrapper, ensure, have, plan};

pub fn the_sender_can_begin_anew<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for lap in 0..10u8 {
        (0..5).try_for_each(|number| send(&sending, &[number, lap]))?;
        expect(&receiving, &[0, lap])?;
        sending.reset();
        ensure!(is_empty(&receiving), "what was queued is void");
        while receiving.wait(Deadline::Poll).is_ok() {}
        send(&sending, &[9, lap])?;
        ensure!(receiving.wait(Deadline::Poll).is_ok(), "what comes after is seen");
        expect(&receiving, &[9, lap])?;
        ensure!(is_empty(&receiving), "and only that");
        ensure!(sending.usage().free == plan::BLOCKS as u32, "every block has come back");
    }
    Ok(())
}

pub fn the_receiver_can_begin_anew<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for lap in 0..10u8 {
        (0..3).try_for_each(|number| send(&sending, &[number, lap]))?;
        (3..6).try_for_each(|number| enqueue(&sending, &[number, lap]))?;
        let held = have!(receiving.dequeue(), "a message is queued");
        receiving.reset();
        ensure!(receiving.free(held).is_err(), "what was held has gone back");
        ensure!(is_empty(&receiving), "and what was queued");
        ensure!(sending.usage().free == plan::BLOCKS as u32, "every block has come back");
        send(&sending, &[9, lap])?;
        expect(&receiving, &[9, lap])?;
    }
    Ok(())
}
