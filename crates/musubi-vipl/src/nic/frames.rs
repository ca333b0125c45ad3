//! Frames of VIs that came: to the VI that they name, if it is connected with who sent them.
//!
//! What you may rely on: a frame for a connection that is no more, or of somebody else, changes nothing but a count.

use core::marker::PhantomData;

use musubi_transport::NodeId;
use musubi_transport::frame::Header;
use musubi_transport::links::{Block, Links, Payload};

use super::carriage::ViWire;
use super::offers::{Offered, TheirLease};
use super::{NicState, ViEntry};
use crate::engine::{Completion, Descriptor, LocalMemory, LocalPlace, MemoryHandle, RemotePlace, ViFrame};
use crate::memory::RegisteredMemory;
use crate::wire::{NicFrame, ViName, WriteHead};

/// What came with a frame.
pub(super) enum Came<'p, B> {
    /// In its first bytes, little-endian, and how many.
    Word(u64, u32),
    /// In this node's memory.
    Bytes(&'p [u8]),
    /// As the link gave it.
    Payload(&'p Payload<B>),
    /// Still where the sender has it.
    Offered(Offered),
}

impl<B: Block> Came<'_, B> {
    fn len(&self) -> u32 {
        match self {
            Came::Word(_, bytes) => *bytes,
            Came::Bytes(bytes) => bytes.len() as u32,
            Came::Payload(payload) => payload.len() as u32,
            Came::Offered(offered) => offered.bytes,
        }
    }

    /// Copies as much as fits; gives how many bytes.
    pub(super) fn copy_to(&self, into: &mut [u8]) -> usize {
        match self {
            Came::Payload(payload) => payload.copy_to(into),
            Came::Bytes(bytes) => copy(bytes, into),
            Came::Offered(_) => 0,
            Came::Word(word, bytes) => {
                let word = word.to_le_bytes();
                copy(&word[..(*bytes as usize).min(word.len())], into)
            }
        }
    }
}

fn copy(from: &[u8], into: &mut [u8]) -> usize {
    let bytes = from.len().min(into.len());
    into[..bytes].copy_from_slice(&from[..bytes]);
    bytes
}

/// The program's memory, as the engine sees it.
pub(super) struct Edge<'e, 'p, B> {
    memory: &'e RegisteredMemory,
    /// Of the connection whose frame came, if parts of its messages were offered.
    theirs: Option<&'e TheirLease>,
    payload: PhantomData<&'p B>,
}

impl<'e, B> Edge<'e, '_, B> {
    pub(super) fn of(memory: &'e RegisteredMemory) -> Self {
        Edge { memory, theirs: None, payload: PhantomData }
    }
}

impl<'p, B: Block> LocalMemory for Edge<'_, 'p, B> {
    type Payload = Came<'p, B>;

    #[inline]
    fn bytes(payload: &Came<'p, B>) -> u32 {
        payload.len()
    }

    #[inline]
    fn is_offered(payload: &Came<'p, B>) -> bool {
        matches!(payload, Came::Offered(_))
    }

    #[inline]
    fn place(&mut self, payload: &Came<'p, B>, into: impl Iterator<Item = LocalPlace>) -> bool {
        let word;
        let bytes = match payload {
            Came::Word(value, bytes) => {
                word = value.to_le_bytes();
                word.get(..*bytes as usize).unwrap_or(&word)
            }
            Came::Bytes(bytes) => bytes,
            Came::Payload(Payload::Short(short)) => short.bytes(),
            Came::Payload(Payload::Owned(bytes)) => bytes,
            Came::Payload(Payload::Lent(block)) => {
                place_block(self.memory, block, into);
                return true;
            }
            Came::Offered(offered) => return place_offered(self.memory, offered, into),
        };
        let mut rest = bytes;
        for place in into {
            let Some((now, later)) = rest.split_at_checked(place.bytes as usize) else { return true };
            // The engine has checked the place; should it not be registered, nothing is written.
            let _ = self.memory.copy_in(place, now);
            rest = later;
        }
        true
    }

    fn still_stands(&mut self) -> bool {
        self.theirs.is_some_and(TheirLease::stands)
    }

    #[inline]
    fn complete(&mut self, descriptor: &Descriptor, completion: &Completion) -> bool {
        // One of lent memory lies nowhere: who takes the memory back hears how it ended.
        if descriptor.handle == MemoryHandle::NONE {
            return true;
        }
        self.memory.complete(descriptor.handle, descriptor.address, completion)
    }
}

