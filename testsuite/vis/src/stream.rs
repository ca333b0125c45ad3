//! A stream of numbered messages over a VI of each reliable level, and what its receiver makes of it.
//!
//! How it works: the sender has at most [`WINDOW`] descriptors posted and goes no further than [`RECEIVES`] messages beyond what
//! the receiver has told by credit, which is the immediate data of messages without bytes. Before every eighth message its
//! number is written into the receiver's table by RDMA. One completion queue tells each side of both VIs.

use alloc::vec::Vec;

use musubi_vipl::engine::{AsyncError, Queue, Reliability, RemotePlace, ViState};
use musubi_vipl::nic::{QueueNumber, ViNumber};
use musubi_vipl::over::NicNode;

use crate::descriptors::{Asks, Done, INTO, OUT, Written};
use crate::messages::bytes;
use crate::remote::behind;
use crate::{Failure, Part, ensure, have};

/// The levels at which nothing may be lost.
pub const LEVELS: [Reliability; 2] = [Reliability::Delivery, Reliability::Reception];
/// Ports of the VIs, by level.
const PORTS: [&[u8]; 2] = [b"stream of delivery", b"stream of reception"];
/// Receives that the receiver has posted on each VI.
const RECEIVES: usize = 16;
/// Messages that a credit stands for.
const CREDIT: u32 = 8;
/// Credits under way: sends of the receiver, receives of the sender.
const CREDITS: usize = 6;
/// Descriptors that the sender has posted on each VI.
const WINDOW: usize = 8;
/// Places of descriptors of each VI.
const PLACES: usize = RECEIVES + CREDITS;
/// Bytes of a buffer: the longest message.
const BUFFER: usize = 256;
/// Where the receiver's table is: a word for each VI.
const TABLE: usize = OUT;
/// Entries of the completion queues.
const ENTRIES: u32 = 128;
/// Bits of a status that say that the descriptor was flushed, or anything else went wrong.
const FLUSHED: u32 = 0x20;
const ERRORS: u32 = 0x1fe;

fn message(number: u32) -> Vec<u8> {
    let mut message = Vec::from(number.to_le_bytes());
    message.extend(bytes(number as usize * 61 % (BUFFER - 4), number as usize));
    message
}

/// What became of the descriptors and messages of one VI of the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages that came.
    pub received: u32,
    /// Of those, messages that were not the next one, or not as they were sent; and writes that were missing.
    pub wrong: u32,
    /// Descriptors that were posted.
    pub posted: u32,
    /// Of those, descriptors that completed without an error.
    pub completed: u32,
    /// Of those, descriptors that came back flushed.
    pub flushed: u32,
    /// Descriptors that came back otherwise than in the order in which they were posted, or with another error.
    pub misplaced: u32,
    /// How often the loss of the connection was told.
    pub told: u32,
}

/// The receiver's account of a stream, by [`LEVELS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account(pub [Totals; 2]);

impl Account {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = self
            .0
            .iter()
            .flat_map(|one| [one.received, one.wrong, one.posted, one.completed, one.flushed, one.misplaced, one.told]);
        words.flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Account> {
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let totals = |of: &[u32]| {
            let [received, wrong, posted, completed, flushed, misplaced, told] = *of.first_chunk()?;
            Some(Totals { received, wrong, posted, completed, flushed, misplaced, told })
        };
        Some(Account([totals(&words)?, totals(words.get(7..)?)?]))
    }

    /// Messages that had completed at the sender, by level, and did not come; or came wrong.
    pub fn lost(&self, completed: [u32; 2]) -> u32 {
        let missing = completed.into_iter().zip(&self.0).map(|(sent, one)| sent.saturating_sub(one.received));
        missing.sum::<u32>() + self.0.iter().map(|one| one.wrong).sum::<u32>()
    }

    /// Descriptors that neither completed nor were flushed, or not in their turn.
    pub fn stray(&self) -> u32 {
        let stray = |one: &Totals| one.posted.abs_diff(one.completed + one.flushed) + one.misplaced;
        self.0.iter().map(stray).sum()
    }
}

/// The VIs of a stream, at either side.
pub(crate) struct Stream {
    queue: QueueNumber,
    vis: [ViNumber; 2],
}

impl Stream {
    /// Makes the VIs.
    pub(crate) fn new<R: NicNode>(part: &Part<'_, R>) -> Result<Stream, Failure> {
        let queue = have!(part.nic().with(|nic| nic.create_queue(ENTRIES)), "there is a completion queue");
        let vi = |level: Reliability| part.vi_with(part.usual(level), Some(queue));
        Ok(Stream { queue, vis: [vi(LEVELS[0])?, vi(LEVELS[1])?] })
    }

