//! Linking channel ends: which of ours faces which of a peer's.
//!
//! What you may rely on: a send end has at most one receiver; a second one that announces itself waits until the first
//! has closed or died, so a peer that claims an end it does not hold displaces nobody. A receive end takes senders in
//! the order of their arrival.
//!
//! How it works: opening, closing and the death of a peer change the announced ends; every change is followed by a look
//! at who can be linked now.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use musubi_core::fifo::Ring;
use musubi_core::fifo::session::{end_link, publish_link};
use musubi_core::layout::{tx, waiting};
use musubi_core::port::Doorbell;
use musubi_core::sync::Site;
use rustix::event::epoll;

use crate::direction::Direction;
use crate::error::Error;
use crate::os::packet_socket::claim;
use crate::process::channel::claim::End;
use crate::process::channel::doorbell::{LinkDoorbell, ring_socket};
use crate::process::channel::event_fd::LinkKey;
use crate::process::channel::latest_timer::LateTime;
use crate::process::channel::mailbox::{
    INCARNATIONS_MAX, RxLinks, RxSender, RxState, TxLink, TxLinks, TxState, Versioned,
};
use crate::process::rendezvous::holding::{EndCore, Holding, Mailbox};
use crate::process::rendezvous::message::{Message, Party};
use crate::process::rendezvous::registry::{Registry, Shared};
use crate::process::section::{OwnPart, PeerPart};

