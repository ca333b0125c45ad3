//! Conformance programs of MCAPI, in C: each over shared memory and over TCP, as threads and as processes.
//!
//! How it works: the programs of tests/mcapi say which rows and sentences of docs/mcapi-conformance.md they check; a test
//! in mcapi_page.rs compares. Each run has a description of its own, so that runs do not meet.

mod mcapi_runs;
mod programs;
#[path = "../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::io::{BufRead as _, BufReader};

use mcapi_runs::{Way, description, program, run, start};

macro_rules! programs {
    ($($name:ident: $($arguments:literal)|+;)*) => {$(
        mod $name {
            #[test]
            fn over_shared_memory() {
                $(super::run(stringify!($name), $arguments, super::Way::SharedMemory);)+
            }

            #[test]
            fn over_tcp() {
                $(super::run(stringify!($name), $arguments, super::Way::Tcp);)+
            }
        }
    )*};
}

programs! {
    nodes: "";
    endpoints: "";
    messages: "";
    requests: "";
    packets: "";
    scalars: "";
    polling: "";
    version1: "";
    own_send_recv: "";
    forks: "";
    exits: "";
    far: "threads" | "processes";
    far_channels: "threads" | "processes";
}

/// A server that is killed does not keep its successor out, and clients find that.
fn killed_server(way: Way) {
    let (mortal, system) = (program("mortal"), description(way));
    for _ in 0..3 {
        let mut server = start(&mortal, "serve", &system);
        let mut up = String::new();
        BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut up).unwrap();
        assert_eq!(up, "up\n");
        start(&mortal, "ask", &system).succeed();
        server.kill();
    }
}

/// Reads a line that a process writes.
fn line(process: &mut programs::Process) -> String {
    let mut line = String::new();
    BufReader::new(process.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

/// A description whose links are given up soon.
fn impatient(way: Way, name: &str) -> std::path::PathBuf {
    let text = std::fs::read_to_string(description(way)).unwrap();
    let system = programs::directory().join(name);
    let network = "\n[network]\nheartbeat = \"50 ms\"\nsilence = \"200 ms\"\nresume = \"300 ms\"\n";
    std::fs::write(&system, text + network).unwrap();
    system
}

#[test]
fn who_has_channels_with_a_killed_node_hears_of_it_over_shared_memory() {
    start(&program("killed"), "", &impatient(Way::SharedMemory, "killed-shm.toml")).succeed();
}

#[test]
fn who_has_channels_with_a_killed_node_hears_of_it_over_tcp() {
    start(&program("killed"), "", &impatient(Way::Tcp, "killed-tcp.toml")).succeed();
}

#[test]
fn what_a_stopped_node_does_not_get_is_reported() {
    let system = impatient(Way::Tcp, "lost.toml");
    let mut server = start(&program("mortal"), "serve", &system);
    assert_eq!(line(&mut server), "up\n");
    let mut command = std::process::Command::new(program("lost"));
    command.env("MUSUBI_SYSTEM", &system).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut client = programs::Process::of("lost".to_owned(), command);
    assert_eq!(line(&mut client), "ready\n");
    // Stopped first, so that the sender cannot know of its death before it sends.
    signalling::signal(server.child.id(), "STOP");
    drop(client.child.stdin.take());
    client.succeed();
    server.kill();
}

#[test]
fn a_killed_node_is_succeeded_at_once_over_shared_memory() {
    killed_server(Way::SharedMemory);
}

#[test]
fn a_killed_node_is_succeeded_at_once_over_tcp() {
    killed_server(Way::Tcp);
}

#[test]
fn a_description_that_cannot_be_used_starts_no_node() {
    let system = programs::directory().join("broken.toml");
    start(&program("initfailed"), "", &system).succeed();
    start(&program("initfailed"), "", std::path::Path::new("/nowhere/at/all.toml")).succeed();
}

/// 192.0.2.1 is nobody's address (RFC 5737).
#[test]
fn why_a_node_does_not_start_is_said_from_debug_level_1_on() {
    let why = |name: &str, network: &str, at: &str| {
        let text = format!(
            "[system]\nname = \"{name}\"\n[network]\n{network}\n[[node]]\ndomain = 1\nnode = 1\nat = \"{at}\"\n"
        );
        let other = "[[node]]\ndomain = 1\nnode = 2\n";
        let system = programs::directory().join(format!("{name}.toml"));
        std::fs::write(&system, text + other).unwrap();
        let ended = std::process::Command::new(program("initfailed")).env("MUSUBI_SYSTEM", &system).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success(), "{said}");
        said
    };
    let elsewhere = why("elsewhere", "insecure = true", "tcp://192.0.2.1:7400");
    assert!(elsewhere.contains("node 1:1 does not start: listening at 192.0.2.1:7400: "), "{elsewhere}");
    let keyless = why("keyless", "keys = \"nowhere\"", "tcp://192.0.2.1:7400");
    assert!(keyless.contains("node 1:1 does not start: ") && keyless.contains("nowhere/ca.crt"), "{keyless}");
}

/// Without a description every node is on this machine.
#[test]
fn without_a_description_nodes_meet_in_shared_memory() {
    let mut command = std::process::Command::new(program("far"));
    command.arg("processes").env_remove("MUSUBI_SYSTEM");
    programs::Process::of("far processes, without a description".to_owned(), command).succeed();
}
