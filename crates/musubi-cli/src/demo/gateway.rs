//! The gateway: receives telemetry, records it before giving the block back, sets the loop's parameters.
//!
//! What you may rely on: at any instant at most one message is in its hands: dequeued, but not yet in the journal. That
//! is the only place where its death can take a message.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Context;
use musubi_core::Error;
use musubi_linux::Participant;
use musubi_linux::clock::now_ns;
use musubi_mdcom::{Mdcom, Shared, Wait};

use super::journal::{self, Entry};
use super::leash::{Leash, Request};
use super::system::{PARAMETERS, Parameters, START_WAIT, TELEMETRY, Telemetry, attach};
use super::waiting::Account;

/// Longest wait before looking whether the launcher asks to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long the lock of the parameters may take.
const LOCK_WAIT: Duration = Duration::from_millis(10);
/// How often the parameters are set, in nanoseconds.
const SETTING_PERIOD_NS: u64 = 250_000_000;
/// The alarm threshold is this many times the median lateness.
const ALARM_FACTOR: u64 = 8;
/// Least alarm threshold in nanoseconds.
const ALARM_NS_MIN: u64 = 20_000;

/// Runs until control has left and everything it sent has been received.
pub fn run(instance: &str, incarnation: u32, leash: &Leash) -> anyhow::Result<()> {
    let mut journal = File::from(std::io::stdout().as_fd().try_clone_to_owned().context("opening the journal")?);
    let participant = attach("gateway", instance)?;
    let mdcom = Mdcom::init(&participant);
    let telemetry = mdcom.receiver_of::<Telemetry>(TELEMETRY)?;
    let mut desk = Desk::new(mdcom.shared(PARAMETERS, Wait::For(START_WAIT))?);
    let account = Account::of_this_thread();
    loop {
        let message = match telemetry.next(Wait::For(LOOK)) {
            Ok(message) => message,
            Err(Error::Timeout) if leash.request() == Request::Stop => return Ok(()),
            Err(Error::Timeout) => continue,
            // Control has left, and what it had sent has been received.
            Err(Error::PeerGone) => return Ok(()),
            Err(error) => return Err(error).context("receiving telemetry"),
        };
        let received_ns = now_ns();
        let Telemetry { sequence, sent_ns, lateness_ns, .. } = message.read().context("reading telemetry")?;
        journal::append(
            &mut journal,
            &Entry { sequence, sent_ns, received_ns, ready_ns: account.ready_ns(), lateness_ns, incarnation },
        )?;
        message.free();
        desk.note(received_ns, lateness_ns);
    }
}

/// Where the parameters are set.
struct Desk<'a> {
    memory: Shared<'a, Participant, Parameters>,
    latenesses_ns: Vec<u32>,
    next_ns: u64,
}

impl<'a> Desk<'a> {
    fn new(memory: Shared<'a, Participant, Parameters>) -> Desk<'a> {
        Desk { memory, latenesses_ns: Vec::new(), next_ns: 0 }
    }

    fn note(&mut self, now_ns: u64, lateness_ns: u32) {
        self.latenesses_ns.push(lateness_ns);
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + SETTING_PERIOD_NS;
            self.set();
        }
    }

    /// The threshold follows the median. A lock that is busy is left for the next time.
    fn set(&mut self) {
        let middle = self.latenesses_ns.len() / 2;
        let median_ns = *self.latenesses_ns.select_nth_unstable(middle).1;
        self.latenesses_ns.clear();
        let Ok(mut guard) = self.memory.lock(Wait::For(LOCK_WAIT)) else { return };
        let generation = guard.read().generation.wrapping_add(1);
        let alarm_ns = (ALARM_FACTOR * u64::from(median_ns)).max(ALARM_NS_MIN);
        guard.write(&Parameters { alarm_ns, generation, every: 1 });
    }
}
