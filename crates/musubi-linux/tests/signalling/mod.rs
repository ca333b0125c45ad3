//! Signals to processes of a test, and waiting until one that was sent SIGSTOP has stopped.
//!
//! What you may rely on: after [`signal`] with `STOP`, and after [`await_stopped`], none of its threads does anything until SIGCONT. The signal alone does not
//! say that: it is taken by one thread, when that is next on a processor, and the others go on until then.

use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a signal: `KILL`, `STOP`, `CONT`.
pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill").success());
    if name == "STOP" {
        await_stopped(pid);
    }
}

/// Waits until all threads of a process are stopped.
pub fn await_stopped(pid: u32) {
    let begin = Instant::now();
    while !all_stopped(pid) {
        assert!(begin.elapsed() < PATIENCE, "process {pid} does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn all_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    // If one ends while we look, we look again.
    tasks.flatten().all(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| is_stopped(&stat)))
}

/// proc(5): the state follows the name, which is in parentheses and may hold any character.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}
