//! `musubi send` and `musubi recv`: exact bytes, either order of start, and the loss of a side.

#[allow(dead_code)]
mod command;
#[path = "../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use command::{Process, System, WAIT_MAX, expect, noise, text};

/// Required: 100 ms. The rest is for a machine that is busy with other tests.
const NOTICED_MAX: Duration = Duration::from_secs(1);
/// What the second process starts after, so that the order is certain.
const LATER: Duration = Duration::from_millis(150);

/// Sends bytes through a channel, checks that they arrive, and that both sides say that all is well.
#[track_caller]
fn pass(system: &System, channel: &str, bytes: &[u8], sender_first: bool) {
    let start_sender = || {
        let mut sender = system.start(&["send", channel]);
        let mut stdin = sender.0.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        (sender, std::thread::spawn(move || stdin.write_all(&bytes)))
    };
    let start_receiver = || system.start(&["recv", channel]);
    let ((mut sender, writer), mut receiver) = if sender_first {
        let sender = start_sender();
        std::thread::sleep(LATER);
        (sender, start_receiver())
    } else {
        let receiver = start_receiver();
        std::thread::sleep(LATER);
        (start_sender(), receiver)
    };
    let mut arrived = Vec::new();
    receiver.0.stdout.take().unwrap().read_to_end(&mut arrived).unwrap();
    writer.join().unwrap().unwrap();
    for process in [&mut sender, &mut receiver] {
        let (code, _, said) = process.end();
        assert_eq!((code, said.as_str()), (0, ""), "{} bytes through {channel}", bytes.len());
    }
    assert!(arrived == bytes, "{} of {} bytes through {channel}, or others", arrived.len(), bytes.len());
}

#[test]
fn every_size_arrives_exactly_in_both_directions() {
    for (channel, block) in [("upwards", 64 << 10), ("downwards", 1000)] {
        let system = System::new();
        for (number, size) in [0, 1, block - 1, block, block + 1, 5_000_000].into_iter().enumerate() {
            pass(&system, channel, &noise(size), number % 2 == 0);
        }
        pass(&system, channel, &noise(5_000_000), true);
        pass(&system, channel, &[], true);
    }
}

/// Who waits without limit hears why nobody comes, and goes on when somebody does.
#[test]
fn a_wait_without_limit_says_what_is_in_the_way() {
    let system = System::new();
    let other = system.path("other.toml");
    std::fs::write(&other, command::DESCRIPTION.replace("blocks = 16", "blocks = 8")).unwrap();
    let other = ["--system", other.to_str().unwrap()];
    for (waiting, coming) in [("recv", "send"), ("send", "recv")] {
        let mut waiting = system.start(&[waiting, "upwards"]);
        std::thread::sleep(LATER);
        let mut stranger = system.start(&[&[coming, "upwards"], &other[..]].concat());
        let mut stderr = BufReader::new(waiting.0.stderr.take().unwrap());
        let (says, said) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            says.send((line, stderr.into_inner()))
        });
        let (line, stderr) = said.recv_timeout(WAIT_MAX).expect("nothing is said");
        waiting.0.stderr = Some(stderr);
        assert!(line.starts_with("note: ") && line.contains("start both with one description"), "{line}");
        stranger.kill();
        drop(stranger);
        let mut friend = system.start(&[coming, "upwards"]);
        for process in [&mut waiting, &mut friend] {
            drop(process.0.stdin.take());
        }
        assert_eq!([friend.end().0, waiting.end().0], [0, 0]);
    }
}

#[test]
fn blocks_of_one_byte_suffice() {
    let system = System::new();
    for size in [0, 1, 2, 3, 4, 100_000] {
        pass(&system, "narrow", &noise(size), size % 2 == 0);
    }
}

#[test]
fn regulated_and_filtered_channels_carry_streams() {
    pass(&System::new(), "slow", &noise(100_000), false);
}

/// A stream in the middle: its receiver has begun to write.
fn begun(system: &System) -> (Process, Process) {
    let (mut sender, mut receiver) = (system.start(&["send", "upwards"]), system.start(&["recv", "upwards"]));
    sender.0.stdin.as_mut().unwrap().write_all(b"begun").unwrap();
    let mut first = [0; 5];
    receiver.0.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"begun");
    (sender, receiver)
}