impl Registry {
    /// Claims an end of a channel for this participant.
    pub(crate) fn claim_end(&mut self, shared: &Arc<Shared>, fifo: u16, direction: Direction) -> Result<End, Error> {
        if self.left {
            return Err(Error::Left);
        }
        let own = own_part(shared, fifo, direction)?;
        let Some(claim) = claim(&shared.names.end(fifo, direction))? else {
            return Err(Error::EndInUse { channel: shared.plan.fifos[usize::from(fifo)].name.to_owned(), direction });
        };
        let serial = shared.serial.fetch_add(1, Ordering::Relaxed);
        let mailbox = match direction {
            Direction::Send => Mailbox::Tx(Arc::new(Versioned::new(self.first_state(shared, fifo, &own)))),
            Direction::Receive => Mailbox::Rx(Arc::new(Versioned::new(RxState::default()))),
        };
        own.words().publish(direction.open_word(), 1, Site::PublishLink);
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
            return TxState { start, ..TxState::default() };
        }
        let last = self.parked.remove(&fifo).map(|link| link.words);
        TxState { start: end_session(shared, fifo, own, last.as_ref(), start), ..TxState::default() }
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
        let other = core.other_domain(shared.plan);
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
        for core in concerned.iter().filter(|core| core.other_domain(shared.plan) == domain) {
            let message = Message::End { fifo: core.fifo, direction: core.direction, open: true, serial: core.serial };
            self.send(shared, connection, message, None);
        }
    }

    /// Links our ends of a channel with what peers have announced, as far as that is not done.
    pub(crate) fn link_ends(&mut self, shared: &Shared, fifo: u16) {
        let ours: Vec<_> = self.holdings.iter().map(|h| Arc::clone(&h.core)).filter(|core| core.fifo == fifo).collect();
        for core in ours {
            for peer in 0..self.peers.len() {
                if let Some(who) = self.link_end(shared, &core, peer) {
                    self.give_doorbell(shared, &core, who);
                    core.notify_change();
                }
            }
        }
    }

    /// Links one end of ours with that of a peer, if the peer holds it open and we are free; gives who it is.
    fn link_end(&self, shared: &Shared, core: &EndCore, peer: usize) -> Option<LinkKey> {
        let peer = &self.peers[peer];
        let theirs = core.direction.other();
        let offer = peer.ends.get(&(core.fifo, theirs)).filter(|end| end.open)?;
        if peer.party.domain != core.other_domain(shared.plan) {
            return None;
        }
        let words = peer.section.part(theirs.part(core.fifo))?;
        let (participant, epoch, serial) = (peer.party.participant, peer.party.epoch, offer.serial);
        let doorbell = offer.doorbell.clone();
        let linked = match &core.mailbox {
            Mailbox::Tx(links) => link_receiver(core, links, TxLink { participant, epoch, serial, words, doorbell }),
            Mailbox::Rx(links) => {
                link_sender(links, RxSender { participant, epoch, serial, words, doorbell, alive: true })
            }
        };
        linked.then_some((participant, epoch, serial))
    }

    /// An end of a peer is closed or dead.
    pub(crate) fn end_lost(&mut self, shared: &Shared, who: LinkKey, fifo: u16, direction: Direction) {
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
    pub(crate) fn give_doorbell(&mut self, shared: &Shared, core: &EndCore, who: LinkKey) {
        let Some(gate) = core.gate.get() else { return };
        let Some(peer) = self.peer_index(who.0, who.1) else { return };
        let Ok(bell) = gate.add_bell(who) else {
            if let Some(id) = self.peers[peer].connections.first().copied() {
                self.missed(shared, id);
            }
            return;
        };
        let message = Message::Doorbell { fifo: core.fifo, direction: core.direction, serial: core.serial };
        self.tell(shared, peer, message, Some(Arc::new(bell)));
    }

    /// Gives a peer on a further connection the sockets of the ends that it is linked with already.
    pub(crate) fn give_doorbells_again(&mut self, shared: &Shared, connection: u32, party: Party) {
        let cores: Vec<_> = self.holdings.iter().map(|holding| Arc::clone(&holding.core)).collect();
        for core in cores {
            let is_peer = |who: &LinkKey| (who.0, who.1) == (party.participant, party.epoch);
            let (Some(gate), Some(who)) = (core.gate.get(), core.linked().into_iter().find(is_peer)) else { continue };
            let Ok(bell) = gate.add_bell(who) else {
                self.missed(shared, connection);
                continue;
            };
            let message = Message::Doorbell { fifo: core.fifo, direction: core.direction, serial: core.serial };
            self.send(shared, connection, message, Some(Arc::new(bell)));
        }
    }

    /// A peer gave the socket that rings its end: put it into the link.
    pub(crate) fn doorbell_came(&mut self, who: LinkKey, fifo: u16, direction: Direction) {
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
            ring_socket(socket.as_fd());
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

fn unlink_receiver(shared: &Shared, core: &EndCore, links: &TxLinks, who: LinkKey) -> bool {
    let is_present = |link: &TxLink| (link.participant, link.epoch, link.serial) == who;
    if !links.lock().receiver.as_ref().is_some_and(is_present) {
        return false;
    }
    links.change(|state| {
        let gone = state.receiver.take();
        let (rx, began) = (gone.as_ref().map(|link| &link.words), state.start);
        state.start = end_session(shared, core.fifo, &core.own, rx, state.start);
        state.gone = state.gone.wrapping_add(1);
        if state.lost.len() == INCARNATIONS_MAX {
            state.lost.pop_front();
        }
        state.lost.extend(gone.map(|link| (link, began)));
    });
    true
}

fn unlink_sender(links: &RxLinks, who: LinkKey) -> bool {
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
    let plan = &shared.plan.fifos[usize::from(fifo)];
    let me = (shared.me.participant, shared.me.epoch);
    end_link(&own.words(), receiver.map(PeerPart::words), Ring::new(plan.blocks), me, start, plan.on_restart)
}

fn own_part(shared: &Shared, fifo: u16, direction: Direction) -> Result<OwnPart, Error> {
    let what = match direction {
        Direction::Send => "sending end",
        Direction::Receive => "receiving end",
    };
    let domain = shared.plan.domains[usize::from(shared.me.domain)].name.to_owned();
    shared.section.part(direction.part(fifo)).ok_or(Error::NotOurs { domain, what, channel: fifo })
}
