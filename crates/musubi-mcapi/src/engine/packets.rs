//! Packets: in order, within the credit, read where they lie.
//!
//! What you may rely on: a packet that was taken for sending arrives, or the loss is reported: a loss of the link breaks the
//! channel, senders are told, and receivers read all that had arrived before they are told. Who does not release what was
//! received stops the sender; nothing is dropped.
//!
//! How it works: see [`super::channel::credit`]. Packets that can go together, of one call or out of the queue, are handed over while
//! the links hold back, so that they go out by few writes. A packet that lies in memory of which the link has little is
//! copied when it comes.

use alloc::vec;

use super::channel::credit::{Count, PACKETS};
use super::channel::end::{ChannelEnd, ChannelRequest, QueuedPacket};
use super::channel::state::Role;
use super::messages::SEND_BUFFERS;
use super::requests::Doing;
use super::{ChannelHandle, ChannelKind, Engine, Outcome, RequestId, Sending};
use crate::engine::frame::{Header, Kind};
use crate::limits::PACKET_BYTES_MAX;
use crate::{EndpointId, Error};
use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Payload, Sent, SharedBytes, Short};

/// Most bytes of packets that wait to be sent on one channel; one alone always may.
pub const QUEUED_PACKET_BYTES_MAX: usize = 16 * PACKET_BYTES_MAX;
/// Flag of a credit frame: the sender has found no room.
const ASKS: u8 = 1;

impl<B: Block> Engine<B> {
    /// Sends a packet now, if it can go.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`], [`Error::PacketSize`], [`Error::Transmission`].
    pub fn send_packet(
        &mut self,
        handle: ChannelHandle,
        payload: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        self.send_packet_by(handle, payload.len(), links, |engine, place, header, links| {
            engine.transmit_at(place, header, payload, links)
        })
    }

    /// The same of a packet that the link may keep where it lies, instead of a copy, until the receiving node has it.
    ///
    /// # Errors
    /// As above.
    pub fn send_packet_shared(
        &mut self,
        handle: ChannelHandle,
        payload: &SharedBytes,
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        self.send_packet_by(handle, payload.len(), links, |engine, place, header, links| {
            engine.transmit_shared_at(place, header, payload, links)
        })
    }

    /// Sends packets, in order, as many as can go now, together: over a network in fewer and larger writes than one by one.
    /// Gives how many went. Shared as by [`Engine::send_packet_shared`].
    ///
    /// # Errors
    /// As above; if one is too large none goes.
    pub fn send_packets_shared(
        &mut self,
        handle: ChannelHandle,
        payloads: &[SharedBytes],
        links: &mut impl Links<Block = B>,
    ) -> Result<usize, Error> {
        let longest = payloads.iter().map(|payload| payload.len()).max().unwrap_or(0);
        if !self.sending_end(handle, longest)?.queue.is_empty() {
            return Ok(0);
        }
        links.hold();
        let mut gone = 0;
        for payload in payloads {
            let sent = self.try_packet(handle, payload.len(), links, |engine, place, header, links| {
                engine.transmit_shared_at(place, header, payload, links)
            });
            if !matches!(sent, Ok(Some(Sent::Delivered | Sent::Numbered(_)))) {
                break;
            }
            gone += 1;
        }
        links.release();
        self.settle(links);
        Ok(gone)
    }

    /// The end, if a program may send a packet of so many bytes through it.
    #[inline]
    fn sending_end(&mut self, handle: ChannelHandle, bytes: usize) -> Result<&mut ChannelEnd<B>, Error> {
        let end = self.end_of(handle)?;
        end.may_send(ChannelKind::Packet)?;
        if bytes > end.payload_max {
            return Err(Error::PacketSize);
        }
        Ok(end)
    }

