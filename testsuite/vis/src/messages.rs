//! Sends and receives.

use alloc::vec::Vec;

use musubi_vipl::engine::{AsyncError, Queue, Reliability, ViState};
use musubi_vipl::over::NicNode;

use crate::descriptors::{Asks, INTO, OUT, SEGMENTS_MAX, Written};
use crate::{Failure, Part, ensure, have};

/// Statuses: of a send, of a receive, of one with immediate data, of one that the other side had no receive for.
const DONE: u32 = 0x1;
const RECEIVED: u32 = 0x1_0001;
const WITH_IMMEDIATE: u32 = 0x9_0001;
const NO_RECEIVE_THERE: u32 = 0x101;
/// Lengths at the edges of what travels how; the last one is the longest of the cases.
const LENGTHS: [usize; 12] = [0, 1, 8, 36, 95, 400, 1024, 4095, 4096, 4097, 8192, 20_000];
/// Bytes between two segments.
const GAP: usize = 5;
/// VIs that one completion queue is told of, and messages of each.
const VIS: usize = 3;
const MESSAGES: usize = 6;
/// What a sleeper is let sleep, in pauses.
const PAUSES: usize = 15;

pub(crate) fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 256 + seed) as u8).collect()
}

/// So many segments for a message from an offset on, with gaps between them.
pub(crate) fn scattered(offset: usize, length: usize, count: usize) -> Vec<(usize, usize)> {
    let piece = length / count;
    let place = |index: usize| {
        (offset + index * (piece + GAP), if index + 1 == count { length - piece * index } else { piece })
    };
    (0..count).map(place).collect()
}

impl<R: NicNode> Part<'_, R> {
    /// Puts a message where its segments are.
    pub(crate) fn scatter(&self, segments: &[(usize, usize)], message: &[u8]) -> Result<(), Failure> {
        let mut left = message;
        for (offset, bytes) in segments {
            let (piece, rest) = left.split_at(*bytes);
            self.put(*offset, piece)?;
            left = rest;
        }
        Ok(())
    }

    /// The bytes of these segments, one behind the other.
    pub(crate) fn gather(&self, segments: &[(usize, usize)]) -> Result<Vec<u8>, Failure> {
        let mut message = Vec::new();
        for (offset, bytes) in segments {
            message.extend(self.get(*offset, *bytes)?);
        }
        Ok(message)
    }
}

pub fn every_length_in_segments_with_immediate_data<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    for level in Reliability::ALL {
        let vi = part.vi(part.usual(level))?;
        let receive = |turn: usize| Written {
            segments: scattered(INTO, LENGTHS[turn], 1 + (turn * 3 + 1) % (SEGMENTS_MAX - 1)),
            ..Written::message(0, 0)
        };
        part.post(vi, Queue::Receive, 0, &receive(0))?;
        part.connect(vi)?;
        for (turn, length) in LENGTHS.into_iter().enumerate() {
            let segments = scattered(OUT, length, 1 + turn % (SEGMENTS_MAX - 1));
            let immediate = (turn % 2 == 1).then_some(turn as u32 | 0xabcd_0000);
            let send = Written { asks: Asks::Message, immediate, segments };
            let message = bytes(length, turn);
            if !part.serves() {
                part.scatter(&send.segments, &message)?;
                part.post(vi, Queue::Send, 2, &send)?;
                ensure!(part.wait(vi, Queue::Send)?.status == DONE, "a message goes out");
            }
            let came = part.wait(vi, Queue::Receive)?;
            let expected = if immediate.is_some() { WITH_IMMEDIATE } else { RECEIVED };
            ensure!((came.status, came.bytes) == (expected, length as u32), "a message comes");
            ensure!(immediate.is_none_or(|word| came.immediate == word), "with its immediate data");
            ensure!(part.gather(&receive(turn).segments)? == message, "it is what was sent");
            if turn + 1 < LENGTHS.len() {
                part.post(vi, Queue::Receive, 0, &receive(turn + 1))?;
            }
            if part.serves() {
                part.scatter(&send.segments, &message)?;
                part.post(vi, Queue::Send, 2, &send)?;
                ensure!(part.wait(vi, Queue::Send)?.status == DONE, "it goes back");
            }
        }
        part.end(vi)?;
    }
    Ok(())
}

