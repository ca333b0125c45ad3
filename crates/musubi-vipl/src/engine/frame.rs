//! What two connected VIs say to each other, and what the engine asks of who carries it.
//!
//! What you may rely on: frames of one VI arrive in the order in which they were handed over, or the connection ends. A
//! frame's fields are a claim; [`super::Vi::frame`] checks each.
//!
//! How it works: a message longer than a frame goes as several, each with the length of the whole and the place of its part.
//! Bytes never pass through the engine: it names this side's places, and [`LocalMemory`] moves what came with the frame there.

use super::descriptor::Descriptor;
use super::protection::RemotePlace;
use super::segments::{LocalPlace, Places};
use super::status::{Completion, Status};

/// One frame. Its payload, if it has one, goes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViFrame {
    /// A part of a message for a posted receive.
    Send {
        /// Bytes of the message.
        bytes: u32,
        /// Bytes of it that came before this part.
        offset: u32,
        /// Goes with the message; the same in every part.
        immediate: Option<u32>,
    },
    /// A part of a write.
    Write {
        /// Where the write begins.
        to: RemotePlace,
        /// Bytes of the write.
        bytes: u32,
        /// Bytes of it that came before this part.
        offset: u32,
        /// Goes with the write; the same in every part.
        immediate: Option<u32>,
    },
    /// Asks for bytes.
    Read {
        /// From where.
        from: RemotePlace,
        /// How many.
        bytes: u32,
    },
    /// A part of the answer to the oldest read that is not answered.
    Data {
        /// Bytes of it that came before this part.
        offset: u32,
    },
    /// The answer to the oldest read that is not answered: it may not be done. The connection ends.
    ReadRefused {
        /// Messages and writes that are in their place and were not told of yet.
        messages: u32,
    },
    /// So many messages and writes more are in their place: all of them at the level of reception, at the others those of
    /// which a part was offered. Of the unreliable ones it says that they were taken, wherever they are.
    Placed {
        /// How many.
        messages: u32,
    },
    /// So many receives have been posted since the connection was made (with credit only).
    Credit {
        /// How many, wrapping.
        receives: u32,
    },
    /// The connection ends, as a message or write did not fit.
    Broken {
        /// Messages and writes that are in their place and were not told of yet.
        messages: u32,
        /// What is wrong with the one after these.
        status: Status,
    },
}

/// What became of a frame that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// The remote side has it.
    Accepted,
    /// It is on its way; [`super::Vi::accepted`] says when the remote side has it. Numbers rise.
    Numbered(u64),
    /// The remote side fetches the payload from where it lies, and says by [`ViFrame::Placed`] when it has the message.
    Offered,
    /// No room now; [`super::Vi::pump`] is to be called when there is.
    Full,
}

/// Carries the frames of one VI to its peer.
pub trait Wire {
    /// Most payload bytes of a frame; at least 1.
    fn payload_bytes_max(&self) -> u32;

    /// Hands a frame over, with the bytes of these places behind it. It never waits.
    fn hand(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed;
}

/// This side's memory, in which the engine names places that it has checked.
pub trait LocalMemory {
    /// What came with a frame.
    type Payload: ?Sized;

    /// Bytes of a payload.
    fn bytes(payload: &Self::Payload) -> u32;

    /// Whether a payload did not come with its frame but is offered: it is to be fetched from where the peer has it.
    #[inline]
    fn is_offered(_payload: &Self::Payload) -> bool {
        false
    }

    /// Moves a payload into these places, which have room for it together. False if it is not to be had: an offered one only.
    fn place(&mut self, payload: &Self::Payload, into: impl Iterator<Item = LocalPlace>) -> bool;

    /// Whether the peer's connection stands, after all payloads of a message were placed of which some were offered: what was
    /// fetched is what the peer had posted.
    fn still_stands(&mut self) -> bool {
        true
    }

    /// Writes a completion into a descriptor: the status last, with release order. Whether its memory is still registered.
    fn complete(&mut self, descriptor: &Descriptor, completion: &Completion) -> bool;
}
