//! Memory that is lent while it is posted: it comes back once, or goes with its VI; and alarms.

use alloc::boxed::Box;

use super::*;
use crate::engine::{Operation, RemotePlace};
use crate::memory::Lent;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);

impl Host {
    /// A region of so many bytes of a value, in hand.
    fn lendable(&mut self, bytes: usize, value: u8) -> Box<Lent> {
        let bytes = alloc::vec![value; bytes];
        let attributes = MemoryAttributes { tag: self.tag, remote_write: false, remote_read: false };
        let handle = self.nic.permit(bytes.as_ptr().addr() as u64, bytes.len() as u64, attributes).unwrap();
        Box::new(Lent { handle, bytes })
    }

    fn post_lent(&mut self, vi: ViNumber, queue: Queue, lent: Box<Lent>) -> Result<(), (ViError, Box<Lent>)> {
        let work = LentWork {
            operation: Operation::SendReceive,
            immediate: None,
            fence: false,
            remote: RemotePlace::default(),
            offset: 0,
            bytes: lent.bytes.len() as u32,
        };
        self.nic.post_lent(vi, queue, (lent, &work), &mut self.wires)
    }

    /// What came back: its bytes, and how it ended.
    fn taken(&mut self, vi: ViNumber, queue: Queue) -> Option<(Vec<u8>, Status)> {
        match self.nic.take_lent(vi, queue).unwrap() {
            LentBack::Complete { lent, completion, .. } => Some((lent.bytes, completion.status)),
            _ => None,
        }
    }
}

#[test]
fn lent_memory_comes_back_with_its_completion() {
    let mut world = World::new(&[A(), B()]);
    let (a, b) = world.connect(A(), B(), PLAIN());
    let host = world.host(B());
    let lent = host.lendable(4, 0);
    host.post_lent(b, Queue::Receive, lent).unwrap();
    assert_eq!(host.taken(b, Queue::Receive), None);
    let host = world.host(A());
    let lent = host.lendable(3, 7);
    host.post_lent(a, Queue::Send, lent).unwrap();
    world.settle();
    let plain = Status::DONE;
    assert_eq!(world.host(A()).taken(a, Queue::Send), Some((alloc::vec![7; 3], plain)));
    let came = Some((alloc::vec![7, 7, 7, 0], plain.and(Status::OP_RECEIVE)));
    assert_eq!(world.host(B()).taken(b, Queue::Receive), came);
    for (node, vi) in [(A(), a), (B(), b)] {
        let host = world.host(node);
        assert!(matches!(host.nic.take_lent(vi, Queue::Send), Ok(LentBack::Empty)));
        assert_eq!(host.errors(), []);
        let lost = host.nic.take_lent(ViNumber(99), Queue::Send).unwrap_err();
        assert_eq!(lost, ViError::Parameter);
    }
}

#[test]
fn what_has_no_room_in_its_queues_is_given_back_unposted() {
    let mut world = World::new(&[A()]);
    let host = world.host(A());
    let queue = host.nic.create_queue(2).unwrap();
    let attributes = ViAttributes { tag: host.tag, ..PLAIN() };
    let vis = [0, 1].map(|_| host.nic.create_vi(attributes, None, Some(queue)).unwrap());
    for vi in vis {
        let lent = host.lendable(1, 1);
        host.post_lent(vi, Queue::Receive, lent).unwrap();
    }
    let lent = host.lendable(1, 9);
    let (error, lent) = host.post_lent(vis[0], Queue::Receive, lent).unwrap_err();
    assert_eq!((error, &lent.bytes[..]), (ViError::Resource, &[9][..]));
    let (error, lent) = host.post_lent(ViNumber(99), Queue::Receive, lent).unwrap_err();
    assert_eq!(error, ViError::Parameter);
    // Taking one back makes room.
    host.nic.disconnect(vis[1], &mut host.wires).unwrap();
    assert!(matches!(host.nic.take_lent_of(queue), Ok(Some((vi, LentBack::Complete { .. }))) if vi == vis[1]));
    assert!(matches!(host.nic.take_lent_of(queue), Ok(None)));
    host.post_lent(vis[0], Queue::Receive, lent).unwrap();
    let lent = host.lendable(1, 9);
    assert!(host.post_lent(vis[0], Queue::Receive, lent).is_err());
    assert_eq!(host.errors(), []);
    // What is given up with a VI makes room, too.
    host.nic.end_lent(vis[0], &mut host.wires);
    for _ in 0..2 {
        let lent = host.lendable(1, 2);
        host.post_lent(vis[1], Queue::Receive, lent).unwrap();
    }
    host.nic.end_lent(vis[1], &mut host.wires);
    host.nic.destroy_queue(queue).unwrap();
}

