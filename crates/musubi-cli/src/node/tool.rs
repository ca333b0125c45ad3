//! The command as a node: which number it has, and how it asks others.
//!
//! How it works: a described system keeps numbers for tools, some that reach nodes by shared memory and some by TCP
//! ([`musubi_mcapi::limits::TOOL_NODES`]); the first free one is taken. Who uses shared memory has claimed its number by that;
//! over TCP, where a later node of a number takes an earlier one's links, the command claims it on this machine by the name of
//! a socket, and passes over those without a certificate here. In a system without a description every number
//! is an ordinary one, and the highest free one is taken. Requests are waited for in slices, so that Ctrl-C is seen.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;
use musubi_mcapi::engine::{Engine, Outcome, RequestId};
use musubi_mcapi::limits::{TOOL_DOMAIN, TOOL_NODE_TCP, TOOL_NODES};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{Error, NodeId};
use musubi_transport::links::Links as _;
use musubi_transport::runtime::{Block, NodeLinks, Options};
use musubi_transport::tcp;
use musubi_transport::topology::Topology;
use musubi_transport::{LinkError, notices};

use crate::failure::Failure;

/// Longest wait before the signals are looked at, in nanoseconds.
const SLICE_NS: u64 = 50_000_000;

/// How nodes are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// Shared memory of this machine
    Shm,
    /// TCP
    Tcp,
}

impl Way {
    /// Both, in the order in which they are tried.
    pub const ALL: [Way; 2] = [Way::Shm, Way::Tcp];

    /// As it is written in descriptions.
    pub fn word(self) -> &'static str {
        match self {
            Way::Shm => "shm",
            Way::Tcp => "tcp",
        }
    }

    /// The ways that lead to a node.
    pub fn to(topology: &Topology, node: NodeId) -> Vec<Way> {
        let Some(place) = topology.nodes.get(&node) else { return vec![Way::Shm] };
        let has = |way: &Way| match way {
            Way::Shm => place.shared_memory.is_some(),
            Way::Tcp => place.tcp.is_some(),
        };
        Way::ALL.into_iter().filter(has).collect()
    }
}

/// A node that asks others.
pub struct Tool {
    /// The ways that it reaches others.
    pub way: Way,
    node: Node,
    /// Keeps the number from others.
    _claim: Claim,
}

/// A question that has been asked.
#[derive(Clone, Copy, Debug)]
pub struct Question(RequestId);

impl Tool {
    /// Starts the first of the nodes that are kept for this way and are free.
    ///
    /// # Errors
    /// None is free, or nodes cannot start here.
    pub fn start(topology: &Arc<Topology>, way: Way) -> anyhow::Result<Tool> {
        let by = |me| Node::start(Arc::clone(topology), me, Options::default());
        let (node, claim) = first_free(topology, way, by)?;
        Ok(Tool { way, node, _claim: claim })
    }

    /// Asks for so many bytes to be sent back.
    ///
    /// # Errors
    /// As [`Engine::ping`].
    pub fn ping(&self, peer: NodeId, bytes: usize) -> Result<Question, Error> {
        self.ask(|engine, links| engine.ping(now_ns(), peer, bytes, links))
    }

    /// Asks for a part of its picture.
    ///
    /// # Errors
    /// As [`Engine::inspect`].
    pub fn inspect(&self, peer: NodeId, part: u32) -> Result<Question, Error> {
        self.ask(|engine, links| engine.inspect(peer, part, links))
    }

    /// The node that we are.
    pub fn id(&self) -> NodeId {
        self.node.id()
    }

    /// What happened last to its connections over TCP.
    pub fn last_event(&self) -> Option<String> {
        let log = self.node.with(|_, links| links.log()).ok()?;
        log.into_iter().min_by_key(|entry| entry.age_ns).map(|entry| entry.text)
    }

    fn ask(
        &self,
        question: impl FnOnce(&mut Engine<Block>, &mut NodeLinks) -> Result<RequestId, Error>,
    ) -> Result<Question, Error> {
        self.node.with(question)?.map(Question)
    }

    /// Waits for the answer to a question until an instant of [`now_ns`], or until `interrupted`; a question without an
    /// answer is taken back and gives `None`.
    ///
    /// # Errors
    /// Why the node, or this one, could not answer.
    pub fn answer(
        &self,
        question: Question,
        until_ns: u64,
        interrupted: &AtomicBool,
    ) -> Result<Option<Outcome<Block>>, Error> {
        loop {
            let slice = Deadline::At(until_ns.min(now_ns() + SLICE_NS));
            let answer = self.node.wait_for(slice, |engine, _| engine.take_outcome(question.0).transpose());
            match answer.map_err(Error::from) {
                Ok(outcome) => return outcome?.map(Some),
                Err(Error::Timeout) if now_ns() >= until_ns || interrupted.load(Ordering::Relaxed) => break,
                Err(Error::Timeout) => {}
                Err(error) => return Err(error),
            }
        }
        self.node.with(|engine, links| engine.drop_request(question.0, links))?;
        Ok(None)
    }
}

