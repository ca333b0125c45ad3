//! From TOML tables to entries: which keys there are, what they mean, what they are if left out.
//!
//! What you may rely on: this file is the whole grammar of a description; docs/description.md says the same for
//! readers. A key that is not here is an error.
//!
//! How it works: each kind of table has a list of keys and a function that reads it into a draft ([`crate::drafts`]). Checks that need more than one table are in
//! [`crate::rules`].

use std::ops::RangeInclusive;

use musubi_core::plan::{
    BLOCKS_MAX, Doorbell, Level, Liveness, LockKind, OnRestart, PARTICIPANTS_MAX, PAYLOAD_BYTES_MAX, PRIORITIES,
    PortKind, Role, Trust,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::accounts::{Account, Accounts};
use crate::description::{AddressMap, Description, DomainEntry, FifoEntry, SmemEntry};
use crate::drafts::{DomainDraft, Drafts, FifoDraft, SmemDraft, SystemDraft};
use crate::guarantees::{FILTER_KEYS, filter, regulation};
use crate::quantity::{SIZE, TIME};
use crate::reader::{
    Key, Located, Reader, integer, optional, quoted, required, span_of, suggestion, tables, value_or, wrong_type,
};
use crate::report::{Findings, Scope};
use crate::rules;
use crate::{network, nics, nodes};

const MICROSECOND_NS: u64 = 1_000;
const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Times of liveness: a heartbeat is counted in milliseconds.
const HEARTBEAT_NS: RangeInclusive<u64> = MILLISECOND_NS..=60 * SECOND_NS;
const STALLED_NS: RangeInclusive<u64> = MILLISECOND_NS..=3600 * SECOND_NS;
/// Longest spinning before a sleep.
const SPIN_NS: RangeInclusive<u64> = 0..=SECOND_NS;
/// A latency budget fits 32 bits.
const BUDGET_NS: RangeInclusive<u64> = 1..=4 * SECOND_NS;
/// Shared peripheral interrupts of an Arm GIC, by its own numbers.
const INTERRUPTS: RangeInclusive<u64> = 32..=1019;
/// Most users, and most groups, that a domain may list.
const ACCOUNTS_MAX: usize = 256;

const DEFAULT_LIVENESS: Liveness = Liveness { heartbeat_ns: 100 * MILLISECOND_NS, stalled_ns: 500 * MILLISECOND_NS };
const DEFAULT_SPIN_NS: u64 = 20 * MICROSECOND_NS;
const DEFAULT_BLOCKS: u64 = 8;
const DEFAULT_PRIORITY: u64 = 4;
const DEFAULT_SAMPLE_EVERY: u64 = 16;

const FILE_KEYS: &[Key] = &[
    required("system", "[system]"),
    optional("liveness"),
    optional("domain"),
    optional("fifo"),
    optional("smem"),
    optional("network"),
    optional("node"),
    optional("nic"),
];
const SYSTEM_KEYS: &[Key] =
    &[required("name", "name = \"press\""), optional("base"), optional("size"), optional("cells")];
const LIVENESS_KEYS: &[Key] = &[optional("heartbeat"), optional("stalled")];
const DOMAIN_KEYS: &[Key] = &[
    required("name", "name = \"control\""),
    required("role", "role = \"master\""),
    optional("port"),
    optional("trust"),
    optional("participants"),
    optional("uid"),
    optional("gid"),
    optional("spin"),
    optional("doorbell"),
];
const LEVEL_KEYS: &[Key] = &[
    required("acknowledge", "acknowledge = 0xFF34_0010"),
    required("unmask", "unmask = 0xFF34_0018"),
    required("value", "value = 0x0000_0100"),
];
const DOORBELL_KEYS: &[Key] = &[
    required("interrupt", "interrupt = 121"),
    required("register", "register = 0xF901_020C"),
    required("value", "value = 0x0200_0000"),
    optional("level"),
];
const FIFO_KEYS: &[Key] = &[
    required("name", "name = \"telemetry\""),
    required("from", "from = \"control\""),
    required("to", "to = \"gateway\""),
    optional("blocks"),
    required("block_size", "block_size = \"64 B\""),
    optional("priority"),
    optional("filter"),
    optional("regulation"),
    optional("budget"),
    optional("on_receiver_restart"),
    optional("sample_every"),
];
const SMEM_KEYS: &[Key] = &[
    required("name", "name = \"parameters\""),
    required("domains", "domains = [\"control\", \"gateway\"]"),
    required("size", "size = \"256 B\""),
    optional("lock"),
];
const LOCK_KEYS: &[Key] = &[required("gate", "lock = { gate = 3 }")];

pub(crate) const ROLES: &[(&str, Role)] = &[("master", Role::Master), ("remote", Role::Remote)];
pub(crate) const PORTS: &[(&str, PortKind)] =
    &[("linux", PortKind::LinuxProcess), ("uio", PortKind::LinuxUio), ("metal", PortKind::Metal)];
pub(crate) const TRUSTS: &[(&str, Trust)] =
    &[("trusted", Trust::Trusted), ("may-crash", Trust::MayCrash), ("hostile", Trust::Hostile)];
pub(crate) const RESTARTS: &[(&str, OnRestart)] = &[("keep", OnRestart::Keep), ("drop", OnRestart::Drop)];
const LOCKS: &[(&str, LockKind)] = &[("bakery", LockKind::Bakery)];

/// Reads a whole file. The result means something only if there are no findings.
pub(crate) fn read(table: &DeTable<'_>, findings: &mut Findings) -> Option<Description> {
    let file = Reader::open(table, 0..0, "the description", FILE_KEYS, findings);
    let accounts = Accounts::default();
    let drafts = Drafts {
        system: system(&file, findings),
        liveness: liveness(&file, findings),
        domains: tables(&file, "domain", "domain", "a [[domain]]", DOMAIN_KEYS, findings)
            .iter()
            .map(|reader| domain(reader, &accounts, findings))
            .collect(),
        fifos: tables(&file, "fifo", "fifo", "a [[fifo]]", FIFO_KEYS, findings)
            .iter()
            .map(|reader| fifo(reader, findings))
            .collect(),
        smems: tables(&file, "smem", "smem", "an [[smem]]", SMEM_KEYS, findings)
            .iter()
            .map(|reader| smem(reader, findings))
            .collect(),
        network: network::read(&file, findings),
        nodes: tables(&file, "node", "node", "a [[node]]", nodes::NODE_KEYS, findings)
            .iter()
            .map(|reader| nodes::read(reader, findings))
            .collect(),
        nics: tables(&file, "nic", "nic", "a [[nic]]", nics::NIC_KEYS, findings)
            .iter()
            .map(|reader| nics::read(reader, findings))
            .collect(),
    };
    rules::check(drafts, findings)
}

fn system(file: &Reader<'_>, findings: &mut Findings) -> SystemDraft {
    let Some(reader) = file.table("system", "[system]", SYSTEM_KEYS, "[system]", findings) else {
        return SystemDraft { name: None, address_map: None, cells: None };
    };
    let (name, address_map) = (reader.text("name", findings), address_map(&reader, findings));
    let cells = reader.integer("cells", 1..=2, findings);
    if let (Some(map), Some(cells)) = (&address_map, &cells) {
        rules::check_cells(map, cells, findings);
    }
    SystemDraft { name, address_map, cells }
}

fn address_map(reader: &Reader<'_>, findings: &mut Findings) -> Option<Located<AddressMap>> {
    let base = reader.integer("base", 0..=u64::MAX, findings);
    let size = reader.quantity("size", &SIZE, 1..=u64::MAX, findings);
    for (key, other) in [("base", "size"), ("size", "base")] {
        if let (Some(value), None) = (reader.value(key), reader.value(other)) {
            let message = format!("`{key}` without `{other}`: an address map needs both");
            findings
                .add(Scope::Relation, value.span(), message, format!("`{other}` is missing"))
                .help("write both, such as: base = 0x7000_0000 and size = \"16 MiB\"");
        }
    }
    let (base, size) = (base?, size?);
    rules::check_alignment(&base, &size, findings);
    Some(Located { value: AddressMap { base: base.value, bytes: size.value }, span: size.span })
}

fn liveness(file: &Reader<'_>, findings: &mut Findings) -> Liveness {
    let Some(reader) = file.table("liveness", "[liveness]", LIVENESS_KEYS, "[liveness]", findings) else {
        return DEFAULT_LIVENESS;
    };
    let heartbeat = reader.quantity("heartbeat", &TIME, HEARTBEAT_NS, findings);
    let stalled = reader.quantity("stalled", &TIME, STALLED_NS, findings);
    let liveness = Liveness {
        heartbeat_ns: value_or(&heartbeat, DEFAULT_LIVENESS.heartbeat_ns),
        stalled_ns: value_or(&stalled, DEFAULT_LIVENESS.stalled_ns),
    };
    if let (true, Some(at)) = (liveness.stalled_ns <= liveness.heartbeat_ns, span_of(&stalled).or(span_of(&heartbeat)))
    {
        let (stalled, heartbeat) = (TIME.write(liveness.stalled_ns), TIME.write(liveness.heartbeat_ns));
        findings
            .add(
                Scope::Relation,
                at,
                format!("`stalled` ({stalled}) is not longer than `heartbeat` ({heartbeat})"),
                "every participant would look stalled between two heartbeats",
            )
            .help("let `stalled` be at least twice `heartbeat`");
    }
    liveness
}

fn domain(reader: &Reader<'_>, accounts: &Accounts, findings: &mut Findings) -> DomainDraft {
    let name = reader.text("name", findings);
    let role = reader.choice("role", ROLES, findings);
    let port = reader.choice("port", PORTS, findings);
    let participants = reader.integer("participants", 1..=PARTICIPANTS_MAX as u64, findings);
    let spin = reader.quantity("spin", &TIME, SPIN_NS, findings);
    let doorbell = doorbell(reader, findings);
    DomainDraft {
        entry: DomainEntry {
            name: name.as_ref().map(|name| name.value.clone()).unwrap_or_default(),
            role: value_or(&role, Role::Remote),
            port: value_or(&port, PortKind::LinuxProcess),
            trust: value_or(&reader.choice("trust", TRUSTS, findings), Trust::MayCrash),
            participants: value_or(&participants, 1) as u16,
            uids: account_numbers(reader, "uid", Account::User, accounts, findings),
            gids: account_numbers(reader, "gid", Account::Group, accounts, findings),
            spin_ns: value_or(&spin, DEFAULT_SPIN_NS) as u32,
            doorbell: doorbell.as_ref().map(|doorbell| doorbell.value),
        },
        name,
        role,
        port_at: span_of(&port).unwrap_or(reader.span.clone()),
        doorbell_at: span_of(&doorbell),
        at: reader.span.clone(),
    }
}

fn doorbell(domain: &Reader<'_>, findings: &mut Findings) -> Option<Located<Doorbell>> {
    let example = "{ interrupt = 121, register = 0xF901_020C, value = 0x0200_0000 }";
    let reader = domain.table("doorbell", "a doorbell", DOORBELL_KEYS, example, findings)?;
    let interrupt = reader.integer("interrupt", INTERRUPTS, findings);
    let register = reader.integer("register", 0..=u64::MAX, findings);
    let value = reader.integer("value", 1..=u64::from(u32::MAX), findings);
    if let Some(register) = register.as_ref().filter(|register| !register.value.is_multiple_of(4)) {
        let message = "`register` is not a multiple of 4";
        findings.add(Scope::Value, register.span.clone(), message, "the address of a register of 32 bits");
    }
    let level = level(&reader, findings);
    let (interrupt, register, value) = (interrupt?.value as u32, register?.value, value?.value as u32);
    Some(Located { value: Doorbell { interrupt, register, value, level }, span: reader.span })
}

/// How a doorbell that is a level is silenced.
fn level(doorbell: &Reader<'_>, findings: &mut Findings) -> Option<Level> {
    let example = "{ acknowledge = 0xFF34_0010, unmask = 0xFF34_0018, value = 0x0000_0100 }";
    let reader = doorbell.table("level", "how a level is silenced", LEVEL_KEYS, example, findings)?;
    let mut register = |key: &'static str| {
        let address = reader.integer(key, 0..=u64::MAX, findings)?;
        if !address.value.is_multiple_of(4) {
            let message = format!("`{key}` is not a multiple of 4");
            findings.add(Scope::Value, address.span.clone(), message, "the address of a register of 32 bits");
        }
        Some(address.value)
    };
    let (acknowledge, unmask) = (register("acknowledge"), register("unmask"));
    let value = reader.integer("value", 1..=u64::from(u32::MAX), findings);
    Some(Level { acknowledge: acknowledge?, unmask: unmask?, value: value?.value as u32 })
}

