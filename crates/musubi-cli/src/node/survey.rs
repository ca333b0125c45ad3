//! Asking many nodes at once how they are.
//!
//! What you may rely on: what a node says of itself is taken as its word; a node that does not answer within the time is
//! shown as not reachable, and holds up no other. Pictures are asked for in a bounded number of parts.
//!
//! How it works: every node is pinged in every way that leads to it, all at once; then those that answered are asked for
//! their pictures ([`musubi_mcapi::engine::inspect`]) in the first way that worked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use musubi_linux::clock::now_ns;
use musubi_mcapi::engine::Outcome;
use musubi_mcapi::engine::inspect::{ChannelPicture, EndpointPicture, NodePicture, Part, PeerPicture};
use musubi_mcapi::{Error, NodeId};
use musubi_transport::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};
use musubi_transport::topology::Topology;

use super::tool::{Question, Tool, Way};

/// Most parts of a picture: a node of all endpoints needs a few.
const PARTS_MAX: usize = 32;

/// A node's picture of itself, put together, and when it was taken.
#[derive(Clone, Debug)]
pub struct Picture {
    /// An instant of [`now_ns`].
    pub at_ns: u64,
    pub node: NodePicture,
    pub peers: Vec<PeerPicture>,
    pub endpoints: Vec<EndpointPicture>,
    pub channels: Vec<ChannelPicture>,
    pub links: Vec<LinkStatus>,
    pub door: Option<AcceptorStatus>,
    pub wakes: Option<WakeStatus>,
    pub log: Vec<LoggedEvent>,
}

/// What came of asking a node.
#[derive(Clone, Debug)]
pub struct Found {
    /// The way it answered.
    pub way: Way,
    /// There and back, nanoseconds.
    pub rtt_ns: u64,
    /// `None` if it answered the ping, but gave no picture in time.
    pub picture: Option<Picture>,
}

/// Who asks.
pub struct Surveyor {
    topology: Arc<Topology>,
    tools: Vec<Tool>,
    /// Ways that cannot be used, and why.
    pub unusable: Vec<(Way, anyhow::Error)>,
    patience: Duration,
}

impl Surveyor {
    /// Starts the tools that the system's places need.
    ///
    /// # Errors
    /// None can be started.
    pub fn new(topology: &Arc<Topology>, patience: Duration) -> anyhow::Result<Surveyor> {
        let needed = |way: &Way| match topology.nodes.is_empty() {
            true => *way == Way::Shm,
            false => topology.nodes.keys().any(|node| Way::to(topology, *node).contains(way)),
        };
        let (mut tools, mut unusable) = (Vec::new(), Vec::new());
        for way in Way::ALL.into_iter().filter(needed) {
            match Tool::start(topology, way) {
                Ok(tool) => tools.push(tool),
                Err(error) => unusable.push((way, error)),
            }
        }
        if tools.is_empty() && !unusable.is_empty() {
            return Err(unusable.swap_remove(0).1);
        }
        Ok(Surveyor { topology: Arc::clone(topology), tools, unusable, patience })
    }

    /// Asks all nodes: those of the description, else those that are on this machine. `None`: no answer.
    ///
    /// # Errors
    /// The nodes of this machine cannot be listed.
    pub fn survey(&self, interrupted: &AtomicBool) -> anyhow::Result<BTreeMap<NodeId, Option<Found>>> {
        let nodes = self.nodes()?;
        let until_ns = now_ns() + self.patience.as_nanos() as u64;
        let mut asked = Vec::new();
        for node in &nodes {
            let ways = Way::to(&self.topology, *node);
            for tool in self.tools.iter().filter(|tool| ways.contains(&tool.way)) {
                asked.extend(tool.ping(*node, 0).ok().map(|question| (*node, tool, question)));
            }
        }
        let mut found: BTreeMap<NodeId, Option<Found>> = nodes.into_iter().map(|node| (node, None)).collect();
        for (node, tool, question) in asked {
            let Some(entry) = found.get_mut(&node) else { continue };
            let rtt_ns = self.pong(tool, question, until_ns, entry.is_some(), interrupted);
            if let (Some(rtt_ns), None) = (rtt_ns, &entry) {
                *entry = Some(Found { way: tool.way, rtt_ns, picture: self.picture(tool, node, interrupted) });
            }
        }
        Ok(found)
    }

    fn nodes(&self) -> anyhow::Result<Vec<NodeId>> {
        if !self.topology.nodes.is_empty() {
            return Ok(self.topology.named());
        }
        let present =
            musubi_linux::node::present(&self.topology.system).context("listing the nodes of this machine")?;
        let ids = present.into_iter().filter_map(|index| NodeId::from_index(usize::from(index)));
        Ok(ids.filter(|node| self.tools.iter().all(|tool| tool.id() != *node)).collect())
    }

    /// The time of a pong; a node that has answered already in another way is not waited for.
    fn pong(
        &self,
        tool: &Tool,
        question: Question,
        until_ns: u64,
        answered: bool,
        interrupted: &AtomicBool,
    ) -> Option<u64> {
        let until_ns = if answered { 0 } else { until_ns };
        match tool.answer(question, until_ns, interrupted) {
            Ok(Some(Outcome::Pong(time_ns))) => Some(time_ns),
            _ => None,
        }
    }

    fn picture(&self, tool: &Tool, node: NodeId, interrupted: &AtomicBool) -> Option<Picture> {
        let until_ns = now_ns() + self.patience.as_nanos() as u64;
        let mut picture: Option<Picture> = None;
        let mut next = Some(0);
        for _ in 0..PARTS_MAX {
            let Some(number) = next else { break };
            let part = self.part(tool, node, number, until_ns, interrupted).ok()??;
            let picture = picture.get_or_insert_with(|| Picture::new(part.node));
            picture.peers.extend(part.peers);
            picture.endpoints.extend(part.endpoints);
            picture.channels.extend(part.channels);
            picture.links.extend(part.links);
            picture.log.extend(part.log);
            picture.door = picture.door.or(part.door);
            picture.wakes = picture.wakes.or(part.wakes);
            // A part that does not go on would be asked for again and again.
            next = part.next.filter(|next| *next > number);
        }
        picture
    }

    fn part(
        &self,
        tool: &Tool,
        node: NodeId,
        number: u32,
        until_ns: u64,
        interrupted: &AtomicBool,
    ) -> Result<Option<Part>, Error> {
        let question = tool.inspect(node, number)?;
        match tool.answer(question, until_ns, interrupted)? {
            Some(Outcome::Picture(bytes)) => Ok(Part::decode(&bytes)),
            _ => Ok(None),
        }
    }
}

impl Picture {
    /// Nothing but the node itself.
    pub fn new(node: NodePicture) -> Picture {
        Picture {
            at_ns: now_ns(),
            node,
            peers: Vec::new(),
            endpoints: Vec::new(),
            channels: Vec::new(),
            links: Vec::new(),
            door: None,
            wakes: None,
            log: Vec::new(),
        }
    }

    /// Unread messages, packets and scalars.
    pub fn depth(&self) -> u64 {
        let messages = self.endpoints.iter().map(|endpoint| u64::from(endpoint.queued));
        messages.chain(self.channels.iter().map(|channel| u64::from(channel.depth))).sum()
    }
}
