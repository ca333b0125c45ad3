//! Connecting and opening in all orders, by all who may.

use musubi_mcapi::engine::{ChannelKind, Sending};

use super::world::{Channel, Mode, World};

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
const KINDS: [ChannelKind; 2] = [ChannelKind::Packet, ChannelKind::Scalar];
const MODES: [Mode; 2] = [Mode::Memory, Mode::Network];

/// Does connect, open to send and open to receive in this order, each when the one before has had its effect (`waits`) or at
/// once, and sends something.
fn run(mode: Mode, kind: ChannelKind, connecter: usize, order: [usize; 3], waits: bool, choice: usize) {
    let mut world = World::new(3, mode);
    let (sender, receiver) = (0, 1);
    let (from, to) = (world.create(sender), world.create(receiver));
    let (mut connecting, mut sending, mut receiving) = (None, None, None);
    for action in order {
        match action {
            0 => connecting = Some(world.connect(connecter, kind, from, to)),
            1 => sending = Some(world.open(sender, kind, false, from)),
            _ => receiving = Some(world.open(receiver, kind, true, to)),
        }
        while waits && world.step(choice) {}
        if let (None, Some((_, opening))) = (receiving, sending) {
            assert!(world.pending(sender, opening), "open completes only when both sides are open");
        }
    }
    while world.step(choice) {}
    world.done(connecter, connecting.unwrap());
    let ((sending, opening), (receiving, opening_too)) = (sending.unwrap(), receiving.unwrap());
    world.done(sender, opening);
    world.done(receiver, opening_too);
    let channel = Channel { kind, sender, receiver, from, to, sending, receiving };
    exchange(&mut world, &channel);
    world.close_both(&channel);
    for node in 0..3 {
        assert_eq!(world.call(node, |engine, _| engine.requests()), 0);
    }
}

/// Sends something through a channel.
pub fn exchange(world: &mut World, channel: &Channel) {
    let Channel { kind, sender, receiver, sending, receiving, .. } = *channel;
    match kind {
        ChannelKind::Packet => {
            assert_eq!(world.send(sender, sending, b"packet"), Ok(Sending::Done));
            world.settle();
            assert_eq!(world.receive(receiver, receiving), Ok(Some(b"packet".to_vec())));
            world.release(receiver, receiving, 6);
        }
        ChannelKind::Scalar => {
            assert_eq!(world.send_scalar(sender, sending, 4, 77), Ok(Sending::Done));
            world.settle();
            assert_eq!(world.receive_scalar(receiver, receiving, 4), Ok(Some(77)));
        }
    }
}

#[test]
fn f20_f22_all_orders_by_all_who_may_connect() {
    for mode in MODES {
        for kind in KINDS {
            for connecter in 0..3 {
                for order in ORDERS {
                    for choice in 0..7 {
                        run(mode, kind, connecter, order, false, choice);
                    }
                    run(mode, kind, connecter, order, true, 0);
                }
            }
        }
    }
}

#[test]
fn f20_f22_both_ends_on_one_node_in_all_orders() {
    for kind in KINDS {
        for order in ORDERS {
            let mut world = World::new(2, Mode::Memory);
            for connecter in 0..2 {
                let (from, to) = (world.create(0), world.create(0));
                let (mut sending, mut receiving, mut connecting) = (None, None, None);
                for action in order {
                    match action {
                        0 => connecting = Some(world.connect(connecter, kind, from, to)),
                        1 => sending = Some(world.open(0, kind, false, from)),
                        _ => receiving = Some(world.open(0, kind, true, to)),
                    }
                }
                world.settle();
                world.done(connecter, connecting.unwrap());
                let ((sending, opening), (receiving, opening_too)) = (sending.unwrap(), receiving.unwrap());
                world.done(0, opening);
                world.done(0, opening_too);
                let channel = Channel { kind, sender: 0, receiver: 0, from, to, sending, receiving };
                exchange(&mut world, &channel);
                world.close_both(&channel);
            }
        }
    }
}

#[test]
fn f30_f31_closed_ends_can_be_connected_again_either_way() {
    for mode in MODES {
        for kind in KINDS {
            let mut world = World::new(2, mode);
            let mut channel = world.channel(kind, 0, 1);
            for _ in 0..5 {
                world.close_both(&channel);
                channel = world.channel_of(kind, (channel.receiver, channel.to), (channel.sender, channel.from));
                exchange(&mut world, &channel);
            }
        }
    }
}
