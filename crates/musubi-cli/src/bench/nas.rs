//! `musubi bench nas`: EP, IS, CG and MG of the NAS Parallel Benchmarks, class S, as processes that share channels only.
//!
//! How it works: the kernels of `musubi_measures` run in one process, then in two that swap through FIFO channels, each on
//! a processor of its own, in turn, so that both see the same machine. Each run is verified with the published values; a
//! kernel's time is the least of several.

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use musubi_linux::Participant;
use musubi_mdcom::{Bytes, Error, Mdcom, Receiver, Sender};
use musubi_measures::nas::{Alone, Kernel, Lost, Team, Workspaces, barrier};
use serde::Serialize;
use zerocopy::IntoBytes;

use super::channels::{PATIENCE, Setup};
use super::pair::{Pair, Side};
use crate::output;

/// How often each kernel runs; the least time counts.
const TIMES: u32 = 5;
/// Words of a swap at most; a peer that says more is cut.
const SWAP_WORDS_MAX: u32 = 1 << 16;

/// This process's memory for the kernels: too large for a stack on its way into a box.
static SPACES: Mutex<Workspaces> = Mutex::new(Workspaces::new());

/// What one kernel took.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    class: &'static str,
    one_process_s: f64,
    two_processes_s: f64,
    speedup: f64,
}

/// One of two processes. A swap is its number of words, then the words, in as many blocks as they need.
struct Processes<'a> {
    rank: usize,
    sender: Sender<'a, Participant, Bytes>,
    receiver: Receiver<'a, Participant, Bytes>,
    received: Vec<u32>,
}

impl<'a> Processes<'a> {
    fn open(setup: &'a Setup, side: Side) -> anyhow::Result<Self> {
        let mdcom = Mdcom::init(&setup.polling);
        let (rank, give, take) = match side {
            Side::Ping => (0, "there-65536", "back-65536"),
            Side::Pong => (1, "back-65536", "there-65536"),
        };
        Ok(Self { rank, sender: mdcom.sender(give)?, receiver: mdcom.receiver(take)?, received: Vec::new() })
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut block = self.sender.alloc(PATIENCE)?;
        block[..bytes.len()].copy_from_slice(bytes);
        block.enqueue(bytes.len() as u32).map_err(|rejected| rejected.error)?;
        self.sender.notify();
        Ok(())
    }

    fn give(&self, words: &[u32]) -> Result<(), Error> {
        self.send(&(words.len() as u32).to_le_bytes())?;
        let parts = words.as_bytes().chunks(self.sender.block_bytes() as usize);
        parts.into_iter().try_for_each(|part| self.send(part))
    }

    fn take(&mut self) -> Result<(), Error> {
        let mut count = [0; 4];
        self.receiver.next(PATIENCE)?.copy_to(0, &mut count);
        self.received.resize(u32::from_le_bytes(count).min(SWAP_WORDS_MAX) as usize, 0);
        let mut rest = self.received.as_mut_bytes();
        while !rest.is_empty() {
            let got = self.receiver.next(PATIENCE)?.copy_to(0, rest);
            if got == 0 {
                return Err(Error::PeerFault);
            }
            rest = &mut rest[got..];
        }
        Ok(())
    }
}

impl Team for Processes<'_> {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        2
    }
    fn swap(&mut self, _: usize, give: &[u32], take: &mut dyn FnMut(&[u32])) -> Result<(), Lost> {
        Processes::give(self, give).and_then(|()| Processes::take(self)).map_err(|_| Lost)?;
        take(&self.received);
        Ok(())
    }
}

/// Runs a kernel on a team; gives seconds a run, with all workers there before and after.
fn timed(team: &mut impl Team, kernel: Kernel, spaces: &mut Workspaces) -> anyhow::Result<f64> {
    let lost = |Lost| anyhow!("the other process did not come");
    kernel.prepare(team, spaces);
    barrier(team).map_err(lost)?;
    let begin = Instant::now();
    ensure!(kernel.run(team, spaces).map_err(lost)?, "a run of {} did not give the published values", kernel.name());
    barrier(team).map_err(lost)?;
    Ok(begin.elapsed().as_secs_f64() / f64::from(kernel.repeats()))
}

/// What both sides do; only the first one's figures are used: seconds in one process and in two, by kernel.
pub(super) fn go_through(pair: &Pair) -> anyhow::Result<[(f64, f64); Kernel::ALL.len()]> {
    let setup = Setup::attach(pair)?;
    let mut team = Processes::open(&setup, pair.side)?;
    let mut spaces = SPACES.lock().map_err(|_| anyhow!("a worker has failed before"))?;
    let mut best = [(f64::INFINITY, f64::INFINITY); Kernel::ALL.len()];
    for _ in 0..TIMES {
        for (kernel, (one, two)) in Kernel::ALL.into_iter().zip(&mut best) {
            pair.meet()?;
            if pair.side == Side::Ping {
                *one = one.min(timed(&mut Alone, kernel, &mut spaces)?);
            }
            pair.meet()?;
            *two = two.min(timed(&mut team, kernel, &mut spaces)?);
        }
    }
    Ok(best)
}

/// Measures, prints, and writes the JSON file if one is named.
pub(super) fn run(json: Option<&Path>) -> anyhow::Result<()> {
    super::pair::needs_two_cores()?;
    let pair = Pair::start(&["--nas"])?;
    let best = go_through(&pair)?;
    pair.end()?;
    let figures: Vec<Figure> = Kernel::ALL
        .into_iter()
        .zip(best)
        .map(|(kernel, (one, two))| Figure {
            name: kernel.name(),
            class: "S",
            one_process_s: one,
            two_processes_s: two,
            speedup: one / two,
        })
        .collect();
    for figure in &figures {
        output::print(&format!(
            "{} class {}: {:.6} s in one process, {:.6} s in two: {:.2} x, verified\n",
            figure.name, figure.class, figure.one_process_s, figure.two_processes_s, figure.speedup
        ))?;
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "results": figures }))?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
