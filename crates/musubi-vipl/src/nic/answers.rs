//! What other nodes' connection managers say, and this one's own.

use alloc::vec::Vec;

use musubi_transport::frame::Header;
use musubi_transport::links::{Block, Links};
use musubi_transport::{NodeId, Priority};

use super::connecting::{BACKLOG_MAX, CALLERS_OF_PEER_MAX, Caller, Manner, Standing, class_of};
use super::connection::Connection;
use super::frames::{Came, Edge};
use super::{NicState, ViEntry, ViNumber};
use crate::address::NicNumber;
use crate::engine::ViAttributes;
use crate::error::ViError;
use crate::slots::Slots;
use crate::wire::{NicFrame, Refusal, Request, ViName};

impl<B: Block> NicState<B> {
    /// A frame of another node's connection manager, or this one's own.
    #[cold]
    pub(super) fn managers_frame_came(
        &mut self,
        from: NodeId,
        header: &Header,
        came: &Came<'_, B>,
        links: &mut impl Links<Block = B>,
    ) {
        let mut bytes = [0; crate::wire::REQUEST_BYTES_MAX];
        if header.kind == NicFrame::PICTURE {
            return self.picture_came(from, came);
        }
        let Some(told) = Self::told(came, &mut bytes) else { return self.refuse() };
        let Some(frame) = NicFrame::of_manager(header, told) else { return self.refuse() };
        let data = frame.connection_data(told).to_vec();
        let peer = self.carriage.enter(from);
        let (theirs, ours) = (ViName(header.from), ViName(header.to));
        match frame {
            NicFrame::Request(request) => self.request_came(peer, from, theirs, request, links),
            NicFrame::PeerRequest(request) => self.peer_request_came(peer, from, (theirs, ours), &request, links),
            NicFrame::Accept(attributes) => self.accept_came((peer, from), theirs, ours, (attributes, data), links),
            NicFrame::Refuse(refusal) => self.refuse_came(peer, ours, (refusal, data), links),
            NicFrame::Cancel => self.cancel_came(peer, theirs, links),
            NicFrame::Confirm => self.confirm_came(peer, ours),
            NicFrame::Disconnect => self.disconnect_came(peer, ours, links),
            NicFrame::Reach(lease) => self.reach_came(peer, lease, links),
            NicFrame::Grant { class, messages, bytes } => self.grant_came(peer, class, (messages, bytes), links),
            NicFrame::Reached => self.carriage.peer(peer).fetches = true,
            NicFrame::Inspect => self.inspect_came(peer, links),
            _ => self.refuse(),
        }
    }

    fn request_came(
        &mut self,
        peer: u16,
        from: NodeId,
        name: ViName,
        request: Request,
        links: &mut impl Links<Block = B>,
    ) {
        let is_honest = NicNumber::of_node(from).is_some_and(|(nic, _)| nic == request.local.nic);
        if !is_honest || request.remote.nic != self.nic {
            return self.refuse_caller(peer, name, Refusal::NoMatch, links);
        }
        let discriminator = &request.remote.discriminator;
        let listener = self.connecting.listeners.iter_mut().find(|one| one.discriminator == *discriminator);
        let Some(listener) = listener else { return self.refuse_caller(peer, name, Refusal::NoMatch, links) };
        let callers = &mut self.connecting.callers;
        let of_peer = callers.iter().filter(|(_, caller)| caller.peer == peer).count();
        let has_room = listener.callers.len() < BACKLOG_MAX && of_peer < CALLERS_OF_PEER_MAX;
        let caller = Caller { peer, name, request, standing: Standing::Queued };
        match has_room.then(|| callers.insert(caller)).flatten() {
            None => self.refuse_caller(peer, name, Refusal::Busy, links),
            Some(number) => {
                listener.callers.push_back(number);
                self.changes += 1;
            }
        }
    }

