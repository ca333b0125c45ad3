//! A command's children and theirs: what must end with it when it took too long.
//!
//! How it works: `/proc` says who whose parent is. Processes are stopped from the top down while they are looked for, so
//! that none makes another meanwhile, and killed when all are known. A process group of its own would be simpler but
//! would not hear Ctrl-C.
//!
//! What it does not do: find a process whose parent has ended already.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Generations that are looked for.
const DEPTH_MAX: usize = 32;

/// Kills a process, its children, and theirs.
pub fn end(process: u32) {
    let mut all = vec![process];
    let mut generation = vec![process];
    for _ in 0..DEPTH_MAX {
        generation.iter().for_each(|&process| signal(process, Signal::STOP));
        let parents = parents();
        generation =
            parents.iter().filter(|(_, parent)| generation.contains(parent)).map(|&(child, _)| child).collect();
        all.extend(&generation);
    }
    all.iter().for_each(|&process| signal(process, Signal::KILL));
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.filter_map(|process| Some((process, parent_of(process)?))).collect()
}

/// The parent, which `/proc/PID/stat` names as the second word behind the program's name in parentheses.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn signal(process: u32, signal: Signal) {
    // One that has ended meanwhile needs no signal.
    let _ = i32::try_from(process).ok().and_then(Pid::from_raw).map(|pid| kill_process(pid, signal));
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn grandchildren_end_too() {
        let script = "sh -c 'sleep 1000 & echo $!; wait' & wait";
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sleeper = line.trim().parse().unwrap();
        assert!(parent_of(sleeper).is_some());
        end(child.id());
        child.wait().unwrap();
        let ended = || !fs::read_to_string(format!("/proc/{sleeper}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        // It is killed; whoever inherited it takes note of that within some milliseconds, or leaves it a zombie.
        assert!((0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            ended()
        }));
    }
}
