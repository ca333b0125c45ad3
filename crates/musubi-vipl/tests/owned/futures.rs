//! Completions as futures: without a runtime, with time limits, and dropped while they are pending.

use std::time::{Duration, Instant};

use musubi_vipl::owned::{ViFailure, Work};

use super::{LONG, Pair, Way, pair, poll_once, soon};

#[test]
fn a_dropped_future_leaves_what_is_posted_to_the_vi() {
    for way in Way::ALL {
        let Pair { left, right, mut here, mut there } = pair(way);
        let region = right.region(64).unwrap();
        let place = region.as_ptr();
        there.receives().post(region).unwrap();
        let mut pending = there.receives().completed();
        assert!(poll_once(&mut pending).is_none());
        drop(pending);
        here.sends().post(Work::send(left.register(*b"late").unwrap())).unwrap();
        let came = pollster::block_on(there.receives().completed()).unwrap();
        assert_eq!((&came.region[..4], came.region.as_ptr()), (&b"late"[..], place), "{way:?}");
    }
}

#[test]
fn a_time_limit_ends_the_wait_and_not_what_is_posted() {
    for way in Way::ALL {
        let Pair { left, right, mut here, mut there } = pair(way);
        there.receives().post(right.region(64).unwrap()).unwrap();
        for limit in [0, 1, 20] {
            let limit = Duration::from_millis(limit);
            let begun = Instant::now();
            let late = pollster::block_on(there.receives().completed().within(limit));
            assert_eq!(late.unwrap_err(), ViFailure::Timeout, "{way:?}");
            assert!(begun.elapsed() >= limit);
        }
        // Also beside a thread that sleeps in a call for longer.
        std::thread::scope(|scope| {
            let (mut sends, mut receives) = there.into_queues();
            let sleeping = scope.spawn(|| right.listen(b"else").unwrap().caller().wait(soon()));
            let late = pollster::block_on(receives.completed().within(Duration::from_millis(50)));
            assert_eq!(late.unwrap_err(), ViFailure::Timeout);
            here.sends().post(Work::send(left.region(5).unwrap())).unwrap();
            let came = pollster::block_on(receives.completed().within(LONG)).unwrap();
            assert_eq!(came.bytes, 5);
            assert_eq!(sends.done().unwrap_err(), ViFailure::NothingPosted);
            let to = left.address("right", b"else").unwrap();
            let vi = left.vi(musubi_vipl::owned::ViOptions::default()).unwrap();
            let connecting = vi.connect(&to);
            drop(sleeping.join().unwrap().unwrap());
            assert_eq!(connecting.wait(soon()).unwrap_err().failure, ViFailure::Rejected);
        });
    }
}

#[test]
fn both_directions_are_awaited_at_the_same_time() {
    const TURNS: u32 = 500;
    for way in Way::ALL {
        let Pair { left, right, mut here, mut there } = pair(way);
        for vi in [(&left, &mut here), (&right, &mut there)] {
            (0..4).for_each(|_| vi.1.receives().post(vi.0.region(4).unwrap()).unwrap());
        }
        let side = |nic: musubi_vipl::owned::process::Nic, mut vi: musubi_vipl::owned::process::Vi<_>| async move {
            let (sends, receives) = vi.queues();
            let mut out = Some(nic.region(4).unwrap());
            for turn in 0..TURNS {
                let mut region = out.take().unwrap();
                region.copy_from_slice(&turn.to_le_bytes());
                sends.post(Work::send(region)).unwrap();
                let came = receives.completed().await.unwrap().done().unwrap();
                assert_eq!(came.region[..], turn.to_le_bytes());
                receives.post(came.region).unwrap();
                out = Some(sends.completed().await.unwrap().done().unwrap().region);
            }
            // To be dropped when the other has all, too.
            vi
        };
        let vis = std::thread::scope(|scope| {
            let other = scope.spawn(|| pollster::block_on(side(right.clone(), there)));
            (pollster::block_on(side(left.clone(), here)), other.join().unwrap())
        });
        drop(vis);
    }
}

#[test]
fn what_is_made_lives_longer_than_the_handle_of_its_nic() {
    let Pair { left, right, mut here, mut there } = pair(Way::SharedMemory);
    there.receives().post(right.region(8).unwrap()).unwrap();
    let region = left.region(8).unwrap();
    drop((left, right));
    here.sends().post(Work::send(region)).unwrap();
    assert_eq!(there.receives().completed().wait(soon()).unwrap().bytes, 8);
}
