//! What a program's calls come to when another node dies, stops or is cut off for longer than links wait for it.
//!
//! What is shown: calls without a time-out end in bounded time; what was said to be sent has arrived, and of the rest the
//! caller is told; the links with others go on; a node that comes back is reached again.
#![cfg(feature = "std")]

mod actor;
#[path = "../loopback/mod.rs"]
mod loopback;
#[path = "../netns/net.rs"]
#[allow(dead_code, reason = "the tests of links use more of it")]
mod net;
#[path = "../../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::collections::BTreeSet;
use std::time::Duration;

use actor::{Actor, System};
use net::{Net, lacking};

const SILENCE_MS: u32 = 800;
const RESUME_MS: u32 = 500;
/// A call ends after `silence_ms` and `resume_ms`, or one attempt to connect (2 s), or `silence_ms` where somebody connects
/// and says nothing. The rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(15);

/// Not a test: what the others start.
#[test]
fn actor() {
    actor::play();
}

fn on_loopback(count: u32) -> System {
    let addresses = (0..count).map(|_| loopback::own_address()).collect();
    System { addresses, silence_ms: SILENCE_MS, resume_ms: RESUME_MS }
}

/// Node 1 loses node 2 by `lose`, and gets it back by `restore`; node 3 is there all the while.
fn loses_and_finds(actors: &mut [Actor], lose: impl FnOnce(&mut Actor), restore: impl FnOnce(&mut Actor)) {
    let [one, two, three] = actors else { unreachable!() };
    let sent_before = one.until_ok("send 2 100");
    let name = one.does("name 2").numbers[0];
    let channel = one.ask("channel 2");
    assert!(one.answer(0, BOUND).is_some(), "a packet comes by the channel");
    let flood = one.ask("send 2 100000000");
    let future = one.ask("get 2 77");
    std::thread::sleep(Duration::from_millis(50));
    lose(two);

    let lost = one.answer(flood, BOUND).expect("a send without a time-out ends");
    assert_eq!(lost.end, "Transmission", "{lost:?}");
    assert_eq!(one.answer(channel, BOUND).expect("a receive on a channel ends").end, "Transmission");
    for _ in 0..3 {
        for words in [format!("resend {name}"), "attribute 2".into()] {
            let question = one.ask(&words);
            let answer = one.answer(question, BOUND).unwrap_or_else(|| panic!("{words}: no end in bounded time"));
            assert_eq!(answer.end, "Transmission", "{words}");
            println!("{words}: after {:?}", answer.took);
        }
    }
    let other = one.does("send 3 300");
    assert_eq!(other.end, "ok");
    assert!(one.answer(future, Duration::ZERO).is_none(), "an endpoint that may yet come is waited for");

    restore(two);
    two.does("create 77");
    assert_eq!(one.answer(future, BOUND).expect("the endpoint is there").end, "ok");
    let sent_after = one.until_ok("send 2 100");
    assert_eq!(two.until_ok("send 1 1").numbers.len(), 1);

    let received = two.has_received(&sent_after.numbers);
    // A successor knows nothing of what its predecessor had.
    if received.contains(&sent_before.numbers[0]) {
        let said: BTreeSet<u32> = [sent_before, lost, sent_after].into_iter().flat_map(|sent| sent.numbers).collect();
        assert!(said.is_subset(&received), "what is said to be sent has arrived");
        // The one that was under way may have arrived, too: the caller was told that it is not known.
        let more = received.difference(&said).count();
        assert!(more <= 1, "{more} messages have arrived of which the sender was told that they are lost");
    }
    three.has_received(&other.numbers);
}

#[test]
fn calls_to_a_killed_node_end_and_its_successor_is_reached() {
    let system = on_loopback(3);
    let mut actors: Vec<Actor> = (1..=3).map(|node| Actor::start(&system, node, None)).collect();
    let kill = |two: &mut Actor| two.signal("KILL");
    loses_and_finds(&mut actors, kill, |two| *two = Actor::start(&system, 2, None));
}

#[test]
fn calls_to_a_stopped_node_end_and_it_goes_on() {
    let system = on_loopback(3);
    let mut actors: Vec<Actor> = (1..=3).map(|node| Actor::start(&system, node, None)).collect();
    loses_and_finds(&mut actors, |two| two.signal("STOP"), |two| two.signal("CONT"));
}

#[test]
fn calls_to_a_node_that_is_cut_off_end_and_it_is_reached_again() {
    if let Some(reason) = lacking() {
        return println!("skipped: {reason}");
    }
    let net = Net::new(3);
    let addresses = (1..=3).map(net::address).collect();
    let system = System { addresses, silence_ms: SILENCE_MS, resume_ms: RESUME_MS };
    let start = |node| Actor::start(&system, node, Some(&net.namespace(node)));
    let mut actors: Vec<Actor> = (1..=3).map(start).collect();
    loses_and_finds(&mut actors, |_| net.cut(2), |_| net.heal(2));
}

#[test]
fn a_node_that_says_goodbye_does_not_hold_up_other_threads() {
    let system = on_loopback(2);
    let mut actors: Vec<Actor> = (1..=2).map(|node| Actor::start(&system, node, None)).collect();
    actors[0].until_ok("send 2 10");
    // Nobody answers the goodbye.
    actors[1].signal("STOP");
    let answer = actors[0].does("finish");
    let [longest_ms, finish_ms] = answer.numbers[..] else { panic!("{answer:?}") };
    assert!(finish_ms >= 200, "there was no goodbye to be waited for: {finish_ms} ms");
    assert!(longest_ms < 100, "another thread's call took {longest_ms} ms of the {finish_ms} ms");
}
