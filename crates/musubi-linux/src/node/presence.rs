//! A node's place on this machine: its name, those who call it, and those it calls.
//!
//! What you may rely on: connections that are no links yet are bounded in number and time; who is one too many, or
//! silent, is cut off and counted. No call waits, except that [`Presence::open`] tries for half a second at most to get a
//! name whose holder is dying.
//!
//! How it works: every descriptor is watched in the caller's epoll instance under a token that says what it is
//! ([`Source`]); the caller hands in what is ready and the time, and takes what came of it ([`Presence::next_event`]).

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::geteuid;

use super::hello::{Garbage, Hello, Kind, Refused};
use super::link::{Bell, Link, Parts};
use super::listing;
use super::memory::{OwnHalf, PeerHalf, is_bell};
use super::packet::{self, Packet};
use super::terms::{Counts, Dialed, Event, Options, Source};
use crate::error::{Error, Tried};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::os::needs;
use crate::os::packet_socket::{Answer, answer_calls, call, claim};

/// Most connections that have not become links.
const HALF_OPEN_MAX: usize = 64;
/// Longest time until a connection is a link, in nanoseconds.
const HALF_OPEN_NS_MAX: u64 = 1_000_000_000;
/// Most connections accepted before others get their turn.
const TURN_MAX: usize = 32;
/// Pause before accepting again when that failed, in nanoseconds.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
/// How often, and after which pause, a name is asked for whose holder does not answer: it is dying or, for a moment, a copy
/// in a process that is just being started.
const CLAIMS_MAX: u32 = 250;
const CLAIM_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
/// How often a holder may answer, which it does as long as it is not quite dead.
const ANSWERS_MAX: u32 = 5;

/// A node's place on this machine.
#[derive(Debug)]
pub struct Presence {
    options: Options,
    listener: Kept,
    halves: BTreeMap<u32, Half>,
    events: VecDeque<Event>,
    counts: Counts,
    next_id: u32,
    accept_again_ns: u64,
}

/// A connection that is not a link yet.
#[derive(Debug)]
struct Half {
    socket: Kept,
    since_ns: u64,
    /// `None`: it came to us.
    dialed: Option<Box<Offer>>,
}

/// What we sent to whom.
#[derive(Debug)]
struct Offer {
    peer: u16,
    own: OwnHalf,
    bell: Bell,
}

