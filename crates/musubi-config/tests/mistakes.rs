//! Every kind of mistake is reported at its place, nothing else is, and all mistakes of a file are reported at once.
//!
//! How it works: in the texts, `§` stands before each place that must be reported; it is taken out before parsing.

use musubi_config::{Finding, parse};

/// Two domains and one channel without mistakes, to add to.
const SOUND: &str = r#"
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
block_size = "64 B"
"#;

/// The text without marks, and the marks' lines and columns.
fn unmark(marked: &str) -> (String, Vec<(usize, usize)>) {
    let mut places = Vec::new();
    for (line, text) in (1..).zip(marked.lines()) {
        let columns = text.char_indices().filter(|(_, c)| *c == '§').map(|(at, _)| text[..at].chars().count());
        places.extend(columns.enumerate().map(|(earlier, column)| (line, column - earlier + 1)));
    }
    (marked.replace('§', ""), places)
}

/// Checks that exactly the marked places are reported, each with a message that contains the given words.
#[track_caller]
fn expect(marked: &str, words: &[&str]) -> Vec<Finding> {
    let (text, places) = unmark(marked);
    let report = parse("test.toml", &text).expect_err("the description has mistakes");
    let (plain, errors) = (report.render(false), report.errors());
    let found: Vec<(usize, usize)> = errors.iter().map(|error| (error.line, error.column)).collect();
    assert_eq!(found, places, "{plain}");
    assert_eq!(errors.len(), words.len(), "{plain}");
    for ((error, word), (line, column)) in errors.iter().zip(words).zip(places) {
        assert!(error.message.contains(word), "`{word}` in: {}", error.message);
        assert!(plain.contains(&format!("--> test.toml:{line}:{column}\n")), "{plain}");
        let shown = text.lines().nth(line - 1).unwrap_or_default();
        assert!(
            plain.lines().any(|row| row.ends_with(shown) && row.contains('|')),
            "line {line} is not shown:\n{plain}"
        );
    }
    errors
}

/// [`expect`] for lines after [`SOUND`].
#[track_caller]
fn expect_after_sound(marked: &str, words: &[&str]) -> Vec<Finding> {
    expect(&format!("{SOUND}{marked}"), words)
}

/// [`expect`] for [`SOUND`] with one line replaced.
#[track_caller]
fn expect_instead(line: &str, marked: &str, words: &[&str]) -> Vec<Finding> {
    assert_eq!(SOUND.matches(line).count(), 1, "{line} is not one line of the sound description");
    expect(&SOUND.replace(line, marked), words)
}

#[test]
fn the_texts_to_start_from_are_without_mistakes() {
    for text in [SOUND, include_str!("../../../examples/system.toml"), include_str!("board.toml")] {
        let description = parse("test.toml", text).unwrap_or_else(|report| panic!("{report}"));
        assert!(description.with_plan(|plan| plan.check()).is_ok());
    }
}

#[test]
fn five_different_mistakes_are_all_reported() {
    let text = r#"[system]
name = "press"
[[domain]]
name = "control"
role = "master"
§colour = "red"
[[domain]]
name = "gateway"
role = §"master"
[[fifo]]
name = "telemetry"
from = "control"
to = §"gatewy"
block_size = §64
[[fifo]]
name = §"telemetry"
from = "control"
to = §"control"
block_size = §"0 B"
"#;
    let words = ["`colour`", "one Master", "no domain", "needs a unit", "two channels", "to itself", "out of range"];
    let errors = expect(text, &words);
    assert_eq!(errors[2].help.as_deref(), Some("did you mean `gateway`?"));
}

