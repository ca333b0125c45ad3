//! The devicetree fragment: memory that Linux must leave alone, and a device for each domain of Linux processes in it.
//!
//! How it works: one child of `reserved-memory` for each slot and segment, so that each can be given to a driver,
//! and protected, by itself; one more for what the address map has left. Without an address map there is one child with
//! a size only, for which the kernel chooses the place. Addresses and lengths have as many cells as the description says that
//! the board's root node has; what our own properties say (hash, registers) always has two. A domain of port `uio` has a node for the kernel module of
//! firmware/demo-zcu102/linux, which says what the properties mean; interrupts are written as an Arm GIC's binding wants them.

use std::fmt::Write;
use std::ops::Range;

use musubi_core::layout::PAGE_BYTES;
use musubi_core::plan::{PortKind, Role};

use super::{origin, region_identifier, region_kind};
use crate::description::DomainEntry;
use crate::rules::identifier;
use crate::{AddressMap, Content, Description, MemoryMap};

/// How the binding of an Arm GIC says "shared peripheral interrupt".
const SHARED_INTERRUPT: u32 = 0;
/// How it says that an interrupt is an edge, and a level.
const EDGE_RISING: u32 = 1;
const LEVEL_HIGH: u32 = 4;
/// It counts them from here.
const FIRST_SHARED_INTERRUPT: u32 = 32;

/// The text of the fragment; include it in a board's source after its root node.
pub(super) fn write(description: &Description, map: &MemoryMap) -> String {
    let (mut nodes, width) = (String::new(), description.cells);
    match description.address_map() {
        Some(addresses) => placed(&mut nodes, description, map, addresses),
        None => unplaced(&mut nodes, description, map),
    }
    format!(
        "/* {} */\n/ {{\n\treserved-memory {{\n\t\t#address-cells = <{width}>;\n\t\t#size-cells = <{width}>;\n\t\tranges;\n{nodes}\t}};\n{}}};\n",
        origin(description),
        devices(description, map),
    )
}

fn placed(out: &mut String, description: &Description, map: &MemoryMap, addresses: AddressMap) {
    let width = description.cells;
    for region in map.regions() {
        let kind = region_kind(region);
        let label = format!("{kind}_{}", region_identifier(region).to_ascii_lowercase());
        let address = addresses.base + region.offset;
        node(
            out,
            description,
            &label,
            &format!("{kind}@{address:x}"),
            &reg(width, address, region.bytes),
            &region.name,
        );
    }
    let spare = addresses.bytes - map.bytes();
    if spare > 0 {
        let address = addresses.base + map.bytes();
        node(out, description, "spare", &format!("spare@{address:x}"), &reg(width, address, spare), "spare");
    }
}

fn unplaced(out: &mut String, description: &Description, map: &MemoryMap) {
    let width = description.cells;
    let (size, alignment) = (written(width, map.bytes()), written(width, u64::from(PAGE_BYTES)));
    let place = format!("size = <{size}>;\n\t\t\talignment = <{alignment}>;");
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

/// A node for each domain of Linux processes with reserved memory.
fn devices(description: &Description, map: &MemoryMap) -> String {
    let Some(addresses) = description.address_map() else { return String::new() };
    let numbered = (0u16..).zip(&description.domains);
    numbered
        .filter(|(_, domain)| domain.port == PortKind::LinuxUio)
        .map(|(number, domain)| device(description, map, addresses.base, number, domain))
        .collect()
}

fn device(description: &Description, map: &MemoryMap, base: u64, number: u16, domain: &DomainEntry) -> String {
    let own = extent(map, |content| matches!(content, Content::Slot { domain, .. } if domain == number));
    let segments = extent(map, |content| match content {
        // The Master zeroes them all, whoever their members are.
        Content::Segment { smem } => {
            domain.role == Role::Master || description.smems[usize::from(smem)].domains.contains(&number)
        }
        Content::Section { .. } | Content::Slot { .. } => false,
    });
    let mut ranges = vec![("own", own.unwrap_or(0..0)), ("all", 0..map.bytes())];
    ranges.extend(segments.map(|range| ("segments", range)));
    let names: Vec<String> = ranges.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let places: Vec<String> = ranges
        .iter()
        .map(|(_, range)| {
            let (first, bytes) = (base + range.start, range.end - range.start);
            format!("<{} {}>", written(description.cells, first), written(description.cells, bytes))
        })
        .collect();
    let label = identifier(&domain.name).to_ascii_lowercase();
    let unit = base + ranges[0].1.start;
    let name = &domain.name;
    format!(
        "\n\tmusubi_domain_{label}: musubi@{unit:x} {{\n\t\tcompatible = \"musubi,uio\";\n\t\tmusubi,domain = \"{}/{name}\";\n\
         \t\tmusubi,plan-hash = <{}>;\n\t\treg = {};\n\t\treg-names = {};\n{}\t}};\n",
        description.name(),
        cells(description.hash()),
        places.join(", "),
        names.join(", "),
        bells(description, number, domain),
    )
}

/// From the begin of the first to the end of the last region of a kind, as offsets.
fn extent(map: &MemoryMap, wanted: impl Fn(Content) -> bool) -> Option<Range<u64>> {
    let mut regions = map.regions().iter().filter(|region| wanted(region.content));
    let first = regions.next()?;
    let last = regions.next_back().unwrap_or(first);
    Some(first.offset..last.offset + last.bytes)
}

/// The interrupt of a domain, and the doorbells of the others.
fn bells(description: &Description, number: u16, domain: &DomainEntry) -> String {
    let mut out = String::new();
    if let Some(bell) = domain.doorbell {
        let shared = bell.interrupt - FIRST_SHARED_INTERRUPT;
        let trigger = if bell.level.is_some() { LEVEL_HIGH } else { EDGE_RISING };
        let _ = writeln!(out, "\t\tinterrupts = <{SHARED_INTERRUPT} {shared} {trigger}>;");
        if let Some(level) = bell.level {
            for (property, register) in [("acknowledge", level.acknowledge), ("unmask", level.unmask)] {
                let _ = writeln!(out, "\t\tmusubi,{property} = <{} {:#x}>;", cells(register), level.value);
            }
        }
    }
    let others = (0u16..).zip(&description.domains).filter(|(other, _)| *other != number);
    let list: Vec<String> = others
        .filter_map(|(other, domain)| {
            let bell = domain.doorbell?;
            Some(format!("<{other} {} {:#x}>", cells(bell.register), bell.value))
        })
        .collect();
    if !list.is_empty() {
        let _ = writeln!(out, "\t\tmusubi,doorbells = {};", list.join(", "));
    }
    out
}

fn reg(width: u32, address: u64, bytes: u64) -> String {
    format!("reg = <{} {}>;", written(width, address), written(width, bytes))
}

/// An address or a length in as many cells as the board's tree has for it; it was checked to fit.
fn written(width: u32, value: u64) -> String {
    if width == 1 { format!("{value:#x}") } else { cells(value) }
}

/// A 64-bit number as two cells, the high half first.
fn cells(value: u64) -> String {
    format!("{:#x} {:#x}", value >> 32, value & u64::from(u32::MAX))
}
