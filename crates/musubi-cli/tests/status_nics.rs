//! `musubi status` of systems with NICs: opened by this process, connected with each other, looked at by the command.

#[allow(dead_code)]
mod command;
#[path = "../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;
#[path = "../../musubi-linux/tests/signalling/mod.rs"]
mod signalling;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{Process, expect, musubi, text};
use loopback::own_address;
use musubi_linux::{Deadline, DeadlineExt};
use musubi_transport::Regulation;
use musubi_transport::runtime::Options;
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::engine::{Dequeue, MemoryAttributes, MemoryHandle, Queue, Reliability, TagHandle, ViAttributes};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::{Notification, ViNumber};
use musubi_vipl::process::{Nic, NicSystem};
use serde_json::Value;

/// The class of all VIs here.
const CLASS: u8 = 3;
/// Bytes of a message, and how far descriptors lie apart.
const BYTES: u32 = 64;
const APART: usize = 128;
const MESSAGES: usize = 20;

/// A description of two NICs and what it says.
struct System {
    directory: tempfile::TempDir,
    nics: NicSystem,
}

impl System {
    fn new(name: &str, at: &str, rules: &str) -> System {
        let directory = tempfile::tempdir().unwrap();
        let mut description = format!("[system]\nname = \"{name}-{}\"\n", std::process::id());
        for name in ["left", "right"] {
            let at = at.replace("PLACE", &own_address());
            description += &format!("[[nic]]\nname = \"{name}\"\nprocesses = 1\nat = {at}\n{rules}");
        }
        let path = directory.path().join("system.toml");
        std::fs::write(&path, description).unwrap();
        let description = musubi_config::load(&path).unwrap_or_else(|report| panic!("{report}"));
        let entries = description.nics().entries.iter().map(|entry| (entry.name.clone(), entry.processes));
        let nics = NicSystem::new(entries, description.nics().topology.clone());
        System { directory, nics }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("system.toml")
    }

