//! A task that is a node of MCAPI beside Linux: answers what Linux's node asks.
//!
//! What you may rely on: a node of Linux that dies holds the task up for no longer than [`PATIENCE_NS`], in the middle of
//! the test suite's cases for no longer than one of those waits; the next one is answered.
//!
//! How it works: the node's memory is an SMEM channel of the same participant, so its rings and its rest are the
//! participant's. Only this task, the ones in C and the NIC's use the heap; the loop and the digester allocate nothing.

use musubi_core::channel::Deadline as Until;
use musubi_core::mapped::Participant;
use musubi_freertos::TaskHost;
use musubi_heap::Heap;
use musubi_mcapi::Error;
use musubi_mcapi::over::{Endpoint, Node};
use musubi_metal::board::Board as _;
use musubi_metal::board::zcu102_r5::Zcu102R5;
use musubi_metal::println;
use musubi_testsuite_nodes::{CASES_WITHIN_A_LIFE, Setup};
use musubi_transport::mapped::{Deadline, Options};
use zcu102_demo::nodes::{self, ANSWERED, ASKED, MEMORY, NODES, QUESTION_BYTES_MAX, TABLE, question};

use crate::Cpu;

/// The heap of the nodes and the NIC: what a node takes at most in the cases is 214 KiB, a NIC 183 KiB.
#[global_allocator]
pub static HEAP: Heap<{ 1 << 20 }> = Heap::new();

/// Longest wait for the other node to take or to find anything, in nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;

type Running = nodes::Running<TaskHost>;

/// Answers questions for ever.
///
/// # Errors
/// If the node cannot be started, as the description and the image disagree, or has ended.
pub fn serve(participant: &Participant<'static, TaskHost>) -> Result<(), Error> {
    let region = participant.region(MEMORY, TABLE.shape, Until::Forever).map_err(|_| Error::NodeInitFailed)?;
    // It rests at once when nothing has come: where the core polls, each look takes from the tasks below.
    let node = Node::of(Running::start(TABLE, region, participant.host(), Options { looks: 0 })?);
    let asked = node.create_endpoint(Some(ASKED))?;
    println!(Cpu, "MCAPI node {}:{} asks for questions", NODES[0].domain(), NODES[0].node());
    loop {
        let mut text = [0; QUESTION_BYTES_MAX];
        let message = asked.receive(Deadline::Forever)?;
        let length = message.copy_to(&mut text);
        let text = &mut text[..length];
        match text {
            [question::ECHO, ..] => nodes::echo(text),
            [question::CASES, passed] => *passed = cases(&node),
            _ => continue,
        }
        // Whoever asked has died if it cannot be had any more; the next one asks again.
        let _ = answer(&node, &asked, text);
    }
}

/// Sends an answer. The port is looked for each time: a name that was found before may be that of a node that has died,
/// and what is sent there is dropped by its successor.
fn answer(node: &Node<Running>, asked: &Endpoint<Running>, text: &[u8]) -> Result<(), Error> {
    let within = Deadline::At(Zcu102R5::now_ns() + PATIENCE_NS);
    let to = node.get_endpoint((NODES[1].domain(), NODES[1].node()), ANSWERED, within)?;
    asked.send(&to, 0, text, within)
}

/// Runs this node's part of the suite's cases; gives how many passed.
fn cases(node: &Node<Running>) -> u8 {
    let start = || node.clone();
    let within = |ns| Deadline::At(Zcu102R5::now_ns() + ns);
    let setup = Setup { nodes: &NODES, place: 0, start: &start, within: &within };
    let mut passed = 0;
    musubi_testsuite_nodes::run_some(&setup, CASES_WITHIN_A_LIFE, |_, name, result| match result {
        Ok(()) => passed += 1,
        Err(failure) => println!(Cpu, "FAILED {name} on the Cortex-R5F: {failure}"),
    });
    println!(Cpu, "MCAPI beside Linux: {passed} of {CASES_WITHIN_A_LIFE} cases passed here; heap: {}", HEAP.report());
    passed
}
