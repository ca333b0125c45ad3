//! What cannot be sent at once, and memory that is handed on.

use super::*;
use crate::os;
use crate::os::sealed;
use crate::process::rendezvous::membership::SmemMember;
use crate::process::rendezvous::registry::Token;

/// Whether the attendant would hear that this connection has room.
fn hears_of_room(shared: &Shared, id: u32) -> bool {
    let mut events = [os::epoll::NO_EVENT; 8];
    let count = os::epoll::wait(&shared.epoll, &mut events, Some(0));
    events[..count].iter().any(|event| {
        let (data, flags) = (event.data, event.flags);
        Token::of(data) == Some(Token::Connection(id)) && flags.contains(rustix::event::epoll::EventFlags::OUT)
    })
}

#[test]
fn what_finds_no_room_goes_when_there_is_some() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = link(&mut registry, &shared, party(1, 8));
    assert!(!hears_of_room(&shared, id), "it is not asked for");
    // Of different channels, as later news of one takes the place of earlier ones.
    const NEWS: u16 = 3_000;
    for fifo in 0..NEWS {
        let message = Message::End { fifo, direction: Direction::Receive, open: true, serial: 1 };
        registry.send(&shared, id, message, None);
    }
    assert!(!hears_of_room(&shared, id), "there is none");
    registry.obstacles.of.insert(1, Obstacle::Foreign(3));
    let mut came = 0;
    while came < usize::from(NEWS) {
        let more = heard(&other).len();
        assert!(more > 0, "{came} of {NEWS} came");
        came += more;
        assert_eq!(hears_of_room(&shared, id), came < usize::from(NEWS));
        registry.writable(&shared, id);
    }
    assert!(came == usize::from(NEWS) && registry.obstacles.of.is_empty());
    assert_eq!(registry.strangers.withheld, 0);
}

#[test]
fn memory_is_taken_from_members_only_and_if_it_can_be_that() {
    // Of channel 0 all domains are members, domain 0 creates it; channel 1 is the Remotes'.
    for (smem, generation, bytes, is_taken) in
        [(0, 5, 4096, true), (0, 0, 4096, false), (0, 5, 8192, false), (1, 5, 4096, false), (9, 5, 4096, false)]
    {
        let shared = shared(party(0, 7));
        let mut registry = Registry { segments: SmemMember::all(&PLAN, 0), ..Registry::default() };
        let (id, other) = link(&mut registry, &shared, party(1, 8));
        let memory = sealed::new_common("musubi-test", bytes).unwrap();
        let message = Message::Segment { smem, generation };
        packet_socket::send(other.as_fd(), &message.bytes(), &[memory.as_fd()]).unwrap();
        registry.readable(&shared, id);
        assert_eq!(registry.peers.len() == 1, is_taken, "{smem} {generation} {bytes}");
        assert_eq!(registry.segments[0].memory.is_some(), is_taken);
        assert_eq!(registry.strangers.garbage, u32::from(!is_taken));
    }
}

#[test]
fn memory_that_is_ours_to_create_is_created_once_and_handed_on() {
    let shared = shared(party(0, 7));
    let mut registry = Registry { segments: SmemMember::all(&PLAN, 0), ..Registry::default() };
    registry.create_segments(&shared);
    assert!(registry.segments[0].memory.is_none(), "who is there has not been asked");
    registry.joined = true;
    let (_, other) = link(&mut registry, &shared, party(1, 8));
    registry.create_segments(&shared);
    let memory = registry.segments[0].memory.clone().unwrap();
    assert!(matches!(heard(&other)[..], [Incoming::Message(Message::Segment { smem: 0, generation: 7 }, Some(_))]));
    registry.create_segments(&shared);
    assert!(Arc::ptr_eq(&memory, registry.segments[0].memory.as_ref().unwrap()) && heard(&other).is_empty());
    assert_eq!(registry.create_again_ns, None);
    // A Remote creates nothing that is the Master's.
    let mut registry = Registry { segments: SmemMember::all(&PLAN, 1), joined: true, ..Registry::default() };
    let remote = super::shared(party(1, 8));
    registry.create_segments(&remote);
    assert!(registry.segments.iter().all(|member| member.memory.is_none()) && registry.create_again_ns.is_none());
    // Where somebody holds the name it is tried again.
    let holder = crate::os::packet_socket::claim(&remote.names.segment(0)).unwrap().unwrap();
    let mut master = super::shared(party(0, 7));
    master.names = remote.names;
    let mut registry = Registry { segments: SmemMember::all(&PLAN, 0), joined: true, ..Registry::default() };
    registry.create_segments(&master);
    let due_ns = registry.create_again_ns.unwrap();
    assert!(due_ns > now_ns() && registry.segments[0].memory.is_none());
    drop(holder);
    registry.create_again(&master, due_ns - 1);
    assert_eq!((registry.create_again_ns, registry.segments[0].memory.is_none()), (Some(due_ns), true));
    registry.create_again(&master, due_ns);
    assert!(registry.create_again_ns.is_none() && registry.segments[0].memory.is_some());
}
