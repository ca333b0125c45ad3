//! The plan's hash is the one that docs/description.md defines, and depends on every value.

use std::collections::HashMap;

use musubi_config::{parse, print};

fn hash(text: &str) -> u64 {
    parse("description", text).unwrap_or_else(|report| panic!("{report}\n{text}")).hash()
}

/// The bytes of docs/description.md, written down by hand.
#[test]
fn the_hash_is_as_documented() {
    let text = r#"
[system]
name = "ab"
[[domain]]
name = "m"
role = "master"
uid = [9, 5]
[[domain]]
name = "r"
role = "remote"
trust = "hostile"
participants = 2
spin = "1 us"
[[fifo]]
name = "f"
from = "r"
to = "m"
block_size = "3 B"
budget = "7 ns"
regulation = { messages = "200 /s", bytes = "1 KiB/s", bytes_burst = "5 B" }
filter = { every = 2, level = 1, interval = "3 ns" }
on_receiver_restart = "drop"
[[smem]]
name = "s"
domains = ["r", "m"]
size = "4 B"
"#;
    let mut form = b"musubi plan, canonical form 1\0".to_vec();
    let words = |form: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| form.extend(word.to_le_bytes()));
    let longs = |form: &mut Vec<u8>, longs: &[u64]| longs.iter().for_each(|long| form.extend(long.to_le_bytes()));
    words(&mut form, &[musubi_core::layout::VERSION, 2]);
    form.extend(b"ab");
    longs(&mut form, &[100_000_000, 500_000_000]);
    words(&mut form, &[2, 1]);
    form.extend(b"m");
    words(&mut form, &[0, 0, 1, 1, 2, 5, 9, 0, 20_000, 1]);
    form.extend(b"r");
    words(&mut form, &[1, 0, 2, 2, 0, 0, 1_000]);
    words(&mut form, &[1, 1]);
    form.extend(b"f");
    words(&mut form, &[1, 0, 8, 3, 4, 2, 1]);
    longs(&mut form, &[3, 100_000_000]);
    words(&mut form, &[200, 2]);
    longs(&mut form, &[1024, 5]);
    words(&mut form, &[7, 1, 16]);
    words(&mut form, &[1, 1]);
    form.extend(b"s");
    words(&mut form, &[2, 1, 0, 4, 0, 0]);
    words(&mut form, &[0]);
    let digest = blake3::hash(&form);
    let first: [u8; 8] = std::array::from_fn(|at| digest.as_bytes()[at]);
    assert_eq!(hash(text), u64::from_le_bytes(first));
}

#[test]
fn every_value_changes_the_hash() {
    let description = parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let text = print(&description);
    let changes = [
        ("name = \"board-2\"", "name = \"board-3\""),
        ("base = 0x70000000", "base = 0x70001000"),
        ("size = \"1 MiB\"", "size = \"2 MiB\""),
        ("heartbeat = \"100 ms\"", "heartbeat = \"99 ms\""),
        ("stalled = \"500 ms\"", "stalled = \"501 ms\""),
        ("\"cortex-r5\"", "\"cortex-r52\""),
        ("port = \"uio\"", "port = \"metal\""),
        ("trust = \"trusted\"", "trust = \"may-crash\""),
        ("participants = 2", "participants = 3"),
        ("uid = [0, 1000]", "uid = [0, 1001]"),
        ("gid = [44]", "gid = []"),
        ("spin = \"20 us\"", "spin = \"21 us\""),
        ("\"telemetry\"", "\"telemetrie\""),
        ("from = \"cortex-r5\"\nto = \"linux\"", "from = \"linux\"\nto = \"cortex-r5\""),
        ("blocks = 16", "blocks = 17"),
        ("block_size = \"64 B\"", "block_size = \"65 B\""),
        ("priority = 0", "priority = 1"),
        ("every = 2", "every = 3"),
        ("level = 4", "level = 5"),
        ("interval = \"1 ms\"", "interval = \"1 us\""),
        ("latest = \"10 ms\"", "latest = \"11 ms\""),
        ("messages = \"1000 /s\"", "messages = \"1001 /s\""),
        ("messages_burst = 10", "messages_burst = 11"),
        ("bytes = \"10 MiB/s\"", "bytes = \"11 MiB/s\""),
        ("bytes_burst = \"104857 B\"", "bytes_burst = \"104858 B\""),
        ("budget = \"200 us\"", "budget = \"201 us\""),
        ("on_receiver_restart = \"drop\"", "on_receiver_restart = \"keep\""),
        ("sample_every = 0", "sample_every = 1"),
        ("\"parameters\"", "\"parameter\""),
        ("[\"cortex-r5\", \"linux\"]", "[\"linux\", \"cortex-r5\"]"),
        ("size = \"256 B\"", "size = \"257 B\""),
        ("gate = 3", "gate = 4"),
        ("lock = { gate = 3 }", "lock = \"bakery\""),
        ("interrupt = 121", "interrupt = 122"),
        ("register = 0xf901020c", "register = 0xf9010210"),
        ("value = 0x2000000", "value = 0x2000001"),
        ("doorbell = { interrupt = 123, register = 0xf900020c, value = 0x8000000 }\n", ""),
    ];
    let mut hashes = HashMap::from([(description.hash(), "the original")]);
    for (old, new) in changes {
        assert!(text.contains(old), "{old} is not in:\n{text}");
        let twin = hashes.insert(hash(&text.replace(old, new)), new);
        assert_eq!(twin, None, "{new} has the same hash");
    }
    let roles = text.replace("\"master\"", "\"x\"").replace("\"remote\"", "\"master\"").replace("\"x\"", "\"remote\"");
    assert!(!hashes.contains_key(&hash(&roles)));
}

#[test]
fn a_description_and_its_leaked_plan_are_the_same() {
    let description = parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let kept = description.clone();
    let plan: &'static musubi_core::plan::Plan<'static> = description.leak();
    kept.with_plan(|borrowed| assert_eq!(borrowed, plan));
    assert_eq!((plan.name, plan.hash), (kept.name(), kept.hash()));
}
