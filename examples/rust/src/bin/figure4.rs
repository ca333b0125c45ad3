//! The flow of the paper's figure 4: the Master sends messages, the Remote tells it that each has arrived.
//!
//! `figure4 master` in one terminal, `figure4 remote` in another, in any order; both with `MUSUBI_SYSTEM=talk.toml`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Duration;

use musubi_linux::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};

const MESSAGES: u32 = 5;
const LIMIT: Wait = Wait::For(Duration::from_secs(5));

fn main() -> Result<(), Box<dyn Error>> {
    let plan = musubi_config::load(&musubi_config::find(None)?)?.leak();
    match std::env::args().nth(1).as_deref() {
        Some("master") => master(&Participant::attach(Options::new(plan, "control"))?),
        Some("remote") => remote(&Participant::attach(Options::new(plan, "panel"))?),
        _ => Err("usage: figure4 master | figure4 remote".into()),
    }
}

fn master(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let sender = Mdcom::init(participant).sender("greetings")?;
    for number in 1..=MESSAGES {
        let mut block = sender.alloc(Wait::Forever)?;
        // The receiver may be the one in C, so the text ends with a zero byte.
        let text = format!("greeting {number}\0");
        block[..text.len()].copy_from_slice(text.as_bytes());
        block.enqueue(text.len() as u32).map_err(|rejected| rejected.error)?;
        sender.notify();
        // The Remote says that it has arrived.
        sender.wait(LIMIT)?;
    }
    println!("master: all {MESSAGES} have arrived");
    Ok(())
}

fn remote(participant: &Participant) -> Result<(), Box<dyn Error>> {
    let receiver = Mdcom::init(participant).receiver("greetings")?;
    for _ in 1..=MESSAGES {
        receiver.wait(LIMIT)?;
        let message = receiver.dequeue()?;
        let mut bytes = [0; 64];
        let text = String::from_utf8_lossy(message.read_into(&mut bytes)?);
        println!("remote: {}", text.split('\0').next().unwrap_or_default());
        message.free();
        receiver.notify();
    }
    Ok(())
}
