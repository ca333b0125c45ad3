//! Nodes of a description: what they become, which mistakes are found, what their hash depends on.

use std::collections::{HashMap, HashSet};

use musubi_config::{check, load, parse, print};
use musubi_transport::topology::{ClassRule, Network, Topology, Way};
use musubi_transport::{FilterRule, NodeId, Priority, Regulation};

const NODES: &str = r#"[system]
name = "line"

[network]
insecure = true
heartbeat = "100 ms"
silence = "400 ms"
resume = "2 s"
piece = "8 KiB"
window = "8 MiB"
priorities = false

[[node]]
domain = 0
node = 1
name = "control"
at = ["shm", "tcp://10.0.0.7:7400"]
machine = "cell-3"

[[node]]
domain = 1
node = 1
name = "camera"
at = "tcp://[fd00::8]:7400"

[[node]]
domain = 0
node = 2
machine = "cell-3"
"#;

fn topology(text: &str) -> Topology {
    parse("nodes.toml", text).unwrap_or_else(|report| panic!("{report}\n{text}")).topology().clone()
}

fn id(domain: u32, node: u32) -> NodeId {
    NodeId::new(domain, node).expect("a node within the limits")
}

#[test]
fn a_description_of_nodes_alone_becomes_a_topology() {
    let topology = topology(NODES);
    let expected = Network {
        insecure: true,
        heartbeat_ms: 100,
        silence_ms: 400,
        resume_ms: 2000,
        piece_bytes: 8192,
        window_bytes: 8 << 20,
        priorities: false,
        ..Network::default()
    };
    assert_eq!((topology.system.as_str(), &topology.network), ("line", &expected));
    assert_eq!(topology.nodes.len(), 3);
    assert_eq!(topology.nodes[&id(0, 1)].name, "control");
    assert_eq!(topology.way(id(0, 2), id(0, 1)), Some(Way::SharedMemory));
    assert_eq!(topology.way(id(0, 2), id(1, 1)), Some(Way::Tcp(Some("[fd00::8]:7400"))));
    assert_eq!(topology.way(id(1, 1), id(0, 2)), Some(Way::Tcp(None)));
}

#[test]
fn what_is_left_out_is_the_default() {
    let topology = topology("[system]\nname = \"a\"\n[[node]]\ndomain = 3\nnode = 7\n");
    assert_eq!(topology.network, Network::default());
    assert_eq!(topology.nodes[&id(3, 7)].shared_memory.as_deref(), Some(""));
    assert_ne!(topology.hash, 0);
}

/// Domains and nodes in one file; neither changes the other's hash.
#[test]
fn nodes_and_domains_go_together() {
    let domains = "[system]\nname = \"line\"\n[[domain]]\nname = \"m\"\nrole = \"master\"\n";
    let nodes = NODES.replace("[system]\nname = \"line\"\n", "");
    let both = parse("both.toml", &format!("{domains}{nodes}")).unwrap_or_else(|report| panic!("{report}"));
    let alone = parse("domains.toml", domains).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(both.hash(), alone.hash());
    assert_eq!(*both.topology(), topology(NODES));
    assert!(both.has_domains() && alone.topology().nodes.is_empty());
    let nodes_alone = parse("nodes.toml", NODES).unwrap_or_else(|report| panic!("{report}"));
    assert!(!nodes_alone.has_domains());
    let text = check(&both, None);
    assert!(text.contains("Memory map") && text.contains("0:1") && text.contains("[fd00::8]:7400"), "{text}");
}

const RULES: &str = r#"[system]
name = "line"
[[node]]
domain = 0
node = 1
[[node.rule]]
class = 4
regulation = { messages = "1000 /s", bytes = "1 MiB/s" }
filter = { interval = "10 ms", latest = "20 ms" }
[[node.rule]]
class = 2
filter = { every = 5 }
[[node]]
domain = 0
node = 2
rule = [{ class = 7, regulation = { bytes = "2 MiB/s", bytes_burst = "4 KiB" } }]
"#;

