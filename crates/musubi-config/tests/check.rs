//! What `musubi check` prints.

use musubi_config::{Content, MemoryMap, check, parse};
use musubi_core::fifo::REAP_MAX;
use musubi_core::layout;

#[test]
fn the_memory_map_follows_the_layout_without_gaps() {
    let description = parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let map = MemoryMap::of(&description);
    let names: Vec<&str> = map.regions().iter().map(|region| region.name.as_str()).collect();
    assert_eq!(names, ["cortex-r5.0", "linux.0", "linux.1", "parameters", "image"]);
    let mut end = 0;
    for region in map.regions() {
        assert_eq!((region.offset, region.bytes % u64::from(layout::PAGE_BYTES)), (end, 0));
        end += region.bytes;
    }
    assert_eq!(map.bytes(), end);
    description.with_plan(|plan| {
        assert_eq!(Some(map.regions()[0].bytes), layout::slot_bytes(plan, 0));
        assert_eq!(Some(map.regions()[2].bytes), layout::slot_bytes(plan, 1));
        let begins = map.regions().iter().map(|region| Some(region.offset));
        let places = (0..3).map(|number| layout::slot_offset(plan, number));
        assert!(begins.eq(places.chain((0..2).map(|number| layout::segment_offset(plan, number)))));
        assert_eq!(Some(map.bytes()), layout::mapped_bytes(plan));
    });
    assert_eq!((map.regions()[3].bytes, map.regions()[4].bytes), (4096, 20_480));
}

#[test]
fn the_report_has_the_map_and_each_channel_with_its_bounds() {
    let description = parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let report = check(&description, None);
    println!("{report}");
    assert!(report.contains(&format!("{:#018x}", description.hash())));
    let row = |of: &str, name: &str| -> Vec<String> {
        let part = &report[report.find(of).unwrap_or_else(|| panic!("no part {of}"))..];
        let line = part.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no line {name}"));
        line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
    };
    assert_eq!(row("Memory map", "cortex-r5.0")[2..], ["0x70000000", "12 KiB"]);
    // Where the places are fixed, every participant maps everything.
    assert_eq!(row("Worst-case memory", "linux")[3], "92 KiB");
    let alloc = REAP_MAX.min(16).to_string();
    assert_eq!(row("Steps of the FIFO", "telemetry")[..3], ["telemetry", &alloc, "1"]);
    assert_eq!(row("Steps of the FIFO", "telemetry")[3..], ["1", "16", "1", "1", "16", "64 B", "2"]);
    assert_eq!(row("Steps of the FIFO", "set-points")[1], REAP_MAX.min(8).to_string());
    assert_eq!(row("Storage of the FIFO", "telemetry")[4..6], ["64 B", "128 B"]);
    assert_eq!(row("SMEM channels\n", "parameters")[4..], ["gate 3", "1"]);
    assert_eq!(row("SMEM channels\n", "image")[4..], ["bakery", "20"]);
}

#[test]
fn the_report_fits_terminals_of_every_width() {
    let board = parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let press = include_str!("../../../examples/system.toml");
    let press = parse("system.toml", press).unwrap_or_else(|report| panic!("{report}"));
    for description in [&board, &press] {
        let whole = check(description, None);
        assert!(!whole.contains("Not shown"), "{whole}");
        for width in [60, 80, 100, 130, 200] {
            let fitted = check(description, Some(width));
            let long: Vec<&str> = fitted.lines().filter(|line| line.chars().count() > width).collect();
            assert!(long.is_empty(), "longer than {width}: {long:#?}");
            // Each line of a table is a line of it, not the rest of one that was wrapped.
            assert!(fitted.lines().filter(|line| line.starts_with('│')).all(|line| line.ends_with('│')), "{fitted}");
        }
        assert_eq!(check(description, Some(200)), whole.clone(), "all fits into 200");
    }
}

