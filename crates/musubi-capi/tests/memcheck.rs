//! C programs of both interfaces under valgrind's memcheck: no error, and nothing definitely lost.
//!
//! How it works: programs of the other tests run under it, with fewer messages. There are no suppressions. What is only
//! possibly lost does not count: the standard library keeps handles of threads by pointers into them.
//!
//! What it does not do: run programs that fork, for a child has lost what its parent's other threads had on their stacks.

mod mcapi_runs;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcapi_runs::{Way, description, program};
use programs::{Process, directory, instance, system, test_program};

/// Whether there is no valgrind here, which is then said.
fn skipped() -> bool {
    let missing = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err();
    if missing {
        eprintln!("skipped: there is no valgrind (Debian package valgrind)");
    }
    missing
}

/// A program under memcheck.
struct Checked {
    process: Process,
    log: PathBuf,
}

impl Checked {
    fn start(program: &Path, arguments: &str, system: &Path, instance: &str) -> Checked {
        let log = directory().join(format!("memcheck-{instance}-{}.log", arguments.replace(' ', "-")));
        let mut command = Command::new("valgrind");
        command.args(["--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite"]);
        command
            .args(["--errors-for-leak-kinds=definite", "--fair-sched=try"])
            .arg(format!("--log-file={}", log.display()));
        command.arg(program).args(arguments.split_whitespace());
        command.env("MUSUBI_SYSTEM", system).env("MUSUBI_INSTANCE", instance);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Checked { process: Process::of(format!("memcheck {} {arguments}", program.display()), command), log }
    }

    fn is_clean(&mut self) {
        let status = self.process.end();
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let said: String = said.lines().filter(|line| line.starts_with("==")).collect::<Vec<_>>().join("\n");
        assert!(status.success(), "{status}\n{said}");
        assert!(said.contains("ERROR SUMMARY: 0 errors"), "memcheck itself says nothing of errors: {said}");
    }
}

/// Two C programs that talk through a channel.
fn channel(sender: &str, receiver: &str) {
    if skipped() {
        return;
    }
    let (peer, instance) = (test_program("peer"), instance());
    let mut sender = Checked::start(&peer, sender, &system(), &instance);
    let mut receiver = Checked::start(&peer, receiver, &system(), &instance);
    receiver.is_clean();
    sender.is_clean();
}

#[test]
fn mdcom_messages() {
    channel("send control size-49 200", "receive remote size-49 200");
}

#[test]
fn mdcom_blocks_in_flight_and_event_loops() {
    channel("send-bundles control size-64 64 64", "receive-bundles remote size-64 64 64");
    channel("send-events control size-49 100 49", "receive-events remote size-49 100 49");
}

#[test]
fn mdcom_memory_and_misuse() {
    if skipped() {
        return;
    }
    let misuse = test_program("misuse");
    Checked::start(&misuse, "memory", &system(), &instance()).is_clean();
    Checked::start(&test_program("threads"), "term", &system(), &instance()).is_clean();
}

/// A program of tests/mcapi, over shared memory and over TCP.
fn nodes(stem: &str, arguments: &str) {
    if skipped() {
        return;
    }
    for way in [Way::SharedMemory, Way::Tcp] {
        Checked::start(&program(stem), arguments, &description(way), &instance()).is_clean();
    }
}

#[test]
fn mcapi_endpoints_and_requests() {
    nodes("endpoints", "");
    nodes("requests", "");
}

#[test]
fn mcapi_packets() {
    nodes("packets", "");
}

#[test]
fn mcapi_scalars() {
    nodes("scalars", "");
}

#[test]
fn mcapi_messages_between_nodes() {
    nodes("far", "threads");
}
