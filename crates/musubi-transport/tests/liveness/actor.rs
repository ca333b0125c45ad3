//! A program with a running node in a process of its own, told by lines what to do.
//!
//! How it works: the test starts its own program again, with the system in the environment. Each line is done by a thread
//! of its own, as it may wait for ever; its answer is a line with the number of the question.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use musubi_mcapi::engine::{ChannelKind, Outcome, RequestId, Sending};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, Error, NodeId};
use musubi_transport::LinkError;
use musubi_transport::runtime::{Block, Deadline, Options};
use musubi_transport::topology::{Network, Place, Topology};

/// The variable that makes this program an actor, and says which.
const ROLE: &str = "MUSUBI_TEST_PROGRAM";
/// What a line with an answer begins with.
const MARK: &str = "answer:";
/// Everything that is awaited must come within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where a node takes messages, and where it sends packets from.
const INBOX: u32 = 10;
const SOURCE: u32 = 11;

/// What all nodes of a test have in common.
#[derive(Clone, Debug)]
pub struct System {
    pub addresses: Vec<String>,
    pub silence_ms: u32,
    pub resume_ms: u32,
}

impl System {
    fn topology(&self) -> Topology {
        let network = Network {
            heartbeat_ms: self.silence_ms / 4,
            silence_ms: self.silence_ms,
            resume_ms: self.resume_ms,
            insecure: true,
            ..Network::default()
        };
        let place = |address: &String| Place { tcp: Some(address.clone()), ..Place::default() };
        let nodes = self.addresses.iter().zip(1..).map(|(address, node)| (id(node), place(address)));
        Topology { system: "test".into(), hash: 7, nodes: nodes.collect(), network }
    }
}

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).expect("within the limits")
}

/// What an actor has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `ok`, or the error's name.
    pub end: String,
    /// What was done before that, a number each.
    pub numbers: Vec<u32>,
    pub took: Duration,
}

/// An actor, as the test sees it. Killed when dropped.
pub struct Actor {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    answers: BTreeMap<u32, Answer>,
    asked: u32,
}

