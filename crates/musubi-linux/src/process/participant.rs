//! A participant: a process attached to a domain of a system.
//!
//! What you may rely on: [`Participant::attach`] returns when every participant that was present is linked, or after
//! [`HANDSHAKE_NS_MAX`] without those that did not answer (a stopped process links as soon as it runs again). It takes
//! a slot that no other process has. Dropping the participant leaves the system; nothing remains.
//!
//! How it works: claim a slot, make the section, listen, then call all who may be there.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use musubi_core::layout::{header, section_bytes, state};
use musubi_core::plan::{Plan, PortKind, Role};
use musubi_core::words::OwnWords;
use rustix::event::epoll;

use crate::direction::Direction;
use crate::error::{Error, Tried};
use crate::os::clock::{Deadline, DeadlineExt, MonotonicClock, now_ns};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::{Kept, Process};
use crate::os::mapping::Access;
use crate::os::needs;
use crate::os::packet_socket::answer_calls;
use crate::os::realtime;
use crate::process::channel::claim::End;
use crate::process::channel::incarnations::ReceivingState;
use crate::process::channel::latest_timer::LateTimer;
use crate::process::channel::segment::{self, Segment};
use crate::process::channel::sender::SendingState;
use crate::process::channel::shelf::Shelf;
use crate::process::channel::smem::Permit;
use crate::process::rendezvous::attendant;
use crate::process::rendezvous::dial::Dial;
use crate::process::rendezvous::membership::SmemMember;
use crate::process::rendezvous::message::Party;
use crate::process::rendezvous::registry::{Registry, Shared, Strangers, Token};
use crate::process::rendezvous::slot::{new_epoch, take_slot_of};
use crate::process::rendezvous::socket_names::Names;
use crate::process::section::{OwnSection, PeerSection};

/// Longest time that attaching waits for participants that do not answer, in nanoseconds.
pub const HANDSHAKE_NS_MAX: u64 = 500_000_000;
/// Shortest time that attaching gives present participants to answer, even when polling, in nanoseconds.
pub const HANDSHAKE_NS_MIN: u64 = 50_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// How to attach.
#[derive(Clone, Debug)]
pub struct Options {
    /// The system.
    pub plan: &'static Plan<'static>,
    /// The domain.
    pub domain: Whose,
    /// A slot of the domain; any free one if not given.
    pub slot: Option<u16>,
    /// The instance; see [`super::rendezvous::socket_names`].
    pub instance: Option<String>,
    /// How long to wait for a free slot.
    pub deadline: Deadline,
    /// What to do with the section's memory.
    pub memory: Memory,
}

/// A domain by name or number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// By name.
    Named(String),
    /// By number.
    Numbered(u16),
}

impl From<&str> for Whose {
    fn from(name: &str) -> Whose {
        Whose::Named(name.to_owned())
    }
}

impl From<u16> for Whose {
    fn from(number: u16) -> Whose {
        Whose::Numbered(number)
    }
}

/// What to do with the memory of the own section at attaching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Pages are entered when first touched.
    #[default]
    Lazy,
    /// Pages are entered now.
    Prefault,
    /// Pages are entered now and stay in memory.
    Lock,
}

impl Options {
    /// Any free slot of a domain, waiting up to five seconds for one.
    pub fn new(plan: &'static Plan<'static>, domain: impl Into<Whose>) -> Options {
        let deadline = Deadline::after(Duration::from_secs(5));
        Options { plan, domain: domain.into(), slot: None, instance: None, deadline, memory: Memory::Lazy }
    }
}

/// A process's place in a system.
#[derive(Debug)]
pub struct Participant {
    shared: Arc<Shared>,
    /// Where the ends wait while no handle is open.
    pub(crate) shelves: Shelves,
    attendant: Option<JoinHandle<()>>,
}

/// The states of a participant's ends of which no handle is open.
#[derive(Debug)]
pub(crate) struct Shelves {
    pub(crate) sending: Arc<Shelf<SendingState>>,
    pub(crate) receiving: Arc<Shelf<ReceivingState>>,
    pub(crate) segments: Arc<Shelf<Permit>>,
}

impl Shelves {
    fn of(plan: &Plan<'_>) -> Shelves {
        let permits = (0u16..).zip(plan.smems).map(|(smem, _)| (smem, Permit));
        Shelves { sending: Shelf::of([]), receiving: Shelf::of([]), segments: Shelf::of(permits) }
    }