    #[inline]
    fn send_packet_by<L: Links<Block = B>>(
        &mut self,
        handle: ChannelHandle,
        bytes: usize,
        links: &mut L,
        transmit: impl FnOnce(&mut Engine<B>, u16, Header, &mut L) -> Sent,
    ) -> Result<Sending, Error> {
        if !self.sending_end(handle, bytes)?.queue.is_empty() {
            return Ok(Sending::Blocked);
        }
        let sent = self.try_packet(handle, bytes, links, transmit)?;
        self.settle(links);
        match sent {
            Some(Sent::Delivered | Sent::Numbered(_)) => Ok(Sending::Done),
            None | Some(Sent::Full | Sent::NoLink) => Ok(Sending::Blocked),
        }
    }

    /// Hands a packet of so many bytes over, by `transmit`, if there is credit; `None` if not: then it has asked for some.
    #[inline]
    fn try_packet<L: Links<Block = B>>(
        &mut self,
        handle: ChannelHandle,
        bytes: usize,
        links: &mut L,
        transmit: impl FnOnce(&mut Engine<B>, u16, Header, &mut L) -> Sent,
    ) -> Result<Option<Sent>, Error> {
        let end = self.end_of(handle)?;
        let wire = end.wire;
        if !end.out.admits(PACKETS, bytes) {
            if end.out.ask() {
                let header =
                    Header { flags: ASKS, to: wire.to, from: wire.number, ..Header::new(Kind::ChannelCredit as u8) };
                self.emit_at(wire.place, header, &[], links);
            }
            return Ok(None);
        }
        let header = Header { class: wire.class, to: wire.to, tag: wire.number, ..Header::new(Kind::Packet as u8) };
        let sent = transmit(self, wire.place, header, links);
        if matches!(sent, Sent::Delivered | Sent::Numbered(_)) {
            self.end_of(handle)?.out.send(bytes);
        }
        Ok(Some(sent))
    }

    /// Sends a packet when it can go; completes with `Outcome::Sent` when the receiving node has it. Queue and link share the
    /// payload. A request that is cancelled may end before the link has let go of it.
    ///
    /// # Errors
    /// As above; [`Error::RequestLimit`]; [`Error::MemoryLimit`] if too much waits, or anything would have to and the
    /// endpoint's memory type says that it must not.
    pub fn send_packet_later(
        &mut self,
        handle: ChannelHandle,
        payload: impl Into<SharedBytes>,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let payload = payload.into();
        let bytes = payload.len();
        let at = self.channel_endpoint(handle)?;
        let end = self.sending_end(handle, bytes)?;
        let crowded = end.queue.len() >= SEND_BUFFERS || end.queue_bytes + bytes > QUEUED_PACKET_BYTES_MAX;
        let waits = !end.queue.is_empty() || end.fails_when_full && !end.out.admits(PACKETS, bytes);
        if waits && (crowded || end.fails_when_full) {
            return Err(Error::MemoryLimit);
        }
        let request = self.requests.create(Doing::Channel(ChannelRequest::SendPacket { at }))?;
        let end = self.end_of(handle)?;
        end.queue_bytes += bytes;
        end.queue.push_back(QueuedPacket { request, payload });
        self.send_queued(at, links);
        self.settle(links);
        Ok(request)
    }

    /// Hands over what waits at an end, as far as there is credit and room, and then the close if that is due.
    pub(super) fn send_queued(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        links.hold();
        self.empty_queue(at, links);
        links.release();
    }

    fn empty_queue(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        loop {
            let Some(end) = self.end_at(at).filter(|end| end.state.is_joined()) else { return };
            let (handle, wire) = (ChannelHandle(end.handle), end.wire);
            let Some(next) = end.queue.pop_front() else { break };
            let bytes = next.payload.len();
            let sent = self.try_packet(handle, bytes, links, |engine, place, header, links| {
                engine.transmit_shared_at(place, header, &next.payload, links)
            });
            let Some(end) = self.end_at(at) else { return };
            match sent {
                Ok(Some(Sent::Delivered)) => self.complete(next.request, Ok(Outcome::Sent(bytes))),
                Ok(Some(Sent::Numbered(_))) => self.confirm(wire.place, wire.class, next.request, bytes),
                Ok(Some(Sent::Full | Sent::NoLink)) => {
                    end.queue.push_front(next);
                    return self.wait_for_room(at);
                }
                Ok(None) | Err(_) => return end.queue.push_front(next),
            }
            if let Some(end) = self.end_at(at) {
                end.queue_bytes -= bytes;
            }
        }
        let Some(end) = self.end_at(at).filter(|end| end.close_due) else { return };
        let wire = end.wire;
        match self.send_close(wire, links) {
            true => {
                if let Some(end) = self.end_at(at) {
                    end.close_due = false;
                }
            }
            false => self.wait_for_room(at),
        }
    }

