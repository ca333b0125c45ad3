//! Each limit of the description at its border: the last value that is taken, and the first that is not.
//!
//! How it works: a row is a text with `{}` where the value stands; the value is taken without a mistake, or the message says
//! that it is out of range.

use musubi_config::parse;

const FIFO: &str = r#"
[system]
name = "press"
[[domain]]
name = "control"
role = "master"
[[domain]]
name = "gateway"
role = "remote"
[[fifo]]
name = "telemetry"
from = "control"
to = "gateway"
"#;
const NODE: &str = "[system]\nname = \"press\"\n[[node]]\ndomain = 0\nnode = 1\n[network]\n";

/// A key with all that must stand beside it, the values at its lower and upper border, and those beyond.
struct Limit {
    before: &'static str,
    line: &'static str,
    taken: &'static [&'static str],
    refused: &'static [&'static str],
}

const LIMITS: &[Limit] = &[
    fifo("blocks = 1\nblock_size = {}", &["\"1 B\"", "\"1 GiB\""], &["\"0 B\"", "\"1073741825 B\""]),
    fifo("block_size = \"8 B\"\nblocks = {}", &["1", "16384"], &["0", "16385"]),
    fifo("block_size = \"8 B\"\npriority = {}", &["0", "7"], &["8", "-1"]),
    fifo("block_size = \"8 B\"\nsample_every = {}", &["0", "4294967295"], &["4294967296"]),
    fifo("block_size = \"8 B\"\nbudget = {}", &["\"1 ns\"", "\"4 s\""], &["\"0 ns\"", "\"4000000001 ns\""]),
    fifo("block_size = \"8 B\"\nfilter = { every = {} }", &["1", "4294967295"], &["0", "4294967296"]),
    fifo("block_size = \"8 B\"\nfilter = { level = {} }", &["0", "8"], &["16385"]),
    fifo("block_size = \"8 B\"\nfilter = { latest = {} }", &["\"1 ns\"", "\"3600 s\""], &["\"0 ns\"", "\"3601 s\""]),
    fifo(
        "block_size = \"8 B\"\nfilter = { latest = \"3600 s\", interval = {} }",
        &["\"1 ns\"", "\"3600 s\""],
        &["\"0 ns\"", "\"3601 s\""],
    ),
    fifo("block_size = \"8 B\"\nregulation = { messages = {} }", &["\"1 /s\"", "\"4294967295 /s\""], &["\"0 /s\""]),
    fifo("block_size = \"8 B\"\nregulation = { bytes = {} }", &["\"1 B/s\"", "\"1024 GiB/s\""], &["\"1025 GiB/s\""]),
    fifo(
        "block_size = \"8 B\"\n[liveness]\nstalled = \"3600 s\"\nheartbeat = {}",
        &["\"1 ms\"", "\"60 s\""],
        &["\"999 us\"", "\"60001 ms\""],
    ),
    fifo(
        "block_size = \"8 B\"\n[liveness]\nheartbeat = \"1 ms\"\nstalled = {}",
        &["\"2 ms\"", "\"3600 s\""],
        &["\"999 us\"", "\"3600001 ms\""],
    ),
    fifo(
        "block_size = \"8 B\"\n[[smem]]\nname = \"parameters\"\ndomains = [\"control\", \"gateway\"]\nsize = {}",
        &["\"1 B\"", "\"1 GiB\""],
        &["\"0 B\"", "\"1073741825 B\""],
    ),
    domain("spin = {}", &["\"0 ns\"", "\"1 s\""], &["\"1000000001 ns\""]),
    domain("participants = {}", &["1"], &["0", "65"]),
    network("heartbeat = {}", &["\"1 ms\""], &["\"999 us\"", "\"60001 ms\""]),
    network("silence = \"3600 s\"\nresume = \"3600 s\"\nheartbeat = {}", &["\"60 s\""], &["\"60001 ms\""]),
    network("silence = {}", &["\"3600 s\""], &["\"3600001 ms\""]),
    network("resume = {}", &["\"1 ms\"", "\"3600 s\""], &["\"999 us\"", "\"3600001 ms\""]),
    network("piece = {}", &["\"512 B\"", "\"1 MiB\""], &["\"511 B\"", "\"1048577 B\""]),
    network("window = {}", &["\"2 MiB\"", "\"1 GiB\""], &["\"2097151 B\"", "\"1073741825 B\""]),
];

