//! The nodes of a measurement and the endpoints of what is measured.
//!
//! How it works: each process has two nodes, one that never sleeps while it waits and one that sleeps at once. On one
//! core there is the latter only: who polls there asks it without waiting, and lets the other process run in between. Both
//! processes open the same items in the same order, so a running number serves as port.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use musubi_mcapi::{Deadline, DeadlineExt, Endpoint, Error, Node, NodeId, Options, Remote, Topology};
use musubi_transport::topology::{Network, Place};

use super::line;
use super::settings::{Group, Settings};
use crate::bench::pair::{Pair, Side};
use crate::bench::sockets::How;

/// Longest wait for the other side; far beyond anything measured.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks whether the other side's endpoint is there.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// First port of our endpoints.
const PORT_FIRST: u32 = 1;
/// Byte offset of the words of the bare pages that tell the TCP ports of the nodes, by node number.
const PORTS: usize = 4096;
/// First port of nodes in namespaces of their own, where all are free.
const LINE_PORT: u16 = 7400;

/// A wait for the other side.
pub(super) fn patience() -> Deadline {
    Deadline::after(PATIENCE)
}

/// Waits, asleep between two looks. Under real-time scheduling a node that spins would keep its core from its own thread
/// that accepts connections, so that there would never be a link.
fn without_spinning<T>(mut look: impl FnMut(Deadline) -> Result<T, Error>) -> Result<T, Error> {
    let end = Instant::now() + PATIENCE;
    loop {
        match look(Deadline::Poll) {
            Err(Error::Timeout) if Instant::now() < end => thread::sleep(LOOK_EVERY),
            other => return other,
        }
    }
}

/// Our two nodes.
pub(super) struct Ends<'a> {
    pub side: Side,
    pub way: &'static str,
    pub settings: &'a Settings,
    polling: Option<Node>,
    sleeping: Node,
    port: Cell<u32>,
}

/// Our endpoint and that of the other side, at one port.
pub(super) struct Ours {
    pub node: Node,
    pub own: Endpoint,
    pub peer: Remote,
}

/// Number of a side's node.
fn number(side: Side, how: How) -> u32 {
    u32::from(side == Side::Pong) + if how == How::Block { 2 } else { 0 }
}

/// How the node is that is used so.
fn node_for(how: How, settings: &Settings) -> How {
    if settings.one_core { How::Block } else { how }
}

impl<'a> Ends<'a> {
    /// Nodes on this machine.
    pub fn sharing_memory(pair: &Pair, settings: &'a Settings) -> anyhow::Result<Ends<'a>> {
        let system = format!("{}-{}", pair.instance, u32::from(settings.one_core));
        Ends::start(pair, settings, "shm", Topology { system, ..Topology::single_machine() })
    }

    /// Nodes that use TCP.
    pub fn over_tcp(pair: &Pair, settings: &'a Settings, priorities: bool) -> anyhow::Result<Ends<'a>> {
        let hosts: [IpAddr; 2] = match settings.group {
            Group::Line => [line::ADDRESSES[0].parse()?, line::ADDRESSES[1].parse()?],
            _ => [Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()],
        };
        let mut nodes = BTreeMap::new();
        for side in [Side::Ping, Side::Pong] {
            for how in [How::Poll, How::Block] {
                let number = number(side, how);
                let id = NodeId::new(0, number).context("a node within the limits")?;
                let address = SocketAddr::new(hosts[usize::from(side == Side::Pong)], port(pair, settings, number)?);
                nodes.insert(id, Place { tcp: Some(address.to_string()), ..Place::default() });
            }
        }
        let network = Network { insecure: true, priorities, ..Network::default() };
        let system = pair.instance.clone();
        let way = if settings.group == Group::Line { "line" } else { "tcp" };
        Ends::start(pair, settings, way, Topology { system, hash: 1, nodes, network })
    }

    fn start(pair: &Pair, settings: &'a Settings, way: &'static str, system: Topology) -> anyhow::Result<Ends<'a>> {
        let system = Arc::new(system);
        let start = |how| {
            let mut options = Options::default();
            options.spin_ns = if how == How::Poll { u64::MAX } else { 0 };
            let number = number(pair.side, how);
            Node::initialize_with(&system, 0, number, options).with_context(|| format!("starting node 0:{number}"))
        };
        let polling = if settings.one_core { None } else { Some(start(How::Poll)?) };
        let sleeping = start(How::Block)?;
        Ok(Ends { side: pair.side, way, settings, polling, sleeping, port: Cell::new(PORT_FIRST) })
    }

    /// Our endpoint at the next port, and theirs.
    pub fn pair_up(&self, how: How) -> anyhow::Result<Ours> {
        let how = node_for(how, self.settings);
        let node = match how {
            How::Poll => self.polling.clone().context("a node that polls")?,
            How::Block => self.sleeping.clone(),
        };
        let port = self.port.replace(self.port.get() + 1);
        let own = node.create_endpoint(Some(port))?;
        let other = if self.side == Side::Ping { Side::Pong } else { Side::Ping };
        let mut finding = node.request_endpoint((0, number(other, how)), port)?;
        let peer = without_spinning(|until| finding.wait(until)).context("finding the other side's endpoint")?;
        Ok(Ours { node, own, peer })
    }
}

/// The TCP port of a node: a free one that ping found, told through the bare pages; fixed between namespaces.
fn port(pair: &Pair, settings: &Settings, number: u32) -> anyhow::Result<u16> {
    if settings.group == Group::Line {
        return Ok(LINE_PORT + number as u16);
    }
    let word = pair.pages.word(PORTS + number as usize * 4);
    if pair.side == Side::Ping {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        word.store(u32::from(free), Ordering::Release);
        pair.meet()?;
        return Ok(free);
    }
    pair.meet()?;
    Ok(word.load(Ordering::Acquire) as u16)
}
