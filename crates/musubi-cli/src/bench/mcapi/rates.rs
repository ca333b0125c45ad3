//! Throughput of packet channels.
//!
//! What you may rely on: over shared memory, and where the figure says `copied`, the sender's bytes are copied once, into
//! the packet. Over TCP they are not: the program sends a few prepared packets in turn, which the node shares with it; so the
//! bytes are read where they lie, as those of the bare stream, which sends one buffer again and again. All of the prepared
//! packets go by one call ([`PacketSender::send_burst`]), which makes of them as few writes as may be, or, where the figure says
//! `single`, each by one ([`PacketSender::send_shared`]). The receiver takes them one by one, looks at the first and the last
//! byte where they lie and copies nothing. Each batch ends with a message back, so a
//! sample is the time of packets that have been received.

use anyhow::ensure;
use musubi_linux::clock::now_ns;
use musubi_mcapi::{Deadline, Packet, PacketReceiver, PacketSender, SharedBytes};

use super::ends::{Ours, patience};
use crate::bench::pair::{Pair, Side};
use crate::bench::rounds::Item;
use crate::bench::sizes::Sizes;

/// The priority of what confirms a batch.
const PRIORITY: u32 = 0;

/// Prepared packets, which differ in their bytes; so many are a burst.
const MARKS: u8 = 8;

/// Our end of the channel.
pub(super) enum End {
    Sending(PacketSender),
    Receiving(PacketReceiver),
}

impl End {
    /// Connects (ping does) and opens.
    pub fn open(side: Side, channel: Ours) -> anyhow::Result<End> {
        if side == Side::Pong {
            return Ok(End::Receiving(PacketReceiver::open(&channel.own)?.wait(patience())?));
        }
        let mut connected = channel.node.connect_packets(&channel.own, &channel.peer)?;
        let mut opening = PacketSender::open(&channel.own)?;
        connected.wait(patience())?;
        Ok(End::Sending(opening.wait(patience())?))
    }
}

/// How a sender hands packets over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handing {
    /// By a call that copies it.
    Copied,
    /// In memory that the node shares until the packet has arrived.
    Single,
    /// The same, several by one call.
    Burst,
}

/// Packets of one size.
pub(super) struct Packets {
    name: String,
    end: End,
    report: Ours,
    /// What is sent, in turn.
    packets: Vec<SharedBytes>,
    handing: Handing,
    sizes: Sizes,
}

impl Packets {
    /// `report` carries the message that confirms a batch.
    pub fn new(name: String, end: End, report: Ours, bytes: usize, handing: Handing, sizes: Sizes) -> Packets {
        let packets = (0..MARKS).map(|mark| vec![mark; bytes].into()).collect();
        Packets { name, end, report, packets, handing, sizes }
    }

    fn bytes(&self) -> usize {
        self.packets[0].len()
    }

    /// Sends or receives a batch.
    fn batch(&mut self, count: usize) -> anyhow::Result<()> {
        let until = patience();
        let mut in_turn = (0..count).zip(self.packets.iter().cycle());
        match &mut self.end {
            End::Sending(tx) => match self.handing {
                Handing::Copied => in_turn.try_for_each(|(_, packet)| tx.send(packet, until))?,
                Handing::Single => in_turn.try_for_each(|(_, packet)| tx.send_shared(packet.clone(), until))?,
                Handing::Burst => send_bursts(tx, &self.packets, count, until)?,
            },
            End::Receiving(rx) => {
                for (turn, expected) in in_turn {
                    let packet = rx.receive(until)?;
                    let (bytes, mark) = (expected.len(), expected[0]);
                    let right = packet.len() == bytes && byte(&packet, 0) == mark && byte(&packet, bytes - 1) == mark;
                    ensure!(right, "packet {turn} arrived as another");
                }
            }
        }
        match &self.end {
            End::Sending(_) => drop(self.report.own.receive(until)?),
            End::Receiving(_) => self.report.own.send(&self.report.peer, PRIORITY, &[], until)?,
        }
        Ok(())
    }
}

impl Item for Packets {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unit(&self) -> &'static str {
        "MB/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        self.sizes.rate_samples(latency_samples)
    }

    fn round(&mut self, _pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let batch = self.sizes.batch(self.bytes());
        for _ in 0..count {
            let before = now_ns();
            self.batch(batch)?;
            into.push((batch * self.bytes()) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}

/// Sends so many packets, in turn, as many at a time as there are prepared.
fn send_bursts(tx: &PacketSender, packets: &[SharedBytes], count: usize, until: Deadline) -> anyhow::Result<()> {
    let mut left = count;
    while left > 0 {
        let burst = &packets[..left.min(packets.len())];
        let gone = tx.send_burst(burst, until)?;
        ensure!(gone == burst.len(), "{gone} packets of {} went", burst.len());
        left -= gone;
    }
    Ok(())
}

fn byte(packet: &Packet, offset: usize) -> u8 {
    let mut byte = [0];
    packet.copy_from(offset, &mut byte);
    byte[0]
}
