//! The linker-script fragment: the shared memory as a region, and symbols for each section and segment.
//!
//! How it works: the region has no attributes, so the linker puts nothing there by itself. Without an address map there
//! is no region, and the symbols are offsets from wherever the program maps the memory.

use std::fmt::Write;

use super::{origin, region_identifier, region_kind};
use crate::{Description, MemoryMap};

/// The text of the fragment, for GNU ld (tested with it).
pub(super) fn write(description: &Description, map: &MemoryMap) -> String {
    let mut out = format!("/* {} */\n/* Plan hash {:#018x}. */\n\n", origin(description), description.hash());
    match description.address_map() {
        Some(addresses) => out.push_str(&format!(
            "MEMORY\n{{\n    MUSUBI : ORIGIN = {:#x}, LENGTH = {:#x}\n}}\n\n",
            addresses.base, addresses.bytes
        )),
        None => out.push_str("/* The description has no address map: these symbols are offsets. */\n"),
    }
    symbol(&mut out, "plan_hash_low", description.hash() & u64::from(u32::MAX));
    symbol(&mut out, "plan_hash_high", description.hash() >> 32);
    symbol(&mut out, "map", map.base().unwrap_or(0));
    symbol(&mut out, "map_bytes", map.bytes());
    for region in map.regions() {
        let (kind, name) = (region_kind(region), region_identifier(region).to_ascii_lowercase());
        symbol(&mut out, &format!("{kind}_{name}"), map.base().unwrap_or(0) + region.offset);
        symbol(&mut out, &format!("bytes_{kind}_{name}"), region.bytes);
    }
    out
}

fn symbol(out: &mut String, name: &str, value: u64) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "__musubi_{name} = {value:#x};");
}
