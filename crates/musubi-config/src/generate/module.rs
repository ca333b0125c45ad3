//! The Rust module: the plan as a `static`, and the numbers as constants.
//!
//! How it works: paths are written in full and comments are ordinary ones, so the file works as a module and through
//! `include!`, with or without `std`. It refuses to compile against another version of the layout.

use std::fmt::Write;

use musubi_core::layout;
use musubi_core::plan::{Domain, Doorbell, Fifo, Level, Plan, Smem};

use super::origin;
use crate::Description;
use crate::rules::identifier;

/// The text of the module.
pub(super) fn write(description: &Description) -> String {
    description.with_plan(|plan| {
        let mut out = format!("// {}\n\n", origin(description));
        out.push_str(&plan_static(plan));
        let version = layout::VERSION;
        out.push_str(&format!(
            "\nconst _: () = assert!(musubi_core::layout::VERSION == {version}, \"generate this file again\");\n"
        ));
        out.push_str(&numbers("domain", "domains", plan.domains.iter().map(|domain| domain.name)));
        out.push_str(&numbers("fifo", "FIFO channels", plan.fifos.iter().map(|fifo| fifo.name)));
        out.push_str(&numbers("smem", "SMEM channels", plan.smems.iter().map(|smem| smem.name)));
        out.push_str(&doorbells(description));
        out
    })
}

fn plan_static(plan: &Plan<'_>) -> String {
    let domains: String = plan.domains.iter().map(domain).collect();
    let fifos: String = plan.fifos.iter().map(fifo).collect();
    let smems: String = plan.smems.iter().map(smem).collect();
    format!(
        "/// The plan of {name}.\n\
         pub static PLAN: musubi_core::plan::Plan<'static> = musubi_core::plan::Plan {{\n\
         \x20   name: {name:?},\n\
         \x20   hash: {hash:#018x},\n\
         \x20   domains: &[\n{domains}    ],\n\
         \x20   fifos: &[\n{fifos}    ],\n\
         \x20   smems: &[\n{smems}    ],\n\
         \x20   liveness: musubi_core::plan::{liveness:?},\n\
         }};\n",
        name = plan.name,
        hash = plan.hash,
        liveness = plan.liveness,
    )
}

fn domain(domain: &Domain<'_>) -> String {
    let mut entry = Entry::new("Domain", domain.name);
    entry.path("role", format!("Role::{:?}", domain.role));
    entry.path("port", format!("PortKind::{:?}", domain.port));
    entry.path("trust", format!("Trust::{:?}", domain.trust));
    entry.field("participants", domain.participants.to_string());
    entry.field("uids", format!("&{:?}", domain.uids));
    entry.field("gids", format!("&{:?}", domain.gids));
    entry.field("spin_ns", domain.spin_ns.to_string());
    entry.finish()
}

fn fifo(fifo: &Fifo<'_>) -> String {
    let mut entry = Entry::new("Fifo", fifo.name);
    entry.field("from", fifo.from.to_string());
    entry.field("to", fifo.to.to_string());
    entry.field("blocks", fifo.blocks.to_string());
    entry.field("block_bytes", fifo.block_bytes.to_string());
    entry.field("priority", fifo.priority.to_string());
    entry.path("filter", format!("{:?}", fifo.filter));
    entry.path("regulation", format!("{:?}", fifo.regulation));
    entry.field("budget_ns", fifo.budget_ns.to_string());
    entry.path("on_restart", format!("OnRestart::{:?}", fifo.on_restart));
    entry.field("sample_every", fifo.sample_every.to_string());
    entry.finish()
}

fn smem(smem: &Smem<'_>) -> String {
    let mut entry = Entry::new("Smem", smem.name);
    entry.field("domains", format!("&{:?}", smem.domains));
    entry.field("bytes", smem.bytes.to_string());
    entry.path("lock", format!("LockKind::{:?}", smem.lock));
    entry.finish()
}

/// A struct expression. The types' `Debug` forms are Rust expressions, apart from their paths.
struct Entry(String);

impl Entry {
    fn new(kind: &str, name: &str) -> Entry {
        let mut entry = Entry(format!("        musubi_core::plan::{kind} {{\n"));
        entry.field("name", format!("{name:?}"));
        entry
    }

    fn field(&mut self, name: &str, value: String) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "            {name}: {value},");
    }

    /// A field whose value begins with a name of `musubi_core::plan`.
    fn path(&mut self, name: &str, value: String) {
        self.field(name, format!("musubi_core::plan::{value}"));
    }

    fn finish(mut self) -> String {
        self.0.push_str("        },\n");
        self.0
    }
}

fn numbers<'n>(module: &str, kind: &str, names: impl Iterator<Item = &'n str>) -> String {
    let constants: String = (0..)
        .zip(names)
        .map(|(number, name): (u16, &str)| {
            format!("    /// `{name}`.\n    pub const {}: u16 = {number};\n", identifier(name))
        })
        .collect();
    format!("\n/// Numbers of the {kind}.\npub mod {module} {{\n{constants}}}\n")
}

fn doorbell(name: &str, Doorbell { interrupt, register, value, level }: Doorbell) -> String {
    let level = level.map_or_else(
        || "None".to_owned(),
        |Level { acknowledge, unmask, value }| {
            format!(
                "Some(musubi_core::plan::Level {{\n            acknowledge: {acknowledge:#x},\n            \
                 unmask: {unmask:#x},\n            value: {value:#x},\n        }})"
            )
        },
    );
    format!(
        "    pub const {name}: musubi_core::plan::Doorbell = musubi_core::plan::Doorbell {{\n        interrupt: {interrupt},\n        \
         register: {register:#x},\n        value: {value:#x},\n        level: {level},\n    }};\n"
    )
}

/// The module of doorbells, if there is one.
fn doorbells(description: &Description) -> String {
    let with_bell = description.domains.iter().filter_map(|domain| Some((&domain.name, domain.doorbell?)));
    let constants: String =
        with_bell.map(|(name, bell)| format!("    /// `{name}`.\n{}", doorbell(&identifier(name), bell))).collect();
    if constants.is_empty() {
        return String::new();
    }
    format!("\n/// How the domains are woken.\npub mod doorbell {{\n{constants}}}\n")
}
