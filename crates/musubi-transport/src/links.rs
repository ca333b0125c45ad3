//! What an engine asks of the links to other nodes, and what they tell it.
//!
//! What you may rely on: no call here waits. Frames of one class arrive in their order; a frame that a link took arrives, or
//! [`Report::Down`] says that it may not have. A payload is as long as its header says, whatever the peer wrote.
//!
//! How it works: the engine hands every frame out through [`Links::send`], which never waits. Whoever owns both (the
//! runtime of a node, or a simulation) tells the engine what the links report, as [`Report`]s.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

use crate::frame::Header;
use crate::notifier::WakeCounts;
use crate::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};
use crate::{NodeId, Priority};

/// Ways to the other nodes.
pub trait Links {
    /// Payload that lies where the peer put it; dropping it gives the place back.
    type Block: Block;

    /// Hands a frame to the link with `peer`. `payload` is at most what the frame's kind may carry.
    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent;

    /// The same of payload that the link may keep where it lies, instead of a copy, until the peer has acknowledged it.
    fn send_shared(&mut self, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        self.send(peer, header, payload)
    }

    /// Frames that are handed over from now on may be held back until [`Links::release`], so that they go out together.
    fn hold(&mut self) {}

    /// Nothing is held back any more.
    fn release(&mut self) {}

    /// Says whether a link with `peer` is wanted: while it is, and there is none, one is tried for again and again.
    fn want(&mut self, peer: NodeId, wanted: bool);

    /// Whether `peer` can be a node of this system at all.
    fn knows(&self, peer: NodeId) -> bool;

    /// How the link with `peer` does, for tools; `None` if there has been none, or nothing is known of it.
    fn link(&self, _peer: NodeId) -> Option<LinkStatus> {
        None
    }

    /// What became of connections, for tools; `None` if nothing is known of that.
    fn acceptor(&self) -> Option<AcceptorStatus> {
        None
    }

    /// Whether the peer has read every large payload that it was sent; false where that is not known.
    fn is_drained(&mut self, _peer: NodeId) -> bool {
        false
    }

    /// A way into the memory of the peer's process, if the kernel may let us read it.
    fn reach(&mut self, _peer: NodeId) -> Option<Arc<dyn Reach>> {
        None
    }

    /// How often the node's threads were woken, for tools; `None` where nobody counts.
    fn wakes(&self) -> Option<WakeStatus> {
        None
    }

    /// What became of the wake-ups that frames of each class with a filter asked for, for tools.
    fn class_wakes(&self) -> Vec<(Priority, WakeCounts)> {
        Vec::new()
    }

    /// What happened to connections, oldest first, for tools; a bounded number of entries.
    fn log(&self) -> Vec<LoggedEvent> {
        Vec::new()
    }
}

/// The memory of another process of this machine, read as it is at that moment and without its help.
pub trait Reach: core::fmt::Debug + Send + Sync {
    /// Reads as many bytes as there is room for from an address in that process. False if not all of them could be read. It
    /// takes as long as that process makes it take: for peers that are trusted.
    #[must_use]
    fn fetch(&self, address: u64, into: &mut [u8]) -> bool;
}

/// What became of a frame that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is in the peer's memory.
    Delivered,
    /// The link has it under this number, and will report [`Report::Acknowledged`] or [`Report::Down`]. Numbers of a
    /// link rise by one a frame, from 1, all classes together; it may acknowledge out of order of classes, see there.
    Numbered(u64),
    /// The link has no room in this class; [`Report::Room`] follows.
    Full,
    /// There is no link; [`Report::Up`] follows if one is wanted and comes about.
    NoLink,
}

/// What a link tells the engine.
#[derive(Debug)]
pub enum Report<B> {
    /// There is a link with this node, of this incarnation. A former one was reported down.
    Up {
        /// The other node.
        peer: NodeId,
        /// Tells one run of that node from another.
        incarnation: u32,
    },
    /// The link has ended; what was not acknowledged may not have been delivered.
    Down {
        /// The other node.
        peer: NodeId,
        /// How it ended.
        loss: Loss,
    },
    /// A frame came.
    Frame {
        /// Who sent it.
        peer: NodeId,
        /// Its header, decoded and within its bounds; everything else in it is the peer's claim.
        header: Header,
        /// Its payload, `header.length` bytes.
        payload: Payload<B>,
    },
    /// The peer's node has the frame of this number, and every one of the same class before it. Comes before any frame that
    /// the peer sent after it had them.
    Acknowledged {
        /// The other node.
        peer: NodeId,
        /// The number that [`Sent::Numbered`] gave.
        number: u64,
    },
    /// A link that was full has room again.
    Room {
        /// The other node.
        peer: NodeId,
    },
    /// Nobody answers for this node: tried now, without success; it is tried again while wanted.
    Absent {
        /// The other node.
        peer: NodeId,
    },
}

