//! `musubi tap`: what it shows of other processes' messages, in its three forms, and what it says where it may not look.

#[allow(dead_code)]
mod command;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use command::{Process, System, expect, text};
use musubi_core::channel::{Attachment, SendingEnd as _};
use musubi_linux::{Deadline, Options, Participant, SendingEnd};
use serde_json::Value;

/// A receiver of single messages and a sender of each line that it is given; both have begun, with one message.
fn talk(system: &System) -> (Process, Process) {
    let mut receiver = system.start(&["recv", "upwards", "--raw"]);
    let mut sender = system.start(&["send", "upwards", "--raw"]);
    say(&mut sender, "begin\n");
    receiver.0.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    (sender, receiver)
}

fn say(sender: &mut Process, line: &str) {
    sender.0.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
}

/// A program that has sent messages to nobody yet, and goes on to be there.
fn queue(system: &System, channel: &str, messages: &[&str]) -> (Participant, SendingEnd) {
    let plan = musubi_config::load(&system.path("system.toml")).unwrap().leak();
    let instance = Some(system.instance().to_owned());
    let participant = Participant::attach(Options { instance, ..Options::new(plan, "control") }).unwrap();
    let end = participant.open_sending(plan.fifo(channel).unwrap()).unwrap();
    for message in messages {
        let mut loan = end.allocate(Deadline::Poll).unwrap();
        loan[..message.len()].copy_from_slice(message.as_bytes());
        assert!(end.enqueue(loan, message.len() as u32).is_ok());
    }
    (participant, end)
}

#[test]
fn messages_are_shown_and_arrive_all_the_same() {
    let system = System::new();
    let (mut sender, mut receiver) = talk(&system);
    let mut tap = system.start(&["tap", "upwards", "--json", "--rest", "0", "--count", "5", "--timeout", "40"]);
    let mut lines = BufReader::new(tap.0.stdout.take().unwrap()).lines();
    let stop = AtomicBool::new(false);
    let talking = || {
        let (mut count, mut arrived) = (0, BufReader::new(receiver.0.stdout.take().unwrap()).lines());
        while !stop.load(Ordering::Relaxed) {
            say(&mut sender, &format!("line {count}\n"));
            assert_eq!(arrived.next().unwrap().unwrap(), format!("line {count}"));
            count += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mut positions = Vec::new();
    let mut check = |line: std::io::Result<String>| {
        let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!((record["domain"].as_str(), record["slot"].as_u64()), (Some("storage"), Some(0)));
        let said = record["text"].as_str().unwrap();
        // The message that the talk began with comes before.
        assert_eq!(said, format!("line {}\n", record["position"].as_u64().unwrap() - 1));
        let hex: String = said.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((record["hex"].as_str(), record["bytes"].as_u64()), (Some(&*hex), Some(said.len() as u64)));
        assert!(record["epoch"].as_u64().unwrap() > 0 && record["seen_unix_ns"].as_u64().unwrap() > 0);
        positions.push(record["position"].as_u64().unwrap());
    };
    std::thread::scope(|scope| {
        scope.spawn(talking);
        lines.by_ref().for_each(&mut check);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(positions.len(), 5);
    assert!(positions.is_sorted_by(|one, other| one < other), "{positions:?}");
    let (code, _, said) = tap.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("5 shown, "), "{said}");
}

/// Nobody receives: all that is queued is shown, as text and as it is.
#[test]
fn what_is_queued_is_shown() {
    let system = System::new();
    let _sender = queue(&system, "narrow", &["a", "b", "c"]);
    let raw = ["tap", "narrow", "--raw", "--count", "3", "--timeout", "40"];
    assert_eq!(text(&expect(&mut system.command(&raw), 0).stdout), "abc");
    let output = expect(&mut system.command(&["tap", "narrow", "--count", "3", "--timeout", "40"]), 0);
    let shown = text(&output.stdout);
    assert!(shown.contains("#1  1 bytes  control.0  "), "{shown}");
    assert!(shown.contains(&format!("00000000  62 {}  |b|\n", "   ".repeat(15))), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(text(&output.stderr).contains("3 shown, 0 passed unseen"));
    let output = expect(&mut system.command(&["tap", "narrow", "--count", "4", "--timeout", "0.5"]), 1);
    assert!(text(&output.stderr).contains("3 of 4 messages could be shown in time"), "{}", text(&output.stderr));
}

#[test]
fn only_the_head_of_a_message_is_shown_if_so_asked() {
    let system = System::new();
    let _sender = queue(&system, "downwards", &["hello, world"]);
    let mut command = system.command(&["tap", "downwards", "--head", "5", "--count", "1", "--timeout", "40"]);
    let shown = text(&expect(&mut command, 0).stdout);
    assert!(shown.contains("12 bytes") && shown.contains("|hello|") && shown.contains("7 more bytes"), "{shown}");
}

#[test]
fn nobody_is_said() {
    let system = System::new();
    let said = text(&expect(&mut system.command(&["tap", "upwards", "--timeout", "0.2"]), 0).stderr);
    assert!(said.contains("0 shown, 0 passed unseen"), "{said}");
    let said = text(&expect(&mut system.command(&["tap", "upwards", "--timeout", "0.2", "--count", "1"]), 1).stderr);
    assert!(said.contains("0 of 1 messages") && said.contains("nobody sends"), "{said}");
    let said = text(&expect(&mut system.command(&["tap", "parameters"]), 1).stderr);
    assert!(said.contains("SMEM"), "{said}");
}

/// What a receiver that does not answer has returned is not known.
#[test]
fn a_receiver_that_is_stopped_is_said() {
    let system = System::new();
    let (mut sender, receiver) = talk(&system);
    let pid = rustix::process::Pid::from_child(&receiver.0);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let mut tap = system.start(&["tap", "upwards", "--timeout", "2", "--count", "1"]);
    while tap.0.try_wait().unwrap().is_none() {
        say(&mut sender, "more\n");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (code, _, said) = tap.end();
    assert!(code == 1 && said.contains("the receiver does not answer"), "{code} {said}");
}

/// Nobody reads on: the command ends, as others do.
#[test]
fn a_reader_that_closes_ends_it() {
    let system = System::new();
    let (mut sender, receiver) = talk(&system);
    let mut tap = system.start(&["tap", "upwards", "--timeout", "60"]);
    drop(tap.0.stdout.take());
    let begin = Instant::now();
    let code = loop {
        say(&mut sender, "more\n");
        if let Some(status) = tap.0.try_wait().unwrap() {
            break status.code();
        }
        assert!(begin.elapsed() < Duration::from_secs(40), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(code, Some(0));
    drop(receiver);
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
    let (_sender, _receiver) = talk(&system);
    let mut command = system.command(&["tap", "upwards", "--timeout", "40"]);
    let begin = Instant::now();
    let said = text(&expect(command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null()), 1).stderr);
    assert!(said.contains("user 0 holds") && said.contains("does not allow"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(30), "at once, not when the time is over");
}

#[test]
fn a_channel_on_a_chip_is_said_to_be_out_of_sight() {
    let board = command::example("../firmware/demo-zcu102/system/system.toml");
    let description = std::fs::read_to_string(&board).unwrap();
    let names = description.split("[[fifo]]").nth(1).unwrap();
    let channel = names.split('"').nth(1).unwrap();
    let said = text(&expect(command::musubi(&["tap", channel, "--system"]).arg(&board), 1).stderr);
    assert!(said.contains("shares fixed memory of a chip") && said.contains("uio::Observer"), "{said}");
}
