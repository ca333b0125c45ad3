//! Channel ends: claimed by one participant of a domain at a time, linked with whoever holds the other end.
//!
//! What you may rely on: while an [`End`] exists, no other participant of the domain holds that end of that channel.
//! Its mailbox ([`super::mailbox`]) shows who is at the other side; its own words stay mapped as long as it lives, also
//! after the participant has left.
//!
//! How it works: holding the end is holding a socket name, which the kernel frees at death. Opening and closing are
//! announced to the peers of the other domain (`rendezvous/linking.rs`).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Waker};

use musubi_core::plan::Fifo;
use rustix::event::epoll;

use crate::direction::Direction;
use crate::error::{Error, Tried};
use crate::process::channel::event_fd::EventGate;
use crate::process::channel::mailbox::{RxLinks, TxLinks};
use crate::process::rendezvous::holding::{EndCore, Mailbox};
use crate::process::rendezvous::registry::{Shared, Token};
use crate::process::section::OwnPart;

/// One end of a FIFO channel. Dropping it closes the end.
#[derive(Debug)]
pub struct End {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: Arc<EndCore>,
}

impl End {
    /// Number of the channel.
    pub fn fifo(&self) -> u16 {
        self.core.fifo
    }

    /// The channel in the plan.
    pub fn channel(&self) -> &'static Fifo<'static> {
        self.core.channel(self.shared.plan)
    }

    /// Which end.
    pub fn direction(&self) -> Direction {
        self.core.direction
    }

    /// Our participant number and epoch, as links name us.
    pub fn me(&self) -> (u16, u32) {
        (self.shared.me.participant, self.shared.me.epoch)
    }

    /// Our own words of this end.
    #[inline]
    pub fn own(&self) -> &OwnPart {
        &self.core.own
    }

    /// The mailbox that the attendant fills.
    pub fn mailbox(&self) -> &Mailbox {
        &self.core.mailbox
    }

    /// The mailbox of a send end.
    pub fn tx_links(&self) -> Option<&Arc<TxLinks>> {
        match &self.core.mailbox {
            Mailbox::Tx(links) => Some(links),
            Mailbox::Rx(_) => None,
        }
    }

    /// The mailbox of a receive end.
    pub fn rx_links(&self) -> Option<&Arc<RxLinks>> {
        match &self.core.mailbox {
            Mailbox::Rx(links) => Some(links),
            Mailbox::Tx(_) => None,
        }
    }

    /// A descriptor for event loops, the same for the life of the end: readable after a peer that saw
    /// [`musubi_core::layout::waiting::ARMED`] in our `WAITING` word has rung, and after a change of links.
    ///
    /// # Errors
    /// [`Error::System`] if the process has no descriptors left.
    pub fn event_fd(&self) -> Result<BorrowedFd<'_>, Error> {
        Ok(self.gate()?.fd())
    }

    /// [`End::event_fd`] as a descriptor of its own, for a caller that cannot borrow the end.
    ///
    /// # Errors
    /// As there.
    pub fn duplicate_event_fd(&self) -> Result<OwnedFd, Error> {
        self.event_fd()?.try_clone_to_owned().tried("duplicating a descriptor")
    }

    /// Makes the descriptor unreadable until the next ring or change. Clear first, then look for messages.
    pub fn clear_event(&self) {
        if let Some(gate) = self.core.gate.get() {
            gate.clear();
        }
    }

    /// Has the attendant wake `waker`, once, as soon as the descriptor is readable. Not together with another use of
    /// the descriptor.
    ///
    /// # Errors
    /// [`Error::System`] if the process has no descriptors left; [`Error::Left`] after the participant has left.
    ///
    /// Gives the waker that was set before, so that the caller drops it where its destructor does no harm.
    pub fn set_waker(&self, waker: Waker) -> Result<Option<Waker>, Error> {
        let gate = self.gate()?;
        let former = gate.set_waker(Some(waker));
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let token = Token::Waker(self.core.serial).data();
        match epoll::modify(&self.shared.epoll, gate.fd(), token, flags) {
            Err(rustix::io::Errno::NOENT) => epoll::add(&self.shared.epoll, gate.fd(), token, flags),
            done => done,
        }
        .tried("watching a descriptor (epoll_ctl)")?;
        if self.shared.stopping() { Err(Error::Left) } else { Ok(former) }
    }

    /// Clears the descriptor and has the attendant wake a future's task once; without a descriptor nobody could, so the task
    /// looks again at its executor's pace. Gives the waker that was set before: drop it where its destructor does no harm.
    pub(crate) fn listen(&self, context: &Context<'_>) -> Option<Waker> {
        self.clear_event();
        self.set_waker(context.waker().clone()).unwrap_or_else(|_| {
            context.waker().wake_by_ref();
            None
        })
    }

    /// Has the attendant raise a notification at `at_ns` ([`crate::os::clock::now_ns`]) unless disarmed before. Cheap if
    /// the same or an earlier time is armed already.
    #[inline]
    pub fn arm_late(&self, at_ns: u64) {
        self.shared.late.arm(&self.core.late, at_ns);
    }

    /// Whether [`End::arm_late`] still has something to raise.
    #[inline]
    pub fn is_late_armed(&self) -> bool {
        self.core.late.is_armed()
    }

    /// Takes back [`End::arm_late`].
    #[inline]
    pub fn disarm_late(&self) {
        self.core.late.disarm();
    }

    /// The gate to event loops, made when first asked for.
    fn gate(&self) -> Result<&EventGate, Error> {
        if let Some(gate) = self.core.gate.get() {
            return Ok(gate);
        }
        let gate = EventGate::new()?;
        let mut registry = self.shared.lock();
        let gate = self.core.gate.get_or_init(|| gate);
        for who in self.core.linked() {
            registry.give_doorbell(&self.shared, &self.core, who);
        }
        Ok(gate)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.shared.process.is_this() {
            self.shared.lock().close_end(&self.shared, &self.core);
        }
    }
}