/// Numbers of users or groups, sorted, each once.
fn account_numbers(
    reader: &Reader<'_>,
    key: &str,
    account: Account,
    accounts: &Accounts,
    findings: &mut Findings,
) -> Vec<u32> {
    let Some(list) = reader.list(key, "[1000, \"alice\"]", findings) else { return Vec::new() };
    if list.len() > ACCOUNTS_MAX {
        let at = reader.value(key).map(Spanned::span).unwrap_or_default();
        findings.add(Scope::Value, at, format!("`{key}` lists more than {ACCOUNTS_MAX} entries"), "too many");
        return Vec::new();
    }
    let mut numbers: Vec<u32> =
        list.iter().filter_map(|value| account_number(value, account, accounts, findings)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn account_number(
    value: &Spanned<DeValue<'_>>,
    account: Account,
    accounts: &Accounts,
    findings: &mut Findings,
) -> Option<u32> {
    let Some(name) = value.get_ref().as_str() else {
        // The largest number means "no one" to the kernel.
        let limits = 0..=u64::from(u32::MAX - 1);
        let number = integer(value, &format!("a {} is a name in quotes or", account.word()), limits, findings)?;
        return u32::try_from(number.value).ok();
    };
    let number = accounts.number(account, name);
    if number.is_none() {
        let message = format!("there is no {} {} on this machine", account.word(), quoted(name));
        let problem = findings.add(Scope::Value, value.span(), message, format!("not in {}", account.file()));
        match suggestion(name, &accounts.names(account)) {
            Some(other) => problem.help(format!("did you mean \"{}\"?", other.escape_debug())),
            None => problem.help("write the number instead if the account is defined elsewhere"),
        };
    }
    number
}

fn fifo(reader: &Reader<'_>, findings: &mut Findings) -> FifoDraft {
    let name = reader.text("name", findings);
    let blocks = reader.integer("blocks", 1..=u64::from(BLOCKS_MAX), findings);
    let block_bytes = reader.quantity("block_size", &SIZE, 1..=u64::from(PAYLOAD_BYTES_MAX), findings);
    let priority = reader.integer("priority", 0..=u64::from(PRIORITIES - 1), findings);
    let budget = reader.quantity("budget", &TIME, BUDGET_NS, findings);
    let sample_every = reader.integer("sample_every", 0..=u64::from(u32::MAX), findings);
    let (filter, level_at) = filter(reader, FILTER_KEYS, findings);
    FifoDraft {
        entry: FifoEntry {
            name: name.as_ref().map(|name| name.value.clone()).unwrap_or_default(),
            from: 0,
            to: 0,
            blocks: value_or(&blocks, DEFAULT_BLOCKS) as u32,
            block_bytes: value_or(&block_bytes, 1) as u32,
            priority: value_or(&priority, DEFAULT_PRIORITY) as u8,
            filter,
            regulation: regulation(reader, value_or(&block_bytes, 1), findings),
            budget_ns: value_or(&budget, 0) as u32,
            on_restart: value_or(&reader.choice("on_receiver_restart", RESTARTS, findings), OnRestart::Keep),
            sample_every: value_or(&sample_every, DEFAULT_SAMPLE_EVERY) as u32,
        },
        name,
        from: reader.text("from", findings),
        to: reader.text("to", findings),
        sized: block_bytes.is_some() && (blocks.is_some() || reader.value("blocks").is_none()),
        level_at,
        at: reader.span.clone(),
    }
}

fn smem(reader: &Reader<'_>, findings: &mut Findings) -> SmemDraft {
    let name = reader.text("name", findings);
    let bytes = reader.quantity("size", &SIZE, 1..=u64::from(PAYLOAD_BYTES_MAX), findings);
    let lock = lock(reader, findings);
    SmemDraft {
        entry: SmemEntry {
            name: name.as_ref().map(|name| name.value.clone()).unwrap_or_default(),
            domains: Vec::new(),
            bytes: value_or(&bytes, 1) as u32,
            lock: value_or(&lock, LockKind::Bakery),
        },
        name,
        members: members(reader, findings),
        lock_at: span_of(&lock),
        at: reader.span.clone(),
    }
}

fn members(reader: &Reader<'_>, findings: &mut Findings) -> Option<Located<Vec<Located<String>>>> {
    let list = reader.list("domains", "[\"control\", \"gateway\"]", findings)?;
    let mut members = Vec::new();
    for value in list {
        match value.get_ref().as_str() {
            Some(name) => members.push(Located { value: name.to_owned(), span: value.span() }),
            None => wrong_type(value, "a member of `domains` is a domain's name in quotes", findings),
        }
    }
    // A wrong member is reported already; counting the rest would only confuse.
    (members.len() == list.len())
        .then(|| Located { value: members, span: reader.value("domains").map_or(0..0, Spanned::span) })
}

fn lock(reader: &Reader<'_>, findings: &mut Findings) -> Option<Located<LockKind>> {
    let value = reader.value("lock")?;
    if value.get_ref().is_str() {
        return reader.choice("lock", LOCKS, findings);
    }
    if !value.get_ref().is_table() {
        wrong_type(value, "`lock` is \"bakery\" or a table such as { gate = 3 }", findings);
        return None;
    }
    let table = reader.table("lock", "a lock", LOCK_KEYS, "{ gate = 3 }", findings)?;
    let gate = table.integer("gate", 0..=u64::from(u16::MAX), findings)?;
    Some(Located { value: LockKind::Gate(gate.value as u16), span: gate.span })
}
