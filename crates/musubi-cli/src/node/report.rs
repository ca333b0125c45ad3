//! What is said about nodes, for programs (JSON, docs/status.md) and as the source of the tables for people.
//!
//! How it works: rates are differences of two surveys; where a node has begun anew in between, it has none.

use std::collections::BTreeMap;

use musubi_mcapi::engine::endpoint_status as status;
use musubi_mcapi::engine::inspect::{ChannelPicture, PeerPicture};
use musubi_transport::NodeId;
use musubi_transport::status::WakeStatus;
use musubi_transport::topology::Topology;
use serde::Serialize;

use super::links::{self, Door, Event, Link};
use super::survey::{Found, Picture};

type Survey = BTreeMap<NodeId, Option<Found>>;

/// The nodes of a system.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub system: String,
    pub nodes: Vec<Node>,
    pub channels: Vec<Channel>,
    pub links: Vec<Link>,
    pub doors: Vec<Door>,
    pub events: Vec<Event>,
}

/// A node.
#[derive(Debug, Serialize)]
pub struct Node {
    pub node: String,
    pub name: String,
    pub running: bool,
    /// `shm` or `tcp`, as it answered.
    pub way: Option<&'static str>,
    pub rtt_ns: Option<u64>,
    pub incarnation: Option<u32>,
    pub endpoints: Option<u32>,
    /// Ends of channels.
    pub channels: Option<usize>,
    /// Unread messages, packets and scalars.
    pub depth: Option<u64>,
    pub requests: Option<u32>,
    /// Nodes that it is linked with.
    pub linked: Option<usize>,
    pub refused: Option<u64>,
    pub messages_dropped: Option<u64>,
    /// Times that threads of its program which slept in a call were woken; this and the next `None` of an older version.
    pub woken: Option<u64>,
    pub filtered: Option<Filtered>,
    pub rates: Option<Rates>,
}

/// The frames of a node's classes that have a filter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Filtered {
    pub frames: u64,
    /// Of those, how many woke at once.
    pub raised: u64,
    /// Wake-ups that came later.
    pub deferred: u64,
}

/// What went through a node, each second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    pub messages_sent: f64,
    pub messages_received: f64,
    pub channel_items: f64,
    pub channel_bytes: f64,
    /// Payload of messages, packets and scalars that this node sent.
    pub bytes_sent: f64,
    /// Likewise, that it received.
    pub bytes_received: f64,
    /// Times that sleeping threads of its program were woken; `None` of an older version.
    pub woken: Option<f64>,
}

/// An end of a channel.
#[derive(Debug, Serialize)]
pub struct Channel {
    pub node: String,
    /// This end, as `DOMAIN:NODE/SLOT.GENERATION`.
    pub endpoint: String,
    pub other: String,
    pub kind: &'static str,
    pub direction: &'static str,
    pub state: &'static str,
    pub depth: u32,
    pub items: u64,
    pub bytes: u64,
    pub items_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
}

impl Report {
    /// Of one survey, and of an earlier one for the rates.
    pub fn new(topology: &Topology, before: Option<&Survey>, now: &Survey) -> Report {
        let mut report = Report { system: topology.system.clone(), ..Report::default() };
        for (id, found) in now {
            let picture = found.as_ref().and_then(|found| found.picture.as_ref());
            let earlier = before.and_then(|before| before.get(id)?.as_ref()?.picture.as_ref());
            let earlier = earlier.filter(|earlier| same_run(earlier, picture));
            report.nodes.push(Node::new(topology, *id, found.as_ref(), earlier));
            let Some(picture) = picture else { continue };
            report.channels.extend(channels(*id, picture, earlier));
            report.links.extend(links::of(*id, &picture.links));
            report.doors.extend(picture.door.map(|door| Door::new(*id, door)));
            report.events.extend(picture.log.iter().map(|entry| Event::new(*id, entry)));
        }
        report
    }
}

fn same_run(earlier: &Picture, picture: Option<&Picture>) -> bool {
    picture.is_some_and(|picture| picture.node.incarnation == earlier.node.incarnation && picture.at_ns > earlier.at_ns)
}

