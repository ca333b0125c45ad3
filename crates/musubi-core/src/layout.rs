//! The byte layout of a participant's section: the only place that knows it. Documented for readers in docs/layout.md.
//!
//! What you may rely on: all words are 32-bit little-endian, all offsets are fixed by the plan, identical on 32- and
//! 64-bit targets; relations between them are asserted at compile time at the end of this file.
//!
//! How it works: a section is a header, then, in the plan's order, the transmit end of each FIFO channel that the
//! domain sends, the receive end of each that it receives, and one ticket line for each SMEM channel it is a member of.
//! Each participant of a domain has a section of the same shape. Every line names its one writer.
//!
//! What it does not do: give meaning to the words; that is in the modules that write them.

use crate::plan::{Fifo, LockKind, Plan};

mod fitting;
mod links;
mod placement;

pub use links::{LINK_BLOCKS_MAX, LINK_MAGIC, LINK_VERSION, LinkShape, awaited, link, record};
pub(crate) use placement::bank;
pub use placement::{BANKS, bank_offset, mapped_bytes, segment_offset, slot_bytes, slot_offset};

/// First word of a section: "MSB1" read as little-endian bytes. A change of layout changes it.
pub const MAGIC: u32 = u32::from_le_bytes(*b"MSB1");
/// First word of a root page: "MSBr".
pub const ROOT_MAGIC: u32 = u32::from_le_bytes(*b"MSBr");
/// Version of the layout inside the magic.
pub const VERSION: u32 = 1;
/// What two cores keep apart so that they do not disturb each other, in bytes.
pub const LINE_BYTES: u32 = 64;
/// Unit of protection and of a section's length, in bytes.
pub const PAGE_BYTES: u32 = 4096;

/// Words of a section's header, as 32-bit indices from its start. Writer: the owner.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: u32 = 0;
    /// [`super::VERSION`].
    pub const VERSION: u32 = 1;
    /// Low half of the plan's hash.
    pub const PLAN_LOW: u32 = 2;
    /// High half of the plan's hash.
    pub const PLAN_HIGH: u32 = 3;
    /// Length of the section in bytes.
    pub const SECTION_BYTES: u32 = 4;
    /// Global number of the participant.
    pub const PARTICIPANT: u32 = 5;
    /// Number of its domain.
    pub const DOMAIN: u32 = 6;
    /// Incarnation; never 0 once attached. Written last.
    pub const EPOCH: u32 = 7;
    /// Process id where there is one, else 0.
    pub const PROCESS: u32 = 8;
    /// 0 before, 1 attached, 2 terminated by its own wish.
    pub const STATE: u32 = 9;
    /// Low half of the time of attaching, nanoseconds of the port's clock.
    pub const START_LOW: u32 = 10;
    /// High half of it.
    pub const START_HIGH: u32 = 11;
    /// Milliseconds of the port's clock, wrapping, renewed every heartbeat period. In a line of its own.
    pub const HEARTBEAT_MS: u32 = 16;
    /// Length of the header in words.
    pub const WORDS: u32 = 64;
}

/// Words of a root page, as 32-bit indices from its start. Writer: the participant whose slot it is.
///
/// In mapped memory a participant's place is fixed, but its section changes with each incarnation; the root says which
/// one is valid, and what the owner still uses of its peers.
pub mod root {
    /// [`super::ROOT_MAGIC`].
    pub const MAGIC: u32 = 0;
    /// [`super::VERSION`].
    pub const VERSION: u32 = 1;
    /// Low half of the plan's hash.
    pub const PLAN_LOW: u32 = 2;
    /// High half of the plan's hash.
    pub const PLAN_HIGH: u32 = 3;
    /// Global number of the participant.
    pub const PARTICIPANT: u32 = 4;
    /// Incarnation, never 0 once attached; its lowest bit names the bank. Written last.
    pub const EPOCH: u32 = 5;
    /// Epoch of the newest incarnation that will never store again, by its own word or its successor's; 0: none.
    pub const LEFT: u32 = 6;
    /// In the Master's root: the epoch that zeroed the segments; 0 until that is done.
    pub const SEGMENTS: u32 = 7;
    /// Times that a bank was taken although a peer had not released it.
    pub const FORCED: u32 = 8;
    /// Heartbeats so far; the lowest bit names the valid pair of the words that follow. Written last.
    pub const BEAT: u32 = 16;
    /// Time of an even heartbeat in nanoseconds of the owner's clock, low half.
    pub const BEAT_LOW: u32 = 17;
    /// High half of it.
    pub const BEAT_HIGH: u32 = 18;
    /// Time of an odd heartbeat, low half.
    pub const BEAT_LOW_ODD: u32 = 19;
    /// High half of it.
    pub const BEAT_HIGH_ODD: u32 = 20;
    /// For each participant, by number: its newest epoch of whose predecessors the owner holds nothing; 0: not met yet.
    pub const RELEASED: u32 = 32;
    /// Length in words: a page.
    pub const WORDS: u32 = 1024;
}

