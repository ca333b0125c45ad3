//! Sleeping until one of many descriptors is ready, with a timeout in nanoseconds.
//!
//! What you may rely on: it works where the kernel, a sandbox or valgrind refuses `epoll_pwait2`, then with timeouts
//! rounded up to milliseconds. An error that repeats does not make the caller spin.
//!
//! How it works: `epoll_pwait2` is called by its number, and not again once it was refused.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::clock::timespec;

/// Pause after an error that is not an interruption.
const ERROR_PAUSE: Duration = Duration::from_millis(1);

/// The kernel has no `epoll_pwait2`, or does not let us call it. Written here, with one value.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Room for events.
pub const NO_EVENT: Event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };

/// Waits, and gives how many of `events` are filled; none also after an interruption. `None`: without a timeout.
pub fn wait(set: impl AsFd, events: &mut [Event], timeout_ns: Option<u64>) -> usize {
    let precise = timeout_ns.is_some_and(|ns| !ns.is_multiple_of(1_000_000)) && !REFUSED.load(Ordering::Relaxed);
    let waited = match timeout_ns {
        Some(ns) if precise => match pwait2(&set, events, &timespec(ns)) {
            Err(Errno::INTR) => Err(Errno::INTR),
            Err(_) => {
                REFUSED.store(true, Ordering::Relaxed);
                in_milliseconds(&set, events, timeout_ns)
            }
            done => done,
        },
        _ => in_milliseconds(&set, events, timeout_ns),
    };
    match waited {
        Ok(count) => count,
        Err(Errno::INTR) => 0,
        Err(_) => {
            std::thread::sleep(ERROR_PAUSE);
            0
        }
    }
}

/// `epoll_pwait`, which rounds up; but for timeouts of more than 24 days.
fn in_milliseconds(set: impl AsFd, events: &mut [Event], timeout_ns: Option<u64>) -> Result<usize, Errno> {
    const LONGEST_NS: u64 = i32::MAX as u64 * 1_000_000;
    let timeout = timeout_ns.map(|ns| timespec(ns.min(LONGEST_NS)));
    epoll::wait(set, events, timeout.as_ref())
}

/// The system call of that name.
fn pwait2(set: impl AsFd, events: &mut [Event], timeout: &Timespec) -> Result<usize, Errno> {
    const { assert!(size_of::<Event>() == size_of::<libc::epoll_event>(), "the kernel's layout") };
    const { assert!(size_of::<Timespec>() == 16, "the layout of a timespec with 64 bits") };
    let no_mask: *const libc::sigset_t = std::ptr::null();
    let (fd, room) = (set.as_fd().as_raw_fd(), i32::try_from(events.len()).unwrap_or(i32::MAX));
    // SAFETY: the kernel writes at most `room` events, for which there is room; it reads the timespec, whose layout is its
    // own; and no signal mask. The descriptor is open as long as `set` is borrowed.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            fd,
            events.as_mut_ptr(),
            room,
            std::ptr::from_ref(timeout),
            no_mask,
            0usize,
        )
    };
    usize::try_from(count).map_err(|_| {
        let code = std::io::Error::last_os_error().raw_os_error();
        Errno::from_raw_os_error(code.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::clock::now_ns;
    use crate::os::descriptor::Descriptor;
    use rustix::event::{EventfdFlags, eventfd};

    /// [`REFUSED`] is the process's; one test at a time sets it.
    static SETTING: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn setting() -> std::sync::MutexGuard<'static, ()> {
        SETTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How long a wait for nothing takes, and what it gives.
    fn timed(set: &Descriptor, events: &mut [Event], timeout_ns: u64) -> (usize, u64) {
        let begin = now_ns();
        let count = wait(set, events, Some(timeout_ns));
        (count, now_ns() - begin)
    }

    #[test]
    fn a_timeout_ends_and_an_event_comes_also_where_the_call_is_refused() {
        let _alone = setting();
        let (set, mut events) = (Descriptor::epoll().unwrap(), [NO_EVENT; 2]);
        for refused in [false, true] {
            REFUSED.store(refused, Ordering::Relaxed);
            for timeout_ns in [0, 300_000, 2_000_000, 2_500_000] {
                let (count, took_ns) = timed(&set, &mut events, timeout_ns);
                assert!(count == 0 && took_ns >= timeout_ns, "{refused} {timeout_ns}: {count} after {took_ns}");
            }
        }
        let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        epoll::add(&set, &ready, EventData::new_u64(7), EventFlags::IN).unwrap();
        for (refused, timeout_ns) in [(false, Some(u64::MAX)), (true, Some(u64::MAX)), (true, None), (false, Some(1))] {
            REFUSED.store(refused, Ordering::Relaxed);
            assert_eq!(wait(&set, &mut events, timeout_ns), 1, "{refused} {timeout_ns:?}");
            let data = events[0].data;
            assert_eq!(data.u64(), 7);
        }
    }

    #[test]
    fn an_error_that_repeats_does_not_spin() {
        let _alone = setting();
        let not_a_set = Descriptor::from(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let (count, took_ns) = timed(&not_a_set, &mut [NO_EVENT], 100);
        assert!(count == 0 && took_ns >= ERROR_PAUSE.as_nanos() as u64, "{count} after {took_ns}");
    }

    #[test]
    fn the_precise_call_is_for_times_between_milliseconds_until_it_is_refused() {
        let _alone = setting();
        let not_a_set = Descriptor::from(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let tries = |timeout_ns| {
            REFUSED.store(false, Ordering::Relaxed);
            wait(&not_a_set, &mut [NO_EVENT], timeout_ns);
            REFUSED.load(Ordering::Relaxed)
        };
        assert_eq!([Some(100), Some(1_500_000)].map(tries), [true; 2]);
        assert_eq!([Some(0), Some(1_000_000), Some(7_000_000)].map(tries), [false; 3]);
    }
}