    fn wait_for_room(&mut self, at: EndpointId) {
        let Some(end) = self.end_at(at).filter(|end| !end.blocked) else { return };
        end.blocked = true;
        let place = end.wire.place;
        self.channels.block(place, at.slot());
    }

    fn confirm(&mut self, place: u16, class: Priority, request: RequestId, bytes: usize) {
        if let Some(pending) = self.requests.pending_mut(request) {
            pending.doing = Doing::Confirm { bytes: bytes as u32 };
        }
        let node = self.peers.at(place).node;
        self.confirm_latest(node, class, request);
    }

    pub(super) fn cancel_queued(&mut self, at: EndpointId, request: RequestId, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(at) else { return };
        let Some(place) = end.queue.iter().position(|packet| packet.request == request) else { return };
        if let Some(packet) = end.queue.remove(place) {
            end.queue_bytes -= packet.payload.len();
        }
        self.send_queued(at, links);
    }

    /// A packet came.
    pub(super) fn packet(
        &mut self,
        place: u16,
        header: &Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        if !end.receives(ChannelKind::Packet) {
            return self.contradicts(place);
        }
        if end.state.is_closing() {
            return;
        }
        let Ok(todo) = end.state.peer_sent() else { return self.contradicts(place) };
        if payload.len() > end.payload_max || !end.incoming.arrive(PACKETS, payload.len()) {
            return self.refuse(place, |counters| &mut counters.overruns);
        }
        let payload = keepable(payload);
        match end.receivers.pop_front() {
            Some(request) => self.complete(request, Ok(Outcome::Packet(payload))),
            None => end.packets.push_back(payload),
        }
        self.changes += 1;
        if todo.opened.is_some() {
            self.carry_out(at, todo, links);
        }
    }

