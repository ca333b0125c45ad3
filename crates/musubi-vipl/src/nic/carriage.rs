//! How frames of VIs get to other nodes: what is known of each, what waits for room, and frames to VIs of this NIC itself.
//!
//! What you may rely on: frames of one class to one node go out in the order in which they were handed over, those of the
//! connection manager among them; nothing waits here without bound: [`OUTBOX_MAX`] frames of the manager a peer, and of messages none,
//! which stay in their work queues until there is room.
//!
//! How it works: a message's bytes are handed to the link where they lie, if they lie in one place; else they are gathered
//! first. Frames for this node itself are kept in a queue that whoever has the NIC empties before the call returns.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use musubi_transport::frame::Header;
use musubi_transport::limits::PART_BYTES_MAX;
use musubi_transport::links::{Links, Reach, Sent};
use musubi_transport::{NodeId, Priority};

use super::connection::Connection;
use super::grants::Grants;
use super::offers::OFFER_BYTES_MIN;
use super::pacing::Pace;
use super::turns::{Turn, Turns};
use crate::engine::{Handed, Lease, LeaseWords, Places, Segments, ViFrame, Wire};
use crate::memory::RegisteredMemory;
use crate::wire::{NicFrame, ViName, WriteHead};

/// Frames of the connection manager that wait for room with one peer; more are dropped and counted, and who waits for an answer runs into its time.
pub(super) const OUTBOX_MAX: usize = 256;
/// Frames to this node itself that are under way at a time.
const LOCAL_MAX: usize = 16;
/// Most bytes of a message in one frame.
pub(super) const PIECE_BYTES_MAX: u32 = PART_BYTES_MAX as u32;
/// Names no connection: the NIC's own lease.
const OF_THE_NIC: u32 = u32::MAX;
/// Classes of frames.
pub(super) const CLASSES: usize = Priority::COUNT;

/// A node, as this one knows it.
#[derive(Debug)]
pub(super) struct PeerNode {
    pub(super) node: NodeId,
    pub(super) is_linked: bool,
    /// Nobody answered when it was last tried for.
    pub(super) is_absent: bool,
    /// Whether the links were told to try for it.
    pub(super) is_wanted: bool,
    outbox: VecDeque<(Header, Vec<u8>)>,
    /// By class: frames that the links numbered and that are not acknowledged, and the connections that they are of.
    unaccepted: [VecDeque<(u64, ViName)>; CLASSES],
    /// VIs that have something to say and found no room.
    pub(super) turns: Turns,
    /// What it takes of bounded classes.
    pub(super) grants: Grants,
    /// Frames that were dropped because the outbox was full.
    pub(super) dropped: u64,
    /// What it said can be read there by who may fetch from it.
    pub(super) readable: Option<LeaseWords>,
    /// The way into its memory, if it is trusted and was seen to be there.
    pub(super) reach: Option<Arc<dyn Reach>>,
    /// Whether it fetches what it is offered.
    pub(super) fetches: bool,
}

/// Ways to other nodes.
#[derive(Debug)]
pub(super) struct Carriage {
    pub(super) me: NodeId,
    pub(super) peers: Vec<PeerNode>,
    places: BTreeMap<NodeId, u16>,
    pub(super) local: VecDeque<(Header, Vec<u8>)>,
    /// Places of VIs that wait for room in `local`.
    pub(super) local_waiting: Vec<u16>,
    scratch: Vec<u8>,
    pub(super) piece_bytes_max: u32,
    /// Shorter messages are not offered.
    pub(super) offer_bytes_min: u32,
    /// What others try to read, to see whether they can fetch from this process.
    pub(super) lease: Lease,
}

impl Carriage {
    pub(super) fn new(me: NodeId, incarnation: u32) -> Carriage {
        Carriage {
            me,
            peers: Vec::new(),
            places: BTreeMap::new(),
            local: VecDeque::new(),
            local_waiting: Vec::new(),
            scratch: Vec::new(),
            piece_bytes_max: PIECE_BYTES_MAX,
            offer_bytes_min: OFFER_BYTES_MIN,
            lease: Lease::new(OF_THE_NIC, incarnation),
        }
    }

    /// The place of a node, made if need be.
    pub(super) fn enter(&mut self, node: NodeId) -> u16 {
        let next = self.peers.len() as u16;
        let place = *self.places.entry(node).or_insert(next);
        if place == next {
            self.peers.push(PeerNode {
                node,
                is_linked: false,
                is_absent: false,
                is_wanted: false,
                outbox: VecDeque::new(),
                unaccepted: core::array::from_fn(|_| VecDeque::new()),
                turns: Turns::default(),
                grants: Grants::default(),
                dropped: 0,
                readable: None,
                reach: None,
                fetches: false,
            });
        }
        place
    }

