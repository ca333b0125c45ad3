//! Descriptors and their bytes from NIC to NIC: every operation, whatever the links do.

use super::*;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const DONE: Status = Status::DONE;

/// How links may take frames.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Delivered,
    Numbered,
    /// One at a time.
    Scarce,
    /// In pieces of 100 bytes.
    Pieces,
    /// Both VIs are of one NIC.
    Local,
    /// Each side fetches what it is offered. (The interpreter does not know the call.)
    Fetched,
}

const MANNERS: &[Manner] = if cfg!(miri) {
    &[Manner::Delivered, Manner::Numbered, Manner::Scarce, Manner::Pieces, Manner::Local]
} else {
    &[Manner::Delivered, Manner::Numbered, Manner::Scarce, Manner::Pieces, Manner::Local, Manner::Fetched]
};

/// Two connected VIs, and where they are.
fn joined(manner: Manner, reliability: Reliability) -> (World, (NodeId, ViNumber), (NodeId, ViNumber)) {
    let mut world = World::new(&[A(), B()]);
    let server = if matches!(manner, Manner::Local) { A() } else { B() };
    for node in [A(), B()] {
        let host = world.host(node);
        match manner {
            Manner::Numbered => host.wires.numbers = Some(BTreeMap::new()),
            Manner::Pieces => host.nic.limit_payload(100),
            Manner::Fetched => (host.wires.reaches, host.nic.carriage.offer_bytes_min) = (true, 1),
            _ => {}
        }
    }
    let (a, b) = world.connect(A(), server, attributes(reliability));
    if matches!(manner, Manner::Scarce) {
        world.hosts.values_mut().for_each(|host| host.wires.room = 1);
    }
    (world, (A(), a), (server, b))
}

fn fill(host: &mut Host, offset: usize, bytes: usize, seed: u8) {
    let filled: Vec<u8> = (0..bytes).map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed)).collect();
    host.put(BUFFERS + offset, &filled);
}

fn bytes(host: &mut Host, offset: usize, bytes: usize) -> Vec<u8> {
    host.get(BUFFERS + offset, bytes)
}

#[test]
fn messages_arrive_in_order_and_whole() {
    for (manner, reliability) in MANNERS.iter().copied().flat_map(|one| Reliability::ALL.map(|level| (one, level))) {
        let (mut world, (from, a), (to, b)) = joined(manner, reliability);
        let lengths = [1, 0, 8, 7, 95, 96, 100, 101, 1000, 3000];
        for (index, _) in lengths.iter().enumerate() {
            world.host(to).post_plain(b, Queue::Receive, index, 3000 * index, 3000);
        }
        // Behind what the receives have, so that both may be one NIC.
        for (index, length) in lengths.into_iter().enumerate() {
            fill(world.host(from), 31_000 + 1200 * index, length, index as u8);
            world.host(from).post_plain(a, Queue::Send, 20 + index, 31_000 + 1200 * index, length as u32);
        }
        world.settle();
        for (index, length) in lengths.into_iter().enumerate() {
            let done = world.host(to).done(b, Queue::Receive);
            assert_eq!(done, Some((index, length as u32, Status::OP_RECEIVE.and(DONE))), "{manner:?} {reliability:?}");
            let sent = bytes(world.host(from), 31_000 + 1200 * index, length);
            // Overlapping buffers of later ones were written when this one had gone.
            if index + 1 == lengths.len() || length <= 1200 {
                assert_eq!(bytes(world.host(to), 3000 * index, length), sent, "{manner:?} {index}");
            }
            assert_eq!(world.host(from).done(a, Queue::Send), Some((20 + index, length as u32, DONE)), "{manner:?}");
        }
        assert_eq!((world.host(from).errors(), world.host(to).errors()), (alloc::vec![], alloc::vec![]));
    }
}

