//! What a peer may say that the protocol does not know: refused, counted, and nothing of ours changes.

use musubi_mcapi::EndpointId;
use musubi_mcapi::engine::frame::{Header, KINDS, Kind};
use musubi_mcapi::engine::{ChannelKind, Counters, Sending};
use musubi_mcapi::limits::{PACKET_CREDIT, SCALAR_CREDIT};
use musubi_transport::Priority;

use super::orders::exchange;
use super::world::{Channel, Mode, World, node};

use ChannelKind::{Packet, Scalar};

/// With this bit the receiving end says the number of a connection.
const OF_RECEIVER: u32 = 1 << 31;

/// An open channel from node 0 to node 1, the number of its connection, and a link with node 2 that is to misbehave.
struct Scene {
    world: World,
    channel: Channel,
    number: u32,
}

fn scene(kind: ChannelKind) -> Scene {
    let mut world = World::new(3, Mode::Network);
    for (a, b) in [(2, 0), (2, 1)] {
        let request = world.call(a, |engine, links| engine.ping(0, node(b), 0, links)).unwrap();
        world.settle();
        world.call(a, |engine, links| engine.drop_request(request, links));
    }
    let channel = world.channel(kind, 0, 1);
    let number = world.net.connection;
    Scene { world, channel, number }
}

impl Scene {
    fn counters(&mut self, at: usize) -> Counters {
        self.world.call(at, |engine, _| engine.counters())
    }

    /// A frame that must be counted as `what` and change nothing.
    fn refused(&mut self, from: usize, to: usize, header: Header, payload: &[u8], what: fn(&Counters) -> u64) {
        let before = self.counters(to);
        self.world.forge(from, to, header, payload);
        let after = self.counters(to);
        assert_eq!(what(&after), what(&before) + 1, "{header:?}");
        exchange(&mut self.world, &self.channel);
    }
}

fn late(counters: &Counters) -> u64 {
    counters.late
}

fn contradictory(counters: &Counters) -> u64 {
    counters.contradictory
}

#[test]
fn frames_of_a_node_that_has_no_part_in_the_channel() {
    let mut scene = scene(Packet);
    let (to, from, number) = (scene.channel.to.bits(), scene.channel.from.bits(), scene.number);
    for kind in [Kind::Packet, Kind::Scalar, Kind::Open, Kind::Close] {
        let payload: &[u8] = if kind == Kind::Scalar { &[0; 8] } else { &[] };
        scene.refused(2, 1, Header { to, tag: number, value: 1, ..Header::new(kind as u8) }, payload, late);
        scene.refused(2, 0, Header { to: from, tag: number, value: 1, ..Header::new(kind as u8) }, payload, late);
    }
    let credit = Header { to: from, from: number, value: 1, ..Header::new(Kind::ChannelCredit as u8) };
    scene.refused(2, 0, credit, &[], late);
    scene.refused(2, 1, Header { to, tag: number, value: 1, ..Header::new(Kind::Disconnect as u8) }, &[], late);
}

#[test]
fn frames_of_other_connections() {
    let mut scene = scene(Packet);
    let to = scene.channel.to.bits();
    for tag in [0, scene.number.wrapping_add(1), u32::MAX] {
        for kind in [Kind::Packet, Kind::Open, Kind::Close, Kind::Disconnect] {
            scene.refused(0, 1, Header { to, tag, value: 1, ..Header::new(kind as u8) }, &[], late);
        }
    }
    for to in [0, 0xdead_beef, EndpointId::new(node(1), 900, 3).bits()] {
        scene.refused(0, 1, Header { to, tag: scene.number, ..Header::new(Kind::Packet as u8) }, &[], late);
    }
}

