//! A link: a lane each way, and the blocks of both sides.
//!
//! What you may rely on: messages arrive in the order in which they were sent, whether their payload travels in the lane or
//! stands in a block. A block that came is ours to read until it is given back. What a peer cannot have meant is
//! [`Error::PeerFault`], from then on for good.
//!
//! What it does not do: wait or ring. It says when a ring is due ([`Link::must_ring`]); whoever has the bell gives it.

use super::blocks::{Pool, Returns};
use super::receiver::{Brief, Receiver};
use super::sender::Sender;
use super::{RECORD_BYTES_MAX, RECORD_SLOTS_MAX};
use crate::error::Error;
use crate::layout::{LinkShape, awaited, link, record};
use crate::sync::{self, Site};
use crate::words::{OwnWords, PeerWords};

/// Mark of a record that holds its payload.
const INLINE: u8 = 0;
/// Mark of a record that names a block and the length in it.
const IN_BLOCK: u8 = 1;
/// Words that name a block and a length.
const NAMED_BYTES: usize = 8;

/// One node's side of a link.
#[derive(Debug)]
pub struct Link<'m> {
    own: OwnWords<'m>,
    peer: PeerWords<'m>,
    shape: LinkShape,
    stride_bytes: u32,
    sender: Sender<'m>,
    receiver: Receiver<'m>,
    pool: Pool<'m>,
    /// What was published since the last look at the peer's wait: bits of [`awaited`].
    unlooked: u32,
    /// How far we had read at the last [`Link::lines_ahead`]. Who sends without having read in between has more to send.
    read_at_send: u32,
}

/// A message that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<const H: usize> {
    /// Its head.
    pub head: [u32; H],
    /// Where its payload is.
    pub payload: Payload,
}

/// Where the payload of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// It was copied; this many bytes.
    Copied(usize),
    /// In a block of the peer's; [`Returns::hold`] it, read at [`Link::place`], and give it back.
    Block {
        /// Number of the block, within the shape.
        block: u32,
        /// Bytes in it, at most a block's.
        bytes: u32,
    },
}

impl<'m> Link<'m> {
    /// A link in fresh memory: `own` is our section, zero but for its header, `peer` the other's.
    ///
    /// # Errors
    /// [`Error::Plan`] if the shape is no shape, or a view is shorter than it says.
    pub fn new(own: OwnWords<'m>, peer: PeerWords<'m>, shape: LinkShape) -> Result<(Link<'m>, Returns<'m>), Error> {
        let (true, Some(bytes), Some(stride_bytes)) = (shape.is_sound(), shape.section_bytes(), shape.stride_bytes())
        else {
            return Err(Error::Plan);
        };
        if own.len() < bytes / 4 || peer.len() < bytes / 4 {
            return Err(Error::Plan);
        }
        let (at, words) = (shape.slots_at(), shape.slots * record::WORDS);
        let sender = Sender::new(own.part(at, words), peer.part(link::TAKEN, 1))?;
        let receiver = Receiver::new(peer.part(at, words), own.part(link::TAKEN, 1))?;
        let pool = Pool::new(peer.part(link::RETURNS, shape.blocks));
        let returns = Returns::new(own.part(link::RETURNS, shape.blocks), peer.part(link::WAITING, 1));
        Ok((Link { own, peer, shape, stride_bytes, sender, receiver, pool, unlooked: 0, read_at_send: 0 }, returns))
    }

    /// Sends a message whose payload travels in the lane, if `spare` slots stay free behind it. A look is due
    /// afterwards ([`Link::must_ring`]).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`], [`Error::PeerFault`].
    #[inline(always)]
    pub fn send<const H: usize>(&mut self, head: &[u32; H], payload: &[u8], spare: u32) -> Result<(), Error> {
        self.sender.send(INLINE, head, payload, spare)?;
        self.unlooked |= awaited::RECORD;
        Ok(())
    }

    /// After a message of a stream (nothing was read since the one before): addresses of lines that will be written soon, for
    /// a hint to the processor, which the port has.
    #[inline(always)]
    pub fn lines_ahead(&mut self) -> Option<[*const u8; 2]> {
        let read = core::mem::replace(&mut self.read_at_send, self.receiver.position());
        (read == self.read_at_send).then(|| self.sender.lines_ahead())
    }