    fn peer_request_came(
        &mut self,
        peer: u16,
        from: NodeId,
        (name, ours): (ViName, ViName),
        request: &Request,
        links: &mut impl Links<Block = B>,
    ) {
        let me = self.carriage.me;
        let is_any = ours == ViName::default();
        let mirrors = |entry: &ViEntry| {
            entry.attempt.as_ref().is_some_and(|attempt| {
                let asks = matches!(attempt.manner, Manner::PeerNode { .. }) && attempt.outcome.is_none();
                // An answer to an attempt that has ended says nothing to the next.
                let asks = asks && (is_any || attempt.here == ours);
                asks && (from, name) != (me, attempt.here)
                    && attempt.local == request.remote
                    && attempt.remote == request.local
            })
        };
        let found =
            self.vis.iter().find(|(_, entry)| mirrors(entry)).map(|(number, _)| Slots::<ViEntry>::place(number));
        let Some(place) = found else { return };
        let Some((_, ViEntry { attempt: Some(attempt), vi, .. })) = self.vis.at_place_mut(place) else { return };
        let (here, ours) = (attempt.here, *vi.attributes());
        if let Err(mismatch) = ours.fits(&request.attributes) {
            // The other side sees it for itself.
            self.ask_peer(place, peer, name, links);
            return self.conclude(place, Err(mismatch.into()), links);
        }
        if (self.carriage.me, here) < (from, name) {
            return self.ask_peer(place, peer, name, links);
        }
        self.establish(place, peer, name, request.attributes);
        self.say(peer, &NicFrame::Accept(ours), (here, name), class_of(&ours), links);
        self.pump(place, links);
        self.review_wants(links);
    }

    fn accept_came(
        &mut self,
        (peer, from): (u16, NodeId),
        theirs: ViName,
        ours: ViName,
        (attributes, data): (ViAttributes, Vec<u8>),
        links: &mut impl Links<Block = B>,
    ) {
        let place = ours.place().filter(|place| {
            let attempt = self.vis.at_place_mut(*place).and_then(|(_, entry)| entry.attempt.as_ref());
            attempt.is_some_and(|attempt| {
                let is_asked = match attempt.manner {
                    Manner::Client => attempt.asked == Some(peer),
                    Manner::PeerNode { .. } => {
                        NicNumber::of_node(from).is_some_and(|(nic, _)| nic == attempt.remote.nic)
                    }
                };
                attempt.here == ours && attempt.outcome.is_none() && is_asked
            })
        });
        let fits = |vi: &ViAttributes| vi.fits(&attributes).is_ok();
        let entry = place.and_then(|place| Some((place, self.vis.at_place_mut(place)?.1)));
        let Some((place, entry)) = entry.filter(|(_, entry)| fits(entry.vi.attributes())) else {
            // Nobody waits for it any more.
            let class = Priority::LEAST_URGENT;
            return self.say(peer, &NicFrame::Disconnect, (ours, theirs), class, links);
        };
        let class = class_of(entry.vi.attributes());
        entry.told = data;
        self.establish(place, peer, theirs, attributes);
        self.say(peer, &NicFrame::Confirm, (ours, theirs), class, links);
        self.pump(place, links);
        self.review_wants(links);
    }

    fn refuse_came(
        &mut self,
        peer: u16,
        ours: ViName,
        (refusal, data): (Refusal, Vec<u8>),
        links: &mut impl Links<Block = B>,
    ) {
        let Some(place) = ours.place() else { return self.refuse() };
        let Some((_, ViEntry { attempt: Some(attempt), told, .. })) = self.vis.at_place_mut(place) else { return };
        if attempt.here != ours || attempt.asked != Some(peer) || attempt.outcome.is_some() {
            return;
        }
        *told = data;
        match refusal {
            Refusal::Rejected => self.conclude(place, Err(ViError::Rejected), links),
            Refusal::Busy => self.conclude(place, Err(ViError::Resource), links),
            Refusal::NoMatch | Refusal::Gone => self.pass_over(place, peer, links),
        }
    }

    /// The node that an attempt asked has no listener.
    pub(super) fn pass_over(&mut self, place: u16, peer: u16, links: &mut impl Links<Block = B>) {
        let slot = NicNumber::of_node(self.carriage.peer(peer).node).map_or(0, |(_, slot)| slot);
        if let Some((_, ViEntry { attempt: Some(attempt), .. })) = self.vis.at_place_mut(place) {
            attempt.asked = None;
            attempt.tried |= 1 << slot;
        }
        self.advance(place, links);
    }

