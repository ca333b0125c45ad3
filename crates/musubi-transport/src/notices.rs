//! What a person must hear though no call of the program fails, or fails with one code only: on the standard error.
//!
//! What you may rely on: the same text is said once by a process, at most [`SAID_MAX`] different ones are, and only what
//! concerns this node or a node it dials: a stranger cannot make it talk. Nothing is said at level 0.
//!
//! How it works: the level is what the environment variable [`VARIABLE`] says; else what the program has set; else 1. From
//! level 2 on everything is said as often as it happens.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The environment variable that sets the level.
pub const VARIABLE: &str = "MUSUBI_DEBUG";
/// Different texts that a process says at most at level 1.
pub const SAID_MAX: usize = 64;

static LEVEL: AtomicI32 = AtomicI32::new(1);

/// Sets the level, where the environment does not.
pub fn set_level(level: i32) {
    LEVEL.store(level, Ordering::Relaxed);
}

/// The level that counts.
pub fn level() -> i32 {
    static FROM_ENVIRONMENT: OnceLock<Option<i32>> = OnceLock::new();
    let asked = || std::env::var(VARIABLE).ok()?.trim().parse().ok();
    FROM_ENVIRONMENT.get_or_init(asked).unwrap_or_else(|| LEVEL.load(Ordering::Relaxed))
}

/// Says something, unless it has been said.
pub fn say(text: impl FnOnce() -> String) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let level = level();
    if level < 1 {
        return;
    }
    let text = text();
    if level >= 2 || is_new(&mut SAID.lock().unwrap_or_else(PoisonError::into_inner), &text) {
        // A standard error that takes nothing is no reason to fail.
        let _ = writeln!(std::io::stderr().lock(), "musubi: {text}");
    }
}

fn is_new(said: &mut BTreeSet<String>, text: &str) -> bool {
    said.len() < SAID_MAX && said.insert(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_new_once_and_there_are_not_too_many() {
        let mut said = BTreeSet::new();
        assert!(is_new(&mut said, "no keys") && !is_new(&mut said, "no keys"));
        let new = (0..1000).filter(|number| is_new(&mut said, &number.to_string())).count();
        assert_eq!(new, SAID_MAX - 1);
    }
}