fn place_block(memory: &RegisteredMemory, block: &impl Block, into: impl Iterator<Item = LocalPlace>) {
    let mut offset = 0;
    for place in into {
        // As above.
        let _ = memory.copy_block_in(place, block, offset);
        offset += place.bytes as usize;
    }
}

fn place_offered(memory: &RegisteredMemory, offered: &Offered, mut into: impl Iterator<Item = LocalPlace>) -> bool {
    let mut offset = 0;
    into.all(|place| {
        let at = offset;
        offset += u64::from(place.bytes);
        memory.fetch_in(place, |room| offered.fetch(at, room))
    })
}

impl<B: Block> NicState<B> {
    /// A frame came from a node.
    #[inline]
    pub(super) fn frame_came(
        &mut self,
        from: NodeId,
        header: &Header,
        came: Came<'_, B>,
        links: &mut impl Links<Block = B>,
    ) {
        if NicFrame::is_managers(header.kind) {
            return self.managers_frame_came(from, header, &came, links);
        }
        if self.intake.is_bounded() && !self.takes_in(from, header, links) {
            return;
        }
        let name = ViName(header.to);
        let found = name.place().and_then(|place| Some((place, self.vis.at_place_mut(place)?.1)));
        let Some((place, entry)) = found else { return self.refuse() };
        let ViEntry { connection, .. } = entry;
        let is_theirs = |connection: &&mut super::Connection| {
            connection.here == name && self.carriage.peer(connection.peer).node == from
        };
        let Some(connection) = connection.as_mut().filter(is_theirs) else { return self.refuse() };
        let (frame, came) = match of_header(header, &came, &mut connection.write) {
            Meaning::Frame(frame) => (frame, came),
            Meaning::Told(frame) => (frame, Came::Bytes(&[])),
            Meaning::Offer(frame) => return self.offer_came(place, &frame, &came, links),
            Meaning::Head => return,
            Meaning::Nothing => return self.refuse(),
        };
        self.frame_for(place, &frame, &came, links);
    }

    /// Gives a frame to the connected VI in a place.
    #[inline(always)]
    fn frame_for(&mut self, place: u16, frame: &ViFrame, came: &Came<'_, B>, links: &mut impl Links<Block = B>) {
        let Some((_, ViEntry { vi, connection: Some(connection), pace, .. })) = self.vis.at_place_mut(place) else {
            return;
        };
        if connection.theirs.is_some() || connection.has_offered {
            return self.frame_beside_offers(place, frame, came, links);
        }
        let (carriage, memory) = (&mut self.carriage, &self.memory);
        let pace = pace.as_deref_mut().map(|pace| (pace, self.now_ns));
        let is_alone = vi.has_one_send();
        let mut wire = ViWire { carriage, links, memory, connection, pace, place, is_alone, turn: None };
        vi.frame(frame, came, &self.protection, &mut wire, &mut Edge::of(memory));
        self.settle(place);
        self.note_pace(place);
    }

    /// The same of a connection of which parts are, or were, offered.
    #[inline(never)]
    fn frame_beside_offers(
        &mut self,
        place: u16,
        frame: &ViFrame,
        came: &Came<'_, B>,
        links: &mut impl Links<Block = B>,
    ) {
        let Some((_, ViEntry { vi, connection: Some(connection), pace, .. })) = self.vis.at_place_mut(place) else {
            return;
        };
        connection.has_offered &= !matches!(frame, ViFrame::Placed { .. });
        let theirs = connection.theirs.take();
        let (carriage, memory) = (&mut self.carriage, &self.memory);
        let pace = pace.as_deref_mut().map(|pace| (pace, self.now_ns));
        let is_alone = vi.has_one_send();
        let mut wire = ViWire { carriage, links, memory, connection, pace, place, is_alone, turn: None };
        let mut edge = Edge { theirs: theirs.as_deref(), ..Edge::of(memory) };
        vi.frame(frame, came, &self.protection, &mut wire, &mut edge);
        connection.theirs = theirs;
        self.settle(place);
        self.note_pace(place);
    }

