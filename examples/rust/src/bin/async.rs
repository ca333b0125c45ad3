//! Channels as futures, under any executor; here the smallest there is.
//!
//! `async control` in one terminal, `async panel` in another, in any order; both with `MUSUBI_SYSTEM=talk.toml`.
#![forbid(unsafe_code)]

use std::error::Error;

use musubi_linux::{Options, Participant};
use musubi_mdcom::Mdcom;

const MESSAGES: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let plan = musubi_config::load(&musubi_config::find(None)?)?.leak();
    match std::env::args().nth(1).as_deref() {
        Some("control") => pollster::block_on(control(&Participant::attach(Options::new(plan, "control"))?)),
        Some("panel") => pollster::block_on(panel(&Participant::attach(Options::new(plan, "panel"))?)),
        _ => Err("usage: async control | async panel".into()),
    }
}

async fn control(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let mdcom = Mdcom::init(participant);
    let (greetings, answers) = (mdcom.sender("greetings")?, mdcom.receiver("readings")?);
    for number in 1..=MESSAGES {
        let mut block = greetings.alloc_async().await?;
        block[..4].copy_from_slice(&number.to_le_bytes());
        block.enqueue(4).map_err(|rejected| rejected.error)?;
        greetings.notify();
    }
    let mut total = [0; 8];
    answers.next_async().await?.read_into(&mut total)?;
    println!("control: the panel has added them up to {}", u64::from_le_bytes(total));
    answers.notify();
    Ok(())
}

async fn panel(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let mdcom = Mdcom::init(participant);
    let (greetings, answers) = (mdcom.receiver("greetings")?, mdcom.sender("readings")?);
    let mut total = 0u64;
    for _ in 1..=MESSAGES {
        let mut number = [0; 4];
        greetings.next_async().await?.read_into(&mut number)?;
        total += u64::from(u32::from_le_bytes(number));
    }
    let mut block = answers.alloc_async().await?;
    block[..8].copy_from_slice(&total.to_le_bytes());
    block.enqueue(8).map_err(|rejected| rejected.error)?;
    answers.notify();
    Ok(())
}
