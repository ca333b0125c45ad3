//! What a token of the event loop says; links of two nodes in one process, and the blocks that come over them.

use std::sync::Arc;

use musubi_core::lane;
use musubi_core::layout::LinkShape;

use super::*;
use crate::os;

#[test]
fn a_token_names_what_it_was_made_of_whatever_stands_above_it() {
    let numbers = [0, 1, 2, 1 << 31, u32::MAX];
    let sources = numbers.into_iter().flat_map(|number| [Source::Socket(number), Source::Bell(number)]);
    for source in sources.chain([Source::Listener]) {
        for above in [0, 1 << 56, 0xff << 56] {
            assert_eq!(Source::of(source.token() | above), Some(source));
        }
    }
    for unknown in [3, 4, 0x10, 0xff] {
        assert_eq!(Source::of(unknown << 32), None);
    }
}

/// What two nodes that are linked with each other are.
struct Sides {
    presences: [Presence; 2],
    epolls: [Arc<Descriptor>; 2],
    links: Vec<Link>,
}

/// Longest that a handshake within one process takes.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
const SHAPE: LinkShape = LinkShape { slots: 256, blocks: 8, block_bytes: 4096 };

fn open(test: &str, node: u16) -> (Presence, Arc<Descriptor>) {
    open_with(test, node, |_| ())
}

fn open_with(test: &str, node: u16, change: impl FnOnce(&mut Options)) -> (Presence, Arc<Descriptor>) {
    let epoll = Arc::new(Descriptor::epoll().unwrap());
    let mut options = Options {
        system: format!("{test}-{}", std::process::id()),
        hash: 7,
        node,
        nodes: 10,
        incarnation: 30 + u32::from(node),
        shape: SHAPE,
        frames: 1,
        epoll: Arc::clone(&epoll),
        token: 5 << 56,
    };
    change(&mut options);
    (Presence::open(options).unwrap(), epoll)
}

/// Descriptors that are ready, of tokens with the owner's bits.
fn ready(epoll: &Descriptor) -> Vec<Source> {
    let mut events = [os::epoll::NO_EVENT; 8];
    let count = os::epoll::wait(epoll, &mut events, Some(0));
    let source = |event: &epoll::Event| {
        let data = event.data;
        assert_eq!(data.u64() >> 56, 5);
        Source::of(data.u64()).unwrap()
    };
    events[..count].iter().map(source).collect()
}

/// Node 1 calls node 2 until both have the link.
fn linked(test: &str) -> Sides {
    let [(one, first), (other, second)] = [open(test, 1), open(test, 2)];
    let mut sides = Sides { presences: [one, other], epolls: [first, second], links: Vec::new() };
    assert_eq!((sides.presences[0].deadline_ns(), sides.presences[0].has_event()), (u64::MAX, false));
    assert_eq!(sides.presences[0].dial(3, 100), Dialed::Absent);
    assert_eq!(sides.presences[0].dial(2, 100), Dialed::Begun);
    assert_eq!(sides.presences[0].dial(2, 200), Dialed::Begun, "it is under way");
    assert_eq!(sides.presences[0].deadline_ns(), 100 + HALF_OPEN_NS_MAX);
    sides.presences[0].tick(99 + HALF_OPEN_NS_MAX);
    let end = std::time::Instant::now() + PATIENCE;
    let mut links = [None, None];
    while links.iter().any(Option::is_none) {
        assert!(std::time::Instant::now() < end, "they do not link");
        for (side, link) in links.iter_mut().enumerate() {
            for source in ready(&sides.epolls[side]) {
                sides.presences[side].ready(source, 300);
            }
            let has_event = sides.presences[side].has_event();
            match sides.presences[side].next_event() {
                Some(Event::Linked(made)) => assert!(has_event && link.replace(made).is_none()),
                Some(other) => panic!("{other:?}"),
                None => assert!(!has_event),
            }
        }
    }
    sides.links = links.into_iter().flatten().map(|link| *link).collect();
    sides
}

#[test]
fn two_nodes_link_and_know_whom_with() {
    let sides = linked("presence-link");
    let of = |link: &Link| (link.peer(), link.incarnation(), link.has_ended());
    assert_eq!((of(&sides.links[0]), of(&sides.links[1])), ((2, 32, false), (1, 31, false)));
    assert!(sides.links.iter().all(|link| link.id() != 0));
    assert_eq!(
        sides.presences.map(|presence| (presence.deadline_ns(), presence.counts())),
        [(u64::MAX, Counts::default()), (u64::MAX, Counts::default())]
    );
    let mut links = sides.links.into_iter();
    let (one, other) = (links.next().unwrap(), links.next().unwrap());
    drop(one);
    assert!(other.has_ended());
}

#[test]
fn a_bell_is_heard_by_the_other_side_each_time() {
    let sides = linked("presence-bell");
    // What the handshake has left.
    sides.epolls.iter().for_each(|epoll| drop(ready(epoll)));
    for _ in 0..3 {
        assert_eq!(ready(&sides.epolls[1]), []);
        sides.links[0].ring();
        assert_eq!(ready(&sides.epolls[1]), [Source::Bell(sides.links[1].id())]);
    }
    assert_eq!(ready(&sides.epolls[0]), []);
}

