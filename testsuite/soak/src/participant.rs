//! One process of the system: a thread a channel end, and one for the SMEM channel.
//!
//! What you may rely on: it ends with its supervisor, however that ends; a panic ends it with failure.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use musubi_linux::{Options, Participant};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::place::Place;
use crate::record::Record;
use crate::system::{PLAN, channels};
use crate::{receive, send, share};

/// What the supervisor tells a participant.
#[derive(clap::Args, Clone, Debug)]
pub struct Role {
    /// Its domain.
    #[arg(long)]
    pub domain: u16,
    /// Which process in this place, from 1.
    #[arg(long)]
    pub incarnation: u32,
    /// The system's instance.
    #[arg(long)]
    pub instance: String,
    /// The record.
    #[arg(long)]
    pub record: PathBuf,
    /// The supervisor.
    #[arg(long)]
    pub supervisor: i32,
    /// Of its random choices.
    #[arg(long)]
    pub seed: u64,
}

/// Plays the part until the phase says end.
pub fn play(role: &Role) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("asking to end with the supervisor")?;
    ensure!(getppid().map(Pid::as_raw_pid) == Some(role.supervisor), "the supervisor is gone");
    let record = Record::open(&role.record)?;
    let options = Options { instance: Some(role.instance.clone()), ..Options::new(&PLAN, role.domain) };
    let participant = Participant::attach(options)?;
    let Role { domain, incarnation, seed, .. } = *role;
    let place = Place { participant: &participant, record: &record, domain, incarnation, seed };
    std::thread::scope(|scope| {
        for (number, fifo) in channels() {
            if fifo.from == domain {
                scope.spawn(move || or_end(send::run(place, number)));
            }
            if fifo.to == domain {
                scope.spawn(move || or_end(receive::run(place, number)));
            }
        }
        scope.spawn(move || or_end(share::run(place)));
    });
    Ok(())
}

/// A thread that fails ends the process, which the supervisor sees.
fn or_end(result: anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("a participant failed: {error:#}");
        std::process::exit(1);
    }
}