    fn close(&self) {
        self.sending.close();
        self.receiving.close();
        self.segments.close();
    }
}

/// What is known of a peer.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Global number of the participant.
    pub participant: u16,
    /// Its domain.
    pub domain: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Its process, 0 if not visible from here.
    pub pid: i32,
    /// Whether its heartbeat is older than the plan's `stalled`: it lives, but does not run.
    pub stalled: bool,
    /// Age of its heartbeat in milliseconds.
    pub heartbeat_age_ms: u32,
    /// Its section.
    pub section: Arc<PeerSection>,
}

impl Participant {
    /// Attaches this process to a domain.
    ///
    /// # Errors
    /// [`Error`] says which: the plan, the domain or slot, the user, a taken name, or that the Master refuses us. What any
    /// other participant answers costs the link with it, not the start ([`Participant::obstacles`]).
    pub fn attach(options: Options) -> Result<Participant, Error> {
        let plan = options.plan;
        plan.check().map_err(|_| Error::Plan)?;
        needs::check()?;
        let domain = find_domain(plan, &options.domain, PortKind::LinuxProcess)?;
        check_user(plan, domain)?;
        let names = Names::new(plan.name, options.instance.as_deref())?;
        let (number, slot) = take_slot_of(plan, domain, options.slot, options.deadline, &names)?;
        let me = Party {
            hash: plan.hash,
            participant: number,
            domain,
            epoch: new_epoch(),
            section_bytes: section_bytes(plan, domain).ok_or(Error::Plan)?,
        };
        let section = OwnSection::create(plan, me)?;
        prepare(&section, options.memory)?;
        let shared = Arc::new(new_shared(plan, names, me, section, slot)?);
        let attendant = attendant::start(Arc::clone(&shared))?;
        let participant = Participant { shared, shelves: Shelves::of(plan), attendant: Some(attendant) };
        participant.join(options.deadline)?;
        Ok(participant)
    }

    /// Waits for the first handshakes, then creates the segments that nobody has handed on.
    fn join(&self, deadline: Deadline) -> Result<(), Error> {
        let left_ns = deadline.left_ns().unwrap_or(HANDSHAKE_NS_MAX).clamp(HANDSHAKE_NS_MIN, HANDSHAKE_NS_MAX);
        let deadline = Deadline::Forever.within_ns(left_ns);
        self.wait_for_answers(deadline);
        let mut registry = self.shared.lock();
        if let Some(error) = registry.obstacles.of_start(&self.shared) {
            return Err(error);
        }
        registry.joined = true;
        registry.create_segments(&self.shared);
        registry.refresh(&self.shared);
        Ok(())
    }

    fn wait_for_answers(&self, deadline: Deadline) {
        let mut registry = self.shared.lock();
        while !registry.all_answered() && !registry.obstacles.forbid_start() {
            let Some(changed) = self.shared.wait_changed(registry, deadline) else { return };
            registry = changed;
        }
    }

    /// The system.
    pub fn plan(&self) -> &'static Plan<'static> {
        self.shared.plan
    }

    /// Number of our domain.
    pub fn domain(&self) -> u16 {
        self.shared.me.domain
    }

    /// Our global number.
    pub fn number(&self) -> u16 {
        self.shared.me.participant
    }

    /// Our incarnation.
    pub fn epoch(&self) -> u32 {
        self.shared.me.epoch
    }

    /// The clock that all participants read alike.
    pub fn clock(&self) -> MonotonicClock {
        MonotonicClock
    }

    /// The names of this system and instance.
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// The participants that we are linked with, now.
    pub fn peers(&self) -> Vec<PeerInfo> {
        let stalled_ms = self.shared.plan.liveness.stalled_ns / NS_PER_MS;
        let registry = self.shared.lock();
        let info = |peer: &crate::process::rendezvous::registry::Peer| {
            let heartbeat_age_ms = peer.section.heartbeat_age_ms();
            PeerInfo {
                participant: peer.party.participant,
                domain: peer.party.domain,
                epoch: peer.party.epoch,
                pid: peer.credentials.pid,
                stalled: u64::from(heartbeat_age_ms) > stalled_ms,
                heartbeat_age_ms,
                section: Arc::clone(&peer.section),
            }
        };
        registry.peers.iter().map(info).collect()
    }