#[test]
fn a_call_that_is_not_answered_fails_when_its_time_is_over() {
    let (mut one, _epoll) = open("presence-time", 1);
    let (other, _second) = open("presence-time", 2);
    assert_eq!(one.dial(2, 1_000), Dialed::Begun);
    one.tick(999 + HALF_OPEN_NS_MAX);
    assert!(!one.has_event());
    one.tick(1_000 + HALF_OPEN_NS_MAX);
    assert!(matches!(one.next_event(), Some(Event::Failed { peer: 2, refused: None })));
    assert_eq!((one.deadline_ns(), one.has_event()), (u64::MAX, false));
    drop(other);
}

#[test]
fn blocks_go_back_when_they_are_dropped_and_may_be_kept_while_they_are_few() {
    let mut sides = linked("presence-blocks");
    let text = |number: u32| vec![number as u8; 100 + number as usize];
    let mut lent = Vec::new();
    let mut data = [0; lane::RECORD_BYTES_MAX];
    for number in 0..SHAPE.blocks {
        sides.links[0].with(|lanes| lanes.send_block(&[number], &text(number), 0)).unwrap();
        let message = sides.links[1].with(|lanes| lanes.receive::<1>(&mut data)).unwrap().unwrap();
        let lane::Payload::Block { block, bytes } = message.payload else { panic!("{message:?}") };
        assert!(sides.links[1].lend(SHAPE.blocks, bytes).is_err(), "no such block");
        assert!(sides.links[1].lend(block, SHAPE.block_bytes + 1).is_err(), "nobody has sent so much");
        lent.push(sides.links[1].lend(block, bytes).unwrap());
        assert!(sides.links[1].lend(block, bytes).is_err(), "it is ours");
        let last = lent.last().unwrap();
        assert_eq!((last.len(), last.is_empty(), last.may_be_kept()), (text(number).len(), false, number < 4));
        assert!(!last.address().is_null());
    }
    for (number, block) in (0..).zip(&lent) {
        let mut all = vec![0; 200];
        let count = block.copy_to(0, &mut all);
        assert_eq!(all[..count], text(number));
        let (mut part, bytes) = ([9; 4], block.len());
        assert_eq!((block.copy_to(bytes - 2, &mut part), part), (2, [number as u8, number as u8, 9, 9]));
        assert_eq!((block.copy_to(bytes, &mut part), block.copy_to(bytes + 7, &mut part)), (0, 0));
    }
    assert!(sides.links[0].with(|lanes| lanes.send_block(&[9], b"more", 0)).is_err(), "all are out");
    // The sender sleeps until there is room: the first that comes back rings.
    ready(&sides.epolls[0]);
    assert_eq!(sides.links[0].with(|lanes| lanes.announce(true)), Ok(false));
    lent.truncate(4);
    assert_eq!(ready(&sides.epolls[0]), [Source::Bell(sides.links[0].id())]);
    assert!(lent[0].may_be_kept());
    assert_eq!(sides.links[0].with(|lanes| lanes.has_room()), Ok(true));
    for number in 0..4 {
        sides.links[0].with(|lanes| lanes.send_block(&[number], b"more", 0)).unwrap();
    }
    assert!(sides.links[0].with(|lanes| lanes.send_block(&[9], b"more", 0)).is_err(), "each once");
    // They outlive the link.
    drop(sides);
    let mut byte = [0];
    assert_eq!((lent[3].copy_to(0, &mut byte), byte), (1, [3]));
}

#[test]
fn who_is_refused_hears_why_and_is_counted() {
    type Change = fn(&mut Options);
    let differences: [(Change, Refused); 4] = [
        (|of| of.hash = 8, Refused::Description),
        (|of| of.frames = 2, Refused::Version),
        (|of| of.shape = LinkShape { blocks: 4, ..SHAPE }, Refused::Version),
        (|of| of.nodes = 1, Refused::Node),
    ];
    for (place, (change, reason)) in differences.into_iter().enumerate() {
        let test = format!("presence-refused-{place}");
        let ((mut one, first), (mut other, second)) = (open(&test, 1), open_with(&test, 2, change));
        assert_eq!(one.dial(2, 1), Dialed::Begun);
        let end = std::time::Instant::now() + PATIENCE;
        let failed = loop {
            assert!(std::time::Instant::now() < end, "{reason:?} is not heard");
            ready(&first).into_iter().for_each(|source| one.ready(source, 1));
            ready(&second).into_iter().for_each(|source| other.ready(source, 1));
            if let Some(event) = one.next_event() {
                break event;
            }
        };
        assert!(matches!(failed, Event::Failed { peer: 2, refused } if refused == Some(reason)), "{failed:?}");
        assert_eq!(other.counts(), Counts { refused: 1, last: Some(reason), ..Counts::default() });
        assert_eq!((one.deadline_ns(), other.deadline_ns()), (u64::MAX, u64::MAX));
        assert!(!other.has_event());
    }
}

#[test]
fn a_link_that_is_gone_rings_nobody() {
    let mut sides = linked("presence-gone");
    let gone = sides.links.pop().unwrap();
    drop(gone);
    sides.epolls.iter().for_each(|epoll| drop(ready(epoll)));
    // The other side still has the bell, which is the same in the kernel.
    sides.links[0].ring();
    assert_eq!(ready(&sides.epolls[1]), []);
}
