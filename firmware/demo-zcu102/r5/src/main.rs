//! The Master of the ZCU102 demo: FreeRTOS on a Cortex-R5F beside Linux, with a real-time loop, a digester, a node of MCAPI in
//! Rust, one in C and a NIC as tasks.
//!
//! What you may rely on: a fault restarts the program as a watchdog would: a new incarnation on the same memory, while
//! Linux goes on.
//!
//! How it works: the loop's task is the most urgent; each tick wakes it, a little before its period begins. The digester
//! has what is left. Where nothing interrupts the core, tasks are scheduled cooperatively, so the digester lets the idle
//! task look at the clock whenever a period has begun.
#![no_std]
#![no_main]

mod chip;
mod nic;
mod node;
mod node_c;

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use musubi_core::mapped::Participant;
use musubi_freertos::task::TICK_NS;
use musubi_freertos::{Task, TaskHost, sleep, task};
use musubi_mdcom::Wait;
use musubi_metal::board::Board;
use musubi_metal::board::zcu102_r5::Zcu102R5;
use musubi_metal::{arch, image, println};
use zcu102_demo::control::{Control, PERIOD_NS, Wishes};
use zcu102_demo::digester::Digester;

use chip::MACHINE;

image! { Cpu: Zcu102R5, 1, main, fault: restart }

/// Bytes of a task's stack.
const STACK_BYTES: usize = 32 << 10;
/// The loop is the most urgent.
const CONTROL_PRIORITY: u32 = 5;
const DIGEST_PRIORITY: u32 = 1;
const NODE_PRIORITY: u32 = 2;
/// How long after a tick a period begins, in nanoseconds: the task is awake by then.
const AFTER_TICK_NS: u64 = 50_000;
/// Periods between two beats.
const BEAT_PERIODS: u64 = 5;
/// Awakenings that tell where the ticks are.
const PHASE_SAMPLES: u32 = 16;
/// Longest wait of the digester.
const DIGEST_WAIT_NS: u64 = 10_000_000;

static CONTROL: Task<STACK_BYTES> = Task::new();
static DIGEST: Task<STACK_BYTES> = Task::new();
static NODE: Task<STACK_BYTES> = Task::new();
static NIC: Task<STACK_BYTES> = Task::new();
/// When the loop's next period begins. Writer: the loop.
static DUE_NS: AtomicU64 = AtomicU64::new(u64::MAX);

/// What the tasks share.
struct Master {
    participant: Participant<'static, TaskHost>,
    wishes: Wishes,
}

fn main() -> ! {
    CONTROL.spawn(c"control", CONTROL_PRIORITY, control, &());
    MACHINE.start()
}

/// Attaches, starts the digester, and is the loop then.
fn control(_: &()) {
    let interrupted = MACHINE.is_interrupted();
    let how = if interrupted { "interrupts both ways" } else { "polling, as this chip has no interrupts for it" };
    println!(Cpu, "FreeRTOS on a Cortex-R5F, {how}");
    println!(Cpu, "clock: {}", Zcu102R5::clock_check());
    let participant = match chip::attach() {
        Ok(participant) => participant,
        Err(error) => stop(&error),
    };
    println!(Cpu, "Master, incarnation {:#010x}", participant.epoch());
    let mut pulse = participant.pulse();
    let pulse_for_ever = &raw mut pulse;
    // SAFETY: this function never returns, so what is on its stack is there for ever, and nobody else uses it.
    chip::listen(unsafe { &mut *pulse_for_ever });
    let master = Master { participant, wishes: Wishes::default() };
    let master_for_ever = &raw const master;
    // SAFETY: as above.
    let master: &'static Master = unsafe { &*master_for_ever };
    DIGEST.spawn(c"digest", DIGEST_PRIORITY, digest, master);
    NODE.spawn(c"node", NODE_PRIORITY, node, master);
    NIC.spawn(c"nic", NODE_PRIORITY, nic, master);
    if let Err(error) = node_c::start(&master.participant) {
        stop(&error);
    }
    let first_ns = last_tick_ns() + PERIOD_NS + AFTER_TICK_NS;
    let (participant, wishes) = (&master.participant, &master.wishes);
    match Control::new(participant, participant.epoch(), wishes, first_ns) {
        Ok(control) => run(control, participant),
        Err(error) => stop(&error),
    }
}

/// When the last tick was, as exactly as a task can tell: of several awakenings, the one that came soonest after its tick.
fn last_tick_ns() -> u64 {
    let mut last_ns = 0;
    for sample in 0..PHASE_SAMPLES {
        task::delay(1);
        let now_ns = Zcu102R5::now_ns();
        // Later than the soonest one so far, less than half a tick; else it is sooner itself, or a tick was missed.
        let late_ns = now_ns.wrapping_sub(last_ns) % TICK_NS;
        let is_late = sample > 0 && late_ns < TICK_NS / 2;
        last_ns = now_ns - if is_late { late_ns } else { 0 };
    }
    last_ns
}

fn run(mut control: Control<'_, Participant<'_, TaskHost>>, participant: &Participant<'_, TaskHost>) -> ! {
    for period in 0u64.. {
        DUE_NS.store(control.due_ns(), Ordering::Relaxed);
        while Zcu102R5::now_ns() + AFTER_TICK_NS * 2 < control.due_ns() {
            task::delay(1);
        }
        while Zcu102R5::now_ns() < control.due_ns() {
            core::hint::spin_loop();
        }
        control.run_if_due();
        if period.is_multiple_of(BEAT_PERIODS) {
            participant.beat();
        }
    }
    unreachable!("as many periods as there are numbers take longer than the board lives")
}

fn digest(master: &'static Master) {
    let (participant, wishes) = (&master.participant, &master.wishes);
    let mut digester = match Digester::new(participant, participant.epoch(), wishes, crash) {
        Ok(digester) => digester,
        Err(error) => stop(&error),
    };
    let interrupted = MACHINE.is_interrupted();
    let mut between = || {
        if !interrupted && Zcu102R5::now_ns() >= DUE_NS.load(Ordering::Relaxed) {
            sleep(PERIOD_NS, &|| true);
        }
    };
    loop {
        digester.step(Wait::Until(Zcu102R5::now_ns() + DIGEST_WAIT_NS), &mut between);
    }
}

fn node(master: &'static Master) {
    if let Err(error) = node::serve(&master.participant) {
        stop(&error);
    }
}

fn nic(master: &'static Master) {
    nic::serve(&master.participant);
}

/// Ends this incarnation in the middle of what it does.
fn crash() -> ! {
    println!(Cpu, "crashing: an undefined instruction, in the middle of a message");
    // SAFETY: the architecture reserves this instruction to be undefined; the fault's handler does not return.
    unsafe { asm!("udf #0", options(noreturn)) }
}

/// What becomes of the program after a fault.
fn restart(cause: usize, _address: usize, at: usize) -> ! {
    println!(Cpu, "fault: cause {cause:#x} at {at:#x}; restarting");
    arch::restart()
}

fn stop(error: &dyn core::fmt::Debug) -> ! {
    println!(Cpu, "FAILED: {error:?}");
    Zcu102R5::stop()
}