/// Values of [`header::STATE`].
pub mod state {
    /// Attached and able to talk.
    pub const ATTACHED: u32 = 1;
    /// Left by its own wish.
    pub const TERMINATED: u32 = 2;
}

/// Words of a transmit end, as 32-bit indices from its start. Writer: the sending participant.
pub mod tx {
    /// Participant number of the receiver this session is for.
    pub const LINK_PARTICIPANT: u32 = 0;
    /// Epoch of that receiver; 0 while there is none. Written last.
    pub const LINK_EPOCH: u32 = 1;
    /// Position ([`crate::fifo::Ring`]) at which the receiver begins.
    pub const START: u32 = 2;
    /// Non-zero while a thread of the sender sleeps ([`super::waiting`]).
    pub const WAITING: u32 = 16;
    /// 1 while the end is in use.
    pub const OPEN: u32 = 17;
    /// Cumulative count of notifications that no message carries.
    pub const EVENTS: u32 = 32;
    /// What the receiver sleeps on; changes with every ring.
    pub const BELL: u32 = 33;
    /// Position before which queued messages are void because the sender re-initialised the channel, plus 1; 0: none.
    pub const SKIP: u32 = 34;
    /// Messages enqueued, low half.
    pub const SENT: u32 = 48;
    /// High half of it.
    pub const SENT_HIGH: u32 = 49;
    /// Payload bytes enqueued, low half.
    pub const BYTES: u32 = 50;
    /// High half of it.
    pub const BYTES_HIGH: u32 = 51;
    /// Notifications raised.
    pub const RAISED: u32 = 52;
    /// Notifications held back by the filter.
    pub const SUPPRESSED: u32 = 53;
    /// Messages held back by the regulator.
    pub const THROTTLED: u32 = 54;
    /// Allocations refused because no block was free.
    pub const EXHAUSTED: u32 = 55;
    /// Blocks that a dead receiver held in its hands when it died.
    pub const ABANDONED: u32 = 56;
    /// Messages dropped because the receiver restarted and the plan says so.
    pub const DROPPED: u32 = 57;
    /// Returns refused because the receiver claimed what cannot be.
    pub const REFUSED: u32 = 58;
    /// Most messages that were queued, of the times when it was looked at: every 16th sample, and when no block is free.
    pub const HIGH_WATER: u32 = 59;
    /// Blocks in the sender's hands.
    pub const HELD: u32 = 60;
    /// Position of the next message.
    pub const TAIL: u32 = 61;
    /// Position in the session's returns up to which blocks were taken back, plus 1; 0: not said.
    pub const REAPED: u32 = 62;
    /// Length of the part before the slots, in words.
    pub const WORDS: u32 = 64;
}

/// Words of a slot, as 32-bit indices from its start. Writer: the sending participant.
///
/// Slot `i` announces the message whose position in the lane is `i` modulo the number of blocks, and is at the same
/// time the home of block `i`: where blocks are used in order, announcement and payload share a cache line.
pub mod slot {
    /// Lap of the announcement times two, plus 1 once a notification covers it. Written last.
    pub const TURN: u32 = 0;
    /// Payload bytes of the message.
    pub const LEN: u32 = 1;
    /// Block index in the low half, low half of the sender's epoch in the high half.
    pub const BLOCK: u32 = 2;
    /// Low half of the send time in nanoseconds, never 0; 0 if the message was not sampled.
    pub const STAMP: u32 = 3;
    /// Where the home block's payload begins.
    pub const PAYLOAD: u32 = 4;
}