/// What keeps the number of a tool from others, while it lives.
pub type Claim = Option<UnixDatagram>;

/// Starts the first of the nodes that are kept for this way and are free.
///
/// # Errors
/// None is free, or nodes cannot start here.
pub fn first_free<N>(
    topology: &Arc<Topology>,
    way: Way,
    start: impl Fn(NodeId) -> Result<N, LinkError>,
) -> anyhow::Result<(N, Claim)> {
    // The command says itself what is wrong.
    notices::set_level(0);
    let mut obstacle = None;
    for number in numbers(topology, way) {
        let me = NodeId::new(TOOL_DOMAIN, number).context("the numbers of tools are within the limits")?;
        let claim = match way {
            Way::Shm => None,
            Way::Tcp => match claim(topology, me) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
                claimed => Some(claimed.context("claiming a number on this machine")?),
            },
        };
        match start(me).map_err(Error::from) {
            Ok(node) => return Ok((node, claim)),
            Err(Error::NodeInitialized) => {}
            Err(error) if lacks_keys(topology, me, way) => obstacle = obstacle.or(Some((me, error))),
            Err(error) => return Err(why_not(topology, me, way, error)),
        }
    }
    match obstacle {
        Some((me, error)) => Err(why_not(topology, me, way, error)),
        None => anyhow::bail!("all nodes that are kept for tools are running already"),
    }
}

/// Takes the number of a tool on this machine, as long as the socket is open.
fn claim(topology: &Topology, me: NodeId) -> std::io::Result<UnixDatagram> {
    let name = format!("musubi/{}/{:016x}/tool/{me}", topology.system, topology.hash);
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

fn lacks_keys(topology: &Arc<Topology>, me: NodeId, way: Way) -> bool {
    way == Way::Tcp && matches!(tcp::obstacle(topology, me), Some(tcp::Error::Keys(_)))
}

/// Why a tool cannot start; where its links over TCP are in the way, what exactly.
fn why_not(topology: &Arc<Topology>, me: NodeId, way: Way, error: Error) -> anyhow::Error {
    let what = format!("this command cannot be node {me} of the system");
    let obstacle = if way == Way::Tcp { tcp::obstacle(topology, me) } else { None };
    match obstacle {
        Some(tcp::Error::Keys(why)) => {
            let help = format!("it needs a certificate of its own: `musubi keys issue {me}`, where the authority is");
            Failure::new(format!("{what}: {why}"), help).into()
        }
        Some(why) => anyhow::Error::new(why).context(what),
        None => {
            let help = format!("with {}=1 in the environment the reason is said", notices::VARIABLE);
            Failure::new(format!("{what}: {error}"), help).into()
        }
    }
}

fn numbers(topology: &Topology, way: Way) -> Vec<u32> {
    match (topology.nodes.is_empty(), way) {
        (true, _) => TOOL_NODES.rev().collect(),
        (false, Way::Shm) => (*TOOL_NODES.start()..TOOL_NODE_TCP).collect(),
        (false, Way::Tcp) => (TOOL_NODE_TCP..=*TOOL_NODES.end()).collect(),
    }
}

/// Sleeps until an instant of [`now_ns`], or until `interrupted`.
pub fn sleep_until(instant_ns: u64, interrupted: &AtomicBool) {
    loop {
        let left_ns = instant_ns.saturating_sub(now_ns());
        if left_ns == 0 || interrupted.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_nanos(left_ns.min(SLICE_NS)));
    }
}

#[cfg(test)]
mod tests {
    use musubi_transport::topology::Place;

    use super::*;

    #[test]
    fn a_way_is_tried_only_where_there_is_one() {
        let mut topology = Topology::single_machine();
        let id = |node| NodeId::new(0, node).unwrap();
        assert_eq!(Way::to(&topology, id(1)), [Way::Shm]);
        let tcp = Some("h:1".to_owned());
        topology.nodes.insert(id(1), Place { tcp: tcp.clone(), ..Place::default() });
        topology.nodes.insert(id(2), Place { tcp, shared_memory: Some(String::new()), ..Place::default() });
        assert_eq!(Way::to(&topology, id(1)), [Way::Tcp]);
        assert_eq!(Way::to(&topology, id(2)), Way::ALL);
        assert!(Way::ALL.iter().all(|way| {
            numbers(&topology, *way).iter().all(|number| NodeId::new(TOOL_DOMAIN, *number).unwrap().is_tool())
        }));
    }
}
