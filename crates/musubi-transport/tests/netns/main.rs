//! Faults of real networks: processes in network namespaces, whose cables are cut, narrowed and flooded, and who are
//! stopped and killed.
//!
//! What is shown: a cut shorter than `resume_ms` loses and duplicates nothing; a longer one is reported, and what was
//! acknowledged is what had arrived; links with others are untouched all the while. Latencies are printed, not judged.
#![cfg(feature = "std")]

mod actor;
mod flood;
mod net;
#[path = "../tcp/node.rs"]
#[allow(dead_code, reason = "the tests on loopback use more of it")]
mod node;
#[path = "../../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use actor::{Actor, Counted, System};
use musubi_transport::keys::{Authority, NodeFiles, Validity};
use net::{Net, lacking};

/// Not a test: what the others start in namespaces.
#[test]
fn actor() {
    actor::play();
}

/// The flood's target, for the process that makes it.
const FLOOD: &str = "MUSUBI_TEST_FLOOD";

/// Not a test either: garbage, one connection after the other, until killed.
#[test]
fn garbage() {
    let Ok(target) = std::env::var(FLOOD) else { return };
    let begin = Instant::now();
    while begin.elapsed() < node::PATIENCE {
        // However that ends, the next one follows.
        let _ = TcpStream::connect(&target).and_then(|mut stream| stream.write_all(b"\x16\x03\x01garbage"));
    }
}

/// True if it cannot run here; says why.
fn skipped() -> bool {
    let reason = lacking();
    if let Some(reason) = &reason {
        println!("skipped: {reason}");
    }
    reason.is_some()
}

fn system(nodes: u32, resume_ms: u32) -> System {
    System { nodes, silence_ms: 800, resume_ms, keys: None }
}

/// Makes an authority, and certificates of nodes 1 to `count`.
fn issue(directory: &std::path::Path, count: u32) {
    let authority = Authority::create(directory, "test", Validity::days(1), false).unwrap();
    for node in 1..=count {
        let stem = directory.join(format!("0-{node}"));
        let files = NodeFiles { certificate: stem.with_extension("crt"), key: stem.with_extension("key") };
        authority.issue(node::id(node), &files, Validity::days(1), false).unwrap();
    }
}

/// Actors 1 to the number of nodes, each linked with 1.
fn linked(net: &Net, system: &System) -> Vec<Actor> {
    let mut actors: Vec<Actor> = (1..=system.nodes).map(|node| Actor::start(net, system, node, 1)).collect();
    for node in 2..=system.nodes {
        actors[0].say(&format!("link {node}"));
        actors[0].until(node, "a link", |counted| counted.ups == 1);
        actors[node as usize - 1].until(1, "a link", |counted| counted.ups == 1);
    }
    actors
}

/// Everything that was sent is settled: acknowledged or reported.
fn settled(counted: &Counted) -> bool {
    counted.sent == counted.acknowledged + counted.reported_lost
}

/// Ends a stream and compares both sides when nothing was lost.
fn all_arrived(from: (&mut Actor, u32), to: (&mut Actor, u32)) -> Counted {
    from.0.say(&format!("rest {}", to.1));
    let sender = from.0.until(to.1, "all acknowledged", |counted| counted.sent == counted.acknowledged);
    let receiver = to.0.count(from.1);
    assert!(sender.sent > 0);
    assert_eq!((receiver.received, receiver.missing, receiver.again), (sender.sent, 0, 0));
    assert_eq!((sender.reported_lost, sender.cuts, receiver.cuts), (0, 0, 0));
    receiver
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Ends a stream and compares both sides when something was lost: what was reported lost may have arrived if its
/// acknowledgement was lost; never the other way round.
fn all_settled(from: (&mut Actor, u32), to: (&mut Actor, u32)) {
    from.0.say(&format!("rest {}", to.1));
    let sender = from.0.until(to.1, "everything settled", settled);
    let receiver = to.0.until(from.1, "the last frame", |counted| counted.received + counted.missing == sender.sent);
    assert!((sender.acknowledged..=sender.sent).contains(&receiver.received), "{sender:?} {receiver:?}");
    assert_eq!(receiver.again, 0);
    assert!(receiver.missing <= sender.reported_lost, "{sender:?} {receiver:?}");
    println!("{} to {}: {sender:?}\n    {receiver:?}", from.1, to.1);
}

#[test]
fn a_short_cut_loses_nothing_and_others_do_not_notice() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(3), system(3, 10_000));
    let [one, two, three] = &mut linked(&net, &system)[..] else { unreachable!() };
    one.say("stream 2 2000 20000");
    two.say("stream 1 100 50000");
    one.say("stream 3 64 1000000");
    for cut_ms in [50, 1500] {
        let before = one.until(2, "traffic", |counted| counted.acknowledged > 1000);
        pause(100);
        net.cut(2);
        pause(cut_ms);
        net.heal(2);
        one.until(2, "traffic again", |counted| counted.acknowledged > before.sent + 1000);
    }
    let there = all_arrived((one, 1), (two, 2));
    let back = all_arrived((two, 2), (one, 1));
    assert!(there.connections >= 2 && back.ups == 1, "{there:?}");
    let other = all_arrived((one, 1), (three, 3));
    assert_eq!((other.connections, other.ups), (1, 1));
    println!("cut link: {there:?}\nother link: {other:?}");
}

