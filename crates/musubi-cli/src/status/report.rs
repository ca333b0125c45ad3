//! What is reported of a system; as JSON its fields are stable (docs/status.md).

use musubi_core::plan::{LockKind, Plan};
use serde::Serialize;

use super::nics::Nic;
use super::reading::{self, Reading};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: u64 = 1_000_000;

/// A system at one time.
#[derive(Debug, Serialize)]
pub struct Report<'p> {
    pub system: &'p str,
    pub instance: &'p str,
    pub plan_hash: String,
    pub interval_s: f64,
    pub participants: Vec<Participant<'p>>,
    pub fifos: Vec<Fifo<'p>>,
    pub smems: Vec<Smem<'p>>,
    pub nics: Vec<Nic>,
}

/// One participant.
#[derive(Debug, Serialize)]
pub struct Participant<'p> {
    #[serde(flatten)]
    pub place: Place<'p>,
    pub pid: i32,
    pub state: State,
    pub epoch: Option<u32>,
    pub heartbeat_age_ms: Option<u32>,
    pub uptime_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Whether a participant does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It shows signs of life.
    Running,
    /// Its last sign of life is older than the description's `stalled`.
    Stalled,
    /// Its process is there and does not answer.
    Silent,
    /// It does not let us look.
    Refused,
}

/// A participant by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place<'p> {
    pub participant: u16,
    pub domain: &'p str,
    pub slot: u16,
}

/// One FIFO channel.
#[derive(Debug, Serialize)]
pub struct Fifo<'p> {
    pub name: &'p str,
    pub number: u16,
    pub from: &'p str,
    pub to: &'p str,
    pub blocks: u32,
    pub block_bytes: u32,
    pub depth: Option<u32>,
    pub sender: Option<Sender<'p>>,
    pub receiver: Option<Receiver<'p>>,
}

/// A channel's sending end.
#[derive(Debug, Serialize)]
pub struct Sender<'p> {
    #[serde(flatten)]
    pub place: Place<'p>,
    pub in_use: u32,
    pub high_water: u32,
    #[serde(flatten)]
    pub traffic: Traffic,
    pub raised: u32,
    pub suppressed: u32,
    pub throttled: u32,
    pub exhausted: u32,
    pub abandoned: u32,
    pub dropped: u32,
    pub refused: u32,
}

/// A channel's receiving end.
#[derive(Debug, Serialize)]
pub struct Receiver<'p> {
    #[serde(flatten)]
    pub place: Place<'p>,
    pub held: u32,
    #[serde(flatten)]
    pub traffic: Traffic,
    pub slept: u32,
    pub refused: u32,
    pub over_budget: u32,
    pub latency: Option<Latency>,
}

/// Messages and bytes since the participant attached, and their rates between the two looks.
#[derive(Debug, Serialize)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
    pub messages_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
}

/// One-way latency of the sampled messages.
#[derive(Debug, Serialize)]
pub struct Latency {
    pub samples: u32,
    pub p50_ns: u32,
    pub p99_ns: u32,
    pub max_ns: u32,
}

/// One SMEM channel.
#[derive(Debug, Serialize)]
pub struct Smem<'p> {
    pub name: &'p str,
    pub number: u16,
    pub bytes: u32,
    pub domains: Vec<&'p str>,
    pub lock: String,
    pub holder: Option<Place<'p>>,
    pub members: Vec<Member<'p>>,
}

/// A participant that shares an SMEM channel.
#[derive(Debug, Serialize)]
pub struct Member<'p> {
    #[serde(flatten)]
    pub place: Place<'p>,
    pub acquired: u32,
    pub refused: u32,
}

impl<'p> Report<'p> {
    /// The report of `now`, with rates since `before`, and of these NICs.
    pub fn new(
        plan: &'p Plan<'p>,
        instance: &'p str,
        (before, now): (&Reading, &Reading),
        nics: Vec<Nic>,
    ) -> Report<'p> {
        let interval_s = now.at_ns.saturating_sub(before.at_ns) as f64 / NS_PER_S;
        let fifos = (0u16..).zip(before.fifos.iter().zip(&now.fifos));
        Report {
            system: plan.name,
            instance,
            plan_hash: format!("{:016x}", plan.hash),
            interval_s,
            participants: now.participants.iter().map(|seen| participant(plan, seen)).collect(),
            fifos: fifos.map(|(number, (before, now))| fifo(plan, number, before, now, interval_s)).collect(),
            smems: (0u16..).zip(&now.smems).map(|(number, members)| smem(plan, number, members)).collect(),
            nics,
        }
    }
}