/// How a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node said that it leaves, or its death is certain.
    Gone,
    /// It could not be reached for longer than the configured time, or it broke the protocol. It may live.
    Cut,
}

/// The payload of a frame that came.
#[derive(Debug)]
pub enum Payload<B> {
    /// None, or a short one.
    Short(Short),
    /// In memory of this node's.
    Owned(Vec<u8>),
    /// In place.
    Lent(B),
}

/// Bytes that nobody changes, in memory that lives for as long as anybody refers to it; clones refer to the same.
#[derive(Clone, Debug)]
pub struct SharedBytes(Arc<Vec<u8>>);

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Arc::new(bytes))
    }
}

impl From<Arc<Vec<u8>>> for SharedBytes {
    fn from(bytes: Arc<Vec<u8>>) -> SharedBytes {
        SharedBytes(bytes)
    }
}

/// Up to [`Short::MAX`] bytes by value. Aligned, so that moving one is moving words.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Short {
    bytes: [u8; Short::MAX],
    length: u8,
}

impl Short {
    /// Most bytes.
    pub const MAX: usize = 95;

    /// No bytes.
    pub const EMPTY: Short = Short { length: 0, bytes: [0; Short::MAX] };

    /// A copy of `bytes`, if they are few enough.
    pub fn new(bytes: &[u8]) -> Option<Short> {
        let mut short = Short { length: bytes.len() as u8, ..Short::EMPTY };
        short.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(short)
    }

    /// The first so many bytes of a word, little-endian; at most all.
    #[inline]
    pub fn of_word(word: u64, bytes: usize) -> Short {
        let length = bytes.min(size_of_val(&word));
        let mut short = Short { length: length as u8, ..Short::EMPTY };
        let kept = if length < size_of_val(&word) { word & ((1 << (8 * length)) - 1) } else { word };
        if let Some(first) = short.bytes.first_chunk_mut() {
            *first = kept.to_le_bytes();
        }
        short
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl<B: Block> Payload<B> {
    /// A copy of these bytes.
    #[inline]
    pub fn of_bytes(bytes: &[u8]) -> Payload<B> {
        Short::new(bytes).map_or_else(|| Payload::Owned(bytes.to_vec()), Payload::Short)
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Short(short) => short.bytes().len(),
            Payload::Owned(bytes) => bytes.len(),
            Payload::Lent(block) => block.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The payload, if it is eight bytes: little-endian.
    pub fn word(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.len() == bytes.len() && self.copy_to(&mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }

    /// Copies as much as fits; gives the number of bytes.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let bytes = match self {
            Payload::Short(short) => short.bytes(),
            Payload::Owned(bytes) => bytes,
            Payload::Lent(block) => return block.copy_to(0, into),
        };
        let copied = bytes.len().min(into.len());
        into[..copied].copy_from_slice(&bytes[..copied]);
        copied
    }

    /// Itself, or a copy if it lies where others need the room.
    pub fn unless_scarce(self) -> Payload<B> {
        match self {
            Payload::Lent(block) if !block.may_be_kept() => Payload::Lent(block).copied_out(),
            payload => payload,
        }
    }

    /// Its bytes in this node's own memory.
    pub fn copied_out(self) -> Payload<B> {
        let Payload::Lent(block) = self else { return self };
        if block.len() <= Short::MAX {
            let mut bytes = [0; Short::MAX];
            let length = block.copy_to(0, &mut bytes);
            return Payload::Short(Short::new(&bytes[..length]).unwrap_or(Short::EMPTY));
        }
        let mut bytes = alloc::vec![0; block.len()];
        let length = block.copy_to(0, &mut bytes);
        bytes.truncate(length);
        Payload::Owned(bytes)
    }
}

/// Payload that lies in memory another node writes.
pub trait Block: core::fmt::Debug + Send + 'static {
    /// Number of bytes.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies from `offset`, as much as there is and fits; gives the number of bytes.
    fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize;
    /// Where it lies. Stays readable while the block lives; its bytes are the peer's to change.
    fn address(&self) -> *const u8;
    /// Whether the link has blocks enough that this one may be kept for as long as a program likes.
    fn may_be_kept(&self) -> bool;
}

/// Links without payload in place have this block, of which there is none.
#[derive(Debug)]
pub enum NoBlock {}

impl Block for NoBlock {
    fn len(&self) -> usize {
        match *self {}
    }
    fn copy_to(&self, _: usize, _: &mut [u8]) -> usize {
        match *self {}
    }
    fn address(&self) -> *const u8 {
        match *self {}
    }
    fn may_be_kept(&self) -> bool {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that lie somewhere else.
    #[derive(Debug, PartialEq)]
    struct Elsewhere {
        bytes: Vec<u8>,
        may_be_kept: bool,
    }

    impl Block for Elsewhere {
        fn len(&self) -> usize {
            self.bytes.len()
        }
        fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
            let from = &self.bytes[offset..];
            let copied = from.len().min(into.len());
            into[..copied].copy_from_slice(&from[..copied]);
            copied
        }
        fn address(&self) -> *const u8 {
            self.bytes.as_ptr()
        }
        fn may_be_kept(&self) -> bool {
            self.may_be_kept
        }
    }

