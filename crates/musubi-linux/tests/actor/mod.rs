//! A participant in a process of its own: the test binary starts itself again and speaks with it in lines.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use musubi_core::plan::Plan;
use musubi_linux::futex::{self, Wake, Watch};
use musubi_linux::message::Message;
use musubi_linux::{Direction, End, Observer, Options, Participant, Segment};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::system::*;

#[path = "../forged/mod.rs"]
pub mod forged;

#[path = "../refusing/mod.rs"]
mod refusing;

use refusing::{refuse, refuse_all};

use forged::{Flaw, Forged, knock, post};

#[path = "../signalling/mod.rs"]
mod signalling;

const VARIABLE: &str = "MUSUBI_TEST_ACTOR";

/// The other process, as the test sees it.
pub struct Actor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts one.
    pub fn start() -> Actor {
        Actor::start_as(None)
    }

    /// Starts one as another user; needs root.
    pub fn start_as(uid: Option<u32>) -> Actor {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "actor", "--nocapture", "--test-threads=1"]).env(VARIABLE, "1");
        if let Some(uid) = uid {
            command.uid(uid).gid(uid).current_dir("/");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Actor { child, to, from }
    }

    /// Says something without waiting for the answer.
    pub fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    /// Hears the next answer.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the actor ended");
            if let Some(answer) = line.trim_end().strip_prefix('@') {
                return answer.to_owned();
            }
        }
    }

    /// Says something and hears the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// How many descriptors it has open when none is only on its way any more: the same number for longer than closing
    /// threads rest.
    pub fn settled_descriptors(&mut self) -> usize {
        const SETTLED: Duration = Duration::from_millis(200);
        let begin = Instant::now();
        let (mut last, mut since) = (0, begin);
        while since.elapsed() < SETTLED {
            assert!(begin.elapsed() < Duration::from_secs(30), "the number of descriptors does not settle");
            let now: usize = self.ask("descriptors").parse().unwrap();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        last
    }

    /// Attaches; gives number and epoch.
    pub fn attach(&mut self, domain: u16, instance: &str) -> (u16, u32) {
        let answer = self.ask(&format!("attach {domain} {instance} plan 2000"));
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!(words[0], "attached", "{answer}");
        (words[1].parse().unwrap(), words[2].parse().unwrap())
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal; after [`Signal::STOP`] it does nothing any more.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
        if signal == Signal::STOP {
            signalling::await_stopped(self.child.id());
        }
    }

    /// Ends it at once and takes it off the process table.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What runs in the other process. Every test binary that uses actors has a test `actor` that calls this.
pub fn play() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let mut stage = Stage::default();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let answer = stage.act(&words);
        println!("\n@{answer}");
    }
}

#[derive(Default)]
struct Stage {
    participant: Option<Participant>,
    ends: BTreeMap<(u16, Direction), End>,
    segment: Option<Segment>,
    unread: Vec<OwnedFd>,
}

