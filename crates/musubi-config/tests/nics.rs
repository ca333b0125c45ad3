//! NICs of a description: what they become, which mistakes are found, what their hash depends on.

use musubi_config::{Nics, check, load, parse, print};
use musubi_transport::limits::{PLACES_MAX, SLOTS_MAX};
use musubi_transport::topology::{ClassIntake, Topology};
use musubi_transport::{NodeId, Priority, Regulation};

const NICS: &str = r#"[system]
name = "line"

[network]
insecure = true

[[nic]]
name = "left"
at = ["shm", "tcp://10.0.0.7:7700"]
machine = "cell-3"
processes = 2
trust = "trusted"

[[nic.rule]]
class = 4
regulation = { messages = "1000/s", messages_burst = 10 }

[[nic]]
name = "right"
at = "tcp://[fd00::8]:7700"
"#;

fn nics(text: &str) -> Nics {
    parse("nics.toml", text).unwrap_or_else(|report| panic!("{report}\n{text}")).nics().clone()
}

fn slot(nic: u16, slot: u16) -> NodeId {
    NodeId::of_slot(nic, slot).unwrap()
}

#[test]
fn each_process_of_a_nic_is_a_node_with_a_port_of_its_own() {
    let nics = nics(NICS);
    let of = |entry: &musubi_config::NicEntry| (entry.name.clone(), entry.processes, entry.is_trusted);
    let entries: Vec<_> = nics.entries.iter().map(of).collect();
    assert_eq!(entries, [("left".to_owned(), 2, true), ("right".to_owned(), 4, false)]);
    let Topology { system, nodes, network, .. } = &nics.topology;
    assert_eq!((system.as_str(), network.insecure), ("line/vi", true));
    let names: Vec<_> =
        nodes.iter().map(|(id, place)| (*id, place.name.as_str(), place.tcp.as_deref().unwrap())).collect();
    let expected = [
        (slot(0, 0), "left-0", "10.0.0.7:7700"),
        (slot(0, 1), "left-1", "10.0.0.7:7701"),
        (slot(1, 0), "right-0", "[fd00::8]:7700"),
        (slot(1, 1), "right-1", "[fd00::8]:7701"),
        (slot(1, 2), "right-2", "[fd00::8]:7702"),
        (slot(1, 3), "right-3", "[fd00::8]:7703"),
    ];
    assert_eq!(names, expected);
    assert_eq!(nodes[&slot(0, 1)].shared_memory.as_deref(), Some("cell-3"));
    assert_eq!((nodes[&slot(1, 0)].shared_memory.as_deref(), nodes[&slot(0, 1)].rules.len()), (None, 1));
}

#[test]
fn a_nic_is_on_this_machine_unless_it_says_otherwise() {
    let nics = nics("[system]\nname = \"s\"\n[[nic]]\nname = \"one\"\nprocesses = 1\n");
    let place = &nics.topology.nodes[&slot(0, 0)];
    assert_eq!((place.name.as_str(), place.shared_memory.as_deref(), &place.tcp), ("one", Some(""), &None));
    let nothing = parse("s.toml", "[system]\nname = \"s\"\n[[node]]\ndomain = 0\nnode = 1\n").unwrap();
    assert!(nothing.nics().entries.is_empty() && nothing.nics().topology.nodes.is_empty());
}

#[test]
fn what_is_printed_is_read_as_the_same() {
    let description = parse("nics.toml", NICS).unwrap();
    let again = parse("again.toml", &print(&description)).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(again, description);
}

#[test]
fn nodes_and_nics_have_hashes_of_their_own() {
    let node = "[[node]]\ndomain = 0\nnode = 1\n";
    let both = parse("both.toml", &(NICS.to_owned() + node)).unwrap();
    assert_eq!(both.nics(), &nics(NICS));
    let alone = parse(
        "alone.toml",
        &NICS[..NICS.find("[[nic]]").unwrap()]
            .replace("line\"", "line\"\n")
            .replace("insecure = true", &format!("insecure = true\n{node}")),
    );
    assert_eq!(both.topology().hash, alone.unwrap_or_else(|report| panic!("{report}")).topology().hash);
    let hash = |text: &str| nics(text).topology.hash;
    for (was, is) in [
        ("processes = 2", "processes = 3"),
        ("\"left\"", "\"light\""),
        ("7700\"]", "7800\"]"),
        ("cell-3", "cell-4"),
        ("1000/s", "1001/s"),
    ] {
        assert_ne!(hash(NICS), hash(&NICS.replace(was, is)), "{is}");
    }
}

