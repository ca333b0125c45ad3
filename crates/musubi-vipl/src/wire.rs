//! What VIs and connection managers say to each other, as frames of the transport (docs/wire.md).
//!
//! What you may rely on: [`NicFrame::read`] takes any header and payload and gives a frame or nothing; what
//! [`NicFrame::write`] writes, it reads. Nothing here knows a state.
//!
//! How it works: a header has four words for a protocol. Whom a frame is for stands in `to`: the *name* of a connected VI,
//! which is another one for each connection it has, so what comes late reaches nobody. A write that is one frame and carries no
//! immediate data has its target in the header's other words; any other begins with a frame of its own that says where it goes.

use alloc::vec::Vec;

use musubi_transport::Priority;
use musubi_transport::frame::{Header, Kinds, Shape};
use musubi_transport::limits::PAYLOAD_BYTES_MAX;

use crate::address::{Address, DISCRIMINATOR_BYTES_MAX, NicNumber};
use crate::engine::{LeaseWords, MemoryHandle, Reliability, RemotePlace, Status, TagHandle, ViAttributes, ViFrame};

/// The name of a VI's end of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViName(pub u32);

/// Numbers of the kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum FrameKind {
    Send = 1,
    Write = 2,
    WriteBegin = 3,
    WritePart = 4,
    Read = 5,
    Data = 6,
    ReadRefused = 7,
    Placed = 8,
    Broken = 9,
    Request = 10,
    PeerRequest = 11,
    Accept = 12,
    Refuse = 13,
    Cancel = 14,
    Confirm = 15,
    Disconnect = 16,
    Credit = 17,
    SendOffer = 18,
    WriteOffer = 19,
    Reach = 20,
    Reached = 21,
    Inspect = 22,
    Picture = 23,
    Grant = 24,
}

impl FrameKind {
    const ALL: [FrameKind; 24] = [
        FrameKind::Send,
        FrameKind::Write,
        FrameKind::WriteBegin,
        FrameKind::WritePart,
        FrameKind::Read,
        FrameKind::Data,
        FrameKind::ReadRefused,
        FrameKind::Placed,
        FrameKind::Broken,
        FrameKind::Request,
        FrameKind::PeerRequest,
        FrameKind::Accept,
        FrameKind::Refuse,
        FrameKind::Cancel,
        FrameKind::Confirm,
        FrameKind::Disconnect,
        FrameKind::Credit,
        FrameKind::SendOffer,
        FrameKind::WriteOffer,
        FrameKind::Reach,
        FrameKind::Reached,
        FrameKind::Inspect,
        FrameKind::Picture,
        FrameKind::Grant,
    ];

    fn of(number: u8) -> Option<FrameKind> {
        FrameKind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    const fn payload_max(self) -> u32 {
        match self {
            FrameKind::Send | FrameKind::Write | FrameKind::WritePart | FrameKind::Data => PAYLOAD_BYTES_MAX as u32,
            FrameKind::WriteBegin => WRITE_BYTES as u32,
            FrameKind::Read => 4,
            FrameKind::Request | FrameKind::PeerRequest => REQUEST_BYTES_MAX as u32,
            FrameKind::Accept => (ATTRIBUTES_BYTES + CONNECTION_DATA_BYTES_MAX) as u32,
            FrameKind::Refuse => CONNECTION_DATA_BYTES_MAX as u32,
            FrameKind::SendOffer | FrameKind::WriteOffer => OFFER_BYTES as u32,
            FrameKind::Reach => LEASE_BYTES as u32,
            FrameKind::ReadRefused
            | FrameKind::Placed
            | FrameKind::Broken
            | FrameKind::Cancel
            | FrameKind::Confirm
            | FrameKind::Disconnect
            | FrameKind::Credit
            | FrameKind::Reached
            | FrameKind::Inspect
            | FrameKind::Grant => 0,
            FrameKind::Picture => PICTURE_BYTES_MAX as u32,
        }
    }
}

/// The frames that links check and carry.
pub const KINDS: Kinds = Kinds { least_urgent: Priority::LEAST_URGENT, shapes: &SHAPES };

const SHAPES: [Option<Shape>; FrameKind::ALL.len() + 1] = {
    let mut shapes = [None; FrameKind::ALL.len() + 1];
    let mut place = 0;
    while place < FrameKind::ALL.len() {
        let kind = FrameKind::ALL[place];
        shapes[kind as usize] = Some(Shape { payload_max: kind.payload_max(), awaited: true });
        place += 1;
    }
    shapes
};

/// Most bytes of a picture.
pub const PICTURE_BYTES_MAX: usize = 4096;
const IMMEDIATE: u8 = 1;
const WRITE_BYTES: usize = 24;
const ATTRIBUTES_BYTES: usize = 8;
const ADDRESS_BYTES_MAX: usize = 4 + DISCRIMINATOR_BYTES_MAX;
const LEASE_BYTES: usize = 16;
const OFFER_BYTES: usize = LEASE_BYTES + 12;
/// Most bytes that go with an acceptance or a rejection for the program that asked.
pub const CONNECTION_DATA_BYTES_MAX: usize = 128;
/// Attributes, and two addresses.
pub const REQUEST_BYTES_MAX: usize = ATTRIBUTES_BYTES + 2 * ADDRESS_BYTES_MAX;

/// A write of several frames, or with immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteHead {
    /// Where it begins.
    pub to: RemotePlace,
    /// Bytes of it.
    pub bytes: u32,
    /// What goes with it.
    pub immediate: Option<u32>,
}

