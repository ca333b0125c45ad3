//! The Linux process of the examples: sends texts to a task on the Cortex-R5F, and switches the machine off.
//!
//! What you may rely on: the last line on the console counts the messages that the task took (`N passed, M failed`).
//!
//! How it works: it is the first process of its Linux, so it prepares the machine first; otherwise it is an ordinary one.
#![forbid(unsafe_code)]

#[path = "../init/machine.rs"]
#[allow(dead_code, reason = "the demo's first process uses all of it")]
mod machine;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use musubi_linux::uio::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};
use zcu102_demo::{STREAM, system};

/// Messages.
const GREETINGS: u32 = 10;
/// Time between two of them, so that the task sleeps meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the task may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    println!("Linux {}", machine::release());
    match machine::prepare().and_then(|()| greet()) {
        Ok(taken) => println!("{taken} passed, {} failed", GREETINGS - taken),
        Err(error) => println!("FAILED: {error:#}\n0 passed, 1 failed"),
    }
    machine::power_off();
    // Only if that was refused: a first process that ends makes the kernel panic, which ends the machine too.
    ExitCode::FAILURE
}

/// Sends the messages; gives how many were taken.
fn greet() -> Result<u32> {
    let participant = Participant::attach(Options::new(&system::PLAN, "linux"))?;
    let attachment: &musubi_core::mapped::Participant<'_, _> = &participant;
    let sender = Mdcom::init(attachment).sender(STREAM).context("the channel's sending end")?;
    let until = Instant::now() + PATIENCE;
    while !sender.sense().connected {
        if Instant::now() > until {
            bail!("no task receives on the Cortex-R5F");
        }
        std::thread::sleep(PAUSE);
    }
    for number in 1..=GREETINGS {
        let mut block = sender.alloc(Wait::For(PATIENCE)).context("a block")?;
        let text = format!("greeting {number} of Linux");
        block[..text.len()].copy_from_slice(text.as_bytes());
        block.enqueue(text.len() as u32).map_err(|rejected| rejected.error).context("sending")?;
        let _ = sender.notify();
        println!("sent: {text}");
        std::thread::sleep(PAUSE);
    }
    while sender.sense().queued > 0 && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
    // The task prints what it took last.
    std::thread::sleep(PAUSE);
    Ok(GREETINGS.saturating_sub(sender.sense().queued))
}
