//! What has come, to the protocol.
//!
//! What you may rely on: the most urgent reports of shared memory come first, then the rest of it, then the network's. Nothing
//! here waits, and links never call a protocol: whoever has both passes on from the one to the other.
//!
//! How it works: a report is large, and costs more to hand on than a scalar to take in; so a frame of a lane is looked at
//! where it lies, and handed on in the shortest form that it has.

use musubi_core::lane::Payload as Placed;

use super::node_links::{Block, NodeLinks};
use crate::Priority;
use crate::carrier::Drive;
use crate::frame::Header;
use crate::limits::REPORTS_MAX;
use crate::links::Report;
use crate::protocol::Protocol;
use crate::shm::Arrival;

/// Most short frames that are taken in behind the one that was waited for.
pub(super) const MORE_MAX: u32 = 8;

/// Gives the protocol what has arrived, at most [`REPORTS_MAX`] reports: before taking the most urgent message, say, as a
/// more urgent one may lie right behind the first.
#[inline]
pub(super) fn all<P: Protocol<Block = Block>>(engine: &mut P, links: &mut NodeLinks) {
    for _ in 0..REPORTS_MAX {
        if one(engine, links).is_none() {
            return;
        }
    }
}

/// Gives the protocol one report and says its frame's class, that of control if it is none; `None` if there is no report.
#[inline(always)]
pub(super) fn one<P: Protocol<Block = Block>>(engine: &mut P, links: &mut NodeLinks) -> Option<Priority> {
    let Some(memory) = &mut links.memory else { return rest(engine, links) };
    match memory.next_place() {
        Some(place) => brief(engine, links, place),
        None if !memory.has_rest() && !links.polls_the_kernel() => None,
        None => rest(engine, links),
    }
}

/// What is no frame of a lane.
#[inline(never)]
fn rest<P: Protocol<Block = Block>>(engine: &mut P, links: &mut NodeLinks) -> Option<Priority> {
    let report = links.next_of_rest()?;
    let now_ns = if engine.wants_time() { links.now_ns() } else { links.time_of::<P>(&report) };
    let class = if let Report::Frame { header, .. } = &report { header.class } else { Priority::MOST_URGENT };
    engine.report(now_ns, report, links);
    Some(class)
}

/// The next frame of a lane, if its payload is a word at most.
#[inline(never)]
fn brief<P: Protocol<Block = Block>>(engine: &mut P, links: &mut NodeLinks, place: u16) -> Option<Priority> {
    let memory = links.memory.as_mut()?;
    let Some((node, header, word)) = memory.brief_from(place) else { return arrival(engine, links, place) };
    let now_ns = time_of(engine, links, &header);
    engine.word(now_ns, node, &header, word, links);
    Some(header.class)
}

/// When a frame came: now where that is a matter of time, else when the clock was last read.
#[inline]
fn time_of<P: Protocol<Block = Block>>(engine: &P, links: &mut NodeLinks, header: &Header) -> u64 {
    if engine.wants_time() { links.now_ns() } else { links.time_of_frame::<P>(header) }
}

/// The next frame of a lane, whose payload is longer; or what is to be reported instead.
#[inline(never)]
fn arrival<P: Protocol<Block = Block>>(engine: &mut P, links: &mut NodeLinks, place: u16) -> Option<Priority> {
    let memory = links.memory.as_mut()?;
    // If the link has just ended there is a report of that, and its successor's frames come behind it.
    let arrival = if memory.holds_reports() { None } else { memory.arrival_from(place) };
    let Some(Arrival { node, header, placed, .. }) = arrival else { return rest(engine, links) };
    if let Placed::Copied(bytes) = placed
        && let Some(data) = memory.take_data()
    {
        let now_ns = time_of(engine, links, &header);
        engine.bytes(now_ns, node, &header, data.get(..bytes).unwrap_or_default(), links);
        if let Some(memory) = &mut links.memory {
            memory.give_data_back(data);
        }
        return Some(header.class);
    }
    let memory = links.memory.as_mut()?;
    if let Some(payload) = memory.payload_of(place, placed) {
        let now_ns = time_of(engine, links, &header);
        engine.frame(now_ns, node, &header, payload, links);
    }
    Some(header.class)
}
