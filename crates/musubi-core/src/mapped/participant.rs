//! A participant in mapped memory.
//!
//! What you may rely on: it is attached until this and all ends and segments that were opened with it are dropped; then
//! its root says so, peers are rung, and the storage can be used again. One that is forgotten instead looks to its peers
//! like one that stands still.

use super::Host;
use super::attach::Setup;
use super::ends::{ReceivingEnd, Segment, SendingEnd, waiting};
use super::shared::Shared;
use crate::channel::{Attachment, Deadline, ReceivingEnd as _, WAIT_MAX};
use crate::error::Error;
use crate::plan::Plan;
use crate::port::Clock;

/// A participant that is attached. Handles of it may be cloned, shared by threads and used by handlers.
#[derive(Debug)]
pub struct Participant<'m, B: Host> {
    pub(super) shared: &'m Shared<'m, B>,
}

impl<'m, B: Host> Participant<'m, B> {
    /// Attaches.
    ///
    /// # Errors
    /// [`Error::Plan`] if the plan breaks a limit, has no such participant, or needs more storage than was given;
    /// [`Error::InUse`] if the storage is in use.
    pub fn attach(setup: Setup<'m, B>) -> Result<Self, Error> {
        setup.attach().map(|shared| Participant { shared })
    }

    /// Our global number.
    pub fn participant(&self) -> u16 {
        self.shared.here.me
    }

    /// Our incarnation.
    pub fn epoch(&self) -> u32 {
        self.shared.here.epoch
    }

    /// The time that all participants have in common, in nanoseconds of the Master's clock as far as it is known.
    pub fn common_ns(&self) -> u64 {
        Clock::now_ns(&self.shared.here)
    }

    /// The periodic work: heartbeat, a look at the peers, notifications that are due. Never waits; call it from a tick,
    /// a thread or a loop, several times in each heartbeat period of the plan. Late notifications are as late as it is.
    pub fn beat(&self) {
        self.shared.beat();
    }

    /// A ring came: makes sleeping threads and futures of this participant look. For the host's handler; takes no lock
    /// and never waits, except for what a waker does.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// A handle for ticks and handlers that does not keep us attached.
    pub fn pulse(&self) -> Pulse<'m, B> {
        self.shared.here.users.refer();
        Pulse { shared: self.shared }
    }

    /// Whether a participant is attached and stands still.
    pub fn is_stalled(&self, participant: u16) -> bool {
        let epoch = self.shared.here.epoch_of(participant);
        epoch != 0 && self.shared.here.is_stalled(participant, epoch)
    }
}

/// What a tick and a doorbell's handler need of a participant. It does not keep the participant attached, only its
/// storage claimed.
#[derive(Debug)]
pub struct Pulse<'m, B: Host> {
    shared: &'m Shared<'m, B>,
}

impl<B: Host> Pulse<'_, B> {
    /// Whether it is attached still: by its own handles, or by those of ends and segments.
    pub fn is_attached(&self) -> bool {
        self.shared.here.users.are_attached()
    }

    /// [`Participant::beat`], as long as it is attached.
    pub fn beat(&self) {
        if self.is_attached() {
            self.shared.beat();
        }
    }

    /// [`Participant::wake`].
    pub fn wake(&self) {
        self.shared.wake();
    }
}

impl<B: Host> Drop for Pulse<'_, B> {
    fn drop(&mut self) {
        self.shared.here.users.end();
    }
}

impl<B: Host> Clone for Participant<'_, B> {
    fn clone(&self) -> Self {
        self.shared.here.users.join();
        Participant { shared: self.shared }
    }
}

impl<B: Host> Drop for Participant<'_, B> {
    fn drop(&mut self) {
        if self.shared.here.users.leave() {
            self.shared.end();
        }
    }
}

impl<'m, B: Host> Attachment for Participant<'m, B> {
    type Sending = SendingEnd<'m, B>;
    type Receiving = ReceivingEnd<'m, B>;
    type Segment = Segment<'m, B>;
    type Error = Error;

    fn plan(&self) -> &Plan<'_> {
        self.shared.here.plan
    }

    fn domain(&self) -> u16 {
        self.shared.here.domain
    }

    fn now_ns(&self) -> u64 {
        self.shared.here.host.now_ns()
    }

    fn sleep_until(&self, at_ns: u64) {
        while self.shared.here.host.now_ns() < at_ns {
            self.shared.here.host.rest(at_ns, &|| true);
        }
    }

    fn attached(&self, domain: u16) -> u16 {
        let is_here = |&other: &u16| {
            let epoch = self.shared.here.epoch_of(other);
            other == self.shared.here.me
                || (self.shared.here.is_attached(other) && !self.shared.here.is_stalled(other, epoch))
        };
        self.shared.here.participants_of(domain).filter(is_here).count() as u16
    }

    fn open_sending(&self, fifo: u16) -> Result<SendingEnd<'m, B>, Error> {
        let record = self.shared.sending.iter().find(|record| record.fifo == fifo).ok_or(Error::NotOurs)?;
        SendingEnd::open(self.shared, record)
    }

    fn open_receiving(&self, fifo: u16) -> Result<ReceivingEnd<'m, B>, Error> {
        let record = self.shared.receiving.iter().find(|record| record.fifo == fifo).ok_or(Error::NotOurs)?;
        ReceivingEnd::open(self.shared, record)
    }

    fn wait_any(&self, ends: &[&ReceivingEnd<'m, B>], deadline: Deadline) -> Result<(), Error> {
        if ends.len() > WAIT_MAX {
            return Err(Error::TooLong);
        }
        let look = || ends.iter().any(|end| end.is_ready()).then_some(Ok(()));
        waiting::wait(self.shared, deadline, look, |asleep| ends.iter().for_each(|end| end.announce(asleep)))
    }

    fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<Segment<'m, B>, Error> {
        let record = self.shared.segments.iter().find(|record| record.smem == smem).ok_or(Error::NotOurs)?;
        Segment::open(self.shared, record, deadline)
    }
}
