//! Waiting, notifying, filtering, regulating.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_core::fifo::Notified;
use musubi_core::plan::FilterRule;

use crate::stage::{Stage, enqueue, expect, is_empty, send};
use crate::{Failure, PATIENCE_NS, Wrapper, ensure, have, plan};

const SHORT_NS: u64 = 10_000_000;

/// Whether a wait would return now.
fn is_told(end: &impl ReceivingEnd) -> bool {
    end.wait(Deadline::Poll).is_ok()
}

pub fn waiting_is_level_triggered<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    enqueue(&sending, &[0])?;
    enqueue(&sending, &[1])?;
    send(&sending, &[2])?;
    for number in 0..3 {
        ensure!(is_told(&receiving) && is_told(&receiving), "told as long as a notified message is queued");
        expect(&receiving, &[number])?;
    }
    ensure!(!is_told(&receiving), "and no longer");
    Ok(())
}

pub fn waiting_ends_at_the_deadline<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for waits_at_sender in [false, true] {
        let (begin_ns, deadline) = (stage.now_ns(), stage.within(SHORT_NS));
        let waited = if waits_at_sender { sending.wait(deadline) } else { receiving.wait(deadline) };
        ensure!(waited == Err(Error::Timeout), "the deadline passes");
        let took_ns = stage.now_ns() - begin_ns;
        ensure!((SHORT_NS..PATIENCE_NS).contains(&took_ns), "not before the deadline, and soon after it");
    }
    Ok(())
}

pub fn an_event_needs_no_message<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    for _ in 0..3 {
        ensure!(sending.notify() == Notified::Raised, "nothing holds it back");
        ensure!(is_told(&receiving), "the event is seen");
        ensure!(!is_told(&receiving) && is_empty(&receiving), "once, and there is no message");
    }
    Ok(())
}

pub fn the_receiver_can_tell_the_sender<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::DOWN)?;
    send(&sending, &[1])?;
    expect(&receiving, &[1])?;
    ensure!(sending.wait(Deadline::Poll) == Err(Error::Timeout), "freeing alone is no event");
    receiving.notify();
    let deadline = stage.within(PATIENCE_NS);
    ensure!(sending.wait(deadline).is_ok(), "the event is seen");
    ensure!(sending.wait(Deadline::Poll) == Err(Error::Timeout), "once");
    Ok(())
}

pub fn every_second_request_is_raised<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::EVERY)?;
    for number in 0..10u8 {
        send(&sending, &[number, 0])?;
        ensure!(!is_told(&receiving), "the first of two is held back");
        send(&sending, &[number, 1])?;
        ensure!(is_told(&receiving), "the second is raised");
        expect(&receiving, &[number, 0])?;
        ensure!(is_told(&receiving), "it covers both");
        expect(&receiving, &[number, 1])?;
    }
    Ok(())
}

pub fn a_level_is_raised<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::LEVEL)?;
    for _ in 0..5 {
        for number in 0..3 {
            send(&sending, &[number])?;
            ensure!(!is_told(&receiving), "below the level it is held back");
        }
        send(&sending, &[3])?;
        ensure!(is_told(&receiving), "at the level it is raised");
        (0..4).try_for_each(|number| expect(&receiving, &[number]))?;
    }
    Ok(())
}

pub fn an_interval_is_kept<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::SPACED)?;
    send(&sending, &[0])?;
    let begin_ns = stage.now_ns();
    ensure!(is_told(&receiving), "the first is raised at once");
    expect(&receiving, &[0])?;
    send(&sending, &[1])?;
    let deadline = stage.within(PATIENCE_NS);
    ensure!(receiving.wait(deadline).is_ok(), "the next is raised in the end");
    // The first was raised a little before we read the clock.
    ensure!(stage.now_ns() - begin_ns >= plan::INTERVAL_NS * 9 / 10, "not before the interval is over");
    expect(&receiving, &[1])
}

pub fn the_latest_time_is_kept<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::LATEST)?;
    for number in 0..3 {
        let begin_ns = stage.now_ns();
        send(&sending, &[number])?;
        ensure!(!is_told(&receiving), "it is held back");
        let deadline = stage.within(PATIENCE_NS);
        ensure!(receiving.wait(deadline).is_ok(), "it is raised without another request");
        ensure!(stage.now_ns() - begin_ns >= plan::LATEST_NS, "at the latest time");
        expect(&receiving, &[number])?;
    }
    Ok(())
}

pub fn a_new_filter_raises_what_was_held<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::EVERY)?;
    send(&sending, &[0])?;
    ensure!(!is_told(&receiving), "it is held back");
    sending.set_filter(FilterRule::EACH);
    ensure!(is_told(&receiving), "it is raised");
    expect(&receiving, &[0])?;
    send(&sending, &[1])?;
    ensure!(is_told(&receiving), "each is raised now");
    expect(&receiving, &[1])
}

pub fn any_of_several_ends_is_waited_for<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (down, from_down) = stage.channel(plan::DOWN)?;
    let (odd, from_odd) = stage.channel(plan::ODD)?;
    let ends = [&from_down, &from_odd];
    let deadline = stage.within(SHORT_NS);
    ensure!(stage.remote()?.wait_any(&ends, deadline) == Err(Error::Timeout), "nothing has come");
    for (number, sending) in [&odd, &down, &odd].into_iter().enumerate() {
        send(sending, &[number as u8])?;
        let deadline = stage.within(PATIENCE_NS);
        ensure!(stage.remote()?.wait_any(&ends, deadline).is_ok(), "something has come");
        let ready = have!(ends.iter().find(|end| end.is_ready()).ok_or(()), "an end is ready");
        expect(*ready, &[number as u8])?;
    }
    Ok(())
}

pub fn the_regulator_holds_back<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (sending, receiving) = stage.channel(plan::SLOW)?;
    (0..2).try_for_each(|number| send(&sending, &[number]))?;
    let mut loan = have!(sending.allocate(Deadline::Poll), "a block is free");
    loan[0] = 2;
    let refused = have!(sending.enqueue(loan, 1).err().ok_or(()), "the burst is over");
    let (Error::Throttled { retry_ns }, loan) = refused else {
        return Err(Failure { file: file!(), line: line!(), expected: "throttled, with the block" });
    };
    ensure!((1..=10_000_000).contains(&retry_ns), "at a hundred a second the next is due within 10 ms");
    stage.master.sleep_until(stage.now_ns() + retry_ns);
    ensure!(sending.enqueue(loan, 1).is_ok(), "then it is admitted");
    (0..3).try_for_each(|number| expect(&receiving, &[number]))
}
