//! Clients and peers: attempts to be connected, and the end of connections.

use musubi_transport::links::{Block, Links};

use super::connecting::{Attempt, Manner, Standing, class_of};
use super::connection::Connection;
use super::frames::Edge;
use super::{NicState, ViEntry, ViNumber};
use crate::address::Address;
use crate::engine::{Lease, PeerVi, ViAttributes};
use crate::error::ViError;
use crate::slots::Slots;
use crate::wire::{NicFrame, Request, ViName};

impl<B: Block> NicState<B> {
    /// `VipConnectRequest` begins; [`NicState::take_outcome`] says how it ends.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI or the local address is another NIC's; [`ViError::State`] unless the VI is idle;
    /// [`ViError::NotReachable`].
    pub fn request(
        &mut self,
        vi: ViNumber,
        local: Address,
        remote: Address,
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        self.begin(vi, Manner::Client, local, remote, links)
    }

    /// `VipConnectPeerRequest`: until this instant.
    ///
    /// # Errors
    /// As [`NicState::request`].
    pub fn request_peer(
        &mut self,
        vi: ViNumber,
        local: Address,
        remote: Address,
        until_ns: u64,
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        self.begin(vi, Manner::PeerNode { until_ns }, local, remote, links)
    }

    fn begin(
        &mut self,
        vi: ViNumber,
        manner: Manner,
        local: Address,
        remote: Address,
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        if local.nic != self.nic {
            return Err(ViError::Parameter);
        }
        let slots = self.directory.slots(remote.nic);
        if slots == 0 {
            return Err(ViError::NotReachable);
        }
        entry.vi.request()?;
        let place = Slots::<ViEntry>::place(vi.0);
        let here = self.names.next(place);
        let nic = remote.nic;
        entry.connection = None;
        let attempt = Attempt { manner, local, remote, here, tried: 0, asked: None, outcome: None };
        self.connecting.attempts_due_ns = self.connecting.attempts_due_ns.min(attempt.due_ns());
        entry.attempt = Some(attempt);
        for node in (0..slots).filter_map(|slot| nic.node(slot)) {
            let peer = self.carriage.enter(node);
            self.want(peer, links);
            if matches!(manner, Manner::PeerNode { .. }) {
                self.ask_peer(place, peer, ViName::default(), links);
            }
        }
        self.advance(place, links);
        self.carry_local(links);
        Ok(())
    }

    /// How a VI's attempt ended, if it has: the other VI's attributes.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::State`] if it made no attempt; else why it failed.
    pub fn take_outcome(&mut self, vi: ViNumber) -> Option<Result<ViAttributes, ViError>> {
        let Some(entry) = self.vis.get_mut(vi.0) else { return Some(Err(ViError::Parameter)) };
        let Some(attempt) = &entry.attempt else { return Some(Err(ViError::State)) };
        let outcome = attempt.outcome?;
        entry.attempt = None;
        Some(outcome)
    }

    /// Gives a VI's attempt up, as its time is over; says how it ended, if it just did.
    ///
    /// # Errors
    /// As [`NicState::take_outcome`]; else [`ViError::Timeout`].
    pub fn give_up(&mut self, vi: ViNumber, links: &mut impl Links<Block = B>) -> Result<ViAttributes, ViError> {
        if let Some(outcome) = self.take_outcome(vi) {
            return outcome;
        }
        self.abort(Slots::<ViEntry>::place(vi.0), ViError::Timeout, links);
        self.carry_local(links);
        self.take_outcome(vi).unwrap_or(Err(ViError::Timeout))
    }

    /// `VipDisconnect`: in every state; the VI is idle, and what was posted has completed.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI.
    pub fn disconnect(&mut self, vi: ViNumber, links: &mut impl Links<Block = B>) -> Result<(), ViError> {
        self.vis.get(vi.0).ok_or(ViError::Parameter)?;
        let place = Slots::<ViEntry>::place(vi.0);
        self.abort(place, ViError::State, links);
        if let Some(caller) = self.connecting.find(|caller| caller.standing == Standing::Accepted(vi)) {
            self.connecting.leave(caller);
        }
        let Some((_, entry)) = self.vis.at_place_mut(place) else { return Err(ViError::Parameter) };
        let farewell = entry.vi.take_farewell();
        entry.vi.disconnect(&mut Edge::<B>::of(&self.memory));
        if let Some(connection) = entry.connection.take() {
            let Connection { peer, here, there, class, .. } = connection;
            if let Some(frame) = farewell.and_then(NicFrame::of_farewell) {
                self.say(peer, &frame, (ViName::default(), there), class, links);
            }
            self.say(peer, &NicFrame::Disconnect, (here, there), class, links);
        }
        self.settle(place);
        self.changes += 1;
        self.review_wants(links);
        self.carry_local(links);
        Ok(())
    }

