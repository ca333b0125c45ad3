//! The gateway's section as the launcher sees it, also after the gateway has died.
//!
//! What you may rely on: what is read after the process has been reaped does not change any more.
//!
//! How it works: the launcher looks at the system as an observer, from outside and read-only, and keeps the mapping.

use std::sync::Arc;
use std::time::Duration;

use musubi_core::layout::{Part, rx};
use musubi_core::plan::Plan;
use musubi_linux::{Deadline, DeadlineExt, Error, Observer, PeerSection};

use super::system::TELEMETRY;

/// How long looking may take.
const LOOK_WAIT: Duration = Duration::from_millis(500);

/// What is seen of the gateway.
#[derive(Debug)]
pub struct Witness {
    plan: &'static Plan<'static>,
    observer: Observer,
    section: Option<Arc<PeerSection>>,
}

impl Witness {
    /// Prepares to look at a run.
    pub fn new(plan: &'static Plan<'static>, instance: &str) -> Result<Witness, Error> {
        Ok(Witness { plan, observer: Observer::new(plan, Some(instance))?, section: None })
    }

    /// Looks for the living gateway and keeps what it finds.
    pub fn look(&mut self) {
        if self.observer.refresh(Deadline::after(LOOK_WAIT)).is_err() {
            return;
        }
        let gateway = self.plan.domain("gateway");
        let seen = self.observer.participants().iter().find(|seen| Some(seen.section.domain()) == gateway);
        self.section = seen.map(|seen| Arc::clone(&seen.section));
    }

    /// Messages that the gateway has taken from the telemetry channel, if it is the channel's first receiver; then
    /// positions begin at 0. `None` if it was never seen.
    pub fn taken(&self) -> Option<u64> {
        let part = self.section.as_ref()?.part(Part::Rx(self.plan.fifo(TELEMETRY)?))?;
        Some(u64::from(part.words().get(rx::TAKEN)))
    }
}

#[cfg(test)]
mod tests {
    use musubi_linux::{Options, Participant};
    use musubi_mdcom::{Mdcom, Wait};

    use super::super::system::{Telemetry, new_instance, plan};
    use super::*;

    #[test]
    fn a_message_that_died_in_the_gateways_hands_is_seen_as_taken() {
        let (plan, instance) = (plan().unwrap(), new_instance());
        let attach = |domain: &str| {
            let options = Options { instance: Some(instance.clone()), ..Options::new(plan, domain) };
            Participant::attach(options).unwrap()
        };
        let (control, gateway) = (attach("control"), attach("gateway"));
        let sender = Mdcom::init(&control).sender_of::<Telemetry>(TELEMETRY).unwrap();
        for sequence in 0..5 {
            let message = Telemetry { sequence, cycle: 0, sent_ns: 0, lateness_ns: 0, generation: 0 };
            sender.send(message, Wait::Poll).unwrap();
        }
        let mut witness = Witness::new(plan, &instance).unwrap();
        assert_eq!(witness.taken(), None);
        let receiver = Mdcom::init(&gateway).receiver_of::<Telemetry>(TELEMETRY).unwrap();
        let wait = Wait::For(Duration::from_secs(5));
        assert_eq!([0, 1].map(|_| receiver.recv(wait).unwrap().sequence), [0, 1]);
        witness.look();
        assert_eq!(witness.taken(), Some(2));
        // Taken, never freed: what a kill leaves.
        std::mem::forget(receiver.next(wait).unwrap());
        drop(receiver);
        drop(gateway);
        assert_eq!(witness.taken(), Some(3));
        let successor = attach("gateway");
        let receiver = Mdcom::init(&successor).receiver_of::<Telemetry>(TELEMETRY).unwrap();
        assert_eq!(receiver.recv(wait).unwrap().sequence, 3, "delivered once, to the one that died");
    }
}