    fn report(&self) -> Value {
        let output = expect(musubi(&["status", "--json", "--system"]).arg(self.path()), 0);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// An opened NIC with a tag and memory.
struct Side {
    nic: Nic,
    number: NicNumber,
    tag: TagHandle,
    base: u64,
    handle: MemoryHandle,
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

impl Side {
    fn open(system: &System, number: u16) -> Side {
        let number = NicNumber(number);
        let nic = Nic::open(&system.nics, number, Options::default()).unwrap();
        let tag = nic.with(|nic| nic.create_tag()).unwrap();
        let attributes = MemoryAttributes { tag, remote_write: false, remote_read: false };
        let (base, handle) = nic.with(|nic| nic.register_own(Lines::zeroed(1 << 16), attributes)).unwrap();
        Side { nic, number, tag, base, handle }
    }

    fn vi(&self, rate: u32, asked: Notification) -> ViNumber {
        let attributes = ViAttributes {
            reliability: Reliability::Delivery,
            transfer_bytes_max: 4096,
            class: CLASS,
            tag: self.tag,
            remote_write: false,
            remote_read: false,
            credit: false,
        };
        let rates = Regulation { messages_per_s: rate, messages_burst: u32::from(rate > 0), ..Regulation::NONE };
        self.nic
            .with(|nic| {
                let vi = nic.create_vi(attributes, None, None)?;
                nic.set_pace(vi, rates)?;
                nic.set_notification(vi, asked).map(|()| vi)
            })
            .unwrap()
    }

    fn at(&self, discriminator: &[u8]) -> Address {
        Address::new(self.number, discriminator).unwrap()
    }

    /// Posts a descriptor in a place, of bytes behind it.
    fn post(&self, vi: ViNumber, queue: Queue, place: usize) {
        let at = self.base + (place * APART) as u64;
        let mut bytes = [0; 48];
        bytes[12..14].copy_from_slice(&1_u16.to_le_bytes());
        bytes[24..28].copy_from_slice(&BYTES.to_le_bytes());
        bytes[32..40].copy_from_slice(&(self.base + (1 << 15)).to_le_bytes());
        bytes[40..44].copy_from_slice(&self.handle.0.to_le_bytes());
        bytes[44..48].copy_from_slice(&BYTES.to_le_bytes());
        let place = musubi_vipl::engine::LocalPlace { address: at, handle: self.handle, bytes: 48 };
        assert!(self.nic.with(|nic| Ok(nic.memory().copy_in(place, &bytes))).unwrap());
        self.nic.post(vi, queue, (at, self.handle)).unwrap();
    }
}

fn connect((client, a): (&Side, ViNumber), (server, b): (&Side, ViNumber)) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (caller, ..) = server.nic.wait_caller(&server.at(b"port"), soon()).unwrap();
            server.nic.accept(caller, b, soon()).unwrap();
        });
        let until = Instant::now() + Duration::from_secs(60);
        while client.nic.request(a, client.at(b"client"), server.at(b"port"), soon()).is_err() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Sends messages from left to right, and has all taken but two receives that are never used.
fn exchange(left: (&Side, ViNumber), right: (&Side, ViNumber)) {
    (0..MESSAGES + 2).for_each(|place| right.0.post(right.1, Queue::Receive, place));
    (0..MESSAGES).for_each(|place| left.0.post(left.1, Queue::Send, place));
    for (side, vi, queue) in [(left.0, left.1, Queue::Send), (right.0, right.1, Queue::Receive)] {
        for _ in 0..MESSAGES {
            assert!(matches!(side.nic.wait(vi, queue, soon()), Ok(Dequeue::Complete { is_error: false, .. })));
        }
    }
}

fn class(nic: &Value) -> &Value {
    &nic["classes"].as_array().unwrap()[usize::from(CLASS)]
}

fn is_seen_as_it_is(name: &str, at: &str) {
    let system = System::new(name, at, "");
    assert!(system.report()["nics"].as_array().unwrap().is_empty());
    let (left, right) = (Side::open(&system, 0), Side::open(&system, 1));
    let asked = Notification { interval_ns: 1_000_000, latest_ns: 2_000_000, budget_ns: 1 };
    let (a, b) = (left.vi(500, Notification::default()), right.vi(0, asked));
    connect((&left, a), (&right, b));
    exchange((&left, a), (&right, b));

    let report = system.report();
    let nics = report["nics"].as_array().unwrap();
    let names: Vec<_> =
        nics.iter().map(|nic| (nic["name"].as_str().unwrap(), nic["state"].as_str().unwrap())).collect();
    assert_eq!(names, [("left", "running"), ("right", "running")], "{report:#}");
    for nic in nics {
        assert_eq!(
            (&nic["vis"]["count"], &nic["vis"]["connected"], &nic["connections"]),
            (&1.into(), &1.into(), &1.into())
        );
        assert_eq!((nic["classes"].as_array().unwrap().len(), &nic["lost"]), (8, &0.into()));
    }
    let [sender, receiver] = [class(&nics[0]), class(&nics[1])];
    assert_eq!((&sender["posted"], &sender["completed"], &sender["flushed"]), (&20.into(), &20.into(), &0.into()));
    assert_eq!((&receiver["posted"], &receiver["completed"]), (&22.into(), &20.into()));
    assert!(sender["held"].as_u64().unwrap() > 0 && sender["held_ns"].as_u64().unwrap() > 0, "{sender}");
    assert!(sender["policies"].is_null() && sender["budgets"].is_null() && receiver["rule"].is_null());
    assert_eq!(receiver["budgets"]["taken"], 20);
    assert!(receiver["budgets"]["over_budget"].as_u64().unwrap() > 0, "none is taken within a nanosecond: {receiver}");
    let count = |what: &str| receiver["policies"][what].as_u64().unwrap();
    assert_eq!(count("asked"), count("raised") + count("deferred") + count("suppressed"));

    right.nic.disconnect(b).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while left.nic.with(|nic| nic.query_vi(a)).unwrap().state != musubi_vipl::engine::ViState::Error {
        assert!(Instant::now() < until, "the other side hears of it");
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = system.report();
    let [left_now, right_now] = [0, 1].map(|at| &report["nics"][at]);
    assert_eq!((&left_now["vis"]["in_error"], &left_now["lost"]), (&1.into(), &1.into()), "{report:#}");
    assert_eq!(class(right_now)["flushed"], 2);
    let said = text(&expect(musubi(&["status", "--system"]).arg(system.path()), 0).stdout);
    assert!(["left.0", "right.0", "running", "in error"].iter().all(|word| said.contains(word)), "{said}");
    left.nic.close().unwrap();
    right.nic.close().unwrap();
    let said = text(&expect(musubi(&["status", "--system"]).arg(system.path()), 0).stdout);
    assert!(said.contains("Nobody is attached"), "{said}");
}

#[test]
fn nics_in_shared_memory_are_seen_as_they_are() {
    is_seen_as_it_is("cli-nics-shm", "\"shm\"");
}

#[test]
fn nics_over_tcp_are_seen_as_they_are() {
    is_seen_as_it_is("cli-nics-tcp", "\"tcp://PLACE\"");
}

#[test]
fn what_the_rule_of_a_class_puts_off_is_seen() {
    let rule = "[[nic.rule]]\nclass = 3\nfilter = { interval = \"20 ms\", latest = \"20 ms\" }\n";
    let system = System::new("cli-nics-rule", "\"shm\"", rule);
    let (left, right) = (Side::open(&system, 0), Side::open(&system, 1));
    let (a, b) = (left.vi(0, Notification::default()), right.vi(0, Notification::default()));
    connect((&left, a), (&right, b));
    exchange((&left, a), (&right, b));
    let report = system.report();
    let of = class(&report["nics"][1]);
    let count = |what: &str| of["rule"][what].as_u64().unwrap();
    assert!(count("asked") >= 20 && count("raised") >= 1, "{of}");
    assert_eq!(count("asked"), count("raised") + count("deferred") + count("suppressed"));
    assert!(of["policies"].is_null() && report["nics"][1]["classes"][2]["rule"].is_null());
}

/// The environment variable that has this binary's test below be a process that has a NIC open, of the description that it names.
const OPENS: &str = "MUSUBI_TEST_OPENS_LEFT";

#[test]
fn a_process_that_has_a_nic_open() {
    let Some(path) = std::env::var_os(OPENS) else { return };
    let description = musubi_config::load(std::path::Path::new(&path)).unwrap();
    let entries = description.nics().entries.iter().map(|entry| (entry.name.clone(), entry.processes));
    let nics = NicSystem::new(entries, description.nics().topology.clone());
    let nic = Nic::open(&nics, NicNumber(0), Options::default()).unwrap();
    println!("\nopen");
    let _ = nic.wait_news(soon());
}

#[test]
fn a_process_that_does_not_answer_is_silent_and_hides_nobody() {
    let system = System::new("cli-nics-stopped", "\"shm\"", "");
    let mut opens = Command::new(std::env::current_exe().unwrap());
    opens.args(["--exact", "a_process_that_has_a_nic_open", "--nocapture"]).env(OPENS, system.path());
    let mut process = Process(opens.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "open"));
    let right = Side::open(&system, 1);
    signalling::signal(process.0.id(), "STOP");
    let report = system.report();
    let states: Vec<_> = report["nics"].as_array().unwrap().iter().map(|nic| nic["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["silent", "running"], "{report:#}");
    assert!(report["nics"][0]["vis"].is_null() && report["nics"][0]["classes"].as_array().unwrap().is_empty());
    let said = text(&expect(musubi(&["status", "--system"]).arg(system.path()), 0).stdout);
    assert!(said.contains("SILENT"), "{said}");
    signalling::signal(process.0.id(), "CONT");
    let states = system.report()["nics"][0]["state"].clone();
    assert_eq!(states, "running");
    right.nic.close().unwrap();
}