#[test]
fn mistakes_are_found_where_they_stand() {
    let mistakes = [
        ("name = \"left\"\n", "", "needs the key `name`"),
        ("\"left\"", "\"right\"", "two NICs"),
        ("\"left\"", "\"7\"", "not a valid name"),
        ("processes = 2", "processes = 0", "processes"),
        ("processes = 2", "processes = 17", "processes"),
        ("processes = 2", "process = 2", "process"),
        ("10.0.0.7:7700", "10.0.0.7:65535", "the last would be above 65535"),
        ("[fd00::8]:7700", "10.0.0.7:7701", "two nodes listen at 10.0.0.7:7701"),
        ("insecure = true", "insecure = false", "need TLS"),
        ("class = 4", "class = 8", "class"),
        ("machine = \"cell-3\"", "certificate = \"c\"", "`certificate` without `key`"),
    ];
    for (was, is, said) in mistakes {
        let report = parse("nics.toml", &NICS.replacen(was, is, 1)).expect_err(is).to_string();
        assert!(report.contains(said), "{is}: {report}");
    }
    let node = "[[node]]\ndomain = 0\nnode = 1\nat = \"tcp://10.0.0.7:7701\"\n";
    let report = parse("nics.toml", &(NICS.to_owned() + node)).expect_err("one port twice").to_string();
    assert!(report.contains("two nodes listen at 10.0.0.7:7701"), "{report}");
}

#[test]
fn there_are_as_many_as_there_may_be_and_no_more() {
    let some = |count: u16| {
        let nic = |number: u16| format!("[[nic]]\nname = \"n{number}\"\nprocesses = {SLOTS_MAX}\n");
        String::from("[system]\nname = \"s\"\n") + &(0..count).map(nic).collect::<String>()
    };
    let all = nics(&some(PLACES_MAX));
    assert_eq!(all.topology.nodes.len(), usize::from(PLACES_MAX) * usize::from(SLOTS_MAX));
    let report = parse("nics.toml", &some(PLACES_MAX + 1)).expect_err("one too many").to_string();
    assert!(report.contains(&format!("{} NICs, but at most {PLACES_MAX} are possible", PLACES_MAX + 1)), "{report}");
}

