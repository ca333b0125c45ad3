//! The Master's real-time loop: every period it measures how late it is, looks at the parameters, and sends telemetry.
//!
//! What you may rely on: one period takes a bounded time and waits for nothing: no block free, the lock taken, Linux gone
//! or not there yet, all of it only counts.
//!
//! How it works: a step function, called by whatever drives it: a task of an RTOS that sleeps until [`Control::due_ns`],
//! or a bare loop that looks at the clock. Deadlines are absolute; one that has passed by a whole period is left out and
//! counted.

use core::sync::atomic::{AtomicBool, Ordering};

use musubi_core::Error;
use musubi_core::channel::Attachment;
use musubi_mdcom::{Mdcom, OpenError, Sender, Shared, Wait};

use crate::{PARAMETERS, Parameters, TELEMETRY, Telemetry};

/// Period of the loop in nanoseconds.
pub const PERIOD_NS: u64 = 1_000_000;

/// What the loop asks of the digester, because Linux asked it.
#[derive(Debug, Default)]
pub struct Wishes {
    /// Whether the digester shall crash in the middle of its next message. Writer: the loop.
    pub crash: AtomicBool,
}

/// The loop.
pub struct Control<'a, A: Attachment> {
    attachment: &'a A,
    wishes: &'a Wishes,
    telemetry: Sender<'a, A, Telemetry>,
    memory: Shared<'a, A, Parameters>,
    parameters: Parameters,
    incarnation: u32,
    first_ns: u64,
    period: u64,
    sequence: u64,
    skipped: u32,
    unsent: u32,
}

impl<'a, A: Attachment> Control<'a, A> {
    /// Opens the channels; the first period begins at `first_ns`. `incarnation` is the participant's epoch.
    ///
    /// # Errors
    /// What the port says of the channels.
    pub fn new(
        attachment: &'a A,
        incarnation: u32,
        wishes: &'a Wishes,
        first_ns: u64,
    ) -> Result<Self, OpenError<A::Error>> {
        let mdcom = Mdcom::init(attachment);
        Ok(Control {
            attachment,
            wishes,
            telemetry: mdcom.sender_of(TELEMETRY)?,
            memory: mdcom.shared(PARAMETERS, Wait::Poll)?,
            parameters: Parameters::default(),
            incarnation,
            first_ns,
            period: 0,
            sequence: 0,
            skipped: 0,
            unsent: 0,
        })
    }

    /// When the next period begins, in nanoseconds of the port's clock.
    pub fn due_ns(&self) -> u64 {
        self.first_ns + self.period * PERIOD_NS
    }

    /// Runs the next period if its time has come.
    pub fn run_if_due(&mut self) {
        let now_ns = self.attachment.now_ns();
        let Some(late_ns) = now_ns.checked_sub(self.due_ns()) else { return };
        self.look_at_parameters();
        if self.period.checked_rem(u64::from(self.parameters.every)) == Some(0) {
            self.send(late_ns);
        }
        let next = self.period + 1;
        let reachable = (self.attachment.now_ns().saturating_sub(self.first_ns)) / PERIOD_NS;
        self.skipped = self.skipped.wrapping_add(reachable.saturating_sub(next) as u32);
        self.period = next.max(reachable);
    }

    fn look_at_parameters(&mut self) {
        let Ok(guard) = self.memory.try_lock() else { return };
        let parameters = guard.read();
        drop(guard);
        if parameters != self.parameters {
            self.parameters = parameters;
            self.wishes.crash.store(parameters.crash == self.incarnation, Ordering::Relaxed);
        }
    }

    fn send(&mut self, late_ns: u64) {
        let block = match self.telemetry.alloc(Wait::Poll) {
            // A Remote has gone: told once, instead of the refusal.
            Err(Error::PeerGone) => self.telemetry.alloc(Wait::Poll),
            other => other,
        };
        let Ok(mut block) = block else {
            self.unsent = self.unsent.wrapping_add(1);
            return;
        };
        *block = Telemetry {
            sequence: self.sequence,
            period: self.period,
            sent_ns: self.attachment.now_ns(),
            lateness_ns: u32::try_from(late_ns).unwrap_or(u32::MAX),
            incarnation: self.incarnation,
            generation: self.parameters.generation,
            skipped: self.skipped,
            unsent: self.unsent,
            reserved: 0,
        };
        if block.enqueue().is_ok() {
            self.telemetry.notify();
            self.sequence += 1;
        }
    }
}
