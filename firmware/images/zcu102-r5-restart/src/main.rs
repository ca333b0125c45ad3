//! Faults, memory protection, restart and clock of a Cortex-R5F, tried out on the core itself.
//!
//! How it works: the image begins anew again and again, in all the ways there are: by a fault of each kind and
//! by its own will. On-chip memory, which outlives that, counts the runs and what passed. Each run checks first that
//! it began as if it had just been loaded, then does its part. The last run prints the summary. What needs an interrupt
//! controller for these cores, which older versions of QEMU have not, is skipped where there is none.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use musubi_metal::arch::{self, armv7r};
use musubi_metal::board::Board;
use musubi_metal::board::zcu102_r5::{GIC, Zcu102R5, clock_gap_ns_max, has_interrupts};
use musubi_metal::registers::{Registers, Window};
use musubi_metal::{dispatch, image, println};

image! { Cpu: Zcu102R5, 1, main }

/// Where a shared memory lies: a peer's slot, our own, another peer's.
const SHARED: usize = 0x3F00_0000;
const SHARED_BYTES: usize = 0x10_0000;
const OWN: usize = SHARED + 0x1_3000;
const OWN_BYTES: usize = 0x6000;
/// Runs that are made: one for each function of [`RUNS`].
const RUNS: [fn(); 7] =
    [protect, undefined_instruction, wild_store, wild_jump, tell_the_time, be_interrupted, by_itself];
/// Restarts in a row of the last run but one.
const RESTARTS: u32 = 200;
/// The interrupt by which Linux rings in the demo.
const DOORBELL: u32 = 123;
/// What the words of the image are when it is loaded.
const FRESH: u32 = 0x600D_DA7A;

static DATA: AtomicU32 = AtomicU32::new(FRESH);
static ZERO: AtomicU32 = AtomicU32::new(0);

// SAFETY: on-chip memory behind the mailbox of the board, which nobody else uses here.
static KEPT: Window = unsafe { Window::new(0xFFFC_1000, 0x20) };
/// Words there: that the others are ours, the run, passed, failed and skipped checks, the restarts of a run.
const MAGIC: usize = 0x00;
const RUN: usize = 0x04;
const PASSED: usize = 0x08;
const FAILED: usize = 0x0C;
const RESTARTED: usize = 0x10;
const SKIPPED: usize = 0x14;
const OURS: u32 = 0x4D55_5342;

fn check(passed: bool, what: &str) {
    let word = if passed { PASSED } else { FAILED };
    KEPT.write_u32(word, KEPT.read_u32(word) + 1);
    if !passed {
        println!(Cpu, "FAILED {what}");
    }
}

fn main() -> ! {
    if KEPT.read_u32(MAGIC) != OURS {
        [RUN, PASSED, FAILED, RESTARTED, SKIPPED].into_iter().for_each(|word| KEPT.write_u32(word, 0));
        KEPT.write_u32(MAGIC, OURS);
    }
    let run = KEPT.read_u32(RUN) as usize;
    check(DATA.swap(0, Ordering::Relaxed) == FRESH, "initialised data is as loaded");
    check(ZERO.swap(1, Ordering::Relaxed) == 0, "other data is zero");
    dispatch::FAULT.set(Some(again));
    if let Some(part) = RUNS.get(run) {
        KEPT.write_u32(RUN, run as u32 + 1);
        part();
        arch::restart();
    }
    KEPT.write_u32(MAGIC, 0);
    let [passed, failed, skipped] = [PASSED, FAILED, SKIPPED].map(|word| KEPT.read_u32(word));
    println!(Cpu, "{passed} passed, {failed} failed, {skipped} skipped");
    Zcu102R5::power_off()
}

/// What follows a fault.
fn again() {
    arch::restart()
}

/// Stores a word where this program has memory, if it may.
fn may_write(address: usize) -> bool {
    // SAFETY: a word of the shared memory that nobody uses in this image; if it is protected, the store is refused.
    unsafe { arch::probe_write(address, 1) }
}

/// A participant can write its own slot of a shared memory and nothing else there.
fn protect() {
    check(may_write(SHARED) && may_write(OWN), "shared memory can be written before it is protected");
    check(armv7r::protect(SHARED, SHARED_BYTES).is_ok() && armv7r::allow(OWN, OWN_BYTES).is_ok(), "regions suffice");
    check(may_write(OWN) && may_write(OWN + OWN_BYTES - 4), "the own slot can be written");
    check(!may_write(OWN - 4) && !may_write(OWN + OWN_BYTES), "the slots beside it cannot");
    check(!may_write(SHARED) && !may_write(SHARED + SHARED_BYTES - 4), "nor any other");
    check(!may_write(0xC000_0000), "nothing can be written where there is nothing");
    // SAFETY: reads a word of the shared memory.
    let read = unsafe { (SHARED as *const u32).read_volatile() };
    check(read == 1, "the slots of others can be read");
    let left = armv7r::regions_left();
    check(armv7r::protect(SHARED + 8, 64).is_err(), "what the unit cannot protect is refused");
    check(armv7r::regions_left() == left, "and takes no region");
}