/// Words of a receive end, as 32-bit indices from its start. Writer: the receiving participant.
pub mod rx {
    /// Non-zero while a thread of the receiver sleeps ([`super::waiting`]).
    pub const WAITING: u32 = 0;
    /// 1 while the end is in use.
    pub const OPEN: u32 = 1;
    /// Participant number of the sender this session is with.
    pub const LINK_PARTICIPANT: u32 = 2;
    /// Epoch of that sender; 0 while there is none. Written last.
    pub const LINK_EPOCH: u32 = 3;
    /// Cumulative count of notifications to the sender.
    pub const EVENTS: u32 = 16;
    /// What the sender sleeps on; changes with every ring.
    pub const BELL: u32 = 17;
    /// Position after the last dequeued message.
    pub const TAKEN: u32 = 32;
    /// Messages dequeued by this participant, low half.
    pub const RECEIVED: u32 = 33;
    /// High half of it.
    pub const RECEIVED_HIGH: u32 = 34;
    /// Payload bytes dequeued, low half.
    pub const BYTES: u32 = 35;
    /// High half of it.
    pub const BYTES_HIGH: u32 = 36;
    /// Announcements refused because the sender claimed what cannot be.
    pub const REFUSED: u32 = 37;
    /// Sampled messages that took longer than the plan's budget.
    pub const OVER_BUDGET: u32 = 38;
    /// Waits that went to sleep.
    pub const SLEPT: u32 = 39;
    /// Blocks in the receiver's hands.
    pub const HELD: u32 = 40;
    /// The latency histogram ([`crate::histogram`]).
    pub const HISTOGRAM: u32 = 48;
    /// Length of the part before the returns, in words.
    pub const WORDS: u32 = HISTOGRAM + crate::histogram::WORDS;
}

/// Bits of the `WAITING` words.
pub mod waiting {
    /// A thread sleeps on the other side's bell.
    pub const ASLEEP: u32 = 1;
    /// A descriptor, a future or an interrupt wants to hear of it.
    pub const ARMED: u32 = 2;
}

/// Words of a participant's line in an SMEM channel's lock. Writer: that participant.
pub mod ticket {
    /// 0 not interested, 1 choosing, else the number drawn.
    pub const TICKET: u32 = 0;
    /// 1 while the holder is inside.
    pub const HOLDS: u32 = 1;
    /// Times the lock was taken.
    pub const ACQUIRED: u32 = 2;
    /// Times it was refused.
    pub const REFUSED: u32 = 3;
    /// Length in words.
    pub const WORDS: u32 = 16;
}

/// Sizes of one FIFO channel that both ends compute from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of blocks and slots.
    pub blocks: u32,
    /// Payload bytes of a block.
    pub block_bytes: u32,
    /// Bytes from one slot to the next; a multiple of [`LINE_BYTES`].
    pub stride_bytes: u32,
}

impl Shape {
    /// The shape of a channel; `None` if a slot does not fit 32 bits.
    pub const fn of(fifo: &Fifo<'_>) -> Option<Shape> {
        let Some(bytes) = (slot::PAYLOAD * 4).checked_add(fifo.block_bytes) else { return None };
        let Some(stride_bytes) = round_up(bytes, LINE_BYTES) else { return None };
        Some(Shape { blocks: fifo.blocks, block_bytes: fifo.block_bytes, stride_bytes })
    }

    /// Bytes of the transmit end.
    pub const fn tx_bytes(&self) -> Option<u32> {
        match self.blocks.checked_mul(self.stride_bytes) {
            Some(slots) => slots.checked_add(tx::WORDS * 4),
            None => None,
        }
    }

    /// Bytes of the receive end.
    pub const fn rx_bytes(&self) -> Option<u32> {
        match self.blocks.checked_mul(4) {
            Some(returns) => match returns.checked_add(rx::WORDS * 4) {
                Some(bytes) => round_up(bytes, LINE_BYTES),
                None => None,
            },
            None => None,
        }
    }

    /// Word index of a slot from the start of the transmit end. `index` must be below `blocks`.
    pub const fn slot(&self, index: u32) -> u32 {
        tx::WORDS + index * (self.stride_bytes / 4)
    }

    /// Payload bytes that share the cache line of the announcement.
    pub const fn first_line_bytes(&self) -> u32 {
        LINE_BYTES - slot::PAYLOAD * 4
    }

    /// Byte offset of a block's payload from the start of the transmit end. `block` must be below `blocks`.
    pub const fn payload(&self, block: u32) -> u32 {
        (self.slot(block) + slot::PAYLOAD) * 4
    }
}

