//! The deterministic simulation: real engines and real sessions, simulated time, and links and nodes that fail.
//!
//! `cargo xtask simulate` runs it large; the tests here run it small, and check that it would notice mistakes.

mod channels;
mod cost;
mod faults;
mod network;
mod node;
mod oracle;
mod program;
mod random;
mod world;

use musubi_mcapi::engine::frame::Kind;
use musubi_transport::links::{NoBlock, Payload, Report};

use world::World;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    events: u64,
    nodes: usize,
    endpoints: usize,
    /// A mistake that is planted in frames of a kind, from the so-many-th on.
    mistake: Option<(Mistake, Kind, u64)>,
}

/// What a wrong engine or session might do to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    Drop,
    Double,
    Swap,
}

impl Mistake {
    fn copy(self, report: &Report<NoBlock>) -> Report<NoBlock> {
        let Report::Frame { peer, header, payload } = report else { panic!("only frames are copied") };
        let payload = match payload {
            Payload::Short(short) => Payload::Short(*short),
            Payload::Owned(bytes) => Payload::Owned(bytes.clone()),
            Payload::Lent(block) => match *block {},
        };
        Report::Frame { peer: *peer, header: *header, payload }
    }
}

/// Most events that it may take until everything has settled.
const SETTLING_EVENTS: u64 = 2_000_000;

/// Runs a plan to its end.
///
/// # Errors
/// What was broken, at which event, and how to see it again.
fn run(plan: Plan) -> Result<World, String> {
    let mut world = World::new(plan);
    let explain = |world: &World, text: String| {
        let Plan { seed, events, nodes, endpoints, .. } = plan;
        let again = format!("--seed {seed} --events {events} --nodes {nodes} --endpoints {endpoints}");
        let at = format!("event {} at {} ns", world.events, world.now_ns);
        format!("{text}\n  {at}\n  again: cargo xtask simulate {again}")
    };
    while world.events < plan.events {
        world.step().map_err(|text| explain(&world, text))?;
    }
    world.wind_down();
    let deadline_ns = world.now_ns + 5_000_000_000;
    while world.now_ns < deadline_ns || !world.programs.iter().all(program::Program::is_idle) || !world.jobs_done() {
        if world.events > plan.events + SETTLING_EVENTS {
            return Err(explain(&world, format!("it never settles: {}{}", world.stuck(), world.jobs_text())));
        }
        world.step().map_err(|text| explain(&world, text))?;
    }
    let alive = |node: usize, life: u32| world.lives[node] == life && world.nodes[node].is_some();
    let settled = world.oracle.settled(|endpoint| world.endpoints.get(&endpoint).copied(), alive);
    settled.map_err(|text| explain(&world, text))?;
    Ok(world)
}

fn plan(seed: u64) -> Plan {
    Plan { seed, events: 20_000, nodes: 12, endpoints: 120, mistake: None }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// The run of `cargo xtask simulate`.
#[test]
fn a_system_keeps_its_promises() {
    let plan = Plan {
        seed: number("MUSUBI_SIMULATE_SEED", 1),
        events: number("MUSUBI_SIMULATE_EVENTS", 30_000),
        nodes: number("MUSUBI_SIMULATE_NODES", 40) as usize,
        endpoints: number("MUSUBI_SIMULATE_ENDPOINTS", 2_000) as usize,
        mistake: None,
    };
    let world = run(plan).unwrap_or_else(|text| panic!("{text}"));
    let oracle = &world.oracle;
    println!(
        "seed {}: {} events, {:.1} simulated seconds, {} nodes, {} endpoints\n\
         messages: {} sent, {} received, {} confirmed, {} reported lost\n\
         channels: {} items received, {} closed in peace, {} broken off; {} cuts, {} deaths; digest {:016x}",
        plan.seed,
        world.events,
        world.now_ns as f64 / 1e9,
        plan.nodes,
        plan.endpoints,
        oracle.sent_count(),
        oracle.received,
        oracle.delivered,
        oracle.lost,
        world.items,
        world.channels_done,
        world.channels_broken,
        world.cuts,
        world.deaths,
        world.digest.0,
    );
    assert!(oracle.received > plan.events / 100, "hardly anything was sent");
}

#[test]
fn many_small_systems_keep_their_promises() {
    for seed in 100..106 {
        run(plan(seed)).unwrap_or_else(|text| panic!("{text}"));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digests = [7, 7, 8].map(|seed| run(plan(seed)).unwrap_or_else(|text| panic!("{text}")).digest);
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in [Mistake::Drop, Mistake::Double, Mistake::Swap] {
        for (seed, kind) in [(1, Kind::Message), (2, Kind::Message), (3, Kind::Packet), (4, Kind::Scalar)] {
            let found = run(Plan { mistake: Some((mistake, kind, 100)), ..plan(seed) });
            assert!(found.is_err(), "{mistake:?} of {kind:?} with seed {seed} was not noticed");
            println!("{mistake:?}: {}", found.err().unwrap_or_default());
        }
    }
}