    /// The place of a node that is known.
    pub(super) fn find(&self, node: NodeId) -> Option<u16> {
        self.places.get(&node).copied()
    }

    pub(super) fn peer(&mut self, place: u16) -> &mut PeerNode {
        &mut self.peers[usize::from(place)]
    }

    /// Whether a place is this node's own.
    #[inline]
    pub(super) fn is_me(&self, place: u16) -> bool {
        self.peers[usize::from(place)].node == self.me
    }

    /// Whether frames for a peer go somewhere now.
    pub(super) fn reaches(&self, place: u16) -> bool {
        self.peers[usize::from(place)].is_linked || self.is_me(place)
    }

    /// The link with a peer has ended: nothing is under way to it.
    pub(super) fn forget(&mut self, place: u16) {
        let peer = self.peer(place);
        (peer.is_linked, peer.readable, peer.reach, peer.fetches) = (false, None, None, false);
        peer.outbox.clear();
        peer.turns = Turns::default();
        peer.unaccepted.iter_mut().for_each(VecDeque::clear);
    }

    /// Sends a frame of the connection manager, now or when there is room.
    pub(super) fn tell(&mut self, place: u16, header: Header, payload: Vec<u8>, links: &mut impl Links) {
        if self.is_me(place) {
            self.local.push_back((header, payload));
            return;
        }
        // Whom it was for has ended with the link.
        if !self.reaches(place) {
            return;
        }
        if self.peer(place).outbox.is_empty() && self.put(place, &header, &payload, ViName::default(), links) {
            return;
        }
        let peer = self.peer(place);
        if peer.outbox.len() < OUTBOX_MAX {
            peer.outbox.push_back((header, payload));
        } else {
            peer.dropped += 1;
        }
    }

    /// Sends what waits of the connection manager's; whether all of it went.
    pub(super) fn empty_outbox(&mut self, place: u16, links: &mut impl Links) -> bool {
        while let Some((header, payload)) = self.peer(place).outbox.pop_front() {
            if !self.put(place, &header, &payload, ViName::default(), links) {
                self.peer(place).outbox.push_front((header, payload));
                return false;
            }
        }
        true
    }

    pub(super) fn put(
        &mut self,
        place: u16,
        header: &Header,
        payload: &[u8],
        of: ViName,
        links: &mut impl Links,
    ) -> bool {
        let peer = self.peer(place);
        let sent = links.send(peer.node, header, payload);
        peer.note(header.class, sent, of) != Handed::Full
    }

    /// Frames up to this number of one class have been accepted: the connections whose frames these are, each with the last
    /// number of its own.
    pub(super) fn accepted(&mut self, place: u16, number: u64, mut tell: impl FnMut(ViName, u64)) {
        let peer = self.peer(place);
        let of_class =
            |frames: &&mut VecDeque<(u64, ViName)>| frames.binary_search_by_key(&number, |frame| frame.0).is_ok();
        let Some(frames) = peer.unaccepted.iter_mut().find(of_class) else { return };
        while let Some(&(frame, name)) = frames.front().filter(|(frame, _)| *frame <= number) {
            frames.pop_front();
            let is_last = frames.front().is_none_or(|next| next.0 > number || next.1 != name);
            if is_last && name != ViName::default() {
                tell(name, frame);
            }
        }
    }
}

impl PeerNode {
    #[inline]
    pub(super) fn note(&mut self, class: Priority, sent: Sent, of: ViName) -> Handed {
        match sent {
            Sent::Delivered => Handed::Accepted,
            Sent::Numbered(number) => {
                self.unaccepted[usize::from(class.class())].push_back((number, of));
                Handed::Numbered(number)
            }
            // Of a link that is no more its end is reported.
            Sent::Full | Sent::NoLink => Handed::Full,
        }
    }
}

/// The wire of one connection.
pub(super) struct ViWire<'w, L> {
    pub(super) carriage: &'w mut Carriage,
    pub(super) links: &'w mut L,
    pub(super) memory: &'w RegisteredMemory,
    pub(super) connection: &'w mut Connection,
    /// The VI's rates, if it has some, and the time.
    pub(super) pace: Option<(&'w mut Pace, u64)>,
    /// The VI's place, which waits if there is no room.
    pub(super) place: u16,
    /// Whether what is handed over is all that is posted.
    pub(super) is_alone: bool,
    /// The VI's turn, if it had to wait for one.
    pub(super) turn: Option<&'w mut Turn>,
}