/// The fault is printed and the program begins anew.
fn undefined_instruction() {
    // SAFETY: the instruction is undefined for ever; its handler does not come back here.
    unsafe { core::arch::asm!("udf #0", options(noreturn)) }
}

/// A store to a slot that is not ours is a data abort.
fn wild_store() {
    check(armv7r::protect(SHARED, SHARED_BYTES).is_ok(), "shared memory is protected");
    // SAFETY: the store is refused, and its handler does not come back here.
    unsafe { (SHARED as *mut u32).write_volatile(7) };
    check(false, "a store to a protected slot is refused");
}

/// A jump into data is a prefetch abort: shared memory is not executed.
fn wild_jump() {
    // SAFETY: a function's type for the jump; the processor refuses to execute there, and the handler does not come back.
    let jump = unsafe { core::mem::transmute::<usize, extern "C" fn()>(SHARED) };
    jump();
    check(false, "shared memory is not executed");
}

/// The clock goes on steadily, and an alarm comes when it is due.
fn tell_the_time() {
    static DUE: AtomicU32 = AtomicU32::new(0);
    dispatch::ALARM.set(Some(|| DUE.store(1, Ordering::Relaxed)));
    check(clock_gap_ns_max() >= 10_000_000_000, "the clock may be left alone for ten seconds");
    let begin_ns = Zcu102R5::now_ns();
    let mut last_ns = begin_ns;
    let mut backwards = 0;
    let at_ns = begin_ns + 30_000_000;
    Zcu102R5::set_alarm(at_ns);
    while DUE.load(Ordering::Relaxed) == 0 && last_ns < at_ns + 5_000_000_000 {
        let now_ns = Zcu102R5::now_ns();
        backwards += u32::from(now_ns < last_ns);
        last_ns = now_ns;
        if now_ns >= at_ns {
            sleep_unless(|| DUE.load(Ordering::Relaxed) != 0);
        }
    }
    check(backwards == 0, "the clock never goes backwards");
    check(DUE.load(Ordering::Relaxed) == 1, "the alarm comes");
    check(Zcu102R5::now_ns() >= at_ns, "and not before it is due");
}

/// An alarm and a ring interrupt a core that only computes.
fn be_interrupted() {
    static ALARMS: AtomicU32 = AtomicU32::new(0);
    static DEVICES: AtomicU32 = AtomicU32::new(0);
    if !has_interrupts(0) {
        KEPT.write_u32(SKIPPED, KEPT.read_u32(SKIPPED) + 1);
        println!(Cpu, "skipped be_interrupted: no interrupt controller for these cores (QEMU 10.1 and later have one)");
        return;
    }
    dispatch::ALARM.set(Some(|| {
        ALARMS.fetch_add(1, Ordering::Relaxed);
    }));
    dispatch::DEVICE.set(Some(|number| DEVICES.store(number, Ordering::Relaxed)));
    let until_ns = Zcu102R5::now_ns() + 5_000_000_000;
    Zcu102R5::set_alarm(Zcu102R5::now_ns() + 1_000_000);
    while ALARMS.load(Ordering::Relaxed) == 0 && Zcu102R5::now_ns() < until_ns {}
    check(ALARMS.load(Ordering::Relaxed) == 1, "an alarm interrupts");
    check(
        GIC.edge(DOORBELL, true) && GIC.target(DOORBELL, GIC.own_bit()) && GIC.enable(DOORBELL),
        "there is a doorbell",
    );
    check(GIC.set_pending(DOORBELL), "and it can be rung");
    while DEVICES.load(Ordering::Relaxed) == 0 && Zcu102R5::now_ns() < until_ns {}
    check(DEVICES.load(Ordering::Relaxed) == DOORBELL, "an interrupt that is set pending interrupts");
}

/// Waits for an interrupt, unless what it would tell is known already. A core that polls finds its alarm here.
fn sleep_unless(is_known: impl Fn() -> bool) {
    let before = arch::mask();
    if !is_known() {
        arch::wait_for_interrupt();
    }
    arch::restore(before);
}

/// The program begins anew by itself, many times.
fn by_itself() {
    let restarted = KEPT.read_u32(RESTARTED) + 1;
    KEPT.write_u32(RESTARTED, restarted);
    if restarted < RESTARTS {
        KEPT.write_u32(RUN, RUNS.len() as u32 - 1);
    }
}
