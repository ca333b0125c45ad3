//! Embassy's executor on one core of a board: channels as futures.
//!
//! What you may rely on: no heap. A core that has interrupts sleeps until a doorbell, a timer or a beat; one that has none
//! polls, and says so by [`CoreHost`]'s `can_be_woken`.
//!
//! How it works: [`run`] polls the executor, then does the participant's periodic work, then sleeps. A doorbell's handler
//! wakes the futures of the participant ([`Pulse::wake`]), their wakers mark their tasks, and [`__pender`] remembers that
//! there is something to poll. `embassy_time` has the board's clock and alarm ([`clock`]).
//!
//! What it does not do: several cores; each would have an executor of its own.
#![no_std]

mod clock;
mod exclusion;
mod host;

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use embassy_executor::{Spawner, raw};
use musubi_core::mapped::Pulse;
use musubi_metal::board::Board;
use musubi_metal::dispatch;

pub use host::CoreHost;

/// The participant's beat.
pub type Beat<B> = Pulse<'static, CoreHost<B>>;

/// Longest time between two beats of the participant, in nanoseconds.
const BEAT_NS: u64 = 5_000_000;

/// There is something to poll. Writers: wakers set it, the loop clears it before it polls.
static PENDING: AtomicBool = AtomicBool::new(true);
/// What a doorbell wakes: a `Pulse` behind [`wake_pulse`]. Writer: [`run`], once.
static PULSE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Called by the executor when a task shall be polled, from tasks and from handlers.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    PENDING.store(true, Ordering::SeqCst);
}

/// Runs tasks for ever: those that `spawn` spawns, and what they spawn. `pulse` is the participant's. Called once, with
/// interrupts unmasked.
pub fn run<B: Board>(pulse: Beat<B>, spawn: impl FnOnce(Spawner)) -> ! {
    let mut executor = raw::Executor::new(core::ptr::null_mut());
    let executor = &raw mut executor;
    // SAFETY: this function never returns, so what is on its stack is there for ever; nobody else refers to it.
    let executor: &'static mut raw::Executor = unsafe { &mut *executor };
    let pulse = &raw const pulse;
    // SAFETY: likewise.
    let pulse: &'static Beat<B> = unsafe { &*pulse };
    clock::begin::<B>();
    PULSE.store(core::ptr::from_ref(pulse).cast_mut().cast(), Ordering::Release);
    dispatch::DEVICE.set(Some(wake_pulse::<B>));
    dispatch::ALARM.set(Some(clock::alarm));
    spawn(executor.spawner());
    let mut beat_ns = 0;
    loop {
        PENDING.store(false, Ordering::SeqCst);
        // SAFETY: in this loop only, so never twice at once.
        unsafe { executor.poll() };
        clock::wake_due();
        let now_ns = B::now_ns();
        if now_ns >= beat_ns {
            pulse.beat();
            beat_ns = now_ns + BEAT_NS;
        }
        host::rest::<B>(beat_ns.min(clock::next_ns()), &|| !PENDING.load(Ordering::SeqCst));
    }
}

/// The doorbell of the board's device.
fn wake_pulse<B: Board>(_interrupt: u32) {
    // SAFETY: null, or what `run` for this very board stored: a reference for ever.
    if let Some(pulse) = unsafe { PULSE.load(Ordering::Acquire).cast::<Beat<B>>().as_ref() } {
        pulse.wake();
    }
}
