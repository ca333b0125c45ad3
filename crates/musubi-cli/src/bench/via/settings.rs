//! What is measured together: the groups of figures, how long each may take, and what both processes must know of it.

use std::time::Duration;

use super::calls::Call;
use super::floods::Condition;
use super::load;
use super::names::{COUNTED_BYTES, MESSAGES, STREAMS, limit_of};
use super::shares::Sharing;
use super::streams::{Transfer, Transfers};
use crate::bench::only;

/// Items with one setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    /// VIs between processes of one machine.
    Memory,
    /// VIs over TCP, on loopback.
    Tcp,
    /// What each call costs.
    Calls,
    /// Two connections beside each other.
    Shares,
    /// How much of a processor receiving takes.
    Load,
    /// An urgent exchange beside loads.
    Floods,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 6] = [Group::Memory, Group::Tcp, Group::Calls, Group::Shares, Group::Load, Group::Floods];

    /// As the second process is told.
    fn word(self) -> &'static str {
        match self {
            Group::Memory => "memory",
            Group::Tcp => "tcp",
            Group::Calls => "calls",
            Group::Shares => "shares",
            Group::Load => "load",
            Group::Floods => "floods",
        }
    }

    /// Time for it.
    pub fn budget(self, quick: bool) -> Duration {
        let (quick_s, whole_s) = match self {
            Group::Memory => (8, 90),
            Group::Tcp => (8, 90),
            Group::Calls => (4, 30),
            // Their rounds have a time of their own.
            Group::Shares | Group::Load | Group::Floods => (0, 0),
        };
        Duration::from_secs(if quick { quick_s } else { whole_s })
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Group::Memory => "VIs over shared memory",
            Group::Tcp => "VIs over TCP on loopback",
            Group::Calls => "calls between processes of one machine",
            Group::Shares => "two connections of one NIC",
            Group::Load => "what receiving takes of a processor",
            Group::Floods => "an urgent exchange beside loads",
        }
    }
}

/// What both processes must know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub group: Group,
    pub samples: u32,
    pub only: String,
    pub budget: Duration,
}

impl Settings {
    /// As the second process is told.
    pub fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("--samples", self.samples.to_string()),
            ("--budget-ms", self.budget.as_millis().to_string()),
            ("--only", self.only.clone()),
            ("--via", self.group.word().to_owned()),
        ];
        numbers.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
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
            let name = |how: &str, bytes: usize| format!("vi_oneway_{way}_{how}_{bytes}");
            MESSAGES.into_iter().flat_map(move |bytes| [name("poll", bytes), name("block", bytes)]).collect::<Vec<_>>()
        };
        let streams = |what: Transfer, way: &str| STREAMS.map(|bytes| Transfers::name(what, way, bytes)).to_vec();
        match self.group {
            Group::Memory => {
                let ways =
                    [Transfer::Messages, Transfer::Writes, Transfer::Reads].map(|what| streams(what, "shm")).concat();
                [messages("shm"), ways, vec![format!("vi_messages_shm_{COUNTED_BYTES}")]].concat()
            }
            Group::Tcp => [messages("tcp"), streams(Transfer::Messages, "tcp")].concat(),
            Group::Calls => Call::names(),
            Group::Shares => Sharing::names(),
            Group::Load => load::names(),
            Group::Floods => Condition::all().into_iter().map(Condition::name).collect(),
        }
    }
}
