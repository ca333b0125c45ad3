//! One-way latency of messages: half of there and back.
//!
//! What you may rely on: each side has two receives posted. Between a message and its answer a side makes two calls: one
//! that gives back the receive, one that posts the send. What else there is to do (posting the receive again, taking the
//! completed send) it does while the answer is under way, as a program does that wants a short time. That bytes arrive as
//! they were sent is looked at once a round, outside of what is measured.

use std::sync::Arc;

use anyhow::ensure;
use musubi_linux::clock::now_ns;
use musubi_vipl::engine::Queue;

use super::ends::{Address64, OpenNic, Operation, ViEnd, ViKind, patience};
use crate::bench::pair::Pair;
use crate::bench::rounds::Item;
use crate::bench::sizes::Sizes;

/// Receives posted at a time.
const RECEIVES: usize = 2;
/// Sends that may be posted before the first of them has completed.
const SENDS: usize = 16;

/// Messages of one size.
pub(super) struct Messages {
    name: String,
    bytes: usize,
    slow: bool,
    end: ViEnd,
    out: Address64,
    sends: Vec<Address64>,
    /// Sends posted and not taken back, and the next one's place.
    posted: usize,
    next: usize,
    into: Vec<Address64>,
    turn: u8,
}

impl Messages {
    /// `slow` if one takes tens of microseconds.
    pub fn connect(name: String, nic: &Arc<OpenNic>, bytes: usize, slow: bool) -> anyhow::Result<Messages> {
        let out = nic.room(bytes)?;
        let sends = (0..SENDS).map(|_| nic.describe(Operation::Message, (out, bytes)));
        let sends = sends.collect::<anyhow::Result<_>>()?;
        let into: Vec<Address64> = (0..RECEIVES).map(|_| nic.room(bytes)).collect::<anyhow::Result<_>>()?;
        let end = nic.connect(ViKind::RELIABLE, (None, None), |end| {
            let mut places = into.iter();
            places.try_for_each(|into| end.post(Queue::Receive, nic.describe(Operation::Message, (*into, bytes))?))
        })?;
        Ok(Messages { name, bytes, slow, end, out, sends, posted: 0, next: 0, into, turn: 0 })
    }

    /// What is sent in this round.
    fn pattern(&self) -> Vec<u8> {
        (0..self.bytes).map(|place| (place as u8).wrapping_mul(7).wrapping_add(self.turn)).collect()
    }

    #[inline(always)]
    fn send(&mut self) -> anyhow::Result<()> {
        self.end.post(Queue::Send, self.sends[self.next])?;
        self.next = (self.next + 1) % SENDS;
        self.posted += 1;
        Ok(())
    }

    /// What is left to do while the other side answers.
    #[inline(always)]
    fn tidy_up(&mut self, used: Option<Address64>) -> anyhow::Result<()> {
        if let Some(used) = used {
            self.end.post(Queue::Receive, used)?;
        }
        while self.end.poll(Queue::Send)?.is_some() {
            self.posted -= 1;
        }
        while self.posted == SENDS {
            self.end.wait(Queue::Send, patience())?;
            self.posted -= 1;
        }
        Ok(())
    }
}

impl Item for Messages {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        if self.slow { Sizes::network_samples(latency_samples) } else { latency_samples }
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        self.turn = self.turn.wrapping_add(1);
        let pattern = self.pattern();
        self.end.nic.put(self.out, &pattern)?;
        let until = patience();
        pair.meet()?;
        let mut used = None;
        let mut before = now_ns();
        for _ in 0..count {
            if pair.is_ping() {
                self.send()?;
                self.tidy_up(used)?;
                used = Some(self.end.wait(Queue::Receive, until)?);
                let now = now_ns();
                into.push((now - before) as f64 / 2.0);
                before = now;
            } else {
                used = Some(self.end.wait(Queue::Receive, until)?);
                self.send()?;
                self.tidy_up(used)?;
            }
        }
        if pair.is_ping() {
            self.tidy_up(used)?;
        }
        let last = self.into.iter().any(|into| self.end.nic.get(*into, self.bytes).is_ok_and(|got| got == pattern));
        ensure!(last, "a message arrived as another");
        Ok(())
    }
}
