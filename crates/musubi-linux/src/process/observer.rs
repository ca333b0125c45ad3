//! Looking at a running system from outside, read-only.
//!
//! What you may rely on: an observer writes nothing and takes no slot; what it holds are read-only mappings that stay
//! valid after their owners have died.
//!
//! How it works: it connects to every slot's name and asks for the section. The connection stays open and, with a
//! pidfd, shows whether the owner lives.

use std::os::fd::AsFd;
use std::sync::Arc;

use musubi_core::layout::{Part, header, rx, tx};
use musubi_core::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::direction::Direction;
use crate::error::Error;
use crate::os::clock::{Deadline, DeadlineExt, now_ns, timespec};
use crate::os::credentials::{Credentials, Mortality, mortality};
use crate::os::descriptor::Descriptor;
use crate::os::needs;
use crate::os::packet_socket::{Answer, call};
use crate::os::sealed::Unusable;
use crate::process::rendezvous::connection::{Connection, Incoming, Outgoing, Sent, Stage};
use crate::process::rendezvous::message::{Message, Party, Refusal};
use crate::process::rendezvous::socket_names::Names;
use crate::process::section::PeerSection;

/// Why a holder is not believed that answers what no participant does.
const NONSENSE: &str = "it answers what no participant does";

/// A view of a running system.
#[derive(Debug)]
pub struct Observer {
    plan: &'static Plan<'static>,
    names: Names,
    seen: Vec<Observed>,
    silent: Vec<Silent>,
    refused: Vec<Unseen>,
}

/// A slot whose holder does not let us look, or whom we do not believe.
#[derive(Debug)]
pub struct Unseen {
    /// Global number of the participant.
    pub participant: u16,
    /// Its process, 0 if not visible from here.
    pub pid: i32,
    /// Why.
    pub why: Error,
}

/// A slot whose holder is there but did not answer: it is stopped, has just started, or hangs up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Global number of the participant.
    pub participant: u16,
    /// Its process, 0 if not known: it is not visible from here, or so many call it that none gets through.
    pub pid: i32,
}

/// One participant seen from outside.
#[derive(Debug)]
pub struct Observed {
    /// Its section.
    pub section: Arc<PeerSection>,
    /// Its process, 0 if not visible from here.
    pub pid: i32,
    connection: Connection,
    pidfd: Option<Descriptor>,
}

impl Observer {
    /// Prepares to look at a system; [`Observer::refresh`] looks.
    ///
    /// # Errors
    /// [`Error::Plan`], [`Error::Instance`]; [`Error::System`] names a system call that is refused.
    pub fn new(plan: &'static Plan<'static>, instance: Option<&str>) -> Result<Observer, Error> {
        plan.check().map_err(|_| Error::Plan)?;
        needs::check()?;
        Ok(Observer {
            plan,
            names: Names::new(plan.name, instance)?,
            seen: Vec::new(),
            silent: Vec::new(),
            refused: Vec::new(),
        })
    }

    /// Finds who is there now: asks those not known yet, forgets those who have died. Those that do not answer until
    /// the deadline are [`Observer::silent`], those that do not let us look [`Observer::refused`].
    ///
    /// # Errors
    /// Nobody lets us look: [`Error::PlanMismatch`] if they run another plan, [`Error::RefusedUser`] if our user may not,
    /// [`Error::NameForeign`] if users are there that the plan does not allow beside ours, and others.
    pub fn refresh(&mut self, deadline: Deadline) -> Result<(), Error> {
        self.seen.retain(Observed::alive);
        self.silent.clear();
        self.refused.clear();
        let known: Vec<u16> = self.seen.iter().map(|seen| seen.section.participant()).collect();
        // All are asked before the first answer is waited for, so that a silent one costs the others no time.
        let mut asked = Vec::new();
        for number in (0..self.plan.participants()).filter(|number| !known.contains(number)) {
            asked.extend(self.ask(number)?);
        }
        for question in asked {
            self.hear(question, deadline);
        }
        self.seen.sort_by_key(|seen| seen.section.participant());
        // What one participant answers keeps us from looking at that one only.
        let is_nobody_seen = self.seen.is_empty() && self.silent.is_empty();
        if is_nobody_seen && !self.refused.is_empty() { Err(self.refused.swap_remove(0).why) } else { Ok(()) }
    }

