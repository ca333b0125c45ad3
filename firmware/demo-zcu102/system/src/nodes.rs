//! MCAPI between the Cortex-R5F and Linux: which nodes there are, and what they ask of each other.
//!
//! What you may rely on: a node's place is its participant's number in the plan. The Cortex-R5F's node answers whatever
//! Linux's asks, one question after the other, and goes on when that one dies.
//!
//! How it works: Linux's node sends questions to the port [`ASKED`]; the first byte is one of [`question`].

use musubi_mcapi::NodeId;
use musubi_mcapi::engine::Engine;
use musubi_transport::links::NoBlock;
use musubi_transport::mapped::{self, Table};

use crate::system::smem;

/// A node that runs in one memory, on a host.
pub type Running<H> = mapped::Node<Engine<NoBlock>, H>;
/// The SMEM channel in whose memory the nodes meet.
pub const MEMORY: u16 = smem::NODES;
/// The nodes, by participant: the Cortex-R5F's and Linux's.
pub const NODES: [NodeId; 2] = [node(1), node(2)];
/// How they share the memory.
pub const TABLE: Table<'static> = Table::new(&NODES);
/// The SMEM channel in whose memory the nodes in C meet.
pub const MEMORY_C: u16 = smem::NODES_C;
/// The nodes in C, by participant.
pub const NODES_C: [NodeId; 2] = [node(11), node(12)];
/// How they share the memory.
pub const TABLE_C: Table<'static> = Table::new(&NODES_C);
/// Port of the Cortex-R5F's node for questions.
pub const ASKED: u32 = 1;
/// Port of Linux's node for answers.
pub const ANSWERED: u32 = 2;
/// Longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 256;

/// First bytes of a question.
pub mod question {
    /// The answer is the same bytes, each inverted but this first one.
    pub const ECHO: u8 = 1;
    /// Both run the cases of the test suite with each other; then the answer is this byte and how many passed on the
    /// Cortex-R5F.
    pub const CASES: u8 = 2;
}

const fn node(number: u32) -> NodeId {
    match NodeId::new(1, number) {
        Some(node) => node,
        None => panic!("no such node"),
    }
}

/// The answer to an echo.
pub fn echo(question: &mut [u8]) {
    question.iter_mut().skip(1).for_each(|byte| *byte = !*byte);
}

const _: () = assert!(TABLE.bytes() <= crate::system::PLAN.smems[MEMORY as usize].bytes as usize);
const _: () = assert!(TABLE_C.bytes() <= crate::system::PLAN.smems[MEMORY_C as usize].bytes as usize);
