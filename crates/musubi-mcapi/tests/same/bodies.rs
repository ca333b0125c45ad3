//! What holds over every kind of links: each test gets two nodes, and does not know what is between them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::{
    Deadline, DeadlineExt, Endpoint, Error, Named, Node, PacketReceiver, PacketSender, Remote, Request, Scalar,
    ScalarReceiver, ScalarSender, attribute, limits, wait_any,
};

/// Two nodes of one system, 0:1 and 0:2.
pub struct Pair {
    pub one: Node,
    pub other: Node,
}

impl Pair {
    /// Ends both nodes if this thread panics: who waits for something that it would have done then fails at once, instead of
    /// holding up the test until the deadline of each call.
    fn end_if_this_fails(&self) -> EndIfPanicking<'_> {
        EndIfPanicking(self)
    }
}

struct EndIfPanicking<'p>(&'p Pair);

impl Drop for EndIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = (self.0.one.finalize(), self.0.other.finalize());
        }
    }
}

pub const PORT: u32 = 40;

pub fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// An endpoint of `one`, and what `other` found for it, and an endpoint of `other`.
pub fn inbox(pair: &Pair) -> (Endpoint, Remote, Endpoint) {
    let inbox = pair.one.create_endpoint(Some(PORT)).unwrap();
    let found = pair.other.get_endpoint((0, 1), PORT, soon()).unwrap();
    assert_eq!(found.name(), inbox.name());
    (inbox, found, pair.other.create_endpoint(None).unwrap())
}

