//! The demo's system: its description, the instance of a run, and what its channels carry.
//!
//! What you may rely on: all processes of a run parse the same text, so their plans have one hash.
//!
//! How it works: the description is the constant [`DESCRIPTION`], the same text that `musubi demo --describe` prints.

use std::time::Duration;

use musubi_core::plan::Plan;
use musubi_linux::{Options, Participant};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How long the processes may take to find each other. All wait so long: one that gives up earlier than the launcher ends
/// a run whose Master only starts late on a busy machine.
pub const START_WAIT: Duration = Duration::from_secs(20);
/// Period of the control loop in nanoseconds.
pub const PERIOD_NS: u64 = 1_000_000;
/// Channel of [`Telemetry`], control to gateway.
pub const TELEMETRY: &str = "telemetry";
/// Channel of [`Parameters`], shared by control and gateway.
pub const PARAMETERS: &str = "parameters";
/// Channel of the file's bytes, storage to control; an empty message ends a pass.
pub const STREAM: &str = "stream";
/// Channel of [`Answer`], control to storage.
pub const ANSWERS: &str = "answers";

/// The description. 4096 telemetry blocks hold what the loop sends in four seconds, much more than a gateway needs to
/// come back.
pub const DESCRIPTION: &str = r#"# The system of `musubi demo`.
[system]
name = "demo"

[[domain]]
name = "control"
role = "master"

[[domain]]
name = "gateway"
role = "remote"

[[domain]]
name = "storage"
role = "remote"

# What the control loop measures, once a cycle of 1 ms. 4096 blocks: four seconds without a receiver.
[[fifo]]
name = "telemetry"
from = "control"
to = "gateway"
block_size = "48 B"
blocks = 4096
priority = 0
on_receiver_restart = "keep"

# A file, in blocks of 64 KiB; whoever sends faster than control digests waits for a block.
[[fifo]]
name = "stream"
from = "storage"
to = "control"
block_size = "64 KiB"
blocks = 16
priority = 6

# What control made of it.
[[fifo]]
name = "answers"
from = "control"
to = "storage"
block_size = "48 B"
blocks = 4

# What the gateway wants of the loop.
[[smem]]
name = "parameters"
domains = ["control", "gateway"]
size = "64 B"
"#;

/// One cycle of the loop.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Telemetry {
    /// Counts the messages that were enqueued, from 0.
    pub sequence: u64,
    /// The cycle, from 0.
    pub cycle: u64,
    /// When it was enqueued, in nanoseconds of `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// How late the loop woke up in this cycle, in nanoseconds.
    pub lateness_ns: u32,
    /// Generation of the parameters that the loop works with.
    pub generation: u32,
}

/// What the gateway wants of the loop. All zero: nothing yet.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Parameters {
    /// Lateness from which a cycle counts as an alarm, in nanoseconds.
    pub alarm_ns: u64,
    /// Counts the changes.
    pub generation: u32,
    /// Telemetry is sent every so many cycles; 0 counts as 1.
    pub every: u32,
}

/// Control's digest of one pass over the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Answer {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Counts the passes, from 0.
    pub pass: u64,
    /// BLAKE3 of them.
    pub digest: [u8; 32],
}

/// The plan, for the rest of the process.
pub fn plan() -> anyhow::Result<&'static Plan<'static>> {
    let description = musubi_config::parse("the demo's description", DESCRIPTION);
    Ok(description.map_err(|report| anyhow::anyhow!("{report}"))?.leak())
}

/// A name that no other run on this machine has.
pub fn new_instance() -> String {
    format!("demo-{}-{:x}", std::process::id(), musubi_linux::clock::now_ns() / 1_000_000 % 0x1000_0000)
}

/// Attaches this process to a domain of the run.
pub fn attach(domain: &str, instance: &str) -> anyhow::Result<Participant> {
    let options = Options { instance: Some(instance.to_owned()), ..Options::new(plan()?, domain) };
    Ok(Participant::attach(options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_what_the_roles_open() {
        let plan = plan().unwrap();
        assert!([TELEMETRY, STREAM, ANSWERS].iter().all(|fifo| plan.fifo(fifo).is_some()));
        assert!(plan.smem(PARAMETERS).is_some());
        assert!(new_instance().len() <= 32);
    }
}
