//! Sleeping in the kernel on a word that another process changes, and on one of our own at the same time.
//!
//! What you may rely on: no lost wake-up (the kernel compares the words before it sleeps); the deadline holds on every
//! path; a word in a read-only mapping serves as well as any other.
//!
//! How it works: `futex_waitv` (Linux 5.16). Where it is missing or refused, a plain futex on the first word in slices of at most
//! [`SLICE_NS`], with a look at the second word in between.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self as kernel, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::ClockId as Clock;

use musubi_core::words::PeerWord;

use crate::os::clock::{Deadline, DeadlineExt, timespec};

/// Longest sleep without a look at the second word, where the kernel cannot watch two; in nanoseconds.
pub const SLICE_NS: u64 = 5_000_000;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A word changed, or somebody woke us; look again.
    Woken,
    /// The deadline passed.
    TimedOut,
}

/// A word and the value at which sleeping on it makes sense.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// The word.
    pub word: PeerWord<'a>,
    /// What it held when the caller decided to sleep.
    pub expected: u32,
}

/// Sleeps until the peer's `bell` or the process-local `local` differs from what was expected and is woken, or the
/// deadline passes. Spurious wake-ups happen; the caller looks again.
pub fn sleep(bell: Option<Watch<'_>>, local: Watch<'_>, deadline: Deadline) -> Wake {
    if deadline.passed() {
        return Wake::TimedOut;
    }
    static MISSING: AtomicBool = AtomicBool::new(false);
    if MISSING.load(Ordering::Relaxed) {
        return sleep_in_slices(bell, local, deadline);
    }
    let words = [waiter(local, WaitFlags::PRIVATE), waiter(bell.unwrap_or(local), bell_flags(bell))];
    let watched = if bell.is_some() { &words[..] } else { &words[..1] };
    wait_for(watched, deadline).unwrap_or_else(|| {
        MISSING.store(true, Ordering::Relaxed);
        sleep_in_slices(bell, local, deadline)
    })
}

