//! The receiving side of messages: queues, waiting requests, credit that goes back.
//!
//! What you may rely on: the most urgent message is taken first, of those the oldest; requests that wait are served in
//! their order before anything is queued. What came over links that have ended stays, at most [`LEFT_OVER_BYTES_MAX`] of a node at
//! one endpoint; its oldest goes first, and is counted.
//!
//! How it works: a block of a link is kept only by the first message in a queue, and only while the link has blocks
//! enough; others are copied out, so that an endpoint that does not read holds nothing that others need.

use super::peer::flow::{CREDIT_STEP, Intake};
use super::peers::ME;
use super::requests::Doing;
use super::table::{Endpoint, Queued};
use super::{Engine, Message, Outcome, RequestId};
use crate::engine::frame::{Header, Kind, priority_of};
use crate::limits::{MESSAGE_BYTES_MAX, MESSAGE_CREDIT};
use crate::{EndpointId, Error, NodeId};
use musubi_transport::links::{Block, Links, Payload, Sent};

/// What an unread message of an earlier link counts for, beside its bytes.
pub const LEFT_OVER_COST: usize = 1024;
/// Most that one endpoint keeps of unread messages of earlier links with a node. By bytes, because each of them was confirmed
/// to its sender: small ones outlast many cuts, and large ones of one link always stay.
pub const LEFT_OVER_BYTES_MAX: usize = MESSAGE_CREDIT as usize * (MESSAGE_BYTES_MAX + LEFT_OVER_COST);
/// A sender without credit is told of less than half of it after this time at the latest. It has filled the endpoint's queue,
/// so that the receiver does not run dry meanwhile.
const OWING_NS: u64 = 100_000;

