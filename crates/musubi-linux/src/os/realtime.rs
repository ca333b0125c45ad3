//! What a real-time process asks of Linux: memory that stays, a processor of its own, a priority.
//!
//! What you may rely on: each function does its one thing or says which permission is missing and what the limit is
//! now. None is needed for correctness.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Error, Tried};

/// Stack that [`lock_memory`] touches, in bytes.
pub const STACK_BYTES: usize = 128 * 1024;

/// Keeps all memory of this process, present and future, in RAM, and touches the stack of this thread.
///
/// # Errors
/// [`Error::Permission`] if neither `CAP_IPC_LOCK` nor `RLIMIT_MEMLOCK` allows it.
pub fn lock_memory() -> Result<(), Error> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|errno| locking_refused("locking all memory", errno))?;
    prefault_stack();
    Ok(())
}

/// Touches [`STACK_BYTES`] of this thread's stack, so that later calls find the pages there.
#[inline(never)]
pub fn prefault_stack() {
    let mut stack = [0u8; STACK_BYTES];
    for page in stack.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&stack);
}

/// Runs this thread on one processor only.
///
/// # Errors
/// [`Error::Argument`] if there is no such processor, or this process may not use it.
pub fn pin_to_core(core: usize) -> Result<(), Error> {
    if core >= CpuSet::MAX_CPU {
        return Err(no_such_core(core));
    }
    if cores().len() > 1 {
        PINNED_BY_CHOICE.store(true, Ordering::Relaxed);
    }
    let mut set = CpuSet::new();
    set.set(core);
    match sched_setaffinity(None, &set) {
        Err(Errno::INVAL) => Err(no_such_core(core)),
        done => done.tried("choosing a processor"),
    }
}

/// Set once a thread of this process took one processor of several by [`pin_to_core`].
static PINNED_BY_CHOICE: AtomicBool = AtomicBool::new(false);

/// Whether a single allowed processor is this process's own choice, so that a peer may well run on another one.
fn pinned_by_choice() -> bool {
    PINNED_BY_CHOICE.load(Ordering::Relaxed)
}

/// The processors that this thread may run on.
pub fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

fn no_such_core(core: usize) -> Error {
    Error::Argument(format!("processor {core} does not exist or is not allowed; allowed: {:?}", cores()))
}

/// Gives this thread a `SCHED_FIFO` priority, 1 (lowest) to 99.
///
/// # Errors
/// [`Error::Argument`] if the priority is out of range; [`Error::Permission`] if neither `CAP_SYS_NICE` nor
/// `RLIMIT_RTPRIO` allows it.
pub fn set_fifo_priority(priority: u8) -> Result<(), Error> {
    if !(1..=99).contains(&priority) {
        return Err(Error::Argument(format!("priority {priority} is not 1 to 99")));
    }
    set_scheduler(libc::SCHED_FIFO, i32::from(priority))
}

/// The real-time priority of this thread, 1 (lowest) to 99; 0 of an ordinary one, one with a deadline, or where it cannot be asked.
pub fn fifo_priority() -> u8 {
    // The kernel's `struct sched_param`, as below.
    let mut parameters: [libc::c_int; 1] = [0];
    // SAFETY: 0 is the calling thread; the parameters live across the call, which writes them and nothing else.
    let result = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut parameters) };
    if result == 0 { u8::try_from(parameters[0]).unwrap_or(0) } else { 0 }
}

/// Gives this thread back to the ordinary scheduler.
///
/// # Errors
/// [`Error::System`] if the kernel refuses.
pub fn set_ordinary_priority() -> Result<(), Error> {
    set_scheduler(libc::SCHED_OTHER, 0)
}

fn set_scheduler(policy: i32, priority: i32) -> Result<(), Error> {
    // The kernel's `struct sched_param`; some C libraries declare more.
    let parameters: [libc::c_int; 1] = [priority];
    // SAFETY: 0 is the calling thread; the parameters live across the call, which only reads them. The system call
    // itself, because the C library of some systems refuses the function.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EPERM) {
        return Err(error).tried("setting the priority");
    }
    Err(Error::Permission {
        action: "a SCHED_FIFO priority",
        needed: "CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO (`ulimit -r`, limits.conf `rtprio`)",
        current: format!("RLIMIT_RTPRIO is {}", limit(Resource::Rtprio)),
    })
}

