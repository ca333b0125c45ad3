//! What is tested of FreeRTOS on every target: the conformance suite in a task, sleeping and waking, C tasks.
//!
//! What you may rely on: every test waits a bounded time; the last line that [`run`] prints counts them all.
//!
//! How it works: an image brings a [`Place`] and calls [`run`] in a task of priority [`PRIORITY`] with
//! [`STACK_BYTES`] of stack. Both participants of the suite's plan live on its core and ring it through its own
//! doorbell, so each ring is an interrupt where there are interrupts.
#![no_std]

mod attached;
mod c_tasks;
mod conformance;
mod report;
mod sleeping;

use core::fmt;

use musubi_core::mapped::Memory;
use musubi_freertos::{CTasks, Machine, Task, TaskHost, on_ring};
use musubi_testsuite::plan;

pub use attached::{Member, PLAN};
pub use c_tasks::attach as attach_remote;
use report::Report;

/// Priority of the task that calls [`run`].
pub const PRIORITY: u32 = 3;
/// Bytes of stack that it needs.
pub const STACK_BYTES: usize = 32 * 1024;

/// What an image brings.
pub struct Place {
    /// The kernel's machine, which both participants have as their board.
    pub board: TaskHost,
    /// Memory that only the participants use, of [`musubi_core::layout::mapped_bytes`] of [`PLAN`], at a page's begin.
    pub memory: fn(participant: u16) -> Memory<'static>,
    /// The scheduler for C tasks, with [`attach_remote`].
    pub c_tasks: CTasks,
    /// Prints a line.
    pub print: fn(fmt::Arguments<'_>),
    /// Tests that only this machine has, by name.
    pub more: &'static [(&'static str, Test)],
}

/// A test of an image's own; an error says what was expected.
pub type Test = fn(&'static Place) -> Result<(), &'static str>;

impl Place {
    fn machine(&self) -> &'static dyn Machine {
        self.board.machine
    }
}

static BEAT: Task<8192> = Task::new();

/// Runs all tests and prints the results.
pub fn run(place: &'static Place) {
    on_ring(attached::wake);
    BEAT.spawn(c"beat", PRIORITY + 3, attached::beat_for_ever, &());
    let mut report = Report::new(place.print);
    conformance::run(place, &mut report);
    sleeping::run(place, &mut report);
    c_tasks::run(place, &mut report);
    for (name, test) in place.more {
        report.result(name, test(place));
    }
    report.finish();
}

/// Numbers of the suite's participants; each domain has one.
const _: () = assert!(plan::MASTER == 0 && plan::REMOTE == 1);
