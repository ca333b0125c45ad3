//! How the examples of MCAPI start: without arguments all nodes run, each in a thread; with `--node N` the program is
//! node N alone. Where the others are, and what lies between, only the description knows that `MUSUBI_SYSTEM` names.
#![forbid(unsafe_code)]

pub mod vi;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use musubi_mcapi::{Deadline, DeadlineExt, Node};

/// What one node does.
pub type Role = fn(&Node) -> Result<(), musubi_mcapi::Error>;

/// Longest time that an example waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The deadline of every call of the examples.
pub fn soon() -> Deadline {
    Deadline::after(PATIENCE)
}

/// Runs the roles, nodes 1, 2 and so on of domain 0, or the one that the command line names.
///
/// # Errors
/// What a role fails with; a description with mistakes; a wrong command line.
pub fn run(roles: &[Role]) -> Result<(), Box<dyn Error>> {
    let system = Arc::new(musubi_config::topology_from_env().map_err(|report| report.to_string())?);
    let node = |number: usize| -> Result<(), String> {
        let role = number.checked_sub(1).and_then(|place| roles.get(place)).ok_or("there is no such node")?;
        let node = Node::initialize(&system, 0, number as u32);
        node.and_then(|node| role(&node)).map_err(|error| format!("node {number}: {error}"))
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
            let threads: Vec<_> = (1..=roles.len()).map(|number| scope.spawn(move || node(number))).collect();
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            // All have been awaited; the first failure counts.
            for end in ends {
                end.map_err(|_| "a thread panicked")??;
            }
            Ok(())
        }),
        ["--node", number] => Ok(node(number.parse()?)?),
        _ => Err("usage: [--node N]".into()),
    }
}