impl Stage {
    fn act(&mut self, words: &[&str]) -> String {
        match words {
            ["attach", domain, instance, plan, ms] => self.attach(domain, instance, plan, ms),
            ["leave"] => {
                *self = Stage::default();
                "left".to_owned()
            }
            ["wait", domain, ms] => {
                let (domain, ms) = (domain.parse().unwrap(), ms.parse().unwrap());
                said(self.participant().wait_for(domain, within(ms)).map(|(number, epoch)| format!("{number} {epoch}")))
            }
            ["peers"] => {
                let mut peers: Vec<u16> = self.participant().peers().iter().map(|peer| peer.participant).collect();
                peers.sort_unstable();
                format!("{peers:?}")
            }
            ["claim", fifo, direction] => {
                let (fifo, direction) = (fifo.parse().unwrap(), direction_of(direction));
                let claimed = self.participant().claim_end(fifo, direction);
                said(claimed.map(|end| {
                    self.ends.insert((fifo, direction), end);
                    "claimed".to_owned()
                }))
            }
            ["segment", ms] => {
                let opened = self.participant().open_segment(PARAMETERS, within(ms.parse().unwrap()));
                said(opened.map(|segment| {
                    let answer = format!("generation {} settled {}", segment.generation(), segment.settled());
                    self.segment = Some(segment);
                    answer
                }))
            }
            ["priority", priority] => {
                let priority = priority.parse().unwrap();
                said(musubi_linux::realtime::set_fifo_priority(priority).map(|()| "set".to_owned()))
            }
            ["flood", instance, count] => {
                self.unread.extend(flood(instance, count.parse().unwrap()));
                format!("{} unread", self.unread.len())
            }
            ["room", descriptors] => room(descriptors.parse().unwrap()),
            ["limit", of, value] => limit(of, value.parse().unwrap()),
            ["strangers"] => {
                let strangers = self.participant().strangers();
                format!("{} {}", strangers.garbage, strangers.refused)
            }
            ["refuse", call, errno] => refused(refuse, call, errno),
            ["refuse-all", call, errno] => refused(refuse_all, call, errno),
            ["nap", ms] => nap(ms.parse().unwrap()).to_string(),
            ["cpu"] => processor_ms().to_string(),
            ["observe", instance] => observe(instance),
            ["withheld"] => self.participant().strangers().withheld.to_string(),
            ["descriptors"] => std::fs::read_dir("/proc/self/fd").unwrap().count().to_string(),
            ["lock"] => said(musubi_linux::realtime::lock_memory().map(|()| "locked".to_owned())),
            ["generation"] => self.segment.as_ref().unwrap().generation().to_string(),
            ["write", value] => self.write(value.parse().unwrap()),
            ["read"] => self.read(),
            ["fork"] => fork_and_sleep(|| {
                // SAFETY: the child calls only what is safe after a fork.
                unsafe { libc::fork() }
            }),
            ["clone"] => fork_and_sleep(|| {
                let flags = libc::SIGCHLD as libc::c_ulong;
                // SAFETY: the child calls only what is safe after a fork.
                (unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }) as i32
            }),
            other => format!("error: what is {other:?}?"),
        }
    }

    fn write(&self, value: u8) -> String {
        let address = self.segment.as_ref().unwrap().address();
        // SAFETY: the segment is mapped and this thread is its only user in this process.
        unsafe { address.write_volatile(value) };
        "written".to_owned()
    }

    fn read(&self) -> String {
        let address = self.segment.as_ref().unwrap().address();
        // SAFETY: as above.
        unsafe { address.read_volatile() }.to_string()
    }

    fn attach(&mut self, domain: &str, instance: &str, plan: &str, ms: &str) -> String {
        let plan: &'static Plan<'static> = match plan {
            "other" => &OTHER_PLAN,
            "two" => &PLAN_OF_TWO_USERS,
            "three" => &PLAN_OF_THREE_USERS,
            _ => &PLAN,
        };
        let options = Options {
            instance: Some(instance.to_owned()),
            deadline: within(ms.parse().unwrap()),
            ..Options::new(plan, domain.parse::<u16>().unwrap())
        };
        said(Participant::attach(options).map(|participant| {
            let answer = format!("attached {} {}", participant.number(), participant.epoch());
            self.participant = Some(participant);
            answer
        }))
    }

    fn participant(&self) -> &Participant {
        self.participant.as_ref().unwrap()
    }
}

/// Asks the control for its section again and again, never reads the answer, and closes half of each connection. Every
/// second time as the gateway, which this process then is by name.
fn flood(instance: &str, count: usize) -> Vec<OwnedFd> {
    let forged = Forged::of(&PLAN_OF_THREE_USERS, 1, instance);
    let section = forged.section(Flaw::None);
    let ask = |index: usize| {
        let socket = knock(instance, 0);
        if index.is_multiple_of(2) {
            post(&socket, &Message::Observe { hash: PLAN.hash }.bytes(), &[]);
        } else {
            post(&socket, &Message::Hello(forged.party).bytes(), &[section.as_fd()]);
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
        let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Write);
        socket
    };
    let mut sockets: Vec<OwnedFd> = (0..count).map(ask).collect();
    sockets.push(forged.name);
    sockets
}

fn refused(refuse: impl Fn(u32, u32), call: &str, errno: &str) -> String {
    refuse(call.parse().unwrap(), errno.parse().unwrap());
    "refused".to_owned()
}

fn limit(of: &str, value: u64) -> String {
    let resource = match of {
        "rtprio" => Resource::Rtprio,
        "nofile" => Resource::Nofile,
        _ => Resource::Memlock,
    };
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).unwrap();
    "limited".to_owned()
}

/// Lets this process have this many descriptors; more of them again is allowed.
fn room(descriptors: u64) -> String {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), maximum }).unwrap();
    "done".to_owned()
}

fn observe(instance: &str) -> String {
    let mut observer = Observer::new(&PLAN, Some(instance)).unwrap();
    said(observer.refresh(within(2_000)).map(|()| format!("{} seen", observer.participants().len())))
}

/// Processor time that this process has used, in milliseconds.
fn processor_ms() -> i64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec * 1_000 + used.tv_nsec / 1_000_000
}

/// Sleeps as ends do; gives how often it was woken.
fn nap(ms: u64) -> u32 {
    let (bell, local) = (AtomicU32::new(0), AtomicU32::new(0));
    let (deadline, mut sleeps) = (within(ms), 1);
    fn watch(word: &AtomicU32) -> Watch<'_> {
        Watch { word: word.into(), expected: 0 }
    }
    while futex::sleep(Some(watch(&bell)), watch(&local), deadline) == Wake::Woken {
        sleeps += 1;
    }
    sleeps
}

fn fork_and_sleep(fork: impl FnOnce() -> i32) -> String {
    match fork() {
        0 => loop {
            // SAFETY: waits for a signal; safe after a fork.
            unsafe { libc::pause() };
        },
        pid => format!("forked {pid}"),
    }
}

fn said(result: Result<String, musubi_linux::Error>) -> String {
    result.unwrap_or_else(|error| format!("error: {error}"))
}

fn direction_of(word: &str) -> Direction {
    if word == "send" { Direction::Send } else { Direction::Receive }
}