impl Presence {
    /// Takes the number and begins to take calls.
    ///
    /// # Errors
    /// [`Error::NodeOccupied`], [`Error::NameForeign`], or [`Error::System`].
    pub fn open(options: Options) -> Result<Presence, Error> {
        needs::check()?;
        let name = listing::name(&options.system, options.node)?;
        let listener = hold(&name)?;
        answer_calls(&listener)?;
        let token = epoll::EventData::new_u64(options.token | Source::Listener.token());
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&options.epoll, &listener, token, flags).tried("watching a node's socket")?;
        Ok(Presence {
            options,
            listener,
            halves: BTreeMap::new(),
            events: VecDeque::new(),
            counts: Counts::default(),
            next_id: 0,
            accept_again_ns: u64::MAX,
        })
    }

    /// Who was not let in.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What has come of calls since.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether [`Presence::next_event`] has one.
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Calls a node. One that is being called already is not called twice.
    pub fn dial(&mut self, peer: u16, now_ns: u64) -> Dialed {
        if self.dialing(peer).is_some() {
            return Dialed::Begun;
        }
        if self.halves.len() >= HALF_OPEN_MAX {
            return Dialed::Busy;
        }
        let answer = listing::name(&self.options.system, peer).and_then(|name| call(&name));
        let (socket, holder) = match answer {
            Ok(Answer::Connected(socket, holder)) => (socket, holder),
            Ok(Answer::Absent) => return Dialed::Absent,
            Ok(Answer::Busy) | Err(_) => return Dialed::Busy,
        };
        if holder.uid != geteuid().as_raw() {
            // A stranger on a name of ours gets nothing.
            self.counts.squatters += 1;
            return Dialed::Absent;
        }
        self.offer(peer, socket, now_ns).unwrap_or(Dialed::Busy)
    }

    /// Sends our half to whom we called.
    fn offer(&mut self, peer: u16, socket: Kept, now_ns: u64) -> Option<Dialed> {
        let call = self.me(Kind::Call, peer);
        let id = self.new_id();
        let own = OwnHalf::create(&call, peer).ok()?;
        let bell = self.new_bell(id)?;
        self.watch(socket.as_fd(), Source::Socket(id))?;
        if !packet::send(socket.as_fd(), &call, &[own.fd.as_fd(), bell.as_fd()]) {
            return Some(Dialed::Busy);
        }
        let dialed = Some(Box::new(Offer { peer, own, bell }));
        self.halves.insert(id, Half { socket, since_ns: now_ns, dialed });
        Some(Dialed::Begun)
    }

    /// A descriptor of ours, but none of a link, is ready.
    pub fn ready(&mut self, source: Source, now_ns: u64) {
        match source {
            Source::Listener => self.accept(now_ns),
            Source::Socket(id) => self.readable(id),
            Source::Bell(_) => (),
        }
    }

    /// When [`Presence::tick`] wants to be called; `u64::MAX` if never.
    pub fn deadline_ns(&self) -> u64 {
        let oldest = self.halves.values().map(|half| half.since_ns.saturating_add(HALF_OPEN_NS_MAX)).min();
        oldest.unwrap_or(u64::MAX).min(self.accept_again_ns)
    }

    /// Does what is due.
    pub fn tick(&mut self, now_ns: u64) {
        if self.accept_again_ns <= now_ns {
            self.accept(now_ns);
        }
        let overdue = |half: &Half| half.since_ns.saturating_add(HALF_OPEN_NS_MAX) <= now_ns;
        let silent: Vec<u32> = self.halves.iter().filter(|(_, half)| overdue(half)).map(|(id, _)| *id).collect();
        for id in silent {
            self.counts.silent += 1;
            self.fail(id, None);
        }
    }

    // ---- those who call us ----

    fn accept(&mut self, now_ns: u64) {
        self.accept_again_ns = u64::MAX;
        for _ in 0..TURN_MAX {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.accepted(Kept::new(Descriptor::of_others(socket)), now_ns),
                Err(Errno::INTR | Errno::CONNABORTED) => (),
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.accept_again_ns = now_ns + ACCEPT_PAUSE_NS;
                    return;
                }
            }
        }
        // Nobody tells us again of those who still wait.
        self.accept_again_ns = now_ns;
    }

    fn accepted(&mut self, socket: Kept, now_ns: u64) {
        let Some(caller) = Credentials::of_peer(socket.as_fd()) else { return };
        if caller.uid != geteuid().as_raw() {
            return self.refuse(&socket, u16::MAX, Refused::User);
        }
        self.make_room();
        let id = self.new_id();
        if self.watch(socket.as_fd(), Source::Socket(id)).is_some() {
            self.halves.insert(id, Half { socket, since_ns: now_ns, dialed: None });
            // Who means it has spoken already.
            self.readable(id);
        }
    }

    /// Keeps the number of those who called us and said nothing within its bound.
    fn make_room(&mut self) {
        let oldest = self.halves.iter().filter(|(_, half)| half.dialed.is_none()).map(|(id, _)| *id).next();
        if self.halves.len() >= HALF_OPEN_MAX
            && let Some(id) = oldest
        {
            self.counts.silent += 1;
            self.halves.remove(&id);
        }
    }

    fn refuse(&mut self, socket: &Kept, to: u16, reason: Refused) {
        self.counts.refused += 1;
        self.counts.last = Some(reason);
        packet::send(socket.as_fd(), &self.me(Kind::Refuse(reason), to), &[]);
        // A socket closed with packets unread would reset the connection, and the refusal would not be read.
        let _ = packet::receive(socket.as_fd());
    }

    // ---- what they say ----

    fn readable(&mut self, id: u32) {
        let Some(half) = self.halves.get(&id) else { return };
        let is_dialed = half.dialed.is_some();
        match packet::receive(half.socket.as_fd()) {
            Packet::Nothing => (),
            Packet::Closed => self.fail(id, None),
            Packet::Hello(hello, fds) => match (hello.kind, is_dialed) {
                (Kind::Call, false) => self.called(id, &hello, fds),
                (Kind::Welcome, true) => self.welcomed(id, &hello, fds),
                (Kind::Refuse(reason), true) => self.fail(id, Some(reason)),
                _ => self.cut_off(id),
            },
            Packet::Missed => self.not_understood(id, Refused::Busy),
            Packet::Garbage(Garbage::Version) => self.not_understood(id, Refused::Version),
            Packet::Garbage(Garbage::Foreign) => self.cut_off(id),
        }
    }

    /// Ends a connection on which something came that we could not take.
    fn not_understood(&mut self, id: u32, reason: Refused) {
        match self.halves.remove(&id) {
            Some(Half { dialed: Some(offer), .. }) => {
                self.events.push_back(Event::Failed { peer: offer.peer, refused: Some(reason) });
            }
            Some(half) => self.refuse(&half.socket, u16::MAX, reason),
            None => {}
        }
    }

    fn called(&mut self, id: u32, they: &Hello, fds: Vec<Descriptor>) {
        let Some(half) = self.halves.remove(&id) else { return };
        let answer = self.examine(&half, they).and_then(|()| self.halves_of(they, fds));
        let (theirs, their_bell) = match answer {
            Ok(halves) => halves,
            Err(reason) => return self.refuse(&half.socket, they.from, reason),
        };
        if let Some(own_call) = self.dialing(they.from) {
            self.halves.remove(&own_call);
        }
        let me = self.me(Kind::Welcome, they.from);
        let own = OwnHalf::create(&me, they.from).ok();
        let (Some(own), Some(bell)) = (own, self.new_bell(id)) else {
            self.refuse(&half.socket, they.from, Refused::Busy);
            return self.failed(they.from);
        };
        // Whoever has hung up meanwhile has linked with us the other way, or died.
        if packet::send(half.socket.as_fd(), &me, &[own.fd.as_fd(), bell.as_fd()]) {
            self.linked(Parts { id, socket: half.socket, bell, their_bell, own, theirs }, they);
        } else {
            self.failed(they.from);
        }
    }

    /// Whether who calls may be let in.
    fn examine(&self, half: &Half, they: &Hello) -> Result<(), Refused> {
        let Options { hash, node, nodes, shape, frames, .. } = self.options;
        if they.shape != shape || they.frames != frames {
            return Err(Refused::Version);
        }
        if they.hash != hash {
            return Err(Refused::Description);
        }
        if they.to != node || they.from == node || they.from >= nodes {
            return Err(Refused::Node);
        }
        if self.dialing(they.from).is_some() && node < they.from {
            return Err(Refused::Crossed);
        }
        let caller = Credentials::of_peer(half.socket.as_fd()).ok_or(Refused::Busy)?;
        match listing::name(&self.options.system, they.from).and_then(|name| call(&name)) {
            Ok(Answer::Connected(_, holder)) if holder.same_process(&caller) => Ok(()),
            Ok(Answer::Connected(..) | Answer::Absent) => Err(Refused::Node),
            Ok(Answer::Busy) | Err(_) => Err(Refused::Busy),
        }
    }

    /// The section and the bell that came with a message.
    fn halves_of(&self, they: &Hello, fds: Vec<Descriptor>) -> Result<(PeerHalf, Descriptor), Refused> {
        let [section, bell] = <[Descriptor; 2]>::try_from(fds).map_err(|_| Refused::Memory)?;
        let theirs = PeerHalf::adopt(&section, they, self.options.node)?;
        if is_bell(&bell) { Ok((theirs, bell)) } else { Err(Refused::Memory) }
    }

    fn welcomed(&mut self, id: u32, they: &Hello, fds: Vec<Descriptor>) {
        let Some(Half { socket, dialed: Some(offer), .. }) = self.halves.remove(&id) else { return };
        let Options { hash, node, shape, frames, .. } = self.options;
        let fits = they.hash == hash && they.shape == shape && they.frames == frames;
        let halves = if fits && they.from == offer.peer && they.to == node {
            self.halves_of(they, fds)
        } else {
            Err(Refused::Node)
        };
        match halves {
            Ok((theirs, their_bell)) => {
                let Offer { own, bell, .. } = *offer;
                self.linked(Parts { id, socket, bell, their_bell, own, theirs }, they);
            }
            Err(reason) => {
                self.counts.refused += 1;
                self.counts.last = Some(reason);
                self.events.push_back(Event::Failed { peer: offer.peer, refused: Some(reason) });
            }
        }
    }

    fn linked(&mut self, parts: Parts, they: &Hello) {
        match Link::new(parts, they) {
            Some(link) => self.events.push_back(Event::Linked(Box::new(link))),
            None => self.failed(they.from),
        }
    }

    /// Our own call of this node, if there was one, had made way for a link that has not come about: its outcome is told.
    fn failed(&mut self, peer: u16) {
        self.events.push_back(Event::Failed { peer, refused: None });
    }

    // ---- those who go ----

    fn cut_off(&mut self, id: u32) {
        self.counts.garbage += 1;
        self.fail(id, None);
    }

    /// Forgets a connection; if we had called, that is told.
    fn fail(&mut self, id: u32, refused: Option<Refused>) {
        let Some(half) = self.halves.remove(&id) else { return };
        if let Some(offer) = half.dialed {
            self.events.push_back(Event::Failed { peer: offer.peer, refused });
        }
    }

    // ---- small things ----

    /// Our call to this node, if there is one.
    fn dialing(&self, peer: u16) -> Option<u32> {
        let is_it = |half: &Half| half.dialed.as_ref().is_some_and(|offer| offer.peer == peer);
        self.halves.iter().find(|(_, half)| is_it(half)).map(|(id, _)| *id)
    }

    fn me(&self, kind: Kind, to: u16) -> Hello {
        let Options { hash, node, incarnation, shape, frames, .. } = self.options;
        Hello { kind, hash, from: node, to, incarnation, shape, frames }
    }

    fn new_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    fn new_bell(&self, id: u32) -> Option<Bell> {
        Bell::new(&self.options.epoll, self.options.token | Source::Bell(id).token())
    }

    fn watch(&self, fd: BorrowedFd<'_>, source: Source) -> Option<()> {
        let token = epoll::EventData::new_u64(self.options.token | source.token());
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.options.epoll, fd, token, flags).ok()
    }
}

/// Takes a name whose holder may be dying.
fn hold(name: &str) -> Result<Kept, Error> {
    let mut answers = 0;
    for _ in 0..CLAIMS_MAX {
        if let Some(listener) = claim(name)? {
            return Ok(listener);
        }
        match call(name)? {
            Answer::Connected(_, holder) if holder.uid != geteuid().as_raw() => {
                return Err(Error::NameForeign { name: name.to_owned(), uid: holder.uid });
            }
            // A node of this process does not die.
            Answer::Connected(_, holder) if holder.same_process(&Credentials::own()) => break,
            Answer::Connected(..) | Answer::Busy => answers += 1,
            Answer::Absent => (),
        }
        if answers == ANSWERS_MAX {
            break;
        }
        std::thread::sleep(CLAIM_PAUSE);
    }
    Err(Error::NodeOccupied { name: name.to_owned() })
}

#[cfg(test)]
mod tests;