/// Expects the end of a process whose other side has just been killed.
#[track_caller]
fn expect_noticed(left: &mut Process, what: &str, words: &str) {
    let (code, waited, said) = left.end();
    println!("{what}: noticed after {waited:?}: {said}");
    assert_eq!(code, 1, "{what}: {said}");
    assert!(said.contains(words) && said.contains("incomplete") && said.contains("cannot be continued"), "{said}");
    assert!(waited < NOTICED_MAX, "{what}: {waited:?}");
}

#[test]
fn a_sender_that_reads_notices_the_receivers_death() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    receiver.kill();
    expect_noticed(&mut sender, "sender waiting for input", "the receiver of channel \"upwards\" is gone");
}

#[test]
fn a_sender_on_a_full_queue_notices_the_receivers_death() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    // Nobody reads the receiver's output, so the queue fills up and then the sender's input.
    let mut stdin = sender.0.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&noise(5_000_000)));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!writer.is_finished(), "the sender must be slowed down by its receiver");
    receiver.kill();
    expect_noticed(&mut sender, "sender on a full queue", "the receiver of channel \"upwards\" is gone");
    assert!(writer.join().unwrap().is_err());
}

#[test]
fn a_receiver_notices_the_senders_death() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    sender.0.stdin.as_mut().unwrap().write_all(&noise(1000)).unwrap();
    let mut rest = vec![0; 1000];
    receiver.0.stdout.as_mut().unwrap().read_exact(&mut rest).unwrap();
    sender.kill();
    expect_noticed(&mut receiver, "receiver", "the sender of channel \"upwards\" is gone");
    assert!(rest == noise(1000), "what was sent before the death has arrived");
}

#[test]
fn a_killed_sender_with_everything_queued_is_a_loss() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    // More than the queue and the pipe hold, so the end mark cannot be queued yet.
    let mut stdin = sender.0.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&noise(3_000_000)));
    std::thread::sleep(Duration::from_millis(300));
    sender.kill();
    let mut arrived = Vec::new();
    receiver.0.stdout.take().unwrap().read_to_end(&mut arrived).unwrap();
    assert!(arrived.len() < 3_000_000 && noise(3_000_000).starts_with(&arrived));
    expect_noticed(&mut receiver, "receiver with a queue", "the sender of channel \"upwards\" is gone");
    let _ = writer.join().unwrap();
}

#[test]
fn a_closed_output_is_an_error_on_both_sides() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    drop(receiver.0.stdout.take());
    // Again and again: a process that another test is just starting holds a copy of the output until it has replaced itself.
    let mut stdin = sender.0.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        while stdin.write_all(b"more").is_ok() {
            std::thread::sleep(Duration::from_millis(5))
        }
    });
    let (code, _, said) = receiver.end();
    assert_eq!(code, 1);
    assert!(said.contains("cannot write standard output") && said.contains("Broken pipe"), "{said}");
    expect_noticed(&mut sender, "sender of a closed output", "the receiver of channel \"upwards\" is gone");
    writer.join().unwrap();
}

#[test]
fn a_restarted_receiver_does_not_continue_a_stream() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    receiver.kill();
    let mut successor = system.start(&["recv", "upwards", "--timeout", "0.5"]);
    expect_noticed(&mut sender, "sender of a restarted receiver", "the receiver of channel \"upwards\" is gone");
    let (code, _, said) = successor.end();
    assert_eq!(code, 1, "{said}");
    // And the next stream is whole.
    pass(&system, "upwards", &noise(100_000), false);
}

#[test]
fn nobody_at_the_other_side_ends_with_the_timeout() {
    let system = System::new();
    let cases: [(&[&str], &str); 4] = [
        (&["send"], "receiver"),
        (&["recv"], "sender"),
        (&["send", "--raw"], "receiver"),
        (&["recv", "--raw"], "sender"),
    ];
    for (command, other) in cases {
        let said = text(&expect(&mut system.command(&[command, &["upwards", "--timeout", "0.2"]].concat()), 1).stderr);
        assert!(said.contains(&format!("no {other} of channel \"upwards\" came in time")), "{said}");
    }
}