/// A part of a message that lies in the sender's memory, for the receiver to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Says whether the sender's connection stands.
    pub lease: LeaseWords,
    /// Where it lies there.
    pub address: u64,
    /// Bytes of it.
    pub bytes: u32,
}

/// Who asks whom for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The VI that asks.
    pub attributes: ViAttributes,
    /// Where it is.
    pub local: Address,
    /// Whom it asks.
    pub remote: Address,
}

/// Why a connection is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Nobody listens there.
    NoMatch = 1,
    /// It was rejected.
    Rejected = 2,
    /// Too many wait already.
    Busy = 3,
    /// Who asked does not wait any more.
    Gone = 4,
}

impl Refusal {
    const ALL: [Refusal; 4] = [Refusal::NoMatch, Refusal::Rejected, Refusal::Busy, Refusal::Gone];
}

/// One frame but for the bytes of messages, which are its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicFrame {
    /// See [`crate::engine::ViFrame::Send`].
    Send { bytes: u32, offset: u32, immediate: Option<u32> },
    /// A write that is one frame.
    Write(RemotePlace),
    /// A write begins; [`NicFrame::WritePart`] follow.
    WriteBegin(WriteHead),
    /// A part of the write that has begun.
    WritePart { offset: u32 },
    /// See [`crate::engine::ViFrame::Read`].
    Read { from: RemotePlace, bytes: u32 },
    /// See [`crate::engine::ViFrame::Data`].
    Data { offset: u32 },
    /// See [`crate::engine::ViFrame::ReadRefused`].
    ReadRefused { messages: u32 },
    /// See [`crate::engine::ViFrame::Placed`].
    Placed { messages: u32 },
    /// See [`crate::engine::ViFrame::Broken`].
    Broken { messages: u32, status: Status },
    /// A tool asks for the picture of a NIC.
    Inspect,
    /// It: [`crate::nic::NicPicture`].
    Picture(Vec<u8>),
    /// See [`crate::engine::ViFrame::Credit`].
    Credit { receives: u32 },
    /// Asks who listens for a connection.
    Request(Request),
    /// Asks who asks for the same in turn.
    PeerRequest(Request),
    /// The connection stands; with the other VI's attributes.
    Accept(ViAttributes),
    /// It does not.
    Refuse(Refusal),
    /// Who asked does not ask any more.
    Cancel,
    /// Who asked has taken the answer.
    Confirm,
    /// The connection has ended.
    Disconnect,
    /// The same as [`NicFrame::Send`] of bytes that are to be fetched: the payload says where they lie.
    SendOffer { bytes: u32, offset: u32, immediate: Option<u32> },
    /// The same as [`NicFrame::WritePart`] of such.
    WriteOffer { offset: u32 },
    /// Whoever can read this there may fetch from this node's memory.
    Reach(LeaseWords),
    /// It could be read: offers are welcome.
    Reached,
    /// So many messages and bytes of a class have been granted since the link began.
    Grant { class: u8, messages: u32, bytes: u32 },
}

impl NicFrame {
    /// Whether it is the connection manager's, or between tools and NICs: not of a connection.
    pub fn is_managers(kind: u8) -> bool {
        let (first, last) = (FrameKind::Request as u8, FrameKind::Disconnect as u8);
        (first..=last).contains(&kind) || kind >= FrameKind::Reach as u8
    }

