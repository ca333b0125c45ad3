//! Why a call failed, and the text of each task's last failure, without a heap.
//!
//! What you may rely on: the text of a task's last failure is known while fewer than `TASKS_MAX` others have failed since.
//!
//! How it works: a ring of tasks and texts, written inside the monitor.

use core::cell::Cell;
use core::ffi::{CStr, c_char};

use super::{TASKS_MAX, installed};
use crate::ffi::Null;
use crate::mdcom::contract::abi::Refused;
use crate::mdcom::contract::status::{Status, status_of_core, text_of};

/// Why a call fails: the code and, where it says more than the code's own text, a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    text: Option<&'static CStr>,
}

impl Failure {
    pub(crate) fn saying(status: Status, text: &'static CStr) -> Failure {
        Failure { status, text: Some(text) }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, text: None }
    }
}

impl From<Refused> for Failure {
    fn from(Refused(text): Refused) -> Failure {
        Failure::saying(Status::Argument, text)
    }
}

impl From<Null> for Failure {
    fn from(_: Null) -> Failure {
        Status::Argument.into()
    }
}

impl From<musubi_core::Error> for Failure {
    fn from(error: musubi_core::Error) -> Failure {
        status_of_core(&error).into()
    }
}

/// Panics end an image, so there is nothing to catch.
#[inline]
pub(crate) fn caught(by: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    by()
}

/// Last failures by task, 0 for none; and where the next new task goes.
struct Notes {
    last: [Cell<(usize, &'static CStr)>; TASKS_MAX],
    next: Cell<usize>,
}

// SAFETY: used inside the monitor only.
unsafe impl Sync for Notes {}

static NOTES: Notes = Notes { last: [const { Cell::new((0, c"")) }; TASKS_MAX], next: Cell::new(0) };

/// Notes a failure for [`last_error`] and gives its code.
pub(crate) fn note(failure: Failure) -> Status {
    let text = failure.text.unwrap_or_else(|| text_of(failure.status as i32));
    installed::inside(|_, task| {
        let known = NOTES.last.iter().find(|note| note.get().0 == task);
        let note = known.unwrap_or_else(|| {
            let next = NOTES.next.get();
            NOTES.next.set((next + 1) % TASKS_MAX);
            &NOTES.last[next]
        });
        note.set((task, text));
    });
    failure.status
}

/// The text of this task's last failure.
pub(crate) fn last_error() -> *const c_char {
    let mut text = c"";
    installed::inside(|_, task| {
        if let Some(note) = NOTES.last.iter().find(|note| note.get().0 == task) {
            text = note.get().1;
        }
    });
    text.as_ptr()
}