/// What a frame is, for who decides whether it may go now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidPart {
    /// A part of what was posted: it lies in one region, which was checked as a whole.
    Posted,
    /// A part of an answer.
    Answer,
    /// The VI's own word, which does not wait for a turn.
    Word,
}

impl<L: Links> ViWire<'_, L> {
    /// Hands over a frame whose payload lies in these places.
    #[inline]
    fn put(&mut self, frame: &NicFrame, mut payload: Places<'_>, part: SaidPart) -> Handed {
        let bytes = payload.bytes();
        let Connection { there, class, peer, .. } = *self.connection;
        let header = frame.header(there, class, bytes);
        let node = self.carriage.peer(peer).node;
        if node == self.carriage.me {
            return self.put_here(header, payload);
        }
        if self.is_behind(part) {
            return self.wait();
        }
        let first = payload.next();
        let sent = match first {
            None => Some(self.links.send(node, &header, &[])),
            Some(place) if part != SaidPart::Answer && place.bytes == bytes => {
                self.memory.with_posted(place, |payload| self.links.send(node, &header, payload))
            }
            Some(place) => {
                let gathered = &mut self.carriage.scratch;
                gathered.clear();
                let is_whole =
                    core::iter::once(place).chain(payload).all(|place| self.memory.copy_out(place, gathered));
                is_whole.then(|| self.links.send(node, &header, gathered))
            }
        };
        // What the engine has checked is registered; should it not be, nothing goes out.
        let Some(sent) = sent else { return self.wait() };
        match self.carriage.peer(peer).note(class, sent, self.connection.here) {
            Handed::Full => self.wait(),
            handed => handed,
        }
    }

    /// The same to this node itself.
    fn put_here(&mut self, header: Header, mut payload: Places<'_>) -> Handed {
        if self.carriage.local.len() >= LOCAL_MAX {
            return self.wait();
        }
        let mut bytes = Vec::new();
        if !payload.all(|place| self.memory.copy_out(place, &mut bytes)) {
            return self.wait();
        }
        self.carriage.local.push_back((header, bytes));
        Handed::Accepted
    }

    /// Hands over a frame with a payload of its own.
    fn put_told(&mut self, frame: &NicFrame) -> Handed {
        let Connection { there, class, peer, .. } = *self.connection;
        let (header, payload) = frame.write(ViName::default(), there, class, 0);
        let node = self.carriage.peer(peer).node;
        if node == self.carriage.me {
            if self.carriage.local.len() >= LOCAL_MAX {
                return self.wait();
            }
            self.carriage.local.push_back((header, payload));
            return Handed::Accepted;
        }
        if self.is_behind(SaidPart::Posted) {
            return self.wait();
        }
        let sent = self.links.send(node, &header, &payload);
        match self.carriage.peer(peer).note(class, sent, self.connection.here) {
            Handed::Full => self.wait(),
            handed => handed,
        }
    }

    /// Whether something goes before: of the connection manager's, or of others of the class whose turn comes first.
    #[inline]
    pub(super) fn is_behind(&mut self, part: SaidPart) -> bool {
        let Connection { class, peer, .. } = *self.connection;
        let peer = self.carriage.peer(peer);
        let others = peer.turns.waiting >> class.class() & 1 != 0 && self.turn.is_none() && part != SaidPart::Word;
        others | !peer.outbox.is_empty()
    }

    /// There is no room now.
    #[cold]
    pub(super) fn wait(&mut self) -> Handed {
        let Connection { class, peer, .. } = *self.connection;
        if let Some(turn) = &mut self.turn {
            turn.block();
        } else if !self.carriage.is_me(peer) {
            self.carriage.peer(peer).turns.join(usize::from(class.class()), self.place);
        } else if !self.carriage.local_waiting.contains(&self.place) {
            self.carriage.local_waiting.push(self.place);
        }
        Handed::Full
    }

    /// A part of a write; the first of several is preceded by where the write goes.
    fn put_write(&mut self, head: WriteHead, offset: u32, payload: Places<'_>) -> Handed {
        let bytes = payload.bytes();
        let is_offered = self.offers((head.bytes, offset), &payload);
        if bytes == head.bytes && head.immediate.is_none() && !is_offered {
            return self.put(&NicFrame::Write(head.to), payload, SaidPart::Posted);
        }
        if !self.connection.has_begun_write {
            if self.put_told(&NicFrame::WriteBegin(head)) == Handed::Full {
                return Handed::Full;
            }
            self.connection.has_begun_write = true;
        }
        let handed = if is_offered {
            self.offer(&NicFrame::WriteOffer { offset }, payload)
        } else {
            self.put(&NicFrame::WritePart { offset }, payload, SaidPart::Posted)
        };
        if handed != Handed::Full && offset + bytes == head.bytes {
            self.connection.has_begun_write = false;
        }
        handed
    }
}