/// What it means that the kernel did not lock memory.
pub(crate) fn locking_refused(action: &'static str, errno: Errno) -> Error {
    match errno {
        Errno::PERM | Errno::NOMEM | Errno::AGAIN => Error::Permission {
            action,
            needed: "CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK (`ulimit -l`, limits.conf `memlock`)",
            current: format!("RLIMIT_MEMLOCK is {} bytes", limit(Resource::Memlock)),
        },
        other => Error::System { action, source: other.into() },
    }
}

fn limit(resource: Resource) -> String {
    getrlimit(resource).current.map_or_else(|| "unlimited".to_owned(), |value| value.to_string())
}

/// Whether spinning can help: not if this process was given one processor only, where it would keep the other side
/// from running. A thread that took one of several by [`pin_to_core`] may spin.
pub fn spin_allowed() -> bool {
    pinned_by_choice() || rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_is_said() {
        assert!(matches!(set_fifo_priority(0), Err(Error::Argument(_))));
        assert!(matches!(set_fifo_priority(100), Err(Error::Argument(_))));
        assert!(matches!(pin_to_core(1023), Err(Error::Argument(_))));
        assert!(matches!(pin_to_core(100_000), Err(Error::Argument(_))));
    }

    #[test]
    fn memory_that_may_not_be_locked_is_a_matter_of_permission_and_else_of_the_kernel() {
        for errno in [Errno::PERM, Errno::NOMEM, Errno::AGAIN] {
            let refused = locking_refused("locking", errno);
            let Error::Permission { action: "locking", current, .. } = &refused else { panic!("{refused}") };
            let limit = getrlimit(Resource::Memlock).current.map_or("unlimited".into(), |bytes| bytes.to_string());
            assert_eq!(*current, format!("RLIMIT_MEMLOCK is {limit} bytes"));
        }
        assert!(matches!(locking_refused("locking", Errno::IO), Error::System { action: "locking", .. }));
    }

    /// As far as the user may: an ordinary one gets told what is missing.
    #[test]
    fn a_thread_becomes_urgent_and_ordinary_again() {
        let policy = || {
            // SAFETY: 0 is the calling thread; nothing is read or written.
            unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
        };
        std::thread::spawn(move || match set_fifo_priority(1) {
            Ok(()) => {
                assert_eq!((policy(), fifo_priority()), (i64::from(libc::SCHED_FIFO), 1));
                set_ordinary_priority().unwrap();
                assert_eq!((policy(), fifo_priority()), (i64::from(libc::SCHED_OTHER), 0));
            }
            Err(Error::Permission { current, .. }) => assert!(current.starts_with("RLIMIT_RTPRIO is "), "{current}"),
            Err(other) => panic!("{other}"),
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_can_be_pinned() {
        std::thread::spawn(|| {
            let (core, several) = (cores()[0], cores().len() > 1);
            pin_to_core(core).unwrap();
            assert_eq!(cores(), [core]);
            assert_eq!(spin_allowed(), several, "one processor by choice, not by necessity");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn who_has_one_processor_by_necessity_may_not_spin() {
        // In a process of its own, as the choice of any thread is the process's.
        if std::env::var_os("MUSUBI_TEST_ALONE").is_none() {
            let name = "os::realtime::tests::who_has_one_processor_by_necessity_may_not_spin";
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name, "--test-threads=1"]).env("MUSUBI_TEST_ALONE", "1");
            assert!(again.stdout(std::process::Stdio::null()).status().unwrap().success());
            return;
        }
        let (core, several) = (cores()[0], cores().len() > 1);
        assert_eq!(spin_allowed(), several);
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).unwrap();
        assert!(!spin_allowed());
        pin_to_core(core).unwrap();
        assert!(!spin_allowed(), "there was nothing to choose");
    }
}