    /// What a frame of a VI takes of the credit of its class: whether a message begins, and bytes; `None` of one that takes none.
    pub fn charge(header: &Header) -> Option<(bool, u32)> {
        Some(match FrameKind::of(header.kind)? {
            FrameKind::Send | FrameKind::WritePart => (header.value == 0, header.length),
            FrameKind::Write => (true, header.length),
            FrameKind::Read => (true, 0),
            FrameKind::SendOffer | FrameKind::WriteOffer => (true, 0),
            _ => return None,
        })
    }

    /// Whether a frame offers what is to be fetched.
    pub fn is_offer(kind: u8) -> bool {
        kind == FrameKind::SendOffer as u8 || kind == FrameKind::WriteOffer as u8
    }

    /// The kind of [`NicFrame::Picture`], whose payload is longer than all others of the connection manager.
    pub const PICTURE: u8 = FrameKind::Picture as u8;

    /// What goes with an acceptance or a rejection, of its payload.
    pub fn connection_data<'p>(&self, payload: &'p [u8]) -> &'p [u8] {
        match self {
            NicFrame::Accept(_) => payload.get(ATTRIBUTES_BYTES..).unwrap_or_default(),
            NicFrame::Refuse(_) => payload,
            _ => &[],
        }
    }

    /// The last word of a VI, as a frame.
    pub fn of_farewell(farewell: ViFrame) -> Option<NicFrame> {
        match farewell {
            ViFrame::ReadRefused { messages } => Some(NicFrame::ReadRefused { messages }),
            ViFrame::Broken { messages, status } => Some(NicFrame::Broken { messages, status }),
            _ => None,
        }
    }

    /// The header of a frame from one VI to another, and its payload, unless that is the bytes of a message: then `length`
    /// says how many.
    pub fn write(&self, from: ViName, to: ViName, class: Priority, length: u32) -> (Header, Vec<u8>) {
        let mut header = Header { class, length, from: from.0, to: to.0, ..Header::new(self.kind() as u8) };
        let payload = match self {
            NicFrame::Request(request) | NicFrame::PeerRequest(request) => request.to_bytes(),
            NicFrame::Accept(attributes) => attributes_to_bytes(attributes).to_vec(),
            NicFrame::Reach(lease) => lease_to_bytes(*lease).to_vec(),
            NicFrame::Picture(bytes) => bytes.clone(),
            NicFrame::WriteBegin(head) => {
                if head.immediate.is_some() {
                    header.flags = IMMEDIATE;
                }
                head.to_bytes().to_vec()
            }
            NicFrame::Read { from, bytes } => {
                place_into(&mut header, *from);
                bytes.to_le_bytes().to_vec()
            }
            _ => {
                self.fill(&mut header);
                return (header, Vec::new());
            }
        };
        header.length = payload.len() as u32;
        (header, payload)
    }

    /// The header of a frame whose payload is the bytes of a message, or that has none: without an allocation.
    #[inline]
    pub fn header(&self, to: ViName, class: Priority, length: u32) -> Header {
        let mut header = Header { class, length, to: to.0, ..Header::new(self.kind() as u8) };
        self.fill(&mut header);
        header
    }

    /// Words of the header besides whom it is from and for.
    #[inline]
    fn fill(&self, header: &mut Header) {
        match *self {
            NicFrame::Send { bytes, offset, immediate } | NicFrame::SendOffer { bytes, offset, immediate } => {
                (header.tag, header.value) = (bytes, offset);
                if let Some(immediate) = immediate {
                    (header.flags, header.from) = (IMMEDIATE, immediate);
                }
            }
            NicFrame::Write(to) => place_into(header, to),
            NicFrame::WritePart { offset } | NicFrame::WriteOffer { offset } | NicFrame::Data { offset } => {
                header.value = offset;
            }
            NicFrame::ReadRefused { messages } | NicFrame::Placed { messages } => header.value = messages,
            NicFrame::Credit { receives } => header.value = receives,
            NicFrame::Grant { class, messages, bytes } => {
                (header.from, header.tag, header.value) = (class.into(), messages, bytes);
            }
            NicFrame::Broken { messages, status } => (header.tag, header.value) = (messages, status.0),
            NicFrame::Refuse(refusal) => header.status = refusal as u8,
            _ => {}
        }
    }

    /// The frame of a header whose payload is the bytes of a message, or that has none.
    #[inline]
    pub fn of_data(header: &Header) -> Option<NicFrame> {
        let has_immediate = header.flags & IMMEDIATE != 0;
        Some(match FrameKind::of(header.kind)? {
            FrameKind::Send => {
                let immediate = has_immediate.then_some(header.from);
                NicFrame::Send { bytes: header.tag, offset: header.value, immediate }
            }
            FrameKind::Write => NicFrame::Write(place_of(header)),
            FrameKind::SendOffer => {
                let immediate = has_immediate.then_some(header.from);
                NicFrame::SendOffer { bytes: header.tag, offset: header.value, immediate }
            }
            FrameKind::WriteOffer => NicFrame::WriteOffer { offset: header.value },
            FrameKind::WritePart => NicFrame::WritePart { offset: header.value },
            FrameKind::Data => NicFrame::Data { offset: header.value },
            FrameKind::ReadRefused => NicFrame::ReadRefused { messages: header.value },
            FrameKind::Placed => NicFrame::Placed { messages: header.value },
            FrameKind::Credit => NicFrame::Credit { receives: header.value },
            FrameKind::Broken => NicFrame::Broken { messages: header.tag, status: Status(header.value) },
            _ => return None,
        })
    }

    /// The frame of a header and a payload that is not the bytes of a message.
    pub fn of_manager(header: &Header, payload: &[u8]) -> Option<NicFrame> {
        Some(match FrameKind::of(header.kind)? {
            FrameKind::WriteBegin => NicFrame::WriteBegin(WriteHead::of_bytes(payload, header.flags & IMMEDIATE != 0)?),
            FrameKind::Read => {
                NicFrame::Read { from: place_of(header), bytes: u32::from_le_bytes(*exactly::<4>(payload)?) }
            }
            FrameKind::Request => NicFrame::Request(Request::of_bytes(payload)?),
            FrameKind::PeerRequest => NicFrame::PeerRequest(Request::of_bytes(payload)?),
            FrameKind::Accept => NicFrame::Accept(attributes_of_bytes(payload.first_chunk()?)?),
            FrameKind::Refuse => NicFrame::Refuse(Refusal::ALL.into_iter().find(|one| *one as u8 == header.status)?),
            FrameKind::Cancel => NicFrame::Cancel,
            FrameKind::Confirm => NicFrame::Confirm,
            FrameKind::Disconnect => NicFrame::Disconnect,
            FrameKind::Reach => NicFrame::Reach(lease_of_bytes(exactly(payload)?)),
            FrameKind::Reached => NicFrame::Reached,
            FrameKind::Grant => NicFrame::Grant { class: header.from as u8, messages: header.tag, bytes: header.value },
            FrameKind::Inspect => NicFrame::Inspect,
            FrameKind::Picture => NicFrame::Picture(payload.to_vec()),
            _ => return None,
        })
    }

    fn kind(&self) -> FrameKind {
        match self {
            NicFrame::Send { .. } => FrameKind::Send,
            NicFrame::Write(_) => FrameKind::Write,
            NicFrame::WriteBegin(_) => FrameKind::WriteBegin,
            NicFrame::WritePart { .. } => FrameKind::WritePart,
            NicFrame::Read { .. } => FrameKind::Read,
            NicFrame::Data { .. } => FrameKind::Data,
            NicFrame::ReadRefused { .. } => FrameKind::ReadRefused,
            NicFrame::Placed { .. } => FrameKind::Placed,
            NicFrame::Broken { .. } => FrameKind::Broken,
            NicFrame::Request(_) => FrameKind::Request,
            NicFrame::PeerRequest(_) => FrameKind::PeerRequest,
            NicFrame::Accept(_) => FrameKind::Accept,
            NicFrame::Refuse(_) => FrameKind::Refuse,
            NicFrame::Cancel => FrameKind::Cancel,
            NicFrame::Confirm => FrameKind::Confirm,
            NicFrame::Disconnect => FrameKind::Disconnect,
            NicFrame::Credit { .. } => FrameKind::Credit,
            NicFrame::SendOffer { .. } => FrameKind::SendOffer,
            NicFrame::WriteOffer { .. } => FrameKind::WriteOffer,
            NicFrame::Reach(_) => FrameKind::Reach,
            NicFrame::Reached => FrameKind::Reached,
            NicFrame::Grant { .. } => FrameKind::Grant,
            NicFrame::Inspect => FrameKind::Inspect,
            NicFrame::Picture(_) => FrameKind::Picture,
        }
    }
}

