//! Tasks that wait are blocked in the kernel, and come back in time.
//!
//! How it works: counts instead of times. The idle task's rounds say that nobody else ran; the kernel's ticks say when a
//! task came back, whatever the emulator's host did meanwhile.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_freertos::{TICK_NS, Task, idle_rounds, task};
use musubi_testsuite::plan;

use crate::attached::{Here, Member, another};
use crate::report::Report;
use crate::{PRIORITY, Place};

/// Messages to each of two tasks.
const MESSAGES: u32 = 200;
/// How long a test waits for anything, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Waits that must end in time, of at most so many.
const WAITS: u64 = 20;
const WAITS_MAX: u64 = 400;

type Outcome = Result<(), &'static str>;

/// Runs the tests.
pub fn run(place: &'static Place, report: &mut Report) {
    report.result("sleeping::the_idle_task_runs_while_a_task_waits", idle_runs(place));
    report.result("sleeping::a_deadline_is_kept_within_a_tick", deadlines(place));
    report.result("sleeping::two_tasks_wait_at_two_channels", two_tasks(place));
    let name = "sleeping::each_ring_wakes_at_once";
    if place.machine().has_interrupts() {
        report.result(name, wakes_at_once(place));
    } else {
        report.skipped(name, "this model of the core takes no interrupts; QEMU 10.1 or newer has them");
    }
}

