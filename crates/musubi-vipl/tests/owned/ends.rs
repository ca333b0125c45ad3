//! How the end of a connection is told: by the other program's word, or its death.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use musubi_vipl::owned::process::Nic;
use musubi_vipl::owned::{ViFailure, ViOptions, Work};

use super::{Pair, Way, description, pair, soon, system_of};

/// Tells the other process which system, and that it is the other.
const SYSTEM: &str = "MUSUBI_TEST_OWNED_SYSTEM";

#[test]
fn what_is_posted_comes_back_in_order_when_the_peer_leaves() {
    for way in Way::ALL {
        let Pair { right, here, mut there, left: _left } = pair(way);
        for bytes in 1..=3 {
            there.receives().post(right.region(bytes).unwrap()).unwrap();
        }
        drop(here);
        for bytes in 1..=3 {
            let back = pollster::block_on(there.receives().completed()).unwrap();
            assert_eq!((back.region.len(), back.outcome), (bytes, Err(ViFailure::Ended)));
        }
        pollster::block_on(there.ended()).unwrap();
        assert_eq!(pollster::block_on(there.receives().completed()).unwrap_err(), ViFailure::NothingPosted);
        // What is posted now comes back as well.
        there.sends().post(Work::send(right.region(9).unwrap())).unwrap();
        let back = there.sends().done().unwrap().unwrap();
        assert_eq!((back.region.len(), back.outcome.map(|()| back.bytes)), (9, Err(ViFailure::Ended)));
    }
}

#[test]
fn a_message_without_a_receive_or_with_a_short_one_ends_the_connection() {
    for has_receive in [false, true] {
        let Pair { left, right, mut here, mut there } = pair(Way::SharedMemory);
        if has_receive {
            there.receives().post(right.region(1).unwrap()).unwrap();
        }
        here.sends().post(Work::send(left.region(2).unwrap())).unwrap();
        there.ended().wait(soon()).unwrap();
        here.ended().wait(soon()).unwrap();
        if has_receive {
            let failed = there.receives().completed().wait(soon()).unwrap();
            assert_eq!(failed.done().unwrap_err(), ViFailure::Length);
        }
    }
}

#[test]
fn the_death_of_a_peer_gives_back_all_that_is_posted() {
    Way::ALL.into_iter().for_each(peer_dies);
}

fn peer_dies(way: Way) {
    let description = description(way);
    let nic = Nic::open(&system_of(&description), "left").unwrap();
    let mut listener = nic.listen(b"port").unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "ends::the_other_process", "--ignored", "--nocapture"]);
    let mut other = other.env(SYSTEM, &description).stdout(Stdio::piped()).spawn().unwrap();
    let caller = listener.caller().wait(soon()).unwrap();
    let mut vi = nic.vi(ViOptions::default()).unwrap();
    for _ in 0..100 {
        vi.receives().post(nic.region(64).unwrap()).unwrap();
    }
    let mut vi = caller.accept(vi).wait(soon()).unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("sent")));
    let watching = std::thread::spawn(move || {
        pollster::block_on(async {
            let mut outcomes = Vec::new();
            while let Ok(back) = vi.receives().completed().await {
                outcomes.push((back.bytes, back.outcome));
            }
            outcomes
        })
    });
    other.kill().unwrap();
    other.wait().unwrap();
    let outcomes = watching.join().unwrap();
    assert_eq!(outcomes.len(), 100);
    assert!(outcomes[..10].iter().all(|outcome| *outcome == (4, Ok(()))));
    assert!(outcomes[10..].iter().all(|(_, outcome)| *outcome == Err(ViFailure::Ended)));
}

/// Sends, says so, and waits until it is killed.
#[test]
#[ignore = "the other process of the test above"]
fn the_other_process() {
    let Ok(description) = std::env::var(SYSTEM) else { return };
    let nic = Nic::open(&system_of(&description), "right").unwrap();
    let to = nic.address("left", b"port").unwrap();
    let mut vi = nic.vi(ViOptions::default()).unwrap().connect(&to).wait(soon()).unwrap();
    for _ in 0..10 {
        vi.sends().post(Work::send(nic.region(4).unwrap())).unwrap();
        vi.sends().completed().wait(soon()).unwrap().done().unwrap();
    }
    // Posted when it dies, too.
    vi.receives().post(nic.region(4).unwrap()).unwrap();
    println!("sent");
    let _ = vi.receives().completed().wait(soon());
}