#[test]
fn certificates_are_beside_the_description() {
    let directory = std::env::temp_dir().join(format!("musubi-nics-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let text = NICS.replace("machine = \"cell-3\"", "certificate = \"c\"\nkey = \"/k\"");
    std::fs::write(directory.join("nics.toml"), text).unwrap();
    let description = load(&directory.join("nics.toml")).unwrap();
    let place = &description.nics().topology.nodes[&slot(0, 1)];
    assert_eq!(place.certificate.as_deref(), Some(directory.join("c").to_str().unwrap()));
    assert_eq!(place.key.as_deref(), Some("/k"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_check_shows_them() {
    let shown = check(&parse("nics.toml", NICS).unwrap(), None);
    assert!(shown.starts_with("System line/vi: 2 NICs, hash 0x"), "{shown}");
    for said in ["left", "cell-3", "10.0.0.7:7700", "[fd00::8]:7700", "TCP, first port", "Rules of nodes"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

/// Two NICs on a machine and one beyond TCP, with rules of all sorts.
const RULED: &str = r#"[system]
name = "line"
[network]
insecure = true
[[nic]]
name = "left"
processes = 2
at = ["shm", "tcp://10.0.0.7:7700"]
[[nic.rule]]
class = 2
filter = { every = 5 }
[[nic.rule]]
class = 3
filter = { interval = "250 us", latest = "2 ms" }
[[nic.rule]]
class = 4
regulation = { messages = "1000 /s", messages_burst = 10 }
[[nic]]
name = "right"
processes = 1
[[nic.rule]]
class = 4
regulation = { messages = "200 /s", messages_burst = 1 }
[[nic]]
name = "far"
machine = "elsewhere"
at = ["shm", "tcp://10.0.0.8:7700"]
processes = 1
[[nic.rule]]
class = 4
regulation = { messages = "300 /s", messages_burst = 2 }
"#;

#[test]
fn a_check_bounds_wake_ups_and_delays_of_each_class() {
    let description = parse("ruled.toml", RULED).unwrap_or_else(|report| panic!("{report}"));
    let shown = check(&description, None);
    let part = &shown[shown.find("Response times of NICs").unwrap_or_else(|| panic!("{shown}"))..];
    let row = |nic: &str, class: usize| -> Vec<String> {
        let of_nic: Vec<&str> = part.lines().filter(|line| line.starts_with(&format!("│ {nic} "))).collect();
        assert_eq!(of_nic.len(), 8, "a row for each class: {part}");
        let line = of_nic[class].split(['│', '┆']).map(|cell| cell.trim().to_owned());
        line.filter(|cell| !cell.is_empty()).collect()
    };
    assert_eq!(row("left", 0)[1..], ["0", "no bound: by each frame", "at once", "nothing"]);
    assert_eq!(row("left", 2)[2..4], ["no bound: by one frame in 5", "100 ms"]);
    let two_in_memory = "shm: 224 frames (2108672 B), 32 of other links";
    assert_eq!(row("left", 3)[2..], ["4000", "2 ms", two_in_memory]);
    // The other process of its own NIC, `right` and `far`.
    assert_eq!(row("left", 4)[2..4], ["1513, as frames come", "at once"]);
    assert_eq!(row("left", 5)[2], "no bound: by each frame");
    // `right` has no address, and dials.
    assert_eq!(row("far", 4)[2], "2221, as frames come");
    assert_eq!(row("far", 7)[4], "TCP: 128 KiB + the kernel's");
    assert_eq!(part.matches("TCP: 128 KiB + the kernel's").count(), 3 * 7, "{part}");
    for said in ["a piece each", "64 KiB or behind a burst 128 KiB", "pieces of 16 KiB", "Not known here", "bench via"]
    {
        assert!(part.contains(said), "{said}: {part}");
    }
    assert!(!part.contains("`intake`"), "none has one: {part}");
    let taking = check(&parse("taking.toml", TAKING).unwrap_or_else(|report| panic!("{report}")), None);
    assert!(taking.contains("two of its bursts and a message of each other process"), "{taking}");
    let alone =
        check(&parse("s.toml", "[system]\nname = \"s\"\n[[nic]]\nname = \"one\"\nprocesses = 1\n").unwrap(), None);
    assert!(alone.contains("0, as frames come") && alone.contains("nothing: no other process"), "{alone}");
    for width in [60, 80, 100, 130] {
        let fitted = check(&description, Some(width));
        assert!(fitted.lines().all(|line| line.chars().count() <= width), "{fitted}");
    }
}

const TAKING: &str = r#"[system]
name = "line"
[[nic]]
name = "left"
processes = 2
[[nic.rule]]
class = 3
intake = { messages = "1000 /s", bytes = "1 MiB/s" }
[[nic.rule]]
class = 0
regulation = { messages = "50 /s" }
[[nic]]
name = "right"
processes = 1
"#;

#[test]
fn a_nic_takes_so_much_of_a_class_and_the_most_urgent_can_be_capped() {
    let description = parse("taking.toml", TAKING).unwrap_or_else(|report| panic!("{report}"));
    let nodes = &description.nics().topology.nodes;
    let bounds = Regulation { messages_per_s: 1000, messages_burst: 10, bytes_per_s: 1 << 20, bytes_burst: 10_485 };
    let intake = ClassIntake { class: Priority::new(3).unwrap(), regulation: bounds };
    assert_eq!((&nodes[&slot(0, 0)].intakes[..], &nodes[&slot(0, 1)].intakes[..]), (&[intake][..], &[intake][..]));
    assert_eq!(nodes[&slot(1, 0)].intakes, []);
    assert_eq!(nodes[&slot(0, 0)].rules[0].regulation.messages_per_s, 50);
    let again = print(&description);
    let reread = parse("again.toml", &again).unwrap_or_else(|report| panic!("{report}\n{again}"));
    assert_eq!(reread.nics(), description.nics());
    let hash = |text: &str| parse("taking.toml", text).unwrap_or_else(|report| panic!("{report}")).nics().topology.hash;
    assert_ne!(hash(TAKING), hash(&TAKING.replace("1000 /s", "1001 /s")));
    let shown = check(&description, Some(80));
    for said in ["Intake of NICs", "left-1", "1000 /s, burst 10", "two bursts"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

#[test]
fn an_intake_of_a_node_and_a_filter_of_the_most_urgent_class_are_refused() {
    let wrong = [
        (TAKING.replace("regulation =", "filter = { every = 2 }\nregulation ="), "always wake"),
        (
            TAKING
                .replace("[[nic]]\nname = \"left\"\nprocesses = 2\n[[nic", "[[node]]\ndomain = 0\nnode = 1\n[[node")
                .replace("\n[[nic.rule]]\nclass = 0", "\n[[node.rule]]\nclass = 1"),
            "intake",
        ),
    ];
    for (text, said) in wrong {
        let Err(report) = parse("wrong.toml", &text) else { panic!("it is accepted: {text}") };
        assert!(report.to_string().contains(said), "{said}: {report}");
    }
}
