//! Control: the Master. A loop of 1 ms that measures how late it wakes up, and a thread beside it that digests storage's
//! stream.
//!
//! What you may rely on: the loop waits for nothing but its own clock. It takes a block only if one is free, looks at
//! the parameters only if the lock is free, and goes on when a Remote is dead. It writes to no descriptor and allocates
//! nothing while it runs.
//!
//! How it works: absolute deadlines, so that lateness does not add up. A cycle whose deadline has passed by a whole period is
//! skipped and counted, not made up for.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use musubi_core::Error;
use musubi_linux::clock::now_ns;
use musubi_linux::{Participant, realtime};
use musubi_mdcom::{Mdcom, Sender, Shared, Wait};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use super::leash::{Leash, Request};
use super::say;
use super::storage::{BULK_NICENESS, digest_stream};
use super::system::{PARAMETERS, PERIOD_NS, Parameters, TELEMETRY, Telemetry, attach};

/// Priority of the loop.
const PRIORITY: u8 = 80;
/// How long the Master waits at its end, outside the loop, for the gateway to take what is queued.
const DRAIN_WAIT: Duration = Duration::from_secs(5);
/// Samples are kept for this many seconds more than asked for.
const SPARE_SECONDS: u64 = 70;
const NS_PER_S: u64 = 1_000_000_000;

/// What control tells the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum ControlSays {
    /// The loop begins.
    Started(Start),
    /// The loop has ended.
    Ended(ControlEnd),
}

/// How the loop runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// First deadline, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Its `SCHED_FIFO` priority, or why it has none.
    pub priority: Result<u8, String>,
    /// Whether its memory is locked, or why not.
    pub memory: Result<(), String>,
    /// The core it is bound to, if there is more than one.
    pub core: Option<usize>,
}

/// What the loop did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ControlEnd {
    /// Messages enqueued.
    pub sent: u64,
    /// Messages not sent because no block was free.
    pub no_block: u64,
    /// Cycles run.
    pub cycles: u64,
    /// Cycles left out because the loop was later than a whole period.
    pub skipped: u64,
    /// Cycles later than the gateway's alarm threshold.
    pub alarms: u64,
    /// How often new parameters of the gateway took effect.
    pub settings: u64,
    /// Looks at the parameters that found the lock taken.
    pub lock_busy: u64,
    /// Number of the cycle and its lateness in nanoseconds.
    pub latenesses: Vec<(u32, u32)>,
}

/// Runs until asked to stop.
pub fn run(instance: &str, seconds: u64, leash: &Leash) -> anyhow::Result<()> {
    let participant = attach("control", instance)?;
    std::thread::scope(|scope| {
        // Started before this thread becomes a real-time one, because threads inherit that.
        let digester = scope.spawn(|| {
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BULK_NICENESS);
            digest_stream(&participant, leash)
        });
        let ended = run_loop(&participant, seconds, leash);
        let digested = digester.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the digesting thread panicked")));
        say(&ControlSays::Ended(ended?))?;
        digested
    })
}

fn run_loop(participant: &Participant, seconds: u64, leash: &Leash) -> anyhow::Result<ControlEnd> {
    let mdcom = Mdcom::init(participant);
    let mut cycles = Cycles {
        telemetry: mdcom.sender_of(TELEMETRY)?,
        memory: mdcom.shared(PARAMETERS, Wait::For(DRAIN_WAIT))?,
        parameters: Parameters { alarm_ns: u64::MAX, generation: 0, every: 1 },
        end: ControlEnd { latenesses: touched_samples(seconds), ..ControlEnd::default() },
    };
    let (core, priority, memory) = become_real_time();
    let at_ns = now_ns() + PERIOD_NS;
    say(&ControlSays::Started(Start { at_ns, priority, memory, core }))?;
    cycles.run(at_ns, leash)?;
    let _ = realtime::set_ordinary_priority();
    drain(&cycles.telemetry);
    Ok(cycles.end)
}

/// Room for all samples, in memory now.
fn touched_samples(seconds: u64) -> Vec<(u32, u32)> {
    let count = (seconds + SPARE_SECONDS) * NS_PER_S / PERIOD_NS;
    let mut samples = vec![(1, 1); count as usize];
    samples.clear();
    samples
}

