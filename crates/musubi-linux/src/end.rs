//! Channel ends: claimed by one participant of a domain at a time, linked with whoever holds the other end.
//!
//! What you may rely on: while an [`End`] exists, no other participant of the domain holds that end of that channel.
//! Its mailbox ([`crate::links`]) shows who is at the other side; its own words stay mapped as long as it lives, also
//! after the participant has left.
//!
//! How it works: holding the end is holding a socket name, which the kernel frees at death. Opening and closing are
//! announced to the peers of the other domain.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use musubi_core::fifo::Ring;
use musubi_core::fifo::session::{end_link, publish_link};
use musubi_core::layout::{Part, rx, tx, waiting};
use musubi_core::plan::Fifo;
use musubi_core::port::Doorbell;
use musubi_core::sync::Site;
use rustix::event::epoll;

use crate::dial::claim;
use crate::doorbell::LinkDoorbell;
use crate::error::{Error, Tried};
use crate::events::EventGate;
use crate::late::LateTime;
use crate::links::{RxLinks, RxSender, RxState, TxLink, TxLinks, TxState, Versioned};
use crate::message::Message;
use crate::registry::{Holding, Registry, Shared, Token};
use crate::section::{OwnPart, PeerPart};

/// Which end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The end that sends.
    Send,
    /// The end that receives.
    Receive,
}

impl Direction {
    /// The end at the other side.
    pub fn other(self) -> Direction {
        match self {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
        }
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Direction::Send => "sending",
            Direction::Receive => "receiving",
        })
    }
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

/// One end of a FIFO channel. Dropping it closes the end.
#[derive(Debug)]
pub struct End {
    shared: Arc<Shared>,
    core: Arc<EndCore>,
}

impl End {
    /// Number of the channel.
    pub fn fifo(&self) -> u16 {
        self.core.fifo
    }

    /// The channel in the plan.
    pub fn channel(&self) -> &'static Fifo<'static> {
        channel(&self.shared, self.core.fifo)
    }

    /// Which end.
    pub fn direction(&self) -> Direction {
        self.core.direction
    }

    /// Our participant number and epoch, as links name us.
    pub fn me(&self) -> (u16, u32) {
        (self.shared.me.participant, self.shared.me.epoch)
    }