    fn text(bytes: usize) -> Vec<u8> {
        (1..=bytes).map(|at| at as u8).collect()
    }

    fn lent(bytes: usize, may_be_kept: bool) -> Payload<Elsewhere> {
        Payload::Lent(Elsewhere { bytes: text(bytes), may_be_kept })
    }

    /// The same bytes in each of the ways in which they can come.
    fn payloads(bytes: usize) -> Vec<Payload<Elsewhere>> {
        let short = Short::new(&text(bytes)).map(Payload::Short);
        let mut payloads = alloc::vec![Payload::Owned(text(bytes)), lent(bytes, true)];
        payloads.extend(short);
        payloads
    }

    #[test]
    fn payloads_are_alike_wherever_they_lie() {
        for bytes in [0, 1, 7, 8, 9, 95, 96, 200] {
            assert_eq!(payloads(bytes).len(), if bytes <= 95 { 3 } else { 2 });
            let word: Option<[u8; 8]> = text(bytes).try_into().ok();
            for payload in payloads(bytes) {
                assert_eq!((payload.len(), payload.is_empty()), (bytes, bytes == 0), "{payload:?}");
                assert_eq!(payload.word(), word.map(u64::from_le_bytes), "{payload:?}");
                for room in [0, 1, bytes, bytes + 5] {
                    let mut into = alloc::vec![0xEE; room];
                    let copied = payload.copy_to(&mut into);
                    assert_eq!(copied, room.min(bytes), "{payload:?}");
                    assert_eq!(into[..copied], text(bytes)[..copied]);
                    assert!(into[copied..].iter().all(|byte| *byte == 0xEE));
                }
            }
        }
    }

    #[test]
    fn what_is_copied_out_is_short_if_it_can_be() {
        for bytes in [0, 1, 94, 95, 96, 500] {
            let Payload::Lent(block) = lent(bytes, true) else { unreachable!("it is lent") };
            assert_eq!(block.is_empty(), bytes == 0);
            match Payload::Lent(block).copied_out() {
                Payload::Short(short) => assert!(short.bytes() == text(bytes) && bytes <= 95),
                Payload::Owned(owned) => assert!(owned == text(bytes) && bytes > 95),
                Payload::Lent(block) => panic!("{block:?}"),
            }
        }
        let owned = Payload::<Elsewhere>::Owned(text(3)).copied_out();
        assert!(matches!(owned, Payload::Owned(bytes) if bytes == text(3)));
    }

    #[test]
    fn only_what_is_scarce_is_copied_out() {
        assert!(matches!(lent(100, true).unless_scarce(), Payload::Lent(_)));
        assert!(matches!(lent(100, false).unless_scarce(), Payload::Owned(bytes) if bytes == text(100)));
        assert!(matches!(Payload::<Elsewhere>::Owned(text(1)).unless_scarce(), Payload::Owned(_)));
    }

    #[test]
    fn a_word_gives_its_first_bytes_and_no_others() {
        let word = 0x8877_6655_4433_2211;
        for bytes in 0..=12 {
            let kept = bytes.min(8);
            assert_eq!(Short::of_word(word, bytes).bytes(), &word.to_le_bytes()[..kept]);
            assert_eq!(Short::of_word(word, bytes).bytes[kept..], [0; Short::MAX][kept..]);
        }
    }
}
