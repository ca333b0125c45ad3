//! The sending thread of a channel.
//!
//! How it works: bursts of random length with pauses; several blocks are allocated before the first is enqueued, some
//! go out in another order than they were allocated, some are given back unsent. A message begins with the sender's
//! incarnation and its number; the rest is computed from these.

use std::time::Duration;

use musubi_core::Error;
use musubi_core::channel::{Attachment, SendingEnd};
use musubi_core::fifo::Loan;
use musubi_linux as linux;

use crate::place::{PAUSE, Phase, Place};
use crate::record::{At, In, Of};
use crate::timing::Timing;

/// How long an allocation waits.
const WAIT: Duration = Duration::from_millis(20);
/// Longest pause between bursts, in microseconds.
const PAUSE_US_MAX: u64 = 4_000;
/// Most blocks in hand at once.
const IN_HAND_MAX: u32 = 3;
/// How long blocks may take to come back after the receiver has freed them.
const RETURN_TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes before the computed part.
pub const HEAD_BYTES: u32 = 16;

/// Sends until the phase says end.
pub fn run(place: Place<'_>, channel: u16) -> anyhow::Result<()> {
    let end = place.participant.open_sending(channel)?;
    let random = place.random(channel);
    let mut sender = Sending {
        place,
        channel,
        end: &end,
        timing: place.timing(&format!("an allocation on channel {channel}"))?,
        random,
        sent: 0,
    };
    while !end.usage().connected && place.phase() != Phase::End {
        // What nobody has mapped yet would die with us: a message is safe from when its channel is connected.
        std::thread::sleep(PAUSE);
    }
    loop {
        match place.phase() {
            Phase::Run => sender.burst(),
            Phase::Settle(phase) => sender.settle(phase),
            Phase::End => return Ok(()),
        }
    }
}

struct Sending<'p> {
    place: Place<'p>,
    channel: u16,
    end: &'p linux::SendingEnd,
    timing: Timing<'p>,
    random: fastrand::Rng,
    /// Number of the last message.
    sent: u32,
}

impl<'p> Sending<'p> {
    fn burst(&mut self) {
        let blocks = self.end.usage().blocks;
        for _ in 0..self.random.u32(1..=blocks) {
            let count = self.random.u32(1..=IN_HAND_MAX.min(blocks));
            self.send_some(count);
        }
        std::thread::sleep(Duration::from_micros(self.random.u64(0..=PAUSE_US_MAX)));
    }

    /// Allocates some blocks, then sends them.
    fn send_some(&mut self, count: u32) {
        let mut loans: Vec<Loan<'p>> = Vec::new();
        for _ in 0..count {
            match self.timing.timed(WAIT, |deadline| self.end.allocate(deadline)) {
                Ok(loan) => loans.push(loan),
                Err(error) => {
                    self.note(error);
                    break;
                }
            }
        }
        if self.random.u32(0..4) == 0 {
            self.random.shuffle(&mut loans);
        }
        for loan in loans {
            self.send(loan);
        }
    }

    fn send(&mut self, mut loan: Loan<'p>) {
        if self.random.u32(0..32) == 0 {
            let freed = self.end.free(loan);
            return if freed.is_err() {
                self.fault()
            };
        }
        let number = self.sent + 1;
        let bytes = self.random.u32(HEAD_BYTES..=loan.len() as u32);
        write(&mut loan[..bytes as usize], self.place.incarnation, number);
        if self.end.enqueue(loan, bytes).is_err() {
            return self.fault();
        }
        self.place.record.of_incarnation(self.channel, self.place.incarnation, In::Committed).set(number);
        self.sent = number;
        self.end.notify();
    }

    /// Stops sending and counts the blocks once the receiver has freed all.
    fn settle(&mut self, phase: u32) {
        let (record, channel) = (self.place.record, self.channel);
        let at = |what| record.at(channel, what);
        at(At::Paused).set(phase);
        while at(At::Drained).get() != phase {
            if self.place.phase() != Phase::Settle(phase) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        let begin = std::time::Instant::now();
        while self.end.usage().free < self.end.usage().blocks && begin.elapsed() < RETURN_TIME_MAX {
            // The pool takes returns back when it is empty; taking all blocks makes it look.
            self.take_and_free_all();
            std::thread::sleep(PAUSE);
        }
        at(At::Free).set(self.end.usage().free);
        at(At::Checked).set(phase);
        while self.place.phase() == Phase::Settle(phase) {
            std::thread::sleep(PAUSE);
        }
    }

    fn take_and_free_all(&mut self) {
        let mut loans = Vec::new();
        while let Ok(loan) = self.end.allocate(musubi_core::channel::Deadline::Poll) {
            loans.push(loan);
        }
        for loan in loans {
            if self.end.free(loan).is_err() {
                self.fault();
            }
        }
    }

    fn note(&self, error: Error) {
        match error {
            Error::Timeout => {}
            Error::PeerGone => self.place.record.of(self.place.domain, Of::Losses).count(),
            _ => self.fault(),
        }
    }

    fn fault(&self) {
        self.place.record.of(self.place.domain, Of::Faults).count();
    }
}

/// Fills a message.
fn write(payload: &mut [u8], incarnation: u32, number: u32) {
    let bytes = payload.len() as u32;
    for (word, value) in payload[..HEAD_BYTES as usize].chunks_exact_mut(4).zip([incarnation, number, bytes, !number]) {
        word.copy_from_slice(&value.to_le_bytes());
    }
    for offset in places(bytes) {
        payload[offset as usize] = content(incarnation, number, offset);
    }
}

/// The bytes of a message that are written and checked: all of a short one, some of a long one, always the last.
pub fn places(bytes: u32) -> impl Iterator<Item = u32> {
    let step = if bytes <= 1_024 { 1 } else { 251 };
    (HEAD_BYTES..bytes).step_by(step).chain((bytes > HEAD_BYTES).then(|| bytes - 1))
}

/// What a byte of a message must be.
pub fn content(incarnation: u32, number: u32, offset: u32) -> u8 {
    let mixed = (incarnation.wrapping_mul(0x9e37_79b9) ^ number).wrapping_mul(0x85eb_ca6b) ^ offset;
    (mixed.wrapping_mul(0xc2b2_ae35) >> 24) as u8
}
