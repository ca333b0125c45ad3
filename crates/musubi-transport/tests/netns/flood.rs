//! Floods from one address: 1,500 connections that say nothing, that say a hello byte by byte, or that end and come again.
//!
//! What is shown: a node that the description names gets its link within the promised time meanwhile, with TLS and without, also
//! if the flood comes from its own address.
//!
//! How it works: the flood is a process in a namespace of its own, and nice, as it stands for another machine. A time is taken up to [`TRIES`] times and the best counts: the
//! flood, the node and the newcomer share the test machine's processors with other tests, and what the promise is about
//! (who waits behind whom) does not get better by luck: where the flood's connections use up the newcomer's share, none of the tries comes in time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::actor::{Actor, System};
use crate::net::{self, Net};
use crate::{node, skipped, system};

/// The flood's target and its kind, for the process that makes it.
const CROWD: &str = "MUSUBI_TEST_CROWD";
/// Connections of a flood at a time.
const CONNECTIONS: usize = 1500;
/// What docs/GUARANTEES.md promises a configured peer.
const PROMISED: Duration = Duration::from_secs(2);
const TRIES: u32 = 3;
/// The namespaces of a stranger and of the node that is to get in.
const STRANGER: u32 = 4;
const NEWCOMER: u32 = 2;
/// How long one connect of the flood may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a connection of the flood lasts at least: so there are up to 5,000 new ones a second.
const LIFE: Duration = Duration::from_millis(300);
/// Another life by hand, in milliseconds: with 0 the flood has no pause.
const LIFE_MS: &str = "MUSUBI_TEST_CROWD_LIFE_MS";
/// Threads of the flood.
const THREADS: usize = 100;

/// Not a test: a flood, until killed.
#[test]
fn crowd() {
    let Ok(role) = std::env::var(CROWD) else { return };
    let (kind, target) = role.split_once(' ').unwrap();
    let target: SocketAddr = target.parse().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| push(kind, target));
        }
    });
}

/// A part of the crowd: each waits for its own connects only, so that many are under way at a time.
fn push(kind: &str, target: SocketAddr) {
    let begin = Instant::now();
    let life = std::env::var(LIFE_MS).map_or(LIFE, |ms| Duration::from_millis(ms.parse().unwrap()));
    let mut crowd: Vec<Option<(TcpStream, Instant)>> = (0..CONNECTIONS / THREADS).map(|_| None).collect();
    while begin.elapsed() < 2 * TRIES * node::PATIENCE {
        for (number, place) in crowd.iter_mut().enumerate() {
            if let Some((stream, since)) = place
                && (since.elapsed() < life || goes_on(kind, number, stream))
            {
                continue;
            }
            let stream = TcpStream::connect_timeout(&target, CONNECT).ok();
            *place =
                stream.filter(|stream| stream.set_nonblocking(true).is_ok()).map(|stream| (stream, Instant::now()));
        }
        std::thread::sleep(life.min(Duration::from_millis(10)));
    }
}

/// One step of one connection; false if it is to be made anew.
fn goes_on(kind: &str, number: usize, stream: &mut TcpStream) -> bool {
    // The beginning of a long hello of TLS; without TLS it is garbage from the first byte.
    const HELLO: [u8; 9] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc];
    let alive = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
    match kind {
        "silent" => {}
        "bytes" => {
            let byte = [HELLO[number % HELLO.len()]];
            if !stream.write(&byte).map_or_else(alive, |_| true) {
                return false;
            }
        }
        _ => {
            let _ = stream.write(b"\x16\x03\x01garbage");
            return false;
        }
    }
    stream.read(&mut [0; 64]).map_or_else(alive, |read| read > 0)
}

/// A flood that is under way.
struct Crowd(Child);

impl Crowd {
    fn start(net: &Net, from: u32, kind: &str) -> Crowd {
        let child = Command::new("ip")
            .args(["netns", "exec", &net.namespace(from), "nice", "-n", "19"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "flood::crowd"])
            .env(CROWD, format!("{kind} {}", net::address(1)))
            .stdout(Stdio::null())
            .spawn();
        Crowd(child.unwrap())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long a new node 2 takes to link with node 1.
fn newcomer(net: &Net, system: &System, incarnation: u32) -> Duration {
    let mut two = Actor::start(net, system, NEWCOMER, incarnation);
    // It has begun when it answers.
    two.count(1);
    let begin = Instant::now();
    two.say("link 1");
    two.until(1, "a link", |counted| counted.ups == 1);
    begin.elapsed()
}

/// A flood of one kind, from a stranger's address and then from the newcomer's own.
fn gets_in_during(kind: &str, keys: bool) {
    if skipped() {
        return;
    }
    let (net, directory) = (Net::new(4), tempfile::tempdir().unwrap());
    crate::issue(directory.path(), 3);
    let keys = keys.then(|| directory.path().to_str().unwrap().to_owned());
    let system = System { keys, ..system(3, 5000) };
    let _one = Actor::start(&net, &system, 1, 1);
    for from in [STRANGER, NEWCOMER] {
        let _crowd = Crowd::start(&net, from, kind);
        // The flood stands, and some of it has been put out.
        crate::pause(3000);
        let mut took = Vec::new();
        for round in 1..=TRIES {
            took.push(newcomer(&net, &system, 10 * from + round));
            if took.last().is_some_and(|took| *took <= PROMISED) {
                break;
            }
        }
        println!("{kind} from {from}, TLS {}: linked within {took:?}", system.keys.is_some());
        assert!(took.iter().min().is_some_and(|best| *best <= PROMISED), "{kind} from {from}: {took:?}");
    }
}

#[test]
fn who_says_nothing_keeps_no_configured_peer_out() {
    gets_in_during("silent", false);
}

#[test]
fn who_says_nothing_keeps_no_configured_peer_out_of_tls() {
    gets_in_during("silent", true);
}

#[test]
fn hellos_byte_by_byte_keep_no_configured_peer_out() {
    gets_in_during("bytes", false);
}

#[test]
fn hellos_byte_by_byte_keep_no_configured_peer_out_of_tls() {
    gets_in_during("bytes", true);
}

#[test]
fn who_comes_again_and_again_keeps_no_configured_peer_out() {
    gets_in_during("again", false);
}

#[test]
fn who_comes_again_and_again_keeps_no_configured_peer_out_of_tls() {
    gets_in_during("again", true);
}