/// Asks for what a loop of 1 ms wants; goes on without what is not allowed.
fn become_real_time() -> (Option<usize>, Result<u8, String>, Result<(), String>) {
    let cores = realtime::cores();
    let last = cores.last().copied().filter(|_| cores.len() > 1);
    let core = last.filter(|core| realtime::pin_to_core(*core).is_ok());
    let priority = realtime::set_fifo_priority(PRIORITY).map(|()| PRIORITY).map_err(|error| error.to_string());
    // Locking without the priority would only risk the memory limit.
    let memory = match &priority {
        Ok(_) => realtime::lock_memory().map_err(|error| error.to_string()),
        Err(_) => Err("not asked for, as there is no real-time priority".to_owned()),
    };
    // Without the priority, timers may come 50 us late by intent of the kernel, unless asked not to.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    (core, priority, memory)
}

/// The loop and what it works with.
struct Cycles<'a> {
    telemetry: Sender<'a, Participant, Telemetry>,
    memory: Shared<'a, Participant, Parameters>,
    parameters: Parameters,
    end: ControlEnd,
}

impl Cycles<'_> {
    fn run(&mut self, first_ns: u64, leash: &Leash) -> anyhow::Result<()> {
        let mut cycle = 0;
        while leash.request() != Request::Stop {
            let deadline_ns = first_ns + cycle * PERIOD_NS;
            sleep_until(deadline_ns)?;
            let lateness_ns = now_ns().saturating_sub(deadline_ns);
            self.cycle(cycle, u32::try_from(lateness_ns).unwrap_or(u32::MAX));
            let next = cycle + 1;
            let reachable = (now_ns().saturating_sub(first_ns)) / PERIOD_NS;
            self.end.skipped += reachable.saturating_sub(next);
            cycle = next.max(reachable);
        }
        Ok(())
    }

    fn cycle(&mut self, cycle: u64, lateness_ns: u32) {
        self.end.cycles += 1;
        if self.end.latenesses.len() < self.end.latenesses.capacity() {
            self.end.latenesses.push((cycle as u32, lateness_ns));
        }
        self.look_at_parameters();
        self.end.alarms += u64::from(u64::from(lateness_ns) > self.parameters.alarm_ns);
        if cycle.is_multiple_of(u64::from(self.parameters.every.max(1))) {
            self.send(cycle, lateness_ns);
        }
    }

    fn look_at_parameters(&mut self) {
        let Ok(guard) = self.memory.try_lock() else {
            self.end.lock_busy += 1;
            return;
        };
        let parameters = guard.read();
        drop(guard);
        if parameters.generation != self.parameters.generation {
            self.parameters = parameters;
            self.end.settings += 1;
        }
    }

    fn send(&mut self, cycle: u64, lateness_ns: u32) {
        let (sequence, generation) = (self.end.sent, self.parameters.generation);
        let block = match self.telemetry.alloc(Wait::Poll) {
            // A gateway died: told once, instead of the refusal.
            Err(Error::PeerGone) => self.telemetry.alloc(Wait::Poll),
            other => other,
        };
        let Ok(mut block) = block else {
            self.end.no_block += 1;
            return;
        };
        *block = Telemetry { sequence, cycle, sent_ns: now_ns(), lateness_ns, generation };
        if block.enqueue().is_ok() {
            self.telemetry.notify();
            self.end.sent += 1;
        }
    }
}

fn sleep_until(at_ns: u64) -> anyhow::Result<()> {
    let until = Timespec { tv_sec: (at_ns / NS_PER_S) as i64, tv_nsec: (at_ns % NS_PER_S) as _ };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(rustix::io::Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Gives the gateway time to take what is queued; it could also do so after we have left, but a successor that is not
/// linked yet could not.
fn drain(telemetry: &Sender<'_, Participant, Telemetry>) {
    let begin = Instant::now();
    while begin.elapsed() < DRAIN_WAIT {
        let usage = telemetry.sense();
        if usage.connected && usage.queued == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
