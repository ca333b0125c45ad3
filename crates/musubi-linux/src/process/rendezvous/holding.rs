//! The ends of channels that a participant holds: what the attendant and the data path share of one.
//!
//! What you may rely on: no call here waits. What is changed here wakes who sleeps on the mailbox or the descriptor.

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use musubi_core::layout::{rx, tx};
use musubi_core::plan::{Fifo, Plan};
use musubi_core::port::Doorbell;
use rustix::event::epoll;

use crate::direction::Direction;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::process::channel::doorbell::LinkDoorbell;
use crate::process::channel::event_fd::EventGate;
use crate::process::channel::latest_timer::LateTime;
use crate::process::channel::mailbox::{RxLinks, TxLinks};
use crate::process::section::OwnPart;

/// An end of ours and the name that makes it ours.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) core: Arc<EndCore>,
    pub(crate) _claim: Kept,
}

/// What the attendant and the holder share of an end.
#[derive(Debug)]
pub(crate) struct EndCore {
    pub(crate) fifo: u16,
    pub(crate) direction: Direction,
    pub(crate) serial: u32,
    pub(crate) own: OwnPart,
    pub(crate) mailbox: Mailbox,
    pub(crate) late: LateTime,
    pub(crate) gate: OnceLock<EventGate>,
}

/// Who is at the other side.
#[derive(Debug)]
pub enum Mailbox {
    /// Of a send end.
    Tx(Arc<TxLinks>),
    /// Of a receive end.
    Rx(Arc<RxLinks>),
}

impl EndCore {
    /// Those at the other side who live: participant, epoch, serial.
    pub(crate) fn linked(&self) -> Vec<(u16, u32, u32)> {
        match &self.mailbox {
            Mailbox::Tx(links) => {
                links.lock().receiver.iter().map(|link| (link.participant, link.epoch, link.serial)).collect()
            }
            Mailbox::Rx(links) => {
                let state = links.lock();
                let living = state.senders.iter().filter(|sender| sender.alive);
                living.map(|sender| (sender.participant, sender.epoch, sender.serial)).collect()
            }
        }
    }

    /// The channel in the plan.
    pub(crate) fn channel(&self, plan: &'static Plan<'static>) -> &'static Fifo<'static> {
        &plan.fifos[usize::from(self.fifo)]
    }

    /// The domain at the other side.
    pub(crate) fn other_domain(&self, plan: &'static Plan<'static>) -> u16 {
        match self.direction {
            Direction::Send => self.channel(plan).to,
            Direction::Receive => self.channel(plan).from,
        }
    }

    /// Says in our section that the end is not in use.
    pub(crate) fn mark_closed(&self) {
        self.late.disarm();
        self.own.words().set(self.direction.open_word(), 0);
    }

    /// Our participant leaves: the other side is gone for us. The link words stay, so that it can drain what we sent.
    pub(crate) fn leave(&self, epoll: &Descriptor) -> Option<Waker> {
        self.mark_closed();
        if let Some(gate) = self.gate.get() {
            let _ = epoll::delete(epoll, gate.fd());
        }
        match &self.mailbox {
            Mailbox::Tx(links) => links.change(|state| state.receiver = None),
            // What the senders still have queued is for our successor.
            Mailbox::Rx(links) => links.change(|state| state.senders.clear()),
        }
        self.notify_change();
        self.gate.get()?.set_waker(None)
    }

    /// Raises a notification that no message carries.
    pub(crate) fn raise_late(&self) {
        let Mailbox::Tx(links) = &self.mailbox else { return };
        let own = self.own.words();
        own.advance(tx::EVENTS, 1);
        // Before the look at WAITING: the receiver announces sleep and then looks at EVENTS.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let state = links.lock();
        if let Some(link) = &state.receiver {
            let waiting = link.words.words().look(rx::WAITING);
            if waiting != 0 {
                LinkDoorbell { socket: link.doorbell.as_deref() }.ring(own.word(tx::BELL), waiting);
            }
        }
    }

    pub(crate) fn notify_change(&self) {
        if let Some(gate) = self.gate.get() {
            gate.notify();
        }
    }

    pub(crate) fn forget_bell(&self, who: (u16, u32, u32)) {
        if let Some(gate) = self.gate.get() {
            gate.remove_bell(who);
        }
    }
}