    /// The participants found by the last look, by number.
    pub fn participants(&self) -> &[Observed] {
        &self.seen
    }

    /// The slots whose holders did not answer at the last look, by number.
    pub fn silent(&self) -> &[Silent] {
        &self.silent
    }

    /// The slots whose holders did not let us look at the last look.
    pub fn refused(&self) -> &[Unseen] {
        &self.refused
    }

    /// Why the holder of a slot did not let us look at the last look, if so.
    pub fn take_refusal(&mut self, participant: u16) -> Option<Error> {
        let index = self.refused.iter().position(|unseen| unseen.participant == participant)?;
        Some(self.refused.swap_remove(index).why)
    }

    /// The living participants that hold an end of a channel; at most one unless one of them claims what is not so.
    pub fn holders(&self, fifo: u16, direction: Direction) -> impl Iterator<Item = &Observed> {
        self.seen.iter().filter(move |seen| seen.holds(fifo, direction))
    }

    /// Asks the holder of a slot for its section; `None` if there is none that may be there.
    fn ask(&mut self, number: u16) -> Result<Option<Question>, Error> {
        let (socket, credentials) = match call(&self.names.participant(number))? {
            Answer::Connected(socket, credentials) => (socket, credentials),
            Answer::Absent => return Ok(None),
            Answer::Busy => {
                self.silent.push(Silent { participant: number, pid: 0 });
                return Ok(None);
            }
        };
        if !self.is_theirs(number, &credentials) {
            let why = Error::NameForeign { name: self.names.participant(number), uid: credentials.uid };
            self.refused.push(Unseen { participant: number, pid: credentials.pid, why });
            return Ok(None);
        }
        let pidfd = match mortality(socket.as_fd(), &credentials) {
            Mortality::Watched(pidfd) => Some(pidfd),
            Mortality::Dead => return Ok(None),
            Mortality::Unknown => None,
        };
        let pid = credentials.pid;
        let mut connection = Connection::new(socket, Stage::Observer, credentials, now_ns());
        let message = Message::Observe { hash: self.plan.hash };
        match connection.send(Outgoing { message, fd: None }, now_ns()) {
            Sent::Broken(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                self.hung_up(number, pid);
                return Ok(None);
            }
            Sent::Broken(errno) | Sent::Held(Some(errno)) => {
                return Err(Error::System { action: "asking a participant", source: errno.into() });
            }
            Sent::Done | Sent::Waiting | Sent::Held(None) => (),
        }
        Ok(Some(Question { number, pid, connection, pidfd }))
    }

    /// Takes the answer in.
    fn hear(&mut self, question: Question, deadline: Deadline) {
        let Question { number, pid, connection, pidfd } = question;
        match self.answer(number, &connection, deadline) {
            Ok(Heard::Section(party, fd)) => {
                let fits = party.participant == number && self.plan.domain_of(number) == Some(party.domain);
                let adopt = || PeerSection::adopt(self.plan, &fd, party);
                match if fits { adopt() } else { Err(Unusable::Unfit) } {
                    Ok(section) => self.seen.push(Observed { section, pid, connection, pidfd }),
                    Err(Unusable::Unfit) => self.not_believed(number, pid, Refusal::Section.words()),
                    Err(Unusable::NoRoom(why)) => self.refused.push(Unseen { participant: number, pid, why }),
                }
            }
            Ok(Heard::Silence) => self.silent.push(Silent { participant: number, pid }),
            Ok(Heard::HungUp) => self.hung_up(number, pid),
            Ok(Heard::Nonsense) => self.not_believed(number, pid, NONSENSE),
            Err(why) => self.refused.push(Unseen { participant: number, pid, why }),
        }
    }

    fn not_believed(&mut self, participant: u16, pid: i32, reason: &'static str) {
        self.refused.push(Unseen { participant, pid, why: Error::NotLetIn { participant, reason } });
    }