#[test]
fn writes_and_reads_reach_the_memory_that_they_name() {
    for &manner in MANNERS {
        let (mut world, (from, a), (to, b)) = joined(manner, Reliability::Delivery);
        let (remote, remote_handle) = (world.host(to).address(BUFFERS + 20_000), world.host(to).handle);
        let (local, handle) = (world.host(from).address(BUFFERS), world.host(from).handle);
        world.host(to).post_plain(b, Queue::Receive, 0, 0, 0);
        for (index, (length, immediate)) in [(8, false), (700, false), (700, true), (0, true)].into_iter().enumerate() {
            fill(world.host(from), 0, length, 77 + index as u8);
            world.host(to).put(BUFFERS + 20_000, &[0; 800]);
            let control = 1 | if immediate { 4 } else { 0 };
            let segments = [(remote, remote_handle, 0), (local, handle, 300.min(length as u32))];
            let rest = (local + 300, handle, (length as u32).saturating_sub(300));
            let segments = [segments[0], segments[1], rest];
            world.host(from).write(30, control, &segments, 4242);
            world.host(from).post(a, Queue::Send, 30).unwrap();
            world.settle();
            assert_eq!(
                world.host(from).done(a, Queue::Send),
                Some((30, length as u32, Status(0x2_0001))),
                "{manner:?}"
            );
            assert_eq!(bytes(world.host(to), 20_000, length), bytes(world.host(from), 0, length), "{manner:?}");
            assert_eq!(bytes(world.host(to), 20_000 + length, 1), [0]);
            if immediate {
                let done = world.host(to).done(b, Queue::Receive);
                assert_eq!(done, Some((0, length as u32, Status(0xb_0001))), "{manner:?}");
                assert_eq!(world.host(to).get(20, 4), 4242_u32.to_le_bytes());
                world.host(to).post_plain(b, Queue::Receive, 0, 0, 0);
            }
        }
        // What was written comes back by a read.
        fill(world.host(to), 20_000, 500, 5);
        world.host(from).write(31, 2, &[(remote, remote_handle, 0), (local, handle, 500)], 0);
        world.host(from).post(a, Queue::Send, 31).unwrap();
        world.settle();
        assert_eq!(world.host(from).done(a, Queue::Send), Some((31, 500, Status(0x4_0001))), "{manner:?}");
        assert_eq!(bytes(world.host(from), 0, 500), bytes(world.host(to), 20_000, 500));
        assert_eq!(world.host(to).done(b, Queue::Receive), None);
    }
}

#[test]
fn a_write_outside_touches_nothing_and_ends_the_connection() {
    for &manner in MANNERS {
        let (mut world, (from, a), (to, b)) = joined(manner, Reliability::Reception);
        let before = world.host(to).get(0, BYTES);
        let end = world.host(to).address(BYTES);
        let (remote_handle, local, handle) =
            (world.host(to).handle, world.host(from).address(BUFFERS), world.host(from).handle);
        world.host(from).write(30, 1, &[(end - 7, remote_handle, 0), (local, handle, 8)], 0);
        let before_from = (from == to).then(|| world.host(from).get(0, BYTES));
        world.host(from).post(a, Queue::Send, 30).unwrap();
        world.settle();
        let status = Status(0x2_0001).and(Status::RDMA_PROTECTION_ERROR);
        assert_eq!(world.host(from).all_done(a, Queue::Send), [(30, status)], "{manner:?}");
        let untouched = before_from.unwrap_or(before);
        assert_eq!(world.host(to).get(BUFFERS, BYTES - BUFFERS), untouched[BUFFERS..]);
        assert_eq!((world.host(from).state(a), world.host(to).state(b)), (ViState::Error, ViState::Error));
    }
}

#[test]
fn the_last_word_is_said_though_the_vi_is_connected_anew_before_there_is_room() {
    let (mut world, (from, a), (to, b)) = joined(Manner::Delivered, Reliability::Reception);
    // The receiver finds no room for what it has to say of a message without a receive.
    world.host(to).wires.room = 0;
    world.host(from).post_plain(a, Queue::Send, 0, 0, 10);
    while world.carry_one(from) {}
    assert_eq!(world.host(to).state(b), ViState::Error);
    assert_eq!(world.host(from).state(a), ViState::Connected);
    world.disconnect(to, b);
    world.host(to).wires.room = usize::MAX;
    world.report(to, Report::Room { peer: from });
    world.settle();
    let status = DONE.and(Status::REMOTE_DESCRIPTOR_ERROR);
    assert_eq!(world.host(from).all_done(a, Queue::Send), [(0, status)]);
}

#[test]
fn completions_go_to_their_queue_and_overruns_are_told() {
    let mut world = World::new(&[A(), B()]);
    let queue = world.host(B()).nic.create_queue(2).unwrap();
    let tag = world.host(B()).tag;
    let b = world.host(B()).nic.create_vi(ViAttributes { tag, ..PLAIN() }, Some(queue), Some(queue)).unwrap();
    let a = world.host(A()).vi(PLAIN());
    world.connect_vis((A(), a), (B(), b));
    for index in 0..3 {
        world.host(B()).post_plain(b, Queue::Receive, index, 0, 10);
        world.host(A()).post_plain(a, Queue::Send, index, 0, 10);
    }
    world.settle();
    let nic = &mut world.host(B()).nic;
    assert_eq!(nic.destroy_queue(queue), Err(ViError::Resource));
    assert_eq!(nic.resize_queue(queue, 1), Err(ViError::Resource));
    for _ in 0..2 {
        assert_eq!(nic.take_completion(queue), Ok(Some((b, Queue::Receive))));
    }
    assert_eq!(nic.take_completion(queue), Ok(None));
    let news = nic.take_news().unwrap();
    assert_eq!((news.vi, news.queue, news.error), (Some(b), Some(queue), AsyncError::Overrun));
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 3);
    world.host(B()).post_plain(b, Queue::Send, 5, 0, 1);
    world.host(A()).post_plain(a, Queue::Receive, 5, 0, 1);
    world.settle();
    assert_eq!(world.host(B()).nic.take_completion(queue), Ok(Some((b, Queue::Send))));
    world.disconnect(B(), b);
    world.host(B()).all_done(b, Queue::Send);
    let nic = &mut world.host(B()).nic;
    nic.destroy_vi(b).unwrap();
    nic.destroy_queue(queue).unwrap();
    assert_eq!(nic.take_completion(queue), Err(ViError::Parameter));
}

