//! What the kernel needs of the machine: its time, its interrupts, its idling.
//!
//! What you may rely on: whether there are interrupts is asked once, when the scheduler starts; QEMU before 10.1 models a
//! Cortex-R5F without an interrupt controller, later ones with.
//!
//! How it works: with interrupts, a timer's is the tick, the doorbell's wakes sleeping tasks, and the idle task waits
//! for the next. Without, the idle task looks at the clock, and lets sleeping tasks look at their channels. Then tasks are scheduled
//! cooperatively: a task that never blocks stops the ticks, and one that becomes ready runs when the others block.

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::{kernel, sleepers, task};

/// Most ticks that the idle task makes good at once.
const CATCH_UP_TICKS_MAX: u64 = 1_000;

/// What an interrupt was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The tick timer.
    pub tick: bool,
    /// Another participant rang.
    pub doorbell: bool,
}

/// A machine that the kernel can run on. All functions are bounded and never block.
pub trait Machine: Sync {
    /// Whether the core takes interrupts.
    fn has_interrupts(&self) -> bool;
    /// Nanoseconds; never back.
    fn now_ns(&self) -> u64;
    /// Lets the timer interrupt [`task::TICK_NS`] apart from now on. Called with interrupts masked, and only where
    /// the kernel's own port has no timer.
    fn start_tick(&self);
    /// Serves the interrupt that is pending, and says what it was. Called in the interrupt.
    fn serve(&self) -> Served;
    /// Sleeps until an interrupt; never called where there are none.
    fn rest(&self);
}

struct Place(UnsafeCell<Option<&'static dyn Machine>>);

// SAFETY: written once, before the scheduler runs and `SET` says so.
unsafe impl Sync for Place {}

static MACHINE: Place = Place(UnsafeCell::new(None));
static SET: AtomicBool = AtomicBool::new(false);
/// How often the idle task went round.
static IDLE_ROUNDS: AtomicU64 = AtomicU64::new(0);
/// When the scheduler started.
static STARTED_NS: AtomicU64 = AtomicU64::new(0);

/// The machine, once it is known.
pub(crate) fn machine() -> Option<&'static dyn Machine> {
    if !SET.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: written before `SET` was, and never again.
    unsafe { *MACHINE.0.get() }
}

/// How often the idle task went round: it does so only while no other task can run.
pub fn idle_rounds() -> u64 {
    IDLE_ROUNDS.load(Ordering::Relaxed)
}

/// Runs the tasks that have been spawned, on this machine, for ever.
///
/// Called once, with interrupts masked and the kernel's trap entries installed (see [`crate::trap`]).
pub fn start(machine: &'static dyn Machine) -> ! {
    assert!(!SET.load(Ordering::Relaxed), "the scheduler is started once");
    // SAFETY: nobody reads before `SET` is stored.
    unsafe { *MACHINE.0.get() = Some(machine) };
    SET.store(true, Ordering::Release);
    STARTED_NS.store(machine.now_ns(), Ordering::Relaxed);
    // SAFETY: once, as asserted; all hooks find the machine.
    unsafe { kernel::vTaskStartScheduler() };
    unreachable!("the kernel's ports do not come back")
}

/// The kernel's idle task, each time round.
#[unsafe(no_mangle)]
extern "C" fn vApplicationIdleHook() {
    IDLE_ROUNDS.fetch_add(1, Ordering::Relaxed);
    let Some(machine) = machine() else { return };
    if machine.has_interrupts() {
        machine.rest();
    } else {
        catch_up(machine);
        sleepers::wake_all();
    }
}

/// Gives the kernel the ticks that have passed.
fn catch_up(machine: &dyn Machine) {
    let passed = machine.now_ns().saturating_sub(STARTED_NS.load(Ordering::Relaxed)) / task::TICK_NS;
    let missing = passed.saturating_sub(task::ticks()).min(CATCH_UP_TICKS_MAX);
    if missing != 0 {
        kernel::musubi_freertos_catch_up(missing as u32);
    }
}

/// What is called when another participant rings; null for nothing.
static ON_RING: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Sets what is called in the doorbell's interrupt before sleeping tasks are woken: the participants' `wake`.
pub fn on_ring(function: fn()) {
    ON_RING.store(function as *mut (), Ordering::Release);
}

fn ring() {
    let function = ON_RING.load(Ordering::Acquire);
    // SAFETY: only `on_ring` stores here: null, which is `None`, or a function of this very type.
    if let Some(function) = unsafe { core::mem::transmute::<*mut (), Option<fn()>>(function) } {
        function();
    }
    sleepers::wake_all_from_interrupt();
}

/// What the interrupt was for reaches the kernel.
pub(crate) fn interrupt() {
    let Some(machine) = machine() else { return };
    let served = machine.serve();
    #[cfg(target_arch = "arm")]
    if served.tick {
        // SAFETY: we are in an interrupt with interrupts masked.
        unsafe { kernel::musubi_freertos_tick_from_interrupt() };
    }
    if served.doorbell {
        ring();
    }
}