#[test]
fn a_node_has_a_rule_a_class() {
    let description = parse("rules.toml", RULES).unwrap_or_else(|report| panic!("{report}"));
    let topology = description.topology();
    let class = |number| Priority::new(number).unwrap();
    let bounds = Regulation { messages_per_s: 1000, messages_burst: 10, bytes_per_s: 1 << 20, bytes_burst: 10_485 };
    let filter = FilterRule { interval_ns_min: 10_000_000, latest_ns: 20_000_000, ..FilterRule::EACH };
    let expected = [
        ClassRule {
            class: class(2),
            regulation: Regulation::NONE,
            filter: FilterRule { every: 5, ..FilterRule::EACH },
        },
        ClassRule { class: class(4), regulation: bounds, filter },
    ];
    assert_eq!(topology.rules_of(id(0, 1)), expected);
    let bytes = Regulation { bytes_per_s: 2 << 20, bytes_burst: 4096, ..Regulation::NONE };
    assert_eq!(
        topology.rules_of(id(0, 2)),
        [ClassRule { class: class(7), regulation: bytes, filter: FilterRule::EACH }]
    );
    assert_eq!(topology.rules_of(id(0, 3)), []);
    let again = print(&description);
    assert_eq!(parse("again.toml", &again).unwrap_or_else(|report| panic!("{report}\n{again}")).topology(), topology);
    let text = check(&description, None);
    for words in ["Rules of nodes", "1000 /s, burst 10", "once in 10 ms", "by one frame in 5", "2 MiB/s, burst 4 KiB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // How long a frame is held and when it wakes at the latest, and whence that comes.
    for words in ["held at most", " 1 s ", " 500 ms ", " 20 ms ", " 100 ms ", "1 MiB / bytes", "n times that"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(check(&description, Some(80)).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_rule_changes_the_hash_of_the_nodes_and_its_absence_does_not() {
    let hash = |text: &str| topology(text).hash;
    let plain = hash("[system]\nname = \"line\"\n[[node]]\ndomain = 0\nnode = 1\n[[node]]\ndomain = 0\nnode = 2\n");
    let of = [
        RULES.to_owned(),
        RULES.replace("class = 4", "class = 5"),
        RULES.replace("1000 /s", "1001 /s"),
        RULES.replace("\"10 ms\"", "\"9 ms\""),
        RULES.replace("\"20 ms\"", "\"21 ms\""),
        RULES.replace("every = 5", "every = 6"),
        RULES.replace("4 KiB", "5 KiB"),
    ];
    let hashes: HashSet<u64> = of.iter().map(|text| hash(text)).chain([plain]).collect();
    assert_eq!(hashes.len(), of.len() + 1);
}

#[test]
fn wrong_rules_are_named() {
    let found = |from: &str, to: &str| {
        let text = RULES.replacen(from, to, 1);
        assert_ne!(text, RULES);
        mistakes(&text).into_iter().map(|(_, message)| message).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(found("class = 4", "class = 0"), "`class` is out of range: 0");
    assert_eq!(found("class = 7", "class = 8"), "`class` is out of range: 8");
    assert_eq!(found("class = 4", "class = 2"), "two rules of a node for class 2");
    assert_eq!(found("class = 4\n", ""), "a [[node.rule]] needs the key `class`");
    assert_eq!(found("every = 5", "level = 5"), "unknown key `level` in a filter");
    assert_eq!(found("\"20 ms\"", "\"5 ms\""), "`latest` (5 ms) is shorter than `interval` (10 ms)");
    assert_eq!(found("filter = { every = 5 }\n", ""), "a rule that says nothing");
    assert_eq!(
        found("rule = [{", "rule = 7 # [{"),
        "`rule` is a list of tables; begin each with [[node.rule]], not an integer"
    );
    let off = found("[[node]]", "[network]\npriorities = false\n[[node]]");
    assert_eq!(off, ["a `regulation` of a class, but [network] says `priorities = false`"; 2].join("; "));
}

/// The messages of a text that must be wrong, with their lines.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    let report = parse("wrong.toml", text).expect_err("there are mistakes");
    report.errors().into_iter().map(|finding| (finding.line, finding.message)).collect()
}

/// A description that is wrong in many places.
const WRONG: &str = r#"[system]
name = "line"
[network]
heartbeat = "2 s"
silence = "1500 us"
windw = "8 MiB"
tls_on_loopback = true
[[node]]
domain = 0
node = 1
at = "tcp://127.0.0.1:7400"
[[node]]
domain = 0
node = 1
at = "tcp://127.0.0.1:7400"
[[node]]
domain = 32
node = 1024
at = "tpc://127.0.0.1:7400"
[[node]]
domain = 31
node = 1010
at = ["shm", "shm"]
[[node]]
domain = 0
node = 3
at = "tcp://0.0.0.0:7400"
certificate = "a.crt"
[[node]]
domain = 0
node = 4
at = "tcp://10.0.0.1:0"
[[node]]
domain = 0
node = 5
at = []
[[node]]
domain = 0
node = 6
at = "tcp://10.0.0.1:9"
[[node]]
domain = 0
node = 7
at = "tcp://10.0.0.256:7400"
"#;

#[test]
fn every_mistake_is_reported_at_its_place() {
    let found = mistakes(WRONG);
    let expected = [
        (4, "not longer than `heartbeat`"),
        (5, "whole number of milliseconds"),
        (6, "unknown key `windw`"),
        (7, "`tls_on_loopback` without keys"),
        (12, "two nodes are 0:1"),
        (15, "two nodes listen at 127.0.0.1:7400"),
        (17, "`domain` is out of range: 32"),
        (18, "`node` is out of range: 1024"),
        (19, "not a place: `tpc://"),
        (20, "node 31:1010 is kept for tools"),
        (23, "at most one place of a kind"),
        (27, "not a place"),
        (28, "`certificate` without `key`"),
        (32, "not a place"),
        (36, "empty list"),
        (40, "links to 10.0.0.1:9 need TLS"),
        (44, "not a place: `tcp://10.0.0.256:7400`"),
    ];
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), expected.map(|(line, _)| line), "{found:#?}");
    for ((_, message), (_, words)) in found.iter().zip(expected) {
        assert!(message.contains(words), "`{words}` in: {message}");
    }
}

#[test]
fn a_description_of_nothing_is_a_mistake() {
    let found = mistakes("[system]\nname = \"line\"\n[network]\ninsecure = true\n");
    assert!(found[0].1.contains("no domain"), "{found:?}");
}

#[test]
fn nodes_without_a_way_to_each_other_are_warned_about() {
    let node = |number: u32, machine: &str| format!("[[node]]\ndomain = 0\nnode = {number}\nmachine = \"{machine}\"\n");
    let checked = |text: &str| check(&parse("n.toml", text).unwrap_or_else(|report| panic!("{report}")), None);
    let apart = format!("[system]\nname = \"x\"\n{}{}", node(1, "a"), node(2, "b"));
    assert!(checked(&apart).contains("Warning: no way"), "{}", checked(&apart));
    let together = format!("[system]\nname = \"x\"\n{}{}", node(1, "a"), node(2, "a"));
    assert!(!checked(&together).contains("Warning"));
}

#[test]
fn every_value_but_paths_changes_the_hash() {
    let original = topology(NODES);
    let changes = [
        ("\"line\"", "\"lime\""),
        ("insecure = true", "keys = \"keys\""),
        ("insecure = true", "insecure = true\nkeys = \"keys\"\ntls_on_loopback = true"),
        ("\"100 ms\"", "\"101 ms\""),
        ("\"400 ms\"", "\"401 ms\""),
        ("\"2 s\"", "\"3 s\""),
        ("\"8 KiB\"", "\"9 KiB\""),
        ("\"8 MiB\"", "\"9 MiB\""),
        ("priorities = false", "priorities = true"),
        ("node = 2", "node = 3"),
        ("domain = 1", "domain = 2"),
        ("\"control\"", "\"control-1\""),
        ("\"shm\", \"tcp", "\"tcp"),
        ("[\"shm\", \"tcp://10.0.0.7:7400\"]", "\"shm\""),
        ("10.0.0.7:7400", "10.0.0.7:7401"),
        ("\"cell-3\"", "\"cell-4\""),
    ];
    let mut hashes = HashMap::from([(original.hash, "the original")]);
    for (old, new) in changes {
        assert!(NODES.contains(old), "{old}");
        let twin = hashes.insert(topology(&NODES.replacen(old, new, 1)).hash, new);
        assert_eq!(twin, None, "{new} has the same hash");
    }
    let paths = NODES.replace("name = \"camera\"", "name = \"camera\"\ncertificate = \"c\"\nkey = \"k\"");
    let elsewhere = paths.replace("insecure = true", "insecure = true\nkeys = \"k\"");
    assert_eq!(topology(&elsewhere).hash, original.hash);
}

#[test]
fn what_is_printed_reads_back() {
    let awkward = NODES.replace("insecure = true", "insecure = true\nkeys = 'a \"b\" \\c'");
    for text in [NODES, &awkward] {
        let description = parse("n.toml", text).unwrap_or_else(|report| panic!("{report}"));
        let again = parse("again.toml", &print(&description)).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(description, again);
    }
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("system.toml");
    std::fs::write(&file, NODES.replace("insecure = true", "insecure = true\nkeys = \"keys\"")).expect("written");
    let description = load(&file).unwrap_or_else(|report| panic!("{report}"));
    let keys = directory.path().join("keys").to_string_lossy().into_owned();
    assert_eq!(description.topology().network.keys, Some(keys));
}

#[test]
fn certificate_and_key_go_together() {
    let node = |keys: &str| format!("[system]\nname = \"line\"\n[[node]]\ndomain = 0\nnode = 1\n{keys}");
    for (one, other) in [("certificate", "key"), ("key", "certificate")] {
        let found = mistakes(&node(&format!("{one} = \"a.pem\"\n")));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, 6);
        assert!(found[0].1.contains(&format!("`{one}` without `{other}`")), "{found:?}");
    }
    parse("both.toml", &node("certificate = \"a.pem\"\nkey = \"b.pem\"\n")).expect("both");
    parse("neither.toml", &node("")).expect("neither");
}

#[test]
fn limits_of_the_network_are_the_last_that_are_taken() {
    let text = |line: &str| format!("[system]\nname = \"line\"\n[network]\n{line}\n[[node]]\ndomain = 0\nnode = 1\n");
    let taken = [
        "heartbeat = \"1 ms\"",
        "heartbeat = \"60 s\"\nsilence = \"3600 s\"",
        "silence = \"3600 s\"",
        "resume = \"1 ms\"",
        "resume = \"3600 s\"",
        "piece = \"512 B\"",
        "piece = \"1 MiB\"",
        "window = \"1 GiB\"",
    ];
    for line in taken {
        parse("taken.toml", &text(line)).unwrap_or_else(|report| panic!("{line}: {report}"));
    }
    let refused = [
        "heartbeat = \"999 us\"",
        "heartbeat = \"60001 ms\"\nsilence = \"3600 s\"",
        "silence = \"3600001 ms\"",
        "resume = \"999 us\"",
        "piece = \"511 B\"",
        "piece = \"1048577 B\"",
    ];
    for line in refused {
        assert_eq!(mistakes(&text(line)).first().map(|(line, _)| *line), Some(4), "{line}");
    }
    let window_min = 2 * musubi_transport::limits::PAYLOAD_BYTES_MAX;
    let window = |bytes| text(&format!("window = \"{bytes} B\""));
    parse("taken.toml", &window(window_min)).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(mistakes(&window(window_min - 1)).len(), 1);
    // A connection is cut only after more than a heartbeat.
    assert_eq!(mistakes(&text("heartbeat = \"5 ms\"\nsilence = \"5 ms\"")).len(), 1);
    parse("taken.toml", &text("heartbeat = \"5 ms\"\nsilence = \"6 ms\"")).expect("longer");
}

#[test]
fn a_file_above_a_mebibyte_is_refused_and_not_cut() {
    let path = std::env::temp_dir().join(format!("musubi-config-{}-large.toml", std::process::id()));
    let load_with = |bytes: usize| {
        // A comment at the end, so that a cut file would still be a description.
        let text = format!("{NODES}#");
        std::fs::write(&path, format!("{text}{}", "x".repeat(bytes - text.len()))).expect("written");
        load(&path).map_err(|report| report.to_string())
    };
    let largest =
        load_with(musubi_config::DESCRIPTION_BYTES_MAX as usize).map(|description| description.topology().nodes.len());
    assert_eq!(largest, Ok(3));
    let refused = load_with(musubi_config::DESCRIPTION_BYTES_MAX as usize + 1).expect_err("too large");
    assert!(refused.contains("larger than 1048576 bytes"), "{refused}");
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn a_node_without_an_address_is_said_to_be_a_stranger_where_it_dials() {
    let report = |nodes: &str, network: &str| {
        let text = format!("[system]\nname = \"line\"\n[network]\n{network}\n{nodes}");
        check(&parse("n.toml", &text).unwrap_or_else(|report| panic!("{report}")), None)
    };
    let node = |number: u32, place: &str| format!("[[node]]\ndomain = 0\nnode = {number}\n{place}\n");
    let listening = node(1, "at = [\"shm\", \"tcp://10.0.0.1:7411\"]\nmachine = \"a\"");
    let (near, far) = (node(2, "machine = \"a\""), node(3, "machine = \"b\""));
    // A neighbour in memory needs no address.
    assert!(!report(&(listening.clone() + &near), "insecure = true").contains("stranger"));
    let said = report(&(listening.clone() + &near + &far), "keys = \"k\"");
    assert!(said.contains("Node 0:3 has no TCP address") && said.contains("stranger until its certificate"), "{said}");
    let said = report(&(listening + &far + &node(4, "machine = \"c\"")), "insecure = true");
    assert!(said.contains("Node 0:3 and 1 more have no TCP address") && said.contains("never"), "{said}");
}

/// Either of the two alone would never be used, and the other one silently not be found.
#[test]
fn a_key_and_a_certificate_come_together() {
    let with = |lines: &str| NODES.replace("name = \"camera\"", &format!("name = \"camera\"\n{lines}"));
    assert!(parse("ok", &with("certificate = \"a.crt\"\nkey = \"a.key\"")).is_ok());
    for (line, said) in
        [("certificate = \"a.crt\"", "`certificate` without `key`"), ("key = \"a.key\"", "`key` without `certificate`")]
    {
        let report = parse("nodes.toml", &with(line)).expect_err("half of it is missing");
        let messages: Vec<String> = report.errors().into_iter().map(|error| error.message).collect();
        assert_eq!(messages, [format!("{said}: a node needs both or neither")]);
    }
}

/// What is wrong with a place of a node.
fn fault_of(place: &str) -> Option<String> {
    let text = format!(
        "[system]\nname = \"a\"\n[[node]]\ndomain = 0\nnode = 1\nat = \"{place}\"\n[network]\ninsecure = true\n"
    );
    parse("place.toml", &text).err().map(|report| report.render(false))
}

#[test]
fn an_address_is_taken_or_the_fault_is_named() {
    let host = |bytes: usize| format!("tcp://{}:7400", "h".repeat(bytes));
    for sound in ["tcp://control:1", "tcp://10.0.0.7:65535", "tcp://[fd00::7]:7400", "tcp://a-b_c.d:7400", &host(260)] {
        assert_eq!(fault_of(sound), None, "{sound}");
    }
    for (wrong, fault) in [
        ("fd00::7", "neither"),
        ("tcp://control", "the port is missing"),
        ("tcp://control:0", "from 1 to 65535"),
        ("tcp://control:65536", "from 1 to 65535"),
        ("tcp://[fd00::7:7400", "bracket is not closed"),
        ("tcp://fd00::7:7400", "stands in brackets"),
        ("tcp://:7400", "a name or an address"),
        ("tcp://a b:7400", "a name or an address"),
        (&host(261), "a name or an address"),
        ("tcp://10.0.0.256:7400", "four numbers"),
        ("tcp://0.0.0.0:7400", "others could not connect"),
        ("tcp://[::]:7400", "others could not connect"),
    ] {
        let found = fault_of(wrong).unwrap_or_default();
        assert!(found.contains(fault), "{wrong}: {found}");
    }
}

#[test]
fn a_path_is_neither_empty_nor_full_of_control_characters() {
    for (path, is_taken) in [("keys", true), ("", false), ("a\\u0007b", false)] {
        let text = format!("[system]\nname = \"a\"\n[[node]]\ndomain = 0\nnode = 1\n[network]\nkeys = \"{path}\"\n");
        assert_eq!(parse("keys.toml", &text).is_ok(), is_taken, "{path:?}");
    }
}

#[test]
fn the_network_is_printed_where_it_says_something() {
    let domain = "[system]\nname = \"a\"\n[[domain]]\nname = \"m\"\nrole = \"master\"\n";
    let printed = |text: &str| {
        let description = parse("print.toml", text).unwrap_or_else(|report| panic!("{report}"));
        musubi_config::print(&description).contains("[network]")
    };
    assert!(!printed(domain));
    assert!(printed(&format!("{domain}[network]\nheartbeat = \"100 ms\"\n")));
    assert!(printed("[system]\nname = \"a\"\n[[node]]\ndomain = 0\nnode = 1\n"));
}
