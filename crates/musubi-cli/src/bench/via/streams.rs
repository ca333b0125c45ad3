//! How much goes through a VI: messages, RDMA writes, RDMA reads.
//!
//! What you may rely on: a batch ends with a message back from the side whose memory has all of it, so a sample is the time
//! of data that has arrived. Buffers are used in turn, and nobody looks at them but at the last byte, once a batch.
//!
//! How it works: no message may come before a receive is posted for it, so the receiver says now and then how many it has
//! posted again, by a message without bytes, as programs of VIA do; the sender has that many to spend. Writes and reads need
//! no receives.

use std::sync::Arc;

use anyhow::ensure;
use musubi_linux::clock::now_ns;
use musubi_vipl::engine::{Queue, RemotePlace};

use super::ends::{Address64, OpenNic, Operation, SHARED_BYTES, ViEnd, ViKind, patience};
use crate::bench::pair::{Pair, Side};
use crate::bench::rounds::Item;
use crate::bench::sizes::Sizes;

/// Receives posted at a time, and after how many of them the sender is told.
const RECEIVES: usize = 64;
const TOLD_EVERY: usize = 32;
/// Operations posted at a time.
const SENDS: usize = 32;

/// What goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Messages,
    Writes,
    Reads,
}

impl Transfer {
    fn word(self) -> &'static str {
        match self {
            Transfer::Messages => "rate",
            Transfer::Writes => "write",
            Transfer::Reads => "read",
        }
    }
}

/// Operations of one size from ping.
pub(super) struct Transfers {
    name: String,
    what: Transfer,
    bytes: usize,
    /// Whether a sample is messages a second.
    counts: bool,
    end: ViEnd,
    /// Descriptors of the operations (ping), in turn.
    operations: Vec<Address64>,
    /// What tells the sender, or ends a batch.
    told: Vec<Address64>,
    next: usize,
    next_told: usize,
    /// Sends posted and not taken back.
    posted: usize,
    /// Receives that the other side has posted and that were not used.
    credit: usize,
}

impl Transfers {
    /// The name of such an item.
    pub fn name(what: Transfer, way: &str, bytes: usize) -> String {
        format!("vi_{}_{way}_{bytes}", what.word())
    }

    /// Connects a VI for it.
    pub fn connect(
        name: String,
        pair: &Pair,
        nic: &Arc<OpenNic>,
        (what, bytes): (Transfer, usize),
        counts: bool,
    ) -> anyhow::Result<Transfers> {
        let buffers = (SHARED_BYTES / bytes.max(1)).clamp(1, SENDS);
        let places: Vec<Address64> = (0..buffers).map(|turn| nic.shared(turn * bytes)).collect();
        let theirs = exchange(pair, places.iter().map(|place| nic.place(*place)).collect())?;
        let operation = |turn: usize| match what {
            Transfer::Messages => Operation::Message,
            Transfer::Writes => Operation::Write(theirs[turn % buffers]),
            Transfer::Reads => Operation::Read(theirs[turn % buffers]),
        };
        let describe = |turn: usize| nic.describe(operation(turn), (places[turn % buffers], bytes));
        let operations = (0..SENDS).map(describe).collect::<anyhow::Result<_>>()?;
        let nothing = nic.room(0)?;
        let told = (0..SENDS).map(|_| nic.describe(Operation::Message, (nothing, 0)));
        let told = told.collect::<anyhow::Result<_>>()?;
        let end = nic.connect(ViKind::RELIABLE, (None, None), |end| {
            let room = if pair.side == Side::Pong { bytes } else { 0 };
            (0..RECEIVES).try_for_each(|turn| {
                end.post(Queue::Receive, nic.describe(Operation::Message, (places[turn % buffers], room))?)
            })
        })?;
        let (next, next_told, posted) = (0, 0, 0);
        Ok(Transfers { name, what, bytes, counts, end, operations, told, next, next_told, posted, credit: RECEIVES })
    }

