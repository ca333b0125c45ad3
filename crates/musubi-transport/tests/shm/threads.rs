//! Nodes that are threads of this process.

use std::thread;
use std::time::Duration;

use musubi_linux::clock::now_ns;
use musubi_mcapi::Error;
use musubi_transport::carrier::Drive;
use musubi_transport::links::{Loss, Payload, Report, Sent};
use musubi_transport::topology::Topology;
use std::sync::Arc;

use super::driver::*;

const LENGTHS: [usize; 12] = [0, 1, 36, 37, 95, 96, 250, 700, 701, 5000, 65_536, 1 << 20];

/// Two nodes with a link, the second one used by a thread of its own.
fn with_peer(name: &str, of_peer: impl FnOnce(&mut Driver) + Send, of_ours: impl FnOnce(&mut Driver)) {
    let system = system(name);
    let mut here = Driver::open(&system, 1, 11);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut there = Driver::open(&system, 2, 22);
            assert_eq!(there.await_up(1), 11);
            of_peer(&mut there);
        });
        assert_eq!(here.await_up(2), 22);
        of_ours(&mut here);
    });
}

#[test]
fn frames_of_every_length_go_to_and_fro() {
    let answer = |there: &mut Driver| {
        for _ in LENGTHS {
            let (number, payload) = frame(there.report());
            there.send(1, number + 1, &payload);
        }
    };
    with_peer("lengths", answer, |here| {
        for (number, bytes) in LENGTHS.into_iter().enumerate() {
            let payload = pattern(number as u32, bytes);
            here.send(2, number as u32, &payload);
            assert_eq!(frame(here.report()), (number as u32 + 1, payload));
        }
    });
}

#[test]
fn floods_both_ways_arrive_whole_and_in_order() {
    fn flood(me: &mut Driver, peer: u32) {
        const COUNT: u32 = 20_000;
        let (mut sent, mut came) = (0, 0);
        loop {
            while sent < COUNT && me.try_send(peer, sent, &pattern(sent, sent as usize % 1500)) == Sent::Delivered {
                sent += 1;
            }
            me.carrier.flush(now_ns());
            if (sent, came) == (COUNT, COUNT) {
                break;
            }
            match me.report() {
                Report::Room { .. } => (),
                report => {
                    assert_eq!(frame(report), (came, pattern(came, came as usize % 1500)));
                    came += 1;
                }
            }
        }
    }
    with_peer("floods", |there| flood(there, 1), |here| flood(here, 2));
}

#[test]
fn a_full_link_has_room_again_and_says_so_once() {
    let (go, wait) = std::sync::mpsc::channel::<u32>();
    let read_all = move |there: &mut Driver| {
        let count = wait.recv().unwrap();
        for number in 0..count {
            assert_eq!(frame(there.report()).0, number);
        }
        assert_eq!(frame(there.report()).0, count, "what was sent after the room");
    };
    with_peer("full", read_all, |here| {
        let count = (0..).take_while(|number| here.try_send(2, *number, &[1; 10]) == Sent::Delivered).count() as u32;
        assert!((200..256).contains(&count), "{count}");
        go.send(count).unwrap();
        assert!(matches!(here.report(), Report::Room { .. }));
        assert_eq!(here.try_send(2, count, &[]), Sent::Delivered);
        here.carrier.flush(now_ns());
        assert!(matches!(here.report(), Report::Down { loss: Loss::Gone, .. }));
    });
}

#[test]
fn blocks_come_back_from_any_thread_and_outlive_the_link() {
    let (there_sent, here_sees) = std::sync::mpsc::channel::<()>();
    let send = move |there: &mut Driver| {
        let sent = (0..).take_while(|number| there.try_send(1, *number, &pattern(*number, 3000)) == Sent::Delivered);
        assert_eq!(sent.count(), 32, "as many as there are blocks");
        there.carrier.flush(now_ns());
        there_sent.send(()).unwrap();
        assert!(matches!(there.report(), Report::Room { .. }));
        there.send(1, 99, &pattern(99, 3000));
    };
    with_peer("blocks", send, |here| {
        here_sees.recv().unwrap();
        let mut blocks = Vec::new();
        for _ in 0..32 {
            let Report::Frame { payload: Payload::Lent(block), .. } = here.report() else { panic!("no block") };
            blocks.push(block);
        }
        use musubi_transport::links::Block as _;
        assert!(!blocks[0].may_be_kept(), "all are in our hands");
        let last = blocks.pop().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| drop(last));
        });
        blocks.truncate(10);
        assert!(blocks[0].may_be_kept());
        let (number, payload) = frame(here.report());
        assert_eq!((number, payload), (99, pattern(99, 3000)));
        assert!(matches!(here.report(), Report::Down { loss: Loss::Gone, .. }));
        for (number, block) in blocks.iter().enumerate() {
            let mut bytes = vec![0; 3000];
            block.copy_to(0, &mut bytes);
            assert_eq!(bytes, pattern(number as u32, 3000), "the memory is still there");
        }
    });
}

