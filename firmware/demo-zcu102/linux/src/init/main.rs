//! The first process of the demo's Linux: prepares the system, runs the demo, and switches the machine off.
//!
//! What you may rely on: the machine is switched off whatever happens, and the last line on the console says how the
//! demo ended (`N passed, M failed`).

mod account;
mod lateness;
mod machine;
mod nics;
mod nodes;
mod report;
mod script;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    println!("Linux {} on {} Cortex-A53", machine::release(), machine::cores());
    let outcome = machine::prepare().and_then(|()| script::run());
    match outcome {
        Ok(evidence) => report::print(&evidence),
        Err(error) => println!("FAILED: {error:#}\n0 passed, 1 failed"),
    }
    machine::power_off();
    // Only if that was refused: a first process that ends makes the kernel panic, which ends the machine too.
    ExitCode::FAILURE
}
