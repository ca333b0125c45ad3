//! A node whose descriptors are used up: who gets the next one, and what it costs to wait for one.
//!
//! How it works: the node runs in a process of its own, as the limit of descriptors is a process's; words to its standard
//! input say what it does.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use musubi_transport::topology::{Network, Place, Topology};
use rustix::io::dup;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::node::{TestNode, id, own_address, run};

/// Where the node of the other process listens, for that process.
const ROLE: &str = "MUSUBI_TEST_SCARCE";
const MARK: &str = "scarce:";
/// Its limit of descriptors.
const DESCRIPTORS: u64 = 200;
/// The listener is left alone for so long when the system refuses to accept.
const REST: Duration = Duration::from_millis(50);

/// Node 1 listens here; node 2 calls from an address that is known.
fn system(address: &str) -> Arc<Topology> {
    let place = |tcp: &str| Place { tcp: Some(tcp.into()), ..Place::default() };
    let nodes = [(id(1), place(address)), (id(2), place("127.0.0.1:0"))].into();
    Arc::new(Topology { system: "test".into(), hash: 7, nodes, network: Network::default() })
}

/// Not a test: the process with node 1.
#[test]
fn node_with_few_descriptors() {
    let Ok(address) = std::env::var(ROLE) else { return };
    let mut node = TestNode::open(&system(&address), id(1));
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut kept = Vec::new();
    loop {
        match lines.try_recv() {
            Ok(line) => match line.split_once(' ').unwrap_or((&line, "0")) {
                // Leaves so many free.
                ("fill", free) => {
                    kept.extend(std::iter::from_fn(|| dup(std::io::stdout()).ok()));
                    kept.truncate(kept.len() - free.parse::<usize>().unwrap());
                }
                ("free", _) => kept.clear(),
                _ => {}
            },
            Err(mpsc::TryRecvError::Empty) => {
                node.turn(10);
                continue;
            }
            Err(mpsc::TryRecvError::Disconnected) => return,
        }
        let log = node.carrier.event_log();
        let refusals: u64 =
            log.log().iter().filter(|entry| entry.text.contains("open files")).map(|entry| entry.times).sum();
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ms = used.tv_sec * 1000 + used.tv_nsec / 1_000_000;
        println!("{MARK} {refusals} {cpu_ms} {} {}", log.counters().throttled, log.counters().accepted);
    }
}

struct Scarce {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What the process says: times that accepting was refused, milliseconds of processor time, times that accepting was put
/// off, and connections accepted.
struct Said {
    refusals: u64,
    cpu_ms: u64,
    throttled: u64,
    accepted: u64,
}

impl Scarce {
    fn start(address: &str) -> Scarce {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "scarce::node_with_few_descriptors", "--nocapture"])
            .env(ROLE, address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Scarce { child, input, output }
    }

    fn ask(&mut self, words: &str) -> Said {
        writeln!(self.input, "{words}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process has ended");
            if let Some((_, said)) = line.split_once(MARK) {
                let numbers: Vec<u64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
                let [refusals, cpu_ms, throttled, accepted] = numbers[..] else { panic!("{line}") };
                return Said { refusals, cpu_ms, throttled, accepted };
            }
        }
    }
}

impl Drop for Scarce {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection from an address that the description does not name.
fn stranger(to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 9, 9, 9], 0))).unwrap();
    connect(&socket, &to).unwrap();
    socket.into()
}

fn is_linked(topology: &Arc<Topology>, incarnation: u32) {
    let mut two = TestNode::try_open(topology, id(2), incarnation).unwrap();
    two.want(id(1));
    run(&mut [&mut two], "a link", |nodes| !nodes[0].seen.ups.is_empty());
}

#[test]
fn a_stranger_gives_its_descriptor_to_a_configured_peer() {
    let address = own_address();
    let (topology, mut one) = (system(&address), Scarce::start(&address));
    one.ask("fill 10");
    let strangers: Vec<TcpStream> = (0..60).map(|_| stranger(address.parse().unwrap())).collect();
    is_linked(&topology, 1);
    let said = one.ask("look");
    assert!(said.accepted > strangers.len() as u64, "{} accepted", said.accepted);
    assert_eq!(said.refusals, 0, "whoever came got a descriptor, so accepting never had to rest");
}

#[test]
fn waiting_for_a_descriptor_costs_no_processor_and_ends_when_there_is_one() {
    let address = own_address();
    let (topology, mut one) = (system(&address), Scarce::start(&address));
    let before = one.ask("fill 0");
    let begin = Instant::now();
    let _waiting: Vec<TcpStream> = (0..20).map(|_| stranger(address.parse().unwrap())).collect();
    std::thread::sleep(Duration::from_secs(2));
    let after = one.ask("look");
    let rests = begin.elapsed().as_millis() / REST.as_millis() + 2;
    let refusals = u128::from(after.refusals - before.refusals);
    assert!((1..=rests).contains(&refusals), "{refusals} refusals, at most {rests}");
    assert!(u128::from(after.throttled - before.throttled) >= refusals, "each is counted");
    assert_eq!(after.accepted, before.accepted);
    assert!(after.cpu_ms - before.cpu_ms < 1000, "{} ms of processor time", after.cpu_ms - before.cpu_ms);
    one.ask("free");
    is_linked(&topology, 1);
}