    /// Posts a descriptor for sending once there is room for it.
    fn send(&mut self, descriptor: Address64) -> anyhow::Result<()> {
        while self.posted == SENDS {
            self.end.wait(Queue::Send, patience())?;
            self.posted -= 1;
            while self.end.poll(Queue::Send)?.is_some() {
                self.posted -= 1;
            }
        }
        self.end.post(Queue::Send, descriptor)?;
        self.posted += 1;
        Ok(())
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        self.next_told = (self.next_told + 1) % SENDS;
        self.send(self.told[self.next_told])
    }

    /// Waits for a message of the other side, and has the receive posted again.
    fn hear(&mut self) -> anyhow::Result<()> {
        let used = match self.end.poll(Queue::Receive)? {
            Some(used) => used,
            None => self.end.wait(Queue::Receive, patience())?,
        };
        self.end.post(Queue::Receive, used)
    }

    fn drive(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            if self.what == Transfer::Messages {
                while self.credit <= 1 {
                    self.hear()?;
                    self.credit += TOLD_EVERY;
                }
                self.credit -= 1;
            }
            self.next = (self.next + 1) % SENDS;
            self.send(self.operations[self.next])?;
        }
        match self.what {
            // The last of the batch is answered.
            Transfer::Messages => {}
            Transfer::Writes => self.tell()?,
            Transfer::Reads => {
                while self.posted > 0 {
                    self.end.wait(Queue::Send, patience())?;
                    self.posted -= 1;
                }
                return Ok(());
            }
        }
        if self.what == Transfer::Messages {
            // What was told meanwhile comes before the answer.
            let told = count / TOLD_EVERY;
            let heard = (self.credit + count - RECEIVES) / TOLD_EVERY;
            for _ in heard..told {
                self.hear()?;
            }
            self.credit = RECEIVES;
        }
        self.hear()
    }

    fn answer(&mut self, count: usize) -> anyhow::Result<()> {
        match self.what {
            Transfer::Reads => return Ok(()),
            Transfer::Writes => self.hear()?,
            Transfer::Messages => {
                for turn in 1..=count {
                    self.hear()?;
                    if turn % TOLD_EVERY == 0 {
                        self.tell()?;
                    }
                }
            }
        }
        self.tell()
    }
}

/// Places of the other side's buffers.
fn exchange(pair: &Pair, ours: Vec<RemotePlace>) -> anyhow::Result<Vec<RemotePlace>> {
    /// Byte offset in the bare pages, and bytes of one place.
    const PLACES: usize = 16 << 10;
    const PLACE_BYTES: usize = 12;
    let at = |side: Side, turn: usize| PLACES + usize::from(side == Side::Pong) * 4096 + turn * PLACE_BYTES;
    for (turn, place) in ours.iter().enumerate() {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&place.address.to_le_bytes());
        bytes[8..].copy_from_slice(&place.handle.0.to_le_bytes());
        pair.pages.copy_in(at(pair.side, turn), &bytes);
    }
    pair.meet()?;
    let other = if pair.side == Side::Ping { Side::Pong } else { Side::Ping };
    let theirs = (0..ours.len()).map(|turn| {
        let mut bytes = [0; PLACE_BYTES];
        pair.pages.copy_out(at(other, turn), &mut bytes);
        let (address, handle) = bytes.split_at(8);
        let address = u64::from_le_bytes(address.try_into().unwrap_or_default());
        RemotePlace {
            address,
            handle: musubi_vipl::engine::MemoryHandle(u32::from_le_bytes(handle.try_into().unwrap_or_default())),
        }
    });
    let theirs = theirs.collect();
    pair.meet()?;
    Ok(theirs)
}

impl Item for Transfers {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unit(&self) -> &'static str {
        if self.counts { "msg/s" } else { "MB/s" }
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        Sizes::Fast.rate_samples(latency_samples)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let batch = Sizes::Fast.batch(self.bytes);
        for _ in 0..count {
            let before = now_ns();
            match pair.side {
                Side::Ping => self.drive(batch)?,
                Side::Pong => self.answer(batch)?,
            }
            let per_s = 1e9 / (now_ns() - before) as f64;
            let each = if self.counts { 1.0 } else { self.bytes as f64 / 1e6 };
            into.push(batch as f64 * each * per_s);
        }
        ensure!(self.posted <= SENDS, "more sends than were posted");
        Ok(())
    }
}
