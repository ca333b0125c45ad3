//! The functions that send and receive, 23 to 27, 35 to 43, status by status.

use musubi_mcapi::Error;
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Outcome, Sending};
use musubi_mcapi::limits::{PACKET_BYTES_MAX, PACKET_CREDIT};
use musubi_transport::links::SharedBytes;

use super::functions::{attribute, set};
use super::world::{Mode, World};

use ChannelKind::{Packet, Scalar};

const MEMORY_TYPE: u32 = 5;
const RECEIVE_BUFFERS: u32 = 9;
const FAIL_ON_MEMORY_LIMIT: u32 = 0x0001_0000;

#[test]
fn f23_f24_send_chan_invalid() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    let (sending, _) = world.open(0, Packet, false, from);
    for handle in [sending, ChannelHandle(0), ChannelHandle(0xdead_beef), ChannelHandle(u32::MAX)] {
        assert_eq!(world.send(0, handle, b"x"), Err(Error::ChannelInvalid), "not open yet, or never");
        assert_eq!(world.send_later(0, handle, b"x").unwrap_err(), Error::ChannelInvalid);
    }
    let (receiving, _) = world.open(1, Packet, true, to);
    world.connect(0, Packet, from, to);
    world.settle();
    assert_eq!(world.send(1, receiving, b"x"), Err(Error::ChannelInvalid), "the other direction");
    assert_eq!(world.send_scalar(0, sending, 4, 1), Err(Error::ChannelInvalid), "the other type");
    assert_eq!(world.send(0, sending, b"x"), Ok(Sending::Done));
}

#[test]
fn f23_f24_send_pkt_size() {
    for mode in [Mode::Memory, Mode::Network] {
        let mut world = World::new(2, mode);
        let channel = world.channel(Packet, 0, 1);
        let longest = vec![7; PACKET_BYTES_MAX];
        let too_long = vec![7; PACKET_BYTES_MAX + 1];
        assert_eq!(world.send(0, channel.sending, &too_long), Err(Error::PacketSize));
        assert_eq!(world.send_later(0, channel.sending, &too_long).unwrap_err(), Error::PacketSize);
        assert_eq!(world.send(0, channel.sending, &longest), Ok(Sending::Done));
        world.settle();
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(longest)));
    }
}

#[test]
fn several_packets_go_as_far_as_there_is_room_and_credit() {
    for mode in [Mode::Memory, Mode::Network] {
        let mut world = World::new(2, mode);
        let channel = world.channel(Packet, 0, 1);
        let packets: Vec<SharedBytes> = (0..100).map(|number| vec![number; 10].into()).collect();
        let send = |world: &mut World, handle, packets: &[SharedBytes]| {
            world.call(0, |engine, links| engine.send_packets_shared(handle, packets, links))
        };
        assert_eq!(send(&mut world, channel.sending, &[]), Ok(0));
        assert_eq!(send(&mut world, ChannelHandle(0xdead_beef), &packets), Err(Error::ChannelInvalid));
        let too_long = vec![0; PACKET_BYTES_MAX + 1].into();
        assert_eq!(send(&mut world, channel.sending, &[packets[0].clone(), too_long]), Err(Error::PacketSize));
        world.net.room = 5;
        assert_eq!(send(&mut world, channel.sending, &packets), Ok(5), "the link's room");
        world.net.room = usize::MAX;
        world.settle();
        assert_eq!(send(&mut world, channel.sending, &packets[5..]), Ok(PACKET_CREDIT as usize - 5), "the credit");
        assert_eq!(send(&mut world, channel.sending, &packets[64..]), Ok(0));
        world.settle();
        for number in 0..PACKET_CREDIT as u8 {
            assert_eq!(world.receive(1, channel.receiving), Ok(Some(vec![number; 10])), "none of those refused went");
            world.release(1, channel.receiving, 10);
        }
        world.settle();
        assert_eq!(send(&mut world, channel.sending, &packets[64..]), Ok(36));
        world.settle();
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(vec![64; 10])));
    }
}