impl Node {
    fn new(topology: &Topology, id: NodeId, found: Option<&Found>, earlier: Option<&Picture>) -> Node {
        let picture = found.and_then(|found| found.picture.as_ref());
        let linked =
            |picture: &Picture| picture.peers.iter().filter(|peer| peer.standing == 1 && !peer.node.is_tool()).count();
        Node {
            node: id.to_string(),
            name: topology.nodes.get(&id).map(|place| place.name.clone()).unwrap_or_default(),
            running: found.is_some(),
            way: found.map(|found| found.way.word()),
            rtt_ns: found.map(|found| found.rtt_ns),
            incarnation: picture.map(|picture| picture.node.incarnation),
            endpoints: picture.map(|picture| picture.node.endpoints),
            channels: picture.map(|picture| picture.channels.len()),
            depth: picture.map(Picture::depth),
            requests: picture.map(|picture| picture.node.requests),
            linked: picture.map(linked),
            refused: picture.map(|picture| picture.node.refused),
            messages_dropped: picture.map(|picture| picture.node.messages_dropped),
            woken: picture.and_then(|picture| Some(picture.wakes?.woken)),
            filtered: picture.and_then(|picture| picture.wakes.map(Filtered::of)),
            rates: picture.zip(earlier).map(|(picture, earlier)| Rates::of(earlier, picture)),
        }
    }
}

impl Filtered {
    fn of(WakeStatus { frames, raised, deferred, .. }: WakeStatus) -> Filtered {
        Filtered { frames, raised, deferred }
    }
}

impl Rates {
    fn of(earlier: &Picture, now: &Picture) -> Rates {
        let seconds = (now.at_ns - earlier.at_ns) as f64 / 1e9;
        let sums = |picture: &Picture| {
            let sent: u64 = picture.peers.iter().map(|peer| peer.messages_sent).sum();
            let received: u64 = picture.peers.iter().map(|peer| peer.messages_received).sum();
            let of_messages = |of: fn(&PeerPicture) -> u64| picture.peers.iter().map(of).sum::<u64>();
            let in_channels = |bit: u32| {
                let channels = picture.channels.iter().filter(|channel| channel.status & bit != 0);
                channels.map(|channel| channel.bytes).sum::<u64>()
            };
            [
                sent,
                received,
                picture.channels.iter().map(|channel| channel.items).sum(),
                picture.channels.iter().map(|channel| channel.bytes).sum(),
                of_messages(|peer| peer.message_bytes_sent.unwrap_or(0)) + in_channels(status::SEND),
                of_messages(|peer| peer.message_bytes_received.unwrap_or(0)) + in_channels(status::RECEIVE),
            ]
        };
        let wakes = earlier.wakes.zip(now.wakes).map(|(earlier, now)| now.woken.saturating_sub(earlier.woken));
        let (earlier, now) = (sums(earlier), sums(now));
        // Channels and peers come and go, so a sum may shrink.
        let rate = |at: usize| now[at].saturating_sub(earlier[at]) as f64 / seconds;
        Rates {
            messages_sent: rate(0),
            messages_received: rate(1),
            channel_items: rate(2),
            channel_bytes: rate(3),
            bytes_sent: rate(4),
            bytes_received: rate(5),
            woken: wakes.map(|count| count as f64 / seconds),
        }
    }
}

fn channels(id: NodeId, picture: &Picture, earlier: Option<&Picture>) -> Vec<Channel> {
    let seconds = earlier.map(|earlier| (picture.at_ns - earlier.at_ns) as f64 / 1e9);
    let describe = |channel: &ChannelPicture| {
        let same = |old: &&ChannelPicture| old.endpoint == channel.endpoint && old.items <= channel.items;
        let old = earlier.and_then(|earlier| earlier.channels.iter().find(same)).zip(seconds);
        let rate = |now: u64, before: fn(&ChannelPicture) -> u64| {
            old.map(|(old, seconds)| now.saturating_sub(before(old)) as f64 / seconds)
        };
        Channel {
            node: id.to_string(),
            endpoint: channel.endpoint.to_string(),
            other: channel.other.to_string(),
            kind: if channel.status & status::SCALAR_CHANNEL != 0 { "scalar" } else { "packet" },
            direction: if channel.status & status::SEND != 0 { "sends" } else { "receives" },
            state: state(channel.status),
            depth: channel.depth,
            items: channel.items,
            bytes: channel.bytes,
            items_per_s: rate(channel.items, |old| old.items),
            bytes_per_s: rate(channel.bytes, |old| old.bytes),
        }
    };
    picture.channels.iter().map(describe).collect()
}

