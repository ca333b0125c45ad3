//! libfabric's own ping-pong over the provider, two processes of this machine.
//!
//! Skipped, with the line that installs it, where libfabric is not installed.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::provider::{TIME_MAX, end, installed};

mod provider;

const PROGRAM: &str = "fi_pingpong";
/// Round trips of each size.
const ROUNDS: &str = "20";

/// A port that nobody has at this moment.
fn free_port() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    socket.local_addr().expect("it is bound").port().to_string()
}

/// Which provider, and which kind of endpoints.
type Manner = [&'static str; 4];

const MESSAGES: Manner = ["-p", "vi", "-e", "msg"];
/// Reliable datagrams, which libfabric's own layer makes of messages and remote memory.
const DATAGRAMS: Manner = ["-p", "vi;ofi_rxm", "-e", "rdm"];

fn start(provider: &Path, manner: Manner, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new(PROGRAM);
    command.args(manner).args(["-c", "-I", ROUNDS]).args(arguments).env("FI_PROVIDER_PATH", provider);
    match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        other => Some(other.expect("it can be started")),
    }
}

#[test]
fn messages_of_every_size_go_to_and_fro_unchanged() {
    play(MESSAGES, "msg");
}

#[test]
fn datagrams_of_every_size_go_to_and_fro_unchanged() {
    play(DATAGRAMS, "rdm");
}

fn play(manner: Manner, name: &str) {
    let (provider, port) = (installed(name), free_port());
    let Some(server) = start(&provider, manner, &["-B", &port]) else {
        eprintln!("SKIPPED: no {PROGRAM}; run: apt-get install -y --no-install-recommends libfabric-bin");
        return;
    };
    // The client gives up at once if the server does not listen yet.
    let deadline = Instant::now() + TIME_MAX;
    let outcome = loop {
        let client = start(&provider, manner, &["-P", &port, "127.0.0.1"]).expect("the server was started");
        let outcome = end(client);
        if outcome.status.success() || Instant::now() > deadline {
            break outcome;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let (served, said) = (end(server), String::from_utf8_lossy(&outcome.stdout));
    std::fs::remove_dir_all(&provider).expect("the directory is ours");
    assert!(outcome.status.success(), "client: {outcome:?}");
    assert!(served.status.success(), "server: {served:?}");
    for size in ["64 ", "256 ", "1k ", "4k ", "64k ", "1m "] {
        let line = said.lines().find(|line| line.starts_with(size)).unwrap_or_default();
        assert!(line.contains(&format!("={ROUNDS} ")), "{size}: {said}");
    }
}
