//! The two processes of a measurement: started, pinned, in step.

use std::cell::Cell;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use musubi_linux::bare::BarePages;
use musubi_linux::realtime;

/// Which of the two processes we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Measures.
    Ping,
    /// Answers.
    Pong,
}

/// Bytes of the bare pages: words in the first page, copy buffers after it.
const PAGES_BYTES: usize = 1 << 20;
/// Byte offsets of the words with which the two sides meet, a line each.
const MEET: [usize; 2] = [0, 128];
/// Longest wait for the other side.
const MEET_MAX: Duration = Duration::from_secs(60);

/// One side's view of the pair.
pub(super) struct Pair {
    pub side: Side,
    pub pages: BarePages,
    pub instance: String,
    met: Cell<u32>,
    watch: Option<std::thread::JoinHandle<anyhow::Result<()>>>,
}

impl Pair {
    /// Starts the other process and takes the first core.
    pub fn start(samples: u32, only: &str) -> anyhow::Result<Pair> {
        let pages = BarePages::create(PAGES_BYTES)?;
        let instance = format!("bench-{}", std::process::id());
        let peer = Command::new(std::env::current_exe()?)
            .args(["bench", "peer", "--pages", &pages.path(), "--instance", &instance])
            .args(["--samples", &samples.to_string(), "--only", only])
            .spawn()
            .context("starting the second process")?;
        let watch = std::thread::spawn(move || watch(peer));
        pin(0);
        Ok(Pair { side: Side::Ping, pages, instance, met: Cell::new(0), watch: Some(watch) })
    }

    /// Joins as the other process, on the second core.
    pub fn join(pages: &Path, instance: &str) -> anyhow::Result<Pair> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let pages = BarePages::open(pages)?;
        pin(1);
        Ok(Pair { side: Side::Pong, pages, instance: instance.to_owned(), met: Cell::new(0), watch: None })
    }

    /// Waits until both sides are here.
    pub fn meet(&self) -> anyhow::Result<()> {
        let (ours, theirs) = match self.side {
            Side::Ping => (MEET[0], MEET[1]),
            Side::Pong => (MEET[1], MEET[0]),
        };
        let round = self.met.get() + 1;
        self.met.set(round);
        self.pages.word(ours).store(round, Ordering::Release);
        let begin = Instant::now();
        while self.pages.word(theirs).load(Ordering::Acquire) < round {
            std::thread::yield_now();
            if begin.elapsed() > MEET_MAX {
                bail!("the other process did not come within {} s", MEET_MAX.as_secs());
            }
        }
        Ok(())
    }

    /// Waits for the other process to end well.
    pub fn end(mut self) -> anyhow::Result<()> {
        match self.watch.take().map(std::thread::JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => bail!("the second process was not watched"),
        }
    }
}

/// Ends us when the other process fails, since we may be spinning for it.
fn watch(mut peer: Child) -> anyhow::Result<()> {
    let status = peer.wait()?;
    if !status.success() {
        eprintln!("error: the second process of the measurement failed: {status}");
        std::process::exit(1);
    }
    Ok(())
}

/// Takes a core of its own.
fn pin(index: usize) {
    let cores = realtime::cores();
    if cores.len() > 1
        && let Err(error) = realtime::pin_to_core(cores[index % cores.len()])
    {
        eprintln!("note: not pinned to a core: {error}");
    }
}
