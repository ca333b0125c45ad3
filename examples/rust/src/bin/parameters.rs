//! An SMEM channel: the panel sets parameters, the control loop takes them over; the lock keeps them consistent.
//!
//! `parameters control` in one terminal, `parameters panel` in another, in any order; both with
//! `MUSUBI_SYSTEM=talk.toml`. The struct is the one of examples/c/parameters.c, so either side may be the one in C.
#![forbid(unsafe_code)]

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use musubi_linux::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const PERIOD: Duration = Duration::from_millis(1);
const LIMIT: Wait = Wait::For(Duration::from_secs(5));

#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Parameters {
    /// Counts the panel's changes; 0: never set.
    version: u32,
    /// The version that the control loop uses.
    accepted: u32,
    gain: f64,
    limit: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = musubi_config::load(&musubi_config::find(None)?)?.leak();
    match std::env::args().nth(1).as_deref() {
        Some("control") => control(&Participant::attach(Options::new(plan, "control"))?),
        Some("panel") => panel(&Participant::attach(Options::new(plan, "panel"))?),
        _ => Err("usage: parameters control | parameters panel".into()),
    }
}

fn panel(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let mut shared = Mdcom::init(participant).shared::<Parameters>("parameters", LIMIT)?;
    let mut guard = shared.lock(LIMIT)?;
    let version = guard.read().version + 1;
    guard.write(&Parameters { version, accepted: 0, gain: 2.5, limit: 100.0 });
    drop(guard);
    for _ in 0..5000 {
        sleep(PERIOD);
        if shared.lock(LIMIT)?.read().accepted == version {
            println!("panel: version {version} is in use");
            return Ok(());
        }
    }
    Err("the control loop did not take the parameters over".into())
}

/// A control loop must not wait, so it only tries, and goes on with what it has while the panel is writing.
fn control(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let mut shared = Mdcom::init(participant).shared::<Parameters>("parameters", LIMIT)?;
    for _ in 0..5000 {
        if let Ok(mut guard) = shared.try_lock() {
            let now = guard.read();
            guard.write(&Parameters { accepted: now.version, ..now });
            if now.version != 0 {
                println!("control: gain {}, limit {}", now.gain, now.limit);
                return Ok(());
            }
        }
        sleep(PERIOD);
    }
    Err("the panel did not set the parameters".into())
}