#[test]
fn limits_hold_and_one_more_is_refused() {
    let mut world = World::new(&[A()]);
    let host = world.host(A());
    let limits = *host.nic.limits();
    assert_eq!(host.nic.create_queue(0), Err(ViError::Parameter));
    assert_eq!(host.nic.create_queue(limits.completion_entries + 1), Err(ViError::Resource));
    let queues: Vec<QueueNumber> =
        (0..limits.completion_queues).map(|_| host.nic.create_queue(limits.completion_entries).unwrap()).collect();
    assert_eq!(host.nic.create_queue(1), Err(ViError::Resource));
    host.nic.destroy_queue(queues[5]).unwrap();
    host.nic.create_queue(1).unwrap();
    let most = ViAttributes { transfer_bytes_max: limits.transfer_bytes, ..PLAIN() };
    let vis: Vec<ViNumber> = (0..limits.vis).map(|_| host.vi(most)).collect();
    let tag = host.tag;
    assert_eq!(host.nic.create_vi(ViAttributes { tag, ..PLAIN() }, None, None), Err(ViError::Resource));
    host.nic.destroy_vi(vis[7]).unwrap();
    host.vi(PLAIN());
    for _ in 0..limits.descriptors {
        host.post_plain(vis[0], Queue::Receive, 0, 0, 0);
    }
    assert_eq!(host.post(vis[0], Queue::Receive, 0), Err(ViError::Resource));
    assert_eq!(host.errors(), [AsyncError::Overrun]);
    let too_large = ViAttributes { tag, transfer_bytes_max: limits.transfer_bytes + 1, ..PLAIN() };
    assert_eq!(host.nic.set_vi_attributes(vis[1], too_large), Err(ViError::TransferBytes));
    let unreliable = ViAttributes { tag, remote_read: true, ..attributes(Reliability::Unreliable) };
    assert_eq!(host.nic.set_vi_attributes(vis[1], unreliable), Err(ViError::RemoteRead));
    assert_eq!(host.nic.set_vi_attributes(vis[1], ViAttributes { tag, class: 8, ..PLAIN() }), Err(ViError::Quality));
    let no_tag = ViAttributes { tag: TagHandle(0), ..PLAIN() };
    assert_eq!(host.nic.set_vi_attributes(vis[1], no_tag), Err(ViError::Tag));
}

#[test]
fn what_is_no_descriptor_is_refused_at_once() {
    let mut world = World::new(&[A()]);
    let host = world.host(A());
    let vi = host.vi(PLAIN());
    let (first, handle) = (host.address(0), host.handle);
    let last = host.address(BYTES - 64);
    host.put(BYTES - 64 + 12, &[3]);
    let other = host.nic.create_tag().unwrap();
    let attributes = MemoryAttributes { tag: other, remote_write: false, remote_read: false };
    let foreign = host.nic.permit(first, 64, attributes).unwrap();
    let wrong = [
        (0, handle),
        (first + 32, handle),
        (first, MemoryHandle::NONE),
        (first, foreign),
        (host.address(BYTES), handle),
        // Its segments are not all inside.
        (last, handle),
    ];
    for descriptor in wrong {
        let posted = host.nic.post(vi, Queue::Receive, descriptor, &mut host.wires);
        assert_eq!(posted, Err(ViError::Parameter), "{descriptor:?}");
        let news = host.nic.take_news().unwrap();
        assert_eq!((news.vi, news.descriptor, news.error), (Some(vi), descriptor.0, AsyncError::PostDescriptor));
    }
    assert!(host.nic.query_vi(vi).unwrap().receives_empty);
    assert_eq!(host.nic.post(ViNumber(0), Queue::Send, (first, handle), &mut host.wires), Err(ViError::Parameter));
}

#[test]
fn a_descriptor_whose_memory_is_given_up_completes_with_an_error() {
    let (mut world, (from, a), (to, b)) = joined(Manner::Delivered, Reliability::Delivery);
    world.host(to).post_plain(b, Queue::Receive, 0, 0, 100);
    let address = world.host(to).address(0);
    let handle = world.host(to).handle;
    world.host(to).nic.deregister(address, handle).unwrap();
    world.host(from).post_plain(a, Queue::Send, 0, 0, 100);
    world.settle();
    assert!(matches!(world.host(to).nic.dequeue(b, Queue::Receive), Ok(Dequeue::Complete { is_error: true, .. })));
    assert!(world.host(to).errors().contains(&AsyncError::CompletionProtection));
    assert_eq!(world.host(from).state(a), ViState::Error);
}
