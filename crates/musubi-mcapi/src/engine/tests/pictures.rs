//! Pictures of nodes: encoded, asked for, decoded.

use super::*;
use crate::engine::inspect::{PART_BYTES_MAX, Part};
use musubi_transport::status::LoggedEvent;

fn ask(world: &mut World, of: usize, part: u32) -> Part {
    let request = world.on(0, |engine, links| engine.inspect(node(of), part, links)).unwrap();
    world.run();
    let Some(Ok(Outcome::Picture(bytes))) = world.outcome(0, request) else { panic!() };
    assert!(bytes.len() <= PART_BYTES_MAX);
    Part::decode(&bytes).unwrap()
}

#[test]
fn a_picture_shows_what_is_there() {
    let mut world = World::linked(3, true);
    let (a, b) = (world.create(0, 5), world.create(1, 6));
    for _ in 0..3 {
        world.send(0, a, b, &[1]).unwrap();
    }
    world.run();
    let picture = ask(&mut world, 1, 0);
    assert_eq!((picture.node.node, picture.node.incarnation, picture.next), (node(1), 8, None));
    assert_eq!((picture.node.endpoints, picture.node.peers), (1, 2));
    let endpoint = &picture.endpoints[0];
    assert_eq!((endpoint.endpoint, endpoint.port, endpoint.queued, endpoint.messages), (b, 6, 3, 3));
    let peer = picture.peers.iter().find(|peer| peer.node == node(0)).unwrap();
    assert_eq!((peer.standing, peer.messages_received, peer.links), (1, 3, 1));
    assert_eq!((peer.message_bytes_sent, peer.message_bytes_received), (Some(0), Some(3)));
    let sender = ask(&mut world, 0, 0);
    let peer = sender.peers.iter().find(|peer| peer.node == node(1)).unwrap();
    assert_eq!((peer.messages_sent, peer.message_bytes_sent), (3, Some(3)));
    assert_eq!(ask(&mut world, 0, 0).node.node, node(0), "also of itself");
}

#[test]
fn it_shows_links_refusals_and_the_log() {
    let mut world = World::linked(3, true);
    let entry =
        |number: u64| LoggedEvent { age_ns: number, times: 9, text: format!("refused {number}: {}", "ä".repeat(110)) };
    world.outs[1].log = (0..64).map(entry).collect();
    let picture = ask(&mut world, 1, 0);
    let with: Vec<NodeId> = picture.links.iter().map(|link| link.node).collect();
    assert_eq!(with, [node(0), node(2)]);
    assert_eq!(picture.links[1], link_picture(node(2), picture.links[1].frames_sent));
    let door = picture.door.unwrap();
    assert_eq!((door.identity, door.memory_strangers, door.expired), (3, u64::MAX, 0));
    let wakes = picture.wakes.unwrap();
    assert_eq!((wakes.woken, wakes.frames, wakes.raised, wakes.deferred), (door.accepted, 5, u64::MAX, 3));
    let rest = ask(&mut world, 1, picture.next.unwrap());
    assert_eq!((rest.log, rest.next), (world.outs[1].log.clone(), None));
    world.outs[1].log = vec![LoggedEvent { text: "\x1b[2Jgone\n".into(), ..entry(0) }];
    let rest = ask(&mut world, 1, picture.next.unwrap());
    assert_eq!(rest.log[0].text, " [2Jgone ", "nothing of it controls a terminal");
}

#[test]
fn a_large_one_comes_in_parts() {
    let mut world = World::linked(2, false);
    for port in 1..=1000 {
        world.create(1, port);
    }
    for peer in 100..900 {
        world.report(1, Report::Up { peer: node(peer), incarnation: 1 });
    }
    let (mut part, mut endpoints, mut peers, mut parts) = (0, Vec::new(), Vec::new(), 0);
    loop {
        let picture = ask(&mut world, 1, part);
        endpoints.extend(picture.endpoints.iter().map(|endpoint| endpoint.port));
        peers.extend(picture.peers.iter().map(|peer| peer.node));
        parts += 1;
        match picture.next {
            Some(next) => part = next,
            None => break,
        }
    }
    assert!(parts > 1);
    assert_eq!(endpoints, (1..=1000).collect::<Vec<_>>());
    assert_eq!(peers.len(), 801);
    assert!(ask(&mut world, 1, u32::MAX).endpoints.is_empty());
}

#[test]
fn decoding_survives_anything() {
    let mut world = World::linked(3, true);
    world.create(0, 5);
    let good = world.on(0, |engine, links| engine.picture(0, links));
    for length in 0..good.len() {
        let _ = Part::decode(&good[..length]);
    }
    let mut dice = Dice(99);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + dice.roll(4) {
            let at = dice.roll(bytes.len());
            bytes[at] = dice.roll(256) as u8;
        }
        let _ = Part::decode(&bytes);
    }
    let mut longer = good.clone();
    longer.extend_from_slice(&[200, 0, 3, 0, 1, 2, 3]);
    assert_eq!(Part::decode(&longer), Part::decode(&good), "records of kinds not known are skipped");
    longer[0] = 2;
    assert_eq!(Part::decode(&longer), None, "another version");
}
