//! How VIs come together, and what becomes of attempts that fail.

use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::engine::Reliability;
use musubi_vipl::owned::{ViFailure, ViOptions, Work};

use super::{LONG, Way, connect, open, poll_once, soon};

#[test]
fn an_attempt_that_fails_gives_the_vi_back_with_its_receives() {
    let (left, right) = open(Way::SharedMemory);
    let mut vi = left.vi(ViOptions::default()).unwrap();
    vi.receives().post(left.region(8).unwrap()).unwrap();
    let nobody = left.address("right", b"nobody").unwrap();
    let refused = vi.connect(&nobody).wait(soon()).unwrap_err();
    assert_eq!(refused.failure, ViFailure::NobodyThere);
    assert_eq!(left.address("else", b"").unwrap_err(), ViFailure::NobodyThere);
    assert_eq!(left.address("left", &[0; 129]).unwrap_err(), ViFailure::Invalid);

    let mut listener = right.listen(b"port").unwrap();
    let to = left.address("right", b"port").unwrap();
    // It listens and does not answer.
    let refused = pollster::block_on(refused.vi.connect(&to).within(Duration::from_millis(30))).unwrap_err();
    assert_eq!(refused.failure, ViFailure::Timeout);
    let refused = refused.vi.connect(&to).wait(Deadline::Poll).unwrap_err();
    assert_eq!(refused.failure, ViFailure::Timeout);

    let refused = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| refused.vi.connect(&to).wait(soon()).unwrap_err());
        // Those who gave up may be told of before.
        while !connecting.is_finished() {
            let caller = listener.caller().wait(Deadline::after(Duration::from_millis(20)));
            let other = ViOptions { reliability: Reliability::Reception, ..ViOptions::default() };
            let accepted = caller.map(|caller| caller.accept(right.vi(other).unwrap()).wait(soon()));
            if let Ok(accepted) = accepted {
                let failure = accepted.unwrap_err().failure;
                assert!(matches!(failure, ViFailure::Mismatch | ViFailure::Timeout), "{failure}");
            }
        }
        connecting.join().unwrap()
    });
    assert_eq!(refused.failure, ViFailure::Rejected, "who does not fit is rejected");

    let connecting = refused.vi.connect(&to);
    listener.caller().wait(soon()).unwrap().reject();
    let refused = connecting.wait(soon()).unwrap_err();
    assert_eq!(refused.failure, ViFailure::Rejected);

    let connecting = refused.vi.connect(&to);
    let accepting = listener.caller().wait(soon()).unwrap().accept(right.vi(ViOptions::default()).unwrap());
    let mut here = connecting.wait(soon()).unwrap();
    let mut there = accepting.wait(soon()).unwrap();
    there.sends().post(Work::send(right.region(3).unwrap())).unwrap();
    assert_eq!(here.receives().completed().wait(soon()).unwrap().done().unwrap().bytes, 3);
}

#[test]
fn an_attempt_that_is_dropped_is_given_up_and_the_listener_is_told() {
    for way in Way::ALL {
        let (left, right) = open(way);
        let mut listener = right.listen(b"port").unwrap();
        let to = left.address("right", b"port").unwrap();
        let mut connecting = left.vi(ViOptions::default()).unwrap().connect(&to);
        let caller = listener.caller().wait(soon()).unwrap();
        assert!(poll_once(&mut connecting).is_none());
        drop(connecting);
        let refused = caller.accept(right.vi(ViOptions::default()).unwrap()).wait(soon()).unwrap_err();
        assert_eq!(refused.failure, ViFailure::Timeout, "{way:?}");
    }
}

#[test]
fn an_acceptance_that_is_dropped_ends_the_connection_and_leaves_no_caller() {
    let (left, right) = open(Way::SharedMemory);
    let mut listener = right.listen(b"port").unwrap();
    let to = left.address("right", b"port").unwrap();
    // More than may ask at a time, if any stayed.
    for _ in 0..100 {
        let connecting = left.vi(ViOptions::default()).unwrap().connect(&to);
        let caller = listener.caller().wait(soon()).unwrap();
        drop(caller.accept(right.vi(ViOptions::default()).unwrap()));
        match connecting.wait(soon()) {
            Ok(vi) => vi.ended().wait(soon()).unwrap(),
            Err(refused) => {
                assert!(matches!(refused.failure, ViFailure::Ended | ViFailure::Rejected), "{refused}");
            }
        }
    }
}

#[test]
fn peers_that_ask_each_other_are_connected_once() {
    for way in Way::ALL {
        let (left, right) = open(way);
        let (a, b) = (left.address("right", b"b").unwrap(), right.address("left", b"a").unwrap());
        let here = left.vi(ViOptions::default()).unwrap().connect_peer(b"a", &a).within(LONG);
        let there = right.vi(ViOptions::default()).unwrap().connect_peer(b"b", &b).within(LONG);
        let [mut here, mut there] = pollster::block_on(super::all(vec![here, there]))
            .into_iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        there.receives().post(right.region(8).unwrap()).unwrap();
        here.sends().post(Work::send(left.region(5).unwrap())).unwrap();
        assert_eq!(there.receives().completed().wait(soon()).unwrap().done().unwrap().bytes, 5);
    }
}

#[test]
fn a_vi_is_connected_again_and_again() {
    let (left, right) = open(Way::SharedMemory);
    for _ in 0..20 {
        let (here, there) = connect(&left, &right, ViOptions::default());
        let (_idle, back) = here.disconnect();
        assert!(back.is_empty());
        there.ended().wait(soon()).unwrap();
        assert!(!there.is_connected());
    }
}