#[test]
fn unknown_keys_come_with_a_suggestion() {
    let errors = expect_after_sound("§block = 16\n", &["`block` in a [[fifo]]"]);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean `blocks`?"));
    let errors = expect_after_sound("filter = { §evry = 2 }\n", &["`evry` in a filter"]);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean `every`?"));
    expect_after_sound("regulation = { §rate = \"1 /s\" }\n", &["`rate` in a regulation"]);
    expect_after_sound("[§fifos]\n", &["`fifos` in the description"]);
    expect_instead("role = \"remote\"\n", "role = \"remote\"\n§\"a\\u0007b\" = 1\n", &["`a\\u{7}b`"]);
}

#[test]
fn missing_keys_are_reported_where_their_table_begins() {
    let text = "§[system]\n§[[domain]]\nrole = \"master\"\n§[[domain]]\nname = \"a\"\n";
    expect(text, &["[system] needs the key `name`", "a [[domain]] needs the key `name`", "needs the key `role`"]);
    let words = ["needs the key `name`", "needs the key `from`", "needs the key `to`", "needs the key `block_size`"];
    let (text, _) = unmark(&format!("{SOUND}[[fifo]]\n"));
    let report = parse("test.toml", &text).expect_err("keys are missing");
    let errors = report.errors();
    assert!(errors.iter().all(|error| (error.line, error.column) == (15, 1)), "{report}");
    assert!(errors.iter().zip(words).all(|(error, words)| error.message.contains(words)), "{report}");
    let errors = parse("test.toml", &format!("{SOUND}[[smem]]\n")).expect_err("keys are missing").errors();
    assert_eq!(errors.len(), 3);
    let errors = parse("test.toml", "").expect_err("an empty file is no description").errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| (error.line, error.column) == (1, 1)));
}

#[test]
fn wrong_types_are_reported_with_what_they_are() {
    expect_instead("name = \"press\"", "name = §7", &["a text in quotes, not an integer"]);
    expect_instead("role = \"remote\"", "role = §true", &["a text in quotes, not true or false"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\nuid = §1000", &["a list such as"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\nuid = [§1.5]", &["a plain integer, not a number with"]);
    expect_after_sound("blocks = §\"16\"\n", &["a plain integer, not a text"]);
    expect_after_sound("filter = §2\n", &["a table such as"]);
    expect_after_sound("budget = §[]\n", &["a time such as \"100 us\", not a list"]);
    expect_instead("block_size = \"64 B\"", "block_size = §1979-05-27", &["a size such as \"64 KiB\", not a date"]);
    expect("§domain = §3\n[system]\nname = \"x\"\n", &["no domain", "begin each with [[domain]]"]);
}

#[test]
fn words_are_checked_and_suggested() {
    let errors = expect_instead("role = \"remote\"", "role = §\"remot\"", &["cannot be `remot`"]);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean \"remote\"?"));
    expect_instead("role = \"remote\"", "role = \"remote\"\nport = §\"windows\"", &["cannot be `windows`"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\ntrust = §\"none\"", &["cannot be `none`"]);
    expect_after_sound("on_receiver_restart = §\"forget\"\n", &["cannot be `forget`"]);
}

#[test]
fn quantities_need_their_unit() {
    expect_instead("block_size = \"64 B\"", "block_size = §64", &["`block_size` is a size and needs a unit"]);
    expect_instead("block_size = \"64 B\"", "block_size = §\"64\"", &["`block_size` is not a size: `64`"]);
    let errors = expect_instead("block_size = \"64 B\"", "block_size = §\"64 kib\"", &["not a size"]);
    assert!(errors[0].help.as_deref().is_some_and(|help| help.contains("did you mean the unit KiB?")));
    expect_after_sound("budget = §\"1.5 ms\"\n", &["not a time"]);
    expect_after_sound("budget = §\"5 KiB\"\n", &["not a time"]);
    expect_after_sound(
        "regulation = { messages = §\"1000\", bytes = §\"1 MiB\" }\n",
        &["rate of mess", "rate of bytes"],
    );
    expect_instead("block_size = \"64 B\"", "block_size = §\"99999999999 GiB\"", &["not a size"]);
}

