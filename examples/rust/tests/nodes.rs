//! The examples of MCAPI, unchanged, as threads, as processes over shared memory and over TCP, and across two network
//! namespaces: the same output.
#![forbid(unsafe_code)]

#[path = "../../../crates/musubi-transport/tests/loopback/mod.rs"]
mod loopback;
mod namespaces;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use namespaces::Namespaces;

const PIPELINE: (&str, u32, &str) =
    (env!("CARGO_BIN_EXE_pipeline"), 3, "500 packets, their samples add up to 64576000\n");
const CONTROL: (&str, u32, &str) =
    (env!("CARGO_BIN_EXE_control"), 2, "after 2000 periods the speed is 49999, wanted are 50000\n");
const LOGGER: (&str, u32, &str) = (
    env!("CARGO_BIN_EXE_logger"),
    4,
    "node 2: 200 lines, 4 of them alarms\nnode 3: 200 lines, 4 of them alarms\nnode 4: 200 lines, 4 of them alarms\n",
);
const ALL: [(&str, u32, &str); 3] = [PIPELINE, CONTROL, LOGGER];

/// A process that does not outlive the test.
struct Role(Option<Child>);

impl Drop for Role {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // Already gone is just as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(mut command: Command) -> Role {
    Role(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

fn output(mut role: Role) -> String {
    let Output { status, stdout, stderr } = role.0.take().unwrap().wait_with_output().unwrap();
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn program(path: &str, system: Option<&Path>) -> Command {
    let mut command = Command::new(path);
    match system {
        Some(file) => command.env("MUSUBI_SYSTEM", file),
        None => command.env_remove("MUSUBI_SYSTEM"),
    };
    command
}

/// Runs a program as one process a node; `command` makes the process of a node.
fn as_processes((_, nodes, expected): (&str, u32, &str), command: impl Fn(u32) -> Command) {
    let roles: Vec<Role> = (1..=nodes)
        .map(|node| {
            let mut command = command(node);
            command.args(["--node", &node.to_string()]);
            start(command)
        })
        .collect();
    assert_eq!(roles.into_iter().map(output).collect::<String>(), expected);
}

/// A description in a directory that vanishes.
fn description(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("system.toml");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}

/// Four nodes, each at what `at` says, in a system of this test's own.
fn system(name: &str, at: impl Fn(u32) -> String) -> (tempfile::TempDir, PathBuf) {
    let mut text = format!("[system]\nname = \"{name}-{}\"\n", std::process::id());
    for node in 1..=4 {
        text += &format!("[[node]]\ndomain = 0\nnode = {node}\nat = \"{}\"\n", at(node));
    }
    description(&text)
}

#[test]
fn as_threads() {
    for (number, (path, _, expected)) in ALL.into_iter().enumerate() {
        let (_directory, file) = system(&format!("threads-{number}"), |_| "shm".into());
        assert_eq!(output(start(program(path, Some(&file)))), expected);
    }
}

#[test]
fn as_processes_over_shared_memory() {
    for (number, example) in ALL.into_iter().enumerate() {
        let (_directory, file) = system(&format!("processes-{number}"), |_| "shm".into());
        as_processes(example, |_| program(example.0, Some(&file)));
    }
}

#[test]
fn as_processes_over_tcp() {
    for (number, example) in ALL.into_iter().enumerate() {
        let (_directory, file) = system(&format!("tcp-{number}"), |_| format!("tcp://{}", loopback::own_address()));
        as_processes(example, |_| program(example.0, Some(&file)));
    }
}

#[test]
fn across_network_namespaces() {
    let Some(spaces) = Namespaces::new() else {
        println!("skipped: network namespaces need root and `ip`");
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nodes.toml");
    for example in ALL {
        as_processes(example, |node| {
            let mut command = program("ip", Some(&file));
            command.args(["netns", "exec", spaces.of_node(node), example.0]);
            command
        });
    }
}
