//! A task of Embassy that receives from a Linux process.
//!
//! `cargo xtask qemu example-embassy` runs it on a Cortex-R5F of a ZCU102, with the process on the Cortex-A53s.
#![no_std]
#![no_main]

use musubi_core::mapped::{Participant, Setup, StorageLine, storage_lines};
use musubi_embassy::CoreHost;
use musubi_mdcom::{Error, Mdcom};
use musubi_metal::board::zcu102_r5::{Zcu102R5, has_interrupts};
use musubi_metal::{image, println};
use zcu102_r5_side::{DOMAIN, PARTICIPANT, PLAN, listen, memory, ring};

image! { Cpu: Zcu102R5, 1, main }

type Chip = CoreHost<Zcu102R5>;
const LINES: usize = storage_lines::<Chip>(&PLAN, DOMAIN);
static BOARD: Chip = CoreHost::new(false, || has_interrupts(0), ring);
static STORAGE: [StorageLine; LINES] = [const { StorageLine::new() }; LINES];

#[embassy_executor::task]
async fn receive(participant: Participant<'static, Chip>) {
    let mdcom = Mdcom::init(&participant);
    let receiver = mdcom.receiver("stream").expect("the channel ends here, and nobody else has it");
    loop {
        match receiver.next_async().await {
            Ok(message) => {
                // The sender may write the block at any time, so only the copy is looked at.
                let mut text = [0; 64];
                let bytes = message.copy_to(0, &mut text);
                println!(Cpu, "{}", core::str::from_utf8(&text[..bytes]).unwrap_or("not a text"));
            }
            Err(Error::PeerGone) => println!(Cpu, "the peer at the other end has gone"),
            Err(error) => println!(Cpu, "{error}"),
        }
    }
}

fn main() -> ! {
    listen();
    let memory = memory().expect("nobody has it yet");
    let setup = Setup::new(&PLAN, PARTICIPANT, &BOARD, memory, &STORAGE);
    let participant = Participant::attach(setup).expect("a plan that was checked");
    println!(Cpu, "Embassy, {} interrupts", if has_interrupts(0) { "with" } else { "polling, without" });
    musubi_embassy::run(participant.pulse(), |spawner| spawner.spawn(receive(participant).expect("one such task")))
}
