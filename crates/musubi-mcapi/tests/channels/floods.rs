//! A hostile node that makes us talk to others, one of which does not keep up: that one loses nothing by it, and neither do we.

use musubi_mcapi::engine::frame::{Header, Kind};
use musubi_mcapi::engine::{ChannelKind, Outcome};
use musubi_mcapi::limits::{PACKET_BYTES_MAX, PRIORITIES};
use musubi_mcapi::{EndpointId, Error};

use super::world::{Channel, Mode, World, node};

use ChannelKind::Packet;

const BOTH: [Mode; 2] = [Mode::Memory, Mode::Network];
/// The node that is flooded, the one that does not keep up, the hostile one.
const VICTIM: usize = 0;
const SLOW: usize = 1;
const HOSTILE: usize = 2;
/// Frames of a class that a link takes.
const ROOM: usize = 32;
/// Endpoints with which the hostile node does it.
const MANY: usize = 200;
/// How often it does it.
const TIMES: u32 = 40_000;
/// How many frames the slow node takes at a time, and after how many of the hostile one's doings.
const TAKES: usize = 8;
const EVERY: u32 = 200;

/// A channel from the victim to the slow node, both linked with the hostile one too.
fn scene(mode: Mode) -> (World, Channel) {
    let mut world = World::new(3, mode);
    let channel = world.channel(Packet, VICTIM, SLOW);
    for (at, with) in [(HOSTILE, VICTIM), (HOSTILE, SLOW)] {
        let there = world.create(with);
        let here = world.create(at);
        let request = world.call(at, |engine, links| engine.send_message_later(here, there, 0, b"x".to_vec(), links));
        world.settle();
        assert!(matches!(world.outcome(at, request.unwrap()), Ok(Outcome::Sent(1))));
    }
    world.net.room = ROOM;
    world.net.slow = Some(SLOW);
    (world, channel)
}

/// The hostile node says that it connects its endpoint with one of the victim's, or that it does not any more.
fn flip(world: &mut World, from: EndpointId, to: EndpointId, connect: bool) {
    let attributes = [PACKET_BYTES_MAX as u32, 0, 0, u32::from(PRIORITIES), 0];
    let attributes: Vec<u8> = attributes.iter().flat_map(|value| value.to_le_bytes()).collect();
    let to = to.bits();
    match connect {
        true => {
            let header = Header { from: from.bits(), to, tag: 7, value: 2, ..Header::new(Kind::ConnectAccept as u8) };
            world.forge(HOSTILE, VICTIM, header, &attributes);
        }
        false => {
            let header = Header { to, tag: 7, value: 1, ..Header::new(Kind::Disconnect as u8) };
            world.forge(HOSTILE, VICTIM, header, &[]);
        }
    }
}

/// A program of the victim's sends packets to the slow node, which reads them: counts those that came.
struct Traffic {
    channel: Channel,
    sent: u32,
    came: u32,
}

impl Traffic {
    fn go_on(&mut self, world: &mut World) {
        while let Ok(musubi_mcapi::engine::Sending::Done) =
            world.send(VICTIM, self.channel.sending, &self.sent.to_le_bytes())
        {
            self.sent += 1;
        }
    }

    fn read(&mut self, world: &mut World) {
        while let Some(packet) = world.receive(SLOW, self.channel.receiving).unwrap() {
            assert_eq!(packet, self.came.to_le_bytes());
            self.came += 1;
            world.release(SLOW, self.channel.receiving, packet.len());
        }
        while world.step(0) {}
    }
}

/// Does something hostile so often, while a slow node takes its time and a program sends to it. Gives how many packets came.
fn under_flood(world: &mut World, channel: Channel, mut hostile: impl FnMut(&mut World, u32)) -> u32 {
    let mut traffic = Traffic { channel, sent: 0, came: 0 };
    for time in 0..TIMES {
        hostile(world, time);
        if time % 16 == 0 {
            traffic.go_on(world);
        }
        if time % EVERY == 0 {
            world.take_some(VICTIM, SLOW, TAKES);
            traffic.go_on(world);
            traffic.read(world);
        }
    }
    let came = traffic.came;
    world.net.slow = None;
    for _ in 0..4 {
        world.settle();
        traffic.read(world);
    }
    assert_eq!(traffic.came, traffic.sent, "nothing is lost");
    came
}

