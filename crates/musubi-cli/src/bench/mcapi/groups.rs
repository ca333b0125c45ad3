//! The groups of a measurement: which figures they have, how long they may take, and how their items are made.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::ends::Ends;
use super::rates::Handing;
use super::required::limit_of;
use super::sockets::{self, Connection, How};
use super::{line, urgent};
use crate::bench::pair::Pair;
use crate::bench::rounds::{Items, ROUNDS};
use crate::bench::{limits, only};

/// Sizes of messages whose latency is measured, in bytes: the paper's figure 1, to the largest message.
const MESSAGES: [usize; 7] = [1, 8, 64, 512, 4096, 32_768, 65_536];
/// Sizes of packets whose rate is measured: the paper's figure 2, to the largest packet.
const PACKETS: [usize; 7] = [64, 512, 4096, 32_768, 65_536, 262_144, 1_048_576];
/// Size of packets that are also sent one a call over TCP, and from memory that is copied.
const OTHERWISE_BYTES: usize = 32_768;
/// Bytes in one sample within the machine, and most packets, for small ones.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_PACKETS_MAX: usize = 2000;
/// The same over the shaped line.
const LINE_BATCH_BYTES: usize = 8 << 20;
const LINE_PACKETS_MAX: usize = 20_000;
/// Rounds between namespaces, where a sample takes long.
const LINE_ROUNDS: u32 = 5;

/// Items with one setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    /// Nodes that share memory.
    Memory,
    /// Nodes over TCP, on loopback.
    Tcp,
    /// Nodes over TCP, between network namespaces.
    Line,
    /// Urgent messages beside bulk, over TCP, on loopback.
    Urgent,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 4] = [Group::Memory, Group::Tcp, Group::Line, Group::Urgent];

    /// As the second process is told.
    fn word(self) -> &'static str {
        match self {
            Group::Memory => "memory",
            Group::Tcp => "tcp",
            Group::Line => "line",
            Group::Urgent => "urgent",
        }
    }

    /// Time for it; urgent messages have a number of seconds of their own.
    pub fn budget(self, one_core: bool, quick: bool) -> Duration {
        let (quick_s, whole_s) = match (self, one_core) {
            (Group::Memory, false) => (6, 75),
            (Group::Memory, true) => (4, 40),
            (Group::Tcp, false) => (8, 90),
            (Group::Tcp, true) => (6, 60),
            (Group::Line, _) => (5, 40),
            (Group::Urgent, _) => (0, 0),
        };
        Duration::from_secs(if quick { quick_s } else { whole_s })
    }
}

/// What both processes must know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub group: Group,
    pub one_core: bool,
    pub samples: u32,
    pub only: String,
    pub seconds: u32,
    pub budget: Duration,
}

impl Settings {
    /// As the second process is told.
    pub fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("--samples", self.samples.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--budget-ms", self.budget.as_millis().to_string()),
            ("--only", self.only.clone()),
            ("--group", self.group.word().to_owned()),
        ];
        let mut arguments: Vec<String> =
            numbers.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        arguments.extend(self.one_core.then(|| "--one-core".to_owned()));
        arguments
    }

    /// For people.
    pub fn title(&self) -> String {
        let what = match self.group {
            Group::Memory => "shared memory",
            Group::Tcp => "TCP on loopback",
            Group::Line => "TCP over 1 Gbit/s",
            Group::Urgent => "urgent beside bulk over TCP",
        };
        format!("{what}, {}", if self.one_core { "one core" } else { "two cores" })
    }

    /// Whether a figure is wanted.
    pub fn wants(&self, name: &str) -> bool {
        only::wants(&self.only, name)
    }

    /// Whether any figure of the group is wanted.
    pub fn has_any(&self) -> bool {
        self.names().iter().any(|name| self.wants(name) || limit_of(name).is_some_and(|limit| self.wants(&limit)))
    }

    /// All results of the group.
    fn names(&self) -> Vec<String> {
        let messages = |way: &str| {
            let name = |how: &str, bytes: usize| format!("msg_oneway_{way}_{how}_{bytes}");
            MESSAGES.into_iter().flat_map(move |bytes| [name("poll", bytes), name("block", bytes)]).collect::<Vec<_>>()
        };
        let packets = |way: &str| PACKETS.map(|bytes| format!("pkt_rate_{way}_{bytes}")).to_vec();
        match self.group {
            Group::Memory => [messages("shm"), vec!["scl_oneway_shm_poll_8".to_owned()], packets("shm")].concat(),
            Group::Tcp => {
                let otherwise = ["single", "copied"].map(|how| format!("pkt_rate_tcp_{how}_{OTHERWISE_BYTES}"));
                [messages("tcp"), packets("tcp"), otherwise.to_vec()].concat()
            }
            Group::Line => packets("line"),
            Group::Urgent => urgent::NAMES.map(String::from).to_vec(),
        }
    }

    /// Its items: limits and results.
    ///
    /// # Errors
    /// The ends could not be made.
    pub fn items(&self, pair: &Pair) -> anyhow::Result<(Items<'static>, Items<'static>)> {
        let (mut limits, results) =
            if self.group == Group::Memory { memory(pair, self)? } else { network(pair, self)? };
        let needed: Vec<Option<String>> = results.iter().map(|result| limit_of(&result.name())).collect();
        limits.retain(|limit| {
            let name = limit.name();
            self.wants(&name) || needed.iter().flatten().any(|needed| *needed == name)
        });
        Ok((limits, results))
    }

    /// Rounds that its samples are spread over.
    pub fn rounds(&self) -> u32 {
        if self.group == Group::Line { LINE_ROUNDS } else { ROUNDS }
    }
}