impl<B: Block> Engine<B> {
    /// Takes the next message: the most urgent, the oldest of those; `None` if there is none (or earlier requests wait).
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::General`] for an end of a channel that has none: nobody may send it one.
    #[inline]
    pub fn receive_message(
        &mut self,
        at: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<Option<Message<B>>, Error> {
        let endpoint = self.our_mut(at)?;
        if endpoint.queued == 0 {
            let connected = endpoint.channel.as_ref().is_some_and(|end| end.state.is_bound());
            return if connected { Err(Error::General) } else { Ok(None) };
        }
        let Some(queued) = endpoint.take_first() else { return Ok(None) };
        self.was_taken(at, &queued, links);
        self.settle(links);
        Ok(Some(queued.message))
    }

    /// Takes the next message when there is one; completes with `Outcome::Message`.
    ///
    /// # Errors
    /// As [`Engine::receive_message`], and [`Error::RequestLimit`].
    pub fn receive_message_later(
        &mut self,
        at: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        self.our(at)?;
        let request = self.requests.create(Doing::Receive { at })?;
        match self.receive_message(at, links) {
            Ok(Some(message)) => self.complete(request, Ok(Outcome::Message(message))),
            Ok(None) => self.our_mut(at)?.receivers.push_back(request),
            Err(error) => {
                self.drop_request(request, links);
                return Err(error);
            }
        }
        Ok(request)
    }

    /// Number of queued messages.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`].
    pub fn messages_available(&self, at: EndpointId) -> Result<usize, Error> {
        Ok(self.our(at)?.queued)
    }

    pub(super) fn cancel_receive(&mut self, request: RequestId, at: EndpointId) {
        if let Some(endpoint) = self.endpoints.get_mut(at) {
            endpoint.receivers.retain(|waiting| *waiting != request);
        }
    }

    /// A link reports the frame of a message: what [`Engine::report`] does for all frames, without their size.
    #[inline]
    pub fn came(
        &mut self,
        now_ns: u64,
        node: NodeId,
        header: &Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        self.now_ns = now_ns;
        if let Some(place) = self.sender_of_frame(node) {
            self.take_message(place, header, payload, links);
        }
        self.settle(links);
    }

    /// A message has come.
    pub(super) fn message(
        &mut self,
        place: u16,
        header: &Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        self.take_message(place, header, payload, links);
    }

    #[inline(always)]
    fn take_message(&mut self, place: u16, header: &Header, payload: Payload<B>, links: &mut impl Links<Block = B>) {
        let node = self.peers.at(place).node;
        let from = EndpointId::from_bits(header.from).filter(|from| from.node() == node);
        let to = EndpointId::from_bits(header.to).filter(|to| to.node() == self.me);
        let (Some(from), Some(to)) = (from, to) else {
            self.refuse(place, |counters| &mut counters.not_theirs);
            return;
        };
        let Some(priority) = priority_of(header.class) else {
            self.refuse(place, |counters| &mut counters.malformed);
            return;
        };
        if self.endpoints.get(to).is_none() {
            self.counters.messages_dropped += 1;
            if self.is_crowded(place) {
                return;
            }
            return self.emit_at(place, Header { from: to.bits(), ..Header::new(Kind::Deleted as u8) }, &[], links);
        }
        if !self.let_in(place, to, header.length) {
            self.refuse(place, |counters| &mut counters.overruns);
            return;
        }
        self.put(place, to, Message { from, priority, payload }, links);
    }

    /// Counts a message that came; false if its sender had no credit for it.
    #[inline]
    fn let_in(&mut self, place: u16, to: EndpointId, bytes: u32) -> bool {
        let intake = self.intake(place, to);
        if intake.arrived.wrapping_sub(intake.told) >= MESSAGE_CREDIT {
            return false;
        }
        intake.arrived = intake.arrived.wrapping_add(1);
        let owes = intake.is_exhausted() && intake.taken != intake.told;
        if owes {
            self.owe(place, to);
        }
        let peer = self.peers.at(place);
        peer.counters.messages_received += 1;
        peer.counters.message_bytes_received += u64::from(bytes);
        true
    }

    /// Gives a message to a request that waits, or queues it.
    #[inline]
    fn put(&mut self, place: u16, to: EndpointId, message: Message<B>, links: &mut impl Links<Block = B>) {
        self.changes += 1;
        let epoch = self.peers.at(place).epoch;
        let Some(endpoint) = self.endpoints.get_mut(to) else { return };
        endpoint.messages += 1;
        if let Some(request) = endpoint.receivers.pop_front() {
            let payload = message.payload.unless_scarce();
            self.complete(request, Ok(Outcome::Message(Message { payload, ..message })));
            return self.one_taken(place, to, links);
        }
        let payload = if endpoint.queued == 0 { message.payload.unless_scarce() } else { message.payload.copied_out() };
        let message = Message { payload, ..message };
        endpoint.queued += 1;
        endpoint.queues[usize::from(message.priority)].push_back(Queued { message, epoch: Some(epoch) });
    }

    /// Who asked for a message has no use for it: it goes to the next who waits, or back to the front of the queue.
    pub(super) fn message_not_taken(&mut self, at: EndpointId, message: Message<B>) {
        let Some(endpoint) = self.endpoints.get_mut(at) else { return };
        self.changes += 1;
        if let Some(request) = endpoint.receivers.pop_front() {
            return self.complete(request, Ok(Outcome::Message(message)));
        }
        let message = Message { payload: message.payload.copied_out(), ..message };
        endpoint.queued += 1;
        endpoint.queues[usize::from(message.priority)].push_front(Queued { message, epoch: None });
    }

    fn was_taken(&mut self, at: EndpointId, queued: &Queued<B>, links: &mut impl Links<Block = B>) {
        let Some(epoch) = queued.epoch else { return };
        let Some(place) = self.peers.find(queued.message.from.node()) else { return };
        if self.peers.at(place).epoch == epoch {
            self.one_taken(place, at, links);
        }
    }

    /// A message of the present link was taken.
    #[inline]
    fn one_taken(&mut self, place: u16, at: EndpointId, links: &mut impl Links<Block = B>) {
        let intake = self.intake(place, at);
        intake.taken = intake.taken.wrapping_add(1);
        if place == ME {
            intake.told = intake.taken;
            let taken = intake.taken;
            if let Some(flow) = self.peers.at(ME).known_flow(at) {
                flow.taken = taken;
                if !flow.waiting.is_empty() {
                    self.send_from_flow(ME, at, links);
                }
                self.changes += 1;
            }
        } else if intake.taken.wrapping_sub(intake.told) >= CREDIT_STEP {
            self.tell(place, at, links);
        } else if intake.is_exhausted() {
            self.owe(place, at);
        }
    }

    /// Tells a sender how much was taken.
    fn tell(&mut self, place: u16, at: EndpointId, links: &mut impl Links<Block = B>) {
        let value = self.intake(place, at).taken;
        let header = Header { from: at.bits(), value, ..Header::new(Kind::MessageCredit as u8) };
        match self.transmit_at(place, header, &[], links) {
            Sent::Full => self.owe(place, at),
            _ => self.intake(place, at).told = value,
        }
    }

    fn owe(&mut self, place: u16, at: EndpointId) {
        if core::mem::replace(&mut self.intake(place, at).owing, true) {
            return;
        }
        if self.owing.is_empty() {
            self.owing_due_ns = self.now_ns + OWING_NS;
        }
        self.owing.push_back((place, at));
    }

    /// Tells all who may be waiting for credit, if it is time; gives the instant when it will be.
    #[inline]
    pub(super) fn tell_owing(&mut self, links: &mut impl Links<Block = B>) -> u64 {
        if !self.owing.is_empty() && self.now_ns >= self.owing_due_ns {
            self.tell_all_owing(links);
        }
        if self.owing.is_empty() { u64::MAX } else { self.owing_due_ns }
    }

    fn tell_all_owing(&mut self, links: &mut impl Links<Block = B>) {
        self.owing_due_ns = self.now_ns + OWING_NS;
        for _ in 0..self.owing.len() {
            let Some((place, at)) = self.owing.pop_front() else { return };
            if self.endpoints.get(at).is_none() {
                continue;
            }
            let intake = self.intake(place, at);
            intake.owing = false;
            if intake.taken != intake.told {
                self.tell(place, at, links);
            }
        }
    }

    /// What a peer may send to, and has of, an endpoint of ours.
    #[inline]
    pub(super) fn intake(&mut self, place: u16, id: EndpointId) -> &mut Intake {
        let slot = usize::from(id.slot());
        let known = self.peers.at(place).intakes.get(slot).is_some_and(|intake| intake.generation == id.generation());
        if !known {
            self.begin_intake(place, id);
        }
        &mut self.peers.at(place).intakes[slot]
    }

    fn begin_intake(&mut self, place: u16, id: EndpointId) {
        let (slot, peer) = (usize::from(id.slot()), self.peers.at(place));
        if peer.intakes.len() <= slot {
            peer.intakes.resize_with(slot + 1, Intake::default);
        }
        peer.intakes[slot] = Intake { generation: id.generation(), ..Intake::default() };
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.senders.push(place);
        }
    }

    /// The link with a peer has ended: its credit and its gets end; what it sent and was not read stays.
    pub(super) fn forget_intakes(&mut self, place: u16) {
        for slot in 0..self.peers.at(place).intakes.len() {
            let intake = &mut self.peers.at(place).intakes[slot];
            let gets = core::mem::take(&mut intake.gets);
            let unread = intake.arrived != intake.taken;
            (intake.arrived, intake.taken, intake.told) = (0, 0, 0);
            let generation = intake.generation;
            let Some(id) = self.endpoints.in_slot(slot as u16).map(|e| e.id).filter(|id| id.generation() == generation)
            else {
                continue;
            };
            self.gets_gone(id, gets);
            if unread {
                self.drop_left_over(place, id);
            }
        }
    }

    /// Drops what is too much of a node's unread messages: the least urgent, of those the oldest.
    fn drop_left_over(&mut self, place: u16, at: EndpointId) {
        let node = self.peers.at(place).node;
        let Some(endpoint) = self.endpoints.get_mut(at) else { return };
        let theirs = |queued: &&Queued<B>| queued.message.from.node() == node;
        let left_over: usize = endpoint.queues.iter().flatten().filter(theirs).map(Queued::cost).sum();
        let mut too_much = left_over.saturating_sub(LEFT_OVER_BYTES_MAX);
        for queue in endpoint.queues.iter_mut().rev() {
            if too_much == 0 {
                return;
            }
            queue.retain(|queued| {
                let goes = too_much > 0 && theirs(&queued);
                if goes {
                    too_much = too_much.saturating_sub(queued.cost());
                    endpoint.queued -= 1;
                    self.counters.left_over_dropped += 1;
                }
                !goes
            });
        }
    }
}

impl<B: Block> Queued<B> {
    /// What it counts for once its link has ended.
    fn cost(&self) -> usize {
        LEFT_OVER_COST + self.message.payload.len()
    }
}

impl<B> Endpoint<B> {
    fn take_first(&mut self) -> Option<Queued<B>> {
        let queued = self.queues.iter_mut().find_map(|queue| queue.pop_front())?;
        self.queued -= 1;
        Some(queued)
    }
}

impl Intake {
    /// The sender has no credit left, as far as we have told it.
    fn is_exhausted(&self) -> bool {
        self.arrived.wrapping_sub(self.told) == MESSAGE_CREDIT
    }
}
