//! Properties of all descriptions: writing and reading are inverse, the hash follows the meaning, no input panics.
//!
//! How it works: a generator makes texts of valid descriptions from a system's parts, in random order of keys and
//! spelling of quantities; another mangles texts.

use musubi_config::{Description, MemoryMap, check, parse, print};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One table: its header and its lines, whose order does not matter.
type Table = (String, Vec<String>);

const MAPPED: &str = "base = 0x10_0000_0000\nsize = \"1024 GiB\"";

fn system() -> impl Strategy<Value = Table> {
    let name = "[a-zA-Z][a-zA-Z0-9_-]{0,31}";
    (name, any::<bool>()).prop_map(|(name, mapped)| {
        let mut lines = vec![format!("name = \"{name}\"")];
        lines.extend(mapped.then(|| MAPPED.to_owned()));
        ("[system]".to_owned(), lines)
    })
}

/// Present or not.
fn maybe(line: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), line]
}

fn time(limit_us: u64) -> impl Strategy<Value = String> {
    (1..=limit_us, select(&[("us", 1), ("ns", 1000)][..]))
        .prop_map(|(number, (unit, scale))| format!("\"{} {unit}\"", number * scale))
}

fn size(limit: u64) -> impl Strategy<Value = String> {
    prop_oneof![
        (1..=limit).prop_map(|bytes| format!("\"{bytes} B\"")),
        (1..=limit.div_ceil(1024)).prop_map(|bytes| format!("\"{bytes}KiB\"")),
        (1..=limit.div_ceil(1000)).prop_map(|bytes| format!("\"{bytes}  KB\"")),
    ]
}

/// A domain without name and role.
fn domain() -> impl Strategy<Value = Vec<String>> {
    (
        maybe((1..=3u16).prop_map(|count| format!("participants = {count}"))),
        maybe(select(&["trusted", "may-crash", "hostile"][..]).prop_map(|word| format!("trust = \"{word}\""))),
        maybe(vec(any::<u16>(), 0..4).prop_map(|uids| format!("uid = {uids:?}"))),
        maybe(vec(any::<u16>(), 0..4).prop_map(|gids| format!("gid = {gids:?}"))),
        maybe(time(1_000_000).prop_map(|time| format!("spin = {time}"))),
    )
        .prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e])
}

/// A FIFO channel without name, from and to.
fn fifo() -> impl Strategy<Value = Vec<String>> {
    (
        size(100_000).prop_map(|size| format!("block_size = {size}")),
        maybe((1..=300u32).prop_map(|blocks| format!("blocks = {blocks}"))),
        maybe((0..8u8).prop_map(|class| format!("priority = {class}"))),
        maybe((1..9u32, 0..2u32, time(90_000)).prop_map(|(every, level, interval)| {
            format!("filter = {{ every = {every}, level = {level}, interval = {interval} }}")
        })),
        maybe((1..=u32::MAX, 1..=1u64 << 30).prop_map(|(messages, bytes)| {
            format!("regulation = {{ messages = \"{messages} /s\", bytes = \"{bytes} B/s\" }}")
        })),
        maybe(time(4_000_000).prop_map(|time| format!("budget = {time}"))),
        maybe(select(&["keep", "drop"][..]).prop_map(|word| format!("on_receiver_restart = \"{word}\""))),
        maybe(any::<u32>().prop_map(|every| format!("sample_every = {every}"))),
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| vec![a, b, c, d, e, f, g, h])
}

fn domains() -> impl Strategy<Value = Vec<Table>> {
    vec(domain(), 2..6).prop_map(|domains| {
        let named = domains.into_iter().enumerate().map(|(number, mut lines)| {
            let role = if number == 1 { "master" } else { "remote" };
            lines.extend([format!("name = \"d-{number}\""), format!("role = \"{role}\"")]);
            ("[[domain]]".to_owned(), lines)
        });
        named.collect()
    })
}

/// Channels between two different domains each.
fn channels() -> impl Strategy<Value = Vec<(Index, Index, Vec<String>)>> {
    vec((any::<Index>(), any::<Index>(), fifo()), 0..6)
}