impl Actor {
    /// Starts node `node` of the system, in a network namespace or in the test's own.
    pub fn start(system: &System, node: u32, namespace: Option<&str>) -> Actor {
        let program = std::env::current_exe().expect("this program");
        let mut command = match namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let role = format!("{node} {} {} {}", system.silence_ms, system.resume_ms, system.addresses.join(" "));
        command.args(["--exact", "actor", "--nocapture"]).env(ROLE, role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an actor");
        let input = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        Actor { child, input, output, answers: BTreeMap::new(), asked: 0 }
    }

    /// Asks for something; see [`Actor::answer`].
    pub fn ask(&mut self, words: &str) -> u32 {
        self.asked += 1;
        writeln!(self.input, "{} {words}", self.asked).expect("the actor lives");
        self.asked
    }

    /// The answer to a question, if it comes within the time.
    pub fn answer(&mut self, question: u32, within: Duration) -> Option<Answer> {
        let end = Instant::now() + within;
        while !self.answers.contains_key(&question) {
            let line = self.output.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
            // The test's own framework says something first, on the same line.
            let Some((_, answer)) = line.split_once(MARK) else { continue };
            let words: Vec<&str> = answer.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u32>().expect("a number");
            let numbers = words[3..].iter().map(|word| word.parse().expect("a number")).collect();
            let took = Duration::from_millis(u64::from(number(1)));
            self.answers.insert(number(0), Answer { end: words[2].into(), numbers, took });
        }
        self.answers.remove(&question)
    }

    /// Asks and waits for the answer.
    pub fn does(&mut self, words: &str) -> Answer {
        let question = self.ask(words);
        self.answer(question, PATIENCE).unwrap_or_else(|| panic!("no answer within {PATIENCE:?}: {words}"))
    }

    /// Asks again until it is done.
    pub fn until_ok(&mut self, words: &str) -> Answer {
        let begin = Instant::now();
        loop {
            let answer = self.does(words);
            if answer.end == "ok" {
                return answer;
            }
            assert!(begin.elapsed() < PATIENCE, "{words}: {answer:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it has taken these messages; gives all that it has.
    pub fn has_received(&mut self, numbers: &[u32]) -> BTreeSet<u32> {
        let begin = Instant::now();
        loop {
            // What was said to be sent is at the node; its program may still be about to take it.
            let received: BTreeSet<u32> = self.does("received").numbers.into_iter().collect();
            if numbers.iter().all(|number| received.contains(number)) {
                return received;
            }
            assert!(begin.elapsed() < PATIENCE, "something that was said to be sent has not arrived");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends it a signal: `KILL`, `STOP`, `CONT`. After `STOP` it does nothing any more.
    pub fn signal(&self, name: &str) {
        crate::signalling::signal(self.child.id(), name);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays an actor, if this process has been started as one.
pub fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().expect("a number");
    let addresses = words[3..].iter().map(|word| word.to_string()).collect();
    let system = System { addresses, silence_ms: number(1), resume_ms: number(2) };
    let node = Node::start(Arc::new(system.topology()), id(number(0)), Options::default()).expect("a node");
    let program = Arc::new(Program { node, next: AtomicU32::new(0), received: Mutex::default() });
    program.serve();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let program = Arc::clone(&program);
        std::thread::spawn(move || {
            let mut words = line.split_whitespace();
            let question = words.next().expect("a number");
            let (begin, mut done) = (Instant::now(), Vec::new());
            let result = program.obey(&words.collect::<Vec<_>>(), &mut done);
            let end = result.map_or_else(|error| format!("{error:?}"), |()| "ok".into());
            let numbers: Vec<String> = done.iter().map(u32::to_string).collect();
            println!("{MARK} {question} {} {end} {}", begin.elapsed().as_millis(), numbers.join(" "));
        });
    }
    std::process::exit(0);
}

struct Program {
    node: Node,
    next: AtomicU32,
    received: Mutex<BTreeSet<u32>>,
}

impl Program {
    /// Takes messages for ever, and sends one packet to whoever connects.
    fn serve(self: &Arc<Program>) {
        let (inbox, source) = (self.create(Some(INBOX)), self.create(Some(SOURCE)));
        let program = Arc::clone(self);
        std::thread::spawn(move || {
            while let Ok(message) = program
                .node
                .wait_for(Deadline::Forever, |engine, links| engine.receive_message(inbox, links).transpose())
            {
                let mut bytes = [0; 4];
                message.expect("ours").payload.copy_to(&mut bytes);
                program.received.lock().unwrap().insert(u32::from_le_bytes(bytes));
            }
        });
        let program = Arc::clone(self);
        std::thread::spawn(move || {
            let opened =
                program.node.with(|engine, links| engine.open(ChannelKind::Packet, false, source, links)).unwrap();
            let (handle, request) = opened.expect("it is ours");
            if program.outcome(request).is_err() {
                return;
            }
            program.node.with(|engine, links| engine.send_packet(handle, b"first", links)).unwrap().expect("room");
        });
    }

    fn obey(&self, words: &[&str], done: &mut Vec<u32>) -> Result<(), Error> {
        let number = |at: usize| words[at].parse::<u32>().expect("a number");
        match words[0] {
            // send PEER COUNT: numbered messages, each blocking without a time-out.
            "send" => {
                let (from, to) = (self.create(None), self.get(number(1), INBOX)?);
                for _ in 0..number(2) {
                    self.send(from, to, done)?;
                }
            }
            // resend ENDPOINT: one message to where the last ones went.
            "resend" => {
                let to = EndpointId::from_bits(number(1)).expect("an endpoint");
                self.send(self.create(None), to, done)?;
            }
            // name PEER: of its inbox
            "name" => done.push(self.get(number(1), INBOX)?.bits()),
            "received" => done.extend(self.received.lock().unwrap().iter()),
            // get PEER PORT
            "get" => done.push(self.get(number(1), number(2))?.bits()),
            "create" => drop(self.create(Some(number(1)))),
            "attribute" => {
                let asked = self.node.with(|engine, links| engine.node_attribute((0, number(1)), 0, 4, links))?;
                self.outcome(asked?)?;
            }
            // finish: how long another thread's longest call took, and the finish itself, milliseconds.
            "finish" => {
                let node = self.node.clone();
                let caller = std::thread::spawn(move || {
                    let mut longest = Duration::ZERO;
                    loop {
                        let begin = Instant::now();
                        let result = node.with(|_, _| ());
                        longest = longest.max(begin.elapsed());
                        if result.is_err() {
                            return (longest, result);
                        }
                    }
                });
                std::thread::sleep(Duration::from_millis(20));
                let begin = Instant::now();
                self.node.finish()?;
                let took = begin.elapsed();
                let (longest, result) = caller.join().expect("it ends");
                assert_eq!(result, Err(LinkError::Ended));
                done.extend([longest, took].map(|time| time.as_millis() as u32));
            }
            "channel" => self.channel(number(1), done)?,
            other => panic!("not a word for actors: {other}"),
        }
        Ok(())
    }

    /// Connects a channel from a node to this one and receives for ever.
    fn channel(&self, peer: u32, done: &mut Vec<u32>) -> Result<(), Error> {
        let (here, there) = (self.create(None), self.get(peer, SOURCE)?);
        let asked = self.node.with(|engine, links| engine.connect(ChannelKind::Packet, there, here, links))?;
        self.outcome(asked?)?;
        let (handle, request) =
            self.node.with(|engine, links| engine.open(ChannelKind::Packet, true, here, links))??;
        self.outcome(request)?;
        loop {
            let take = |node: &Node| {
                node.wait_for(Deadline::Forever, |engine, links| engine.receive_packet(handle, links).transpose())?
            };
            done.push(take(&self.node)?.len() as u32);
            println!("{MARK} 0 0 ok");
        }
    }

    fn send(&self, from: EndpointId, to: EndpointId, done: &mut Vec<u32>) -> Result<(), Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let bytes = number.to_le_bytes();
        let sent = self.node.wait_for(Deadline::Forever, |engine, links| {
            match engine.send_message(from, to, 0, &bytes, links) {
                Ok(Sending::Blocked) => None,
                other => Some(other),
            }
        })??;
        if let Sending::Confirming(request) = sent {
            self.outcome(request)?;
        }
        done.push(number);
        Ok(())
    }

    fn create(&self, port: Option<u32>) -> EndpointId {
        self.node
            .with(|engine, links| engine.create_endpoint(port, links))
            .expect("the node runs")
            .expect("room for it")
    }

    fn get(&self, of: u32, port: u32) -> Result<EndpointId, Error> {
        let request = self.node.with(|engine, links| engine.get_endpoint((0, of), port, links))??;
        match self.outcome(request)? {
            Outcome::Endpoint(endpoint) => Ok(endpoint),
            other => panic!("{other:?}"),
        }
    }

    fn outcome(&self, request: RequestId) -> Result<Outcome<Block>, Error> {
        self.node.wait_for(Deadline::Forever, |engine, _| engine.take_outcome(request).transpose())??
    }
}
