//! `musubi status`, during traffic, with nobody, and with a process that is stopped.

#[allow(dead_code)]
mod command;
#[path = "../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use command::{Process, System, expect, text};
use serde_json::Value;

fn report(system: &System) -> Value {
    let mut command = system.command(&["status", "--json", "--interval", "0.2"]);
    serde_json::from_slice(&expect(&mut command, 0).stdout).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A sender that never stops and its receiver, which have begun.
fn traffic(system: &System) -> (Process, Process) {
    let sender = {
        let mut command = system.command(&["send", "upwards"]);
        command.stdin(std::fs::File::open("/dev/zero").unwrap()).stderr(std::process::Stdio::piped());
        Process(command.spawn().unwrap())
    };
    let mut receiver = system.start(&["recv", "upwards"]);
    let mut output = receiver.0.stdout.take().unwrap();
    output.read_exact(&mut [0; 1 << 20]).unwrap();
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    (sender, receiver)
}

fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    list.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap()
}

#[test]
fn nobody_is_no_error() {
    let system = System::new();
    let began = Instant::now();
    let report = report(&system);
    assert_eq!(report["participants"].as_array().unwrap().len(), 0);
    let fifos = report["fifos"].as_array().unwrap();
    assert_eq!(fifos.len(), 4);
    assert!(fifos.iter().all(|fifo| fifo["sender"].is_null() && fifo["receiver"].is_null() && fifo["depth"].is_null()));
    let said = text(&expect(&mut system.command(&["status", "--interval", "30"]), 0).stdout);
    assert!(said.contains("Nobody is attached"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(20), "there is nothing to compute rates of");
}

#[test]
fn traffic_is_seen() {
    let system = System::new();
    let (sender, receiver) = traffic(&system);
    let report = report(&system);
    let top = ["system", "instance", "plan_hash", "interval_s", "participants", "fifos", "smems", "nics"];
    assert_eq!(sorted(keys(&report)), sorted(top.to_vec()));
    assert_eq!(report["system"], "cli-test");
    assert!(report["interval_s"].as_f64().unwrap() >= 0.2);

    let participants = report["participants"].as_array().unwrap();
    let seen: Vec<_> = participants.iter().map(|one| (one["domain"].as_str().unwrap(), one["pid"].as_u64())).collect();
    assert_eq!(seen, [("control", Some(receiver.0.id().into())), ("storage", Some(sender.0.id().into()))]);
    for participant in participants {
        assert_eq!(participant["state"], "running");
        assert!(participant["epoch"].as_u64().unwrap() > 0);
        assert!(participant["uptime_s"].as_f64().unwrap() > 0.0);
    }

    let fifo = named(&report["fifos"], "upwards");
    assert!(fifo["depth"].as_u64().unwrap() <= 8);
    let (tx, rx) = (&fifo["sender"], &fifo["receiver"]);
    assert_eq!((tx["domain"].as_str(), rx["domain"].as_str()), (Some("storage"), Some("control")));
    let (sent, received) = (tx["messages"].as_u64().unwrap(), rx["messages"].as_u64().unwrap());
    assert!(received >= 16 && sent.abs_diff(received) < 1000, "{sent} {received}");
    assert!(tx["messages_per_s"].as_f64().unwrap() > 0.0 && rx["bytes_per_s"].as_f64().unwrap() > 0.0);
    assert!(tx["high_water"].as_u64().unwrap() >= 1 && tx["raised"].as_u64().unwrap() > 0);
    for count in ["abandoned", "dropped", "refused", "throttled", "suppressed"] {
        assert_eq!(tx[count], 0, "{count}");
    }
    assert!(tx["exhausted"].as_u64().unwrap() <= sent, "one refusal a wait");
    let latency = &rx["latency"];
    let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|key| latency[key].as_u64().unwrap());
    assert!(0 < p50 && p50 <= p99 && p99 <= max && latency["samples"].as_u64().unwrap() > 0);
    assert!(named(&report["fifos"], "downwards")["sender"].is_null());

    let smem = named(&report["smems"], "parameters");
    assert_eq!((smem["lock"].as_str(), smem["members"].as_array().unwrap().len()), (Some("bakery"), 2));
    assert!(smem["holder"].is_null());

    let said = text(&expect(&mut system.command(&["status", "--interval", "0.1"]), 0).stdout);
    assert!(said.contains("storage.0") && said.contains("running") && !said.contains('\u{1b}'), "{said}");
}

