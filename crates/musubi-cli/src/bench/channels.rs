//! What Musubi's channels cost between two processes.

use std::time::Duration;

use anyhow::anyhow;
use musubi_core::plan::Plan;
use musubi_linux::clock::now_ns;
use musubi_linux::{Options, Participant};
use musubi_mdcom::{Bytes, Error, Mdcom, Receiver, Sender, Shared, Wait};

use super::pair::{Pair, Side};
use super::rounds::{COPY_BATCH, COPY_BYTES, Item, copy_samples};

/// Two pairs of domains: one that polls, one that goes to sleep at once.
const DESCRIPTION: &str = include_str!("system.toml");
/// Longest wait for the other side; far beyond anything measured.
pub(super) const PATIENCE: Wait = Wait::For(Duration::from_secs(20));
/// Messages in one sample of the rate.
const RATE_BATCH: u32 = 1000;

/// The participants of this process.
pub(super) struct Setup {
    pub polling: Participant,
    sleeping: Participant,
    /// The other polling domain too, for the measurement of calls on one core; ping only.
    pub both: Option<Participant>,
}

impl Setup {
    pub fn attach(pair: &Pair) -> anyhow::Result<Setup> {
        let plan = plan()?;
        let (polling, sleeping) = match pair.side {
            Side::Ping => ("ping", "ping-asleep"),
            Side::Pong => ("pong", "pong-asleep"),
        };
        let polling = attach(plan, polling, &pair.instance)?;
        let sleeping = attach(plan, sleeping, &pair.instance)?;
        let both = match pair.side {
            Side::Ping => Some(attach(plan, "local", &pair.instance)?),
            Side::Pong => None,
        };
        pair.meet()?;
        Ok(Setup { polling, sleeping, both })
    }
}

fn plan() -> anyhow::Result<&'static Plan<'static>> {
    let description = musubi_config::parse("bench", DESCRIPTION).map_err(|report| anyhow!("{report}"))?;
    Ok(description.leak())
}

/// The two ends of the channel for the measurement of calls.
pub(super) fn local_pair(instance: &str) -> anyhow::Result<(Participant, Participant)> {
    let plan = plan()?;
    Ok((attach(plan, "ping", instance)?, attach(plan, "local", instance)?))
}

fn attach(plan: &'static Plan<'static>, domain: &str, instance: &str) -> anyhow::Result<Participant> {
    let options = Options { instance: Some(instance.to_owned()), ..Options::new(plan, domain) };
    Ok(Participant::attach(options)?)
}

pub(super) fn items(setup: &Setup) -> anyhow::Result<Vec<Box<dyn Item + '_>>> {
    let polling = Mdcom::init(&setup.polling);
    let sleeping = Mdcom::init(&setup.sleeping);
    let mut items: Vec<Box<dyn Item + '_>> = Vec::new();
    for bytes in [8, 64, 4096, 65536] {
        let (there, back) = (format!("there-{bytes}"), format!("back-{bytes}"));
        items.push(Box::new(OneWay::open(&polling, "poll", bytes, &there, &back)?));
    }
    items.push(Box::new(OneWay::open(&sleeping, "block", 64, "there-asleep-64", "back-asleep-64")?));
    items.push(Box::new(Handover { shared: polling.shared("handover", PATIENCE)?, turn: 0 }));
    items.push(Box::new(Rate(End::open(&polling, "rate-64")?)));
    items.push(Box::new(Copy::open(&polling)?));
    Ok(items)
}

type Tx<'a> = Sender<'a, Participant, Bytes>;
type Rx<'a> = Receiver<'a, Participant, Bytes>;

/// Our end of a channel from ping to pong.
#[allow(clippy::large_enum_variant, reason = "a box would put a load of its own on the measured path")]
enum End<'a> {
    Sending(Tx<'a>),
    Receiving(Rx<'a>),
}

impl<'a> End<'a> {
    fn open(mdcom: &Mdcom<'a, Participant>, channel: &str) -> anyhow::Result<End<'a>> {
        match mdcom.sender(channel) {
            Ok(sender) => Ok(End::Sending(sender)),
            Err(_) => Ok(End::Receiving(mdcom.receiver(channel)?)),
        }
    }
}

/// A message there and a message back; the first and the last line of the payload are written and checked.
struct OneWay<'a> {
    how: &'static str,
    bytes: u32,
    tx: Tx<'a>,
    rx: Rx<'a>,
    turn: u32,
}

impl<'a> OneWay<'a> {
    fn open(
        mdcom: &Mdcom<'a, Participant>,
        how: &'static str,
        bytes: u32,
        there: &str,
        back: &str,
    ) -> anyhow::Result<OneWay<'a>> {
        let (tx, rx) = match mdcom.sender(there) {
            Ok(tx) => (tx, mdcom.receiver(back)?),
            Err(_) => (mdcom.sender(back)?, mdcom.receiver(there)?),
        };
        Ok(OneWay { how, bytes, tx, rx, turn: 0 })
    }

    #[inline(always)]
    fn send(&self) -> Result<(), Error> {
        let mut block = self.tx.alloc(PATIENCE)?;
        let last = self.bytes as usize - 4;
        block[last..last + 4].copy_from_slice(&self.turn.to_le_bytes());
        block[..4].copy_from_slice(&self.turn.to_le_bytes());
        block.enqueue(self.bytes).map_err(|rejected| rejected.error)?;
        self.tx.notify();
        Ok(())
    }

    #[inline(always)]
    fn receive(&self) -> Result<(), Error> {
        self.rx.wait(PATIENCE)?;
        let message = self.rx.dequeue()?;
        let (mut first, mut last) = ([0; 4], [0; 4]);
        message.copy_to(0, &mut first);
        message.copy_to(self.bytes - 4, &mut last);
        let expected = self.turn.to_le_bytes();
        if first == expected && last == expected { Ok(()) } else { Err(Error::PeerFault) }
    }
}