#[test]
fn data_of_the_wrong_kind_or_direction() {
    let mut packets = scene(Packet);
    let (to, from, number) = (packets.channel.to.bits(), packets.channel.from.bits(), packets.number);
    let scalar = Header { to, tag: number, value: 4, ..Header::new(Kind::Scalar as u8) };
    packets.refused(0, 1, scalar, &[0; 8], contradictory);
    packets.refused(
        1,
        0,
        Header { to: from, tag: number | OF_RECEIVER, ..Header::new(Kind::Packet as u8) },
        b"x",
        contradictory,
    );
    let mut scalars = scene(Scalar);
    let (to, number) = (scalars.channel.to.bits(), scalars.number);
    scalars.refused(0, 1, Header { to, tag: number, ..Header::new(Kind::Packet as u8) }, b"x", contradictory);
    for (size, payload) in [(3_u32, 8), (0, 8), (256 + 4, 8), (4, 7), (4, 0)] {
        let header = Header { to, tag: number, value: size, ..Header::new(Kind::Scalar as u8) };
        scalars.refused(0, 1, header, &[0; 8][..payload], |counters| counters.malformed);
    }
}

#[test]
fn more_than_the_credit() {
    for (kind, credit) in [(Packet, PACKET_CREDIT), (Scalar, SCALAR_CREDIT)] {
        let mut scene = scene(kind);
        let (to, tag) = (scene.channel.to.bits(), scene.number);
        let (frame, payload): (_, &[u8]) = match kind {
            Packet => (Header { to, tag, ..Header::new(Kind::Packet as u8) }, b"x"),
            Scalar => (Header { to, tag, value: 1, ..Header::new(Kind::Scalar as u8) }, &[0; 8]),
        };
        for _ in 0..credit + 100 {
            scene.world.forge(0, 1, frame, payload);
        }
        assert_eq!(scene.counters(1).overruns, 100);
        let receiving = scene.channel.receiving;
        let queued = scene.world.call(1, |engine, _| engine.channel_available(kind, receiving));
        assert_eq!(queued, Ok(credit as usize));
    }
}

#[test]
fn credit_for_what_was_never_sent() {
    let mut scene = scene(Packet);
    let (to, from) = (scene.channel.from.bits(), scene.number | OF_RECEIVER);
    for (value, tag) in [(1, 0), (0, 1), (u32::MAX, u32::MAX), (1000, 0)] {
        let before = scene.counters(0).contradictory;
        scene.world.forge(1, 0, Header { to, from, value, tag, ..Header::new(Kind::ChannelCredit as u8) }, &[]);
        assert_eq!(scene.counters(0).contradictory, before + 1);
    }
    // The window is what it was.
    let sending = scene.channel.sending;
    let mut sent = 0;
    while scene.world.send(0, sending, b"x") == Ok(Sending::Done) {
        sent += 1;
    }
    assert_eq!(sent, PACKET_CREDIT);
}

#[test]
fn a_second_close_and_what_comes_after_it() {
    let mut scene = scene(Packet);
    let (to, tag) = (scene.channel.to.bits(), scene.number);
    let before = scene.counters(1).contradictory;
    scene.world.forge(0, 1, Header { to, tag, ..Header::new(Kind::Close as u8) }, &[]);
    assert_eq!(scene.counters(1).contradictory, before);
    for kind in [Kind::Close, Kind::Packet] {
        scene.world.forge(0, 1, Header { to, tag, ..Header::new(kind as u8) }, &[]);
    }
    assert_eq!(scene.counters(1).contradictory, before + 2);
    let (receiving, world) = (scene.channel.receiving, &mut scene.world);
    let closing = world.close(1, Packet, true, receiving).unwrap();
    world.done(1, closing);
}

#[test]
fn undoing_a_connection_that_is_open() {
    let mut scene = scene(Packet);
    let (to, from, tag) = (scene.channel.to.bits(), scene.channel.from.bits(), scene.number);
    scene.refused(0, 1, Header { to, tag, value: 1, ..Header::new(Kind::Disconnect as u8) }, &[], contradictory);
    scene.refused(
        1,
        0,
        Header { to: from, tag: tag | OF_RECEIVER, value: 1, ..Header::new(Kind::Disconnect as u8) },
        &[],
        contradictory,
    );
}

