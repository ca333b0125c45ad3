//! The other forms of each call: what can go now, what is here now, what has begun; and what a handle that is dropped
//! gives back.

use std::time::Duration;

use musubi_mcapi::{
    Deadline, DeadlineExt, Error, Named, Node, NodeId, ScalarReceiver, ScalarSender, attribute, limits,
};

use crate::bodies::{PORT, Pair, arrived, inbox, open_packets, soon};

pub fn messages_go_and_are_taken_without_waiting(pair: &Pair) {
    let (inbox, to, from) = inbox(pair);
    assert!(inbox.try_receive().unwrap().is_none());
    assert_eq!(inbox.available(), Ok(0));
    from.send(&to, 2, b"", soon()).unwrap();
    from.send(&to, 2, b"five!", soon()).unwrap();
    arrived(pair, || inbox.available(), 2);
    let empty = inbox.try_receive().unwrap().unwrap();
    assert_eq!((empty.is_empty(), empty.len(), empty.to_vec()), (true, 0, Vec::new()));
    let message = inbox.try_receive().unwrap().unwrap();
    assert!(!message.is_empty() && message.len() == 5 && message.priority() == 2);
    let mut first = [0; 3];
    assert_eq!((message.copy_to(&mut first), &first), (3, b"fiv"));
    assert!(inbox.try_receive().unwrap().is_none());
    let mut went = 0;
    while from.try_send(&to, 0, b"now").unwrap() {
        went += 1;
        assert!(went <= limits::MESSAGE_CREDIT, "a sender is never held back");
    }
    // The credit for the two that were taken may not be back.
    assert!(went + 2 >= limits::MESSAGE_CREDIT, "{went}");
    let mut later = from.request_send(&to, 3, b"last".to_vec()).unwrap();
    assert_eq!(later.try_take(), Ok(None));
    assert!(format!("{later:?}").starts_with("Request"));
    for _ in 0..went {
        assert_eq!(inbox.receive(soon()).unwrap().to_vec(), b"now");
    }
    assert_eq!(inbox.receive(soon()).unwrap().to_vec(), b"last");
    later.wait(soon()).unwrap();
    assert_eq!(later.try_take(), Err(Error::RequestInvalid));
}

pub fn packets_go_and_are_taken_without_waiting(pair: &Pair) {
    let (sender, receiver) = open_packets(pair);
    assert_eq!(receiver.available(), Ok(0));
    assert!(receiver.try_receive().unwrap().is_none());
    let mut began = receiver.request_receive().unwrap();
    assert!(began.try_take().unwrap().is_none());
    assert_eq!(sender.try_send(b"0123456789"), Ok(true));
    let packet = began.wait(soon()).unwrap();
    assert!(!packet.is_empty());
    let mut middle = [0; 4];
    assert_eq!((packet.copy_from(3, &mut middle), &middle), (4, b"3456"));
    assert_eq!((packet.copy_from(8, &mut middle), &middle[..2]), (2, &b"89"[..]));
    assert_eq!(packet.copy_from(10, &mut middle), 0);
    assert_eq!(packet.copy_from(11, &mut middle), 0);
    match (packet.bytes(), packet.address()) {
        (Some(bytes), None) => assert_eq!(bytes, b"0123456789"),
        (None, Some(address)) => assert!(!address.is_null()),
        both => panic!("{both:?}"),
    }
    drop(packet);
    let long = vec![5; 200_000];
    assert_eq!(sender.try_send(&long), Ok(true));
    assert_eq!(sender.try_send(b""), Ok(true));
    arrived(pair, || receiver.available(), 2);
    let packet = receiver.try_receive().unwrap().unwrap();
    let mut end = [0; 3];
    assert_eq!((packet.copy_from(199_998, &mut end), &end[..2]), (2, &[5, 5][..]));
    assert!(packet.bytes().is_none_or(|bytes| bytes == long));
    assert!(receiver.try_receive().unwrap().unwrap().is_empty());
    assert!(receiver.try_receive().unwrap().is_none());
    drop(packet);
    let mut went = 0;
    while sender.try_send(b"small").unwrap() {
        went += 1;
        assert!(went <= limits::PACKET_CREDIT, "a sender is never held back");
    }
    let closing = receiver.close().unwrap();
    drop(closing);
}