/// The receiver's successor finds the end mark where it expects the beginning, and must not take it for a stream.
#[test]
fn the_rest_of_a_stream_is_no_stream() {
    let system = System::new();
    let (mut sender, mut receiver) = begun(&system);
    signalling::signal(receiver.0.id(), "STOP");
    drop(sender.0.stdin.take());
    std::thread::sleep(Duration::from_millis(200));
    receiver.kill();
    let mut successor = system.start(&["recv", "upwards", "--timeout", "0.5"]);
    assert_eq!(sender.end().0, 1, "nothing was confirmed");
    let (code, _, said) = successor.end();
    assert_eq!(code, 1, "{said}");
}

#[test]
fn two_receivers_of_one_place_are_refused() {
    let system = System::new();
    let (_sender, _receiver) = begun(&system);
    let said = text(&expect(&mut system.command(&["recv", "upwards", "--timeout", "0.2"]), 1).stderr);
    assert!(said.contains("domain control"), "{said}");
}

#[test]
fn another_plan_is_refused() {
    let system = System::new();
    let _receiver = system.start(&["recv", "upwards"]);
    std::thread::sleep(LATER);
    let other = command::DESCRIPTION.replace("64 KiB", "32 KiB");
    std::fs::write(system.path("other.toml"), other).unwrap();
    let mut command = system.command(&["send", "upwards", "--timeout", "5", "--system"]);
    let said = text(&expect(command.arg(system.path("other.toml")), 1).stderr);
    assert!(said.contains("start both with one description"), "{said}");
}

/// Whatever step of its stream a sender dies at, the receiver ends: with the whole stream of a successor if nothing of the
/// first one's had come, else with an error.
#[test]
fn a_sender_that_cannot_read_ends_its_receiver() {
    let system = System::new();
    for round in 0..20 {
        let mut receiver = system.start(&["recv", "upwards"]);
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut sender = system.command(&["send", "upwards"]);
        sender.stdin(std::fs::File::open(system.path(".")).unwrap());
        let said = text(&expect(&mut sender, 1).stderr);
        assert!(said.contains("cannot read standard input"), "{said}");
        let (code, _, said) = receiver.end();
        assert_eq!(code, 1, "round {round}: {said}");
    }
}

#[test]
fn a_successors_stream_never_ends_its_predecessors() {
    let system = System::new();
    let payload = noise(200_000);
    for seed in 0..30_u64 {
        let mut receiver = system.start(&["recv", "upwards"]);
        let mut stdout = receiver.0.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut arrived = Vec::new();
            stdout.read_to_end(&mut arrived).map(|_| arrived)
        });
        let mut first = system.start(&["send", "upwards"]);
        let mut first_input = first.0.stdin.take().unwrap();
        let _ = first_input.write_all(b"of the first");
        std::thread::sleep(Duration::from_micros(seed * 911 % 40_000));
        first.kill();
        let mut second = system.start(&["send", "upwards"]);
        let mut second_input = second.0.stdin.take().unwrap();
        let bytes = payload.clone();
        let writer = std::thread::spawn(move || second_input.write_all(&bytes));
        let (code, _, said) = receiver.end();
        let arrived = reader.join().unwrap().unwrap();
        match code {
            0 => {
                assert!(arrived == payload, "seed {seed}: exit 0 with {} bytes that are no stream", arrived.len());
                assert_eq!(second.end().0, 0, "seed {seed}: both sides of the second stream end alike");
            }
            _ => {
                assert!(b"of the first".starts_with(&arrived[..]) && code == 1, "seed {seed}: {code} {said}");
                second.kill();
            }
        }
        let _ = writer.join().unwrap();
    }
}

/// A receiver that stays for its sender's leaving has taken nothing of the next stream: that goes to the next receiver.
#[test]
fn streams_one_after_the_other_arrive_one_after_the_other() {
    let system = System::new();
    std::thread::scope(|scope| {
        let senders = scope.spawn(|| {
            for number in 0..15 {
                let mut sender = system.start(&["send", "upwards"]);
                sender.0.stdin.take().unwrap().write_all(format!("stream {number}").as_bytes()).unwrap();
                let (code, _, said) = sender.end();
                assert_eq!(code, 0, "sender {number}: {said}");
            }
        });
        for number in 0..15 {
            let output = expect(&mut system.command(&["recv", "upwards"]), 0);
            assert_eq!(text(&output.stdout), format!("stream {number}"));
        }
        senders.join().unwrap();
    });
}

