//! Scalars: words of 1, 2, 4 or 8 bytes, in order, within the credit.
//!
//! What you may rely on: no allocation after the first scalar of a connection; a scalar of another size than is asked for
//! stays where it is.

use super::channel::credit::SCALARS;
use super::channel::unread::Scalar;
use super::{ChannelHandle, ChannelKind, Engine, Sending};
use crate::engine::frame::{Header, Kind};
use crate::{EndpointId, Error, NodeId};
use musubi_transport::links::{Block, Links, Sent};

/// Bytes of a scalar on the wire.
const SCALAR_BYTES: usize = 8;

impl<B: Block> Engine<B> {
    /// Sends a scalar of `size` bytes (1, 2, 4, 8) now, if it can go.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`], [`Error::Transmission`], [`Error::Parameter`] for another size.
    #[inline(always)]
    pub fn send_scalar(
        &mut self,
        handle: ChannelHandle,
        size: u8,
        value: u64,
        links: &mut impl Links<Block = B>,
    ) -> Result<Sending, Error> {
        if !is_size(size) {
            return Err(Error::Parameter);
        }
        let end = self.end_of(handle)?;
        end.may_send(ChannelKind::Scalar)?;
        if !end.out.admits(SCALARS, SCALAR_BYTES) {
            return Ok(Sending::Blocked);
        }
        let wire = end.wire;
        // Its node is that of the place, where it would be looked up.
        let Some(other) = EndpointId::from_bits(wire.to) else { return Err(Error::ChannelInvalid) };
        let header = Header {
            class: wire.class,
            to: wire.to,
            tag: wire.number,
            value: u32::from(size),
            ..Header::new(Kind::Scalar as u8)
        };
        match self.transmit_to(wire.place, other.node(), header, &value.to_le_bytes(), links) {
            Sent::Delivered | Sent::Numbered(_) => {
                self.end_of(handle)?.out.send(SCALAR_BYTES);
                self.settle(links);
                Ok(Sending::Done)
            }
            Sent::Full | Sent::NoLink => Ok(Sending::Blocked),
        }
    }

    /// A link reports the frame of a scalar, and its payload if that is eight bytes: what [`Engine::report`] does for
    /// all frames, without their size.
    #[inline(always)]
    pub fn word(
        &mut self,
        now_ns: u64,
        node: NodeId,
        header: &Header,
        word: Option<u64>,
        links: &mut impl Links<Block = B>,
    ) {
        self.now_ns = now_ns;
        if let Some(place) = self.sender_of_frame(node) {
            self.scalar(place, header, word, links);
        }
        self.settle(links);
    }

    /// A scalar came.
    #[inline(always)]
    pub(super) fn scalar(&mut self, place: u16, header: &Header, word: Option<u64>, links: &mut impl Links<Block = B>) {
        let Some((at, end)) = self.end_for(place, header.to, header.tag) else { return };
        let size = header.value as u8;
        let Some(value) = word.filter(|_| is_size(size) && header.value <= SCALAR_BYTES as u32) else {
            return self.refuse(place, |counters| &mut counters.malformed);
        };
        if !end.receives(ChannelKind::Scalar) {
            return self.contradicts(place);
        }
        if end.state.is_closing() {
            return;
        }
        let Ok(todo) = end.state.peer_sent() else { return self.contradicts(place) };
        if !end.incoming.arrive(SCALARS, SCALAR_BYTES) {
            return self.refuse(place, |counters| &mut counters.overruns);
        }
        end.scalars.push(Scalar { size, value });
        self.changes += 1;
        if todo.opened.is_some() {
            self.carry_out(at, todo, links);
        }
    }

    /// Takes the next scalar, which must have this size; one of another size stays where it is.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`] also once the sender has closed and everything has been read, [`Error::ScalarSize`],
    /// [`Error::Transmission`] if it was lost.
    #[inline(always)]
    pub fn receive_scalar(
        &mut self,
        handle: ChannelHandle,
        size: u8,
        links: &mut impl Links<Block = B>,
    ) -> Result<Option<u64>, Error> {
        let end = self.end_of(handle)?;
        end.may_receive(ChannelKind::Scalar)?;
        let Some(next) = end.scalars.first() else { return end.fate().map_or(Ok(None), Err) };
        if next.size != size {
            return Err(Error::ScalarSize);
        }
        end.scalars.take_first();
        end.incoming.give_back(SCALAR_BYTES);
        if end.incoming.due(SCALARS, end.scalars.is_empty()).is_some() {
            self.tell_credit(handle, links);
        }
        self.settle(links);
        Ok(Some(next.value))
    }
}

fn is_size(size: u8) -> bool {
    matches!(size, 1 | 2 | 4 | 8)
}