fn state(bits: u32) -> &'static str {
    let states = [
        (status::CLOSE_PENDING, "closing"),
        (status::OPEN, "open"),
        (status::OPEN_PENDING, "opening"),
        (status::CONNECTED, "connected"),
    ];
    states.iter().find(|(bit, _)| bits & bit != 0).map_or("not connected", |(_, word)| word)
}

#[cfg(test)]
mod tests {
    use musubi_mcapi::EndpointId;
    use musubi_mcapi::engine::inspect::NodePicture;

    use super::super::tool::Way;
    use super::*;

    fn survey(at_ns: u64, incarnation: u32, items: u64) -> Survey {
        let id = NodeId::new(0, 1).unwrap();
        let node = NodePicture {
            node: id,
            incarnation,
            endpoints: 1,
            peers: 0,
            requests: 0,
            gets_held: 0,
            refused: 0,
            messages_dropped: 0,
        };
        let endpoint = EndpointId::new(id, 3, 1);
        let status = status::OPEN | status::CONNECTED | status::PACKET_CHANNEL | status::RECEIVE;
        let channel = ChannelPicture { endpoint, other: endpoint, status, depth: 2, items, bytes: items * 100 };
        let peer = PeerPicture {
            node: id,
            standing: 1,
            incarnation: 1,
            unconfirmed: 0,
            waiting: 0,
            held_back: 0,
            asked: 0,
            messages_sent: 0,
            messages_received: 0,
            frames_received: 0,
            refused: 0,
            links: 1,
            message_bytes_sent: Some(items * 3),
            message_bytes_received: Some(items * 5),
        };
        let picture = Picture {
            at_ns,
            peers: vec![peer],
            channels: vec![channel],
            wakes: Some(WakeStatus { woken: 7 * items, frames: 100, raised: 4, deferred: 2 }),
            ..Picture::new(node)
        };
        let found = Found { way: Way::Shm, rtt_ns: 5_000, picture: Some(picture) };
        BTreeMap::from([(id, Some(found)), (NodeId::new(0, 2).unwrap(), None)])
    }

    #[test]
    fn rates_are_differences_over_time() {
        let topology = Topology::single_machine();
        let (before, now) = (survey(1_000_000_000, 7, 100), survey(3_000_000_000, 7, 300));
        let report = Report::new(&topology, Some(&before), &now);
        let rates = report.nodes[0].rates.unwrap();
        assert_eq!((rates.channel_items, rates.channel_bytes), (100.0, 10_000.0));
        // The channel's end receives; messages count beside it.
        assert_eq!((rates.bytes_sent, rates.bytes_received), (200.0 * 3.0 / 2.0, 10_000.0 + 200.0 * 5.0 / 2.0));
        assert_eq!(report.channels[0].items_per_s, Some(100.0));
        assert_eq!((report.channels[0].state, report.channels[0].direction), ("open", "receives"));
        assert_eq!((report.nodes[0].depth, report.nodes[1].running), (Some(2), false));
        let filtered = Filtered { frames: 100, raised: 4, deferred: 2 };
        assert_eq!((report.nodes[0].woken, report.nodes[0].filtered), (Some(2100), Some(filtered)));
        assert_eq!(rates.woken, Some(700.0));
    }

    #[test]
    fn a_node_of_an_older_version_has_no_rate_of_wake_ups() {
        let (mut before, now) = (survey(1_000_000_000, 7, 100), survey(3_000_000_000, 7, 300));
        for found in before.values_mut().flatten() {
            found.picture.as_mut().unwrap().wakes = None;
        }
        let rates = Report::new(&Topology::single_machine(), Some(&before), &now).nodes[0].rates.unwrap();
        assert_eq!((rates.channel_items, rates.woken), (100.0, None));
    }

    #[test]
    fn a_node_that_began_anew_has_no_rates() {
        let (before, now) = (survey(1_000_000_000, 7, 100), survey(3_000_000_000, 8, 5));
        let report = Report::new(&Topology::single_machine(), Some(&before), &now);
        assert_eq!(report.nodes[0].rates, None);
        assert_eq!(report.channels[0].items_per_s, None);
    }
}
