//! Links between nodes of one process, by queues: what tests use in place of sockets, with cuts at will.
//!
//! What you may rely on: frames of one class arrive in order, as over any link; a cut loses what was under way and is
//! reported to both sides; a sleeping node is rung by an event descriptor.
//!
//! How it works: a [`Switchboard`] has a queue of reports a node. A frame is put into the receiver's queue by the sender's
//! thread and is [`Sent::Delivered`] at once.
//!
//! What it does not do: number frames, be fast.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use musubi_linux::descriptor::Descriptor;
use rustix::event::epoll;

use super::bells::{ring, silence};
use super::node_links::TOKEN_OTHERS;
use super::wiring::Wiring;
use crate::carrier::{Carrier, Describe, Drive, Frames};
use crate::frame::Header;
use crate::links::{Loss, NoBlock, Payload, Report, Sent, Short};
use crate::{LinkError, NodeId};

/// Reports that may wait for a node; a sender gets [`Sent::Full`] beyond.
const QUEUE_MAX: usize = 1024;

/// Connects nodes of one process.
#[derive(Clone, Debug, Default)]
pub struct Switchboard {
    places: Arc<Mutex<BTreeMap<NodeId, Place>>>,
}

/// What is on its way to a node.
#[derive(Debug)]
struct Place {
    incarnation: u32,
    queue: VecDeque<Report<NoBlock>>,
    bell: Arc<Descriptor>,
    linked: BTreeMap<NodeId, Wish>,
    /// Senders that found the queue full.
    refused: Vec<NodeId>,
}

/// What a node wants of, and has with, another.
#[derive(Debug, Default)]
struct Wish {
    wanted: bool,
    up: bool,
}

impl Switchboard {
    /// No nodes.
    pub fn new() -> Switchboard {
        Switchboard::default()
    }

    /// The links of a node that starts: for [`super::Node::start_with`].
    ///
    /// # Errors
    /// [`LinkError::NodeRuns`] if it runs already, [`LinkError::Unavailable`] without descriptors.
    pub fn join(&self, wiring: &Wiring) -> Result<Box<dyn Carrier<Block = NoBlock>>, LinkError> {
        let mut places = self.places();
        if places.contains_key(&wiring.me) {
            return Err(LinkError::NodeRuns);
        }
        let bell = Descriptor::event().map_err(|_| LinkError::Unavailable)?;
        let token = epoll::EventData::new_u64(TOKEN_OTHERS << 56);
        epoll::add(&wiring.epoll, &bell, token, epoll::EventFlags::IN).map_err(|_| LinkError::Unavailable)?;
        let bell = Arc::new(bell);
        let place = Place {
            incarnation: wiring.incarnation,
            queue: VecDeque::new(),
            bell: Arc::clone(&bell),
            linked: BTreeMap::new(),
            refused: Vec::new(),
        };
        places.insert(wiring.me, place);
        meet(&mut places, wiring.me);
        Ok(Box::new(Line { board: self.clone(), me: wiring.me, bell }))
    }

    /// Cuts the link of two nodes, as a network does that stays away for longer than is waited for. It comes back with
    /// [`Switchboard::restore`].
    pub fn cut(&self, one: NodeId, other: NodeId) {
        let mut places = self.places();
        part(&mut places, one, other, Loss::Cut);
    }

