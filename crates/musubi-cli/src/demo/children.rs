//! The demo's processes as the launcher holds them.
//!
//! What you may rely on: dropping a [`Child`] kills and reaps it. What a child says is collected without delay, so it never waits
//! for the launcher.
//!
//! How it works: each child is in a process group of its own, so that Ctrl-C on a terminal reaches the launcher only,
//! which then ends the children in order. A thread a pipe collects.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;

use super::leash::Request;

/// Longest complaint that is kept, in bytes.
const COMPLAINT_BYTES_MAX: u64 = 16 * 1024;
/// Pause between looks at a process that should end.
const PAUSE: Duration = Duration::from_millis(2);

/// One process.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    process: process::Child,
    requests: Option<ChildStdin>,
    complaint: Option<JoinHandle<String>>,
    expected_to_end: bool,
}

/// How to start processes of a run.
#[derive(Clone, Debug)]
pub struct Starter {
    /// Name of the run.
    pub instance: String,
}

impl Starter {
    /// Starts a role whose standard output is a pipe of lines.
    pub fn start<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &'static str,
        role: &[&std::ffi::OsStr],
    ) -> anyhow::Result<(Child, Receiver<T>)> {
        let mut child = self.spawn(name, role, Stdio::piped())?;
        let output = child.process.stdout.take().context("the pipe from a process")?;
        let (sender, said) = channel();
        std::thread::Builder::new().name(format!("from-{name}")).spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).try_for_each(|said| sender.send(said))
        })?;
        Ok((child, said))
    }

    /// Starts a role whose standard output is a file.
    pub fn start_into(&self, name: &'static str, role: &[&std::ffi::OsStr], output: File) -> anyhow::Result<Child> {
        self.spawn(name, role, Stdio::from(output))
    }

    fn spawn(&self, name: &'static str, role: &[&std::ffi::OsStr], output: Stdio) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        command.args(["demo-role", "--launcher", &process::id().to_string(), "--instance", &self.instance]);
        command.arg(name).args(role).process_group(0);
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("starting {name}"))?;
        let requests = process.stdin.take();
        let errors = process.stderr.take().context("the pipe from a process")?;
        let collect = move || {
            let mut bytes = Vec::new();
            let _ = errors.take(COMPLAINT_BYTES_MAX).read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let complaint = Some(std::thread::Builder::new().name(format!("errors-{name}")).spawn(collect)?);
        Ok(Child { name, process, requests, complaint, expected_to_end: false })
    }
}

impl Child {
    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end.
    pub fn ask(&mut self, request: Request) {
        self.expected_to_end = true;
        if let Some(requests) = &mut self.requests {
            // If it has ended already, that shows when it is waited for.
            let _ = requests.write_all(&[request as u8]);
        }
    }

    /// Ends it at once (SIGKILL) and waits until it has ended.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().with_context(|| format!("killing {}", self.name))?;
        self.process.wait().with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }

    /// Fails if it has ended without having been asked to.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.process.try_wait()? {
            Some(status) if !self.expected_to_end || !status.success() => self.fail(status),
            _ => Ok(()),
        }
    }

    /// Whether it has ended well.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        match self.process.try_wait()? {
            Some(status) if !status.success() => self.fail(status),
            status => Ok(status.is_some()),
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self, longest: Duration) -> anyhow::Result<()> {
        self.expected_to_end = true;
        let begin = Instant::now();
        while begin.elapsed() < longest {
            if self.has_ended()? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("{} did not end within {} s", self.name, longest.as_secs())
    }

    fn fail<T>(&mut self, status: ExitStatus) -> anyhow::Result<T> {
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        bail!("{} ended unexpectedly ({status})\n{}", self.name, complaint.trim_end())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
