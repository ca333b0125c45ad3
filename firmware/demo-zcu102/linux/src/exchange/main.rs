//! A node of MCAPI in C, in an ordinary process beside the Cortex-R5F's: asks it in two lives of the node.
//!
//! What you may rely on: what both sides received right is in the file [`EXCHANGED`] afterwards, whatever it was.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result};
use musubi_core::channel::{Attachment as _, Deadline};
use musubi_core::plan::Plan;
use musubi_linux::uio::{Options, Participant};
use musubi_transport::mapped;
use zcu102_demo::nodes::{MEMORY_C, NODES_C, TABLE_C};
use zcu102_demo::system;
use zcu102_exchange::{Installation, Side, install, live};
use zcu102_linux::{EXCHANGED, EXCHANGED_LIVES};

/// The plan that both sides were built with.
static PLAN: &Plan<'static> = &system::PLAN;
/// How long the Cortex-R5F may take to make the memory.
const PATIENCE_NS: u64 = 30_000_000_000;
/// This node's side.
static SIDE: Side = Side { domain: NODES_C[1].domain(), node: NODES_C[1].node(), peer: NODES_C[0].node(), asks: 1 };

fn main() -> Result<()> {
    let participant = Participant::attach(Options::new(PLAN, "linux"))?;
    let soon = Deadline::At(participant.now_ns() + PATIENCE_NS);
    let region = participant.region(MEMORY_C, TABLE_C.shape, soon).context("the memory of the nodes in C")?;
    install(Installation { table: TABLE_C, region, host: participant.host(), options: mapped::Options::default() });
    let mut seen = Vec::new();
    for life in 0..EXCHANGED_LIVES {
        let (own, theirs) = live(&SIDE, life);
        let numbers = own.numbers().into_iter().chain(theirs.numbers());
        seen.extend(numbers.flat_map(u32::to_le_bytes));
    }
    std::fs::write(EXCHANGED, seen).context("recording")
}
