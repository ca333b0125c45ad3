//! Coroutines that take turns on a core: the least scheduler, for measurements and for images without an RTOS.
//!
//! What you may rely on: at most [`COROUTINES_MAX`] coroutines a core; [`Coroutines::run`] returns when all have. A coroutine gives the core
//! away by [`Coroutines::switch`] only; interrupts of the core do not switch.
//!
//! How it works: each coroutine has a stack of its own; a switch keeps the registers that the calling convention asks a
//! function to keep, on that stack (`arch::switch`). The caller of `run` is one of the coroutines in the round.
//!
//! What it does not do: preempt, or put coroutines to sleep.

use core::cell::{Cell, UnsafeCell};

use crate::arch;

/// Most coroutines of a core.
pub const COROUTINES_MAX: usize = 8;
/// Bytes of a coroutine's stack.
pub const STACK_BYTES: usize = 16 * 1024;

/// A coroutine's stack.
#[repr(C, align(16))]
#[derive(Debug)]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);

/// The coroutines of one core. Writer of all: that core.
#[derive(Debug)]
pub struct Coroutines {
    stacks: [Stack; COROUTINES_MAX],
    /// Where each coroutine's stack stood when it gave the core away; the last place is the caller's of `run`.
    kept: [UnsafeCell<usize>; COROUTINES_MAX + 1],
    /// What each coroutine has to run; `None` once it has returned.
    functions: [Cell<Option<fn()>>; COROUTINES_MAX],
    /// Whose turn it is; `COROUTINES_MAX` for the caller of `run`.
    current: Cell<usize>,
}

// SAFETY: one core uses the value, by the contract of `run` and `switch`; coroutines of a core do not run at the same time.
unsafe impl Sync for Coroutines {}

impl Coroutines {
    /// No coroutines.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self {
            stacks: [const { Stack(UnsafeCell::new([0; STACK_BYTES])) }; COROUTINES_MAX],
            kept: [const { UnsafeCell::new(0) }; COROUTINES_MAX + 1],
            functions: [const { Cell::new(None) }; COROUTINES_MAX],
            current: Cell::new(COROUTINES_MAX),
        }
    }

    /// Runs functions as coroutines until all have returned; those above [`COROUTINES_MAX`] are left out. `first` is the entry of
    /// a coroutine: a function that calls [`Coroutines::enter`] of this value.
    ///
    /// # Safety
    /// Always on the same core, in no handler and in no coroutine.
    pub unsafe fn run(&self, coroutines: impl Iterator<Item = fn()>, first: extern "C" fn() -> !) {
        for (place, function) in coroutines.take(COROUTINES_MAX).enumerate() {
            self.functions[place].set(Some(function));
            let top = self.stacks[place].0.get() as usize + STACK_BYTES;
            // SAFETY: the stack is this coroutine's, which does not run yet; its end is aligned like its begin.
            let frame = unsafe { arch::prepare_stack(top, first) };
            // SAFETY: nobody else uses the place.
            unsafe { self.kept[place].get().write(frame) };
        }
        while self.functions.iter().any(|function| function.get().is_some()) {
            self.switch();
        }
    }

    /// Gives the core to the next coroutine; returns when the turn has come round, at once if there is no other coroutine.
    pub fn switch(&self) {
        let from = self.current.get();
        let runs = |place: &usize| *place == COROUTINES_MAX || self.functions[*place].get().is_some();
        let others = (1..=COROUTINES_MAX).map(|step| (from + step) % (COROUTINES_MAX + 1));
        // The caller of `run` only waits, so it has a turn when nobody else has one.
        let next = others.filter(|place| *place != COROUTINES_MAX).find(runs).unwrap_or(COROUTINES_MAX);
        let stays =
            next == from || (next == COROUTINES_MAX && from < COROUTINES_MAX && self.functions[from].get().is_some());
        if !stays {
            self.pass(from, next);
        }
    }

    fn pass(&self, from: usize, next: usize) {
        self.current.set(next);
        // SAFETY: written when that coroutine gave the core away, or by `run`; only this core touches it.
        let to = unsafe { self.kept[next].get().read() };
        // SAFETY: `to` is that coroutine's stack, used once until it gives the core away again; `from` is our own place.
        unsafe { arch::switch(self.kept[from].get(), to) };
    }

    /// Runs the coroutine whose turn it is; what the entry of a coroutine calls.
    pub fn enter(&self) -> ! {
        let place = self.current.get();
        if let Some(function) = self.functions[place].get() {
            function();
        }
        self.functions[place].set(None);
        loop {
            self.switch();
        }
    }
}
