//! Whether calls keep their deadlines.
//!
//! What you may rely on: a call counts as late if it returned more than [`MARGIN_NS`] after its deadline, the time not
//! counted in which its thread was ready and the kernel ran others, was not stopped by the supervisor meanwhile, and was
//! later than any plain sleep had been so far in the run. What is excused is counted, too, by reason.
//!
//! How it works: the kernel says how long each thread has waited for a processor (`/proc/thread-self/schedstat`). Two
//! control threads on each processor, in the supervisor, sleep by plain system calls. One has real-time priority where
//! that is allowed, so what it shows is the machine's doing (a virtual processor that its host did not run, for one);
//! the other has the priority of the callers. A call that is late while a control thread was late by half as much or
//! more is counted apart.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::Context;
use musubi_core::channel::Deadline;
use musubi_linux::clock::now_ns;
use musubi_linux::realtime;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::record::{Of, Record, SUPERVISOR};

/// How late is late, in nanoseconds.
pub const MARGIN_NS: u64 = 10_000_000;
const CONTROL_PERIOD: Duration = Duration::from_millis(1);
const CONTROL_PRIORITY: u8 = 50;
/// How long the control threads have to show that they were late too.
const HEARING_TIME: Duration = Duration::from_millis(60);

/// Times the calls of one thread.
#[derive(Debug)]
pub struct Timing<'r> {
    record: &'r Record,
    participant: u16,
    /// What the thread does, for messages.
    what: String,
    schedstat: File,
}

/// The processors that this process may use.
pub fn processors() -> anyhow::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("asking for the processors")?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect())
}

/// Where counts go.
struct Into {
    calls: Of,
    late: Of,
    overrun: Of,
    is_control: bool,
}

const CALLS: Into = Into { calls: Of::Calls, late: Of::Late, overrun: Of::OverrunUsMax, is_control: false };
const CONTROL: Into =
    Into { calls: Of::ControlCalls, late: Of::ControlLate, overrun: Of::ControlOverrunUsMax, is_control: true };

impl<'r> Timing<'r> {
    /// For the calling thread.
    pub fn new(record: &'r Record, participant: u16, what: String) -> anyhow::Result<Timing<'r>> {
        let schedstat = File::open("/proc/thread-self/schedstat").context("opening the scheduler's statistics")?;
        Ok(Timing { record, participant, what, schedstat })
    }

    /// Makes a call that may wait this long.
    pub fn timed<T>(&self, wait: Duration, call: impl FnOnce(Deadline) -> T) -> T {
        self.judged(&CALLS, wait, |deadline_ns| call(Deadline::At(deadline_ns)))
    }

    /// Sleeps on one processor and judges the sleep, until the run ends; `urgent` with real-time priority.
    pub fn control(&self, processor: usize, urgent: bool) -> anyhow::Result<()> {
        let mut own = CpuSet::new();
        own.set(processor);
        sched_setaffinity(None, &own).context("choosing a processor")?;
        if urgent {
            // Without the permission it is like the other one.
            let _ = realtime::set_fifo_priority(CONTROL_PRIORITY);
        }
        while self.record.phase().get() != crate::record::END {
            self.judged(&CONTROL, CONTROL_PERIOD, |_| std::thread::sleep(CONTROL_PERIOD));
        }
        Ok(())
    }

    /// Whether a control thread was late by half as much or more since the deadline.
    fn machine_was_late(&self, late_ns: u64, own_ns: u64) -> bool {
        let returned_ns = now_ns();
        std::thread::sleep(HEARING_TIME);
        let shown_us = self.record.hiccup_us(returned_ns - late_ns, now_ns());
        u64::from(shown_us) * 2_000 >= own_ns
    }

    fn longest_plain_sleep_us(&self) -> u64 {
        self.record.of(SUPERVISOR, Of::ControlOverrunUsMax).get().into()
    }

    fn judged<T>(&self, into: &Into, wait: Duration, call: impl FnOnce(u64) -> T) -> T {
        let stops = self.word(Of::Stops).get();
        let waited_ns = self.waited_for_processor_ns();
        let deadline_ns = now_ns() + wait.as_nanos() as u64;
        let result = call(deadline_ns);
        let late_ns = now_ns().saturating_sub(deadline_ns);
        self.word(into.calls).count();
        if late_ns > 0 {
            self.judge(into, late_ns, waited_ns, stops);
        }
        result
    }

    fn judge(&self, into: &Into, late_ns: u64, waited_ns: u64, stops: u32) {
        if self.word(Of::Stops).get() != stops || !stops.is_multiple_of(2) {
            if late_ns > MARGIN_NS {
                self.word(Of::Stopped).count();
            }
            return;
        }
        let own_ns = late_ns.saturating_sub(self.waited_for_processor_ns() - waited_ns);
        if into.is_control {
            self.record.note_hiccup(now_ns(), (late_ns / 1_000) as u32);
        } else if own_ns > MARGIN_NS && self.machine_was_late(late_ns, own_ns) {
            return self.word(Of::MachineLate).count();
        }
        if own_ns > MARGIN_NS {
            let is_usual_here = !into.is_control && own_ns / 1_000 <= self.longest_plain_sleep_us();
            self.word(if is_usual_here { Of::UsuallyLate } else { into.late }).count();
            if !into.is_control && !is_usual_here {
                let Timing { what, participant, .. } = self;
                eprintln!("late: {what} of participant {participant} by {late_ns} ns, own {own_ns} ns");
            }
        }
        self.word(into.overrun).raise((own_ns / 1_000) as u32);
        self.word(Of::RawOverrunUsMax).raise((late_ns / 1_000) as u32);
    }

    fn word(&self, what: Of) -> crate::record::Word<'r> {
        self.record.of(self.participant, what)
    }

    /// The second number of the file. What cannot be read counts as no waiting, so that it excuses nothing.
    fn waited_for_processor_ns(&self) -> u64 {
        let mut text = [0; 96];
        let count = self.schedstat.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..count]).unwrap_or("");
        text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}