    fn connect<R: NicNode>(&self, part: &Part<'_, R>) -> Result<(), Failure> {
        self.vis.into_iter().zip(PORTS).try_for_each(|(vi, port)| part.connect_at(port, vi))
    }

    /// Ends the connections of VIs of which everything has come back.
    pub(crate) fn disconnect<R: NicNode>(&self, part: &Part<'_, R>) -> Result<(), Failure> {
        for vi in self.vis {
            have!(part.nic().disconnect(vi), "there is this VI");
            for queue in [Queue::Send, Queue::Receive] {
                while part.done(vi, queue)?.is_some() {}
            }
            ensure!(part.state(vi)? == ViState::Idle, "it can be connected again");
        }
        Ok(())
    }

    /// Ends all of it.
    pub(crate) fn destroy<R: NicNode>(self, part: &Part<'_, R>) -> Result<(), Failure> {
        self.vis.into_iter().try_for_each(|vi| part.destroy(vi))?;
        have!(part.nic().with(|nic| nic.destroy_queue(self.queue)), "nobody uses the queue any more");
        Ok(())
    }

    /// The next descriptor that has completed: of which level, which queue, and what it says.
    fn next<R: NicNode>(&self, part: &Part<'_, R>) -> Result<(usize, Queue, Done), Failure> {
        let (vi, queue) = have!(part.nic().wait_completion(self.queue, part.soon()), "a completion is told of");
        let done = part.done(vi, queue)?;
        let found = self.vis.iter().position(|one| *one == vi).zip(done).map(|(level, done)| (level, queue, done));
        found.ok_or(Failure { file: file!(), line: line!(), expected: "one of these descriptors", found: None })
    }

    // ---- the receiver ----

    /// Receives until both connections are lost and everything has come back.
    pub(crate) fn receive<R: NicNode>(&self, part: &mut Part<'_, R>) -> Result<Account, Failure> {
        part.news()?;
        part.put(TABLE, &[0xff; 8])?;
        part.exchange_regions()?;
        let mut receivers = [0, 1].map(|level| Receiver { level, totals: Totals::default(), back: [0; 2], credits: 0 });
        for receiver in &mut receivers {
            for place in 0..RECEIVES {
                receiver.post(part, self.vis[receiver.level], place)?;
            }
        }
        self.connect(part)?;
        loop {
            let is_over =
                receivers.iter().map(|one| Ok(one.has_all() && part.state(self.vis[one.level])? == ViState::Error));
            if is_over.collect::<Result<Vec<bool>, Failure>>()? == [true; 2] {
                break;
            }
            let (level, queue, done) = self.next(part)?;
            receivers[level].take(part, self.vis[level], (queue, done))?;
        }
        let news = part.news()?;
        for one in &mut receivers {
            let lost = (Some(self.vis[one.level]), AsyncError::ConnectionLost);
            one.totals.told = news.iter().filter(|news| **news == lost).count() as u32;
        }
        Ok(Account(receivers.map(|one| one.totals)))
    }

    // ---- the sender ----

    /// Sends until `hear`, who is told the level of each message that has completed, does not want any more; gives how many
    /// had completed by then.
    pub(crate) fn send<R: NicNode>(
        &self,
        part: &mut Part<'_, R>,
        mut hear: impl FnMut(usize, u32) -> bool,
    ) -> Result<[u32; 2], Failure> {
        let table = behind(part.exchange_regions()?, TABLE);
        let mut senders = [0, 1].map(|level| Sender { level, table, ..Sender::default() });
        for sender in &senders {
            for credit in 0..CREDITS {
                sender.post_credit(part, self.vis[sender.level], sender.level * PLACES + WINDOW + credit)?;
            }
        }
        self.connect(part)?;
        loop {
            for sender in &mut senders {
                while sender.may_post() {
                    sender.post(part, self.vis[sender.level])?;
                }
            }
            let (level, queue, done) = self.next(part)?;
            ensure!(done.status & ERRORS == 0, "the receiver takes everything");
            let sender = &mut senders[level];
            if queue == Queue::Receive {
                sender.credited = done.immediate;
                sender.post_credit(part, self.vis[level], done.place)?;
            } else if sender.has_completed() && !hear(level, sender.completed) {
                return Ok(senders.map(|sender| sender.completed));
            }
        }
    }
}

/// The receiver's end of a VI.
struct Receiver {
    level: usize,
    totals: Totals,
    /// Receives and sends that have come back.
    back: [usize; 2],
    /// Credits that were sent.
    credits: usize,
}

