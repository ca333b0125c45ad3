//! A frame is a message of a lane: its header is the head, its payload follows in the lane or stands in a block.
//!
//! What you may rely on: a frame that comes is of a kind, class and length that the protocol has; any other is
//! [`Refused::Broken`]. The last slots of a lane are kept for control, so credit and answers pass where data has no room.
//!
//! How it works: a payload of up to [`IN_LANE_MAX`] bytes travels in the lane, a longer one in a block.

use musubi_core::lane::{Brief, Link, Payload, RECORD_BYTES_MAX};
use musubi_core::layout::LinkShape;

use crate::Priority;
use crate::frame::{Header, Kinds};
use crate::limits::PAYLOAD_BYTES_MAX;

/// Sizes of every link.
pub const SHAPE: LinkShape = LinkShape { slots: 256, blocks: 32, block_bytes: PAYLOAD_BYTES_MAX as u32 };
/// Longest payload that travels in the lane. A longer one arrives sooner in a block, measured on x86-64.
pub const IN_LANE_MAX: usize = 400;
/// Slots that only frames of class 0 may take, so that credit and answers pass where data has no room.
const CONTROL_SLOTS: u32 = 32;
/// Slots that frames of all classes may take: so many frames of data lie in a lane at most.
pub const DATA_SLOTS: u32 = SHAPE.slots - CONTROL_SLOTS;

const HEAD: usize = Header::WORDS;

/// A frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its header; the length is that of the payload.
    pub header: Header,
    /// Where its payload is.
    pub payload: Payload,
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No room; see [`Link::has_room`].
    Full,
    /// The peer broke the protocol; or we did, with a payload of another length than the header says.
    Broken,
}

/// Sends a frame; [`Link::must_ring`] is due afterwards.
///
/// # Errors
/// [`Refused`].
#[inline(always)]
pub fn send(link: &mut Link<'_>, header: &Header, payload: &[u8]) -> Result<(), Refused> {
    let head = header.to_words();
    let spare = if header.class == Priority::MOST_URGENT { 0 } else { CONTROL_SLOTS };
    let sent = if payload.len() <= IN_LANE_MAX {
        link.send(&head, payload, spare)
    } else {
        link.send_block(&head, payload, spare)
    };
    if sent.is_ok() {
        link.tell_class(header.class.class());
    }
    sent.map_err(|error| match error {
        musubi_core::Error::Full | musubi_core::Error::NoBlock => Refused::Full,
        _ => Refused::Broken,
    })
}

/// Takes the next frame; a payload in the lane is copied into `data`.
///
/// # Errors
/// [`Refused::Broken`].
#[inline(always)]
pub fn receive(
    link: &mut Link<'_>,
    data: &mut [u8; RECORD_BYTES_MAX],
    kinds: &Kinds,
) -> Result<Option<Frame>, Refused> {
    let Some(message) = link.receive::<HEAD>(data).map_err(|_| Refused::Broken)? else { return Ok(None) };
    let bytes = match message.payload {
        Payload::Copied(bytes) => bytes,
        Payload::Block { bytes, .. } => bytes as usize,
    };
    let header = Header::from_words(message.head, kinds)
        .filter(|header| header.length as usize == bytes)
        .ok_or(Refused::Broken)?;
    Ok(Some(Frame { header, payload: message.payload }))
}

/// Takes the next frame if its payload is one word at most, and gives it with that word; none otherwise, see [`receive`].
///
/// # Errors
/// [`Refused::Broken`].
#[inline(always)]
pub fn receive_brief(link: &mut Link<'_>, kinds: &Kinds) -> Result<Option<(Header, u64)>, Refused> {
    let Some(Brief { head, bytes, word }) = link.receive_brief::<HEAD>() else { return Ok(None) };
    match Header::from_words(head, kinds) {
        Some(header) if header.length as usize == bytes => Ok(Some((header, word))),
        _ => Err(Refused::Broken),
    }
}