    /// Lets all links come back that are wanted.
    pub fn restore(&self) {
        let mut places = self.places();
        for node in places.keys().copied().collect::<Vec<_>>() {
            meet(&mut places, node);
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<NodeId, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Places = BTreeMap<NodeId, Place>;

/// Links that `node` or another one wants with it.
fn meet(places: &mut Places, node: NodeId) {
    let wants = |place: &Place, other: NodeId| place.linked.get(&other).is_some_and(|wish| wish.wanted);
    let others: Vec<NodeId> = places.keys().copied().filter(|other| *other != node).collect();
    for other in others {
        let (Some(ours), Some(theirs)) = (places.get(&node), places.get(&other)) else { continue };
        let up = ours.linked.get(&other).is_some_and(|wish| wish.up);
        if up || !(wants(ours, other) || wants(theirs, node)) {
            continue;
        }
        let (our_run, their_run) = (ours.incarnation, theirs.incarnation);
        set_up(places, node, other, their_run);
        set_up(places, other, node, our_run);
    }
}

fn set_up(places: &mut Places, at: NodeId, peer: NodeId, incarnation: u32) {
    if let Some(place) = places.get_mut(&at) {
        place.linked.entry(peer).or_default().up = true;
        place.put(Report::Up { peer, incarnation });
    }
}

/// Ends the link of two nodes.
fn part(places: &mut Places, one: NodeId, other: NodeId, loss: Loss) {
    for (at, peer) in [(one, other), (other, one)] {
        let Some(place) = places.get_mut(&at) else { continue };
        let Some(wish) = place.linked.get_mut(&peer).filter(|wish| wish.up) else { continue };
        wish.up = false;
        if loss == Loss::Cut {
            place.queue.retain(|report| !matches!(report, Report::Frame { peer: from, .. } if *from == peer));
        }
        place.put(Report::Down { peer, loss });
    }
}

impl Place {
    fn put(&mut self, report: Report<NoBlock>) {
        self.queue.push_back(report);
        ring(&self.bell);
    }
}

/// One node's side of the switchboard.
#[derive(Debug)]
struct Line {
    board: Switchboard,
    me: NodeId,
    bell: Arc<Descriptor>,
}

impl Frames for Line {
    type Block = NoBlock;

    fn send(&mut self, _: u64, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        let mut places = self.board.places();
        let me = self.me;
        let Some(place) = places.get_mut(&peer) else { return Sent::NoLink };
        if !place.linked.get(&me).is_some_and(|wish| wish.up) {
            return Sent::NoLink;
        }
        if place.queue.len() >= QUEUE_MAX {
            if !place.refused.contains(&me) {
                place.refused.push(me);
            }
            return Sent::Full;
        }
        let payload = Short::new(payload).map_or_else(|| Payload::Owned(payload.to_vec()), Payload::Short);
        place.put(Report::Frame { peer: me, header: *header, payload });
        Sent::Delivered
    }

    fn next_report(&mut self, _: u64) -> Option<Report<NoBlock>> {
        let mut places = self.board.places();
        let place = places.get_mut(&self.me)?;
        let report = place.queue.pop_front()?;
        if place.queue.len() < QUEUE_MAX {
            for sender in std::mem::take(&mut place.refused) {
                if let Some(sender) = places.get_mut(&sender) {
                    sender.put(Report::Room { peer: self.me });
                }
            }
        }
        Some(report)
    }
}

impl Drive for Line {
    fn want(&mut self, _: u64, peer: NodeId, wanted: bool) {
        let mut places = self.board.places();
        let Some(place) = places.get_mut(&self.me) else { return };
        place.linked.entry(peer).or_default().wanted = wanted;
        if !wanted {
            return;
        }
        meet(&mut places, self.me);
        if let Some(place) = places.get_mut(&self.me).filter(|place| !place.linked[&peer].up) {
            place.put(Report::Absent { peer });
        }
    }

    fn poll(&mut self, _: u64) {}

    fn ready(&mut self, _: u64, _: u64) {
        silence(&self.bell);
    }

    fn flush(&mut self, _: u64) {}

    fn prepare_sleep(&mut self) -> bool {
        self.board.places().get(&self.me).is_some_and(|place| !place.queue.is_empty())
    }

    fn holds_reports(&self) -> bool {
        // Each has been rung for.
        false
    }

    fn finish_sleep(&mut self) {}

    fn deadline_ns(&self) -> u64 {
        u64::MAX
    }

    fn tick(&mut self, _: u64) {}

    fn leave(&mut self, _: u64) {
        let mut places = self.board.places();
        let others: Vec<NodeId> = places.keys().copied().collect();
        for other in others {
            part(&mut places, self.me, other, Loss::Gone);
        }
        places.remove(&self.me);
    }
}

impl Describe for Line {}

impl Drop for Line {
    fn drop(&mut self) {
        self.leave(0);
    }
}
