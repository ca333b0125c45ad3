//! Takes telemetry and records it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use musubi_core::Error;
use musubi_linux::clock::now_ns;
use musubi_linux::uio::Participant;
use musubi_mdcom::{Mdcom, Wait};
use zcu102_demo::{TELEMETRY, Telemetry};
use zcu102_linux::{Journal, RECEIVED, Received};

use crate::Seen;

/// Longest wait before looking whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Listens until it is told to stop.
pub fn listen(participant: &Participant, seen: &Seen) -> Result<()> {
    let mut journal = Journal::open(RECEIVED)?;
    let attachment: &musubi_core::mapped::Participant<'_, _> = participant;
    let telemetry = Mdcom::init(attachment).receiver_of::<Telemetry>(TELEMETRY).context("opening telemetry")?;
    while seen.stop.load(Ordering::Relaxed) == 0 {
        let message = match telemetry.next(Wait::For(LOOK)) {
            Ok(message) => message,
            Err(Error::Timeout) => continue,
            Err(Error::PeerGone) => {
                println!("remote: the Master has gone; waiting for its successor");
                continue;
            }
            Err(error) => return Err(error).context("receiving telemetry"),
        };
        let telemetry = message.read().context("a telemetry message")?;
        let reader = participant.epoch();
        // Recorded before the block goes back: what is not recorded was in our hands.
        journal.add(&Received { telemetry, at_ns: now_ns(), reader, reserved: 0 })?;
        message.free();
        if seen.incarnation.swap(telemetry.incarnation, Ordering::Relaxed) != telemetry.incarnation {
            println!("remote: telemetry of the Master's incarnation {:#010x}", telemetry.incarnation);
        }
        seen.generation.store(telemetry.generation, Ordering::Relaxed);
    }
    Ok(())
}