    /// Takes the next packet. Its credit goes back by [`Engine::packet_released`].
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`] also once the sender has closed and everything has been read, [`Error::Transmission`] if it was lost.
    pub fn receive_packet(
        &mut self,
        handle: ChannelHandle,
        links: &mut impl Links<Block = B>,
    ) -> Result<Option<Payload<B>>, Error> {
        let end = self.end_of(handle)?;
        end.may_receive(ChannelKind::Packet)?;
        if !end.receivers.is_empty() {
            return Ok(None);
        }
        match end.packets.pop_front() {
            Some(packet) => {
                self.tell_credit(handle, links);
                self.settle(links);
                Ok(Some(packet))
            }
            None => end.fate().map_or(Ok(None), Err),
        }
    }

    /// Takes the next packet when there is one; completes with `Outcome::Packet`.
    ///
    /// # Errors
    /// As above; [`Error::RequestLimit`].
    pub fn receive_packet_later(
        &mut self,
        handle: ChannelHandle,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let at = self.channel_endpoint(handle)?;
        let request = self.requests.create(Doing::Channel(ChannelRequest::ReceivePacket { at, handle: handle.0 }))?;
        match self.receive_packet(handle, links) {
            Ok(Some(packet)) => self.complete(request, Ok(Outcome::Packet(packet))),
            Ok(None) => self.end_of(handle)?.receivers.push_back(request),
            Err(error) => {
                self.drop_request(request, links);
                return Err(error);
            }
        }
        Ok(request)
    }

    /// A packet that a request got will not be taken from it: the next who receives gets it.
    pub(super) fn packet_not_taken(&mut self, of: ChannelRequest, packet: Payload<B>) {
        let ChannelRequest::ReceivePacket { handle, .. } = of else { return };
        let Ok(end) = self.end_of(ChannelHandle(handle)) else { return };
        if !end.state.is_open() {
            return;
        }
        match end.receivers.pop_front() {
            Some(request) => self.complete(request, Ok(Outcome::Packet(packet))),
            None => end.packets.push_front(packet),
        }
        self.changes += 1;
    }

    /// A packet of so many bytes that came through `handle` has been released: the sender may send another. Nothing
    /// happens if the channel is no more.
    pub fn packet_released(&mut self, handle: ChannelHandle, bytes: usize, links: &mut impl Links<Block = B>) {
        let Ok(end) = self.end_of(handle) else { return };
        end.incoming.give_back(bytes);
        self.tell_credit(handle, links);
        self.settle(links);
    }

    /// Tells the sender what it may send more, if that is due.
    #[inline]
    pub(super) fn tell_credit(&mut self, handle: ChannelHandle, links: &mut impl Links<Block = B>) {
        let Ok(end) = self.end_of(handle) else { return };
        let size = end.size();
        if let Some(count) = end.incoming.due(size, end.unread() == 0) {
            if !end.state.is_joined() || end.state.peer_closed() {
                return;
            }
            end.incoming.told(count);
            let wire = end.wire;
            let (value, tag) = (count.items, count.bytes);
            let header =
                Header { from: wire.number, to: wire.to, value, tag, ..Header::new(Kind::ChannelCredit as u8) };
            self.emit_at(wire.place, header, &[], links);
        }
    }

    /// Credit from the receiver, or the question for it from the sender.
    pub(super) fn channel_credit(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.from) else { return };
        let receives = end.state.role().is_some_and(|role| role.receives);
        if receives && header.flags == ASKS {
            end.incoming.asked();
            let handle = ChannelHandle(end.handle);
            return self.tell_credit(handle, links);
        }
        let count = Count { items: header.value, bytes: header.tag };
        if receives || header.flags != 0 || !end.out.credit(count) {
            return self.contradicts(place);
        }
        self.changes += 1;
        self.send_queued(at, links);
    }

    /// Packets or scalars queued at a receiving end.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`].
    pub fn channel_available(&self, kind: ChannelKind, handle: ChannelHandle) -> Result<usize, Error> {
        let at = self.channel_endpoint(handle)?;
        let end = self.endpoints.get(at).and_then(|endpoint| endpoint.channel.as_deref());
        let end = end.ok_or(Error::ChannelInvalid)?;
        end.may_receive(kind)?;
        Ok(end.unread())
    }
}

impl<B> ChannelEnd<B> {
    /// Whether it is a receiving end of this kind.
    #[inline]
    pub fn receives(&self, kind: ChannelKind) -> bool {
        self.state.role() == Some(Role { kind, receives: true })
    }

    /// Whether a program may send.
    #[inline]
    pub fn may_send(&self, kind: ChannelKind) -> Result<(), Error> {
        if !self.state.is_open() || self.state.role() != Some(Role { kind, receives: false }) {
            return Err(Error::ChannelInvalid);
        }
        self.fate().map_or(Ok(()), Err)
    }

    /// Whether a program may receive.
    #[inline]
    pub fn may_receive(&self, kind: ChannelKind) -> Result<(), Error> {
        if self.state.is_open() && self.receives(kind) { Ok(()) } else { Err(Error::ChannelInvalid) }
    }
}

/// The payload, where it may stay.
fn keepable<B: Block>(payload: Payload<B>) -> Payload<B> {
    match payload {
        Payload::Lent(block) if !block.may_be_kept() => {
            let mut bytes = vec![0; block.len() + 1];
            let copied_bytes = block.copy_to(0, &mut bytes);
            bytes.truncate(copied_bytes);
            Short::new(&bytes).map_or(Payload::Owned(bytes), Payload::Short)
        }
        other => other,
    }
}