    /// The holder of a slot's name has hung up on us. If the name is held no longer, it has gone.
    fn hung_up(&mut self, participant: u16, pid: i32) {
        if !matches!(call(&self.names.participant(participant)), Ok(Answer::Absent)) {
            self.silent.push(Silent { participant, pid });
        }
    }

    /// Whether the holder of a slot's name is a user that may be there.
    fn is_theirs(&self, number: u16, credentials: &Credentials) -> bool {
        let domain = self.plan.domain_of(number).map(|domain| &self.plan.domains[usize::from(domain)]);
        domain.is_some_and(|domain| credentials.may_attach(domain)) || rustix::process::geteuid().is_root()
    }

    fn answer(&self, number: u16, of: &Connection, deadline: Deadline) -> Result<Heard, Error> {
        loop {
            match of.receive() {
                Incoming::Message(Message::Welcome(party), Some(fd)) => return Ok(Heard::Section(party, fd)),
                Incoming::Message(Message::Refuse { reason, hash }, None) => {
                    return Err(self.refusal(number, reason, hash));
                }
                Incoming::Nothing if wait_readable(of, deadline) => (),
                Incoming::Nothing => return Ok(Heard::Silence),
                Incoming::Garbage(crate::process::rendezvous::message::Garbage::Version) => {
                    return Err(Error::VersionMismatch { participant: number });
                }
                Incoming::Closed => return Ok(Heard::HungUp),
                _ => return Ok(Heard::Nonsense),
            }
        }
    }

    fn refusal(&self, participant: u16, reason: Refusal, theirs: u64) -> Error {
        match reason {
            Refusal::Plan => Error::PlanMismatch { participant, ours: self.plan.hash, theirs },
            Refusal::User => {
                let domain = self.plan.domain_of(participant).map(|domain| &self.plan.domains[usize::from(domain)]);
                let domain = domain.map_or_else(String::new, |domain| domain.name.to_owned());
                Error::RefusedUser { participant, uid: Credentials::own().uid, domain }
            }
            other => Error::Refused { participant, reason: other.words() },
        }
    }
}

/// A participant that was asked for its section.
struct Question {
    number: u16,
    pid: i32,
    connection: Connection,
    pidfd: Option<Descriptor>,
}

/// What came back.
enum Heard {
    Section(Party, Descriptor),
    Silence,
    /// It has just gone, or does not want to talk.
    HungUp,
    /// What no participant says.
    Nonsense,
}

impl Observed {
    /// Whether its process lives and has not left.
    pub fn alive(&self) -> bool {
        let hung_up = !matches!(self.connection.receive(), Incoming::Nothing);
        let ended = self.pidfd.as_ref().is_some_and(|pidfd| is_readable(pidfd, 0));
        !hung_up && !ended && !self.section.terminated()
    }

    /// Whether it holds this end of this channel.
    pub fn holds(&self, fifo: u16, direction: Direction) -> bool {
        let (part, open) = match direction {
            Direction::Send => (Part::Tx(fifo), tx::OPEN),
            Direction::Receive => (Part::Rx(fifo), rx::OPEN),
        };
        self.section.part(part).is_some_and(|part| part.words().get(open) == 1)
    }

    /// When it attached, in nanoseconds of [`crate::os::clock::now_ns`].
    pub fn start_ns(&self) -> u64 {
        let words = self.section.words();
        u64::from(words.get(header::START_LOW)) | u64::from(words.get(header::START_HIGH)) << 32
    }

    /// Age of its heartbeat in milliseconds.
    pub fn heartbeat_age_ms(&self) -> u32 {
        self.section.heartbeat_age_ms()
    }
}

fn wait_readable(connection: &Connection, deadline: Deadline) -> bool {
    match deadline.left_ns() {
        Some(0) => false,
        Some(ns) => is_readable(connection, ns),
        None => is_readable(connection, u64::MAX / 4),
    }
}

fn is_readable(fd: &impl AsFd, ns: u64) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&timespec(ns))).is_ok_and(|count| count > 0)
}