#[test]
fn a_vi_that_ends_leaves_no_region_registered() {
    let mut world = World::new(&[A(), B()]);
    let (a, b) = world.connect(A(), B(), PLAIN());
    let host = world.host(A());
    let lent = [0; 3].map(|_| host.lendable(5, 1));
    let places: Vec<(u64, MemoryHandle)> =
        lent.iter().map(|lent| (lent.bytes.as_ptr().addr() as u64, lent.handle)).collect();
    for (lent, queue) in lent.into_iter().zip([Queue::Receive, Queue::Send, Queue::Receive]) {
        host.post_lent(a, queue, lent).unwrap();
    }
    assert!(places.iter().all(|(address, handle)| host.nic.memory_attributes(*address, *handle).is_ok()));
    host.nic.end_lent(a, &mut host.wires);
    assert!(places.iter().all(|(address, handle)| host.nic.memory_attributes(*address, *handle).is_err()));
    assert_eq!(host.nic.query_vi(a), Err(ViError::Parameter));
    let tag = host.tag;
    host.nic.deregister(host.base, host.handle).unwrap();
    host.nic.destroy_tag(tag).unwrap();
    world.settle();
    assert_eq!(world.host(B()).state(b), ViState::Error);
}

#[test]
fn an_alarm_rings_at_its_instant_and_is_the_next_thing_due_until_then() {
    let mut world = World::new(&[A()]);
    let Host { nic, wires, .. } = world.host(A());
    let idle_ns = nic.tick(1, wires);
    let ((late, is_first), (early, is_earlier)) = (nic.set_alarm(300).unwrap(), nic.set_alarm(200).unwrap());
    assert!(is_first && is_earlier, "who sleeps longer is to be woken");
    assert!(!nic.set_alarm(200).unwrap().1);
    assert_eq!((idle_ns, nic.tick(100, wires)), (u64::MAX, 200));
    assert!(!nic.has_rung(early) && !nic.is_over(Awaited::Alarm(early)));
    let changes = nic.changes();
    assert_eq!((nic.tick(200, wires), nic.changes()), (300, changes + 2));
    assert!(nic.is_over(Awaited::Alarm(early)) && !nic.has_rung(late));
    assert_eq!((nic.tick(250, wires), nic.changes()), (300, changes + 2));
    nic.clear_alarm(late);
    nic.clear_alarm(early);
    assert!(nic.has_rung(late), "it is no more");
    assert_eq!((nic.tick(400, wires), nic.tick(400, wires), nic.changes()), (u64::MAX, u64::MAX, changes + 2));
}

#[test]
fn who_awaits_a_caller_or_its_confirmation_is_told_when_there_is_one() {
    let mut world = World::new(&[A(), B()]);
    let listener = world.host(B()).nic.listen(&at(1, "port")).unwrap();
    assert!(!world.host(B()).nic.is_over(Awaited::Caller(listener)));
    let a = world.host(A()).vi(PLAIN());
    let Host { nic, wires, .. } = world.host(A());
    nic.request(a, at(0, ""), at(1, "port"), wires).unwrap();
    assert!(!nic.is_over(Awaited::Outcome(a)) && nic.is_over(Awaited::End(a)));
    world.settle();
    let b = world.host(B()).vi(PLAIN());
    let Host { nic, wires, .. } = world.host(B());
    assert!(nic.is_over(Awaited::Caller(listener)));
    let (caller, ..) = nic.next_caller(listener).unwrap();
    assert!(!nic.is_over(Awaited::Caller(listener)));
    nic.accept(caller, b, wires).unwrap();
    assert!(!nic.is_over(Awaited::Confirmation(caller)) && !nic.is_over(Awaited::End(b)));
    world.settle();
    let nic = &mut world.host(B()).nic;
    assert!(nic.is_over(Awaited::Confirmation(caller)));
    assert_eq!(nic.accepted(caller), Some(Ok(())));
    assert!(world.host(A()).nic.is_over(Awaited::Outcome(a)));
    world.disconnect(A(), a);
    world.settle();
    assert!(world.host(B()).nic.is_over(Awaited::End(b)));
}
