//! docs/layout.md says the same as the constants: every table of words, and the worked example.
// Miri would find nothing here: this is text and constants.
#![cfg(not(any(loom, miri)))]

use std::collections::BTreeMap;

use musubi_core::layout::{self, Part};
use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};

const DOCUMENT: &str = include_str!("../../../docs/layout.md");
const SOURCE: &str = concat!(include_str!("../src/layout.rs"), include_str!("../src/layout/links.rs"));

/// Byte offsets of a module's words, by name.
macro_rules! words {
    ($module:path: $($word:ident)*) => {{
        use $module as module;
        BTreeMap::from([$((stringify!($word).to_owned(), module::$word * 4)),*])
    }};
}

fn constants() -> BTreeMap<&'static str, BTreeMap<String, u32>> {
    BTreeMap::from([
        (
            "header",
            words!(layout::header: MAGIC VERSION PLAN_LOW PLAN_HIGH SECTION_BYTES PARTICIPANT DOMAIN EPOCH PROCESS STATE
                START_LOW START_HIGH HEARTBEAT_MS WORDS),
        ),
        (
            "root",
            words!(layout::root: MAGIC VERSION PLAN_LOW PLAN_HIGH PARTICIPANT EPOCH LEFT SEGMENTS FORCED BEAT BEAT_LOW
                BEAT_HIGH BEAT_LOW_ODD BEAT_HIGH_ODD RELEASED WORDS),
        ),
        (
            "tx",
            words!(layout::tx: LINK_PARTICIPANT LINK_EPOCH START WAITING OPEN EVENTS BELL SKIP SENT SENT_HIGH BYTES
                BYTES_HIGH RAISED SUPPRESSED THROTTLED EXHAUSTED ABANDONED DROPPED REFUSED HIGH_WATER HELD TAIL REAPED
                WORDS),
        ),
        ("slot", words!(layout::slot: TURN LEN BLOCK STAMP PAYLOAD)),
        (
            "rx",
            words!(layout::rx: WAITING OPEN LINK_PARTICIPANT LINK_EPOCH EVENTS BELL TAKEN RECEIVED RECEIVED_HIGH BYTES
                BYTES_HIGH REFUSED OVER_BUDGET SLEPT HELD HISTOGRAM WORDS),
        ),
        ("histogram", words!(musubi_core::histogram: MAX COUNT FIRST_BUCKET WORDS)),
        ("ticket", words!(layout::ticket: TICKET HOLDS ACQUIRED REFUSED WORDS)),
        (
            "link",
            words!(layout::link: MAGIC VERSION HASH_LOW HASH_HIGH NODE PEER INCARNATION SLOTS BLOCKS BLOCK_BYTES OFFER
                SEEN READY WAITING TAKEN RETURNS),
        ),
        ("record", words!(layout::record: TAG DATA WORDS)),
    ])
}

/// The cells of a table's row; `None` for other lines.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// Word and byte of each table row, by the module that the heading above names.
fn documented() -> BTreeMap<&'static str, BTreeMap<String, u32>> {
    let mut tables: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut module = None;
    for line in DOCUMENT.lines() {
        if line.starts_with('#') {
            module = line.split_once(": `").and_then(|(_, name)| name.strip_suffix('`'));
        }
        let (Some(module), Some(row)) = (module, cells(line)) else { continue };
        if let Ok(byte) = row[0].parse::<u32>() {
            let former = tables.entry(module).or_default().insert(row[1].trim_matches('`').to_owned(), byte);
            assert_eq!(former, None, "{module}: {} is there twice", row[1]);
        }
    }
    tables
}

#[test]
fn every_word_stands_where_the_document_says() {
    assert_eq!(documented(), constants());
}

#[test]
fn the_version_of_links_is_what_the_document_says() {
    let (_, of_links) = DOCUMENT.split_once(": `link`").unwrap();
    let row = of_links.lines().filter_map(cells).find(|row| row[1] == "`VERSION`").unwrap();
    assert_eq!(row[2].split_once(',').unwrap().0, layout::LINK_VERSION.to_string());
}

#[test]
fn no_word_of_the_source_is_missing_above() {
    for (module, words) in constants() {
        let Some((_, rest)) = SOURCE.split_once(&format!("pub mod {module} {{")) else {
            assert_eq!(module, "histogram");
            continue;
        };
        let body = rest.split("\n}").next().unwrap();
        assert_eq!(body.matches("pub const ").count(), words.len(), "{module}");
    }
}

const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    Domain {
        name,
        role,
        port: PortKind::LinuxProcess,
        trust: Trust::MayCrash,
        participants,
        uids: &[],
        gids: &[],
        spin_ns: 0,
    }
}

const fn fifo(name: &'static str, (from, to): (u16, u16), blocks: u32, block_bytes: u32) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks,
        block_bytes,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }
}

/// What decides the layout of examples/system.toml.
const EXAMPLE: Plan<'static> = Plan {
    name: "press",
    hash: 0,
    domains: &[
        domain("control", Role::Master, 1),
        domain("gateway", Role::Remote, 2),
        domain("storage", Role::Remote, 1),
    ],
    fifos: &[fifo("telemetry", (0, 1), 16, 64), fifo("bulk", (2, 0), 8, 64 << 10), fifo("answers", (0, 2), 8, 256)],
    smems: &[Smem { name: "parameters", domains: &[0, 1], bytes: 256, lock: LockKind::Bakery }],
    liveness: Liveness { heartbeat_ns: 0, stalled_ns: 0 },
};

#[test]
fn the_worked_example_is_what_the_plan_gives() {
    EXAMPLE.check().unwrap();
    let mut expected = Vec::new();
    for (number, domain) in EXAMPLE.domains.iter().enumerate() {
        let mut end = 0;
        let row =
            |part: String, byte: u32, bytes: u32| [domain.name.to_owned(), part, byte.to_string(), bytes.to_string()];
        let section = layout::walk(&EXAMPLE, number as u16, |part, byte, bytes| {
            end = byte + bytes;
            expected.push(row(format!("{part:?}"), byte, bytes));
        });
        expected.push(row("end".to_owned(), end, section.unwrap()));
    }
    let (_, example) = DOCUMENT.split_once("## A worked example").unwrap();
    let is_domain = |row: &Vec<&str>| EXAMPLE.domain(row[0]).is_some();
    let rows: Vec<[String; 4]> = example
        .lines()
        .filter_map(cells)
        .filter(is_domain)
        .map(|row| [0, 1, 2, 3].map(|cell: usize| row[cell].to_owned()))
        .collect();
    assert_eq!(rows, expected);
    assert_eq!(layout::segment_bytes(256), Some(4096));
    let control_tx = layout::offset(&EXAMPLE, 0, Part::Tx(0)).unwrap();
    assert_eq!(control_tx + layout::Shape::of(&EXAMPLE.fifos[0]).unwrap().payload(3), 912);
}

#[test]
fn the_examples_with_numbers_hold() {
    use musubi_core::fifo::Ring;
    use musubi_core::histogram::{BUCKETS, bucket, bucket_max};
    let ring = Ring::new(16);
    assert_eq!(ring.last() + 1, 1_073_741_824);
    let cursor = ring.cursor(37);
    assert_eq!((cursor.index, cursor.lap, cursor.turn(), cursor.return_entry(9)), (5, 3, 6, 0x0003_0009));
    assert_eq!((bucket(100), bucket_max(36), BUCKETS), (36, 103, 240));
    assert_eq!((layout::MAGIC, layout::VERSION), (0x3142_534d, 1));
}