fn pair(place: &'static Place) -> Result<(Member, Member), &'static str> {
    let attach = |number| Member::attach(place, number).map_err(|_| "both participants attach");
    Ok((attach(plan::MASTER)?, attach(plan::REMOTE)?))
}

/// The idle task goes round while the only other task waits, and does not while that one computes.
fn idle_runs(place: &'static Place) -> Outcome {
    let (_master, remote) = pair(place)?;
    let end = remote.open_receiving(plan::DOWN).map_err(|_| "the end opens")?;
    let before = idle_rounds();
    let result = end.wait(Deadline::At(remote.now_ns() + 50 * TICK_NS));
    let waiting = idle_rounds() - before;
    if result != Err(Error::Timeout) {
        return Err("nothing is there to be waited for");
    }
    // How often depends on the emulator's host.
    if waiting == 0 { Err("the idle task runs while a task waits") } else { Ok(()) }
}

/// No wait ends before its deadline, and enough of them within a tick behind it. The others are the host's: it may stop the
/// emulator at any time, for many ticks.
fn deadlines(place: &'static Place) -> Outcome {
    let (_master, remote) = pair(place)?;
    let end = remote.open_receiving(plan::DOWN).map_err(|_| "the end opens")?;
    let mut punctual = 0;
    for round in 0..WAITS_MAX {
        let ns = 3 * TICK_NS + round * TICK_NS / WAITS_MAX;
        let (first_tick, deadline_ns) = (task::ticks(), remote.now_ns() + ns);
        if end.wait(Deadline::At(deadline_ns)) != Err(Error::Timeout) {
            return Err("nothing is there to be waited for");
        }
        if remote.now_ns() < deadline_ns {
            return Err("no wait ends before its deadline");
        }
        // Begun within a tick, so the deadline lies in the last of so many ticks; one more is granted.
        punctual += u64::from(task::ticks() - first_tick <= ns.div_ceil(TICK_NS) + 1);
        if punctual == WAITS {
            return Ok(());
        }
    }
    Err("waits end within a tick behind their deadline")
}

/// What a task that receives says of itself.
struct Receiver {
    fifo: u16,
    received: AtomicU32,
    /// Messages that were not the next one.
    wrong: AtomicU32,
    done: AtomicBool,
}

impl Receiver {
    const fn new(fifo: u16) -> Receiver {
        let (received, wrong) = (AtomicU32::new(0), AtomicU32::new(0));
        Receiver { fifo, received, wrong, done: AtomicBool::new(false) }
    }

    /// The task: takes [`MESSAGES`] messages of the Remote's channel, waiting for each.
    fn run(&'static self) {
        if let Some(remote) = another(plan::REMOTE)
            && let Ok(end) = remote.open_receiving(self.fifo)
        {
            for expected in 0..MESSAGES {
                match self.next(&remote, &end) {
                    Some(number) if number == expected => {}
                    _ => drop(self.wrong.fetch_add(1, Ordering::SeqCst)),
                }
            }
        }
        self.done.store(true, Ordering::SeqCst);
    }

    fn next(&self, remote: &Here, end: &impl ReceivingEnd) -> Option<u32> {
        let deadline = Deadline::At(remote.now_ns() + PATIENCE_NS);
        let message = loop {
            match end.dequeue() {
                Err(Error::Empty) => end.wait(deadline).ok()?,
                done => break done.ok()?,
            }
        };
        let mut number = [0; 4];
        message.copy_to(0, &mut number);
        end.free(message).ok()?;
        self.received.fetch_add(1, Ordering::SeqCst);
        Some(u32::from_le_bytes(number))
    }

    fn verdict(&self) -> Outcome {
        match (self.received.load(Ordering::SeqCst), self.wrong.load(Ordering::SeqCst)) {
            (MESSAGES, 0) => Ok(()),
            (MESSAGES, _) => Err("the messages come in order"),
            _ => Err("every message arrives"),
        }
    }
}

fn send(end: &impl SendingEnd, number: u32, deadline: Deadline) -> Outcome {
    let mut loan = end.allocate(deadline).map_err(|_| "a block is free in time")?;
    loan[..4].copy_from_slice(&number.to_le_bytes());
    end.enqueue(loan, 4).map_err(|_| "the block is enqueued")?;
    let _ = end.notify();
    Ok(())
}

/// Waits for a task's end, in ticks.
fn finished(master: &Member, receivers: &[&Receiver]) -> Outcome {
    let end_ns = master.now_ns() + PATIENCE_NS;
    while receivers.iter().any(|receiver| !receiver.done.load(Ordering::SeqCst)) {
        if master.now_ns() > end_ns {
            return Err("the receiving tasks end");
        }
        task::delay(1);
    }
    receivers.iter().try_for_each(|receiver| receiver.verdict())
}

/// Two tasks of the Remote, each at its channel; this task sends to one and the other in turn.
fn two_tasks(place: &'static Place) -> Outcome {
    static TASKS: [Task<8192>; 2] = [Task::new(), Task::new()];
    static RECEIVERS: [Receiver; 2] = [Receiver::new(plan::DOWN), Receiver::new(plan::ODD)];
    let (master, _remote) = pair(place)?;
    let ends = [open(&master, plan::DOWN)?, open(&master, plan::ODD)?];
    for (task, receiver) in TASKS.iter().zip(&RECEIVERS) {
        task.spawn(c"receiver", PRIORITY + 1, Receiver::run, receiver);
    }
    let deadline = Deadline::At(master.now_ns() + PATIENCE_NS);
    for number in 0..MESSAGES {
        for end in &ends {
            send(end, number, deadline)?;
        }
    }
    finished(&master, &[&RECEIVERS[0], &RECEIVERS[1]])
}

/// Each ring wakes the waiting task of higher priority before `notify` returns: nothing but the doorbell's interrupt can.
fn wakes_at_once(place: &'static Place) -> Outcome {
    static TASK: Task<8192> = Task::new();
    static RECEIVER: Receiver = Receiver::new(plan::DOWN);
    let (master, _remote) = pair(place)?;
    let end = open(&master, plan::DOWN)?;
    TASK.spawn(c"receiver", PRIORITY + 1, Receiver::run, &RECEIVER);
    let deadline = Deadline::At(master.now_ns() + PATIENCE_NS);
    let mut late = 0;
    for number in 0..MESSAGES {
        // The receiver sleeps, as it has the higher priority.
        send(&end, number, deadline)?;
        let taken = RECEIVER.received.load(Ordering::SeqCst) == number + 1;
        late += u32::from(!taken);
        if !taken {
            task::delay(2);
        }
    }
    finished(&master, &[&RECEIVER])?;
    // The first may find a channel that is still being linked.
    if late <= 1 { Ok(()) } else { Err("the task has run when notify returns") }
}

fn open(master: &Member, fifo: u16) -> Result<impl SendingEnd + use<>, &'static str> {
    master.open_sending(fifo).map_err(|_| "the sending end opens")
}
