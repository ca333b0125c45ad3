//! What every process did, in memory that survives its death.
//!
//! What you may rely on: a word that was stored is seen by all, also if the process is killed in the next instruction.
//! Words of an end are written by the process that holds the end; while it is dead, by the supervisor.
//!
//! How it works: pages of the supervisor's that each participant maps. Messages are numbered within the sender's
//! incarnation, so that two words an incarnation, the last committed and the last received, say everything about it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use musubi_linux::bare::BarePages;

use crate::system::{CHANNELS, PARTICIPANTS};

/// Most incarnations of one participant.
pub const INCARNATIONS_MAX: u32 = 16_384;
/// Value of the phase that ends the run.
pub const END: u32 = u32::MAX;

/// Number under which the supervisor's own threads count.
pub const SUPERVISOR: u16 = PARTICIPANTS;

/// Words of a participant.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Odd while it may be stopped (SIGSTOP); changes with each stop.
    Stops,
    /// Calls with a deadline.
    Calls,
    /// Of these, past their deadline by more than the margin although they could run and were not stopped.
    Late,
    /// Past their deadline while a control thread was late, too.
    MachineLate,
    /// Past their deadline by no more than plain sleeps had been before.
    UsuallyLate,
    /// Past their deadline while stopped.
    Stopped,
    /// Longest overrun, waiting for a processor not counted, in microseconds.
    OverrunUsMax,
    /// Longest overrun as the clock shows it, stops not counted, in microseconds.
    RawOverrunUsMax,
    /// Sleeps of the control thread, which uses nothing of Musubi.
    ControlCalls,
    /// Of these, late by the same rule.
    ControlLate,
    /// Their longest overrun, in microseconds.
    ControlOverrunUsMax,
    /// Turns under the lock that were completed.
    Turns,
    /// The counter under the lock after our last turn.
    Counter,
    /// Times that memory under the lock was found half written.
    Torn,
    /// Times that somebody else was inside the lock together with us.
    Intruders,
    /// Losses of a peer that calls reported.
    Losses,
    /// Errors that may not be.
    Faults,
}

/// Words of a FIFO channel.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// Phase for which the sender has stopped sending.
    Paused,
    /// Phase for which the receiver has taken and freed everything.
    Drained,
    /// Phase for which the sender has counted its blocks.
    Checked,
    /// Free blocks it counted.
    Free,
    /// Incarnation of the receiver that last received its first message.
    Receiver,
    /// When that was, in microseconds of the clock, wrapping.
    ReceiverUs,
    /// Incarnation of the sender whose message was received last.
    Sender,
    /// When its first was received.
    SenderUs,
    /// Messages received twice or after later ones.
    Duplicated,
    /// Messages whose contents were not what was sent.
    Corrupt,
    /// 1 from before a dequeue until its record is written.
    Dequeuing,
    /// Announcements that the receiver refused.
    Refused,
}

/// Words of a channel that each incarnation of the sender has.
#[derive(Clone, Copy, Debug)]
pub enum In {
    /// The last message whose enqueue had returned.
    Committed,
    /// The last message that was dequeued.
    Received,
    /// Messages before that which nobody dequeued.
    Missing,
}

/// The record.
#[derive(Debug)]
pub struct Record(BarePages);

const OF_WORDS: usize = 32;
const AT_WORDS: usize = 32;
const PHASE: usize = 0;
const HICCUP_BASE: usize = 32;
const HICCUPS: usize = 256;
const HICCUP_NS: u64 = 1 << 24;
const HICCUP_US_MAX: u32 = (1 << 20) - 1;
const PARTICIPANT_BASE: usize = HICCUP_BASE + HICCUPS;
const CHANNEL_BASE: usize = PARTICIPANT_BASE + OF_WORDS * (PARTICIPANTS as usize + 1);
const TABLE_BASE: usize = CHANNEL_BASE + AT_WORDS * CHANNELS as usize;
const TABLE_WORDS: usize = CHANNELS as usize * INCARNATIONS_MAX as usize;
const BYTES: usize = (TABLE_BASE + 3 * TABLE_WORDS) * 4;

