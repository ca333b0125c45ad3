//! What a node asks of its carriers, and when.

use musubi_linux::clock::now_ns;

use super::world::{Asked, Diary, Handle, frame, header, id, wiring};
use crate::links::{Links as _, Payload, Report, Sent, SharedBytes};
use crate::runtime::node_links::{Block, NodeLinks};
use crate::runtime::{Wiring, node_links::TOKEN_OTHERS};
use crate::status::AcceptorStatus;
use crate::{NodeId, Priority};

/// Bytes after which a look is due.
const UNSEEN_BYTES: usize = 256 * 1024;

fn links() -> (NodeLinks, Handle, Wiring) {
    let wiring = wiring(Vec::new());
    let handle = Handle::new(&wiring, 0);
    (NodeLinks::of_network(&wiring, Box::new(handle.clone())), handle, wiring)
}

#[test]
fn frames_go_to_the_carrier_and_nobody_else_is_a_peer() {
    let rule = |number| crate::topology::ClassRule {
        class: super::world::class(number),
        regulation: musubi_core::plan::Regulation::NONE,
        filter: musubi_core::plan::FilterRule::EACH,
    };
    // With rules the system has nodes 1 to 3 only.
    let wiring = wiring(vec![rule(1)]);
    let handle = Handle::new(&wiring, 0);
    let mut links = NodeLinks::of_network(&wiring, Box::new(handle.clone()));
    assert_eq!([2, 3, 4].map(|peer| links.knows(id(peer))), [true, true, false]);
    assert!(links.link(id(2)).is_none(), "nobody has asked for it");
    assert_eq!(links.send(id(2), &header(1, 3), b"abc"), Sent::Delivered);
    assert_eq!(links.send(id(4), &header(1, 3), b"abc"), Sent::NoLink);
    let shared = SharedBytes::from(b"abcd".to_vec());
    assert_eq!(links.send_shared(id(3), &header(1, 4), &shared), Sent::Delivered);
    assert_eq!(links.send_shared(id(4), &header(1, 4), &shared), Sent::NoLink);
    links.want(id(2), true);
    links.want(id(4), true);
    links.hold();
    links.release();
    assert_eq!(
        handle.asked(),
        [Asked::Send(id(2), 3), Asked::SendShared(id(3), 4), Asked::Want(id(2), true), Asked::Hold, Asked::Release]
    );
    assert_eq!(links.link(id(2)).map(|link| (link.node, link.rtt_ns)), Some((id(2), 3)));
    assert!(links.link(id(4)).is_none());
    assert_eq!(links.acceptor(), Some(AcceptorStatus { accepted: 1, ..AcceptorStatus::default() }));
    assert_eq!(links.log().len(), 1);
    links.wakes.woken = 3;
    assert_eq!(links.wakes().map(|wakes| wakes.woken), Some(3));
}

#[test]
fn what_was_sent_is_flushed_once() {
    let (mut links, handle, _wiring) = links();
    assert!(!links.flush() && handle.asked().is_empty(), "nothing was sent");
    links.send(id(2), &header(1, 0), b"");
    handle.asked();
    assert!(links.flush());
    assert_eq!(handle.asked(), [Asked::Flush]);
    assert!(!links.flush() && handle.asked().is_empty());
    links.want(id(2), true);
    handle.asked();
    assert!(links.flush(), "a new link may be due earlier");
    assert_eq!(handle.asked(), [Asked::Flush]);
    links.flush_all();
    assert_eq!(handle.asked(), [Asked::Flush], "also what is held back");
    links.send_shared(id(2), &header(1, 0), &SharedBytes::from(Vec::new()));
    assert!(links.flush());
}

#[test]
fn a_look_is_owed_after_so_many_bytes() {
    let (mut links, _handle, _wiring) = links();
    let chunk = vec![0; UNSEEN_BYTES / 2];
    links.send(id(2), &header(1, chunk.len()), &chunk);
    assert!(!links.owes_look());
    links.send(id(2), &header(1, chunk.len() - 1), &chunk[1..]);
    assert!(!links.owes_look());
    links.send(id(2), &header(1, 1), b"1");
    assert!(links.owes_look());
    links.poll();
    assert!(!links.owes_look());
    // Of what is shared a quarter counts.
    let shared = SharedBytes::from(chunk);
    for count in 1..=8 {
        assert!(!links.owes_look(), "{count}");
        links.send_shared(id(2), &header(1, shared.len()), &shared);
    }
    assert!(links.owes_look());
}

#[test]
fn a_carrier_is_polled_unless_it_was_just_read() {
    let (mut links, handle, _wiring) = links();
    assert!(links.polls_the_kernel());
    links.poll();
    links.poll();
    assert_eq!(handle.asked(), [Asked::Poll, Asked::Poll]);
    links.ready(TOKEN_OTHERS << 56 | 9);
    assert_eq!(handle.asked(), [Asked::Ready(TOKEN_OTHERS << 56 | 9)]);
    links.poll();
    assert_eq!(handle.asked(), [], "its descriptor has been looked at");
    links.poll();
    assert_eq!(handle.asked(), [Asked::Poll]);
    for token in [0, 1 << 56, (TOKEN_OTHERS + 1) << 56, u64::MAX] {
        links.ready(token);
    }
    links.poll();
    assert_eq!(handle.asked(), [Asked::Poll], "of other descriptors it hears nothing");
}