/// The tables of a valid description, in an order that a file may have.
fn description() -> impl Strategy<Value = Vec<Table>> {
    (system(), domains(), channels(), maybe(size(1 << 20)), time(1_000_000)).prop_map(
        |(system, domains, channels, smem_size, stalled_beyond)| {
            let count = domains.len();
            let mut tables = vec![system];
            tables.extend(domains);
            for (number, (from, distance, mut lines)) in channels.into_iter().enumerate() {
                let from = from.index(count);
                let to = (from + 1 + distance.index(count - 1)) % count;
                lines.push(format!("name = \"c{number}\"\nfrom = \"d-{from}\"\nto = \"d-{to}\""));
                tables.push(("[[fifo]]".to_owned(), lines));
            }
            if !smem_size.is_empty() {
                let lines = vec!["name = \"s\"".to_owned(), "domains = [\"d-1\", \"d-0\"]".to_owned()];
                tables.push(("[[smem]]".to_owned(), [lines, vec![format!("size = {smem_size}")]].concat()));
            }
            tables.push(("[liveness]".to_owned(), vec![format!("heartbeat = \"1 ms\"\n# {stalled_beyond}")]));
            tables
        },
    )
}

fn text(tables: &[Table]) -> String {
    tables.iter().map(|(header, lines)| format!("{header}\n{}\n\n", lines.join("\n"))).collect()
}

/// The same description, written differently: keys backwards, comments, empty lines, tables of other kinds moved.
fn rewritten(tables: &[Table]) -> String {
    let mut tables: Vec<Table> = tables.to_vec();
    tables.sort_by_key(|(header, _)| std::cmp::Reverse(header.clone()));
    for (_, lines) in &mut tables {
        lines.reverse();
        lines.push("# a comment\n   \n".to_owned());
    }
    text(&tables)
}

fn read(text: &str) -> Description {
    parse("generated.toml", text).unwrap_or_else(|report| panic!("{report}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_parsing_are_inverse(tables in description()) {
        let first = read(&text(&tables));
        let second = read(&print(&first));
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(print(&first), print(&second));
        prop_assert!(first.with_plan(|plan| plan.check()).is_ok());
    }

    #[test]
    fn the_hash_follows_the_meaning_and_not_the_text(tables in description()) {
        let description = read(&text(&tables));
        prop_assert_eq!(&description, &read(&rewritten(&tables)));
        let printed = print(&description);
        for (old, new) in [("role = \"master\"", "role = \"master\"\nuid = [65536]"), ("1 ms", "2 ms"), ("d-1", "d-x")] {
            let changed = match old.starts_with("role") {
                true => printed.replacen("uid = [", "uid = [65536, ", 1),
                false => printed.replace(old, new),
            };
            prop_assert_ne!(read(&changed).hash(), description.hash(), "{}", changed);
        }
    }

    #[test]
    fn every_description_has_a_map_and_a_report(tables in description()) {
        let description = read(&text(&tables));
        let map = MemoryMap::of(&description);
        let mut end = 0;
        for region in map.regions() {
            prop_assert!(region.offset == end && region.bytes > 0 && region.bytes % 4096 == 0);
            end += region.bytes;
        }
        prop_assert_eq!(map.bytes(), end);
        let report = check(&description, None);
        prop_assert!(map.regions().iter().all(|region| report.contains(&region.name)));
        let directory = tempfile::tempdir()?;
        let paths = musubi_config::generate(&description, directory.path());
        prop_assert!(paths.is_ok_and(|paths| paths.len() == 5));
    }

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        render(&text);
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        render(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn mangled_descriptions_never_panic(
        tables in description(),
        cuts in vec((any::<Index>(), 0..6usize, "[\\[\\]{}\"=#\n a-z0-9\u{7}ü]{0,4}"), 1..12),
    ) {
        let mut text: Vec<char> = text(&tables).chars().collect();
        for (at, length, inserted) in cuts {
            let at = at.index(text.len() + 1);
            let end = (at + length).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        render(&text.into_iter().collect::<String>());
    }
}

/// Parses and renders; whatever is reported must lie inside the text.
fn render(text: &str) {
    let Err(report) = parse("random.toml", text) else { return };
    assert!(!report.errors().is_empty());
    for error in report.errors() {
        assert!((1..=text.lines().count() + 1).contains(&error.line) && error.column >= 1, "{error:?}");
    }
    assert!(!report.render(false).is_empty() && !report.render(true).is_empty());
}
