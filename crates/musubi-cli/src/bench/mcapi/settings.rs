//! What is measured together: the groups of figures, how long each may take, and what both processes must know of it.

use std::time::Duration;

use super::names::{MESSAGES, OTHERWISE_BYTES, PACKETS, URGENT_NAMES, limit_of};
use crate::bench::only;
use crate::bench::rounds::ROUNDS;

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
            Group::Urgent => URGENT_NAMES.map(String::from).to_vec(),
        }
    }

    /// Rounds that its samples are spread over.
    pub fn rounds(&self) -> u32 {
        if self.group == Group::Line { LINE_ROUNDS } else { ROUNDS }
    }
}
