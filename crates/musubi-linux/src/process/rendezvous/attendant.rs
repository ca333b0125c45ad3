//! The background thread: answers callers, notices deaths, beats the heart, keeps late times.
//!
//! What you may rely on: nothing that a peer does keeps it from its other work for longer than one bounded turn; it is
//! never needed for a message between two linked participants.
//!
//! How it works: epoll over the listening socket, the connections, the peers' pidfds, the late timer, the wakers'
//! descriptors and a descriptor that other threads of the process wake it with.

use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;

use musubi_core::layout::header;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::direction::Direction;
use crate::error::{Error, Tried};
use crate::os::clock::now_ns;
use crate::os::epoll::NO_EVENT;
use crate::os::{self, signals};
use crate::process::rendezvous::connection::Stage;
use crate::process::rendezvous::handshake::ACCEPT_PAUSE_NS;
use crate::process::rendezvous::registry::{HALF_OPEN_NS_MAX, Registry, Shared, Token};

/// Most events taken at once.
const EVENTS_MAX: usize = 64;
/// Shortest heartbeat period, whatever the plan says, in nanoseconds.
const HEARTBEAT_NS_MIN: u64 = 1_000_000;
/// Longest sleep, in nanoseconds.
const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// Starts the attendant of a participant.
pub(crate) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new()
        .name("musubi".to_owned())
        .spawn(move || Attendant { shared, beat_due_ns: 0 }.run())
        .tried("starting the attendant thread")
}

struct Attendant {
    shared: Arc<Shared>,
    beat_due_ns: u64,
}

impl Attendant {
    fn run(mut self) {
        signals::leave_to_program();
        let mut events = [NO_EVENT; EVENTS_MAX];
        while !self.shared.stopping() {
            let sleep_ns = self.keep_time();
            let count = os::epoll::wait(&self.shared.epoll, &mut events, Some(sleep_ns));
            for event in &events[..count] {
                self.handle(event);
            }
        }
    }

    /// Does what is due and says how long there is nothing more, in nanoseconds.
    fn keep_time(&mut self) -> u64 {
        let now = now_ns();
        self.beat(now);
        let mut registry = self.shared.lock();
        registry.drop_silent(&self.shared, now);
        registry.abandoned.drop_read();
        registry.send_again(&self.shared, now);
        registry.call_due(&self.shared, now);
        registry.accept_again(&self.shared, now);
        registry.create_again(&self.shared, now);
        let due_ns = registry.next_due_ns().min(self.beat_due_ns);
        due_ns.saturating_sub(now_ns()).min(SLEEP_NS_MAX)
    }

    fn beat(&mut self, now: u64) {
        if now >= self.beat_due_ns {
            self.shared.section.words().set(header::HEARTBEAT_MS, (now / 1_000_000) as u32);
            self.beat_due_ns = now + self.shared.plan.liveness.heartbeat_ns.max(HEARTBEAT_NS_MIN);
        }
    }

    fn handle(&self, event: &epoll::Event) {
        let data = event.data;
        let flags = event.flags;
        let shared = &self.shared;
        match Token::of(data) {
            Some(Token::Listener) => shared.lock().accept(shared),
            Some(Token::Wake) => {
                let _ = rustix::io::read(&shared.wake, &mut [0; 8]);
            }
            Some(Token::Late) => self.raise_late(),
            Some(Token::Connection(id)) => {
                let mut registry = shared.lock();
                if flags.contains(epoll::EventFlags::OUT) {
                    registry.writable(shared, id);
                }
                registry.readable(shared, id);
            }
            Some(Token::Process(id)) => shared.lock().process_ended(shared, id),
            Some(Token::Waker(serial)) => {
                let waker = shared.lock().take_waker(serial);
                // Outside the lock: a waker runs foreign code.
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            None => (),
        }
    }

    fn raise_late(&self) {
        // Before the ends are listed: one that is claimed and armed from here on sets the timer anew.
        self.shared.late.fired();
        let ends: Vec<_> = self.shared.lock().holdings.iter().map(|holding| Arc::clone(&holding.core)).collect();
        let sending = ends.iter().filter(|core| core.direction == Direction::Send).map(|core| (&core.late, core));
        for core in self.shared.late.expired(now_ns(), sending) {
            core.raise_late();
        }
    }
}

impl Registry {
    /// When the next thing is due, in nanoseconds.
    fn next_due_ns(&self) -> u64 {
        let dials = self.dials.values().filter(|dial| dial.connection.is_none()).map(|dial| dial.due_ns);
        let silent = self.connections.values().filter(|connection| connection.stage == Stage::Accepted);
        let deadlines = silent.map(|connection| connection.since_ns + HALF_OPEN_NS_MAX);
        let retries = self.connections.values().filter_map(|connection| connection.retry).map(|retry| retry.due_ns);
        let again = self.accept_again_ns.into_iter().chain(self.create_again_ns);
        dials.chain(deadlines).chain(retries).chain(again).min().unwrap_or(u64::MAX)
    }

    fn accept_again(&mut self, shared: &Shared, now: u64) {
        if self.accept_again_ns.is_some_and(|due| due <= now) {
            self.accept_again_ns = None;
            self.watch_listener(shared);
        }
    }

    /// Hears of callers; if the kernel has no room for that now, later.
    pub(crate) fn watch_listener(&mut self, shared: &Shared) {
        let Some(listener) = &self.listener else { return };
        let watched = epoll::add(&shared.epoll, listener, Token::Listener.data(), epoll::EventFlags::IN);
        if !matches!(watched, Ok(()) | Err(Errno::EXIST)) {
            self.accept_again_ns = Some(now_ns() + ACCEPT_PAUSE_NS);
        }
    }

    fn take_waker(&self, serial: u32) -> Option<Waker> {
        let holding = self.holdings.iter().find(|holding| holding.core.serial == serial)?;
        holding.core.gate.get()?.set_waker(None)
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::os::credentials::Credentials;
    use crate::os::forks::Kept;
    use crate::process::rendezvous::connection::Connection;
    use crate::process::rendezvous::dial::Dial;

    fn connection(stage: Stage, since_ns: u64) -> Connection {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, _) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        Connection::new(Kept::new(one.into()), stage, Credentials::own(), since_ns)
    }

    #[test]
    fn the_next_thing_due_is_the_earliest_of_all_that_wait() {
        let mut registry = Registry::default();
        assert_eq!(registry.next_due_ns(), u64::MAX);
        registry.dials.insert(1, Dial { connection: Some(9), ..Dial::at(3) });
        assert_eq!(registry.next_due_ns(), u64::MAX, "that one waits for its answer");
        registry.connections.insert(1, connection(Stage::Linked(1, 1), 5));
        registry.connections.insert(2, connection(Stage::Observer, 6));
        assert_eq!(registry.next_due_ns(), u64::MAX, "who has said who he is has time");
        registry.connections.insert(3, connection(Stage::Accepted, 700));
        assert_eq!(registry.next_due_ns(), 700 + HALF_OPEN_NS_MAX);
        registry.create_again_ns = Some(600);
        assert_eq!(registry.next_due_ns(), 600);
        registry.accept_again_ns = Some(500);
        assert_eq!(registry.next_due_ns(), 500);
        registry.dials.insert(2, Dial::at(400));
        assert_eq!(registry.next_due_ns(), 400);
        registry.accept_again_ns = None;
        registry.dials.clear();
        assert_eq!(registry.next_due_ns(), 600);
    }
}
