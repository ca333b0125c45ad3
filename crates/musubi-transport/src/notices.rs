//! What a person must hear though no call of the program fails, or fails with one code only: on the standard error.
//!
//! What you may rely on: the same text is said once by a process, and only what concerns this node or a node it dials: a
//! stranger cannot make it talk. Of itself a process says at most [`SAID_MAX`] different texts, and [`SAID_OF_PEER_MAX`] of
//! each node besides, so no peer uses up what is to be said of others. Nothing is said at level 0.
//!
//! How it works: the level is what the environment variable [`VARIABLE`] says; else what the program has set; else 1. From
//! level 2 on everything is said as often as it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::NodeId;

/// The environment variable that sets the level.
pub const VARIABLE: &str = "MUSUBI_DEBUG";
/// Different texts that a process says of itself at most at level 1.
pub const SAID_MAX: usize = 64;
/// Different texts that it says of one other node at most at level 1.
pub const SAID_OF_PEER_MAX: usize = 4;

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
    tell(None, text);
}

/// The same of another node.
pub fn say_of(peer: NodeId, text: impl FnOnce() -> String) {
    tell(Some(peer), text);
}

fn tell(of: Option<NodeId>, text: impl FnOnce() -> String) {
    static SAID: Mutex<Said> = Mutex::new(Said(BTreeMap::new()));
    let level = level();
    if level < 1 {
        return;
    }
    let text = text();
    if level >= 2 || SAID.lock().unwrap_or_else(PoisonError::into_inner).is_new(of, &text) {
        // A standard error that takes nothing is no reason to fail.
        let _ = writeln!(std::io::stderr().lock(), "musubi: {text}");
    }
}

/// What has been said: of this process, and of each other node. The nodes of a description bound how much that is.
struct Said(BTreeMap<Option<NodeId>, BTreeSet<String>>);

impl Said {
    fn is_new(&mut self, of: Option<NodeId>, text: &str) -> bool {
        let most = if of.is_some() { SAID_OF_PEER_MAX } else { SAID_MAX };
        let said = self.0.entry(of).or_default();
        said.len() < most && said.insert(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_new_once_and_there_are_not_too_many() {
        let mut said = Said(BTreeMap::new());
        assert!(said.is_new(None, "no keys") && !said.is_new(None, "no keys"));
        let new = (0..1000).filter(|number| said.is_new(None, &number.to_string())).count();
        assert_eq!(new, SAID_MAX - 1);
    }

    #[test]
    fn a_peer_that_gives_much_to_say_silences_nobody() {
        let (mut said, of) = (Said(BTreeMap::new()), |node| NodeId::new(0, node));
        let new = (0..1000).filter(|number| said.is_new(of(1), &number.to_string())).count();
        assert_eq!(new, SAID_OF_PEER_MAX);
        assert!(said.is_new(of(2), "refuses") && said.is_new(None, "no keys"));
    }

    /// What a process says on its standard error that says one text twice of itself and twice of a peer, at a level.
    fn said(environment: Option<&str>, level: &str) -> Vec<String> {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "notices::tests::it_is_said_as_the_level_wants", "--nocapture", "--test-threads=1"]);
        again.env_remove(VARIABLE).env("MUSUBI_TEST_LEVEL", level).envs(environment.map(|value| (VARIABLE, value)));
        let output = again.stdout(std::process::Stdio::null()).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        text.lines().filter(|line| line.starts_with("musubi: ")).map(String::from).collect()
    }

    #[test]
    fn it_is_said_as_the_level_wants() {
        // In processes of their own: level and standard error are the process's.
        if let Ok(level) = std::env::var("MUSUBI_TEST_LEVEL") {
            set_level(level.parse().unwrap());
            for _ in 0..2 {
                say(|| "of itself".into());
                say_of(NodeId::new(0, 1).unwrap(), || "of a peer".into());
            }
            return;
        }
        let once = ["musubi: of itself", "musubi: of a peer"];
        assert_eq!(said(None, "0"), [""; 0]);
        assert_eq!(said(None, "1"), once);
        assert_eq!(said(None, "2"), [once, once].concat());
        assert_eq!(said(None, "3"), [once, once].concat());
        assert_eq!(said(Some("0"), "2"), [""; 0]);
        assert_eq!(said(Some(" 2 "), "0"), [once, once].concat());
        assert_eq!(said(Some("much"), "1"), once);
    }
}
