//! Messages of one byte to and fro between two nodes of one process, for counting instructions: `valgrind --tool=callgrind`
//! over `cargo build --profile release -p musubi-mcapi --example round_cost`.
//!
//! How it works: one thread plays both nodes, and each receive finds what it waits for at the first look; so the count is
//! that of the data path alone, and repeats.
#![forbid(unsafe_code)]

use std::sync::Arc;

use musubi_mcapi::{Deadline, Error, Node, Topology};

fn main() -> Result<(), Error> {
    let rounds: u32 = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(100_000);
    let system = Topology { system: format!("round-cost-{}", std::process::id()), ..Topology::single_machine() };
    let system = Arc::new(system);
    let (near, far) = (Node::initialize(&system, 0, 1)?, Node::initialize(&system, 0, 2)?);
    let (here, there) = (near.create_endpoint(Some(1))?, far.create_endpoint(Some(1))?);
    let to_there = near.get_endpoint((0, 2), 1, Deadline::Forever)?;
    let to_here = far.get_endpoint((0, 1), 1, Deadline::Forever)?;
    for _ in 0..rounds {
        here.send(&to_there, 0, b"x", Deadline::Forever)?;
        assert_eq!(there.receive(Deadline::Forever)?.to_vec(), b"x");
        there.send(&to_here, 0, b"y", Deadline::Forever)?;
        assert_eq!(here.receive(Deadline::Forever)?.to_vec(), b"y");
    }
    println!("{rounds} rounds");
    Ok(())
}
