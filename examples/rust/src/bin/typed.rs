//! A channel whose every message is one struct: no lengths, no casts.
//!
//! `typed control` in one terminal, `typed panel` in another, in any order; both with `MUSUBI_SYSTEM=talk.toml`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Duration;

use musubi_linux::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const READINGS: u32 = 100;
const LIMIT: Wait = Wait::For(Duration::from_secs(5));

#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Reading {
    time_ms: u32,
    sensor: u32,
    celsius: f64,
}

impl Reading {
    fn number(number: u32) -> Reading {
        Reading { time_ms: number, sensor: 7, celsius: 20.0 + f64::from(number) / 10.0 }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = musubi_config::load(&musubi_config::find(None)?)?.leak();
    match std::env::args().nth(1).as_deref() {
        Some("control") => control(&Participant::attach(Options::new(plan, "control"))?),
        Some("panel") => panel(&Participant::attach(Options::new(plan, "panel"))?),
        _ => Err("usage: typed control | typed panel".into()),
    }
}

fn panel(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let sender = Mdcom::init(participant).sender_of::<Reading>("readings")?;
    for number in 1..=READINGS {
        sender.send(Reading::number(number), LIMIT)?;
    }
    // The last one says that all have arrived.
    sender.wait(LIMIT)?;
    Ok(())
}

fn control(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let receiver = Mdcom::init(participant).receiver_of::<Reading>("readings")?;
    for number in 1..=READINGS {
        let reading = receiver.recv(LIMIT)?;
        if reading != Reading::number(number) {
            return Err(format!("reading {number} is wrong: {reading:?}").into());
        }
    }
    receiver.notify();
    println!("control: {READINGS} readings, the last is {:?}", Reading::number(READINGS));
    Ok(())
}