impl Record {
    /// An empty record.
    pub fn create() -> anyhow::Result<Record> {
        Ok(Record(BarePages::create(BYTES).context("making the record")?))
    }

    /// The record of the supervisor.
    pub fn open(path: &Path) -> anyhow::Result<Record> {
        Ok(Record(BarePages::open(path).context("opening the record")?))
    }

    /// Where others find it.
    pub fn path(&self) -> String {
        self.0.path()
    }

    /// Even: run; odd: stop sending and count blocks; [`END`]: leave.
    pub fn phase(&self) -> Word<'_> {
        self.word(PHASE)
    }

    /// A word of a participant.
    pub fn of(&self, participant: u16, what: Of) -> Word<'_> {
        self.word(PARTICIPANT_BASE + OF_WORDS * usize::from(participant) + what as usize)
    }

    /// A word of a channel.
    pub fn at(&self, channel: u16, what: At) -> Word<'_> {
        self.word(CHANNEL_BASE + AT_WORDS * usize::from(channel) + what as usize)
    }

    /// A word of a channel for an incarnation of its sender.
    pub fn of_incarnation(&self, channel: u16, incarnation: u32, what: In) -> Word<'_> {
        let row = usize::from(channel) * INCARNATIONS_MAX as usize + (incarnation % INCARNATIONS_MAX) as usize;
        self.word(TABLE_BASE + TABLE_WORDS * what as usize + row)
    }

    /// A control thread was late by this much.
    pub fn note_hiccup(&self, now_ns: u64, us: u32) {
        let mark = hiccup_mark(now_ns);
        let keep_larger = |old| {
            let before = if old & !HICCUP_US_MAX == mark { old & HICCUP_US_MAX } else { 0 };
            Some(mark | before.max(us.min(HICCUP_US_MAX)))
        };
        let _ = self.hiccup(now_ns).0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, keep_larger);
    }

    /// By how much control threads were late between two instants, at most.
    pub fn hiccup_us(&self, from_ns: u64, to_ns: u64) -> u32 {
        let of = |ns| {
            let word = self.hiccup(ns).get();
            if word & !HICCUP_US_MAX == hiccup_mark(ns) { word & HICCUP_US_MAX } else { 0 }
        };
        let periods = from_ns / HICCUP_NS..=to_ns / HICCUP_NS;
        periods.take(HICCUPS).map(|period| of(period * HICCUP_NS)).max().unwrap_or(0)
    }

    /// The word of the period of some milliseconds in which an instant lies: its mark, and the largest lateness.
    fn hiccup(&self, ns: u64) -> Word<'_> {
        self.word(HICCUP_BASE + (ns / HICCUP_NS) as usize % HICCUPS)
    }

    fn word(&self, index: usize) -> Word<'_> {
        Word(self.0.word(index * 4))
    }
}

/// Tells a period from those that used the same word before.
fn hiccup_mark(ns: u64) -> u32 {
    ((ns / HICCUP_NS / HICCUPS as u64) as u32) << HICCUP_US_MAX.count_ones()
}

/// One word of the record.
#[derive(Clone, Copy, Debug)]
pub struct Word<'r>(&'r AtomicU32);

impl Word<'_> {
    /// Its value.
    pub fn get(self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Stores a value.
    pub fn set(self, value: u32) {
        self.0.store(value, Ordering::SeqCst);
    }

    /// Adds one.
    pub fn count(self) {
        self.add(1);
    }

    /// Adds.
    pub fn add(self, count: u32) {
        self.0.fetch_add(count, Ordering::SeqCst);
    }

    /// Keeps the larger value.
    pub fn raise(self, value: u32) {
        self.0.fetch_max(value, Ordering::SeqCst);
    }
}