    /// A part of a message is offered to a VI by its peer.
    #[inline(never)]
    fn offer_came(&mut self, place: u16, frame: &ViFrame, came: &Came<'_, B>, links: &mut impl Links<Block = B>) {
        let peer = self.vis.at_place_mut(place).and_then(|(_, entry)| Some(entry.connection.as_ref()?.peer));
        let Some((offered, lease)) = peer.and_then(|peer| self.offered(peer, came)) else { return self.refuse() };
        if let Some((_, ViEntry { connection: Some(connection), .. })) = self.vis.at_place_mut(place) {
            connection.theirs = Some(lease);
        }
        self.frame_for(place, frame, &Came::Offered(offered), links);
    }

    /// A frame is of no connection that there is.
    #[cold]
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Bytes of a frame that is no message's, if they are few enough.
    pub(super) fn told<'t>(came: &Came<'_, B>, into: &'t mut [u8; crate::wire::REQUEST_BYTES_MAX]) -> Option<&'t [u8]> {
        let bytes = came.copy_to(into);
        (bytes == came.len() as usize).then(|| &into[..bytes])
    }
}

/// What a frame says.
enum Meaning {
    /// This, to the VI, with what came.
    Frame(ViFrame),
    /// This, and what came is a part of it.
    Told(ViFrame),
    /// This, to the VI, with what came only saying where the bytes are.
    Offer(ViFrame),
    /// Where the parts that follow go.
    Head,
    /// Nothing that there is.
    Nothing,
}

#[inline]
fn of_header<B: Block>(header: &Header, came: &Came<'_, B>, write: &mut Option<WriteHead>) -> Meaning {
    let Some(frame) = NicFrame::of_data(header) else { return of_told(header, came, write) };
    let part = |to: RemotePlace, bytes, offset, immediate| ViFrame::Write { to, bytes, offset, immediate };
    Meaning::Frame(match frame {
        NicFrame::Send { bytes, offset, immediate } => ViFrame::Send { bytes, offset, immediate },
        NicFrame::Write(to) => part(to, header.length, 0, None),
        NicFrame::WritePart { offset } => match *write {
            None => return Meaning::Nothing,
            Some(WriteHead { to, bytes, immediate }) => part(to, bytes, offset, immediate),
        },
        NicFrame::SendOffer { bytes, offset, immediate } => {
            return Meaning::Offer(ViFrame::Send { bytes, offset, immediate });
        }
        NicFrame::WriteOffer { offset } => match *write {
            None => return Meaning::Nothing,
            Some(WriteHead { to, bytes, immediate }) => return Meaning::Offer(part(to, bytes, offset, immediate)),
        },
        NicFrame::Data { offset } => ViFrame::Data { offset },
        NicFrame::ReadRefused { messages } => ViFrame::ReadRefused { messages },
        NicFrame::Placed { messages } => ViFrame::Placed { messages },
        NicFrame::Credit { receives } => ViFrame::Credit { receives },
        NicFrame::Broken { messages, status } => ViFrame::Broken { messages, status },
        _ => return Meaning::Nothing,
    })
}

/// A frame whose payload is not the bytes of a message.
fn of_told<B: Block>(header: &Header, came: &Came<'_, B>, write: &mut Option<WriteHead>) -> Meaning {
    let mut bytes = [0; crate::wire::REQUEST_BYTES_MAX];
    let Some(told) = NicState::told(came, &mut bytes) else { return Meaning::Nothing };
    match NicFrame::of_manager(header, told) {
        Some(NicFrame::Read { from, bytes }) => Meaning::Told(ViFrame::Read { from, bytes }),
        Some(NicFrame::WriteBegin(head)) => {
            *write = Some(head);
            Meaning::Head
        }
        _ => Meaning::Nothing,
    }
}