    /// Why participants that are or were there are not linked with us, by number. Whoever links is taken off.
    pub fn obstacles(&self) -> Vec<(u16, Error)> {
        self.shared.lock().obstacles.all(&self.shared)
    }

    /// Those who tried to link with us and were not let in.
    pub fn strangers(&self) -> Strangers {
        self.shared.lock().strangers
    }

    /// Waits until a participant of a domain is linked with us; gives its number and epoch.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::PlanMismatch`], [`Error::VersionMismatch`], [`Error::RefusedUser`],
    /// [`Error::Refused`], [`Error::NotLetIn`] if one is there but was not linked; [`Error::NameForeign`] if a user that
    /// may not holds its name; [`Error::System`] if the kernel keeps us from it; [`Error::Left`].
    pub fn wait_for(&self, domain: u16, deadline: Deadline) -> Result<(u16, u32), Error> {
        let mut registry = self.shared.lock();
        loop {
            if let Some(peer) = registry.peers.iter().find(|peer| peer.party.domain == domain && peer.ready) {
                return Ok((peer.party.participant, peer.party.epoch));
            }
            if registry.left {
                return Err(Error::Left);
            }
            let obstacle = registry.obstacles.of_domain(&self.shared, domain);
            registry = match self.shared.wait_changed(registry, deadline) {
                Some(registry) => registry,
                None => return Err(obstacle.unwrap_or(Error::TimedOut("a participant of the domain"))),
            };
        }
    }

    /// Waits until the Master is linked with us.
    ///
    /// # Errors
    /// As [`Participant::wait_for`].
    pub fn wait_for_master(&self, deadline: Deadline) -> Result<(u16, u32), Error> {
        let is_master = |domain: &musubi_core::plan::Domain<'_>| domain.role == Role::Master;
        let master = self.shared.plan.domains.iter().position(is_master).ok_or(Error::Plan)?;
        self.wait_for(master as u16, deadline)
    }

    /// Takes one end of a FIFO channel.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if our domain is not on that side; [`Error::EndInUse`] if another participant or thread of
    /// the domain has it; [`Error::Left`], [`Error::Forked`].
    pub fn claim_end(&self, fifo: u16, direction: Direction) -> Result<End, Error> {
        self.check_process()?;
        self.shared.lock().claim_end(&self.shared, fifo, direction)
    }

    /// Opens an SMEM channel, waiting until the deadline for the participant that creates its memory.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if our domain is not a member; [`Error::TimedOut`], or what stands between us and its creator;
    /// [`Error::System`] if the kernel gives no memory for it; [`Error::Left`], [`Error::Forked`].
    pub fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<Segment, Error> {
        self.check_process()?;
        segment::open(&self.shared, smem, deadline)
    }

    /// All words of our section, for tests of what a peer that writes anything can do.
    #[doc(hidden)]
    pub fn section_words(&self) -> OwnWords<'_> {
        self.shared.section.words()
    }

    /// Leaves the system: peers see at once that we are gone. Ends and segments that are still held go dead.
    pub fn leave(self) {
        drop(self);
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.shared.process.is_this() { Ok(()) } else { Err(Error::Forked) }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let Some(attendant) = self.attendant.take() else { return };
        if !self.shared.process.is_this() {
            // In a forked child there is no attendant, and the section is not ours to write.
            std::mem::forget(attendant);
            return;
        }
        self.shelves.close();
        self.shared.section.words().set(header::STATE, state::TERMINATED);
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake_attendant();
        let _ = attendant.join();
        let wakers = self.shared.lock().leave(&self.shared);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The number of a domain that `port` carries.
pub(crate) fn find_domain(plan: &Plan<'_>, domain: &Whose, port: PortKind) -> Result<u16, Error> {
    let found = match domain {
        Whose::Named(name) => plan.domain(name),
        Whose::Numbered(number) => Some(*number).filter(|number| usize::from(*number) < plan.domains.len()),
    };
    let Some(found) = found else { return Err(no_such_domain(plan, domain)) };
    if plan.domains[usize::from(found)].port == port {
        Ok(found)
    } else {
        Err(Error::OtherPort(plan.domains[usize::from(found)].name.to_owned(), word(port)))
    }
}

/// How a description says that a port carries a domain.
fn word(port: PortKind) -> &'static str {
    match port {
        PortKind::LinuxUio => "uio",
        PortKind::Metal => "metal",
        _ => "linux",
    }
}

