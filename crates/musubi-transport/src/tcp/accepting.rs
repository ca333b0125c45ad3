//! Accepting: how many connections come in, who is put out for whom, and what is done for them.
//!
//! What you may rely on: accepting neither spins nor stops for good. When descriptors are short, a stranger's oldest half-open
//! connection goes for the one that comes; where there is none, or the system refuses for another reason, the listener
//! is left alone for [`REST_NS`], which is counted and said in the log.
//!
//! How it works: what is no TLS, where TLS is needed, is answered and put out without a handshake and from tokens of its
//! own ([`super::admission`]).

use std::net::SocketAddr;

use musubi_linux::clock::now_ns;
use rustix::event::epoll;

use super::admission::{Handshake, Rate};
use super::pending::Pending;
use super::sockets;
use super::stream::Stream;
use super::tls::Fault;
use super::worker::{LISTENER, Worker};
use crate::session::Reason;

/// Connections that are accepted without delay after a quiet time: all that the kernel's queue holds.
pub const ACCEPTS_BURST: u64 = 4096;
/// After a burst, one connection is accepted each time that this has passed, nanoseconds. A whole queue of them goes by in a
/// quarter of a second, and costs about a tenth of a processor's time.
pub const ACCEPT_NS: u64 = 60_000;
const ACCEPTS: Rate = Rate { burst: ACCEPTS_BURST, each_ns: ACCEPT_NS };
/// How long the listener is left alone at least when too many come, nanoseconds: then some of them are accepted at a time.
const THROTTLE_NS: u64 = 1_000_000;
/// How long it is left alone when the system refuses to accept, nanoseconds.
pub(super) const REST_NS: u64 = 50_000_000;
/// Connections accepted at one look, so that those that were let in have their turn.
const ACCEPTS_MAX: usize = 256;

impl Worker {
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let now_ns = now_ns();
            if !self.accepts.take(ACCEPTS, now_ns) {
                return self.leave_listener_alone(self.accepts.due_ns(ACCEPTS, now_ns).max(now_ns + THROTTLE_NS));
            }
            let Some(listener) = &self.listener else { return };
            match sockets::accept(listener) {
                Ok(Some((socket, remote))) => self.receive(Stream::plain(socket), remote),
                Ok(None) => return,
                Err(error) if sockets::is_of_one_connection(&error) => {
                    self.event_log.note(format!("accepting: {error}"));
                }
                // The connection that comes gets the descriptor.
                Err(error) if sockets::is_shortage(&error) && self.put_a_stranger_out() => {}
                Err(error) => {
                    self.event_log.note(format!("accept4: {error}; tried again {} ms later", REST_NS / 1_000_000));
                    return self.leave_listener_alone(now_ns + REST_NS);
                }
            }
        }
    }

    fn leave_listener_alone(&mut self, until_ns: u64) {
        self.event_log.count(|counters| counters.throttled += 1);
        self.closed_until_ns = Some(until_ns);
        self.watch_listener(epoll::EventFlags::empty());
    }

    pub(super) fn look_at_listener_again(&mut self) {
        self.closed_until_ns = None;
        self.watch_listener(epoll::EventFlags::IN);
    }

    fn watch_listener(&self, flags: epoll::EventFlags) {
        if let Some(listener) = &self.listener {
            // Cannot fail: the listener is registered.
            let _ = epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), flags);
        }
    }

    fn receive(&mut self, stream: Stream, remote: SocketAddr) {
        self.event_log.count(|counters| counters.accepted += 1);
        if let Some(token) = self.admission.too_many(remote.ip()) {
            self.put_out(token);
        }
        let token = self.new_token();
        let ticket = self.admission.admit(remote.ip(), token);
        let begun = Pending::receive(stream, remote, &self.us, now_ns());
        // Its ticket is given back wherever it ends.
        let entered = match begun {
            Ok(mut pending) => {
                pending.ticket = Some(ticket);
                self.enter(token, pending)
            }
            Err(error) => {
                self.admission.done(ticket);
                Err(error)
            }
        };
        if let Err(error) = entered {
            self.event_log.note(format!("{}: {error}", remote.ip()));
        }
    }

    /// Puts out a connection that another one takes the place of.
    fn put_out(&mut self, token: u64) {
        let Some(pending) = self.take(token) else { return };
        if !pending.ignored {
            self.event_log.refused(Reason::Busy, pending.remote.ip());
        }
    }

    /// So that its descriptor can be used for somebody else; false if no stranger has one.
    fn put_a_stranger_out(&mut self) -> bool {
        let token = self.admission.least_needed();
        token.inspect(|&token| self.put_out(token)).is_some()
    }

    /// Whether somebody who is refused is told so; else the connection is left alone from now on, so that who has come does
    /// not come again at once.
    pub(super) fn may_answer(&mut self, token: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&token) else { return false };
        let Some(ticket) = &pending.ticket else { return true };
        if self.admission.may_answer(ticket, now_ns()) {
            return true;
        }
        self.ignore(token);
        false
    }

    fn ignore(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        pending.ignored = true;
        // Cannot fail: it is registered.
        let _ = epoll::delete(&self.epoll, &pending.stream);
        self.event_log.count(|counters| counters.throttled += 1);
    }

    /// A first record of TLS has come.
    pub(super) fn knocked(&mut self, token: u64) {
        let Some(ticket) = self.pending.get(&token).and_then(|pending| pending.ticket.as_ref()) else { return };
        match self.admission.may_shake_hands(ticket, now_ns()) {
            Handshake::Refused => return self.ignore(token),
            Handshake::BeginsInsteadOf(other) => self.put_out(other),
            Handshake::Begins => {}
        }
        let Some(pending) = self.pending.get_mut(&token) else { return };
        match pending.shake_hands(&self.us) {
            Ok(()) => self.step(token),
            Err(error) => self.failed(token, &error),
        }
    }

    /// Something else has come where TLS is needed.
    pub(super) fn garbled(&mut self, token: u64) {
        let Some(pending) = self.pending.get(&token) else { return };
        self.event_log.count(|counters| counters.count_tls(Fault::Other));
        self.event_log.note(format!("refused {}: it does not speak TLS", pending.remote.ip()));
        if self.may_answer(token)
            && let Some(mut pending) = self.take(token)
        {
            pending.stream.refuse_tls();
        }
    }
}
