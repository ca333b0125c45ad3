//! The devicetree fragment: memory that Linux must leave alone.
//!
//! How it works: one child of `reserved-memory` for each section and segment, so that each can be given to a driver,
//! and protected, by itself; one more for what the address map has left. Without an address map there is one child with
//! a size only, for which the kernel chooses the place.

use std::fmt::Write;

use musubi_core::layout::PAGE_BYTES;

use super::{origin, region_identifier, region_kind};
use crate::{AddressMap, Description, MemoryMap};

/// The text of the fragment; include it in a board's source after its root node.
pub(super) fn write(description: &Description, map: &MemoryMap) -> String {
    let mut nodes = String::new();
    match description.address_map() {
        Some(addresses) => placed(&mut nodes, description, map, addresses),
        None => unplaced(&mut nodes, description, map),
    }
    format!(
        "/* {} */\n/ {{\n\treserved-memory {{\n\t\t#address-cells = <2>;\n\t\t#size-cells = <2>;\n\t\tranges;\n{nodes}\t}};\n}};\n",
        origin(description)
    )
}

fn placed(out: &mut String, description: &Description, map: &MemoryMap, addresses: AddressMap) {
    for region in map.regions() {
        let kind = region_kind(region);
        let label = format!("{kind}_{}", region_identifier(region).to_ascii_lowercase());
        let address = addresses.base + region.offset;
        node(out, description, &label, &format!("{kind}@{address:x}"), &reg(address, region.bytes), &region.name);
    }
    let spare = addresses.bytes - map.bytes();
    if spare > 0 {
        let address = addresses.base + map.bytes();
        node(out, description, "spare", &format!("spare@{address:x}"), &reg(address, spare), "spare");
    }
}

fn unplaced(out: &mut String, description: &Description, map: &MemoryMap) {
    let place = format!("size = <{}>;\n\t\t\talignment = <{}>;", cells(map.bytes()), cells(u64::from(PAGE_BYTES)));
    node(out, description, "map", "musubi", &place, "map");
}

fn node(out: &mut String, description: &Description, label: &str, name: &str, place: &str, content: &str) {
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n\t\tmusubi_{label}: {name} {{\n\t\t\tcompatible = \"musubi,memory\";\n\t\t\t{place}\n\t\t\tno-map;\n\
         \t\t\tmusubi,content = \"{content}\";\n\t\t\tmusubi,plan-hash = <{}>;\n\t\t}};\n",
        cells(description.hash())
    );
}

fn reg(address: u64, bytes: u64) -> String {
    format!("reg = <{} {}>;", cells(address), cells(bytes))
}

/// A 64-bit number as two cells, the high half first.
fn cells(value: u64) -> String {
    format!("{:#x} {:#x}", value >> 32, value & u64::from(u32::MAX))
}