    fn cancel_came(&mut self, peer: u16, theirs: ViName, links: &mut impl Links<Block = B>) {
        let found = self.connecting.find(|caller| caller.peer == peer && caller.name == theirs);
        if let Some(number) = found {
            self.caller_went(number, links);
        }
    }

    /// A caller does not wait any more.
    pub(super) fn caller_went(&mut self, number: u32, links: &mut impl Links<Block = B>) {
        let Some(caller) = self.connecting.callers.get_mut(number) else { return };
        let standing = core::mem::replace(&mut caller.standing, Standing::Gone);
        self.changes += 1;
        match standing {
            Standing::Queued => {
                self.connecting.callers.remove(number);
                for listener in &mut self.connecting.listeners {
                    listener.callers.retain(|caller| *caller != number);
                }
            }
            Standing::Accepted(vi) => {
                // It may have been destroyed.
                let _ = self.disconnect(vi, links);
            }
            Standing::Taken | Standing::Gone => {}
            Standing::Confirmed => caller_stays(&mut self.connecting.callers, number),
        }
    }

    fn confirm_came(&mut self, peer: u16, ours: ViName) {
        let vis = &self.vis;
        let is_it = |caller: &Caller| match caller.standing {
            Standing::Accepted(vi) => {
                let connection = vis.get(vi.0).and_then(|entry| entry.connection.as_ref());
                connection.is_some_and(|connection| connection.here == ours && connection.peer == peer)
            }
            _ => false,
        };
        let found = self.connecting.find(is_it);
        if let Some(caller) = found.and_then(|number| self.connecting.callers.get_mut(number)) {
            caller.standing = Standing::Confirmed;
            self.changes += 1;
        }
    }

    fn disconnect_came(&mut self, peer: u16, ours: ViName, links: &mut impl Links<Block = B>) {
        let Some(place) = ours.place() else { return self.refuse() };
        let Some((number, entry)) = self.vis.at_place_mut(place) else { return };
        let is_it = |connection: &Connection| connection.here == ours && connection.peer == peer;
        if !entry.connection.as_ref().is_some_and(is_it) {
            return;
        }
        let unconfirmed = Standing::Accepted(ViNumber(number));
        if let Some(caller) = self.connecting.find(|caller| caller.standing == unconfirmed) {
            return self.caller_went(caller, links);
        }
        entry.connection = None;
        entry.vi.lose(&mut Edge::<B>::of(&self.memory));
        self.settle(place);
        self.changes += 1;
        self.review_wants(links);
    }

    pub(super) fn refuse_caller(
        &mut self,
        peer: u16,
        name: ViName,
        refusal: Refusal,
        links: &mut impl Links<Block = B>,
    ) {
        let class = Priority::LEAST_URGENT;
        self.say(peer, &NicFrame::Refuse(refusal), (ViName::default(), name), class, links);
    }

    pub(super) fn say(
        &mut self,
        peer: u16,
        frame: &NicFrame,
        (from, to): (ViName, ViName),
        class: Priority,
        links: &mut impl Links<Block = B>,
    ) {
        self.say_with(peer, frame, (from, to), (class, &[]), links);
    }

    /// The same with something for the program that asked.
    pub(super) fn say_with(
        &mut self,
        peer: u16,
        frame: &NicFrame,
        (from, to): (ViName, ViName),
        (class, data): (Priority, &[u8]),
        links: &mut impl Links<Block = B>,
    ) {
        let (mut header, mut payload) = frame.write(from, to, class, 0);
        payload.extend_from_slice(data);
        header.length = payload.len() as u32;
        self.carriage.tell(peer, header, payload, links);
    }
}

/// A caller that is connected: the program has not asked yet whether it is.
fn caller_stays(callers: &mut Slots<Caller>, number: u32) {
    if let Some(caller) = callers.get_mut(number) {
        caller.standing = Standing::Confirmed;
    }
}