/// Looks at the links until so many have arrived; nothing is waited for meanwhile.
pub fn arrived(pair: &Pair, available: impl Fn() -> Result<usize, Error>, wanted: usize) {
    let began = Instant::now();
    while available() != Ok(wanted) {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?} of {wanted}", available());
        let _ = pair.one.ping((0, 1), 0, soon());
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn messages_arrive_whole_and_in_order(pair: &Pair) {
    let (inbox, to, from) = inbox(pair);
    let sizes = [0, 1, 24, 95, 96, 700, 5000, limits::MESSAGE_BYTES_MAX];
    thread::scope(|scope| {
        let _guard = pair.end_if_this_fails();
        scope.spawn(|| {
            let _guard = pair.end_if_this_fails();
            for round in 0..10u8 {
                for size in sizes {
                    from.send(&to, 1, &vec![round; size], soon()).unwrap();
                }
            }
        });
        for round in 0..10u8 {
            for size in sizes {
                let message = inbox.receive(soon()).unwrap();
                assert_eq!((message.len(), message.from(), message.priority()), (size, from.name(), 1));
                assert!(message.to_vec().iter().all(|byte| *byte == round));
            }
        }
    });
    assert_eq!(inbox.available(), Ok(0));
    let too_long = vec![0; limits::MESSAGE_BYTES_MAX + 1];
    assert_eq!(from.send(&to, 0, &too_long, soon()), Err(Error::MessageSize));
    assert_eq!(from.send(&to, u32::from(limits::PRIORITIES), b"", soon()), Err(Error::Priority));
}

pub fn the_first_message_over_a_link_is_refused_if_its_endpoint_is_connected(pair: &Pair) {
    let [sends, receives, free] = [(); 3].map(|()| pair.one.create_endpoint(None).unwrap());
    pair.one.connect_packets(&sends, &receives).unwrap().wait(soon()).unwrap();
    let from = pair.other.create_endpoint(None).unwrap();
    // By its name, as another program may have told it: there is no link yet.
    assert_eq!(from.send(&receives.name(), 0, b"first", soon()), Err(Error::General));
    from.send(&free.name(), 0, b"second", soon()).unwrap();
    assert_eq!(free.receive(soon()).unwrap().to_vec(), b"second");
    assert_eq!(receives.available(), Ok(0));
}

pub fn the_urgent_is_taken_first(pair: &Pair) {
    let (inbox, to, from) = inbox(pair);
    for (priority, text) in [(3, "late"), (1, "soon"), (0, "now"), (1, "soon too")] {
        from.send(&to, priority, text.as_bytes(), soon()).unwrap();
    }
    arrived(pair, || inbox.available(), 4);
    for text in ["now", "soon", "soon too", "late"] {
        assert_eq!(inbox.receive(soon()).unwrap().to_vec(), text.as_bytes());
    }
    assert!(inbox.try_receive().unwrap().is_none());
}

pub fn a_slow_receiver_holds_its_sender_back_and_loses_nothing(pair: &Pair) {
    let (slow, to_slow, from) = inbox(pair);
    let quick = pair.one.create_endpoint(None).unwrap();
    let mut sent = 0u32;
    let full = Deadline::after(Duration::from_millis(200));
    while from.send(&to_slow, 0, &sent.to_le_bytes(), full).is_ok() {
        sent += 1;
        assert!(sent < 10_000, "a sender is never held back");
    }
    from.send(&quick, 0, b"past it", soon()).unwrap();
    assert_eq!(quick.receive(soon()).unwrap().to_vec(), b"past it");
    for number in 0..sent {
        assert_eq!(slow.receive(soon()).unwrap().to_vec(), number.to_le_bytes());
    }
    from.send(&to_slow, 0, b"on", soon()).unwrap();
    assert_eq!(slow.receive(soon()).unwrap().to_vec(), b"on");
}

pub fn an_endpoint_is_found_when_it_comes_to_exist(pair: &Pair) {
    let mut request = pair.other.request_endpoint((0, 1), PORT).unwrap();
    assert_eq!(request.wait(Deadline::after(Duration::from_millis(30))).unwrap_err(), Error::Timeout);
    assert!(request.try_take().unwrap().is_none());
    let endpoint = pair.one.create_endpoint(Some(PORT)).unwrap();
    assert_eq!(request.wait(soon()).unwrap().name(), endpoint.name());
    assert_eq!(request.wait(soon()).unwrap_err(), Error::RequestInvalid);
    assert_eq!(pair.one.create_endpoint(Some(PORT)).unwrap_err(), Error::EndpointExists);
    let port = limits::PORT_MAX + 1;
    assert_eq!(pair.other.get_endpoint((0, 1), port, soon()).unwrap_err(), Error::PortInvalid);
}

pub fn attributes_are_read_from_afar(pair: &Pair) {
    let (inbox, far, _from) = inbox(pair);
    assert_eq!(pair.other.attribute(&far, attribute::PRIORITY, soon()), Ok(0));
    inbox.set(attribute::PRIORITY, 3).unwrap();
    assert_eq!(pair.other.attribute(&far, attribute::PRIORITY, soon()), Ok(3));
    assert_eq!(pair.one.attribute(&inbox, attribute::PRIORITY, soon()), Ok(3));
    assert_eq!(pair.other.attribute(&far, attribute::TIMEOUT_MS, soon()), Ok(u32::MAX));
    assert_eq!(inbox.set(attribute::GET_COUNT, 1), Err(Error::AttributeReadOnly));
}

pub fn a_ping_comes_back(pair: &Pair) {
    for bytes in [0, 56, 5000] {
        let trip = pair.one.ping((0, 2), bytes, soon()).unwrap();
        assert!(trip.time > Duration::ZERO && trip.time < Duration::from_secs(20));
    }
    pair.other.ping((0, 2), 8, soon()).unwrap();
}

pub fn open_packets(pair: &Pair) -> (PacketSender, PacketReceiver) {
    let (to, found, from) = inbox(pair);
    let mut opening = PacketReceiver::open(&to).unwrap();
    pair.other.connect_packets(&from, &found).unwrap().wait(soon()).unwrap();
    let sender = PacketSender::open(&from).unwrap().wait(soon()).unwrap();
    (sender, opening.wait(soon()).unwrap())
}

pub fn packets_arrive_whole_and_in_order(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    let sizes = [0, 1, 100, 4096, 32_768, 300_000, limits::PACKET_BYTES_MAX];
    thread::scope(|scope| {
        let _guard = pair.end_if_this_fails();
        scope.spawn(|| {
            let _guard = pair.end_if_this_fails();
            for round in 0..8u8 {
                if round % 4 == 3 {
                    let burst = sizes.map(|size| vec![round; size].into());
                    assert_eq!(sender.send_burst(&burst, soon()), Ok(burst.len()));
                    continue;
                }
                for size in sizes {
                    match round % 4 {
                        0 => sender.send(&vec![round; size], soon()).unwrap(),
                        1 => sender.send_shared(vec![round; size], soon()).unwrap(),
                        _ => sender.request_send(vec![round; size]).unwrap().wait(soon()).unwrap(),
                    }
                }
            }
        });
        for round in 0..8u8 {
            for size in sizes {
                let packet = receiver.receive(soon()).unwrap();
                assert_eq!(packet.len(), size);
                assert!(packet.to_vec().iter().all(|byte| *byte == round));
                let mut last = [0];
                assert_eq!(packet.copy_from(size.saturating_sub(1), &mut last), usize::from(size > 0));
            }
        }
    });
    let too_long = vec![0; limits::PACKET_BYTES_MAX + 1];
    assert_eq!(sender.send(&too_long, soon()), Err(Error::PacketSize));
    let burst = [vec![1].into(), too_long.clone().into()];
    assert_eq!(sender.send_burst(&burst, soon()), Err(Error::PacketSize));
    assert_eq!(sender.send_shared(too_long, soon()), Err(Error::PacketSize));
    assert!(receiver.try_receive().unwrap().is_none(), "nothing of a burst that is refused");
}

pub fn a_burst_says_how_much_of_it_went(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    assert_eq!(sender.send_burst(&[], Deadline::Poll), Ok(0));
    let packets: Vec<_> = (0..200u8).map(|number| vec![number; 1000].into()).collect();
    let went = sender.send_burst(&packets, Deadline::after(Duration::from_millis(100))).unwrap();
    assert!(went > 0 && went < packets.len(), "{went}");
    assert_eq!(sender.send_burst(&packets[went..], Deadline::Poll), Err(Error::Timeout));
    thread::scope(|scope| {
        let _guard = pair.end_if_this_fails();
        scope.spawn(|| assert_eq!(sender.send_burst(&packets[went..], soon()), Ok(packets.len() - went)));
        for number in 0..200u8 {
            assert_eq!(receiver.receive(soon()).unwrap().to_vec(), [number; 1000]);
        }
    });
    let _closing = receiver.close().unwrap();
    // The word of it is under way.
    let refused = (0..100).find_map(|_| sender.send_burst(&packets, soon()).err());
    assert_eq!(refused, Some(Error::ChannelInvalid));
}

pub fn a_shared_packet_is_sent_again_and_again_and_let_go(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    let packet = Arc::new((0..50_000).map(|at| at as u8).collect::<Vec<u8>>());
    for _ in 0..100 {
        sender.send_shared(Arc::clone(&packet), soon()).unwrap();
        assert_eq!(receiver.receive(soon()).unwrap().to_vec(), *packet);
    }
    // The last request is complete when all before it are acknowledged.
    let mut last = sender.request_send(Arc::clone(&packet)).unwrap();
    assert_eq!(receiver.receive(soon()).unwrap().len(), packet.len());
    last.wait(soon()).unwrap();
    assert_eq!(Arc::strong_count(&packet), 1);
}

pub fn packets_in_hand_hold_the_sender_back(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    let (mut held, mut sent) = (Vec::new(), 0u32);
    while sender.send(&sent.to_le_bytes(), Deadline::after(Duration::from_millis(100))).is_ok() {
        sent += 1;
        assert!(sent < 1000, "a sender is never held back");
        held.push(receiver.receive(soon()).unwrap());
    }
    // In any order.
    held.swap_remove(0);
    held.pop();
    sender.send(b"there is room", soon()).unwrap();
    assert_eq!(receiver.receive(soon()).unwrap().to_vec(), b"there is room");
    assert_eq!(held[2].to_vec().len(), 4);
}

pub fn a_closed_sender_leaves_what_it_sent(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    for text in [b"first", b"later"] {
        sender.send(text, soon()).unwrap();
    }
    drop(sender);
    assert_eq!(receiver.receive(soon()).unwrap().to_vec(), b"first");
    assert_eq!(receiver.receive(soon()).unwrap().to_vec(), b"later");
    assert_eq!(receiver.receive(soon()).unwrap_err(), Error::ChannelInvalid);
    receiver.close().unwrap().wait(soon()).unwrap();
}

pub fn a_channel_is_opened_again_after_both_have_closed(pair: &Pair) {
    let (to, found, from) = inbox(pair);
    for round in 0..5u8 {
        pair.other.connect_packets(&from, &found).unwrap().wait(soon()).unwrap();
        let (mut sender, mut receiver) = (PacketSender::open(&from).unwrap(), PacketReceiver::open(&to).unwrap());
        let (sender, receiver) = (sender.wait(soon()).unwrap(), receiver.wait(soon()).unwrap());
        sender.send(&[round], soon()).unwrap();
        assert_eq!(receiver.receive(soon()).unwrap().to_vec(), [round]);
        let (mut one, mut other) = (sender.close().unwrap(), receiver.close().unwrap());
        one.wait(soon()).unwrap();
        other.wait(soon()).unwrap();
    }
}

fn scalars_of<T: Scalar + PartialEq + std::fmt::Debug>(pair: &Pair, words: &[T]) {
    let to = pair.one.create_endpoint(None).unwrap();
    let from = pair.other.create_endpoint(None).unwrap();
    // A third party could: here the receiver connects.
    pair.one.connect_scalars(&from, &to).unwrap().wait(soon()).unwrap();
    let mut sender = ScalarSender::<T>::open(&from).unwrap();
    let receiver = ScalarReceiver::<T>::open(&to).unwrap().wait(soon()).unwrap();
    let sender = sender.wait(soon()).unwrap();
    thread::scope(|scope| {
        let _guard = pair.end_if_this_fails();
        scope.spawn(|| (0..200).for_each(|_| words.iter().for_each(|word| sender.send(*word, soon()).unwrap())));
        for _ in 0..200 {
            for word in words {
                assert_eq!(receiver.receive(soon()).unwrap(), *word);
            }
        }
    });
    assert_eq!(receiver.try_receive(), Ok(None));
}

pub fn scalars_of_every_size_arrive(pair: &Pair) {
    scalars_of(pair, &[0u8, 1, u8::MAX]);
    scalars_of(pair, &[0u16, 0x1234, u16::MAX]);
    scalars_of(pair, &[0u32, 0x1234_5678, u32::MAX]);
    scalars_of(pair, &[0u64, 0x1234_5678_9abc_def0, u64::MAX]);
}

pub fn a_request_that_is_dropped_takes_nothing(pair: &Pair) {
    let (inbox, to, from) = inbox(pair);
    drop(inbox.request_receive().unwrap());
    drop(pair.other.request_endpoint((0, 1), PORT + 1).unwrap());
    from.send(&to, 0, b"kept", soon()).unwrap();
    assert_eq!(inbox.receive(soon()).unwrap().to_vec(), b"kept");
}

pub fn any_of_several_is_waited_for(pair: &Pair) {
    let (first, _, from) = inbox(pair);
    let second = pair.one.create_endpoint(None).unwrap();
    let requests: Vec<Request<_>> = [&first, &second].map(|at| at.request_receive().unwrap()).into();
    let all = [&requests[0] as &dyn musubi_mcapi::Awaited<_>, &requests[1]];
    assert_eq!(wait_any(&all, Deadline::after(Duration::from_millis(20))), Err(Error::Timeout));
    from.send(&second, 0, b"", soon()).unwrap();
    assert_eq!(wait_any(&all, soon()), Ok(1));
    assert_eq!(wait_any(&[], soon()), Err(Error::Parameter));
}

pub fn futures_complete(pair: &Pair) {
    let (inbox, to, from) = inbox(pair);
    let task = thread::spawn(move || {
        pollster::block_on(async {
            for round in 0..50u8 {
                assert_eq!(inbox.request_receive().unwrap().await.unwrap().to_vec(), [round]);
            }
        });
    });
    pollster::block_on(async {
        for round in 0..50u8 {
            from.request_send(&to, 0, vec![round]).unwrap().await.unwrap();
        }
    });
    task.join().unwrap();
}

pub fn an_ended_node_says_so_and_its_peers_notice(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    pair.other.finalize().unwrap();
    assert_eq!(sender.send(b"", soon()), Err(Error::NodeNotInitialized));
    assert_eq!(pair.other.create_endpoint(None).unwrap_err(), Error::NodeNotInitialized);
    let error = receiver.receive(soon()).unwrap_err();
    assert!(matches!(error, Error::Transmission | Error::ChannelInvalid), "{error:?}");
}

pub fn an_ended_node_can_begin_again(pair: &Pair, again: impl Fn() -> Node) {
    let (_inbox, _found, _from) = inbox(pair);
    pair.other.finalize().unwrap();
    let other = again();
    let found = other.get_endpoint((0, 1), PORT, soon()).unwrap();
    let from = other.create_endpoint(None).unwrap();
    from.send(&found, 0, b"again", soon()).unwrap();
    assert_eq!(_inbox.receive(soon()).unwrap().to_vec(), b"again");
}