/// A word to sleep on, and who changes it.
#[derive(Clone, Copy, Debug)]
pub enum Shared<'a> {
    /// Another process.
    Between(Watch<'a>),
    /// This process only.
    Within(Watch<'a>),
}

/// [`sleep`] on any number of words up to 128. Where the kernel cannot watch several, sleeps in slices of
/// [`SLICE_NS`] and says that it was woken; the caller looks again.
pub fn sleep_any(words: &[Shared<'_>], deadline: Deadline) -> Wake {
    if deadline.passed() {
        return Wake::TimedOut;
    }
    let waiters: Vec<Wait> = words
        .iter()
        .map(|word| match word {
            Shared::Between(watch) => waiter(*watch, WaitFlags::empty()),
            Shared::Within(watch) => waiter(*watch, WaitFlags::PRIVATE),
        })
        .collect();
    wait_for(&waiters, deadline).unwrap_or_else(|| {
        let slice_ns = deadline.left_ns().map_or(SLICE_NS, |left_ns| left_ns.min(SLICE_NS));
        std::thread::sleep(std::time::Duration::from_nanos(slice_ns));
        Wake::Woken
    })
}

/// Sleeps on several words; `None` if the kernel cannot. The deadline has not passed yet.
fn wait_for(words: &[Wait], deadline: Deadline) -> Option<Wake> {
    let timeout = match deadline {
        Deadline::At(ns) => Some(timespec(ns)),
        Deadline::Poll | Deadline::Forever => None,
    };
    loop {
        match kernel::waitv(words, WaitvFlags::empty(), timeout.as_ref(), Clock::Monotonic) {
            Err(Errno::INTR) => (),
            Err(Errno::TIMEDOUT) => return Some(Wake::TimedOut),
            // AGAIN: a word has changed already.
            Ok(_) | Err(Errno::AGAIN) => return Some(Wake::Woken),
            // The kernel is too old, or a filter refuses the call, each in its own words.
            Err(_) => return None,
        }
    }
}

fn bell_flags(bell: Option<Watch<'_>>) -> WaitFlags {
    if bell.is_some() { WaitFlags::empty() } else { WaitFlags::PRIVATE }
}

fn waiter(watch: Watch<'_>, flags: WaitFlags) -> Wait {
    let mut wait = Wait::new();
    wait.val = u64::from(watch.expected);
    wait.uaddr = WaitPtr::new(watch.word.address().cast_mut().cast());
    wait.flags = WaitFlags::SIZE_U32 | flags;
    wait
}

/// For kernels that watch one word only.
fn sleep_in_slices(bell: Option<Watch<'_>>, local: Watch<'_>, deadline: Deadline) -> Wake {
    let (first, flags) = match bell {
        Some(bell) => (bell, kernel::Flags::empty()),
        None => (local, kernel::Flags::PRIVATE),
    };
    loop {
        if local.word.load(Ordering::SeqCst) != local.expected {
            return Wake::Woken;
        }
        let left_ns = match deadline.left_ns() {
            Some(0) => return Wake::TimedOut,
            Some(ns) => ns.min(SLICE_NS),
            None => SLICE_NS,
        };
        // SAFETY: the word lies there and is aligned as long as `first` borrows it; here nothing is stored into it.
        let word = unsafe { AtomicU32::from_ptr(first.word.address().cast_mut()) };
        match kernel::wait(word, flags, first.expected, Some(&timespec(left_ns))) {
            Err(Errno::TIMEDOUT | Errno::INTR) => (),
            Ok(()) | Err(Errno::AGAIN) => return Wake::Woken,
            // Refused as well: then by the clock alone, and the caller looks at both words.
            Err(_) => {
                std::thread::sleep(std::time::Duration::from_nanos(left_ns));
                return Wake::Woken;
            }
        }
    }
}

/// Wakes everybody who sleeps on a word of shared memory.
#[inline]
pub fn wake_shared(word: &AtomicU32) {
    let _ = kernel::wake(word, kernel::Flags::empty(), i32::MAX as u32);
}

/// Wakes every thread of this process that sleeps on a word of its own.
#[inline]
pub fn wake_local(word: &AtomicU32) {
    let _ = kernel::wake(word, kernel::Flags::PRIVATE, i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn watch(word: &AtomicU32) -> Watch<'_> {
        Watch { word: word.into(), expected: word.load(Ordering::SeqCst) }
    }

    #[test]
    fn a_changed_word_does_not_sleep() {
        let (bell, local) = (AtomicU32::new(1), AtomicU32::new(2));
        let stale = Watch { word: (&bell).into(), expected: 0 };
        assert_eq!(sleep(Some(stale), watch(&local), Deadline::Forever), Wake::Woken);
        let stale = Watch { word: (&local).into(), expected: 0 };
        assert_eq!(sleep(Some(watch(&bell)), stale, Deadline::Forever), Wake::Woken);
        assert_eq!(sleep_in_slices(Some(watch(&bell)), stale, Deadline::Forever), Wake::Woken);
    }

    #[test]
    fn the_deadline_holds() {
        let (bell, local) = (AtomicU32::new(1), AtomicU32::new(2));
        for sleeper in [sleep, sleep_in_slices] {
            for bell in [Some(watch(&bell)), None] {
                let begin = Instant::now();
                assert_eq!(sleeper(bell, watch(&local), Deadline::after(Duration::from_millis(20))), Wake::TimedOut);
                assert!(begin.elapsed() >= Duration::from_millis(20));
            }
        }
        assert_eq!(sleep(None, watch(&local), Deadline::Poll), Wake::TimedOut);
    }

    #[test]
    fn either_word_wakes() {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        for sleeper in [sleep, sleep_in_slices] {
            for index in 0..2 {
                let (bell, local) = (watch(&words[0]), watch(&words[1]));
                let other = Arc::clone(&words);
                let waker = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    other[index].fetch_add(1, Ordering::SeqCst);
                    if index == 0 { wake_shared(&other[0]) } else { wake_local(&other[1]) }
                });
                assert_eq!(sleeper(Some(bell), local, Deadline::after(Duration::from_secs(10))), Wake::Woken);
                waker.join().unwrap();
            }
        }
    }
}