const fn fifo(line: &'static str, taken: &'static [&'static str], refused: &'static [&'static str]) -> Limit {
    Limit { before: FIFO, line, taken, refused }
}

const fn domain(line: &'static str, taken: &'static [&'static str], refused: &'static [&'static str]) -> Limit {
    let before = "[system]\nname = \"a\"\n[[domain]]\nname = \"g\"\nrole = \"remote\"\n\
                  [[domain]]\nname = \"c\"\nrole = \"master\"\n";
    Limit { before, line, taken, refused }
}

const fn network(line: &'static str, taken: &'static [&'static str], refused: &'static [&'static str]) -> Limit {
    Limit { before: NODE, line, taken, refused }
}

#[test]
fn the_last_value_is_taken_and_the_first_beyond_is_not() {
    let mut wrong = Vec::new();
    for limit in LIMITS {
        let found = |value: &str| {
            let text = format!("{}{}\n", limit.before, limit.line.replacen("{}", value, 1));
            parse("limits.toml", &text).map(|_| ()).map_err(|report| report.render(false))
        };
        for value in limit.taken {
            if let Err(report) = found(value) {
                wrong.push(format!("{} with {value} is refused: {report}", limit.line));
            }
        }
        for value in limit.refused {
            match found(value) {
                Err(report) if report.contains("range") => {}
                other => wrong.push(format!("{} with {value}: {other:?}", limit.line)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn as_many_users_as_may_be_listed() {
    for (count, is_taken) in [(256, true), (257, false), (258, false)] {
        let users: Vec<String> = (0..count).map(|user| user.to_string()).collect();
        let text = format!(
            "[system]\nname = \"a\"\n[[domain]]\nname = \"c\"\nrole = \"master\"\nuid = [{0}]\ngid = [{0}]\n",
            users.join(", ")
        );
        assert_eq!(parse("limits.toml", &text).is_ok(), is_taken, "{count}");
    }
}

#[test]
fn latest_may_be_as_short_as_the_interval() {
    let text = format!("{FIFO}block_size = \"8 B\"\nfilter = {{ interval = \"2 ms\", latest = \"2 ms\" }}\n");
    parse("limits.toml", &text).unwrap_or_else(|report| panic!("{report}"));
}

#[test]
fn a_report_says_how_many_mistakes_there_are_and_shows() {
    let with = |count: usize| {
        let keys: String = (0..count).map(|number| format!("k{number} = 1\n")).collect();
        parse("many.toml", &format!("{keys}{FIFO}block_size = \"8 B\"\n")).expect_err("unknown keys")
    };
    for (count, summary) in [
        (1, "1 mistake in many.toml"),
        (2, "2 mistakes in many.toml"),
        (100, "100 mistakes in many.toml"),
        (101, "101 mistakes in many.toml, of which the first 100 are shown"),
        (1000, "1000 mistakes in many.toml, of which the first 100 are shown"),
        (1001, "1000 mistakes in many.toml, of which the first 100 are shown"),
    ] {
        let report = with(count);
        assert_eq!(report.errors().len(), count.min(1000));
        let shown = report.render(false);
        assert!(shown.trim_end().ends_with(summary), "{count}: {}", shown.lines().last().unwrap_or_default());
    }
}

#[test]
fn each_unit_is_what_it_says() {
    let read = |rule: &str| {
        let description = parse("units.toml", &format!("{FIFO}block_size = \"8 B\"\nregulation = {{ {rule} }}\n"));
        let description = description.unwrap_or_else(|report| panic!("{report}"));
        description.with_plan(|plan| plan.fifos[0].regulation)
    };
    let units = [
        ("B", 1),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    for (unit, bytes) in units {
        let regulation = read(&format!("bytes = \"3 {unit}/s\", bytes_burst = \"9 {unit}\""));
        assert_eq!((regulation.bytes_per_s, regulation.bytes_burst), (3 * bytes, 9 * bytes), "{unit}");
    }
    assert_eq!(read("messages = \"7 /s\"").messages_per_s, 7);
}