impl Receiver {
    fn buffer(&self, place: usize) -> usize {
        INTO + (self.level * RECEIVES + place) * BUFFER
    }

    fn post<R: NicNode>(&mut self, part: &Part<'_, R>, vi: ViNumber, place: usize) -> Result<(), Failure> {
        self.totals.posted += 1;
        part.post(vi, Queue::Receive, self.level * PLACES + place, &Written::message(self.buffer(place), BUFFER))
    }

    fn has_all(&self) -> bool {
        self.totals.posted as usize == self.back.iter().sum()
    }

    fn take<R: NicNode>(
        &mut self,
        part: &Part<'_, R>,
        vi: ViNumber,
        (queue, done): (Queue, Done),
    ) -> Result<(), Failure> {
        let is_receive = queue == Queue::Receive;
        let back = &mut self.back[usize::from(!is_receive)];
        let turn = if is_receive { *back % RECEIVES } else { RECEIVES + *back % CREDITS };
        *back += 1;
        let in_turn = done.place == self.level * PLACES + turn;
        let is_flushed = done.status & FLUSHED != 0;
        self.totals.misplaced += u32::from(!in_turn || (done.status & ERRORS & !FLUSHED != 0));
        self.totals.flushed += u32::from(is_flushed);
        self.totals.completed += u32::from(!is_flushed);
        if !is_receive || is_flushed {
            return Ok(());
        }
        let number = self.totals.received;
        let came = part.get(self.buffer(turn), done.bytes as usize)?;
        let is_right = came == message(number) && (!number.is_multiple_of(CREDIT) || self.is_written(part, number)?);
        self.totals.wrong += u32::from(!is_right);
        self.totals.received += 1;
        self.post(part, vi, turn)?;
        if self.totals.received.is_multiple_of(CREDIT) {
            let place = self.level * PLACES + RECEIVES + self.credits % CREDITS;
            self.credits += 1;
            self.totals.posted += 1;
            part.post(vi, Queue::Send, place, &Written::signal(self.totals.received))?;
        }
        Ok(())
    }

    /// Whether the write that goes before the message of this number lies in the table, or a later one.
    fn is_written<R: NicNode>(&self, part: &Part<'_, R>, number: u32) -> Result<bool, Failure> {
        let word = part.get(TABLE + 4 * self.level, 4)?;
        let written = word.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        Ok(written.is_some_and(|written| written >= number && written < number + 2 * RECEIVES as u32))
    }
}

/// The sender's end of a VI.
#[derive(Default)]
struct Sender {
    level: usize,
    table: RemotePlace,
    /// Descriptors that were posted, and that have come back.
    posted: usize,
    back: usize,
    /// Messages that were posted, that have completed, and that the receiver has had.
    sent: u32,
    completed: u32,
    credited: u32,
    /// The write before the next message was posted.
    has_written: bool,
    /// Which of the last descriptors were messages, by place.
    are_messages: [bool; WINDOW],
}

impl Sender {
    fn may_post(&self) -> bool {
        self.posted - self.back < WINDOW && self.sent < self.credited + RECEIVES as u32
    }

    fn post<R: NicNode>(&mut self, part: &Part<'_, R>, vi: ViNumber) -> Result<(), Failure> {
        let index = self.posted % WINDOW;
        let place = self.level * PLACES + index;
        let buffer = OUT + (self.level * WINDOW + index) * BUFFER;
        let writes = self.sent.is_multiple_of(CREDIT) && !self.has_written;
        let what = if writes {
            part.put(buffer, &self.sent.to_le_bytes())?;
            Written { asks: Asks::Write(behind(self.table, 4 * self.level)), ..Written::message(buffer, 4) }
        } else {
            let message = message(self.sent);
            part.put(buffer, &message)?;
            self.sent += 1;
            Written::message(buffer, message.len())
        };
        self.has_written = writes;
        self.are_messages[index] = !writes;
        self.posted += 1;
        part.post(vi, Queue::Send, place, &what)
    }

    fn post_credit<R: NicNode>(&self, part: &Part<'_, R>, vi: ViNumber, place: usize) -> Result<(), Failure> {
        part.post(vi, Queue::Receive, place, &Written { segments: Vec::new(), ..Written::signal(0) })
    }

    /// The oldest descriptor has completed. Whether it was a message, rather than a write.
    fn has_completed(&mut self) -> bool {
        let is_message = self.are_messages[self.back % WINDOW];
        self.back += 1;
        self.completed += u32::from(is_message);
        is_message
    }
}
