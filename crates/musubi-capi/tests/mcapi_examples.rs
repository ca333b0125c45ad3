//! The examples of MCAPI in C, unchanged, as threads, as processes over shared memory and over TCP, and across two network
//! namespaces: the same output.

mod mcapi_runs;
#[path = "../../../examples/rust/tests/namespaces/mod.rs"]
mod namespaces;
mod programs;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcapi_runs::{Way, compiled, description};
use namespaces::Namespaces;
use programs::{Process, root};

/// Name, number of nodes, output.
const ALL: [(&str, u32, &str); 3] = [
    ("pipeline", 3, "500 packets, their samples add up to 64576000\n"),
    ("control", 2, "after 2000 periods the speed is 49999, wanted are 50000\n"),
    (
        "logger",
        4,
        "node 2: 200 lines, 4 of them alarms\nnode 3: 200 lines, 4 of them alarms\nnode 4: 200 lines, 4 of them alarms\n",
    ),
];

fn example(name: &str) -> PathBuf {
    compiled(&root().join(format!("examples/c/{name}.c")))
}

fn start(mut command: Command, system: &Path) -> Process {
    command.env("MUSUBI_SYSTEM", system).stdin(Stdio::null()).stdout(Stdio::piped());
    Process::of(format!("{command:?}"), command)
}

/// What the processes have written, in their order, once all have ended well.
fn output(processes: Vec<Process>) -> String {
    let mut text = String::new();
    for mut process in processes {
        process.succeed();
        process.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    }
    text
}

/// One process a node; `command` begins each.
fn as_processes(nodes: u32, system: &Path, command: impl Fn(u32) -> Command) -> String {
    let start = |node: u32| {
        let mut command = command(node);
        command.args(["--node", &node.to_string()]);
        start(command, system)
    };
    output((1..=nodes).map(start).collect())
}

#[test]
fn as_threads_and_as_processes_over_both_kinds_of_links() {
    for (name, nodes, expected) in ALL {
        let program = example(name);
        for way in [Way::SharedMemory, Way::Tcp] {
            assert_eq!(output(vec![start(Command::new(&program), &description(way))]), expected, "{name} {way:?}");
            let written = as_processes(nodes, &description(way), |_| Command::new(&program));
            assert_eq!(written, expected, "{name} {way:?}");
        }
    }
}

#[test]
fn across_network_namespaces() {
    let Some(spaces) = Namespaces::new() else {
        eprintln!("skipped: network namespaces need root and `ip`");
        return;
    };
    for (name, nodes, expected) in ALL {
        let program = example(name);
        let written = as_processes(nodes, &root().join("examples/nodes.toml"), |node| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", spaces.of_node(node)]).arg(&program);
            command
        });
        assert_eq!(written, expected, "{name}");
    }
}