#[test]
fn a_long_cut_is_reported_exactly_and_the_link_comes_back() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(3), system(3, 500));
    let [one, two, three] = &mut linked(&net, &system)[..] else { unreachable!() };
    one.say("stream 2 2000 20000");
    two.say("stream 1 100 50000");
    one.say("stream 3 64 1000000");
    one.until(2, "traffic", |counted| counted.acknowledged > 1000);
    net.cut(2);
    let down = one.until(2, "the end of the link", |counted| counted.cuts == 1);
    two.until(1, "the end of the link", |counted| counted.cuts == 1);
    assert!(settled(&down) && down.reported_lost > 0, "{down:?}");
    net.heal(2);
    one.until(2, "another link", |counted| counted.ups == 2);
    one.until(2, "traffic", |counted| counted.acknowledged > down.acknowledged + 1000);
    two.until(1, "another link", |counted| counted.ups == 2);
    all_settled((one, 1), (two, 2));
    all_settled((two, 2), (one, 1));
    let other = all_arrived((one, 1), (three, 3));
    assert_eq!((other.connections, other.ups), (1, 1));
}

#[test]
fn late_and_lossy_networks_deliver_all() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(2), system(2, 5000));
    let [one, two] = &mut linked(&net, &system)[..] else { unreachable!() };
    println!("{}", net.impair(2));
    one.say("stream 2 3000 400000");
    two.say("stream 1 500 400000");
    pause(2500);
    let there = all_arrived((one, 1), (two, 2));
    let back = all_arrived((two, 2), (one, 1));
    assert_eq!((there.ups, back.ups), (1, 1));
    println!("{there:?}\n{back:?}");
}

#[test]
fn a_killed_node_is_reported_and_its_successor_is_linked() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(3), system(3, 600));
    let mut actors = linked(&net, &system);
    actors[0].say("stream 2 500 50000");
    actors[0].say("stream 3 64 1000000");
    actors[0].until(2, "traffic", |counted| counted.acknowledged > 1000);
    actors[1].signal("KILL");
    let down = actors[0].until(2, "the end of the link", |counted| counted.cuts + counted.gone == 1);
    assert!(settled(&down));
    // The successor comes at once; and once more, while the first one has seen nothing of its predecessor's end.
    for incarnation in [2, 3] {
        actors[1] = Actor::start(&net, &system, 2, incarnation);
        let links = u64::from(incarnation);
        actors[1].say("link 1");
        actors[0].until(2, "the successor", |counted| counted.ups == links);
        actors[1].until(1, "traffic", |counted| counted.received > 100 && counted.again == 0);
        if incarnation == 2 {
            net.cut(2);
            actors[1].signal("KILL");
            pause(50);
            net.heal(2);
        }
    }
    let [one, _, three] = &mut actors[..] else { unreachable!() };
    let other = all_arrived((one, 1), (three, 3));
    assert_eq!((other.connections, other.ups), (1, 1));
}

#[test]
fn a_host_that_vanishes_is_noticed_by_its_silence() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(2), system(2, 500));
    let mut actors = linked(&net, &system);
    // Nothing is sent, so TCP itself has nothing to miss.
    let begin = Instant::now();
    net.cut(2);
    actors[1].signal("KILL");
    actors[0].until(2, "the end of the link", |counted| counted.cuts == 1);
    let after_ms = begin.elapsed().as_millis();
    assert!(after_ms >= 500, "{after_ms} ms");
    println!("noticed after {after_ms} ms (silence 800, resume 500)");
}

#[test]
fn a_stopped_node_goes_on_where_it_was_or_is_given_up() {
    if skipped() {
        return;
    }
    let (net, system) = (Net::new(2), system(2, 1500));
    let [one, two] = &mut linked(&net, &system)[..] else { unreachable!() };
    one.say("stream 2 500 50000");
    one.until(2, "traffic", |counted| counted.acknowledged > 1000);
    two.signal("STOP");
    pause(900);
    two.signal("CONT");
    let there = all_arrived((one, 1), (two, 2));
    assert_eq!(there.ups, 1);
    one.say("stream 2 500 50000");
    two.signal("STOP");
    let down = one.until(2, "the end of the link", |counted| counted.cuts == 1);
    assert!(settled(&down));
    two.signal("CONT");
    one.until(2, "another link", |counted| counted.ups == 2);
    all_settled((one, 1), (two, 2));
}

#[test]
fn garbage_and_wrong_certificates_do_not_touch_links_that_stand() {
    if skipped() {
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    let wrong = tempfile::tempdir().unwrap();
    for directory in [&keys, &wrong] {
        issue(directory.path(), 3);
    }
    let path = |directory: &tempfile::TempDir| Some(directory.path().to_str().unwrap().to_owned());
    let net = Net::new(4);
    let honest = System { keys: path(&keys), ..system(3, 5000) };
    let liar = System { keys: path(&wrong), ..honest.clone() };
    let mut actors: Vec<Actor> = [1, 2].map(|node| Actor::start(&net, &honest, node, 1)).into();
    actors[0].say("link 2");
    actors[0].until(2, "a link", |counted| counted.ups == 1);
    actors[0].say("stream 2 64 1000000");
    let quiet = actors[1].until(1, "traffic", |counted| counted.received > 500);
    let mut stranger = Actor::start(&net, &liar, 3, 1);
    stranger.say("link 1");
    let mut flood = Command::new("ip")
        .args(["netns", "exec", &net.namespace(4)])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "garbage"])
        .env(FLOOD, net::address(1))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    actors[1].say("forget-latency");
    let loud = actors[1].until(1, "traffic", |counted| counted.received > quiet.received + 1000);
    assert_eq!(stranger.count(1).ups, 0);
    flood.kill().unwrap();
    flood.wait().unwrap();
    let [one, two] = &mut actors[..] else { unreachable!() };
    let link = all_arrived((one, 1), (two, 2));
    assert_eq!((link.connections, link.ups), (1, 1));
    println!("latency (median, 99 %, greatest), us: quiet {:?}, flooded {:?}", quiet.latency_us, loud.latency_us);
}