#[test]
fn zero_and_absurd_values_are_out_of_range() {
    for size in ["0 B", "2 GiB"] {
        expect_instead("block_size = \"64 B\"", &format!("block_size = §\"{size}\""), &["out of range"]);
    }
    for blocks in ["0", "32769", "-1", "99999999999999999999"] {
        expect_after_sound(&format!("blocks = §{blocks}\n"), &["out of range"]);
    }
    expect_after_sound("priority = §8\n", &["`priority` is out of range: 8"]);
    expect_after_sound("budget = §\"0 ns\"\n", &["out of range"]);
    expect_after_sound("budget = §\"5 s\"\n", &["out of range: 5 s"]);
    expect_after_sound("sample_every = §-1\n", &["out of range"]);
    expect_after_sound("filter = { every = §0 }\n", &["out of range"]);
    expect_after_sound("regulation = { messages = §\"0 /s\" }\n", &["out of range"]);
    expect_after_sound("[liveness]\nheartbeat = §\"1 us\"\nstalled = §\"2 h\"\n", &["out of range", "not a time"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\nparticipants = §0\nspin = §\"1 GiB\"", &["range", "time"]);
    expect_after_sound("[[smem]]\nname = \"s\"\ndomains = [\"control\", \"gateway\"]\nsize = §\"0 B\"\n", &["range"]);
}

#[test]
fn names_must_be_valid_and_unique() {
    for name in ["", "1st", "a b", "kühler", "-a", "a.b", "abcdefghijklmnopqrstuvwxyz0123456"] {
        expect_instead("name = \"press\"", &format!("name = §\"{name}\""), &["not a valid name"]);
    }
    assert!(parse("ok", &SOUND.replace("press", "abcdefghijklmnopqrstuvwxyz012345")).is_ok());
    let text = SOUND.replace("name = \"gateway\"", "name = §\"control\"").replace("to = \"", "to = §\"");
    expect(&text, &["two domains are named `control`", "no domain `gateway`"]);
}

#[test]
fn both_places_of_a_double_name_are_shown() {
    let channel = "from = \"gateway\"\nto = \"control\"\nblock_size = \"1 B\"\n";
    expect_after_sound(&format!("[[fifo]]\nname = §\"telemetry\"\n{channel}"), &["two channels are named"]);
    expect_after_sound(&format!("[[fifo]]\nname = §\"Telemetry\"\n{channel}"), &["the same identifier"]);
    let smem = "[[smem]]\nname = §\"telemetry\"\ndomains = [\"control\", \"gateway\"]\nsize = \"1 B\"\n";
    expect_after_sound(smem, &["two channels are named"]);
    let (text, _) = unmark(&format!("{SOUND}{smem}"));
    let shown = parse("test.toml", &text).expect_err("a double name").render(false);
    assert!(shown.contains("first") && shown.contains("second"), "{shown}");
    assert!(shown.contains("11 | name = \"telemetry\"") && shown.contains("16 | name = \"telemetry\""), "{shown}");
}

#[test]
fn there_is_exactly_one_master() {
    expect_instead("role = \"remote\"", "role = §\"master\"", &["exactly one Master"]);
    expect(
        &SOUND.replace(
            "[[domain]]\nname = \"control\"\nrole = \"master\"",
            "§[[domain]]\nname = \"control\"\nrole = \"remote\"",
        ),
        &["no domain is the Master"],
    );
    let shown = parse("test.toml", &SOUND.replace("remote", "master")).expect_err("two Masters").render(false);
    assert!(shown.contains("first Master") && shown.contains("second Master"), "{shown}");
    expect("§domain = []\n[system]\nname = \"x\"\n", &["no domain"]);
}

#[test]
fn channels_join_known_and_different_domains() {
    expect_instead("to = \"gateway\"", "to = §\"control\"", &["from a domain to itself"]);
    let errors = expect_instead("to = \"gateway\"", "to = §\"gatewai\"", &["no domain `gatewai`"]);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean `gateway`?"));
    let smem = |domains: &str| format!("[[smem]]\nname = \"s\"\nsize = \"1 B\"\ndomains = {domains}\n");
    expect_after_sound(&smem("§[\"control\"]"), &["at least two domains"]);
    expect_after_sound(&smem("§[]"), &["at least two domains"]);
    expect_after_sound(&smem("[\"control\", \"gateway\", §\"control\"]"), &["`control` is a member twice"]);
    expect_after_sound(&smem("[\"control\", §\"storage\"]"), &["no domain `storage`"]);
    expect_after_sound(&smem("[\"control\", §7]"), &["a domain's name in quotes"]);
}

#[test]
fn limits_of_counts_are_kept() {
    expect_instead("role = \"remote\"", "role = \"remote\"\nparticipants = §65", &["out of range"]);
    let two = |first, second| {
        SOUND.replace("role = \"master\"", &format!("role = \"master\"\nparticipants = {first}")).replace(
            "[[domain]]\nname = \"gateway\"",
            &format!("§[[domain]]\nname = \"gateway\"\nparticipants = {second}"),
        )
    };
    expect(&two(32, 33), &["more than 64 participants"]);
    assert!(parse("ok", &unmark(&two(32, 32)).0).is_ok());
    let domains = |count: usize| -> String {
        (2..count).map(|number| format!("[[domain]]\nname = \"d{number}\"\nrole = \"remote\"\n")).collect()
    };
    assert!(parse("ok", &format!("{SOUND}{}", domains(32))).is_ok());
    let more = "§[[domain]]\nname = \"more\"\nrole = \"remote\"\n";
    expect_after_sound(&format!("{}{more}", domains(32)), &["33 domains, but at most 32"]);
    let fifo = |name: usize| {
        format!("[[fifo]]\nname = \"f{name}\"\nfrom = \"control\"\nto = \"gateway\"\nblock_size = \"1 B\"\n")
    };
    let fifos: String = (1..1024).map(fifo).collect();
    expect_after_sound(&format!("{fifos}§{}", fifo(1024)), &["1025 FIFO channels, but at most 1024"]);
    let smem =
        |name: usize| format!("[[smem]]\nname = \"s{name}\"\ndomains = [\"control\", \"gateway\"]\nsize = \"1 B\"\n");
    let smems: String = (0..256).map(smem).collect();
    expect_after_sound(&format!("{smems}§{}", smem(256)), &["257 SMEM channels, but at most 256"]);
}

#[test]
fn sections_end_at_four_gigabytes() {
    let large = SOUND.replace("[[fifo]]", "§[[fifo]]").replace("64 B", "1 GiB");
    expect(&large, &["8 blocks of 1 GiB do not fit a section"]);
    let half = |name| {
        format!(
            "[[fifo]]\nname = \"{name}\"\nfrom = \"control\"\nto = \"gateway\"\nblocks = 3\nblock_size = \"1 GB\"\n"
        )
    };
    let text = SOUND.replacen("[[domain]]", "§[[domain]]", 1);
    expect(&format!("{text}{}{}", half("a"), half("b")), &["the section of domain `control` passes 4 GiB"]);
}

#[test]
fn the_address_map_must_hold_everything() {
    let map = |lines: &str| SOUND.replace("name = \"press\"", &format!("name = \"press\"\n{lines}"));
    assert!(parse("ok", &map("base = 0x7000_0000\nsize = \"24 KiB\"")).is_ok());
    expect(&map("base = 0x7000_0000\nsize = §\"4 KiB\""), &["overflows: it has 4 KiB, but needs 24 KiB"]);
    expect(&map("base = §0x7000_0010\nsize = §\"24577 B\""), &["`base` is not a multiple", "`size` is not a multiple"]);
    let past_the_end = map("base = 0x7fff_ffff_ffff_f000\nsize = §\"17179869183 GiB\"");
    expect(&past_the_end, &["passes the end of the 64-bit address space"]);
    expect(&map("base = §4096"), &["`base` without `size`"]);
    expect(&map("cells = §3"), &["out of range"]);
    assert!(parse("ok", &map("cells = 1\nbase = 0xffff_a000\nsize = \"24 KiB\"")).is_ok(), "up to the last byte");
    let beyond = map("cells = 1\nbase = 0xffff_b000\nsize = §\"24 KiB\"");
    expect(&beyond, &["ends at 0x100000fff, which one cell of a devicetree cannot say"]);
    assert!(parse("ok", &beyond.replace("cells = 1", "cells = 2").replace('§', "")).is_ok());
    expect(&map("size = §\"4 KiB\""), &["`size` without `base`"]);
    expect(&map("base = §-4096\nsize = \"16 KiB\""), &["out of range"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\nport = §\"uio\"", &["needs an address map"]);
    expect_instead("role = \"remote\"", "role = \"remote\"\nport = §\"metal\"", &["needs an address map"]);
}

/// Without an address map it is the length alone that must fit.
#[test]
fn a_system_without_an_address_map_must_fit_its_cells() {
    let large = |cells: &str| {
        let channels: String = ["a", "b", "c", "d"]
            .iter()
            .map(|name| {
                format!("[[smem]]\nname = \"{name}\"\ndomains = [\"control\", \"gateway\"]\nsize = \"1 GiB\"\n")
            })
            .collect();
        SOUND.replace("name = \"press\"", &format!("name = \"press\"\n{cells}")) + &channels
    };
    expect(&large("cells = §1"), &["the system needs"]);
    assert!(parse("ok", &large("cells = 2")).is_ok());
}

#[test]
fn guarantees_must_make_sense() {
    let words = ["`messages_burst` without `messages`", "`bytes_burst` without `bytes`"];
    expect_after_sound("regulation = { messages_burst = §10, bytes_burst = §\"64 B\" }\n", &words);
    expect_after_sound("regulation = { bytes = \"1 KiB/s\", bytes_burst = §\"63 B\" }\n", &["smaller than a block"]);
    expect_after_sound("filter = { interval = \"2 ms\", latest = §\"1 ms\" }\n", &["`latest` (1 ms) is shorter"]);
    expect_after_sound("filter = { interval = §\"200 ms\" }\n", &["`latest` (100 ms) is shorter than `interval`"]);
    expect_after_sound("filter = { level = §9 }\n", &["`level` is 9, but only 8 messages fit"]);
    let stalled = "[liveness]\nheartbeat = \"500 ms\"\nstalled = §\"500 ms\"\n";
    expect_after_sound(stalled, &["`stalled` (500 ms) is not longer than `heartbeat` (500 ms)"]);
    expect_after_sound("[liveness]\nheartbeat = §\"1 s\"\n", &["`stalled` (500 ms) is not longer"]);
}

#[test]
fn gates_need_hardware_and_guard_one_channel() {
    let smem = |name: &str, lock: &str| {
        format!("[[smem]]\nname = \"{name}\"\ndomains = [\"control\", \"gateway\"]\nsize = \"1 B\"\nlock = {lock}\n")
    };
    expect_after_sound(&smem("s", "{ gate = §3 }"), &["a system of Linux processes"]);
    expect_after_sound(&smem("s", "§\"bakry\""), &["cannot be `bakry`"]);
    expect_after_sound(&smem("s", "§7"), &["\"bakery\" or a table"]);
    expect_after_sound(&smem("s", "{ gate = §65536 }"), &["out of range"]);
    let board = include_str!("board.toml");
    expect(
        &board.replace("size = \"20 KB\"", "size = \"20 KB\"\nlock = { gate = §3 }"),
        &["gate 3 guards two channels"],
    );
}

#[test]
fn accounts_are_looked_up() {
    let with = |lines: &str| SOUND.replace("role = \"remote\"", &format!("role = \"remote\"\n{lines}"));
    let description =
        parse("ok", &with("uid = [7, \"root\", 7]\ngid = [\"root\"]")).unwrap_or_else(|report| panic!("{report}"));
    description.with_plan(|plan| assert_eq!((plan.domains[1].uids, plan.domains[1].gids), (&[0, 7][..], &[0][..])));
    expect(
        &with("uid = [§\"no such user\"]\ngid = [0, §\"no such group\"]"),
        &["there is no user", "there is no group"],
    );
    expect(&with("uid = [§4294967295, §-1]"), &["out of range", "out of range"]);
}

#[test]
fn several_syntax_errors_are_reported_without_their_consequences() {
    let text = "[system]\nname = §\n[[domain]]\nname = \"a\" §\"b\"\nrole = §\"mastr\"\n";
    expect(text, &["not valid TOML", "not valid TOML", "cannot be `mastr`"]);
    // Without the filter, `from = "control"` would name an unknown domain.
    expect_instead("name = \"control\"", "name = §", &["not valid TOML"]);
    expect_after_sound("blocks = 1\n§blocks = 2\n", &["duplicate key"]);
}

#[test]
fn columns_count_characters() {
    expect_instead(
        "role = \"remote\"",
        "role = \"remote\"\nuid = [\"ünknown\", §true]".replacen("[", "[§", 1).as_str(),
        &["`ünknown`", "true or false"],
    );
}

#[test]
fn files_that_cannot_be_read_are_reported_with_their_name() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let missing = directory.path().join("missing.toml");
    let errors = musubi_config::load(&missing).expect_err("there is no such file").errors();
    assert_eq!((errors.len(), errors[0].line), (1, 0));
    assert!(errors[0].message.contains("missing.toml"), "{errors:?}");
    let binary = directory.path().join("binary.toml");
    std::fs::write(&binary, [b'a', 0xff]).expect("written");
    assert!(musubi_config::load(&binary).expect_err("not text").to_string().contains("not UTF-8 text from byte 1"));
    let sound = directory.path().join("sound.toml");
    std::fs::write(&sound, SOUND).expect("written");
    assert!(musubi_config::load(&sound).is_ok());
}

#[test]
fn colours_are_only_there_on_request() {
    let report = parse("test.toml", "[system]\n").expect_err("not complete");
    assert!(report.render(true).contains('\u{1b}'));
    assert!(!report.render(false).contains('\u{1b}'));
    assert_eq!(report.to_string(), report.render(false));
}

#[test]
fn doorbells_that_cannot_be() {
    let board = |domain: &str| {
        format!(
            "[system]\nname = \"b\"\nbase = 0x7000_0000\nsize = \"1 MiB\"\n\
             [[domain]]\nname = \"r5\"\nrole = \"master\"\nport = \"metal\"\n{domain}\n"
        )
    };
    expect(
        &board("doorbell = { interrupt = §31, register = §0xF900_020E, value = §0 }"),
        &["interrupt", "register", "value"],
    );
    expect(&board("doorbell = §{ register = 8, value = 1 }"), &["needs the key `interrupt`"]);
    expect(&board("doorbell = §121"), &["a table such as"]);
    expect(&board("doorbell = { interrupt = 121, register = 8, value = 1, §edge = true }"), &["unknown key `edge`"]);
    expect(
        &board(
            "doorbell = { interrupt = 61, register = 8, value = 1, level = { acknowledge = §6, unmask = §-4, value = §0 } }",
        ),
        &["acknowledge", "unmask", "value"],
    );
    expect(
        &board("doorbell = { interrupt = 61, register = 8, value = 1, level = §{ unmask = 4, value = 1 } }"),
        &["needs the key `acknowledge`"],
    );
    let processes = SOUND
        .replace("role = \"remote\"", "role = \"remote\"\ndoorbell = §{ interrupt = 121, register = 8, value = 1 }");
    expect(&processes, &["is made of Linux processes"]);
}