    /// Nanoseconds to spin before sleeping, from the plan; 0 if this thread has one processor only.
    pub fn spin_ns(&self) -> u32 {
        if crate::futex::spin_allowed() {
            self.shared.plan.domains[usize::from(self.shared.me.domain)].spin_ns
        } else {
            0
        }
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
    /// [`waiting::ARMED`] in our `WAITING` word has rung, and after a change of links.
    ///
    /// # Errors
    /// [`Error::System`] if the process has no descriptors left.
    pub fn event_fd(&self) -> Result<BorrowedFd<'_>, Error> {
        Ok(self.gate()?.fd())
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
    pub fn set_waker(&self, waker: Waker) -> Result<(), Error> {
        let gate = self.gate()?;
        gate.set_waker(Some(waker));
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let token = Token::Waker(self.core.serial).data();
        match epoll::modify(&self.shared.epoll, gate.fd(), token, flags) {
            Err(rustix::io::Errno::NOENT) => epoll::add(&self.shared.epoll, gate.fd(), token, flags),
            done => done,
        }
        .tried("watching a descriptor")?;
        if self.shared.stopping() { Err(Error::Left) } else { Ok(()) }
    }

    /// Has the attendant raise a notification at `at_ns` ([`crate::clock::now_ns`]) unless disarmed before. Cheap if
    /// the same or an earlier time is armed already.
    #[inline]
    pub fn arm_late(&self, at_ns: u64) {
        self.shared.late.arm(&self.core.late, at_ns);
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

impl EndCore {
    /// Those at the other side who live: participant, epoch, serial.
    fn linked(&self) -> Vec<(u16, u32, u32)> {
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

    /// Says in our section that the end is not in use.
    pub(crate) fn mark_closed(&self) {
        self.late.disarm();
        self.own.words().set(open_word(self.direction), 0);
    }

    /// Our participant leaves: the other side is gone for us. The link words stay, so that it can drain what we sent.
    pub(crate) fn leave(&self, shared: &Shared) -> Option<Waker> {
        self.mark_closed();
        if let Some(gate) = self.gate.get() {
            let _ = epoll::delete(&shared.epoll, gate.fd());
        }
        match &self.mailbox {
            Mailbox::Tx(links) => links.change(|state| state.receiver = None),
            Mailbox::Rx(links) => {
                links.change(|state| state.senders.iter_mut().for_each(|sender| sender.alive = false))
            }
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

    fn notify_change(&self) {
        if let Some(gate) = self.gate.get() {
            gate.notify();
        }
    }

    fn forget_bell(&self, who: (u16, u32, u32)) {
        if let Some(gate) = self.gate.get() {
            gate.remove_bell(who);
        }
    }
}

impl Registry {
    /// Claims an end of a channel for this participant.
    pub(crate) fn claim_end(&mut self, shared: &Arc<Shared>, fifo: u16, direction: Direction) -> Result<End, Error> {
        if self.left {
            return Err(Error::Left);
        }
        let own = own_part(shared, fifo, direction)?;
        let Some(claim) = claim(&shared.names.end(fifo, direction))? else {
            return Err(Error::EndInUse { channel: channel(shared, fifo).name.to_owned(), direction });
        };
        let serial = shared.serial.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mailbox = match direction {
            Direction::Send => Mailbox::Tx(Arc::new(Versioned::new(self.first_state(shared, fifo, &own)))),
            Direction::Receive => Mailbox::Rx(Arc::new(Versioned::new(RxState::default()))),
        };
        own.words().publish(open_word(direction), 1, Site::PublishLink);
        let (late, gate) = (LateTime::new(), OnceLock::new());
        let core = Arc::new(EndCore { fifo, direction, serial, own, mailbox, late, gate });
        self.holdings.push(Holding { core: Arc::clone(&core), _claim: claim });
        self.announce(shared, &core, true);
        self.link_ends(shared, fifo);
        Ok(End { shared: Arc::clone(shared), core })
    }

    /// Where a send end begins: at first at 0, when opened again where its last receiver had got.
    fn first_state(&mut self, shared: &Shared, fifo: u16, own: &OwnPart) -> TxState {
        let words = own.words();
        let start = words.get(tx::START);
        if words.get(tx::LINK_EPOCH) == 0 {
            return TxState { receiver: None, gone: 0, start };
        }
        let last = self.parked.remove(&fifo).map(|link| link.words);
        TxState { receiver: None, gone: 0, start: end_session(shared, fifo, own, last.as_ref(), start) }
    }

    /// Gives an end up.
    pub(crate) fn close_end(&mut self, shared: &Shared, core: &Arc<EndCore>) {
        let Some(index) = self.holdings.iter().position(|holding| Arc::ptr_eq(&holding.core, core)) else { return };
        core.mark_closed();
        if let Some(gate) = core.gate.get() {
            // Explicitly: a forked child may hold the descriptor, and then closing ours would not take it off.
            let _ = epoll::delete(&shared.epoll, gate.fd());
        }
        if let Mailbox::Tx(links) = &core.mailbox
            && let Some(link) = links.change(|state| state.receiver.take())
        {
            self.parked.insert(core.fifo, link);
        }
        // The name first: who hears that the end is closed may claim it at once.
        drop(self.holdings.swap_remove(index));
        self.announce(shared, core, false);
    }

    /// Tells the participants of the other domain that an end was opened or closed.
    fn announce(&mut self, shared: &Shared, core: &EndCore, open: bool) {
        let other = other_domain(shared, core);
        let message = Message::End { fifo: core.fifo, direction: core.direction, open, serial: core.serial };
        for peer in 0..self.peers.len() {
            if self.peers[peer].party.domain == other {
                self.tell(shared, peer, message, None);
            }
        }
    }

    /// Tells a new peer of the ends we hold that concern it.
    pub(crate) fn announce_all(&mut self, shared: &Shared, connection: u32, domain: u16) {
        let concerned: Vec<_> = self.holdings.iter().map(|holding| Arc::clone(&holding.core)).collect();
        for core in concerned.iter().filter(|core| other_domain(shared, core) == domain) {
            let message = Message::End { fifo: core.fifo, direction: core.direction, open: true, serial: core.serial };
            self.send(shared, connection, message, None);
        }
    }

    /// Links our ends of a channel with what peers have announced, as far as that is not done.
    pub(crate) fn link_ends(&mut self, shared: &Shared, fifo: u16) {
        let ours: Vec<_> = self.holdings.iter().map(|h| Arc::clone(&h.core)).filter(|core| core.fifo == fifo).collect();
        for core in ours {
            let (theirs, domain) = (core.direction.other(), other_domain(shared, &core));
            for index in 0..self.peers.len() {
                let peer = &self.peers[index];
                let offer = peer.ends.get(&(fifo, theirs)).filter(|end| end.open && peer.party.domain == domain);
                let Some(offer) = offer.cloned() else { continue };
                let part = match theirs {
                    Direction::Send => Part::Tx(fifo),
                    Direction::Receive => Part::Rx(fifo),
                };
                let Some(words) = peer.section.part(part) else { continue };
                let (participant, epoch, serial) = (peer.party.participant, peer.party.epoch, offer.serial);
                let linked = match &core.mailbox {
                    Mailbox::Tx(links) => {
                        let doorbell = offer.doorbell;
                        link_receiver(&core, links, TxLink { participant, epoch, serial, words, doorbell })
                    }
                    Mailbox::Rx(links) => {
                        let (doorbell, alive) = (offer.doorbell, true);
                        link_sender(links, RxSender { participant, epoch, serial, words, doorbell, alive })
                    }
                };
                if linked {
                    self.give_doorbell(shared, &core, (participant, epoch, serial));
                    core.notify_change();
                }
            }
        }
    }

    /// An end of a peer is closed or dead.
    pub(crate) fn end_lost(&mut self, shared: &Shared, who: (u16, u32, u32), fifo: u16, direction: Direction) {
        let is_other = |core: &EndCore| core.fifo == fifo && core.direction == direction.other();
        let Some(core) = self.holdings.iter().map(|h| &h.core).find(|core| is_other(core)).cloned() else { return };
        let changed = match &core.mailbox {
            Mailbox::Tx(links) => unlink_receiver(shared, &core, links, who),
            Mailbox::Rx(links) => unlink_sender(links, who),
        };
        if changed {
            core.forget_bell(who);
            core.notify_change();
        }
    }

    /// Gives a linked peer the socket that rings us, if the end is used with event loops.
    pub(crate) fn give_doorbell(&mut self, shared: &Shared, core: &EndCore, who: (u16, u32, u32)) {
        let Some(gate) = core.gate.get() else { return };
        let Some(peer) = self.peer_index(who.0, who.1) else { return };
        let Ok(bell) = gate.add_bell(who) else { return };
        let message = Message::Doorbell { fifo: core.fifo, direction: core.direction, serial: core.serial };
        self.tell(shared, peer, message, Some(Arc::new(bell)));
    }

    /// A peer gave the socket that rings its end: put it into the link.
    pub(crate) fn doorbell_came(&mut self, who: (u16, u32, u32), fifo: u16, direction: Direction) {
        let Some(end) = self.peer_mut(who.0, who.1).and_then(|peer| peer.ends.get(&(fifo, direction))) else { return };
        let doorbell = end.doorbell.clone();
        let is_other = |core: &EndCore| core.fifo == fifo && core.direction == direction.other();
        let Some(core) = self.holdings.iter().map(|h| &h.core).find(|core| is_other(core)) else { return };
        match &core.mailbox {
            Mailbox::Tx(links) => links.change(|state| {
                let same = |link: &&mut TxLink| (link.participant, link.epoch, link.serial) == who;
                if let Some(link) = state.receiver.as_mut().filter(same) {
                    link.doorbell = doorbell;
                }
            }),
            Mailbox::Rx(links) => links.change(|state| {
                if let Some(sender) = state.find(who) {
                    sender.doorbell = doorbell;
                }
            }),
        }
        // What happened before the peer could be rung through the socket must not stay unheard.
        if let Some(socket) = self.peer_mut(who.0, who.1).and_then(|p| p.ends.get(&(fifo, direction))?.doorbell.clone())
        {
            crate::doorbell::ring_socket(socket.as_fd());
        }
    }
}

/// Opens the session with a receiver, unless there is one.
fn link_receiver(core: &EndCore, links: &TxLinks, link: TxLink) -> bool {
    if links.lock().receiver.is_some() {
        return false;
    }
    let own = core.own.words();
    let socket = link.doorbell.clone();
    links.change(|state| {
        publish_link(&own, link.participant, link.epoch, state.start);
        state.receiver = Some(link);
    });
    // The receiver may have gone to sleep on our bell before it could see the link.
    LinkDoorbell { socket: socket.as_deref() }.ring(own.word(tx::BELL), waiting::ASLEEP | waiting::ARMED);
    true
}

/// Takes in a sender, unless it is there.
fn link_sender(links: &RxLinks, sender: RxSender) -> bool {
    let who = (sender.participant, sender.epoch, sender.serial);
    if links.lock().find(who).is_some() {
        return false;
    }
    links.change(|state| state.arrive(sender))
}

fn unlink_receiver(shared: &Shared, core: &EndCore, links: &TxLinks, who: (u16, u32, u32)) -> bool {
    let is_present = |link: &TxLink| (link.participant, link.epoch, link.serial) == who;
    if !links.lock().receiver.as_ref().is_some_and(is_present) {
        return false;
    }
    links.change(|state| {
        let gone = state.receiver.take();
        let rx = gone.as_ref().map(|link| &link.words);
        state.start = end_session(shared, core.fifo, &core.own, rx, state.start);
        state.gone = state.gone.wrapping_add(1);
    });
    true
}

fn unlink_sender(links: &RxLinks, who: (u16, u32, u32)) -> bool {
    if !links.lock().find(who).is_some_and(|sender| sender.alive) {
        return false;
    }
    links.change(|state| {
        if let Some(sender) = state.find(who) {
            sender.alive = false;
            sender.doorbell = None;
        }
    });
    true
}

/// Closes the session of a send end in our section; gives the position where the next begins.
fn end_session(shared: &Shared, fifo: u16, own: &OwnPart, receiver: Option<&PeerPart>, start: u32) -> u32 {
    let plan = channel(shared, fifo);
    let me = (shared.me.participant, shared.me.epoch);
    end_link(&own.words(), receiver.map(PeerPart::words), Ring::new(plan.blocks), me, start, plan.on_restart)
}

fn channel(shared: &Shared, fifo: u16) -> &'static Fifo<'static> {
    &shared.plan.fifos[usize::from(fifo)]
}

fn other_domain(shared: &Shared, core: &EndCore) -> u16 {
    match core.direction {
        Direction::Send => channel(shared, core.fifo).to,
        Direction::Receive => channel(shared, core.fifo).from,
    }
}

fn open_word(direction: Direction) -> u32 {
    match direction {
        Direction::Send => tx::OPEN,
        Direction::Receive => rx::OPEN,
    }
}

fn own_part(shared: &Shared, fifo: u16, direction: Direction) -> Result<OwnPart, Error> {
    let (part, what) = match direction {
        Direction::Send => (Part::Tx(fifo), "sending end"),
        Direction::Receive => (Part::Rx(fifo), "receiving end"),
    };
    let domain = shared.plan.domains[usize::from(shared.me.domain)].name.to_owned();
    shared.section.part(part).ok_or(Error::NotOurs { domain, what, channel: fifo })
}
