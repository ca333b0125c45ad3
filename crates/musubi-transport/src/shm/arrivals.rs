//! What comes over a node's links of shared memory, and in which order they are looked at.
//!
//! What you may rely on: each link has its turn; one that has frames without end keeps others waiting for [`ROW_MAX`] of them
//! at most. A link that breaks the protocol gives no frame any more: its end is reported instead.
//!
//! How it works: links on which something came lately are looked at in every round, the others every [`SCAN_ROUNDS`]
//! rounds and before sleep.

use musubi_core::lane::{Payload as Placed, RECORD_BYTES_MAX};

use super::Block;
use super::carrier::ShmCarrier;
use super::peer::{Held, bytes_of};
use super::records::{self, Frame};
use crate::NodeId;
use crate::frame::Header;
use crate::limits::ROW_MAX;
use crate::links::{Payload, Report};

/// Most links that are looked at in every round.
const ACTIVE_MAX: usize = 8;
/// After how many rounds the idle links are looked at.
const SCAN_ROUNDS: u32 = 64;
/// After how many rounds links that have ended have their turn while others have frames.
const DRAIN_ROUNDS: u32 = 8;
/// A frame that has been taken from a lane, but for its payload.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    place: u16,
    /// Who sent it.
    pub node: NodeId,
    /// Its header.
    pub header: Header,
    /// Where its payload is.
    pub placed: Placed,
}

