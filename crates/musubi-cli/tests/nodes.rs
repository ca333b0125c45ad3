//! `musubi ping` and `musubi node`: nodes of this process, looked at by the command.

#[allow(dead_code)]
mod command;
#[path = "../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use command::{expect, musubi, text};
use loopback::own_address;
use musubi_mcapi::{Deadline, DeadlineExt, Node, NodeId, PacketReceiver, PacketSender, Topology};

/// A system of three nodes, the third of which never runs, and its description.
struct System {
    directory: tempfile::TempDir,
    topology: Arc<Topology>,
}

impl System {
    /// `at` is where the first two nodes are; `PLACE` in it becomes an address with a free port.
    fn new(name: &str, at: &str) -> System {
        let directory = tempfile::tempdir().unwrap();
        let mut description = format!("[system]\nname = \"{name}-{}\"\n", std::process::id());
        for (number, name) in [(1, "control"), (2, "camera"), (3, "absent")] {
            let at = at.replace("PLACE", &own_address());
            description += &format!("[[node]]\ndomain = 0\nnode = {number}\nname = \"{name}\"\nat = {at}\n");
        }
        let path = directory.path().join("system.toml");
        std::fs::write(&path, description).unwrap();
        let topology = musubi_config::load(&path).unwrap_or_else(|report| panic!("{report}")).topology().clone();
        System { directory, topology: Arc::new(topology) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("system.toml")
    }

    fn node(&self, number: u32) -> Node {
        Node::initialize(&self.topology, 0, number).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = musubi(arguments);
        command.env("MUSUBI_SYSTEM", self.path());
        command
    }

    #[track_caller]
    fn json(&self, arguments: &[&str], code: i32) -> serde_json::Value {
        serde_json::from_slice(&expect(&mut self.command(arguments), code).stdout).unwrap()
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

const EVERYWHERE: [(&str, &str); 2] = [("shm", "\"shm\""), ("tcp", "\"tcp://PLACE\"")];

#[test]
fn a_running_node_answers_and_another_does_not() {
    for (way, at) in EVERYWHERE {
        let system = System::new("cli-ping", at);
        let _control = system.node(1);
        let said = text(&expect(&mut system.command(&["ping", "control", "-c", "3", "-i", "0.01"]), 0).stdout);
        assert!(said.contains(&format!("PING 0:1 (control) by {way}: 56 bytes")), "{said}");
        assert!((1..=3).all(|turn| said.contains(&format!("56 bytes from 0:1: seq={turn} time="))), "{said}");
        assert!(said.contains("3 packets transmitted, 3 received, 0% packet loss"), "{said}");
        assert!(said.contains("rtt min/avg/max/mdev = "), "{said}");
        let summary = system.json(&["ping", "0:1", "-c", "2", "-i", "0.01", "-s", "60000", "--json"], 0);
        assert_eq!((&summary["received"], &summary["bytes"]), (&2.into(), &60_000.into()));
        assert!(summary["rtt_ns"]["min"].as_u64().unwrap() <= summary["rtt_ns"]["max"].as_u64().unwrap());
        let summary = system.json(&["ping", "absent", "-c", "2", "-i", "0.01", "-W", "0.05", "--json"], 1);
        assert_eq!((&summary["received"], &summary["transmitted"]), (&0.into(), &2.into()));
        assert!(summary["rtt_ns"].is_null());
    }
}

/// A second command that were the same node would take the first one's link.
#[test]
fn two_commands_at_a_time_are_two_nodes() {
    for (way, at) in EVERYWHERE {
        let system = System::new("cli-two", at);
        let _control = system.node(1);
        let mut long = system.command(&["ping", "control", "-i", "0.01", "-W", "30"]);
        let mut long = command::Process(long.stdout(Stdio::piped()).spawn().unwrap());
        let mut said = std::io::BufReader::new(long.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("seq=1 time")));
        let other = system.json(&["ping", "control", "-c", "3", "-i", "0.01", "--json"], 0);
        assert_eq!(other["received"], 3, "{way}");
        // What it asks from now on is answered, too.
        let answers: Vec<String> = said.by_ref().skip(100).take(100).collect();
        assert!(answers.iter().all(|line| line.contains("56 bytes from 0:1")), "{way}: {answers:?}");
    }
}

#[test]
fn what_is_in_the_way_of_a_ping_is_said() {
    let system = System::new("cli-obstacle", "\"tcp://PLACE\"");
    let said = |command: &mut Command| text(&expect(command, 1).stdout);
    let absent = said(&mut system.command(&["ping", "absent", "-c", "1"]));
    assert!(absent.contains("nobody answers there") && absent.contains("refused"), "{absent}");
    let _control = system.node(1);
    let differs = system.directory.path().join("differs.toml");
    let description = std::fs::read_to_string(system.path()).unwrap() + "[network]\nresume = \"7 s\"\n";
    std::fs::write(&differs, description).unwrap();
    let refused = said(&mut system.command(&["ping", "control", "-c", "1", "--system", differs.to_str().unwrap()]));
    assert!(refused.contains("node 0:1 refuses: has another description of the system"), "{refused}");
}

#[test]
fn an_interrupted_ping_sums_up() {
    let system = System::new("cli-interrupt", "\"shm\"");
    let _control = system.node(1);
    let mut command = system.command(&["ping", "control", "-i", "0.01"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = String::new();
    while !lines.contains("seq=2") {
        assert_ne!(std::io::BufRead::read_line(&mut output, &mut lines).unwrap(), 0, "{lines}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    std::io::Read::read_to_string(&mut output, &mut lines).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(lines.contains("ping statistics") && lines.contains("rtt min/avg/max/mdev"), "{lines}");
}

#[test]
fn the_nodes_are_listed_with_their_channels() {
    for (way, at) in EVERYWHERE {
        let system = System::new("cli-list", at);
        let (control, camera) = (system.node(1), system.node(2));
        let (from, to) = (camera.create_endpoint(Some(7)).unwrap(), control.create_endpoint(Some(7)).unwrap());
        let peer = camera.get_endpoint((0, 1), 7, soon()).unwrap();
        let mut connected = camera.connect_packets(&from, &peer).unwrap();
        let mut receiver = PacketReceiver::open(&to).unwrap();
        let mut sender = PacketSender::open(&from).unwrap();
        connected.wait(soon()).unwrap();
        let (sender, receiver) = (sender.wait(soon()).unwrap(), receiver.wait(soon()).unwrap());
        for _ in 0..3 {
            sender.send(b"picture", soon()).unwrap();
        }
        receiver.receive(soon()).unwrap();
        let report = system.json(&["node", "ls", "--json"], 0);
        let nodes = report["nodes"].as_array().unwrap();
        let running: Vec<bool> = nodes.iter().map(|node| node["running"].as_bool().unwrap()).collect();
        assert_eq!(running, [true, true, false], "{report}");
        assert_eq!(
            (&nodes[0]["name"], &nodes[0]["way"], &nodes[0]["channels"]),
            (&"control".into(), &way.into(), &1.into())
        );
        let ends = report["channels"].as_array().unwrap();
        assert_eq!(ends.len(), 2, "{report}");
        assert!(ends.iter().all(|end| end["state"] == "open" && end["kind"] == "packet"), "{report}");
        assert_eq!(ends[0]["other"], ends[1]["endpoint"]);
        let said = text(&expect(&mut system.command(&["node", "ls"]), 0).stdout);
        assert!(said.contains("2 of 3 nodes answer") && said.contains("not reachable"), "{said}");
        let busy = system.json(&["node", "top", "--once", "--json", "-i", "0.05"], 0);
        assert!(busy["nodes"][0]["rates"]["channel_items"].is_number(), "{busy}");
        assert!(busy["nodes"][2]["rates"].is_null(), "{busy}");
    }
}

#[test]
fn links_are_counted() {
    for (way, at) in EVERYWHERE {
        let system = System::new("cli-links", at);
        let (control, camera) = (system.node(1), system.node(2));
        let (from, _to) = (camera.create_endpoint(Some(7)).unwrap(), control.create_endpoint(Some(7)).unwrap());
        let peer = camera.get_endpoint((0, 1), 7, soon()).unwrap();
        for _ in 0..5 {
            from.send(&peer, 1, &[7; 1000], soon()).unwrap();
        }
        let report = system.json(&["node", "ls", "--json"], 0);
        let links = report["links"].as_array().unwrap();
        let pairs: Vec<_> = links.iter().map(|link| (link["node"].as_str(), link["with"].as_str())).collect();
        assert_eq!(pairs, [(Some("0:1"), Some("0:2")), (Some("0:2"), Some("0:1"))], "{report}");
        for link in links {
            assert_eq!((&link["way"], &link["state"]), (&way.into(), &"stands".into()), "{link}");
            assert_eq!((&link["connections"], &link["cuts"]), (&1.into(), &0.into()), "{link}");
            assert_eq!(link["rtt_ns"].is_null(), way == "shm", "{link}");
        }
        let (sent, received) = (&links[1]["bytes_sent"], &links[0]["bytes_received"]);
        assert!(sent.as_u64() > Some(5000) && received.as_u64() > Some(5000), "{report}");
        let said = text(&expect(&mut system.command(&["node", "ls", "--links"]), 0).stdout);
        assert!(said.contains("round trip") && said.contains("Nobody was refused"), "{said}");
        assert!(!text(&expect(&mut system.command(&["node", "ls"]), 0).stdout).contains("round trip"));
    }
}

/// The system with a directory of keys of its own authority, and certificates of two nodes and a tool.
fn secured(system: &System, plain: &str, keys: &str) -> Topology {
    let network = format!("[network]\nkeys = \"{keys}\"\ntls_on_loopback = true\n[[node]]");
    std::fs::write(system.path(), plain.replacen("[[node]]", &network, 1)).unwrap();
    expect(&mut system.command(&["keys", "init"]), 0);
    expect(&mut system.command(&["keys", "issue", "control", "camera", "31:1016"]), 0);
    musubi_config::load(&system.path()).unwrap_or_else(|report| panic!("{report}")).topology().clone()
}

#[test]
fn who_was_refused_is_seen_from_outside() {
    let system = System::new("cli-refused", "\"tcp://PLACE\"");
    let plain = std::fs::read_to_string(system.path()).unwrap();
    let theirs = secured(&system, &plain, "theirs");
    let ours = secured(&system, &plain, "ours");
    let address = ours.nodes[&NodeId::new(0, 1).unwrap()].tcp.clone().unwrap();
    let _control = Node::initialize(&Arc::new(ours), 0, 1).unwrap();
    // One with a certificate of another authority, and some that speak nothing known.
    let camera = Node::initialize(&Arc::new(theirs), 0, 2).unwrap();
    assert!(camera.get_endpoint((0, 1), 7, Deadline::after(Duration::from_millis(300))).is_err());
    for _ in 0..3 {
        let mut garbage = TcpStream::connect(&address).unwrap();
        garbage.write_all(&[b'x'; 200]).unwrap();
        let _ = garbage.read(&mut [0; 100]);
    }
    let report = system.json(&["node", "ls", "--json"], 0);
    let door = &report["doors"][0];
    assert_eq!(door["node"], "0:1", "{report}");
    let refused = |why: &str| door["refused"][why].as_u64().unwrap();
    assert!(refused("other_authority") + refused("disbelieved") >= 1, "{report}");
    assert!(refused("other_tls") >= 3, "{report}");
    assert_eq!(refused("wrong_certificate") + refused("expired") + refused("plan"), 0, "{report}");
    let happened = |part: &str| {
        let mut events = report["events"].as_array().unwrap().iter();
        events.any(|event| event["node"] == "0:1" && event["text"].as_str().unwrap().contains(part))
    };
    assert!(happened("does not speak TLS"), "{report}");
    let said = text(&expect(&mut system.command(&["node", "ls", "--links"]), 0).stdout);
    assert!(said.contains("What happened to connections") && said.contains("127.0.0.1"), "{said}");
    // Who asks needs a certificate of its own, and is told so.
    std::fs::remove_file(system.path().with_file_name("ours").join("31-1016.crt")).unwrap();
    for arguments in [&["node", "ls"][..], &["ping", "control"]] {
        let said = text(&expect(&mut system.command(arguments), 1).stderr);
        assert!(said.contains("31-1016.crt") && said.contains("musubi keys issue 31:1016"), "{said}");
    }
    // A machine may have that of another number only.
    expect(system.command(&["keys", "issue", "31:1018", "--keys", "ours"]).current_dir(system.directory.path()), 0);
    expect(&mut system.command(&["ping", "control", "-c", "1"]), 0);
}

#[test]
fn nobody_there_is_said_plainly() {
    let said = |arguments: &[&str], code| {
        let output = expect(&mut musubi(arguments), code);
        text(&output.stdout) + &text(&output.stderr)
    };
    // Numbers that no other test of a system without a description has.
    assert!(said(&["ping", "9:9", "-c", "1", "-W", "0.2"], 1).contains("nobody answers there"));
    assert!(said(&["ping", "31:1023", "-c", "1"], 1).contains("nobody runs as 31:1023"));
}

/// A limit of the process on open files is what is in the way.
#[test]
fn why_the_command_cannot_be_a_node_can_be_asked() {
    let script = format!("ulimit -n 8; exec {} ping 9:8 -c 1", env!("CARGO_BIN_EXE_musubi"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env_remove("MUSUBI_SYSTEM").env_remove("MUSUBI_DEBUG");
    let said = text(&expect(&mut command, 1).stderr);
    assert!(said.contains("cannot be node 31:10") && said.contains("help: with MUSUBI_DEBUG=1"), "{said}");
    let said = text(&expect(command.env("MUSUBI_DEBUG", "1"), 1).stderr);
    assert!(said.contains("does not start: "), "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_what_would_go_on() {
    let system = System::new("cli-closed", "\"shm\"");
    let _control = system.node(1);
    for arguments in
        [&["ping", "control", "-i", "0.01"][..], &["node", "top", "-i", "0.01"], &["node", "ls", "--links"]]
    {
        let mut command = system.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        drop(output);
        let mut process = command::Process(child);
        let (code, _, said) = process.end();
        assert_eq!((code, said.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn wrong_nodes_and_ways_are_explained() {
    let system = System::new("cli-wrong", "\"shm\"");
    let said = |arguments: &[&str], code| text(&expect(&mut system.command(arguments), code).stderr);
    assert!(said(&["ping", "contorl"], 1).contains("did you mean \"control\"?"));
    assert!(said(&["ping", "0:9"], 1).contains("has no node"));
    assert!(said(&["ping", "0:1", "--via", "tcp"], 1).contains("the description gives: shm"));
    said(&["ping", "0:1", "-c", "0"], 2);
    said(&["ping", "0:1", "-s", "65537"], 2);
    said(&["ping", "0:1", "-i", "often"], 2);
    said(&["ping"], 2);
    said(&["node"], 2);
    std::fs::write(system.path(), "[system]\nname = \"x\"\n[[nodes]]\n").unwrap();
    assert!(said(&["node", "ls"], 1).contains("did you mean `node`?"));
}
