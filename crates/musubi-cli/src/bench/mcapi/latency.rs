//! One-way latency of messages and scalars: half of there and back.
//!
//! What you may rely on: a message is copied out as a whole, as a program of the standard interface must; its first and
//! last byte are looked at.

use std::thread;
use std::time::Instant;

use anyhow::ensure;
use musubi_linux::clock::now_ns;
use musubi_mcapi::{Deadline, Error, ScalarReceiver, ScalarSender};

use super::ends::{Ours, PATIENCE, patience};
use crate::bench::pair::{Pair, Side};
use crate::bench::rounds::Item;
use crate::bench::sizes::Sizes;

/// The priority of messages where it does not matter.
const PRIORITY: u32 = 1;

/// How a program waits for what it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// By a call that returns when there is something.
    Call,
    /// By calls that do not wait; the other process may run in between.
    Ask,
}

impl Wait {
    #[inline(always)]
    fn receive<T>(self, until: Deadline, call: impl Fn(Deadline) -> Result<T, Error>) -> Result<T, Error> {
        if self == Wait::Call {
            return call(until);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match call(Deadline::Poll) {
                Err(Error::Timeout) if Instant::now() < until => thread::yield_now(),
                other => return other,
            }
        }
    }
}

/// Messages of one size.
pub(super) struct Message {
    name: String,
    ends: Ours,
    out: Vec<u8>,
    into: Vec<u8>,
    slow: bool,
    wait: Wait,
    turn: u8,
}

impl Message {
    /// `slow` if one takes tens of microseconds.
    pub fn new(name: String, ends: Ours, bytes: usize, slow: bool, wait: Wait) -> Message {
        Message { name, ends, out: vec![0; bytes], into: vec![0; bytes], slow, wait, turn: 0 }
    }

    #[inline(always)]
    fn send(&mut self, until: Deadline) -> anyhow::Result<()> {
        let last = self.out.len() - 1;
        self.out[0] = self.turn;
        self.out[last] = self.turn;
        self.ends.own.send(&self.ends.peer, PRIORITY, &self.out, until)?;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, until: Deadline) -> anyhow::Result<()> {
        let message = self.wait.receive(until, |until| self.ends.own.receive(until))?;
        let count = message.copy_to(&mut self.into);
        let right = count == self.into.len() && self.into[0] == self.turn && self.into[count - 1] == self.turn;
        ensure!(right, "a message arrived as another");
        Ok(())
    }
}

impl Item for Message {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        if self.slow { Sizes::network_samples(latency_samples) } else { latency_samples }
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let until = patience();
        let mut before = now_ns();
        for _ in 0..count {
            self.turn = self.turn.wrapping_add(1);
            if pair.is_ping() {
                self.send(until)?;
                self.receive(until)?;
                let now = now_ns();
                into.push((now - before) as f64 / 2.0);
                before = now;
            } else {
                self.receive(until)?;
                self.send(until)?;
            }
        }
        Ok(())
    }
}

/// Scalars of 8 bytes, a channel each way.
pub(super) struct Scalar {
    name: String,
    tx: ScalarSender<u64>,
    rx: ScalarReceiver<u64>,
    wait: Wait,
    turn: u64,
}

impl Scalar {
    /// Connects and opens both channels.
    pub fn open(name: String, side: Side, there: Ours, back: Ours, wait: Wait) -> anyhow::Result<Scalar> {
        let (out, home) = if side == Side::Ping { (there, back) } else { (back, there) };
        let mut connected = out.node.connect_scalars(&out.own, &out.peer)?;
        let (mut tx, mut rx) = (ScalarSender::open(&out.own)?, ScalarReceiver::open(&home.own)?);
        connected.wait(patience())?;
        Ok(Scalar { name, tx: tx.wait(patience())?, rx: rx.wait(patience())?, wait, turn: 0 })
    }

    #[inline(always)]
    fn receive(&self, until: Deadline) -> Result<u64, Error> {
        self.wait.receive(until, |until| self.rx.receive(until))
    }
}

impl Item for Scalar {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let until = patience();
        let mut before = now_ns();
        for _ in 0..count {
            self.turn += 1;
            if pair.is_ping() {
                self.tx.send(self.turn, until)?;
                ensure!(self.receive(until)? == self.turn, "a scalar arrived as another");
                let now = now_ns();
                into.push((now - before) as f64 / 2.0);
                before = now;
            } else {
                ensure!(self.receive(until)? == self.turn, "a scalar arrived as another");
                self.tx.send(self.turn, until)?;
            }
        }
        Ok(())
    }
}
