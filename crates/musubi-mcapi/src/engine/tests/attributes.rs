//! Attributes: numbers, sizes, ranges, here and elsewhere.

use super::*;
use crate::engine::{check_new_node_attribute, endpoint_status};
use crate::limits::MESSAGE_CREDIT;

fn set(world: &mut World, endpoint: EndpointId, number: u32, value: u32) -> Result<(), Error> {
    world.engines[0].set_endpoint_attribute(endpoint, number, &value.to_ne_bytes())
}

#[test]
fn all_have_their_defaults_here_and_elsewhere() {
    let mut world = World::linked(2, true);
    let endpoint = world.create(0, 9);
    let defaults = [
        (0, 1),
        (1, 0),
        (3, 65_536),
        (4, 0),
        (5, 0),
        (6, 4),
        (7, 0),
        (8, 256),
        (9, MESSAGE_CREDIT),
        (10, 0),
        (11, u32::MAX),
    ];
    for at in [0, 1] {
        for (number, value) in defaults {
            assert_eq!(world.word(at, endpoint, number), value, "attribute {number} at {at}");
        }
        assert_eq!(world.attribute(at, endpoint, 2, 8), Ok(std::vec![0xff; 8]));
    }
}

#[test]
fn numbers_and_sizes_are_checked() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(0, 9);
    for at in [0, 1] {
        assert_eq!(world.attribute(at, endpoint, 12, 4), Err(Error::AttributeNumber));
        assert_eq!(world.attribute(at, endpoint, 63, 4), Err(Error::AttributeNumber));
        assert_eq!(world.attribute(at, endpoint, 64, 4), Err(Error::AttributeNotSupported));
        assert_eq!(world.attribute(at, endpoint, 64 + 4 * 32, 4), Err(Error::AttributeNumber));
        assert_eq!(world.attribute(at, endpoint, u32::MAX, 4), Err(Error::AttributeNumber));
        assert_eq!(world.attribute(at, endpoint, 0, 3), Err(Error::AttributeSize));
        assert_eq!(world.attribute(at, endpoint, 2, 4), Err(Error::AttributeSize));
    }
    assert_eq!(world.engines[0].set_endpoint_attribute(endpoint, 11, &[0; 8]), Err(Error::AttributeSize));
    assert_eq!(set(&mut world, endpoint, 12, 0), Err(Error::AttributeNumber));
    assert_eq!(set(&mut world, endpoint, 100, 0), Err(Error::AttributeNotSupported));
}

#[test]
fn what_can_be_set_is_set_within_its_range() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(0, 9);
    for (number, good, bad) in [
        (0, &[2, 4, 1][..], &[0, 3, 5][..]),
        (3, &[1, 65_536], &[0, u32::MAX, (1 << 20) + 1]),
        (4, &[0], &[1]),
        (5, &[1, 2, 0x1_0000, 0x1_0002, 0], &[3, 0x2_0000]),
        (6, &[1, 4, 3], &[0, 5, u32::MAX]),
        (7, &[2, 0], &[3, u32::MAX]),
        (11, &[0, 5, u32::MAX], &[]),
    ] {
        for value in good {
            assert_eq!(set(&mut world, endpoint, number, *value), Ok(()), "{number}: {value}");
            assert_eq!(world.word(1, endpoint, number), *value);
        }
        for value in bad {
            assert_eq!(set(&mut world, endpoint, number, *value), Err(Error::AttributeValue), "{number}: {value}");
        }
    }
    for number in [1, 8, 9, 10] {
        assert_eq!(set(&mut world, endpoint, number, 0), Err(Error::AttributeReadOnly));
    }
    let source = world.engines[0].set_endpoint_attribute(endpoint, 2, &[0; 8]);
    assert_eq!(source, Err(Error::AttributeReadOnly));
}

