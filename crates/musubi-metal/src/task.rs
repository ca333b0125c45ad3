//! Tasks that take turns on a core: the least scheduler, for measurements and for images without an RTOS.
//!
//! What you may rely on: at most [`TASKS_MAX`] tasks a core; [`Tasks::run`] returns when all have. A task gives the core
//! away by [`Tasks::switch`] only; interrupts of the core do not switch.
//!
//! How it works: each task has a stack of its own; a switch keeps the registers that the calling convention asks a
//! function to keep, on that stack (`arch::switch`). The caller of `run` is one of the tasks in the round.
//!
//! What it does not do: preempt, or put tasks to sleep.

use core::cell::{Cell, UnsafeCell};

use crate::arch;

/// Most tasks of a core.
pub const TASKS_MAX: usize = 8;
/// Bytes of a task's stack.
pub const TASK_STACK_BYTES: usize = 16 * 1024;

/// A task's stack.
#[repr(C, align(16))]
#[derive(Debug)]
struct Stack(UnsafeCell<[u8; TASK_STACK_BYTES]>);

/// The tasks of one core. Writer of all: that core.
#[derive(Debug)]
pub struct Tasks {
    stacks: [Stack; TASKS_MAX],
    /// Where each task's stack stood when it gave the core away; the last place is the caller's of `run`.
    kept: [UnsafeCell<usize>; TASKS_MAX + 1],
    /// What each task has to run; `None` once it has returned.
    functions: [Cell<Option<fn()>>; TASKS_MAX],
    /// Whose turn it is; `TASKS_MAX` for the caller of `run`.
    current: Cell<usize>,
}

// SAFETY: one core uses the value, by the contract of `run` and `switch`; tasks of a core do not run at the same time.
unsafe impl Sync for Tasks {}

impl Tasks {
    /// No tasks.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self {
            stacks: [const { Stack(UnsafeCell::new([0; TASK_STACK_BYTES])) }; TASKS_MAX],
            kept: [const { UnsafeCell::new(0) }; TASKS_MAX + 1],
            functions: [const { Cell::new(None) }; TASKS_MAX],
            current: Cell::new(TASKS_MAX),
        }
    }

    /// Runs functions as tasks until all have returned; those above [`TASKS_MAX`] are left out. `first` is the entry of
    /// a task: a function that calls [`Tasks::enter`] of this value.
    ///
    /// # Safety
    /// Always on the same core, in no handler and in no task.
    pub unsafe fn run(&self, tasks: impl Iterator<Item = fn()>, first: extern "C" fn() -> !) {
        for (place, function) in tasks.take(TASKS_MAX).enumerate() {
            self.functions[place].set(Some(function));
            let top = self.stacks[place].0.get() as usize + TASK_STACK_BYTES;
            // SAFETY: the stack is this task's, which does not run yet; its end is aligned like its begin.
            let frame = unsafe { arch::prepare_stack(top, first) };
            // SAFETY: nobody else uses the place.
            unsafe { self.kept[place].get().write(frame) };
        }
        while self.functions.iter().any(|function| function.get().is_some()) {
            self.switch();
        }
    }

    /// Gives the core to the next task; returns when the turn has come round, at once if there is no other task.
    pub fn switch(&self) {
        let from = self.current.get();
        let runs = |place: &usize| *place == TASKS_MAX || self.functions[*place].get().is_some();
        let others = (1..=TASKS_MAX).map(|step| (from + step) % (TASKS_MAX + 1));
        // The caller of `run` only waits, so it has a turn when nobody else has one.
        let next = others.filter(|place| *place != TASKS_MAX).find(runs).unwrap_or(TASKS_MAX);
        let stays = next == from || (next == TASKS_MAX && from < TASKS_MAX && self.functions[from].get().is_some());
        if !stays {
            self.pass(from, next);
        }
    }

    fn pass(&self, from: usize, next: usize) {
        self.current.set(next);
        // SAFETY: written when that task gave the core away, or by `run`; only this core touches it.
        let to = unsafe { self.kept[next].get().read() };
        // SAFETY: `to` is that task's stack, used once until it gives the core away again; `from` is our own place.
        unsafe { arch::switch(self.kept[from].get(), to) };
    }

    /// Runs the task whose turn it is; what the entry of a task calls.
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
