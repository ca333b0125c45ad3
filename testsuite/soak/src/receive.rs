//! The receiving thread of a channel.
//!
//! How it works: waits, takes a random number of messages, records each at once, checks its contents, keeps some blocks
//! and gives them back in another order. What a predecessor recorded is where this one's counting begins.

use std::time::Duration;

use musubi_core::Error;
use musubi_core::channel::{Attachment, ReceivingEnd};
use musubi_core::fifo::Received;
use musubi_linux as linux;
use musubi_linux::clock::now_ns;

use crate::place::{PAUSE, Phase, Place};
use crate::record::{At, In, Of};
use crate::send::{HEAD_BYTES, content, places};
use crate::timing::Timing;

/// How long a wait waits.
const WAIT: Duration = Duration::from_millis(20);
/// Most blocks kept in hand.
const KEPT_MAX: u32 = 3;
/// Most messages taken after one wait.
const TAKEN_MAX: u32 = 64;

/// Receives until the phase says end.
pub fn run(place: Place<'_>, channel: u16) -> anyhow::Result<()> {
    let end = place.participant.open_receiving(channel)?;
    let keep = KEPT_MAX.min(end.usage().blocks - 1) as usize;
    let random = place.random(channel | 1 << 15);
    let mut receiver = Receiving {
        place,
        channel,
        end: &end,
        timing: place.timing(&format!("a wait on channel {channel}"))?,
        random,
        keep,
        kept: Vec::new(),
        any: false,
    };
    loop {
        match place.phase() {
            Phase::Run => receiver.turn(),
            Phase::Settle(phase) => receiver.settle(phase),
            Phase::End => return Ok(()),
        }
    }
}

struct Receiving<'p> {
    place: Place<'p>,
    channel: u16,
    end: &'p linux::ReceivingEnd,
    timing: Timing<'p>,
    random: fastrand::Rng,
    keep: usize,
    kept: Vec<Received<'p>>,
    any: bool,
}

impl<'p> Receiving<'p> {
    fn turn(&mut self) {
        match self.timing.timed(WAIT, |deadline| self.end.wait(deadline)) {
            Ok(()) => {}
            Err(Error::Timeout) => self.give_back(0),
            Err(Error::PeerGone) => self.place.record.of(self.place.domain, Of::Losses).count(),
            Err(_) => self.fault(),
        }
        for _ in 0..self.random.u32(1..=TAKEN_MAX) {
            if !self.take() {
                return;
            }
        }
    }

    /// Takes one message if there is one.
    fn take(&mut self) -> bool {
        self.at(At::Dequeuing).set(1);
        let taken = self.end.dequeue();
        if let Ok(message) = &taken {
            self.record(message);
        }
        self.at(At::Dequeuing).set(0);
        match taken {
            Ok(message) => {
                self.kept.push(message);
                self.give_back(self.keep);
                true
            }
            Err(Error::Empty) => false,
            Err(_) => {
                self.at(At::Refused).count();
                false
            }
        }
    }

    /// Writes down that a message has come, before anything else is done with it.
    fn record(&mut self, message: &Received<'p>) {
        let head = |index: u32| {
            let mut word = [0; 4];
            message.copy_to(index * 4, &mut word);
            u32::from_le_bytes(word)
        };
        let (incarnation, number) = (head(0), head(1));
        let row = |what| self.place.record.of_incarnation(self.channel, incarnation, what);
        let before = row(In::Received).get();
        if number <= before || incarnation < self.at(At::Sender).get() {
            self.at(At::Duplicated).count();
            eprintln!("twice: channel {} incarnation {incarnation} number {number} after {before}", self.channel);
            return;
        }
        row(In::Received).set(number);
        row(In::Missing).add(number - before - 1);
        self.note_firsts(incarnation);
        let whole = message.len() == head(2)
            && head(3) == !number
            && message.len() >= HEAD_BYTES
            && places(message.len()).all(|offset| byte(message, offset) == content(incarnation, number, offset));
        if !whole {
            self.at(At::Corrupt).count();
        }
    }

    /// The first message that we receive, and the first of a sender, show that the channel has recovered.
    fn note_firsts(&mut self, sender: u32) {
        let now_us = (now_ns() / 1_000) as u32;
        if self.at(At::Sender).get() != sender {
            self.at(At::SenderUs).set(now_us);
            self.at(At::Sender).set(sender);
        }
        if !self.any {
            self.any = true;
            self.at(At::ReceiverUs).set(now_us);
            self.at(At::Receiver).set(self.place.incarnation);
        }
    }

    /// Frees blocks in random order until this many are kept.
    fn give_back(&mut self, keep: usize) {
        while self.kept.len() > keep {
            let index = self.random.usize(0..self.kept.len());
            if self.end.free(self.kept.swap_remove(index)).is_err() {
                self.fault();
            }
        }
    }

    /// Takes everything once the sender has paused, and keeps nothing.
    fn settle(&mut self, phase: u32) {
        while self.at(At::Drained).get() != phase && self.place.phase() == Phase::Settle(phase) {
            let paused = self.at(At::Paused).get() == phase;
            while self.take() {}
            self.give_back(0);
            if paused {
                self.at(At::Drained).set(phase);
            }
            std::thread::sleep(PAUSE);
        }
        while self.place.phase() == Phase::Settle(phase) {
            std::thread::sleep(PAUSE);
        }
    }

    fn at(&self, what: At) -> crate::record::Word<'p> {
        self.place.record.at(self.channel, what)
    }

    fn fault(&self) {
        self.place.record.of(self.place.domain, Of::Faults).count();
    }
}

fn byte(message: &Received<'_>, offset: u32) -> u8 {
    let mut byte = [0];
    message.copy_to(offset, &mut byte);
    byte[0]
}