impl<L: Links> Wire for ViWire<'_, L> {
    #[inline]
    fn payload_bytes_max(&self) -> u32 {
        self.carriage.piece_bytes_max
    }

    #[inline]
    fn hand(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        let is_held = self.pace.is_some() | self.turn.is_some() | self.connection.is_bounded;
        if is_held { self.hand_held(frame, payload) } else { self.hand_over(frame, payload) }
    }
}

impl<L: Links> ViWire<'_, L> {
    /// The first frame of a descriptor, if the VI's rates allow it; any part of a message, if its turn pays for it; any other.
    #[cold]
    fn hand_held(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        let is_part =
            matches!(frame, ViFrame::Send { .. } | ViFrame::Write { .. } | ViFrame::Read { .. } | ViFrame::Data { .. });
        let bytes = payload.bytes();
        if let Some(turn) = self.turn.as_deref_mut().filter(|_| is_part)
            && !turn.affords(bytes)
        {
            return Handed::Full;
        }
        let handed = self.hand_granted(frame, payload);
        if let Some(turn) = self.turn.as_deref_mut().filter(|_| is_part && handed != Handed::Full) {
            turn.pay(bytes);
        }
        handed
    }

    /// The same, if the other side has granted it.
    fn hand_granted(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        let Connection { class, peer, is_bounded, is_held, .. } = *self.connection;
        let (begins, class) = (begun_by(frame), class.index());
        let grants = &mut self.carriage.peer(peer).grants;
        let Some(grant) = grants.class(class).filter(|_| is_bounded) else { return self.hand_paced(frame, payload) };
        if let Some(bytes) = begins
            && !grant.admits()
        {
            if !is_held {
                let held = &mut grants.held[class];
                *held = (held.0 + 1, held.1 + u64::from(bytes));
            }
            self.connection.is_held = true;
            return self.wait();
        }
        let charged = if matches!(frame, ViFrame::Send { .. } | ViFrame::Write { .. }) { payload.bytes() } else { 0 };
        let handed = self.hand_paced(frame, payload);
        if handed != Handed::Full
            && let Some(grant) = self.carriage.peer(peer).grants.class(class)
        {
            grant.pay(begins.is_some(), charged);
            self.connection.is_held &= begins.is_none();
        }
        handed
    }

    fn hand_paced(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        let begins = begun_by(frame);
        if let (Some(bytes), Some((pace, now_ns))) = (begins, &mut self.pace)
            && !pace.admits(*now_ns, bytes)
        {
            return Handed::Full;
        }
        let handed = self.hand_over(frame, payload);
        if let (Some(_), Some((pace, _))) = (begins, &mut self.pace)
            && handed != Handed::Full
        {
            pace.has_begun();
        }
        handed
    }

    #[inline]
    fn hand_over(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        let nothing = Segments::NONE;
        match *frame {
            ViFrame::Send { bytes, offset, immediate } if self.offers((bytes, offset), &payload) => {
                self.offer(&NicFrame::SendOffer { bytes, offset, immediate }, payload)
            }
            ViFrame::Send { bytes, offset, immediate } => {
                self.put(&NicFrame::Send { bytes, offset, immediate }, payload, SaidPart::Posted)
            }
            ViFrame::Write { to, bytes, offset, immediate } => {
                self.put_write(WriteHead { to, bytes, immediate }, offset, payload)
            }
            ViFrame::Data { offset } => self.put(&NicFrame::Data { offset }, payload, SaidPart::Answer),
            ViFrame::Read { from, bytes } => self.put_told(&NicFrame::Read { from, bytes }),
            ViFrame::ReadRefused { messages } => {
                self.put(&NicFrame::ReadRefused { messages }, nothing.part(0, 0), SaidPart::Word)
            }
            ViFrame::Placed { messages } => {
                self.put(&NicFrame::Placed { messages }, nothing.part(0, 0), SaidPart::Word)
            }
            ViFrame::Credit { receives } => {
                self.put(&NicFrame::Credit { receives }, nothing.part(0, 0), SaidPart::Word)
            }
            ViFrame::Broken { messages, status } => {
                self.put(&NicFrame::Broken { messages, status }, nothing.part(0, 0), SaidPart::Word)
            }
        }
    }
}

/// The bytes of what a frame begins, if it begins something.
fn begun_by(frame: &ViFrame) -> Option<u32> {
    match *frame {
        ViFrame::Send { bytes, offset: 0, .. } | ViFrame::Write { bytes, offset: 0, .. } => Some(bytes),
        ViFrame::Read { bytes, .. } => Some(bytes),
        _ => None,
    }
}