impl<R: NicNode> Part<'_, R> {
    /// Both have done what they wanted with a VI of the case.
    pub(crate) fn end(&mut self, vi: musubi_vipl::nic::ViNumber) -> Result<(), Failure> {
        self.meet()?;
        have!(self.nic().disconnect(vi), "there is this VI");
        for queue in [Queue::Send, Queue::Receive] {
            while self.done(vi, queue)?.is_some() {}
        }
        self.destroy(vi)?;
        self.meet()?;
        self.news().map(|_| ())
    }
}

pub fn one_queue_tells_of_many_vis<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let queue = have!(part.nic().with(|nic| nic.create_queue(64)), "there is a completion queue");
    let mut vis = Vec::new();
    for index in 0..VIS {
        let vi = part.vi_with(part.usual(Reliability::ALL[index]), Some(queue))?;
        for place in index * MESSAGES..(index + 1) * MESSAGES {
            part.post(vi, Queue::Receive, place, &Written::message(INTO + place * 8, 8))?;
        }
        part.connect(vi)?;
        vis.push(vi);
    }
    if !part.serves() {
        for number in 0..VIS * MESSAGES {
            part.put(OUT + number * 8, &(number as u64).to_le_bytes())?;
            let place = VIS * MESSAGES + number;
            part.post(vis[number % VIS], Queue::Send, place, &Written::message(OUT + number * 8, 8))?;
        }
    }
    let expected = if part.serves() { Queue::Receive } else { Queue::Send };
    let mut told = [0; VIS];
    for _ in 0..VIS * MESSAGES {
        let (vi, of) = have!(part.nic().wait_completion(queue, part.soon()), "a completion is told of");
        let Some(index) = vis.iter().position(|one| *one == vi).filter(|_| of == expected) else {
            return Err(Failure { file: file!(), line: line!(), expected: "one of these queues", found: None });
        };
        let Some(done) = part.done(vi, of)? else {
            return Err(Failure { file: file!(), line: line!(), expected: "it has completed", found: None });
        };
        if part.serves() {
            let number = (told[index] * VIS + index) as u64;
            ensure!(done.place == index * MESSAGES + told[index], "receives are used in order");
            ensure!(part.get(INTO + done.place * 8, 8)? == number.to_le_bytes(), "messages of a VI come in order");
        }
        told[index] += 1;
    }
    ensure!(told == [MESSAGES; VIS], "as many as were posted");
    vis.into_iter().try_for_each(|vi| part.end(vi))?;
    have!(part.nic().with(|nic| nic.destroy_queue(queue)), "nobody uses the queue any more");
    Ok(())
}

pub fn a_message_without_a_receive_is_told_by_its_level<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    for level in Reliability::ALL {
        let vi = part.vi(part.usual(level))?;
        part.connect(vi)?;
        if !part.serves() {
            part.post(vi, Queue::Send, 0, &Written::message(OUT, 8))?;
            let expected = if level == Reliability::Reception { NO_RECEIVE_THERE } else { DONE };
            ensure!(part.wait(vi, Queue::Send)?.status == expected, "the send ends as its level says");
        }
        if level.is_reliable() {
            part.lost(vi)?;
        }
        part.meet()?;
        let expected = if level.is_reliable() { ViState::Error } else { ViState::Connected };
        ensure!(part.state(vi)? == expected, "a reliable connection has ended, and no other");
        let told = part.news()?.contains(&(Some(vi), AsyncError::ReceiveQueueEmpty));
        ensure!(told == part.serves(), "who had none is told");
        part.end(vi)?;
    }
    Ok(())
}

pub fn a_sleeper_is_woken<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let vi = part.vi(part.usual(Reliability::Delivery))?;
    part.post(vi, Queue::Receive, 0, &Written::message(INTO, 8))?;
    part.connect(vi)?;
    if part.serves() {
        ensure!(part.wait(vi, Queue::Receive)?.status == WITH_IMMEDIATE, "the message wakes who waits");
    } else {
        (0..PAUSES).try_for_each(|_| part.pause())?;
        part.post(vi, Queue::Send, 1, &Written::signal(1))?;
        ensure!(part.wait(vi, Queue::Send)?.status == DONE, "a message goes out");
    }
    part.end(vi)
}
