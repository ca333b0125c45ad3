//! A node of MCAPI in an ordinary process, beside the Cortex-R5F's: asks it for echoes until it is killed, or runs the test
//! suite's cases with it.
//!
//! What you may rely on: every answer is compared; the first wrong one ends the process, with failure. What was seen is in
//! files that survive it: [`ECHOED`] has a byte for each right echo, [`PASSED`] what passed here and there.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use musubi_core::channel::{Attachment as _, Deadline as Until};
use musubi_core::plan::Plan;
use musubi_linux::uio::{Options, Participant, ProcessHost};
use musubi_mcapi::over::{Endpoint, Node, Remote};
use musubi_testsuite_nodes::{CASES_WITHIN_A_LIFE, Setup};
use musubi_transport::mapped::{self, Deadline};
use zcu102_demo::nodes::{self, ANSWERED, ASKED, MEMORY, NODES, QUESTION_BYTES_MAX, TABLE, question};
use zcu102_demo::system;
use zcu102_linux::{ECHOED, PASSED};

/// The plan that both sides were built with.
static PLAN: &Plan<'static> = &system::PLAN;
/// How long the Cortex-R5F may take for anything: in the cases one wait of its own may be 10 s.
const PATIENCE_NS: u64 = 30_000_000_000;

type Running = nodes::Running<ProcessHost>;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("echo") => Asker::start().and_then(|asker| asker.ask_for_echoes()),
        Some("cases") => Asker::start().and_then(|asker| asker.run_cases()),
        _ => Err(anyhow::anyhow!("say \"echo\", to ask until killed, or \"cases\"")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Linux's node, with the Cortex-R5F's port for questions.
struct Asker {
    participant: Participant,
    node: Node<Running>,
    own: Endpoint<Running>,
    asked: Remote<Running>,
}

impl Asker {
    fn start() -> Result<Asker> {
        let participant = Participant::attach(Options::new(PLAN, "linux"))?;
        let soon = Until::At(participant.now_ns() + PATIENCE_NS);
        let region = participant.region(MEMORY, TABLE.shape, soon).context("the memory of the nodes")?;
        let running = Running::start(TABLE, region, participant.host(), mapped::Options::default());
        let node = Node::of(running.context("starting the node")?);
        println!("node: process {}, node {}:{}", std::process::id(), node.id().domain(), node.id().node());
        let own = node.create_endpoint(Some(ANSWERED))?;
        let within = Deadline::At(participant.now_ns() + PATIENCE_NS);
        let asked = node.get_endpoint((NODES[0].domain(), NODES[0].node()), ASKED, within);
        let asked = asked.context("the Cortex-R5F's port for questions")?;
        Ok(Asker { participant, node, own, asked })
    }

    fn within(&self, ns: u64) -> Deadline {
        Deadline::At(self.participant.now_ns() + ns)
    }

    fn ask(&self, text: &[u8]) -> Result<()> {
        self.own.send(&self.asked, 0, text, self.within(PATIENCE_NS)).context("asking")
    }

    fn answer(&self) -> Result<Vec<u8>> {
        Ok(self.own.receive(self.within(PATIENCE_NS)).context("the answer")?.to_vec())
    }

    /// Asks for echoes of growing length, without end.
    fn ask_for_echoes(self) -> Result<()> {
        let mut echoed = OpenOptions::new().create(true).append(true).open(ECHOED)?;
        for number in 0u64.. {
            let length = 9 + (number % (QUESTION_BYTES_MAX as u64 - 8)) as usize;
            let mut text = vec![number as u8; length];
            text[0] = question::ECHO;
            text[1..9].copy_from_slice(&number.to_le_bytes());
            self.ask(&text)?;
            nodes::echo(&mut text);
            ensure!(self.answer()? == text, "echo {number} is wrong");
            echoed.write_all(&[1])?;
        }
        bail!("as many echoes as there are numbers")
    }

    /// Runs the cases with the Cortex-R5F's node.
    fn run_cases(self) -> Result<()> {
        self.ask(&[question::CASES, 0])?;
        let start = || self.node.clone();
        let within = |ns| self.within(ns);
        let setup = Setup { nodes: &NODES, place: 1, start: &start, within: &within };
        let mut passed = 0;
        musubi_testsuite_nodes::run_some(&setup, CASES_WITHIN_A_LIFE, |_, name, result| match result {
            Ok(()) => passed += 1,
            Err(failure) => println!("FAILED {name} on Linux: {failure}"),
        });
        // The answer to the last question of a process that was killed may come first.
        let there = loop {
            if let [question::CASES, there] = self.answer()?[..] {
                break there;
            }
        };
        std::fs::write(PASSED, [passed, there])?;
        Ok(())
    }
}