/// Less than a lap of messages, each taken before the next is sent: the sender has not looked at its returns yet.
#[test]
fn blocks_that_came_back_are_not_in_use() {
    let system = System::new();
    let mut receiver = system.start(&["recv", "upwards"]);
    let mut sender = system.start(&["send", "upwards"]);
    for round in 0..6u8 {
        sender.0.stdin.as_mut().unwrap().write_all(&[round]).unwrap();
        let mut came = [0];
        receiver.0.stdout.as_mut().unwrap().read_exact(&mut came).unwrap();
        assert_eq!(came, [round]);
    }
    let report = report(&system);
    let tx = &named(&report["fifos"], "upwards")["sender"];
    assert!(tx["messages"].as_u64().unwrap() >= 6, "{tx:#}");
    assert!(tx["in_use"].as_u64().unwrap() <= 2, "one may be being filled: {tx:#}");
    assert!(tx["high_water"].as_u64().unwrap() <= 2, "{tx:#}");
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

#[test]
fn a_stopped_process_is_silent_and_hides_nobody() {
    let system = System::new();
    let (sender, receiver) = traffic(&system);
    // The receiver is of the first domain, so it is asked first.
    signalling::signal(receiver.0.id(), "STOP");
    let report = report(&system);
    let states: Vec<_> = report["participants"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["silent", "running"], "{report:#}");
    assert_eq!(report["participants"][0]["pid"], receiver.0.id());
    assert!(report["participants"][0]["epoch"].is_null());
    signalling::signal(receiver.0.id(), "CONT");
    drop(sender);
}

#[test]
fn watching_goes_on_and_notices_those_who_come() {
    let system = System::new();
    let mut watcher = system.start(&["status", "--json", "--watch", "--interval", "0.1"]);
    let mut lines = BufReader::new(watcher.0.stdout.take().unwrap()).lines();
    let mut participants = || {
        let report: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        report["participants"].as_array().unwrap().len()
    };
    assert_eq!(participants(), 0);
    let mut sender = system.start(&["send", "upwards"]);
    sender.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let came = (0..100).any(|_| participants() == 1);
    assert!(came);
    sender.kill();
    assert!((0..100).any(|_| participants() == 0));
}

#[test]
fn another_description_is_refused() {
    let system = System::new();
    let (_sender, _receiver) = traffic(&system);
    std::fs::write(system.path("other.toml"), command::DESCRIPTION.replace("64 KiB", "32 KiB")).unwrap();
    let output = expect(system.command(&["status", "--system"]).arg(system.path("other.toml")), 1);
    assert!(text(&output.stderr).contains("start both with one description"));
}

#[test]
fn a_user_that_the_description_does_not_allow_hears_so() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: needs root to act as another user");
    }
    const NOBODY: u32 = 65534;
    let system = System::new();
    let directory = system.path("system.toml").parent().unwrap().to_owned();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    let _receiver = system.start(&["recv", "upwards"]);
    let waited = std::time::Instant::now();
    while text(&system.command(&["status"]).output().unwrap().stdout).contains("Nobody") {
        assert!(waited.elapsed() < std::time::Duration::from_secs(20), "the receiver does not attach");
    }
    for arguments in [&["status"][..], &["send", "upwards", "--timeout", "0.3"]] {
        let said = text(&expect(system.command(arguments).uid(NOBODY).gid(NOBODY), 1).stderr);
        assert!(said.contains("user 0 holds") && said.contains("does not allow"), "{arguments:?}: {said}");
    }
}

/// "Nobody is attached" would be a guess about a board that may be busy.
#[test]
fn a_system_on_a_chip_is_not_said_to_be_empty() {
    let board = command::example("../firmware/demo-zcu102/system/system.toml");
    let mut command = command::musubi(&["status", "--system"]);
    let output = expect(command.arg(&board), 1);
    let said = text(&output.stderr);
    assert!(said.contains("share fixed memory of a chip") && said.contains("uio::Observer"), "{said}");
    assert!(output.stdout.is_empty());
}
