//! Links that begin and end, and calls of nodes to which there is none.
//!
//! What you may rely on: what a node committed before its end is reported before [`Report::Down`], and a successor's
//! [`Report::Up`] after it. How much of it is read is bounded by the lane, also if somebody goes on writing.
//!
//! How it works: a link that has ended is drained, then its successor, if one has come meanwhile, takes its place. A node that is
//! wanted and not there is called again after pauses that grow.

use musubi_linux::clock::now_ns;
use musubi_linux::node::{Dialed, Event, Link, Presence, Refused};

use super::Block;
use super::carrier::ShmCarrier;
use super::records::SHAPE;
use crate::NodeId;
use crate::links::{Loss, Report};
use crate::topology::Way;

impl ShmCarrier {
    // ---- links that begin and end ----

    /// Takes up what has come of calls.
    pub(super) fn take_events(&mut self, now_ns: u64) {
        while let Some(event) = self.presence.as_mut().and_then(Presence::next_event) {
            match event {
                Event::Linked(link) => self.linked(link),
                Event::Failed { peer, refused } => self.call_failed(peer, refused, now_ns),
            }
        }
    }

    fn linked(&mut self, link: Box<Link>) {
        let node = NodeId::from_index(usize::from(link.peer()));
        let Some(node) = node.filter(|node| self.reaches(*node)) else {
            self.refusals.strangers += 1;
            return;
        };
        let place = self.enter(node);
        self.by_link.insert(link.id(), place);
        let (id, is_first) = (link.id(), !self.peer(place).is_linked());
        if let Some(odd) = self.peer(place).add(link) {
            self.by_link.remove(&odd);
        }
        if is_first {
            self.begin(place);
        } else {
            self.end(place);
        }
        self.look_for_end(id);
    }

    fn reaches(&self, node: NodeId) -> bool {
        self.topology.has(node) && self.topology.way(self.me, node) == Some(Way::SharedMemory)
    }

    /// A link is the one in use from now on.
    fn begin(&mut self, place: u16) {
        let node = self.peer(place).node;
        let Some(held) = self.peer(place).link() else { return };
        let incarnation = held.link.incarnation();
        let has_ended = held.ended;
        self.peer(place).traffic.links += 1;
        self.reports.push_back(Report::Up { peer: node, incarnation });
        self.linked.push(place);
        self.activate(place);
        if has_ended {
            self.end(place);
        }
    }

    /// The link in use has ended; it is drained first, and apart from the others: see [`ShmCarrier::drain_ended`].
    pub(super) fn end(&mut self, place: u16) {
        self.active.retain(|other| *other != place);
        if !self.ended.contains(&place) {
            self.ended.push(place);
        }
    }

    pub(super) fn look_for_end(&mut self, id: u32) {
        if let Some(place) = self.by_link.get(&id).copied()
            && self.peer(place).look_for_end(id)
        {
            self.end(place);
        }
    }

    /// Frames of links that have ended; those without any are over. So are those that have given as many as a lane can
    /// hold: whoever writes more goes on after it has hung up.
    #[cold]
    pub(super) fn drain_ended(&mut self) -> Option<Report<Block>> {
        let place = *self.ended.first()?;
        let drained = &mut self.peer(place).drained;
        *drained += 1;
        if *drained <= SHAPE.slots
            && let Some(report) = self.receive_from(place)
        {
            return Some(report);
        }
        self.over(place, Loss::Gone)
    }

    #[cold]
    pub(super) fn fault(&mut self, place: u16) -> Option<Report<Block>> {
        self.refusals.faults += 1;
        self.peer(place).traffic.faults += 1;
        self.over(place, Loss::Cut)
    }

    /// Gives a link up and goes on with its successor, if there is one.
    pub(super) fn over(&mut self, place: u16, loss: Loss) -> Option<Report<Block>> {
        for list in [&mut self.ended, &mut self.linked, &mut self.active, &mut self.blocked] {
            list.retain(|other| *other != place);
        }
        let node = self.peer(place).node;
        let id = self.peer(place).drop_link()?;
        self.by_link.remove(&id);
        if self.peer(place).is_linked() {
            self.begin(place);
        } else if self.peer(place).wanted {
            let due_ns = now_ns();
            self.call_at(place, due_ns);
        }
        // Before what `begin` has just put behind it.
        Some(Report::Down { peer: node, loss })
    }

    // ---- calls ----

    fn call_at(&mut self, place: u16, due_ns: u64) {
        self.peer(place).due_ns = due_ns;
        self.calls_due_ns = self.calls_due_ns.min(due_ns);
    }

    /// Calls those who are due.
    pub(super) fn call_due(&mut self, now_ns: u64) {
        self.calls_due_ns = u64::MAX;
        for place in 0..self.peers.len() as u16 {
            if self.peer(place).due_ns <= now_ns {
                self.call(place, now_ns);
            }
            self.calls_due_ns = self.calls_due_ns.min(self.peer(place).due_ns);
        }
    }

    pub(super) fn call(&mut self, place: u16, now_ns: u64) {
        let Some(presence) = &mut self.presence else { return };
        let peer = &mut self.peers[usize::from(place)];
        match presence.dial(peer.node.index() as u16, now_ns) {
            // Its outcome is an event.
            Dialed::Begun => peer.due_ns = u64::MAX,
            Dialed::Busy => self.postpone(place, now_ns),
            Dialed::Absent => {
                self.postpone(place, now_ns);
                self.report_absent(place);
            }
        }
    }

    fn postpone(&mut self, place: u16, now_ns: u64) {
        let due_ns = self.peer(place).pause(now_ns);
        self.call_at(place, due_ns);
    }

    fn call_failed(&mut self, peer: u16, refused: Option<Refused>, now_ns: u64) {
        let Some(node) = NodeId::from_index(usize::from(peer)) else { return };
        let place = self.enter(node);
        if self.peer(place).is_linked() || !self.peer(place).wanted {
            return;
        }
        self.postpone(place, now_ns);
        match refused {
            // It is there, and the link comes about the other way or a little later.
            None | Some(Refused::Crossed | Refused::Busy) => (),
            Some(_) => self.report_absent(place),
        }
    }

    fn report_absent(&mut self, place: u16) {
        let peer = self.peer(place).node;
        let is_it = |report: &Report<Block>| matches!(report, Report::Absent { peer: other } if *other == peer);
        if !self.reports.iter().any(is_it) {
            self.reports.push_back(Report::Absent { peer });
        }
    }
}
