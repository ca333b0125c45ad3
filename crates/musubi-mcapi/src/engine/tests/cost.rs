//! What a message costs does not depend on what else there is.

use super::*;
use crate::engine::steps;

/// Looks at tables that so many messages there and back cost, with so many idle endpoints and peers at both nodes.
fn steps_of(messages: usize, idle: usize) -> u64 {
    let mut world = World::linked(2, true);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    for at in 0..2 {
        for _ in 0..idle {
            world.on(at, |engine, links| engine.create_endpoint(None, links)).unwrap();
        }
        for peer in 2..2 + idle {
            world.report(at, Report::Up { peer: node(peer), incarnation: 1 });
        }
    }
    let before = steps::count();
    for _ in 0..messages {
        world.send(0, a, b, &[1]).unwrap();
        world.run();
        let message = world.receive(1, b).unwrap();
        world.send(1, b, message.from, &[1]).unwrap();
        world.run();
        world.receive(0, a).unwrap();
        world.tick();
    }
    steps::count() - before
}

#[test]
fn a_message_costs_the_same_among_idle_endpoints_and_nodes() {
    let alone = steps_of(100, 0);
    assert!(alone > 0);
    for idle in [10, 100, 1000] {
        assert_eq!(steps_of(100, idle), alone, "{idle} idle endpoints and nodes");
    }
}