/// One piece of a section, in the order of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The section's header.
    Header,
    /// Transmit end of the FIFO channel with this number.
    Tx(u16),
    /// Receive end of the FIFO channel with this number.
    Rx(u16),
    /// Ticket line of the SMEM channel with this number.
    Ticket(u16),
}

/// Calls `visit(part, offset_bytes, bytes)` for each part of a domain's section, and gives the section's length in
/// bytes, a multiple of [`PAGE_BYTES`]; `None` if it passes 4 GiB.
pub fn walk(plan: &Plan<'_>, domain: u16, mut visit: impl FnMut(Part, u32, u32)) -> Option<u32> {
    let mut offset = header::WORDS * 4;
    visit(Part::Header, 0, offset);
    for (number, fifo) in plan.fifos.iter().enumerate() {
        let shape = Shape::of(fifo)?;
        let ends = [
            (fifo.from, Part::Tx(number as u16), shape.tx_bytes()?),
            (fifo.to, Part::Rx(number as u16), shape.rx_bytes()?),
        ];
        for (owner, part, bytes) in ends {
            if owner == domain {
                visit(part, offset, bytes);
                offset = offset.checked_add(bytes)?;
            }
        }
    }
    for (number, smem) in plan.smems.iter().enumerate() {
        if smem.domains.contains(&domain) && matches!(smem.lock, LockKind::Bakery) {
            visit(Part::Ticket(number as u16), offset, ticket::WORDS * 4);
            offset = offset.checked_add(ticket::WORDS * 4)?;
        }
    }
    round_up(offset, PAGE_BYTES)
}

/// Length of a domain's sections in bytes; `None` if it passes 4 GiB.
pub fn section_bytes(plan: &Plan<'_>, domain: u16) -> Option<u32> {
    walk(plan, domain, |_, _, _| ())
}

/// Byte offset of a part in a domain's sections; `None` if the domain has no such part.
pub fn offset(plan: &Plan<'_>, domain: u16, wanted: Part) -> Option<u32> {
    let mut found = None;
    walk(plan, domain, |part, offset, _| {
        if part == wanted {
            found = Some(offset);
        }
    })?;
    found
}

/// First word and length in words of a part, for views of the section; `None` as for [`offset`].
pub fn place(plan: &Plan<'_>, domain: u16, wanted: Part) -> Option<(u32, u32)> {
    let mut found = None;
    walk(plan, domain, |part, offset, bytes| {
        if part == wanted {
            found = Some((offset / 4, bytes / 4));
        }
    })?;
    found
}

/// Bytes that an SMEM channel's segment takes: its payload in whole pages.
pub const fn segment_bytes(payload_bytes: u32) -> Option<u32> {
    round_up(payload_bytes, PAGE_BYTES)
}

/// `value` rounded up to a multiple of `unit`, a power of two.
const fn round_up(value: u32, unit: u32) -> Option<u32> {
    match value.checked_add(unit - 1) {
        Some(sum) => Some(sum & !(unit - 1)),
        None => None,
    }
}

// Relations that the protocols rest on. Lines with different writers, or with one writer but different rhythms, must
// not share a cache line; every end must begin on a line.
const _: () = {
    let line = LINE_BYTES / 4;
    assert!(
        header::WORDS.is_multiple_of(line)
            && tx::WORDS.is_multiple_of(line)
            && rx::WORDS.is_multiple_of(line)
            && ticket::WORDS == line
    );
    assert!(header::HEARTBEAT_MS / line != header::EPOCH / line);
    assert!(tx::LINK_EPOCH / line != tx::WAITING / line && tx::WAITING / line != tx::BELL / line);
    assert!(tx::EVENTS / line == tx::BELL / line && tx::BELL / line != tx::SENT / line);
    assert!(tx::SENT / line == tx::HELD / line && tx::SENT / line == tx::REAPED / line);
    assert!(rx::WAITING / line != rx::BELL / line && rx::BELL / line != rx::TAKEN / line);
    assert!(rx::TAKEN / line == rx::HELD / line && rx::HISTOGRAM.is_multiple_of(line));
    assert!(slot::PAYLOAD * 4 == 16, "malloc-grade alignment of payloads");
    assert!(crate::plan::BLOCKS_MAX <= 1 << 14, "laps of 16 bits fit positions of 30");
};