#[test]
fn only_the_owner_sets() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(1, 9);
    assert_eq!(set(&mut world, endpoint, 11, 5), Err(Error::EndpointRemote));
    let stranger = EndpointId::new(node(0), 77, 7);
    assert_eq!(set(&mut world, stranger, 11, 5), Err(Error::EndpointInvalid));
    assert_eq!(world.attribute(0, stranger, 11, 4), Err(Error::EndpointInvalid));
    assert_eq!(world.attribute(1, stranger, 11, 4), Err(Error::EndpointInvalid));
    let nowhere = EndpointId::new(NodeId::new(3, 3).unwrap(), 0, 1);
    assert_eq!(world.attribute(1, nowhere, 11, 4), Err(Error::EndpointInvalid));
}

#[test]
fn the_timeout_is_at_hand() {
    let mut world = World::apart(1);
    let endpoint = world.create(0, 9);
    assert_eq!(world.engines[0].endpoint_timeout_ms(endpoint), Ok(u32::MAX));
    set(&mut world, endpoint, 11, 25).unwrap();
    assert_eq!(world.engines[0].endpoint_timeout_ms(endpoint), Ok(25));
}

#[test]
fn a_smaller_payload_and_fewer_priorities_hold_for_sending() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 9), world.create(1, 9));
    set(&mut world, a, 3, 10).unwrap();
    set(&mut world, a, 6, 2).unwrap();
    assert_eq!(world.send(0, a, b, &[0; 11]), Err(Error::MessageSize));
    assert_eq!(world.send(0, a, b, &[0; 10]), Ok(Sending::Done));
    let at_priority =
        |priority| move |engine: &mut Engine<_>, links: &mut Outs| engine.send_message(a, b, priority, &[], links);
    assert_eq!(world.on(0, at_priority(2)), Err(Error::Priority));
    assert_eq!(world.on(0, at_priority(1)), Ok(Sending::Done));
}

#[test]
fn others_see_how_many_buffers_are_free() {
    let mut world = World::linked(2, true);
    let (a, b) = (world.create(0, 9), world.create(1, 9));
    for sent in 1..=MESSAGE_CREDIT {
        world.send(0, a, b, &[0]).unwrap();
        world.run();
        assert_eq!(world.word(0, b, 9), MESSAGE_CREDIT - sent);
    }
    world.receive(1, b).unwrap();
    assert_eq!(world.word(0, b, 9), 1);
}

#[test]
fn the_status_says_that_somebody_has_got_it() {
    let mut world = World::linked(2, true);
    let endpoint = world.create(0, 9);
    let request = world.get(1, 0, 9);
    world.run();
    world.endpoint_of(1, request);
    assert_eq!(world.word(1, endpoint, 10), endpoint_status::GET_PENDING);
}

#[test]
fn a_node_has_a_type() {
    let mut world = World::linked(2, false);
    for of in [0, 1] {
        let request = world.on(0, |engine, links| engine.node_attribute((0, of), 0, 4, links)).unwrap();
        world.run();
        assert!(matches!(world.outcome(0, request), Some(Ok(Outcome::Attribute(value))) if value == [0; 4]));
    }
    let mut ask = |domain, node, number, size| {
        world.on(0, |engine, links| engine.node_attribute((domain, node), number, size, links))
    };
    assert_eq!(ask(0, 1, 1, 4), Err(Error::AttributeNumber));
    assert_eq!(ask(0, 1, 0, 8), Err(Error::AttributeSize));
    assert_eq!(ask(99, 1, 0, 4), Err(Error::DomainInvalid));
    assert_eq!(ask(0, 5000, 0, 4), Err(Error::NodeInvalid));
    assert_eq!(check_new_node_attribute(0, &[0; 4]), Ok(()));
    assert_eq!(check_new_node_attribute(0, &[1; 4]), Err(Error::AttributeValue));
    assert_eq!(check_new_node_attribute(1, &[0; 4]), Err(Error::AttributeNumber));
}