fn crowded_out(world: &mut World) -> u64 {
    world.call(VICTIM, |engine, _| engine.counters().crowded_out)
}

#[test]
fn news_of_connections_costs_a_slow_node_no_data_and_no_control() {
    for mode in BOTH {
        for connected_in_the_end in [false, true] {
            let (mut world, channel) = scene(mode);
            let theirs = world.create(HOSTILE);
            let all: Vec<EndpointId> = (0..MANY).map(|_| world.create(VICTIM)).collect();
            let ours = all[0];
            let other = world.create(SLOW);
            let came = under_flood(&mut world, channel, |world, time| {
                flip(world, theirs, all[time as usize / 2 % MANY], time % 2 == 0);
                world.step(0);
            });
            assert!(came > TIMES / EVERY, "{mode:?}: {came} packets came");
            assert_eq!(crowded_out(&mut world), 0, "{mode:?}: nothing is dropped");
            if connected_in_the_end {
                flip(&mut world, theirs, ours, true);
            }
            world.settle();
            let sent = world.call(SLOW, |engine, links| engine.send_message(other, ours, 0, b"x", links));
            assert_eq!(sent.is_err_and(|error| error == Error::General), connected_in_the_end, "{mode:?}");
            world.close_both(&channel);
        }
    }
}

#[test]
fn connecting_and_taking_it_back_costs_a_slow_node_no_data_and_no_control() {
    for mode in BOTH {
        let (mut world, channel) = scene(mode);
        let all: Vec<EndpointId> = (0..MANY).map(|_| world.create(VICTIM)).collect();
        let to = world.create(SLOW);
        let came = under_flood(&mut world, channel, |world, time| {
            let from = all[time as usize % MANY];
            let header = Header { from: from.bits(), to: to.bits(), tag: 9, ..Header::new(Kind::Connect as u8) };
            world.forge(HOSTILE, VICTIM, Header { value: 2, ..header }, &[]);
            world.forge(HOSTILE, VICTIM, Header { kind: Kind::Disconnect as u8, ..header }, &[]);
            world.step(time as usize);
        });
        assert!(came > TIMES / EVERY, "{mode:?}: {came} packets came");
        assert_eq!(crowded_out(&mut world), 0, "{mode:?}: nothing is dropped");
        // What was taken back last is taken back at both ends.
        for (at, end) in all.into_iter().map(|from| (VICTIM, from)).chain([(SLOW, to)]) {
            assert_eq!(world.call(at, |engine, links| engine.delete_endpoint(end, links)), Ok(()), "{mode:?}");
        }
        world.close_both(&channel);
    }
}

#[test]
fn what_a_node_wishes_of_two_others_is_asked_so_often_at_a_time_and_of_one_at_once() {
    const COUNT: usize = 100;
    for (receiver, at_once) in [(VICTIM, COUNT..=COUNT), (SLOW, 1..=COUNT / 2)] {
        let mut world = World::new(3, Mode::Memory);
        let pairs: Vec<_> = (0..COUNT).map(|_| (world.create(VICTIM), world.create(receiver))).collect();
        for (at, with) in [(HOSTILE, VICTIM), (VICTIM, SLOW)] {
            let ping = world.call(at, |engine, links| engine.ping(0, node(with), 0, links)).unwrap();
            world.settle();
            assert!(matches!(world.outcome(at, ping), Ok(Outcome::Pong(_))));
        }
        let requests: Vec<_> = pairs.iter().map(|(from, to)| world.connect(HOSTILE, Packet, *from, *to)).collect();
        // Each frame takes a thousandth of the time in which so much is asked.
        while world.step(0) {}
        let done = requests.iter().filter(|request| !world.pending(HOSTILE, **request)).count();
        assert!(at_once.contains(&done), "{done} are done at once");
        world.settle();
        for request in requests {
            world.done(HOSTILE, request);
        }
    }
}
