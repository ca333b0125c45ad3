//! What a carrier knows of one other node.

use std::collections::VecDeque;

use musubi_linux::node::Link;

use crate::NodeId;
use crate::frame::Header;
use crate::status::LinkStatus;

/// First and longest pause between two calls of a node that is not there, in nanoseconds.
const PAUSE_NS_MIN: u64 = 1_000_000;
const PAUSE_NS_MAX: u64 = 20_000_000;
/// Most links with incarnations of one node: the one in use, and those that wait until it is drained.
const INCARNATIONS_MAX: usize = 4;

/// Another node.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    /// The one in use.
    in_use: Option<Held>,
    /// Those that follow it.
    successors: VecDeque<Held>,
    pub(super) wanted: bool,
    /// When to call again, if it is wanted and there is no link.
    pub(super) due_ns: u64,
    pause_ns: u64,
    /// A frame was refused since the last report of room.
    pub(super) is_blocked: bool,
    /// A frame was sent since the last look whether it sleeps.
    pub(super) is_unflushed: bool,
    /// Frames taken from the link in use since it has ended.
    pub(super) drained: u32,
    pub(super) traffic: Traffic,
}

/// What went over the links with one node, all together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) frames_sent: u64,
    pub(super) frames_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// Links there have been.
    pub(super) links: u64,
    /// Of those, ended because the peer broke the protocol.
    pub(super) faults: u64,
}

/// What a frame is counted as.
#[inline]
pub(super) fn bytes_of(header: &Header) -> u64 {
    Header::BYTES as u64 + u64::from(header.length)
}

/// A link and whether the other side has ended it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) link: Link,
    pub(super) ended: bool,
}

impl Peer {
    pub(super) fn new(node: NodeId) -> Peer {
        Peer {
            node,
            in_use: None,
            successors: VecDeque::new(),
            wanted: false,
            due_ns: u64::MAX,
            pause_ns: PAUSE_NS_MIN,
            is_blocked: false,
            is_unflushed: false,
            drained: 0,
            traffic: Traffic::default(),
        }
    }

    /// The link in use.
    #[inline(always)]
    pub(super) fn link(&mut self) -> Option<&mut Held> {
        self.in_use.as_mut()
    }

    /// The same, if the other side has not ended it.
    pub(super) fn standing(&self) -> Option<&Held> {
        self.in_use.as_ref().filter(|held| !held.ended)
    }

    /// The same, and the account of what goes over it.
    #[inline(always)]
    pub(super) fn link_and_traffic(&mut self) -> Option<(&mut Held, &mut Traffic)> {
        self.in_use.as_mut().map(|held| (held, &mut self.traffic))
    }

    /// How the link does, for tools.
    pub(super) fn status(&self) -> LinkStatus {
        let stands = self.in_use.as_ref().is_some_and(|held| !held.ended);
        let traffic = &self.traffic;
        LinkStatus {
            node: self.node,
            kind: 1,
            state: if stands { 1 } else { u32::from(self.wanted) * 2 },
            rtt_ns: 0,
            frames_sent: traffic.frames_sent,
            frames_received: traffic.frames_received,
            bytes_sent: traffic.bytes_sent,
            bytes_received: traffic.bytes_received,
            connections: traffic.links,
            resumed: 0,
            cuts: traffic.faults,
            repeated: 0,
            violations: traffic.faults,
            silences: 0,
            refused: 0,
            waited: Some(0),
        }
    }

    /// Whether a link is in use or waits.
    pub(super) fn is_linked(&self) -> bool {
        self.in_use.is_some()
    }

    /// Takes in a link; former ones have ended. Gives the number of one that had to go.
    pub(super) fn add(&mut self, link: Box<Link>) -> Option<u32> {
        self.links().for_each(|held| held.ended = true);
        let ended = link.has_ended();
        let held = Held { link: *link, ended };
        self.due_ns = u64::MAX;
        self.pause_ns = PAUSE_NS_MIN;
        if self.in_use.is_none() {
            self.in_use = Some(held);
            return None;
        }
        self.successors.push_back(held);
        let odd = if self.successors.len() >= INCARNATIONS_MAX { self.successors.pop_front() } else { None };
        odd.map(|held| held.link.id())
    }

    /// The one in use, then its successors.
    fn links(&mut self) -> impl Iterator<Item = &mut Held> {
        self.in_use.iter_mut().chain(&mut self.successors)
    }

    /// Notes that the other side has ended this link, if it has. Gives whether that is the one in use.
    pub(super) fn look_for_end(&mut self, id: u32) -> bool {
        let Some(held) = self.links().find(|held| held.link.id() == id) else { return false };
        held.ended |= held.link.has_ended();
        self.in_use.as_ref().is_some_and(|held| held.link.id() == id && held.ended)
    }

    /// Gives up the link in use; gives its number.
    pub(super) fn drop_link(&mut self) -> Option<u32> {
        (self.is_blocked, self.drained) = (false, 0);
        let held = std::mem::replace(&mut self.in_use, self.successors.pop_front());
        held.map(|held| held.link.id())
    }

    /// When to call again after a call in vain; the next pause is longer.
    pub(super) fn pause(&mut self, now_ns: u64) -> u64 {
        let due_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MAX);
        due_ns
    }
}
