//! The participants as processes: started, stopped, continued, killed.
//!
//! What you may rely on: dropping [`Children`] ends them all.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::system::PARTICIPANTS;
use crate::witness::Who;

/// Pause between looks at a process that should end.
const PAUSE: Duration = Duration::from_millis(1);

/// How to start one.
#[derive(Debug)]
pub struct Starter {
    /// The system's instance.
    pub instance: String,
    /// Path of the record.
    pub record: String,
    /// Seed of the run.
    pub seed: u64,
}

/// All participants, by number.
#[derive(Debug)]
pub struct Children {
    starter: Starter,
    processes: Vec<(Child, u32)>,
}

impl Children {
    /// Starts the first incarnation of each.
    pub fn start(starter: Starter) -> anyhow::Result<Children> {
        let mut children = Children { starter, processes: Vec::new() };
        for participant in 0..PARTICIPANTS {
            let process = children.starter.start((participant, 1))?;
            children.processes.push((process, 1));
        }
        Ok(children)
    }

    /// The present incarnation of a participant.
    pub fn incarnation(&self, participant: u16) -> u32 {
        self.processes[usize::from(participant)].1
    }

    /// The same with its number.
    pub fn who(&self, participant: u16) -> Who {
        (participant, self.incarnation(participant))
    }

    /// Who a process is.
    pub fn of_process(&self, pid: i32) -> Option<Who> {
        let index = self.processes.iter().position(|(process, _)| i32::try_from(process.id()) == Ok(pid))?;
        Some(self.who(index as u16))
    }

    /// Kills one and waits until it is off the process table.
    pub fn kill(&mut self, participant: u16) -> anyhow::Result<()> {
        let process = &mut self.processes[usize::from(participant)].0;
        process.kill().context("killing a participant")?;
        process.wait().context("waiting for a killed participant")?;
        Ok(())
    }

    /// Starts the successor of one that was killed.
    pub fn succeed(&mut self, participant: u16) -> anyhow::Result<()> {
        let incarnation = self.incarnation(participant) + 1;
        self.processes[usize::from(participant)] = (self.starter.start((participant, incarnation))?, incarnation);
        Ok(())
    }

    /// Sends a signal.
    pub fn signal(&self, participant: u16, signal: Signal) -> anyhow::Result<()> {
        let id = self.processes[usize::from(participant)].0.id();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("a process number")?;
        kill_process(pid, signal).context("signalling a participant")
    }

    /// Fails if one has ended by itself.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for (participant, (process, incarnation)) in self.processes.iter_mut().enumerate() {
            if let Some(status) = process.try_wait()? {
                bail!("participant {participant}, incarnation {incarnation}, ended by itself: {status}");
            }
        }
        Ok(())
    }

    /// Waits until all have ended; gives how.
    pub fn wait(&mut self, longest: Duration) -> anyhow::Result<Vec<ExitStatus>> {
        let begin = Instant::now();
        let mut statuses = Vec::new();
        for (process, _) in &mut self.processes {
            loop {
                if let Some(status) = process.try_wait()? {
                    statuses.push(status);
                    break;
                }
                if begin.elapsed() > longest {
                    bail!("a participant did not leave");
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(statuses)
    }
}

impl Starter {
    fn start(&self, (participant, incarnation): Who) -> anyhow::Result<Child> {
        let mut command = Command::new(std::env::current_exe().context("finding this program")?);
        let seed = self.seed ^ u64::from(incarnation) << 8 ^ u64::from(participant);
        command.args(["participant", "--domain", &participant.to_string(), "--instance", &self.instance]);
        command.args(["--incarnation", &incarnation.to_string(), "--record", &self.record]);
        command.args(["--supervisor", &std::process::id().to_string(), "--seed", &seed.to_string()]);
        command.spawn().context("starting a participant")
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for (process, _) in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
