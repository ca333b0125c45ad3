//! Throughput of packet channels.
//!
//! What you may rely on: the sender's bytes are copied once, into the packet; the receiver looks at the first and the last
//! byte where they lie and copies nothing. Each batch ends with a message back, so a sample is the time of packets
//! that have been received.

use anyhow::ensure;
use musubi_linux::clock::now_ns;
use musubi_mcapi::{Packet, PacketReceiver, PacketSender};

use super::ends::{Ours, patience};
use super::groups::Sizes;
use crate::bench::pair::{Pair, Side};
use crate::bench::rounds::Item;

/// The priority of what confirms a batch.
const PRIORITY: u32 = 0;

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

/// Packets of one size.
pub(super) struct Packets {
    name: String,
    end: End,
    report: Ours,
    buffer: Vec<u8>,
    sizes: Sizes,
}

impl Packets {
    /// `report` carries the message that confirms a batch.
    pub fn new(name: String, end: End, report: Ours, bytes: usize, sizes: Sizes) -> Packets {
        Packets { name, end, report, buffer: vec![0; bytes], sizes }
    }

    /// Sends or receives a batch.
    fn batch(&mut self, count: usize) -> anyhow::Result<()> {
        let until = patience();
        let bytes = self.buffer.len();
        for turn in 0..count {
            let mark = turn as u8;
            match &mut self.end {
                End::Sending(tx) => {
                    self.buffer[0] = mark;
                    self.buffer[bytes - 1] = mark;
                    tx.send(&self.buffer, until)?;
                }
                End::Receiving(rx) => {
                    let packet = rx.receive(until)?;
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
        let batch = self.sizes.batch(self.buffer.len());
        for _ in 0..count {
            let before = now_ns();
            self.batch(batch)?;
            into.push((batch * self.buffer.len()) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}

fn byte(packet: &Packet, offset: usize) -> u8 {
    let mut byte = [0];
    packet.copy_from(offset, &mut byte);
    byte[0]
}