#[test]
fn several_packets_go_behind_those_that_wait() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let burst: [SharedBytes; 2] = [b"second".to_vec().into(), b"third".to_vec().into()];
    world.net.room = 0;
    world.send_later(0, channel.sending, b"first").unwrap();
    let send = |world: &mut World| {
        world.call(0, |engine, links| engine.send_packets_shared(channel.sending, &burst, links)).unwrap()
    };
    world.net.room = usize::MAX;
    assert_eq!(send(&mut world), 0);
    world.settle();
    assert_eq!(send(&mut world), 2);
    world.settle();
    for packet in ["first", "second", "third"] {
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(packet.into())));
    }
}

#[test]
fn f23_send_mem_limit_where_the_memory_type_says_so() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    set(&mut world, 0, from, MEMORY_TYPE, FAIL_ON_MEMORY_LIMIT).unwrap();
    set(&mut world, 1, to, MEMORY_TYPE, FAIL_ON_MEMORY_LIMIT).unwrap();
    let channel = world.channel_of(Packet, (0, from), (1, to));
    let mut requests = Vec::new();
    let error = loop {
        match world.send_later(0, channel.sending, b"packet") {
            Ok(request) => requests.push(request),
            Err(error) => break error,
        }
        world.settle();
    };
    assert_eq!((error, requests.len()), (Error::MemoryLimit, PACKET_CREDIT as usize));
}

#[test]
fn f23_send_i_completes_when_the_receiving_node_has_it() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let request = world.send_later(0, channel.sending, b"packet").unwrap();
    assert!(world.pending(0, request), "it is on its way");
    world.settle();
    assert!(matches!(world.outcome(0, request), Ok(Outcome::Sent(6))));
    assert_eq!(world.receive(1, channel.receiving), Ok(Some(b"packet".to_vec())));
}

#[test]
fn f25_f26_receive_chan_invalid() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    let (receiving, _) = world.open(1, Packet, true, to);
    let receive_later = |world: &mut World, at: usize, handle| {
        world.call(at, |engine, links| engine.receive_packet_later(handle, links)).unwrap_err()
    };
    for handle in [receiving, ChannelHandle(0), ChannelHandle(0xdead_beef)] {
        assert_eq!(world.receive(1, handle), Err(Error::ChannelInvalid));
        assert_eq!(receive_later(&mut world, 1, handle), Error::ChannelInvalid);
    }
    let (sending, _) = world.open(0, Packet, false, from);
    world.connect(0, Packet, from, to);
    world.settle();
    assert_eq!(world.receive(0, sending), Err(Error::ChannelInvalid), "the other direction");
    assert_eq!(world.receive_scalar(1, receiving, 4), Err(Error::ChannelInvalid), "the other type");
    assert_eq!(world.receive(1, receiving), Ok(None));
    assert_eq!(world.call(1, |engine, _| engine.requests()), 1, "refused requests leave nothing");
}