/// A participant of the test's own, as a program would be.
fn participant(
    system: &System,
    domain: &str,
) -> (&'static musubi_core::plan::Plan<'static>, musubi_linux::Participant) {
    let plan = musubi_config::load(&system.path("system.toml")).unwrap().leak();
    let mut options = musubi_linux::Options::new(plan, domain);
    options.instance = Some(system.instance().to_owned());
    (plan, musubi_linux::Participant::attach(options).unwrap())
}

#[test]
fn messages_of_a_program_are_received_raw_and_confirmed() {
    use musubi_mdcom::{Mdcom, Wait};
    let system = System::new();
    let (_, participant) = participant(&system, "storage");
    let sender = Mdcom::init(&participant).sender("upwards").unwrap();
    let say = |words: &[u8]| {
        let mut block = sender.alloc(Wait::Forever).unwrap();
        block[..words.len()].copy_from_slice(words);
        block.enqueue(words.len() as u32).map_err(|rejected| rejected.error).unwrap();
        sender.notify();
    };
    let mut receiver = system.start(&["recv", "upwards", "--raw", "--count", "2"]);
    say(b"hello");
    sender.wait(Wait::For(Duration::from_secs(20))).expect("the first message is confirmed");
    say(b", world");
    sender.wait(Wait::For(Duration::from_secs(20))).expect("the last message is confirmed");
    drop(sender);
    participant.leave();
    let mut arrived = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut arrived).unwrap();
    assert_eq!((receiver.end().0, arrived.as_str()), (0, "hello, world"));
}

#[test]
fn messages_taken_for_a_stream_are_told_apart() {
    use musubi_mdcom::{Mdcom, Wait};
    let system = System::new();
    let (_, participant) = participant(&system, "storage");
    let sender = Mdcom::init(&participant).sender("upwards").unwrap();
    let mut block = sender.alloc(Wait::Forever).unwrap();
    block[..5].copy_from_slice(b"hello");
    block.enqueue(5).map_err(|rejected| rejected.error).unwrap();
    sender.notify();
    let said = text(&expect(&mut system.command(&["recv", "upwards"]), 1).stderr);
    assert!(said.contains("carries no stream") && said.contains("recv --raw"), "{said}");
}

#[test]
fn raw_messages_reach_a_program_and_end_with_the_sender() {
    use musubi_mdcom::{Mdcom, Wait};
    let system = System::new();
    let (_, control) = participant(&system, "control");
    let receiver = Mdcom::init(&control).receiver("upwards").unwrap();
    let mut sender = system.start(&["send", "upwards", "--raw"]);
    sender.0.stdin.take().unwrap().write_all(b"hello").unwrap();
    receiver.wait(Wait::For(Duration::from_secs(20))).unwrap();
    let message = receiver.dequeue().unwrap();
    let mut bytes = [0; 64];
    assert_eq!(message.read_into(&mut bytes).unwrap(), b"hello");
    message.free();
    let (code, _, said) = sender.end();
    assert_eq!(code, 0, "{said}");
    drop(receiver);
    control.leave();
    // And without a program: the end of the sender is the end of `recv --raw`.
    let mut receiver = system.start(&["recv", "upwards", "--raw"]);
    let mut sender = system.start(&["send", "upwards", "--raw"]);
    sender.0.stdin.take().unwrap().write_all(b"all of it").unwrap();
    assert_eq!(sender.end().0, 0);
    let mut arrived = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut arrived).unwrap();
    assert_eq!((receiver.end().0, arrived.as_str()), (0, "all of it"));
}

#[test]
fn the_wait_for_a_place_and_for_the_sender_share_one_time_limit() {
    let system = System::new();
    // The only place of the domain is free again after two seconds, of the three that the second one may wait.
    let mut first = system.start(&["recv", "upwards", "--timeout", "2"]);
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    let (code, _, said) = system.start(&["recv", "upwards", "--timeout", "3"]).end();
    let took = begin.elapsed();
    assert!(code == 1 && said.contains("no sender of channel"), "{said}");
    assert!(took >= Duration::from_millis(2_900) && took < Duration::from_millis(4_200), "{took:?}");
    first.end();
}