#[test]
fn without_fixed_addresses_everybody_has_lengths_and_maps_what_it_is_linked_with() {
    let text = include_str!("../../../examples/system.toml");
    let description = parse("system.toml", text).unwrap_or_else(|report| panic!("{report}"));
    let map = MemoryMap::of(&description);
    assert_eq!(map.base(), None);
    let mut end = 0;
    description.with_plan(|plan| {
        for region in map.regions() {
            let bytes = match region.content {
                Content::Section { domain, .. } => layout::section_bytes(plan, domain).map(u64::from),
                Content::Slot { .. } => panic!("a slot without an address map"),
                Content::Segment { smem } => layout::segment_bytes(plan.smems[usize::from(smem)].bytes).map(u64::from),
            };
            assert_eq!((region.offset, Some(region.bytes)), (end, bytes), "{}", region.name);
            end += region.bytes;
        }
    });
    let report = check(&description, None);
    assert!(report.contains("There is no address map") && report.contains("offset"), "{report}");
    let kib = |bytes: u64| format!("{} KiB", bytes / 1024);
    description.with_plan(|plan| {
        for (domain, entry) in (0u16..).zip(plan.domains) {
            let section = |domain| u64::from(layout::section_bytes(plan, domain).unwrap_or(0));
            // Its own, those of all others that it shares a channel with, and the memory of its SMEM channels.
            let others = (0..plan.participants()).filter(|participant| *participant != plan.first_participant(domain));
            let others = others.filter_map(|participant| plan.domain_of(participant));
            let linked: u64 = others.filter(|other| plan.linked(domain, *other)).map(section).sum();
            let smems = plan.smems.iter().filter(|smem| smem.domains.contains(&domain));
            let shared: u64 = smems.filter_map(|smem| layout::segment_bytes(smem.bytes)).map(u64::from).sum();
            let table = &report[report.find("Worst-case memory").unwrap_or_else(|| panic!("{report}"))..];
            let row = table.lines().find(|line| line.contains(entry.name)).unwrap_or_else(|| panic!("{report}"));
            let cells: Vec<&str> = row.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).collect();
            let mapped = section(domain) + linked + shared;
            assert_eq!(cells[2..], [kib(section(domain)), kib(mapped)], "{}", entry.name);
        }
    });
}

/// Two domains, and between them a channel without rules, one with a filter, and one with both rules.
const FILTERED: &str = r#"
[system]
name = "press"
[[domain]]
name = "control"
role = "master"
[[domain]]
name = "panel"
role = "remote"
[[fifo]]
name = "plain"
from = "control"
to = "panel"
block_size = "64 B"
[[fifo]]
name = "batches"
from = "control"
to = "panel"
block_size = "64 B"
filter = { every = 4, level = 3, interval = "2 ms", latest = "20 ms" }
[[fifo]]
name = "bulk"
from = "panel"
to = "control"
block_size = "4 KiB"
regulation = { messages = "1000 /s", bytes = "1 MiB/s", bytes_burst = "8 KiB" }
"#;

#[test]
fn what_filters_and_regulations_of_channels_put_off_is_shown() {
    let description = parse("press.toml", FILTERED).unwrap_or_else(|report| panic!("{report}"));
    let report = check(&description, None);
    let part = &report[report.find("Filters and regulations").unwrap_or_else(|| panic!("no part: {report}"))..];
    let part = part.split("\n\n").next().unwrap_or(part);
    assert!(["once in 2 ms", "or with 3 queued"].iter().all(|words| part.contains(words)), "{part}");
    let row = |name: &str| -> Vec<&str> {
        let line = part.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name}: {part}"));
        line.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).collect()
    };
    assert_eq!(row("batches"), ["batches", "by one notify in 4,", "20 ms", "not"]);
    // A block of 4 KiB takes longer at 1 MiB/s than a message at 1000 a second.
    assert_eq!(row("bulk"), ["bulk", "by each", "at once", "3906250 ns"]);
    assert!(!part.contains("plain"), "{part}");
    for width in [60, 80, 100, 130] {
        assert!(check(&description, Some(width)).lines().all(|line| line.chars().count() <= width));
    }
    let without = FILTERED.lines().filter(|line| !line.starts_with("filter") && !line.starts_with("regulation"));
    let without =
        parse("press.toml", &without.collect::<Vec<_>>().join("\n")).unwrap_or_else(|report| panic!("{report}"));
    assert!(!check(&without, None).contains("Filters and regulations"));
}