#[test]
fn an_end_that_was_never_opened_takes_no_data() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    let connecting = world.connect(0, Packet, from, to);
    world.settle();
    world.done(0, connecting);
    let (to, tag) = (to.bits(), world.net.connection);
    for (n, kind) in [Kind::Packet, Kind::Close].into_iter().enumerate() {
        world.forge(0, 1, Header { to, tag, ..Header::new(kind as u8) }, &[]);
        assert_eq!(world.call(1, |engine, _| engine.counters().contradictory), n as u64 + 1);
    }
}

#[test]
fn connections_in_others_names() {
    let mut scene = scene(Packet);
    let victim = scene.world.create(1);
    let stolen = scene.world.create(0);
    let attributes = [0; 20];
    let header =
        Header { from: stolen.bits(), to: victim.bits(), tag: 7, value: 2, ..Header::new(Kind::ConnectAccept as u8) };
    scene.refused(2, 1, header, &attributes, |counters| counters.not_theirs);
    let unasked = Header { tag: 7, ..Header::new(Kind::ConnectReply as u8) };
    scene.refused(2, 1, unasked, &[], |counters| counters.unasked);
    for value in [0, 1, 3, 0xffff, u32::MAX] {
        let header =
            Header { from: stolen.bits(), to: victim.bits(), tag: 7, value, ..Header::new(Kind::Connect as u8) };
        scene.world.forge(2, 0, header, &[]);
        scene.world.forge(2, 1, Header { kind: Kind::ConnectAccept as u8, ..header }, &attributes);
        scene.world.forge(2, 1, Header { kind: Kind::Disconnect as u8, ..header }, &[]);
    }
    scene.world.settle();
    for (at, endpoint) in [(1, victim), (0, stolen)] {
        assert_eq!(scene.world.call(at, |engine, links| engine.delete_endpoint(endpoint, links)), Ok(()));
    }
}

#[test]
fn any_frame_of_the_kinds_of_channels_in_any_state() {
    let kinds = [
        Kind::Connect,
        Kind::ConnectAccept,
        Kind::ConnectReply,
        Kind::Disconnect,
        Kind::Open,
        Kind::Close,
        Kind::Packet,
        Kind::Scalar,
        Kind::ChannelCredit,
    ];
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..300 {
        let Scene { mut world, channel, number } = scene(if next(2) == 0 { Packet } else { Scalar });
        let others = [world.create(0), world.create(1), world.create(2)];
        let names = [channel.from, channel.to, others[0], others[1], others[2]].map(EndpointId::bits);
        for _ in 0..60 {
            let name = |n: usize| names.get(n).copied().unwrap_or(n as u32 * 0x1234_5677);
            let header = Header {
                class: Priority::new(next(Priority::COUNT) as u8).unwrap(),
                status: next(50) as u8,
                flags: next(3) as u8,
                from: [number, number | OF_RECEIVER, name(next(7))][next(3)],
                to: name(next(7)),
                tag: [next(40) as u32, number, number | OF_RECEIVER][next(3)],
                value: [0, 1, 2, 4, 8, 2 | 5 << 16, u32::MAX][next(7)],
                ..Header::new(kinds[next(kinds.len())] as u8)
            };
            let payload =
                &[0; 24][..next((KINDS.shape(header.kind).expect("a kind").payload_max as usize).min(24) + 1)];
            let to = next(3);
            world.forge((to + 1 + next(2)) % 3, to, header, payload);
            world.step(next(100));
        }
        for _ in 0..2000 {
            if !world.step(next(100)) {
                break;
            }
        }
        // Whatever they made of it, a node is rid of a hostile peer's doings when the link ends.
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            world.cut(a, b, musubi_transport::links::Loss::Cut);
        }
        for (at, kind, receives, handle) in
            [(0, channel.kind, false, channel.sending), (1, channel.kind, true, channel.receiving)]
        {
            if let Ok(closing) = world.close(at, kind, receives, handle) {
                world.done(at, closing);
            }
        }
        for (at, endpoint) in [(0, channel.from), (1, channel.to), (0, others[0]), (1, others[1]), (2, others[2])] {
            let deleted = world.call(at, |engine, links| engine.delete_endpoint(endpoint, links));
            assert_eq!(deleted, Ok(()));
        }
    }
}
