//! The system that the image has installed, and its monitor.
//!
//! What you may rely on: a system is installed once and stays. What is done inside the monitor is done by one task at a time.
//!
//! How it works: a word says that the system can be read, after it was written.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use super::{Inside, System};

/// Where the system is kept.
struct Installed(UnsafeCell<Option<&'static dyn System>>);

// SAFETY: written once, before `IS_INSTALLED` says so.
unsafe impl Sync for Installed {}

static INSTALLED: Installed = Installed(UnsafeCell::new(None));
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
/// Somebody installs or has installed.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Tells the C interface what it runs on. Called once by the image, before any C task runs.
pub fn install(system: &'static dyn System) {
    assert!(!IS_TAKEN.swap(true, Ordering::Relaxed), "a system is installed once");
    // SAFETY: nobody reads before `IS_INSTALLED` is stored, and whoever comes second does not come here.
    unsafe { *INSTALLED.0.get() = Some(system) };
    IS_INSTALLED.store(true, Ordering::Release);
}

/// The system.
pub(super) fn system() -> Option<&'static dyn System> {
    if !IS_INSTALLED.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: written before `IS_INSTALLED`, and never again.
    unsafe { *INSTALLED.0.get() }
}

/// Calls `by` with the calling task, inside the monitor; does nothing without a system. Not from inside.
pub(super) fn inside<R>(by: impl FnOnce(Inside<'_>, usize) -> R) -> Option<R> {
    let system = system()?;
    system.enter();
    // SAFETY: `System` says that this task is inside now, and `by`, whose proof cannot outlive it, leaves only in calls that
    // return inside.
    let proof = unsafe { Inside::new() };
    let result = by(proof, system.task());
    system.leave();
    Some(result)
}
