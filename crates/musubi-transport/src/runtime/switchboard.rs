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

#[cfg(test)]
mod tests {
    use std::sync::Arc as Shared;

    use super::*;
    use crate::Priority;
    use crate::frame::Kinds;
    use crate::topology::Topology;

    fn id(node: u32) -> NodeId {
        NodeId::new(0, node).unwrap()
    }

    fn line(board: &Switchboard, node: u32) -> (Box<dyn Carrier<Block = NoBlock>>, Wiring) {
        let wiring = Wiring::new(Shared::new(Topology::single_machine()), id(node), Kinds::NONE).unwrap();
        (board.join(&wiring).unwrap(), wiring)
    }

    fn reports(line: &mut Box<dyn Carrier<Block = NoBlock>>) -> Vec<String> {
        let said = std::iter::from_fn(|| line.next_report(0));
        said.map(|report| match report {
            Report::Up { peer, .. } => format!("up {peer}"),
            Report::Down { peer, loss } => format!("down {peer} {loss:?}"),
            Report::Frame { peer, header, payload } => format!("{} of {} from {peer}", header.tag, payload.len()),
            Report::Room { peer } => format!("room {peer}"),
            Report::Absent { peer } => format!("absent {peer}"),
            Report::Acknowledged { .. } => unreachable!("what is sent is delivered"),
        })
        .collect()
    }

    fn send(line: &mut Box<dyn Carrier<Block = NoBlock>>, to: u32, tag: u32, bytes: usize) -> Sent {
        let header = Header { class: Priority::MOST_URGENT, length: bytes as u32, tag, ..Header::new(0) };
        line.send(0, id(to), &header, &vec![7; bytes])
    }

    fn is_rung(wiring: &Wiring) -> bool {
        let mut events = [musubi_linux::epoll::NO_EVENT; 2];
        let count = musubi_linux::epoll::wait(&wiring.epoll, &mut events, Some(0));
        let data = events[0].data;
        assert!(count == 0 || data.u64() == TOKEN_OTHERS << 56);
        count > 0
    }

    #[test]
    fn links_come_and_go_as_they_are_wanted_and_cut() {
        let board = Switchboard::new();
        let (mut one, wiring) = line(&board, 1);
        assert_eq!(board.join(&wiring).err(), Some(LinkError::NodeRuns));
        one.want(0, id(2), true);
        assert_eq!(reports(&mut one), ["absent 0:2"]);
        assert_eq!(send(&mut one, 2, 1, 1), Sent::NoLink);
        one.want(0, id(2), false);
        let (mut other, _second) = line(&board, 2);
        assert_eq!((reports(&mut one).len(), reports(&mut other).len()), (0, 0), "nobody wants it");
        one.want(0, id(2), true);
        other.want(0, id(1), true);
        assert_eq!((reports(&mut one), reports(&mut other)), (vec!["up 0:2".into()], vec!["up 0:1".into()]));
        let (mut third, _third) = line(&board, 3);
        third.want(0, id(1), true);
        assert_eq!((reports(&mut one), reports(&mut third)), (vec!["up 0:3".into()], vec!["up 0:1".into()]));
        assert_eq!(send(&mut third, 2, 1, 1), Sent::NoLink);

        assert_eq!(
            [send(&mut one, 2, 4, 95), send(&mut one, 2, 5, 96), send(&mut third, 1, 6, 0)],
            [Sent::Delivered; 3]
        );
        assert_eq!(reports(&mut other), ["4 of 95 from 0:1", "5 of 96 from 0:1"]);
        send(&mut other, 1, 7, 1);
        board.cut(id(1), id(2));
        board.cut(id(1), id(2));
        assert_eq!(reports(&mut one), ["6 of 0 from 0:3", "down 0:2 Cut"], "what was under way there is lost");
        assert_eq!(reports(&mut other), ["down 0:1 Cut"]);
        assert_eq!(send(&mut one, 2, 1, 1), Sent::NoLink);
        board.restore();
        board.restore();
        assert_eq!((reports(&mut one), reports(&mut other)), (vec!["up 0:2".into()], vec!["up 0:1".into()]));
        send(&mut one, 2, 8, 1);
        one.leave(0);
        assert_eq!(reports(&mut other), ["8 of 1 from 0:1", "down 0:1 Gone"], "what was sent before comes");
        assert_eq!(reports(&mut third), ["down 0:1 Gone"]);
        let (mut again, _again) = line(&board, 1);
        assert_eq!((reports(&mut again).len(), reports(&mut other)), (2, vec!["up 0:1".into()]), "it is wanted still");
        drop(again);
        assert_eq!(reports(&mut other), ["down 0:1 Gone"]);
    }

    #[test]
    fn a_full_queue_says_when_it_has_room_and_a_sleeper_is_rung() {
        let board = Switchboard::new();
        let ((mut one, _wiring), (mut other, wiring)) = (line(&board, 1), line(&board, 2));
        one.want(0, id(2), true);
        assert!(is_rung(&wiring));
        other.ready(0, TOKEN_OTHERS << 56);
        assert!(!is_rung(&wiring) && other.prepare_sleep());
        assert_eq!((reports(&mut one).len(), reports(&mut other).len()), (1, 1));
        assert!(!other.prepare_sleep());
        other.finish_sleep();
        for tag in 0..QUEUE_MAX {
            assert_eq!(send(&mut one, 2, tag as u32, 0), Sent::Delivered);
        }
        assert_eq!([send(&mut one, 2, 0, 0), send(&mut one, 2, 0, 0)], [Sent::Full; 2]);
        assert_eq!(reports(&mut one), [""; 0]);
        assert!(is_rung(&wiring));
        assert_eq!(reports(&mut other).len(), QUEUE_MAX);
        assert_eq!(reports(&mut one), ["room 0:2"], "once");
        assert_eq!((one.deadline_ns(), one.holds_reports(), one.has_delivered()), (u64::MAX, false, true));
    }
}