#[test]
fn of_first_looks_in_vain_one_in_sixteen_is_made() {
    let (mut links, handle, _wiring) = links();
    let mut polled = |sleeps_at_once, found| {
        links.before_look(sleeps_at_once);
        links.poll();
        links.note_look(found);
        handle.times(Asked::Poll) == 1
    };
    assert!(polled(true, false), "the first one");
    for round in 0..3 {
        for look in 1..16 {
            assert!(!polled(true, false), "{round} {look}");
        }
        assert!(polled(true, false));
    }
    assert!(polled(false, false), "who does not sleep looks always");
    assert!(!polled(true, true));
    assert!(polled(true, true), "where looks find something they are made");
}

#[test]
fn the_clock_is_read_for_a_look_that_is_made() {
    let (mut links, _handle, _wiring) = links();
    links.note_look(false);
    let before_ns = links.last_ns();
    links.before_look(true);
    assert_eq!(links.last_ns(), before_ns, "that look is left out");
    let now_ns = now_ns();
    links.before_look(false);
    assert!(links.last_ns() >= now_ns);
}

#[test]
fn the_time_of_a_report_is_fresh_where_it_is_about_time() {
    let (mut links, _handle, _wiring) = links();
    let peer = id(2);
    let timed = crate::frame::Header { flags: 1, ..header(1, 0) };
    let frame = |header| Report::<Block>::Frame { peer, header, payload: Payload::Owned(Vec::new()) };
    let reports = [
        (frame(header(1, 0)), false),
        (frame(timed), true),
        (Report::Acknowledged { peer, number: 1 }, false),
        (Report::Room { peer }, false),
        (Report::Up { peer, incarnation: 1 }, true),
        (Report::Down { peer, loss: crate::links::Loss::Gone }, true),
        (Report::Absent { peer }, true),
    ];
    for (report, is_fresh) in reports {
        let last_ns = links.last_ns();
        while now_ns() == last_ns {}
        let time_ns = links.time_of::<Diary>(&report);
        assert_eq!((time_ns > last_ns, time_ns), (is_fresh, links.last_ns()), "{report:?}");
    }
}

#[test]
fn all_carriers_are_told_of_sleep_and_any_keeps_awake() {
    let (mut links, handle, _wiring) = links();
    assert!(!links.prepare_sleep());
    links.finish_sleep();
    assert_eq!(handle.asked(), [Asked::Prepare, Asked::Finish]);
    handle.wire().news = 1;
    assert!(links.prepare_sleep());
    let other = Handle::new(&_wiring, 1);
    assert_eq!(links.add(Box::new(other.clone())), 1);
    (handle.wire().news, other.wire().news) = (1, 1);
    assert!(links.prepare_sleep(), "both have something");
    other.wire().news = 1;
    assert!(links.prepare_sleep(), "one has");
    assert!(!links.holds_reports());
    handle.wire().holds = true;
    assert!(links.holds_reports());
    assert!(links.has_delivered());
    handle.wire().has_delivered = false;
    assert!(!links.has_delivered());
}

#[test]
fn a_tick_is_when_it_is_due() {
    let (mut links, handle, _wiring) = links();
    assert_eq!(links.deadline_ns(), u64::MAX);
    links.tick();
    assert_eq!(handle.asked(), []);
    let later_ns = now_ns() + 3_600_000_000_000;
    handle.wire().deadline_ns = later_ns;
    assert_eq!(links.deadline_ns(), later_ns);
    links.tick();
    assert_eq!(handle.asked(), []);
    handle.wire().deadline_ns = now_ns();
    links.tick();
    assert_eq!(handle.asked(), [Asked::Tick]);
}

#[test]
fn memory_goes_back_and_reports_come() {
    let (mut links, handle, _wiring) = links();
    links.recycle(Payload::Owned(vec![0; 77]));
    links.recycle(Payload::Short(crate::links::Short::EMPTY));
    assert_eq!(handle.asked(), [Asked::Recycle(77)]);
    assert!(links.next_of_rest().is_none());
    let peer: NodeId = id(2);
    let reports = [
        frame(3),
        Report::Up { peer, incarnation: 4 },
        Report::Down { peer, loss: crate::links::Loss::Cut },
        Report::Acknowledged { peer, number: 5 },
        Report::Room { peer },
        Report::Absent { peer },
    ];
    let expected: Vec<String> = reports.iter().map(|report| format!("{report:?}")).collect();
    handle.wire().at_hand.extend(reports);
    let came: Vec<String> = std::iter::from_fn(|| links.next_of_rest()).map(|report| format!("{report:?}")).collect();
    assert_eq!(came, expected);
    let _: Priority = super::world::class(3);
}

#[test]
fn links_that_end_flush_and_say_goodbye() {
    let (mut links, handle, _wiring) = links();
    let leaving = links.close();
    assert!(!links.polls_the_kernel());
    assert_eq!(links.send(id(2), &header(1, 0), b""), Sent::NoLink);
    assert_eq!(handle.asked(), []);
    leaving.leave();
    assert_eq!(handle.asked(), [Asked::Flush, Asked::Leave]);
    assert!(handle.wire().now_ns > 0);
}
