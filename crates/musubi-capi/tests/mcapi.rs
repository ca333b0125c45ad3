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

/// What `initfailed` says as node 1:1 at this address, at a level of `MUSUBI_DEBUG`.
fn why_not(name: &str, network: &str, at: &str, level: Option<&str>) -> String {
    let text =
        format!("[system]\nname = \"{name}\"\n[network]\n{network}\n[[node]]\ndomain = 1\nnode = 1\nat = \"{at}\"\n");
    let other = "[[node]]\ndomain = 1\nnode = 2\n";
    let system = programs::directory().join(format!("{name}.toml"));
    std::fs::write(&system, text + other).unwrap();
    let mut command = std::process::Command::new(program("initfailed"));
    command.env("MUSUBI_SYSTEM", &system).env_remove("MUSUBI_DEBUG");
    if let Some(level) = level {
        command.env("MUSUBI_DEBUG", level);
    }
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    said
}

/// 192.0.2.1 is nobody's address (RFC 5737).
#[test]
fn why_a_node_does_not_start_is_said_once_unless_it_is_to_be_silent() {
    let at = "tcp://192.0.2.1:7400";
    let elsewhere = why_not("elsewhere", "insecure = true", at, None);
    assert!(elsewhere.starts_with("musubi: node 1:1 does not start: listening at 192.0.2.1:7400: "), "{elsewhere}");
    assert_eq!(elsewhere.matches("does not start").count(), 1, "{elsewhere}");
    let keyless = why_not("keyless", "keys = \"nowhere\"", at, Some("1"));
    assert!(keyless.contains("node 1:1 does not start: ") && keyless.contains("nowhere/ca.crt"), "{keyless}");
    let unprotected = why_not("unprotected", "", at, None);
    assert!(unprotected.contains("links to 192.0.2.1:7400 need TLS"), "{unprotected}");
    assert_eq!(why_not("silent", "insecure = true", at, Some("0")), "");
    let often = why_not("often", "insecure = true", at, Some("2"));
    assert_eq!(often.matches("does not start").count(), 2, "{often}");
}

#[test]
fn a_node_whose_port_another_program_holds_says_so_by_name() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    let said = why_not("held", "", &format!("tcp://{address}"), None);
    let expected = format!("musubi: node 1:1 does not start: listening at {address}: address in use: ");
    assert!(said.starts_with(&expected), "{said}");
}

/// The program asks for an endpoint with a deadline, hears `TIMEOUT`, and a person hears why.
#[test]
fn who_dials_with_another_authority_is_told_once_and_waits_no_longer_than_it_wants() {
    use musubi_transport::keys::{Authority, NodeFiles, Validity};
    let (own, name) = (programs::directory(), "authorities");
    let system = |keys: &str, addresses: &[std::net::SocketAddr; 2]| {
        let directory = own.join(keys);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let authority = Authority::create(&directory, name, Validity::days(1), false).unwrap();
        let network = format!("[network]\nkeys = \"{}\"\ntls_on_loopback = true\n", directory.display());
        let mut text = format!("[system]\nname = \"{name}\"\n{network}");
        for (number, address) in [1, 2].into_iter().zip(addresses) {
            let id = musubi_transport::NodeId::new(1, number).unwrap();
            let stem = directory.join(format!("1-{number}"));
            let files = NodeFiles { certificate: stem.with_extension("crt"), key: stem.with_extension("key") };
            authority.issue(id, &files, Validity::days(1), false).unwrap();
            text.push_str(&format!("[[node]]\ndomain = 1\nnode = {number}\nat = \"tcp://{address}\"\n"));
        }
        let path = own.join(format!("{keys}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = [free(), free()];
    let asker = program("deadline");
    let mut honest = start(&asker, "1", &system("authority-1", &addresses));
    assert_eq!(line(&mut honest), "up\n");
    let mut command = std::process::Command::new(&asker);
    command.arg("2").env("MUSUBI_SYSTEM", system("authority-2", &addresses)).env_remove("MUSUBI_DEBUG");
    let asked = command.output().unwrap();
    let said = String::from_utf8(asked.stderr).unwrap();
    honest.kill();
    assert!(asked.status.success(), "{said}");
    let heard: Vec<&str> = said.lines().filter(|line| line.contains("node 1:2: no link: node 1:1")).collect();
    assert!(heard.len() == 1 && heard[0].contains("certificate is of another authority"), "{said}");
}

/// Without a description every node is on this machine.
#[test]
fn without_a_description_nodes_meet_in_shared_memory() {
    let mut command = std::process::Command::new(program("far"));
    command.arg("processes").env_remove("MUSUBI_SYSTEM");
    programs::Process::of("far processes, without a description".to_owned(), command).succeed();
}
