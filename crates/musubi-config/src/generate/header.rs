//! The C header: numbers, sizes and offsets as macros, for C99 and C++.
//!
//! How it works: each group of macros has a prefix of its own that no other prefix begins with, so no two names of a
//! description can make the same macro.

use musubi_core::layout;

use super::{origin, region_identifier};
use crate::rules::identifier;
use crate::{Content, Description, MemoryMap};

/// The text of the header.
pub(super) fn write(description: &Description, map: &MemoryMap) -> String {
    let guard = format!("MUSUBI_GENERATED_{}_H", identifier(description.name()));
    let groups = [
        system(description, map),
        domains(description, map),
        fifos(description),
        smems(description),
        offsets(map),
        doorbells(description),
    ];
    let texts: Vec<String> = groups.iter().map(Group::text).filter(|text| !text.is_empty()).collect();
    let body = texts.join("\n");
    let origin = origin(description);
    format!("/* {origin} */\n#ifndef {guard}\n#define {guard}\n\n{body}\n#endif /* {guard} */\n")
}

/// Macros under one comment.
struct Group {
    comment: &'static str,
    macros: Vec<(String, String)>,
}

impl Group {
    fn new(comment: &'static str) -> Group {
        Group { comment, macros: Vec::new() }
    }

    fn number(&mut self, name: String, value: impl Into<u64>) {
        self.macros.push((name, format!("{}u", value.into())));
    }

    fn long(&mut self, name: String, value: u64) {
        self.macros.push((name, format!("{value:#x}ULL")));
    }

    fn text(&self) -> String {
        let width = self.macros.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = self.macros.iter().map(|(name, value)| format!("#define {name:width$} {value}\n"));
        if self.macros.is_empty() {
            String::new()
        } else {
            format!("/* {} */\n{}", self.comment, lines.collect::<String>())
        }
    }
}

fn system(description: &Description, map: &MemoryMap) -> Group {
    let mut group = Group::new("The system. Two parties talk only if their plan hashes are equal.");
    group.macros.push(("MUSUBI_SYSTEM_NAME".to_owned(), format!("\"{}\"", description.name())));
    group.macros.push(("MUSUBI_PLAN_HASH".to_owned(), format!("{:#018x}ULL", description.hash())));
    group.number("MUSUBI_LAYOUT_VERSION".to_owned(), layout::VERSION);
    let participants: u64 = description.domains.iter().map(|domain| u64::from(domain.participants)).sum();
    group.number("MUSUBI_DOMAINS".to_owned(), description.domains.len() as u64);
    group.number("MUSUBI_PARTICIPANTS".to_owned(), participants);
    group.number("MUSUBI_FIFOS".to_owned(), description.fifos.len() as u64);
    group.number("MUSUBI_SMEMS".to_owned(), description.smems.len() as u64);
    if let Some(addresses) = description.address_map() {
        group.long("MUSUBI_BASE".to_owned(), addresses.base);
        group.long("MUSUBI_SIZE".to_owned(), addresses.bytes);
    }
    group.long("MUSUBI_MAP_BYTES".to_owned(), map.bytes());
    group
}

fn domains(description: &Description, map: &MemoryMap) -> Group {
    let mut group = Group::new("Numbers of the domains, and of their participants by slot.");
    for (number, domain) in (0u32..).zip(&description.domains) {
        group.number(format!("MUSUBI_DOMAIN_{}", identifier(&domain.name)), number);
    }
    for region in map.regions() {
        if let Content::Section { participant, .. } | Content::Slot { participant, .. } = region.content {
            group.number(format!("MUSUBI_PARTICIPANT_{}", region_identifier(region)), participant);
        }
    }
    group
}

fn fifos(description: &Description) -> Group {
    let mut group = Group::new("Numbers of the FIFO channels, their blocks and the payload bytes of a block.");
    for (number, fifo) in (0u32..).zip(&description.fifos) {
        let name = identifier(&fifo.name);
        group.number(format!("MUSUBI_FIFO_{name}"), number);
        group.number(format!("MUSUBI_BLOCKS_{name}"), fifo.blocks);
        group.number(format!("MUSUBI_BLOCK_BYTES_{name}"), fifo.block_bytes);
    }
    group
}

fn smems(description: &Description) -> Group {
    let mut group = Group::new("Numbers of the SMEM channels, and their payload bytes.");
    for (number, smem) in (0u32..).zip(&description.smems) {
        let name = identifier(&smem.name);
        group.number(format!("MUSUBI_SMEM_{name}"), number);
        group.number(format!("MUSUBI_PAYLOAD_BYTES_{name}"), smem.bytes);
    }
    group
}

fn offsets(map: &MemoryMap) -> Group {
    let mut group = Group::new(
        "Begin and length of each section or slot and of each segment, in bytes from the begin of the memory map.",
    );
    for region in map.regions() {
        let kind = super::region_kind(region).to_ascii_uppercase();
        let name = region_identifier(region);
        group.long(format!("MUSUBI_{kind}_OFFSET_{name}"), region.offset);
        group.long(format!("MUSUBI_{kind}_BYTES_{name}"), region.bytes);
    }
    group
}

fn doorbells(description: &Description) -> Group {
    let mut group = Group::new("Doorbells: the interrupt that a domain takes, and what raises it.");
    for domain in &description.domains {
        let Some(bell) = domain.doorbell else { continue };
        let name = identifier(&domain.name);
        group.number(format!("MUSUBI_DOORBELL_INTERRUPT_{name}"), bell.interrupt);
        group.long(format!("MUSUBI_DOORBELL_REGISTER_{name}"), bell.register);
        group.long(format!("MUSUBI_DOORBELL_VALUE_{name}"), u64::from(bell.value));
        let Some(level) = bell.level else { continue };
        group.long(format!("MUSUBI_DOORBELL_ACKNOWLEDGE_{name}"), level.acknowledge);
        group.long(format!("MUSUBI_DOORBELL_UNMASK_{name}"), level.unmask);
        group.long(format!("MUSUBI_DOORBELL_LEVEL_{name}"), u64::from(level.value));
    }
    group
}