    /// Sends a message whose payload travels in a block.
    ///
    /// # Errors
    /// [`Error::NoBlock`], and as [`Link::send`].
    #[inline(never)]
    pub fn send_block<const H: usize>(&mut self, head: &[u32; H], payload: &[u8], spare: u32) -> Result<(), Error> {
        if payload.len() > self.shape.block_bytes as usize {
            return Err(Error::TooLong);
        }
        let block = self.pool.take()?.ok_or(Error::NoBlock)?;
        if !self.sender.has_room(1 + spare).unwrap_or(false) {
            self.pool.put_back(block);
            return Err(Error::Full);
        }
        self.fill(block, payload);
        let mut named = [0; NAMED_BYTES];
        named[..4].copy_from_slice(&block.to_le_bytes());
        named[4..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        self.sender.send(IN_BLOCK, head, &named, spare)?;
        self.unlooked |= awaited::RECORD;
        Ok(())
    }

    /// Writes a payload, and a zero byte behind it if there is room: receivers may take it for text where it lies.
    fn fill(&self, block: u32, payload: &[u8]) {
        let has_end = (payload.len() as u32) < self.shape.block_bytes;
        let to = self.own.bytes_at(self.block_at(block), payload.len() as u32 + u32::from(has_end));
        // SAFETY: `bytes_at` checked that the bytes lie inside our section, which may be written; the pool gave the block
        // to us alone, and no reference covers it. What the other side may do meanwhile is a volatile read.
        unsafe { core::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len()) };
        if has_end {
            let end = to.wrapping_add(payload.len());
            // SAFETY: as before; the byte behind the payload was checked with it.
            unsafe { end.write(0) };
        }
    }

    /// Takes the next message if its payload travels in the lane and is brief; all others, and faults, are left to
    /// [`Link::receive`]. What was read before gives the sender room.
    #[inline(always)]
    pub fn receive_brief<const H: usize>(&mut self) -> Option<Brief<H>> {
        self.publish_taken();
        self.receiver.receive_brief(INLINE)
    }

    /// Takes the next message; a short payload is copied into `data`. What was read before gives the sender room.
    ///
    /// # Errors
    /// [`Error::PeerFault`]; the link gives nothing any more.
    #[inline(always)]
    pub fn receive<const H: usize>(&mut self, data: &mut [u8; RECORD_BYTES_MAX]) -> Result<Option<Message<H>>, Error> {
        self.publish_taken();
        let Some(record) = self.receiver.receive::<H>(data)? else { return Ok(None) };
        let payload = match record.mark {
            INLINE => Payload::Copied(record.bytes),
            IN_BLOCK => self.named(&data[..record.bytes])?,
            _ => return Err(Error::PeerFault),
        };
        Ok(Some(Message { head: record.head, payload }))
    }

    /// Tells the peer how far we are, now and then.
    #[inline(always)]
    fn publish_taken(&mut self) {
        if self.receiver.publish() {
            self.unlooked |= awaited::ROOM;
        }
    }

    fn named(&self, data: &[u8]) -> Result<Payload, Error> {
        let (&[block, bytes], []) = data.as_chunks::<4>() else { return Err(Error::PeerFault) };
        let (block, bytes) = (u32::from_le_bytes(block), u32::from_le_bytes(bytes));
        let fits = block < self.shape.blocks && bytes <= self.shape.block_bytes;
        if fits { Ok(Payload::Block { block, bytes }) } else { Err(Error::PeerFault) }
    }

    /// The bytes that a message named, in the peer's section.
    ///
    /// # Panics
    /// If the peer has no such block: our own bug, since [`Link::receive`] has checked.
    pub fn place(&self, block: u32, bytes: u32) -> *const u8 {
        assert!(block < self.shape.blocks && bytes <= self.shape.block_bytes, "block {block}, {bytes} bytes");
        self.peer.bytes_at(self.block_at(block), bytes)
    }

    /// Copies what a message named, each byte read once.
    ///
    /// # Panics
    /// As [`Link::place`].
    pub fn copy_block(&self, block: u32, into: &mut [u8]) {
        assert!(block < self.shape.blocks && into.len() <= self.shape.block_bytes as usize, "block {block}");
        self.peer.copy_bytes(self.block_at(block), into);
    }