fn no_such_domain(plan: &Plan<'_>, domain: &Whose) -> Error {
    let mut known = String::new();
    for domain in plan.domains {
        let separator = if known.is_empty() { "" } else { ", " };
        let _ = write!(known, "{separator}{}", domain.name);
    }
    let asked = match domain {
        Whose::Named(name) => format!("{name:?}"),
        Whose::Numbered(number) => format!("number {number}"),
    };
    Error::NoSuchDomain(asked, known)
}

pub(crate) fn check_user(plan: &Plan<'_>, domain: u16) -> Result<(), Error> {
    let (own, domain) = (Credentials::own(), &plan.domains[usize::from(domain)]);
    if own.may_attach(domain) {
        Ok(())
    } else {
        Err(Error::UserNotAllowed { uid: own.uid, domain: domain.name.to_owned() })
    }
}

fn prepare(section: &OwnSection, memory: Memory) -> Result<(), Error> {
    if memory == Memory::Lock {
        section.mapping().lock().map_err(|errno| realtime::locking_refused("locking the section", errno))?;
    }
    if memory != Memory::Lazy {
        section.mapping().prefault(Access::Write).tried("pre-faulting the section")?;
    }
    Ok(())
}

fn new_shared(
    plan: &'static Plan<'static>,
    names: Names,
    me: Party,
    section: OwnSection,
    slot: Kept,
) -> Result<Shared, Error> {
    answer_calls(&slot)?;
    let now = now_ns();
    let may_be_there = (0..plan.participants()).filter(|number| *number != me.participant);
    let linked = |number: &u16| plan.domain_of(*number).is_some_and(|domain| plan.linked(me.domain, domain));
    let registry = Registry {
        listener: Some(slot),
        dials: may_be_there.filter(linked).map(|number| (number, Dial::at(now))).collect(),
        segments: SmemMember::all(plan, me.domain),
        ..Registry::default()
    };
    let shared = Shared {
        plan,
        names,
        me,
        process: Process::this(),
        section: Arc::new(section),
        epoll: Descriptor::epoll().tried("creating an event descriptor")?,
        wake: Descriptor::event().tried("creating an event descriptor")?,
        late: LateTimer::new()?,
        stopping: AtomicBool::new(false),
        serial: AtomicU32::new(1),
        changed: Condvar::new(),
        registry: Mutex::new(registry),
    };
    for (fd, token) in
        [(std::os::fd::AsFd::as_fd(&shared.wake), Token::Wake), (std::os::fd::AsFd::as_fd(&shared.late), Token::Late)]
    {
        epoll::add(&shared.epoll, fd, token.data(), epoll::EventFlags::IN)
            .tried("watching a descriptor (epoll_ctl)")?;
    }
    shared.lock().watch_listener(&shared);
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::section::tests::PLAN;

    #[test]
    fn a_domain_is_found_by_name_and_number_or_those_that_are_known_are_named() {
        let find = |domain: Whose, port| find_domain(&PLAN, &domain, port).map_err(|error| error.to_string());
        assert_eq!(find("panel".into(), PortKind::LinuxProcess), Ok(1));
        assert_eq!(find(0.into(), PortKind::LinuxProcess), Ok(0));
        for (domain, asked) in [(Whose::from("none"), "\"none\""), (3.into(), "number 3")] {
            let refused = find(domain, PortKind::LinuxProcess).unwrap_err();
            assert!(refused.contains(asked) && refused.contains("control, panel, motor"), "{refused}");
        }
    }

    #[test]
    fn a_domain_of_another_port_is_not_ours() {
        for (domain, port, word) in [
            ("motor", PortKind::LinuxProcess, "linux"),
            ("panel", PortKind::LinuxUio, "uio"),
            ("panel", PortKind::Metal, "metal"),
        ] {
            let refused = find_domain(&PLAN, &domain.into(), port).unwrap_err();
            assert!(matches!(&refused, Error::OtherPort(name, of) if name == domain && *of == word), "{refused}");
        }
    }
}
