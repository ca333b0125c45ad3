//! Two tasks in C that are a node of MCAPI beside Linux: one answers what Linux's node asks, the other waits meanwhile.
//!
//! What you may rely on: the node ends and begins anew, life after life; one that fails is reported.
//!
//! How it works: the node's memory is an SMEM channel of the same participant, like that of the node in Rust; the C program
//! is `zcu102-exchange`'s.

use musubi_core::Error;
use musubi_core::channel::Deadline as Until;
use musubi_core::mapped::Participant;
use musubi_freertos::{Task, TaskHost, task};
use musubi_metal::println;
use musubi_transport::mapped::Options;
use zcu102_demo::nodes::{MEMORY_C, NODES_C, TABLE_C};
use zcu102_exchange::{Installation, Side, Tally, install, live, relay};

use crate::{Cpu, NODE_PRIORITY, STACK_BYTES};

/// This node's side.
static SIDE: Side = Side { domain: NODES_C[0].domain(), node: NODES_C[0].node(), peer: NODES_C[1].node(), asks: 0 };

static ANSWER: Task<STACK_BYTES> = Task::new();
static RELAY: Task<STACK_BYTES> = Task::new();

/// Starts both tasks.
///
/// # Errors
/// If the description and the image disagree about the memory.
pub fn start(participant: &Participant<'static, TaskHost>) -> Result<(), Error> {
    let region = participant.region(MEMORY_C, TABLE_C.shape, Until::Forever)?;
    // As the node in Rust: it rests at once.
    install(Installation { table: TABLE_C, region, host: participant.host(), options: Options { looks: 0 } });
    ANSWER.spawn(c"node in C", NODE_PRIORITY, answer, &SIDE);
    // More urgent than the other, which it must not keep from what it does.
    RELAY.spawn(c"relay in C", NODE_PRIORITY + 1, |side| relay(side, pause), &SIDE);
    Ok(())
}

fn answer(side: &'static Side) {
    for number in 0.. {
        let (own, theirs) = live(side, number);
        let outcome = if (own, theirs) == (Tally::WHOLE, Tally::WHOLE) { "MCAPI in C" } else { "FAILED: MCAPI in C" };
        println!(Cpu, "{outcome}, life {number}: here {:?}, on Linux {:?}", own.numbers(), theirs.numbers());
    }
}

extern "C" fn pause() {
    task::delay(1);
}
