//! Opening and closing: each side for itself, complete when both have.
//!
//! What you may rely on: an end may be opened before it is connected. A sending end that is closed first hands over what it
//! has queued; the receiver reads all of it and then learns of the close. A receiving end that is closed drops what is unread.
//! After both closes, or a close of an end whose other end is lost, the endpoint is as it was before the connection.
//!
//! How it works: a close of the sending end travels in the class of the channel's data, so it does not overtake them.
//! Everything else travels with the control frames.

use super::channel::end::{ChannelRequest, Wire};
use super::channel::state::Role;
use super::requests::Doing;
use super::{ChannelHandle, ChannelKind, Engine, Outcome, RequestId};
use crate::engine::frame::{Header, Kind};
use crate::{EndpointId, Error};
use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Sent};

impl<B: Block> Engine<B> {
    /// Opens the receiving end (`receives`) or the sending end of a channel; the request completes once both are open.
    ///
    /// # Errors
    /// At once: [`Error::EndpointInvalid`] (not one of this node's), [`Error::ChannelType`], [`Error::ChannelDirection`],
    /// [`Error::ChannelOpenPending`], [`Error::ChannelClosePending`], [`Error::ChannelOpen`], [`Error::RequestLimit`]. From the
    /// request: type and direction if a later connection differs, [`Error::EndpointDeleted`], [`Error::Transmission`].
    pub fn open(
        &mut self,
        kind: ChannelKind,
        receives: bool,
        endpoint: EndpointId,
        links: &mut impl Links<Block = B>,
    ) -> Result<(ChannelHandle, RequestId), Error> {
        self.alive()?;
        let end = self.end_made_at(endpoint)?;
        let (mut state, other) = (end.state, end.wire.place);
        if state.is_joined() && self.is_crowded(other) {
            return Err(Error::RequestLimit);
        }
        let opened = state.open(Role { kind, receives });
        let opened = opened.and_then(|todo| {
            let request = self.requests.create(Doing::Channel(ChannelRequest::Open { at: endpoint }))?;
            Ok((todo, request))
        });
        let (todo, request) = opened.inspect_err(|_| self.forget_idle(endpoint))?;
        let handle = self.channels.next_handle(endpoint);
        let end = self.end_made_at(endpoint)?;
        end.state = state;
        end.handle = handle;
        end.opening = Some(request);
        self.carry_out(endpoint, todo, links);
        self.settle(links);
        Ok((ChannelHandle(handle), request))
    }

    /// Closes this node's end; the request completes when both are closed.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`], [`Error::ChannelType`], [`Error::ChannelDirection`], [`Error::ChannelNotOpen`] (not yet, or
    /// being closed already), [`Error::RequestLimit`].
    pub fn close(
        &mut self,
        kind: ChannelKind,
        receives: bool,
        handle: ChannelHandle,
        links: &mut impl Links<Block = B>,
    ) -> Result<RequestId, Error> {
        let at = self.channel_endpoint(handle)?;
        let end = self.end_of(handle)?;
        let wanted = Role { kind, receives };
        let mut state = end.state;
        end.state.role_so_far().unwrap_or(wanted).check(wanted)?;
        let todo = state.close()?;
        let request = self.requests.create(Doing::Channel(ChannelRequest::Close { at }))?;
        let end = self.end_of(handle)?;
        end.state = state;
        end.closing = Some(request);
        self.shut(at, receives);
        self.carry_out(at, todo, links);
        self.settle(links);
        Ok(request)
    }

    /// A receiving end that is closed drops what is unread; who waits for more waits in vain.
    fn shut(&mut self, at: EndpointId, receives: bool) {
        let Some(end) = self.end_at(at).filter(|_| receives) else { return };
        end.packets.clear();
        end.scalars.clear();
        for request in core::mem::take(&mut end.receivers) {
            self.complete(request, Err(Error::ChannelInvalid));
        }
    }

    /// Tells the other end of the close: after what is queued, unless nobody reads it.
    pub(super) fn tell_close(&mut self, at: EndpointId, wire: Wire, parted: bool, links: &mut impl Links<Block = B>) {
        let sends = self.end_at(at).filter(|end| end.state.role().is_some_and(|role| !role.receives));
        match sends {
            Some(end) if !parted => {
                end.close_due = true;
                self.send_queued(at, links);
            }
            _ => self.emit_at(wire.place, close_frame(wire, Priority::MOST_URGENT), &[], links),
        }
    }

    /// Says the close behind the data. True if the link took it.
    pub(super) fn send_close(&mut self, wire: Wire, links: &mut impl Links<Block = B>) -> bool {
        let sent = self.transmit_at(wire.place, close_frame(wire, wire.class), &[], links);
        matches!(sent, Sent::Delivered | Sent::Numbered(_))
    }

    /// The closing of our end is complete.
    pub(super) fn closed(&mut self, at: EndpointId) {
        let Some(end) = self.end_at(at) else { return };
        end.handle = 0;
        if let Some(request) = end.closing.take() {
            self.complete(request, Ok(Outcome::Plain));
        }
    }

    /// The other end was opened, or its opening was taken back.
    pub(super) fn peer_opened(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        match end.state.peer_opened(header.value != 0) {
            Ok(todo) => self.carry_out(at, todo, links),
            Err(_) => self.contradicts(place),
        }
    }

    /// The other end was closed.
    pub(super) fn peer_closed(&mut self, place: u16, header: &Header, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        let unread = end.unread() > 0;
        match end.state.peer_close(unread) {
            Ok(mut todo) => {
                // If ours waits behind data that nobody reads now, it has not been said.
                todo.tell_close |= core::mem::take(&mut end.close_due);
                self.carry_out(at, todo, links);
            }
            Err(_) => self.contradicts(place),
        }
    }

    /// Takes back what a request about a channel has begun.
    pub(super) fn cancel_channel_request(
        &mut self,
        request: RequestId,
        doing: ChannelRequest,
        links: &mut impl Links<Block = B>,
    ) {
        match doing {
            ChannelRequest::Connect { from, .. } => {
                if !self.was_asked(request) {
                    return;
                }
                let header = Header { from: from.bits(), tag: request.0, ..Header::new(Kind::Disconnect as u8) };
                self.emit(from.node(), header, &[], links);
            }
            ChannelRequest::Open { at } => self.cancel_open(at, links),
            ChannelRequest::SendPacket { at } => self.cancel_queued(at, request, links),
            ChannelRequest::ReceivePacket { at, .. } => {
                if let Some(end) = self.end_at(at) {
                    end.receivers.retain(|waiting| *waiting != request);
                }
            }
            ChannelRequest::Close { .. } | ChannelRequest::Accept { .. } => {}
        }
    }

    fn cancel_open(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        let Some(end) = self.end_at(at).filter(|end| end.state.is_opening()) else { return };
        end.handle = 0;
        end.opening = None;
        let todo = end.state.cancel_open();
        self.carry_out(at, todo, links);
        self.forget_idle(at);
    }
}

fn close_frame(wire: Wire, class: Priority) -> Header {
    Header { class, to: wire.to, tag: wire.number, ..Header::new(Kind::Close as u8) }
}
