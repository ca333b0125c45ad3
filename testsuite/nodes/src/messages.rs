//! Messages and endpoints.

use alloc::vec::Vec;

use musubi_mcapi::limits::{MESSAGE_CREDIT, PRIORITIES};
use musubi_mcapi::over::Running;
use musubi_mcapi::{Error, Named};

use crate::{Failure, Part, ensure, have};

/// What a wait in vain takes, nanoseconds.
const SHORT_NS: u64 = 20_000_000;
/// Lengths at the edges of what travels how; the last one is the longest.
const LENGTHS: [usize; 10] = [0, 1, 36, 37, 95, 96, 400, 401, 4095, 4096];
/// What a sleeper is let sleep, nanoseconds.
const SLEEP_NS: u64 = 30_000_000;

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + seed) as u8).collect()
}

pub fn a_name_is_waited_for_and_the_wait_ends<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    part.misses(1, SHORT_NS)?;
    part.meet()?;
    let _late = match part.sends() {
        true => None,
        false => {
            part.misses(1, SHORT_NS)?;
            Some(part.endpoint(0)?)
        }
    };
    if part.sends() {
        let found = part.of(part.partner(), 0)?;
        ensure!(found.name().node() == part.partner(), "the name says whose endpoint it is");
    }
    part.meet()
}

pub fn every_length_arrives_exact<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let sent = bytes(length, seed);
        if part.sends() {
            have!(mine.send(&theirs, 0, &sent, part.soon()), "a message goes out");
        }
        let message = have!(mine.receive(part.soon()), "a message comes");
        ensure!(message.to_vec() == sent, "it is what was sent");
        ensure!(message.from() == theirs.name(), "it says from where");
        if !part.sends() {
            have!(mine.send(&theirs, 0, &message.to_vec(), part.soon()), "a message goes back");
        }
    }
    let longer = bytes(LENGTHS[9] + 1, 0);
    ensure!(mine.send(&theirs, 0, &longer, part.soon()) == Err(Error::MessageSize), "a longer one is refused");
    part.meet()
}

pub fn the_most_urgent_is_first<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    if part.sends() {
        for priority in (0..u32::from(PRIORITIES)).rev() {
            for number in 0..2 {
                have!(mine.send(&theirs, priority, &[priority as u8, number], part.soon()), "a message goes out");
            }
        }
        let none = mine.send(&theirs, PRIORITIES.into(), &[], part.soon());
        ensure!(none == Err(Error::Priority), "there is no such priority");
    }
    part.meet()?;
    if !part.sends() {
        for place in 0..2 * PRIORITIES {
            let message = have!(mine.receive(part.soon()), "all have come");
            ensure!(message.to_vec() == [place / 2, place % 2], "by priority, then in order");
        }
    }
    part.meet()
}

pub fn credit_stops_the_sender<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    if part.sends() {
        let mut sent = 0u32;
        while have!(mine.try_send(&theirs, 1, &sent.to_le_bytes()), "it goes or does not") {
            sent += 1;
            ensure!(sent <= MESSAGE_CREDIT, "no more than the credit goes");
        }
        ensure!(sent == MESSAGE_CREDIT, "all of the credit can be used");
        let more = mine.send(&theirs, 1, &sent.to_le_bytes(), part.within(SHORT_NS));
        ensure!(more == Err(Error::Timeout), "one more waits until the deadline");
        part.meet()?;
        have!(mine.send(&theirs, 1, &sent.to_le_bytes(), part.soon()), "and goes when there is credit again");
    } else {
        part.meet()?;
        for number in 0..=MESSAGE_CREDIT {
            let message = have!(mine.receive(part.soon()), "all have come");
            ensure!(message.to_vec() == number.to_le_bytes(), "in order");
        }
    }
    part.meet()
}

pub fn a_receive_that_is_dropped_takes_nothing<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    let mut first = have!(mine.request_receive(), "a receive begins");
    ensure!(matches!(first.wait(part.within(SHORT_NS)), Err(Error::Timeout)), "nothing has come");
    drop(first);
    let mut second = have!(mine.request_receive(), "another one begins");
    part.meet()?;
    have!(mine.send(&theirs, 0, b"for the second", part.soon()), "a message goes out");
    let message = have!(second.wait(part.soon()), "it goes to the one that is left");
    ensure!(message.to_vec() == b"for the second", "as it was sent");
    ensure!(matches!(mine.try_receive(), Ok(None)), "once");
    part.meet()
}

pub fn everybody_reaches_everybody<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let (nodes, place) = (part.nodes(), part.place());
    let others = || nodes.iter().enumerate().filter(|(other, _)| *other != place);
    for (_, node) in others() {
        let theirs = part.of(*node, 0)?;
        have!(mine.send(&theirs, 0, &[part.place() as u8], part.soon()), "a message goes to each");
    }
    let mut heard = Vec::new();
    for _ in others() {
        let message = have!(mine.receive(part.soon()), "a message comes from each");
        ensure!(
            part.nodes().iter().position(|node| *node == message.from().node()) == Some(message.to_vec()[0].into()),
            "it is from whom it says"
        );
        heard.push(message.from().node());
    }
    heard.sort_unstable();
    heard.dedup();
    ensure!(heard.len() == part.nodes().len() - 1, "one from each");
    part.meet()?;
    // The others may still look for ours: all say that they have done, to node 0, who says so to all.
    let all = part.endpoint(1)?;
    if part.place() != 0 {
        let root = part.of(part.nodes()[0], 1)?;
        have!(all.send(&root, 0, &[], part.soon()), "word goes to node 0");
        have!(all.receive(part.soon()), "and back");
        return Ok(());
    }
    for _ in others() {
        have!(all.receive(part.soon()), "all are done");
    }
    for (_, node) in others() {
        let theirs = part.of(*node, 1)?;
        have!(all.send(&theirs, 0, &[], part.soon()), "and are told so");
    }
    Ok(())
}

pub fn a_sleeper_is_woken<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    for round in 0..4u8 {
        if part.sends() == (round % 2 == 0) {
            // Nothing comes meanwhile: the partner has looked long enough and sleeps.
            let nothing = mine.receive(part.within(SLEEP_NS));
            ensure!(matches!(nothing, Err(Error::Timeout)), "the partner sleeps");
            have!(mine.send(&theirs, 0, &[round], part.soon()), "a message goes out");
        } else {
            let message = have!(mine.receive(part.soon()), "it wakes the partner");
            ensure!(message.to_vec() == [round], "each time");
        }
    }
    part.meet()
}