    // ---- steps of an attempt ----

    /// Ends an attempt that has no outcome.
    pub(super) fn abort(&mut self, place: u16, why: ViError, links: &mut impl Links<Block = B>) {
        let Some((_, ViEntry { attempt: Some(attempt), vi, .. })) = self.vis.at_place_mut(place) else { return };
        if attempt.outcome.is_some() {
            return;
        }
        attempt.outcome = Some(Err(why));
        // It is pending: nothing else has an attempt without an outcome.
        let _ = vi.refuse();
        let (class, here, asked) = (class_of(vi.attributes()), attempt.here, attempt.asked.take());
        if let Some(peer) = asked {
            self.say(peer, &NicFrame::Cancel, (here, ViName::default()), class, links);
        }
        self.changes += 1;
        self.review_wants(links);
    }

    /// Asks the next slot that may have a listener; without one the attempt has failed.
    pub(super) fn advance(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let Some((_, ViEntry { attempt: Some(attempt), vi, .. })) = self.vis.at_place_mut(place) else { return };
        if attempt.manner != Manner::Client || attempt.asked.is_some() || attempt.outcome.is_some() {
            return;
        }
        let nic = attempt.remote.nic;
        let mut waits = false;
        for slot in 0..self.directory.slots(nic) {
            let Some(peer) = nic.node(slot).and_then(|node| self.carriage.find(node)) else { continue };
            if attempt.tried & 1 << slot != 0 {
                continue;
            }
            if self.carriage.reaches(peer) {
                attempt.asked = Some(peer);
                let (local, remote) = (attempt.local.clone(), attempt.remote.clone());
                let request = Request { attributes: *vi.attributes(), local, remote };
                let here = attempt.here;
                // On the class of what comes later, so that a frame that gives it up stays behind it.
                let class = class_of(vi.attributes());
                return self.say(peer, &NicFrame::Request(request), (here, ViName::default()), class, links);
            }
            if self.carriage.peer(peer).is_absent {
                attempt.tried |= 1 << slot;
            } else {
                waits = true;
            }
        }
        if !waits {
            self.conclude(place, Err(ViError::NoMatch), links);
        }
    }

    /// An attempt ends without a connection.
    pub(super) fn conclude(
        &mut self,
        place: u16,
        outcome: Result<ViAttributes, ViError>,
        links: &mut impl Links<Block = B>,
    ) {
        if let Some((_, ViEntry { attempt: Some(attempt), vi, .. })) = self.vis.at_place_mut(place) {
            attempt.outcome = Some(outcome);
            attempt.asked = None;
            if outcome.is_err() {
                let _ = vi.refuse();
            }
            self.changes += 1;
            self.review_wants(links);
        }
    }

    /// Asks one node for a connection of peers, if it is there: whoever asks the same there, or in answer to `whom` only.
    pub(super) fn ask_peer(&mut self, place: u16, peer: u16, whom: ViName, links: &mut impl Links<Block = B>) {
        let Some((_, ViEntry { attempt: Some(attempt), vi, .. })) = self.vis.at_place_mut(place) else { return };
        if self.carriage.reaches(peer) {
            let (local, remote) = (attempt.local.clone(), attempt.remote.clone());
            let request = Request { attributes: *vi.attributes(), local, remote };
            let (here, class) = (attempt.here, class_of(vi.attributes()));
            self.say(peer, &NicFrame::PeerRequest(request), (here, whom), class, links);
        }
    }

    /// The attempt of the VI in a place gives a connection.
    pub(super) fn establish(&mut self, place: u16, peer: u16, there: ViName, theirs: ViAttributes) {
        let Some((_, entry)) = self.vis.at_place_mut(place) else { return };
        let Some(attempt) = &mut entry.attempt else { return };
        if entry.vi.establish(PeerVi { attributes: theirs }).is_ok() {
            let class = class_of(entry.vi.attributes());
            let here = attempt.here;
            let lease = entry.vi.offer_under(Lease::new(here.0, self.incarnation));
            let is_bounded = self.carriage.peer(peer).bounds(class.index());
            let connection = Connection::new(peer, (here, there), class, lease);
            entry.connection = Some(Connection { is_bounded, ..connection });
            attempt.outcome = Some(Ok(theirs));
            attempt.asked = None;
            self.connections += 1;
            self.changes += 1;
        }
    }
}