impl ShmCarrier {
    /// The next frame of a peer's link if its payload is one word at most, with that word: see
    /// [`ShmCarrier::arrival_from`] for all others.
    #[inline(always)]
    pub fn brief_from(&mut self, place: u16) -> Option<(NodeId, Header, u64)> {
        let peer = &mut self.peers[usize::from(place)];
        let node = peer.node;
        let (Held { link, .. }, traffic) = peer.link_and_traffic()?;
        match link.with(|lanes| records::receive_brief(lanes, self.kinds)) {
            Ok(Some((header, word))) => {
                if link.with(|lanes| lanes.must_ring_for_room()) {
                    link.ring();
                }
                traffic.frames_received += 1;
                traffic.bytes_received += bytes_of(&header);
                Some((node, header, word))
            }
            Ok(None) => None,
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// The next frame of a peer's link; if that breaks the protocol, the report of it stands first in the queue.
    pub fn arrival_from(&mut self, place: u16) -> Option<Arrival> {
        let peer = &mut self.peers[usize::from(place)];
        let node = peer.node;
        let (Held { link, .. }, traffic) = peer.link_and_traffic()?;
        let (data, kinds) = (self.data.get_or_insert_with(|| Box::new([0; RECORD_BYTES_MAX])), self.kinds);
        let (frame, rings) = link.with(|lanes| (records::receive(lanes, data, kinds), lanes.must_ring_for_room()));
        if rings {
            link.ring();
        }
        match frame {
            Ok(Some(Frame { header, payload })) => {
                traffic.frames_received += 1;
                traffic.bytes_received += bytes_of(&header);
                Some(Arrival { place, node, header, placed: payload })
            }
            Ok(None) => None,
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// A link that breaks the protocol gives no frame: its end stands first in the queue.
    #[cold]
    fn fault_first(&mut self, place: u16) {
        if let Some(report) = self.fault(place) {
            self.reports.push_front(report);
        }
    }

    /// The next frame of a peer's link, or what is to be reported before it: its end, say, if it breaks the protocol.
    pub(super) fn receive_from(&mut self, place: u16) -> Option<Report<Block>> {
        match self.arrival_from(place) {
            Some(arrival) => self.report_of(arrival),
            None => self.reports.pop_front(),
        }
    }

    /// The report of a frame, before the next one is taken; of its link's end if that names a block that it has not.
    pub fn report_of(&mut self, arrival: Arrival) -> Option<Report<Block>> {
        let Arrival { place, node, header, placed } = arrival;
        match self.payload_of(place, placed) {
            Some(payload) => Some(Report::Frame { peer: node, header, payload }),
            None => self.reports.pop_front(),
        }
    }

    /// The payload of a frame from this place, before the next one is taken; none if it names a block that its link has
    /// not: then that one's end stands first in the queue.
    #[inline(always)]
    pub fn payload_of(&mut self, place: u16, placed: Placed) -> Option<Payload<Block>> {
        match placed {
            Placed::Copied(bytes) => {
                let bytes = self.data.as_ref()?.get(..bytes)?;
                Some(Payload::of_bytes(bytes))
            }
            Placed::Block { block, bytes } => self.lend(place, block, bytes).map(Payload::Lent),
        }
    }

    /// The bytes that payloads of the lane were copied into; to be given back by [`ShmCarrier::give_data_back`].
    #[inline(always)]
    pub fn take_data(&mut self) -> Option<Box<[u8; RECORD_BYTES_MAX]>> {
        self.data.take()
    }

    /// See [`ShmCarrier::take_data`].
    #[inline(always)]
    pub fn give_data_back(&mut self, data: Box<[u8; RECORD_BYTES_MAX]>) {
        self.data = Some(data);
    }

    #[inline(never)]
    fn lend(&mut self, place: u16, block: u32, bytes: u32) -> Option<Block> {
        match self.peer(place).link()?.link.lend(block, bytes) {
            Ok(lent) => Some(Block(lent)),
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// The place of the peer whose link has the next frame, or something to say; none while something else is to be
    /// reported first.
    #[inline(always)]
    pub fn next_place(&mut self) -> Option<u16> {
        self.rounds = self.rounds.wrapping_add(1);
        let only_frames = self.reports.is_empty() && self.blocked.is_empty() && self.ended.is_empty();
        if (!only_frames || self.rounds.is_multiple_of(SCAN_ROUNDS)) && !self.look_aside() {
            return None;
        }
        self.ready_place()
    }

    /// Whether the link whose turn it is has another frame that travels in its lane, and nothing else is to be reported.
    #[inline(always)]
    pub fn has_short_frame(&mut self) -> bool {
        if !(self.reports.is_empty() && self.blocked.is_empty() && self.ended.is_empty()) || self.row >= ROW_MAX {
            return false;
        }
        let Some(&place) = self.active.get(self.turn) else { return false };
        self.peers[usize::from(place)].link().is_some_and(|held| held.link.with(|lanes| lanes.is_ready_in_lane()))
    }

    /// Looks at what is not looked at in every round; whether it is the turn of frames now.
    #[cold]
    fn look_aside(&mut self) -> bool {
        if !self.reports.is_empty() {
            return false;
        }
        if self.rounds.is_multiple_of(SCAN_ROUNDS) {
            self.scan();
        }
        if !self.blocked.is_empty() {
            self.look_for_room();
        }
        if !self.ended.is_empty()
            && self.rounds.is_multiple_of(DRAIN_ROUNDS)
            && let Some(report) = self.drain_ended()
        {
            self.reports.push_front(report);
            return false;
        }
        true
    }

    /// Whether [`ShmCarrier::next_of_rest`] may have something.
    #[inline(always)]
    pub fn has_rest(&self) -> bool {
        !(self.reports.is_empty() && self.ended.is_empty())
    }

    /// What else there is to report, where [`ShmCarrier::next_place`] has found none.
    pub fn next_of_rest(&mut self) -> Option<Report<Block>> {
        if self.reports.is_empty() && !self.ended.is_empty() {
            return self.drain_ended();
        }
        self.reports.pop_front()
    }

    /// The next that has a frame of those that had some lately; each has its turn.
    #[inline(always)]
    fn ready_place(&mut self) -> Option<u16> {
        // Each once; one more if the first has had its row.
        for _ in 0..self.active.len() + usize::from(self.row >= ROW_MAX) {
            if self.turn >= self.active.len() {
                (self.turn, self.row) = (0, 0);
            }
            let place = *self.active.get(self.turn)?;
            let link = self.peers[usize::from(place)].link();
            if self.row < ROW_MAX && link.is_some_and(|held| held.link.with(|lanes| lanes.is_ready())) {
                self.row += 1;
                return Some(place);
            }
            let next = self.turn + 1;
            (self.turn, self.row) = (if next < self.active.len() { next } else { 0 }, 0);
        }
        None
    }

    /// Looks at every link; those that have something become active.
    #[cold]
    fn scan(&mut self) {
        for index in 0..self.linked.len() {
            let place = self.linked[index];
            if self.peer(place).link().is_some_and(|held| held.link.with(|lanes| lanes.is_ready())) {
                self.activate(place);
            }
        }
    }

    /// From now on this link is looked at in every round.
    pub(super) fn activate(&mut self, place: u16) {
        if self.active.contains(&place) || self.ended.contains(&place) {
            return;
        }
        self.active.insert(0, place);
        if self.active.len() > ACTIVE_MAX
            && let Some(last) = self.active.pop()
        {
            self.ring_if_due(last);
        }
    }

    /// Reports room where there is some again.
    #[cold]
    fn look_for_room(&mut self) {
        for place in std::mem::take(&mut self.blocked) {
            let peer = self.peer(place);
            let node = peer.node;
            let room = peer.link().map(|held| held.link.with(|lanes| lanes.has_room()));
            match room {
                _ if !self.peer(place).is_blocked => (),
                Some(Ok(true)) => {
                    self.peer(place).is_blocked = false;
                    self.reports.push_back(Report::Room { peer: node });
                }
                Some(Ok(false)) => self.blocked.push(place),
                Some(Err(_)) => {
                    // Before that its successor is up, which stands in the queue.
                    if let Some(report) = self.fault(place) {
                        self.reports.push_front(report);
                    }
                }
                None => (),
            }
        }
    }
}
