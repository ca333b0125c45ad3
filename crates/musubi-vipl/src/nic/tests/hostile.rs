//! A peer that says anything.

use musubi_transport::Regulation;
use proptest::prelude::*;

use super::*;

const US: fn() -> NodeId = || node(0, 0);
const THEM: fn() -> NodeId = || node(1, 0);
const HONEST: fn() -> NodeId = || node(2, 0);

/// One frame of a peer that knows our names or guesses.
#[derive(Clone, Debug)]
struct Lie {
    kind: u8,
    class: u8,
    flags: u8,
    status: u8,
    words: [u32; 4],
    /// Whom it says that it is for: one of our VIs, or what the words say.
    to: usize,
    payload: Vec<u8>,
    /// Says nothing, but has the link end and come back.
    parts: bool,
}

fn lie() -> impl Strategy<Value = Lie> {
    let words = prop::array::uniform4(prop_oneof![0..20_u32, any::<u32>(), Just(8192), Just(u32::MAX)]);
    let payload = prop_oneof![prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(Just(0_u8), 0..600),];
    let first = (1..25_u8, 0..8_u8, any::<u8>(), 0..6_u8);
    (first, words, 0..8_usize, payload, prop::bool::weighted(0.02)).prop_map(
        |((kind, class, flags, status), words, to, payload, parts)| Lie {
            kind,
            class,
            flags,
            status,
            words,
            to,
            payload,
            parts,
        },
    )
}

/// Names of our ends of connections with a peer.
fn names(world: &mut World, peer: NodeId) -> Vec<ViName> {
    let host = world.host(US());
    let Some(place) = host.nic.carriage.find(peer) else { return Vec::new() };
    let connections = host.nic.vis.iter().filter_map(|(_, entry)| entry.connection.as_ref());
    connections.filter(|connection| connection.peer == place).map(|connection| connection.here).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_can_spoil_its_own_connections_only(
        lies in prop::collection::vec(lie(), 1..60),
        burst in prop::option::of(1..20_u32),
    ) {
        let mut world = World::new(&[US(), THEM(), HONEST()]);
        if let Some(messages_burst) = burst {
            let regulation = Regulation { messages_per_s: 1, messages_burst, ..Regulation::NONE };
            let intake = ClassIntake { class: Priority::new(3).unwrap(), regulation };
            world.hosts.values_mut().for_each(|host| host.nic.describe(Host::directory(&[intake], &[0, 1])));
        }
        let levels = Reliability::ALL;
        let theirs: Vec<ViNumber> =
            levels.iter().map(|level| world.connect(THEM(), US(), attributes(*level)).1).collect();
        let (honest, ours) = world.connect(HONEST(), US(), PLAIN());
        let waiting = world.host(US()).vi(PLAIN());
        let asking = at(1, "nobody-is-there-yet");
        let Host { nic, wires, .. } = world.host(US());
        nic.request_peer(waiting, at(0, "x"), asking, u64::MAX, wires).unwrap();
        nic.listen(&at(0, "port")).unwrap();
        for (index, vi) in theirs.iter().enumerate() {
            world.host(US()).post_plain(*vi, Queue::Receive, index, 1000 * index, 500);
        }
        world.host(US()).post_plain(ours, Queue::Receive, 5, 6000, 100);
        // A region that only they may write, and a neighbour of it that nobody may.
        let before = world.host(US()).get(0, BYTES);
        for lie in &lies {
            if lie.parts {
                world.cut(US(), THEM());
                world.connect_links(US(), THEM());
                continue;
            }
            let named = names(&mut world, THEM());
            let to = named.get(lie.to).map_or(lie.words[0], |name| name.0);
            let header = Header {
                kind: lie.kind,
                class: Priority::new(lie.class).unwrap(),
                status: lie.status,
                flags: lie.flags,
                length: lie.payload.len() as u32,
                from: lie.words[1],
                to,
                tag: lie.words[2],
                value: lie.words[3],
            };
            let Some(header) = Header::from_words(header.to_words(), NicState::<NoBlock>::KINDS) else { continue };
            let payload = Payload::Owned(lie.payload.clone());
            world.report(US(), Report::Frame { peer: THEM(), header, payload });
            let now_ns = world.now_ns;
            let Host { nic, wires, .. } = world.host(US());
            nic.tick(now_ns, wires);
            world.host(US()).wires.out.retain(|(to, ..)| *to != THEM());
        }
        // What they did not register for, and what is another VI's, is as it was.
        let host = world.host(US());
        prop_assert_eq!(&host.get(BUFFERS + 6000, BYTES - BUFFERS - 6000), &before[BUFFERS + 6000..]);
        prop_assert_eq!(host.state(ours), ViState::Connected);
        world.host(HONEST()).post_plain(honest, Queue::Send, 0, 0, 100);
        while world.carry_one(HONEST()) {}
        // Where the class is bounded, in its turn.
        for _ in 0..10 {
            world.now_ns += 1_000_000_000;
            world.tick();
            while world.carry_one(US()) | world.carry_one(HONEST()) {}
        }
        prop_assert_eq!(world.host(US()).done(ours, Queue::Receive).map(|done| done.0), Some(5));
        // Each of their receives completed once, or is still posted.
        for (index, vi) in theirs.iter().enumerate() {
            let done = world.host(US()).all_done(*vi, Queue::Receive);
            prop_assert!(done.len() <= 1 && done.iter().all(|one| one.0 == index));
        }
        world.disconnect(US(), waiting);
    }
}