#[test]
fn what_was_sent_before_leaving_arrives_before_the_end() {
    let leave = |there: &mut Driver| {
        for number in 0..100 {
            there.send(1, number, &pattern(number, 900));
            if number % 30 == 29 {
                let (echo, _) = frame(there.report());
                assert_eq!(echo, number);
            }
        }
        there.carrier.leave(now_ns());
        assert_eq!(there.try_send(1, 0, &[]), Sent::NoLink);
    };
    with_peer("leave", leave, |here| {
        for number in 0..100 {
            assert_eq!(frame(here.report()), (number, pattern(number, 900)));
            if number % 30 == 29 {
                here.send(2, number, &[]);
            }
        }
        assert!(matches!(here.report(), Report::Down { loss: Loss::Gone, .. }));
    });
}

#[test]
fn a_number_is_held_by_one_and_free_when_it_leaves() {
    let system = system("claims");
    let mut first = Driver::open(&system, 1, 1);
    assert_eq!(Driver::try_open(&system, 1, 2).err(), Some(Error::NodeInitialized));
    assert_eq!(musubi_linux::node::present(&system.system).unwrap(), [1]);
    first.carrier.leave(now_ns());
    let _second = Driver::open(&system, 1, 2);
}

#[test]
fn who_is_not_there_is_reported_each_time_and_comes_later() {
    let system = system("absent");
    let mut here = Driver::open(&system, 1, 1);
    here.carrier.want(now_ns(), node(2), true);
    for _ in 0..3 {
        assert!(matches!(here.report(), Report::Absent { peer } if peer == node(2)));
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut there = Driver::open(&system, 2, 5);
            assert!(matches!(there.report(), Report::Up { incarnation: 1, .. }));
            assert!(matches!(there.report(), Report::Down { loss: Loss::Gone, .. }));
        });
        assert_eq!(here.await_up(2), 5);
        here.carrier.leave(now_ns());
    });
    let mut here = Driver::open(&system, 1, 1);
    here.carrier.want(now_ns(), node(2), true);
    here.carrier.want(now_ns(), node(2), false);
    here.report();
    assert!(here.report_within(Duration::from_millis(60)).is_none(), "nobody wants it any more");
}

#[test]
fn descriptions_that_differ_are_refused_and_counted() {
    let system = system("hashes");
    let other = Arc::new(Topology { hash: 77, ..(*system).clone() });
    let mut here = Driver::open(&system, 1, 1);
    let mut there = Driver::open(&other, 2, 1);
    there.carrier.want(now_ns(), node(1), true);
    let mut absent = 0;
    while absent < 2 {
        assert!(here.report_within(Duration::from_millis(1)).is_none());
        match there.report_within(Duration::from_millis(1)) {
            Some(Report::Absent { .. }) => absent += 1,
            None => (),
            other => panic!("{other:?}"),
        }
    }
    let counts = here.carrier.refusals().callers;
    assert!(counts.refused >= 1 && counts.last == Some(musubi_linux::node::Refused::Description), "{counts:?}");
}

#[test]
fn both_may_call_at_once() {
    let system = system("crossing");
    for round in 0..30 {
        let mut nodes = [Driver::open(&system, 1, round), Driver::open(&system, 2, round)];
        let (one, two) = nodes.split_at_mut(1);
        thread::scope(|scope| {
            scope.spawn(|| one[0].await_up(2));
            two[0].await_up(1);
        });
        // One link is left, and it works both ways.
        for turn in 0..3 {
            one[0].send(2, turn, &[1]);
            two[0].send(1, turn, &[2]);
            assert_eq!(frame(one[0].report()), (turn, vec![2]));
            assert_eq!(frame(two[0].report()), (turn, vec![1]));
        }
    }
}

#[test]
fn many_nodes_link_with_all_others() {
    let system = system("many");
    const NODES: u32 = 6;
    let barrier = std::sync::Barrier::new(NODES as usize);
    thread::scope(|scope| {
        for me in 0..NODES {
            let (system, barrier) = (&system, &barrier);
            scope.spawn(move || {
                let mut own = Driver::open(system, me, me);
                barrier.wait();
                let others: Vec<u32> = (0..NODES).filter(|other| *other != me).collect();
                others.iter().for_each(|other| own.carrier.want(now_ns(), node(*other), true));
                let (mut up, mut came) = (0, 0);
                while up < others.len() || came < others.len() {
                    match own.report() {
                        Report::Up { peer, .. } => {
                            up += 1;
                            own.send(peer.node(), me, &[]);
                        }
                        Report::Frame { peer, header, .. } => {
                            assert_eq!(header.tag, peer.node());
                            came += 1;
                        }
                        other => panic!("{other:?}"),
                    }
                }
                // Others may still need us.
                while !barrier_reached(barrier, &mut own) {}
            });
        }
    });
}

/// All have what they wait for only when all have come here.
fn barrier_reached(barrier: &std::sync::Barrier, own: &mut Driver) -> bool {
    own.carrier.flush(now_ns());
    barrier.wait();
    true
}
