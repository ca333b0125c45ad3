//! The two processes of a measurement: started, pinned, in step.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use musubi_linux::bare::BarePages;
use musubi_linux::realtime;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::output;

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
/// Byte offset of the word in which the first says a number to both.
const AGREED: usize = 256;
/// Longest wait for the other side.
const MEET_MAX: Duration = Duration::from_secs(60);

/// One side's view of the pair.
pub(super) struct Pair {
    pub side: Side,
    pub pages: BarePages,
    pub instance: String,
    /// Whether both processes are on one core.
    pub one_core: bool,
    met: Cell<u32>,
    watch: Option<std::thread::JoinHandle<anyhow::Result<()>>>,
    /// The processors that we might use before we took one.
    _cores: Cores,
}

/// Gives the processors back when it is dropped, since the next pair's second process inherits ours.
struct Cores(Option<CpuSet>);

impl Cores {
    /// Takes one of them.
    fn take(index: usize) -> Cores {
        let before = sched_getaffinity(None).ok();
        pin(index);
        Cores(before)
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // They were ours before; if they have been taken from us meanwhile, the next pair says so.
            let _ = sched_setaffinity(None, before);
        }
    }
}

impl Pair {
    /// Starts the other process and takes the first core.
    /// `arguments` tell it what to take part in.
    pub fn start(arguments: &[&str]) -> anyhow::Result<Pair> {
        Pair::start_as(&[], &arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>(), true)
    }

    /// The same; `prefix` is the command that runs the other process, if it needs one, and `two_cores` says whether it
    /// shall take a core of its own.
    pub fn start_as(prefix: &[String], arguments: &[String], two_cores: bool) -> anyhow::Result<Pair> {
        let pages = BarePages::create(PAGES_BYTES)?;
        let instance = format!("bench-{}", std::process::id());
        let program = std::env::current_exe()?;
        let words: Vec<&OsStr> = prefix.iter().map(OsStr::new).chain([program.as_os_str()]).collect();
        let core = if two_cores { "1" } else { "0" };
        let peer = Command::new(words[0])
            .args(&words[1..])
            .args(["bench", "peer", "--pages", &pages.path(), "--instance", &instance, "--core", core])
            .args(arguments)
            .spawn()
            .context("starting the second process")?;
        let watch = std::thread::spawn(move || watch(peer));
        let (watch, _cores) = (Some(watch), Cores::take(0));
        Ok(Pair { side: Side::Ping, pages, instance, one_core: !two_cores, met: Cell::new(0), watch, _cores })
    }

    /// Joins as the other process, on this one of the cores.
    pub fn join(pages: &Path, instance: &str, core: usize) -> anyhow::Result<Pair> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let pages = BarePages::open(pages)?;
        let (one_core, instance) = (core == 0, instance.to_owned());
        Ok(Pair {
            side: Side::Pong,
            pages,
            instance,
            one_core,
            met: Cell::new(0),
            watch: None,
            _cores: Cores::take(core),
        })
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

    /// Polls until it is done; on one core, lets the other process run in between.
    #[inline(always)]
    pub fn poll_until(&self, done: impl Fn() -> bool) {
        if self.one_core {
            while !done() {
                std::thread::yield_now();
            }
        }
        while !done() {}
    }

    /// Whether we are the side that measures.
    pub fn is_ping(&self) -> bool {
        self.side == Side::Ping
    }

    /// The number that the first process says, at both.
    pub fn agree(&self, number: u32) -> anyhow::Result<u32> {
        let word = self.pages.word(AGREED);
        if self.is_ping() {
            word.store(number, Ordering::Release);
        }
        self.meet()?;
        let agreed = word.load(Ordering::Acquire);
        // The next number may not be said before both have read this one.
        self.meet()?;
        Ok(agreed)
    }

    /// Waits for the other process to end well.
    pub fn end(mut self) -> anyhow::Result<()> {
        match self.watch.take().map(std::thread::JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => bail!("the second process was not watched"),
        }
    }
}

/// Refuses where two processes would share a processor.
pub(super) fn needs_two_cores() -> anyhow::Result<()> {
    let cores = realtime::cores().len();
    anyhow::ensure!(
        cores >= 2,
        "a hand-over between two processors cannot be measured on one: this process may use {cores} (taskset, cgroup?)"
    );
    Ok(())
}

/// Ends us when the other process fails, since we may be spinning for it.
fn watch(mut peer: Child) -> anyhow::Result<()> {
    let status = peer.wait()?;
    if !status.success() {
        output::note(&format!("error: the second process of the measurement failed: {status}"));
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
        output::note(&format!("note: not pinned to a core: {error}"));
    }
}