/// How much of a rate is one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Within the machine.
    Fast,
    /// Over the shaped line: long samples, so that what its bucket had saved does not count.
    Line,
}

impl Sizes {
    /// Packets of so many bytes in one sample.
    pub fn batch(self, bytes: usize) -> usize {
        match self {
            Sizes::Fast => (BATCH_BYTES / bytes).clamp(4, BATCH_PACKETS_MAX),
            Sizes::Line => (LINE_BATCH_BYTES / bytes).min(LINE_PACKETS_MAX),
        }
    }

    /// Samples of a rate.
    pub fn rate_samples(self, latency_samples: u32) -> u32 {
        match self {
            Sizes::Fast => latency_samples / 100,
            Sizes::Line => latency_samples / 4000,
        }
    }

    /// Samples of a latency that is tens of microseconds.
    pub fn network_samples(latency_samples: u32) -> u32 {
        latency_samples / 5
    }
}

fn memory(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let ends = Ends::sharing_memory(pair, settings)?;
    let mut results = Items::new();
    for bytes in MESSAGES {
        results.extend(ends.message(How::Poll, bytes)?);
        results.extend(ends.message(How::Block, bytes)?);
    }
    results.extend(ends.scalar()?);
    let how = if settings.one_core { How::Block } else { How::Poll };
    for bytes in PACKETS {
        results.extend(ends.packets(how, bytes, Handing::Copied, Sizes::Fast)?);
    }
    Ok((limits::items(), results))
}

fn network(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let line = settings.group == Group::Line;
    let address: IpAddr = if line { line::ADDRESSES[0].parse()? } else { Ipv4Addr::LOCALHOST.into() };
    let connection = Connection::open(pair, address)?;
    let ends = Ends::over_tcp(pair, settings, true)?;
    let (sizes, name) = if line { (Sizes::Line, "tcp_line") } else { (Sizes::Fast, "tcp_stream") };
    let (mut limits, mut results): (Items, Items) = Default::default();
    let hows: &[How] = if line { &[] } else { &[How::Poll, How::Block] };
    for &how in hows {
        for bytes in MESSAGES {
            limits.push(Box::new(sockets::OneWay { connection: connection.clone(), how, buffer: vec![7; bytes] }));
            results.extend(ends.message(how, bytes)?);
        }
    }
    for bytes in PACKETS {
        limits.push(Box::new(sockets::Stream { name, connection: connection.clone(), buffer: vec![7; bytes], sizes }));
        results.extend(ends.packets(How::Block, bytes, Handing::Burst, sizes)?);
    }
    if !line {
        results.extend(ends.packets(How::Block, OTHERWISE_BYTES, Handing::Single, sizes)?);
        results.extend(ends.packets(How::Block, OTHERWISE_BYTES, Handing::Copied, sizes)?);
    }
    Ok((limits, results))
}