impl WriteHead {
    fn to_bytes(self) -> [u8; WRITE_BYTES] {
        let mut bytes = [0; WRITE_BYTES];
        bytes[..8].copy_from_slice(&self.to.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.to.handle.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.immediate.unwrap_or(0).to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8], has_immediate: bool) -> Option<WriteHead> {
        let bytes: &[u8; WRITE_BYTES] = exactly(bytes)?;
        let word =
            |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word));
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        let to = RemotePlace { address, handle: MemoryHandle(word(8)) };
        Some(WriteHead { to, bytes: word(12), immediate: has_immediate.then(|| word(16)) })
    }
}

impl Offer {
    /// As it goes behind its frame.
    pub fn to_bytes(self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        bytes[..LEASE_BYTES].copy_from_slice(&lease_to_bytes(self.lease));
        bytes[16..24].copy_from_slice(&self.address.to_le_bytes());
        bytes[24..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// What came behind its frame.
    pub fn of_bytes(bytes: &[u8]) -> Option<Offer> {
        let (lease, rest) = bytes.split_first_chunk::<LEASE_BYTES>()?;
        let (address, rest) = rest.split_first_chunk()?;
        let (address, bytes) = (u64::from_le_bytes(*address), u32::from_le_bytes(*exactly(rest)?));
        Some(Offer { lease: lease_of_bytes(lease), address, bytes })
    }
}

impl Request {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = attributes_to_bytes(&self.attributes).to_vec();
        for address in [&self.local, &self.remote] {
            bytes.extend_from_slice(&address.nic.0.to_le_bytes());
            bytes.extend_from_slice(&(address.discriminator.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&address.discriminator);
        }
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Request> {
        let (attributes, rest) = bytes.split_first_chunk::<ATTRIBUTES_BYTES>()?;
        let (local, rest) = address_of_bytes(rest)?;
        let (remote, rest) = address_of_bytes(rest)?;
        rest.is_empty().then_some(Request { attributes: attributes_of_bytes(attributes)?, local, remote })
    }
}

fn address_of_bytes(bytes: &[u8]) -> Option<(Address, &[u8])> {
    let (nic, rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (discriminator, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((Address::new(NicNumber(u16::from_le_bytes(*nic)), discriminator)?, rest))
}

fn attributes_to_bytes(attributes: &ViAttributes) -> [u8; ATTRIBUTES_BYTES] {
    let enables =
        u8::from(attributes.remote_write) | u8::from(attributes.remote_read) << 1 | u8::from(attributes.credit) << 2;
    let [a, b, c, d] = attributes.transfer_bytes_max.to_le_bytes();
    [attributes.reliability.bit() as u8, enables, attributes.class, 0, a, b, c, d]
}

/// Attributes of the other side; its tag is its own business.
fn attributes_of_bytes(bytes: &[u8; ATTRIBUTES_BYTES]) -> Option<ViAttributes> {
    let [level, enables, class, zero, a, b, c, d] = *bytes;
    if enables > 7 || zero != 0 {
        return None;
    }
    Some(ViAttributes {
        reliability: Reliability::from_bits(u16::from(level))?,
        transfer_bytes_max: u32::from_le_bytes([a, b, c, d]),
        class,
        tag: TagHandle(0),
        remote_write: enables & 1 != 0,
        remote_read: enables & 2 != 0,
        credit: enables & 4 != 0,
    })
}

fn lease_to_bytes(lease: LeaseWords) -> [u8; LEASE_BYTES] {
    let mut bytes = [0; LEASE_BYTES];
    bytes[..8].copy_from_slice(&lease.address.to_le_bytes());
    bytes[8..].copy_from_slice(&lease.value);
    bytes
}

fn lease_of_bytes(bytes: &[u8; LEASE_BYTES]) -> LeaseWords {
    let [a, b, c, d, e, f, g, h, value @ ..] = *bytes;
    LeaseWords { address: u64::from_le_bytes([a, b, c, d, e, f, g, h]), value }
}

fn place_into(header: &mut Header, place: RemotePlace) {
    header.from = place.handle.0;
    header.tag = place.address as u32;
    header.value = (place.address >> 32) as u32;
}

fn place_of(header: &Header) -> RemotePlace {
    let address = u64::from(header.tag) | u64::from(header.value) << 32;
    RemotePlace { address, handle: MemoryHandle(header.from) }
}

fn exactly<const BYTES: usize>(bytes: &[u8]) -> Option<&[u8; BYTES]> {
    bytes.try_into().ok()
}