#[test]
fn f25_receive_i_takes_the_next_arrival_and_a_cancelled_one_takes_none() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let receive = |world: &mut World| {
        world.call(1, |engine, links| engine.receive_packet_later(channel.receiving, links)).unwrap()
    };
    let (first, second, third) = (receive(&mut world), receive(&mut world), receive(&mut world));
    assert_eq!(world.receive(1, channel.receiving), Ok(None), "earlier requests wait");
    world.cancel(1, second);
    for packet in [b"one", b"two"] {
        world.send(0, channel.sending, packet).unwrap();
    }
    world.settle();
    for (request, packet) in [(first, b"one"), (third, b"two")] {
        match world.outcome(1, request) {
            Ok(Outcome::Packet(found)) => assert_eq!(super::world::bytes(&found), packet),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn f27_f43_available() {
    let mut world = World::new(2, Mode::Network);
    let (packets, scalars) = (world.channel(Packet, 0, 1), world.channel(Scalar, 0, 1));
    for _ in 0..3 {
        world.send(0, packets.sending, b"").unwrap();
        world.send_scalar(0, scalars.sending, 1, 1).unwrap();
    }
    world.settle();
    let available = |world: &mut World, kind, handle| world.call(1, |engine, _| engine.channel_available(kind, handle));
    assert_eq!(available(&mut world, Packet, packets.receiving), Ok(3));
    assert_eq!(available(&mut world, Scalar, scalars.receiving), Ok(3));
    assert_eq!(available(&mut world, Scalar, packets.receiving), Err(Error::ChannelInvalid));
    assert_eq!(available(&mut world, Packet, ChannelHandle(0xdead_beef)), Err(Error::ChannelInvalid));
    assert_eq!(attribute(&mut world, 0, packets.to, RECEIVE_BUFFERS), PACKET_CREDIT - 3);
    assert_eq!(world.receive(1, packets.receiving), Ok(Some(Vec::new())), "a packet of no bytes is one");
    let of_sender = world.call(0, |engine, _| engine.channel_available(Packet, packets.sending));
    assert_eq!(of_sender, Err(Error::ChannelInvalid));
}

#[test]
fn f35_f42_scalars_of_all_sizes_and_a_wrong_one_stays() {
    for mode in [Mode::Memory, Mode::Network] {
        let mut world = World::new(2, mode);
        let channel = world.channel(Scalar, 0, 1);
        for (size, value) in [(1, 0xff), (2, 0xfffe), (4, 0xffff_fffd), (8, u64::MAX)] {
            assert_eq!(world.send_scalar(0, channel.sending, size, value), Ok(Sending::Done));
            world.settle();
            for wrong in [1, 2, 4, 8].into_iter().filter(|wrong| *wrong != size) {
                assert_eq!(world.receive_scalar(1, channel.receiving, wrong), Err(Error::ScalarSize));
            }
            assert_eq!(world.receive_scalar(1, channel.receiving, size), Ok(Some(value)));
            assert_eq!(world.receive_scalar(1, channel.receiving, size), Ok(None));
        }
        assert_eq!(world.send_scalar(0, channel.sending, 3, 0), Err(Error::Parameter));
    }
}

#[test]
fn f35_f42_scalars_chan_invalid() {
    let mut world = World::new(2, Mode::Network);
    for handle in [ChannelHandle(0), ChannelHandle(0xdead_beef)] {
        assert_eq!(world.send_scalar(0, handle, 4, 1), Err(Error::ChannelInvalid));
        assert_eq!(world.receive_scalar(0, handle, 4), Err(Error::ChannelInvalid));
    }
    let channel = world.channel(Scalar, 0, 1);
    assert_eq!(world.send_scalar(1, channel.receiving, 4, 1), Err(Error::ChannelInvalid));
    world.send_scalar(0, channel.sending, 4, 1).unwrap();
    world.close(0, Scalar, false, channel.sending).unwrap();
    assert_eq!(world.send_scalar(0, channel.sending, 4, 1), Err(Error::ChannelInvalid));
    world.settle();
    assert_eq!(world.receive_scalar(1, channel.receiving, 4), Ok(Some(1)), "sent before the close");
    assert_eq!(world.receive_scalar(1, channel.receiving, 4), Err(Error::ChannelInvalid));
}

#[test]
fn f25_a_request_that_is_dropped_gives_its_packet_back() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    for n in 0..100_u8 {
        let receive = |world: &mut World| {
            world.call(1, |engine, links| engine.receive_packet_later(channel.receiving, links)).unwrap()
        };
        let (first, second) = (receive(&mut world), receive(&mut world));
        assert_eq!(world.send(0, channel.sending, &[n]), Ok(Sending::Done));
        world.settle();
        world.call(1, |engine, links| engine.drop_request(first, links));
        assert!(!world.pending(1, second), "it goes to who waits");
        world.call(1, |engine, links| engine.drop_request(second, links));
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(vec![n])), "or into the queue");
        world.release(1, channel.receiving, 1);
        world.settle();
    }
}
