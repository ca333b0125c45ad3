//! The messages of the rendezvous: 64 bytes, little-endian, one a packet.
//!
//! What you may rely on: [`parse`] is a pure function that never panics; what it accepts, [`Message::bytes`] gives
//! back bit by bit. Numbers in a message are claims; the registry checks them against the plan.
//!
//! How it works: all kinds share one layout (offsets below), fields that a kind does not use are zero.
//!
//! ```text
//!  0 u32 magic "MSBm"   4 u16 version   6 u16 kind      8 u64 plan hash
//! 16 u16 participant   18 u16 domain   20 u32 epoch    24 u32 section bytes
//! 28 u16 channel       30 u8 direction 31 u8 open      32 u32 serial or generation   36 u32 reason
//! ```

use crate::direction::Direction;
use crate::os::packet_socket;

/// Length of every message in bytes.
pub const BYTES: usize = 64;
/// Most descriptors that one packet may carry; more are closed by the kernel.
pub const FDS_MAX: usize = packet_socket::FDS_MAX;

const MAGIC: u32 = u32::from_le_bytes(*b"MSBm");
const VERSION: u16 = 1;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Hash of its plan.
    pub hash: u64,
    /// Global number of the participant.
    pub participant: u16,
    /// Its domain.
    pub domain: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Length of its section in bytes.
    pub section_bytes: u32,
}

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The plans differ.
    Plan,
    /// The user is not allowed.
    User,
    /// The section is not sealed, of the wrong length, or its header is wrong.
    Section,
    /// The sender does not hold the slot that it claims, or it shares no channel with us.
    Slot,
    /// Another version of these messages.
    Version,
    /// No room for more; try again.
    Busy,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// First word of who connects; carries its section.
    Hello(Party),
    /// First word of an observer.
    Observe {
        /// Hash of its plan.
        hash: u64,
    },
    /// Answer to either; carries the section.
    Welcome(Party),
    /// Answer to either; the connection ends.
    Refuse {
        /// Why.
        reason: Refusal,
        /// Hash of the refuser's plan.
        hash: u64,
    },
    /// All that there was to tell at the handshake has been told.
    Ready,
    /// A channel end of the speaker was opened or closed.
    End {
        /// Channel.
        fifo: u16,
        /// Which end of it the speaker holds.
        direction: Direction,
        /// Opened or closed.
        open: bool,
        /// Counts the openings of ends in the speaking process; a new number is a new opening.
        serial: u32,
    },
    /// Carries the socket that rings an end of the speaker.
    Doorbell {
        /// Channel.
        fifo: u16,
        /// Which end of it the speaker holds.
        direction: Direction,
        /// The opening it belongs to.
        serial: u32,
    },
    /// Carries the memory of an SMEM channel.
    Segment {
        /// Channel.
        smem: u16,
        /// Epoch of its creator.
        generation: u32,
    },
}

/// The bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// Not ours at all.
    Foreign,
    /// Ours, of another version.
    Version,
}

mod kind {
    pub const HELLO: u16 = 1;
    pub const OBSERVE: u16 = 2;
    pub const WELCOME: u16 = 3;
    pub const REFUSE: u16 = 4;
    pub const READY: u16 = 5;
    pub const END: u16 = 6;
    pub const DOORBELL: u16 = 7;
    pub const SEGMENT: u16 = 8;
}

/// Every field of the layout; the two directions meet here.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Fields {
    kind: u16,
    hash: u64,
    participant: u16,
    domain: u16,
    epoch: u32,
    section_bytes: u32,
    channel: u16,
    direction: u8,
    open: u8,
    serial: u32,
    reason: u32,
}

/// Reads a message.
///
/// # Errors
/// [`Garbage`] if the bytes are none.
pub fn parse(bytes: &[u8]) -> Result<Message, Garbage> {
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| Garbage::Foreign)?;
    let fields = Fields::read(bytes)?;
    let message = fields.message().ok_or(Garbage::Foreign)?;
    if message.bytes() == *bytes { Ok(message) } else { Err(Garbage::Foreign) }
}

impl Message {
    /// The message as it travels.
    pub fn bytes(&self) -> [u8; BYTES] {
        Fields::of(self).write()
    }

    /// How many descriptors travel with it.
    pub fn fds(&self) -> usize {
        match self {
            Message::Hello(_) | Message::Welcome(_) | Message::Doorbell { .. } | Message::Segment { .. } => 1,
            Message::Observe { .. } | Message::Refuse { .. } | Message::Ready | Message::End { .. } => 0,
        }
    }
}

impl Fields {
    fn read(bytes: &[u8; BYTES]) -> Result<Fields, Garbage> {
        if u32_at(bytes, 0) != MAGIC {
            return Err(Garbage::Foreign);
        }
        if u16_at(bytes, 4) != VERSION {
            return Err(Garbage::Version);
        }
        Ok(Fields {
            kind: u16_at(bytes, 6),
            hash: u64::from(u32_at(bytes, 8)) | u64::from(u32_at(bytes, 12)) << 32,
            participant: u16_at(bytes, 16),
            domain: u16_at(bytes, 18),
            epoch: u32_at(bytes, 20),
            section_bytes: u32_at(bytes, 24),
            channel: u16_at(bytes, 28),
            direction: bytes[30],
            open: bytes[31],
            serial: u32_at(bytes, 32),
            reason: u32_at(bytes, 36),
        })
    }

    fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.hash.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.participant.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.domain.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.section_bytes.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.channel.to_le_bytes());
        bytes[30] = self.direction;
        bytes[31] = self.open;
        bytes[32..36].copy_from_slice(&self.serial.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.reason.to_le_bytes());
        bytes
    }

    fn message(&self) -> Option<Message> {
        Some(match self.kind {
            kind::HELLO => Message::Hello(self.party()),
            kind::OBSERVE => Message::Observe { hash: self.hash },
            kind::WELCOME => Message::Welcome(self.party()),
            kind::REFUSE => Message::Refuse { reason: Refusal::of(self.reason)?, hash: self.hash },
            kind::READY => Message::Ready,
            kind::END => Message::End {
                fifo: self.channel,
                direction: direction_of(self.direction)?,
                open: self.open == 1,
                serial: self.serial,
            },
            kind::DOORBELL => {
                Message::Doorbell { fifo: self.channel, direction: direction_of(self.direction)?, serial: self.serial }
            }
            kind::SEGMENT => Message::Segment { smem: self.channel, generation: self.serial },
            _ => return None,
        })
    }

    fn party(&self) -> Party {
        Party {
            hash: self.hash,
            participant: self.participant,
            domain: self.domain,
            epoch: self.epoch,
            section_bytes: self.section_bytes,
        }
    }

    fn of(message: &Message) -> Fields {
        let none = Fields::default();
        match *message {
            Message::Hello(party) => Fields::of_party(kind::HELLO, party),
            Message::Observe { hash } => Fields { kind: kind::OBSERVE, hash, ..none },
            Message::Welcome(party) => Fields::of_party(kind::WELCOME, party),
            Message::Refuse { reason, hash } => Fields { kind: kind::REFUSE, hash, reason: reason.number(), ..none },
            Message::Ready => Fields { kind: kind::READY, ..none },
            Message::End { fifo, direction, open, serial } => {
                let direction = direction_number(direction);
                Fields { kind: kind::END, channel: fifo, direction, open: u8::from(open), serial, ..none }
            }
            Message::Doorbell { fifo, direction, serial } => {
                let direction = direction_number(direction);
                Fields { kind: kind::DOORBELL, channel: fifo, direction, serial, ..none }
            }
            Message::Segment { smem, generation } => {
                Fields { kind: kind::SEGMENT, channel: smem, serial: generation, ..none }
            }
        }
    }

    fn of_party(kind: u16, party: Party) -> Fields {
        let Party { hash, participant, domain, epoch, section_bytes } = party;
        Fields { kind, hash, participant, domain, epoch, section_bytes, ..Fields::default() }
    }
}

impl Refusal {
    const ALL: [Refusal; 6] =
        [Refusal::Plan, Refusal::User, Refusal::Section, Refusal::Slot, Refusal::Version, Refusal::Busy];

    fn number(self) -> u32 {
        match self {
            Refusal::Plan => 1,
            Refusal::User => 2,
            Refusal::Section => 3,
            Refusal::Slot => 4,
            Refusal::Version => 5,
            Refusal::Busy => 6,
        }
    }

    fn of(number: u32) -> Option<Refusal> {
        Refusal::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Plan => "the plans differ",
            Refusal::User => "the user is not allowed",
            Refusal::Section => "the section is not sealed or does not fit the plan",
            Refusal::Slot => "the slot is not held by this process, or no channel is shared",
            Refusal::Version => "the versions of Musubi differ",
            Refusal::Busy => "too many at once",
        }
    }
}

fn direction_number(direction: Direction) -> u8 {
    match direction {
        Direction::Send => 1,
        Direction::Receive => 2,
    }
}

fn direction_of(number: u8) -> Option<Direction> {
    match number {
        1 => Some(Direction::Send),
        2 => Some(Direction::Receive),
        _ => None,
    }
}

fn u16_at(bytes: &[u8; BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTY: Party =
        Party { hash: 0x0123_4567_89ab_cdef, participant: 3, domain: 1, epoch: 77, section_bytes: 8192 };

    #[test]
    fn each_message_comes_back() {
        let end = |direction, open| Message::End { fifo: 9, direction, open, serial: 4 };
        let mut all = vec![
            Message::Hello(PARTY),
            Message::Observe { hash: PARTY.hash },
            Message::Welcome(PARTY),
            Message::Ready,
            end(Direction::Send, true),
            end(Direction::Receive, false),
            Message::Doorbell { fifo: 2, direction: Direction::Receive, serial: 8 },
            Message::Segment { smem: 5, generation: 99 },
        ];
        all.extend(Refusal::ALL.map(|reason| Message::Refuse { reason, hash: 1 }));
        for message in all {
            assert_eq!(parse(&message.bytes()), Ok(message));
        }
    }

    #[test]
    fn a_changed_byte_is_never_taken_for_the_same_message() {
        let good = Message::End { fifo: 9, direction: Direction::Send, open: true, serial: 4 }.bytes();
        for at in 0..BYTES {
            for value in 0..=255u8 {
                let mut bytes = good;
                bytes[at] = value;
                if let Ok(message) = parse(&bytes) {
                    assert_eq!(message.bytes(), bytes, "byte {at} = {value}");
                }
            }
        }
    }

    #[test]
    fn other_lengths_and_versions_are_named() {
        assert_eq!(parse(&[]), Err(Garbage::Foreign));
        assert_eq!(parse(&[0; 65]), Err(Garbage::Foreign));
        let mut bytes = Message::Ready.bytes();
        bytes[4] = 9;
        assert_eq!(parse(&bytes), Err(Garbage::Version));
    }
}