fn place<'p>(plan: &Plan<'p>, participant: u16) -> Place<'p> {
    let domain = plan.domain_of(participant).unwrap_or_default();
    let slot = participant.saturating_sub(plan.first_participant(domain));
    Place { participant, domain: domain_name(plan, domain), slot }
}

fn domain_name<'p>(plan: &Plan<'p>, domain: u16) -> &'p str {
    plan.domains.get(usize::from(domain)).map_or("", |domain| domain.name)
}

fn participant<'p>(plan: &Plan<'p>, seen: &reading::Seen) -> Participant<'p> {
    let stalled_ms = plan.liveness.stalled_ns / NS_PER_MS;
    let state = match &seen.life {
        None if seen.refusal.is_some() => State::Refused,
        None => State::Silent,
        Some(life) if u64::from(life.heartbeat_age_ms) > stalled_ms => State::Stalled,
        Some(_) => State::Running,
    };
    let life = seen.life.as_ref();
    Participant {
        place: place(plan, seen.participant),
        pid: seen.pid,
        state,
        epoch: life.map(|life| life.epoch),
        heartbeat_age_ms: life.map(|life| life.heartbeat_age_ms),
        uptime_s: life.map(|life| life.uptime_ns as f64 / NS_PER_S),
        refusal: seen.refusal.clone(),
    }
}

fn fifo<'p>(plan: &Plan<'p>, number: u16, before: &reading::Fifo, now: &reading::Fifo, interval_s: f64) -> Fifo<'p> {
    let channel = &plan.fifos[usize::from(number)];
    Fifo {
        name: channel.name,
        number,
        from: domain_name(plan, channel.from),
        to: domain_name(plan, channel.to),
        blocks: channel.blocks,
        block_bytes: channel.block_bytes,
        depth: now.sender.as_ref().map(|sender| sender.queued),
        sender: now.sender.as_ref().map(|now| sender(plan, before.sender.as_ref(), now, interval_s)),
        receiver: now.receiver.as_ref().map(|now| receiver(plan, before.receiver.as_ref(), now, interval_s)),
    }
}

fn sender<'p>(plan: &Plan<'p>, before: Option<&reading::Sender>, now: &reading::Sender, interval_s: f64) -> Sender<'p> {
    let before = before.filter(|before| before.who == now.who).map(|before| (before.messages, before.bytes));
    Sender {
        place: place(plan, now.who.0),
        in_use: now.in_use,
        high_water: now.high_water,
        traffic: traffic(before, (now.messages, now.bytes), interval_s),
        raised: now.raised,
        suppressed: now.suppressed,
        throttled: now.throttled,
        exhausted: now.exhausted,
        abandoned: now.abandoned,
        dropped: now.dropped,
        refused: now.refused,
    }
}

fn receiver<'p>(
    plan: &Plan<'p>,
    before: Option<&reading::Receiver>,
    now: &reading::Receiver,
    interval_s: f64,
) -> Receiver<'p> {
    let before = before.filter(|before| before.who == now.who).map(|before| (before.messages, before.bytes));
    let latency = now.latency.as_ref().map(|latency| Latency {
        samples: latency.samples,
        p50_ns: latency.p50_ns,
        p99_ns: latency.p99_ns,
        max_ns: latency.max_ns,
    });
    Receiver {
        place: place(plan, now.who.0),
        held: now.held,
        traffic: traffic(before, (now.messages, now.bytes), interval_s),
        slept: now.slept,
        refused: now.refused,
        over_budget: now.over_budget,
        latency,
    }
}

fn traffic(before: Option<(u64, u64)>, (messages, bytes): (u64, u64), interval_s: f64) -> Traffic {
    let before = before.filter(|_| interval_s > 0.0);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / interval_s;
    Traffic {
        messages,
        bytes,
        messages_per_s: before.map(|before| rate(messages, before.0)),
        bytes_per_s: before.map(|before| rate(bytes, before.1)),
    }
}

fn smem<'p>(plan: &Plan<'p>, number: u16, members: &[reading::Member]) -> Smem<'p> {
    let channel = &plan.smems[usize::from(number)];
    let holder = members.iter().find(|member| member.holds);
    let member = |member: &reading::Member| Member {
        place: place(plan, member.participant),
        acquired: member.acquired,
        refused: member.refused,
    };
    Smem {
        name: channel.name,
        number,
        bytes: channel.bytes,
        domains: channel.domains.iter().map(|domain| domain_name(plan, *domain)).collect(),
        lock: match channel.lock {
            LockKind::Gate(gate) => format!("gate {gate}"),
            _ => "bakery".to_owned(),
        },
        holder: holder.map(|holder| place(plan, holder.participant)),
        members: members.iter().map(member).collect(),
    }
}