impl Item for OneWay<'_> {
    fn name(&self) -> String {
        format!("fifo_oneway_{}_{}", self.how, self.bytes)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut before = now_ns();
        for _ in 0..count {
            self.turn = self.turn.wrapping_add(1);
            match pair.side {
                Side::Ping => {
                    self.send()?;
                    self.receive()?;
                    let now = now_ns();
                    into.push((now - before) as f64 / 2.0);
                    before = now;
                }
                Side::Pong => {
                    self.receive()?;
                    self.send()?;
                }
            }
        }
        Ok(())
    }
}

/// 64 bytes that the two sides change in turn under the lock, each trying until it is its turn.
struct Handover<'a> {
    shared: Shared<'a, Participant, [u32; 16]>,
    turn: u32,
}

impl Handover<'_> {
    /// Waits until the memory says `turn`, then writes the next.
    fn take(&mut self, turn: u32) {
        loop {
            let Ok(mut guard) = self.shared.try_lock() else { continue };
            let mut value = guard.read();
            if value[0] == turn {
                value = [turn.wrapping_add(1); 16];
                guard.write(&value);
                return;
            }
        }
    }
}

impl Item for Handover<'_> {
    fn name(&self) -> String {
        "smem_handover_64".into()
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut before = now_ns();
        for _ in 0..count {
            match pair.side {
                Side::Ping => {
                    self.take(self.turn);
                    let now = now_ns();
                    into.push((now - before) as f64 / 2.0);
                    before = now;
                }
                Side::Pong => self.take(self.turn.wrapping_add(1)),
            }
            self.turn = self.turn.wrapping_add(2);
        }
        Ok(())
    }
}

/// As many messages of 64 bytes as go through.
struct Rate<'a>(End<'a>);

impl Item for Rate<'_> {
    fn name(&self) -> String {
        "fifo_rate_64".into()
    }

    fn unit(&self) -> &'static str {
        "msg/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        latency_samples / 50
    }

    fn round(&mut self, _pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        for _ in 0..count {
            let before = now_ns();
            for value in 0..RATE_BATCH {
                match &self.0 {
                    End::Sending(tx) => {
                        let mut block = tx.alloc(PATIENCE)?;
                        block[60..64].copy_from_slice(&value.to_le_bytes());
                        block[..4].copy_from_slice(&value.to_le_bytes());
                        block.enqueue(64).map_err(|rejected| rejected.error)?;
                        tx.notify();
                    }
                    End::Receiving(rx) => {
                        let message = rx.next(PATIENCE)?;
                        let mut bytes = [0; 64];
                        message.copy_to(0, &mut bytes);
                        let right = bytes[..4] == value.to_le_bytes() && bytes[60..] == value.to_le_bytes();
                        anyhow::ensure!(right, "message {value} arrived as another");
                    }
                }
            }
            into.push(f64::from(RATE_BATCH) * 1e9 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}

/// Blocks of 64 KiB, copied in and out as a whole and compared.
struct Copy<'a> {
    end: End<'a>,
    data: Vec<u8>,
    out: Vec<u8>,
}

impl<'a> Copy<'a> {
    fn open(mdcom: &Mdcom<'a, Participant>) -> anyhow::Result<Copy<'a>> {
        let data = (0..COPY_BYTES).map(|i| (i * 7) as u8).collect();
        Ok(Copy { end: End::open(mdcom, "copy-64k")?, data, out: vec![0; COPY_BYTES] })
    }
}

impl Item for Copy<'_> {
    fn name(&self) -> String {
        "fifo_copy_64k".into()
    }

    fn unit(&self) -> &'static str {
        "MB/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        copy_samples(latency_samples)
    }

    fn round(&mut self, _pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        for _ in 0..count {
            let before = now_ns();
            for _ in 0..COPY_BATCH {
                match &self.end {
                    End::Sending(tx) => {
                        let mut block = tx.alloc(PATIENCE)?;
                        block.copy_from_slice(&self.data);
                        block.enqueue(COPY_BYTES as u32).map_err(|rejected| rejected.error)?;
                        tx.notify();
                    }
                    End::Receiving(rx) => {
                        let message = rx.next(PATIENCE)?;
                        message.copy_to(0, &mut self.out);
                        drop(message);
                        anyhow::ensure!(self.out == self.data, "copied bytes differ");
                    }
                }
            }
            into.push((COPY_BATCH * COPY_BYTES) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}