    /// Whether [`Link::receive`] has something to give or to say.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.receiver.is_ready()
    }

    /// Whether there is one whose payload travels in the lane.
    #[inline(always)]
    pub fn is_ready_in_lane(&self) -> bool {
        self.receiver.is_ready_with(INLINE)
    }

    /// Whether a message that was refused for want of room or of a block would be taken now: a quarter of the lane is
    /// free, and a block.
    ///
    /// # Errors
    /// [`Error::PeerFault`].
    pub fn has_room(&mut self) -> Result<bool, Error> {
        self.pool.collect()?;
        let room = self.sender.has_room((self.shape.slots / 4).max(RECORD_SLOTS_MAX.min(self.shape.slots / 2)))?;
        Ok(room && self.pool.free() > 0)
    }

    /// Whether the peer has given all of our blocks back: it has read every payload that lay in one.
    ///
    /// # Errors
    /// [`Error::PeerFault`].
    pub fn has_all_blocks(&mut self) -> Result<bool, Error> {
        self.pool.collect()?;
        Ok(self.pool.are_all_here())
    }

    /// Looks whether the peer sleeps for what was published since the last look; gives whether it must be rung.
    #[inline(always)]
    pub fn must_ring(&mut self) -> bool {
        self.publish_taken();
        if self.unlooked == 0 {
            return false;
        }
        sync::look_fence(Site::LaneThenLook);
        let rings = self.peer.look(link::WAITING) & self.unlooked != 0;
        self.unlooked = 0;
        rings
    }

    /// [`Link::must_ring`], if the last messages taken gave the peer room; the look costs nothing otherwise.
    #[inline(always)]
    pub fn must_ring_for_room(&mut self) -> bool {
        self.unlooked & awaited::ROOM != 0 && self.must_ring()
    }

    /// Says of what class the message was that has just been sent, below [`awaited::CLASSES`]: who sleeps for some classes only
    /// is rung for those. A message of which nothing is said is for who sleeps for all.
    #[inline(always)]
    pub fn tell_class(&mut self, class: u8) {
        self.unlooked |= awaited::record_of(class);
    }

    /// Whether the peer sleeps and would be woken by a message of this class, of which there is none to look for: the lane is
    /// full of others, which the peer sleeps on.
    #[cold]
    pub fn must_ring_to_empty(&mut self, class: u8) -> bool {
        sync::look_fence(Site::LaneThenLook);
        self.peer.look(link::WAITING) & (awaited::RECORD | awaited::record_of(class)) != 0
    }

    /// Announces that this node is about to sleep and wants to be rung for a record, and if `room` for room too. Gives
    /// whether there is something already. Must be preceded by [`Link::must_ring`].
    ///
    /// # Errors
    /// [`Error::PeerFault`], as from a look at room.
    pub fn announce(&mut self, room: bool) -> Result<bool, Error> {
        self.announce_for(awaited::RECORD, room)
    }

    /// The same for records of some classes only, a bit each. What is there already may be of any class.
    ///
    /// # Errors
    /// As [`Link::announce`].
    pub fn announce_classes(&mut self, classes: u8, room: bool) -> Result<bool, Error> {
        self.announce_for(awaited::records_of(classes), room)
    }

    fn announce_for(&mut self, records: u32, room: bool) -> Result<bool, Error> {
        let bits = records | if room { awaited::ROOM } else { 0 };
        self.own.set(link::WAITING, bits);
        // A fence, not one ordered store: the looks below are at several words.
        sync::look_fence(Site::LaneSleepThenLook);
        Ok(self.receiver.is_ready() || (room && self.has_room()?))
    }

    /// Takes that back.
    pub fn withdraw(&self) {
        self.own.set(link::WAITING, 0);
    }

    /// Whether the peer sleeps, by its own word.
    pub fn peer_sleeps(&self) -> bool {
        self.peer.get(link::WAITING) != 0
    }

    fn block_at(&self, block: u32) -> u32 {
        self.shape.blocks_at() + block * self.stride_bytes
    }
}

#[cfg(loom)]
impl Link<'_> {
    /// Whether one slot is free, for a model that writes a cell of its own first.
    pub(super) fn has_sender_room(&mut self) -> bool {
        self.sender.has_room(1).unwrap()
    }
}
