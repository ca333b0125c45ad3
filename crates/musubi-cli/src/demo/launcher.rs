//! The launcher: starts the processes, kills the gateway halfway, ends all, and says what was measured.
//!
//! How it works: one loop looks at the clock, at what the processes say, and at the signals. Every wait has a bound.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context, ensure};
use musubi_linux::clock::now_ns;

use super::Arguments;
use super::children::{Child, Starter};
use super::control::ControlSays;
use super::evidence::{Evidence, Kill};
use super::journal::Journal;
use super::leash::Request;
use super::live::{Display, State};
use super::machine::Machine;
use super::report::Outputs;
use super::storage::StorageSays;
use super::summary::Summary;
use super::system::{self, START_WAIT};
use super::witness::Witness;
use crate::interruption;

/// Pause between looks.
const TICK: Duration = Duration::from_millis(10);
/// How long a process may take to end.
const END_WAIT: Duration = Duration::from_secs(15);
/// How much longer than asked for the run may take, so that the file is streamed once as a whole.
const EXTENSION_NS: u64 = 60 * NS_PER_S;
const NS_PER_S: u64 = 1_000_000_000;

/// Runs the demo.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = streamed_file(arguments.file.as_deref())?;
    let outputs = Outputs::prepare(arguments.json.as_deref(), arguments.report.as_deref())?;
    let interrupted = interruption::watch()?;
    let machine = Machine::look();
    let mut demo = Demo::start(arguments.seconds, &file, interrupted, !outputs.prints_json())?;
    let state = demo.run_until_ended();
    demo.display.close();
    state?;
    let was_interrupted = demo.interrupted.load(Ordering::Relaxed);
    let evidence = std::mem::take(&mut demo.evidence);
    drop(demo);
    let summary = Summary::of(&evidence, machine, &file, arguments.seconds, was_interrupted);
    outputs.write(&summary, &evidence)?;
    summary.verdict()
}

/// The file to stream: the one named, or this program.
fn streamed_file(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe().context("finding this program")?,
    };
    let file = File::open(&path).with_context(|| format!("--file: cannot open {}", path.display()))?;
    let about = file.metadata().with_context(|| format!("--file: cannot look at {}", path.display()))?;
    ensure!(about.is_file(), "--file: {} is not a regular file", path.display());
    ensure!(about.len() > 0, "--file: {} is empty; there is nothing to stream", path.display());
    std::path::absolute(&path).context("--file")
}

/// A run.
struct Demo {
    starter: Starter,
    journal: Journal,
    evidence: Evidence,
    display: Display,
    interrupted: Arc<AtomicBool>,
    seconds: u64,
    control: Child,
    control_says: Receiver<ControlSays>,
    storage: Child,
    storage_says: Receiver<StorageSays>,
    gateway: Child,
    witness: Witness,
}

impl Demo {
    fn start(seconds: u64, file: &Path, interrupted: Arc<AtomicBool>, is_shown: bool) -> anyhow::Result<Demo> {
        let starter = Starter { instance: system::new_instance() };
        let journal = Journal::new()?;
        let (control, control_says) = starter.start("control", &[OsStr::new(&seconds.to_string())])?;
        let (storage, storage_says) = starter.start("storage", &[OsStr::new("--"), file.as_os_str()])?;
        let gateway = starter.start_into("gateway", &[OsStr::new("1")], journal.writer()?)?;
        let witness = Witness::new(system::plan()?, &starter.instance)?;
        let display = Display::open(is_shown, seconds, &starter.instance, [control.id(), gateway.id(), storage.id()]);
        Ok(Demo {
            starter,
            journal,
            evidence: Evidence::default(),
            display,
            interrupted,
            seconds,
            control,
            control_says,
            storage,
            storage_says,
            gateway,
            witness,
        })
    }

    fn run_until_ended(&mut self) -> anyhow::Result<()> {
        let begin_ns = self.wait_for_start()?;
        let length_ns = self.seconds * NS_PER_S;
        self.run_until(begin_ns + length_ns / 2)?;
        if !self.is_interrupted() {
            self.restart_gateway()?;
            self.run_until(begin_ns + length_ns * 8 / 10)?;
        }
        self.finish_storage(begin_ns + length_ns)?;
        self.run_until(begin_ns + length_ns)?;
        self.control.ask(Request::Stop);
        self.control.wait(END_WAIT)?;
        self.gateway.wait(END_WAIT)?;
        self.journal.read(&mut self.evidence.entries)?;
        self.hear_out();
        ensure!(self.evidence.control.is_some(), "control ended without saying what it did");
        Ok(())
    }

    /// Waits until all are there and the gateway has received its first message; gives when the loop began.
    fn wait_for_start(&mut self) -> anyhow::Result<u64> {
        let until_ns = now_ns() + START_WAIT.as_nanos() as u64;
        while now_ns() < until_ns {
            ensure!(!self.is_interrupted(), "interrupted before the processes had found each other");
            self.tick(State::Starting)?;
            let is_streaming = !self.evidence.progress.is_empty();
            if let Some(start) =
                self.evidence.start.clone().filter(|_| is_streaming && !self.evidence.entries.is_empty())
            {
                self.witness.look();
                self.display.started(&start);
                return Ok(start.at_ns);
            }
        }
        anyhow::bail!("the processes did not find each other within {} s", START_WAIT.as_secs())
    }

    fn restart_gateway(&mut self) -> anyhow::Result<()> {
        let kill_ns = now_ns();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(self.gateway.id() as i32).context("the gateway's process number")?,
            rustix::process::Signal::KILL,
        )
        .context("killing the gateway")?;
        let successor = self.starter.start_into("gateway", &[OsStr::new("2")], self.journal.writer()?)?;
        std::mem::replace(&mut self.gateway, successor).kill()?;
        self.evidence.kill = Some(Kill { at_ns: kill_ns, taken: self.witness.taken() });
        self.display.killed(self.gateway.id());
        Ok(())
    }

    /// Has storage end its last pass. The loop goes on meanwhile.
    fn finish_storage(&mut self, end_ns: u64) -> anyhow::Result<()> {
        self.storage.ask(Request::Finish);
        while !self.is_interrupted() && now_ns() < end_ns + EXTENSION_NS {
            self.tick(State::Running)?;
            if self.storage.has_ended()? {
                return Ok(());
            }
        }
        self.storage.ask(Request::Stop);
        self.storage.wait(END_WAIT)
    }

    fn run_until(&mut self, until_ns: u64) -> anyhow::Result<()> {
        while now_ns() < until_ns && !self.is_interrupted() {
            self.tick(State::Running)?;
        }
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// One look at everything.
    fn tick(&mut self, state: State) -> anyhow::Result<()> {
        std::thread::sleep(TICK);
        self.journal.read(&mut self.evidence.entries)?;
        self.listen();
        self.control.check()?;
        self.storage.check()?;
        self.gateway.check()?;
        self.display.draw(state, &self.evidence);
        Ok(())
    }

    fn listen(&mut self) {
        self.control_says.try_iter().for_each(|said| self.evidence.note_control(said));
        self.storage_says.try_iter().for_each(|said| self.evidence.note_storage(said));
    }

    /// Listens until the pipes of processes that have ended are empty.
    fn hear_out(&mut self) {
        while let Ok(said) = self.control_says.recv_timeout(END_WAIT) {
            self.evidence.note_control(said);
        }
        while let Ok(said) = self.storage_says.recv_timeout(END_WAIT) {
            self.evidence.note_storage(said);
        }
    }
}