pub fn scalars_go_and_are_taken_without_waiting(pair: &Pair) {
    let to = pair.one.create_endpoint(None).unwrap();
    let from = pair.other.create_endpoint(None).unwrap();
    pair.one.connect_scalars(&from, &to).unwrap().wait(soon()).unwrap();
    let mut sender = ScalarSender::<u16>::open(&from).unwrap();
    let receiver = ScalarReceiver::<u16>::open(&to).unwrap().wait(soon()).unwrap();
    let sender = sender.wait(soon()).unwrap();
    assert_eq!((sender.name(), receiver.name()), (from.name(), to.name()));
    assert_eq!((receiver.try_receive(), receiver.available()), (Ok(None), Ok(0)));
    let mut went = 0;
    assert_eq!(sender.try_send(went), Ok(true));
    went += 1;
    // In the link there is room for fewer at a time than there is credit for.
    while sender.send(went, Deadline::after(Duration::from_millis(200))).is_ok() {
        went += 1;
        assert!(u32::from(went) <= limits::SCALAR_CREDIT, "a sender is never held back");
    }
    assert_eq!((u32::from(went), sender.try_send(went)), (limits::SCALAR_CREDIT, Ok(false)));
    arrived(pair, || receiver.available(), usize::from(went));
    for word in 0..went {
        assert_eq!(receiver.try_receive(), Ok(Some(word)));
    }
    assert_eq!(receiver.try_receive(), Ok(None));
    let next = std::thread::scope(|scope| {
        let next = scope.spawn(|| pollster::block_on(receiver.next()));
        sender.send(99, soon()).unwrap();
        next.join().unwrap()
    });
    assert_eq!(next, Ok(99));
}

pub fn what_is_dropped_is_given_back(pair: &Pair) {
    let (inbox, found, _from) = inbox(pair);
    let gets = || pair.other.attribute(&inbox, attribute::GET_COUNT, soon());
    assert_eq!(gets(), Ok(1));
    let second = pair.other.get_endpoint((0, 1), PORT, soon()).unwrap();
    assert_eq!(gets(), Ok(2));
    drop(second);
    assert_eq!(gets(), Ok(1));
    // An answer that came before its request was dropped.
    let began = pair.other.request_endpoint((0, 1), PORT).unwrap();
    pair.other.ping((0, 1), 0, soon()).unwrap();
    assert_eq!(gets(), Ok(2));
    drop(began);
    assert_eq!(gets(), Ok(1));
    drop(found);
    assert_eq!(gets(), Ok(0));
    let other = inbox.clone();
    drop(inbox);
    assert_eq!(other.available(), Ok(0), "the last handle deletes it");
    let name = other.name();
    drop(other);
    let from = pair.other.create_endpoint(None).unwrap();
    let port = pair.one.create_endpoint(Some(PORT)).unwrap();
    assert_ne!(port.name(), name);
    port.clone().delete().unwrap();
    assert_eq!(port.delete(), Err(Error::EndpointInvalid), "it was deleted at once, not when its last handle went");
    assert_eq!(from.available(), Ok(0));
}

pub fn a_node_shows_a_picture_of_itself(pair: &Pair) {
    let (_inbox, _found, _from) = inbox(pair);
    let own = pair.one.inspect((0, 1), 0, soon()).unwrap();
    let far = pair.other.inspect((0, 1), 0, soon()).unwrap();
    for bytes in [own, far] {
        let part = musubi_mcapi::engine::inspect::Part::decode(&bytes).unwrap();
        assert_eq!((part.node.node, part.node.endpoints), (NodeId::new(0, 1).unwrap(), 1));
    }
    assert_eq!(pair.one.inspect((40, 1), 0, soon()), Err(Error::NodeInvalid));
}

pub fn a_node_runs_once_and_where_the_system_has_it(pair: &Pair) {
    let system = pair.one.system();
    let begin = |domain, node| Node::initialize(system, domain, node).map(|node| node.id()).unwrap_err();
    assert_eq!(begin(limits::DOMAIN_MAX + 1, 0), Error::DomainInvalid);
    assert_eq!(begin(0, 1 << 20), Error::NodeInvalid);
}
