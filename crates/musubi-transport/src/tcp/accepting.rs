//! Accepting: how many connections come in, who is put out for whom, and what is done for them.

use std::net::SocketAddr;

use musubi_linux::clock::now_ns;
use rustix::event::epoll;

use super::admission::{Rate, Source};
use super::pending::Pending;
use super::sockets;
use super::stream::Stream;
use super::worker::{LISTENER, Worker};
use crate::session::Reason;

/// Connections that are accepted without delay after a quiet time: all that the kernel's queue holds.
pub const ACCEPTS_BURST: u64 = 4096;
/// After a burst, one connection is accepted each time that this has passed, nanoseconds. A whole queue of them goes by in a
/// quarter of a second, and costs about a tenth of a processor's time.
pub const ACCEPT_NS: u64 = 60_000;
pub(super) const ACCEPTS: Rate = Rate { burst: ACCEPTS_BURST, each_ns: ACCEPT_NS };
/// Connections accepted at one look, so that those that were let in have their turn.
const ACCEPTS_MAX: usize = 256;
impl Worker {
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let now_ns = now_ns();
            if !self.accepts.take(ACCEPTS, now_ns) {
                self.event_log.count(|counters| counters.throttled += 1);
                return self.look_at_listener(false);
            }
            let Some(listener) = &self.listener else { return };
            match sockets::accept(listener) {
                Ok(Some((socket, remote))) => self.receive(Stream::plain(socket), remote, now_ns),
                Ok(None) => return,
                // The connection has ended again, or there are no descriptors left: either costs a token too.
                Err(error) => self.event_log.note(format!("accepting: {error}")),
            }
        }
    }

    pub(super) fn look_at_listener(&mut self, open: bool) {
        self.closed = !open;
        let flags = if open { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        if let Some(listener) = &self.listener {
            // Cannot fail: the listener is registered.
            let _ = epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), flags);
        }
    }

    fn receive(&mut self, stream: Stream, remote: SocketAddr, now_ns: u64) {
        self.event_log.count(|counters| counters.accepted += 1);
        if let Some((source, known)) = self.admission.too_many(remote.ip()) {
            self.make_room(source, known);
        }
        let ticket = self.admission.admit(remote.ip(), now_ns);
        let begun = Pending::receive(stream, remote, &self.us, now_ns);
        // Its ticket is given back wherever it ends.
        let entered = match begun {
            Ok(mut pending) => {
                pending.ticket = Some(ticket);
                self.enter(pending)
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

    /// Puts the oldest connection of an address out, or of all that are as well known as it.
    fn make_room(&mut self, source: Source, known: bool) {
        let alike =
            |pending: &Pending| pending.ticket.as_ref().filter(|ticket| ticket.known == known).map(|of| of.source);
        let of = |(token, pending): (&u64, &Pending)| (alike(pending) == Some(source)).then_some(*token);
        let any = |(token, pending): (&u64, &Pending)| alike(pending).map(|_| *token);
        let oldest = self.pending.iter().find_map(of).or_else(|| self.pending.iter().find_map(any));
        let Some(pending) = oldest.and_then(|token| self.take(token)) else { return };
        if !pending.ignored {
            self.event_log.refused(Reason::Busy, pending.remote.ip());
        }
    }

    /// Whether something that costs is done for a connection that came in; else it is left alone from now on, so that who has
    /// come does not come again at once.
    pub(super) fn may_cost(&mut self, token: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&token) else { return false };
        let Some(ticket) = &pending.ticket else { return true };
        if self.admission.may_cost(ticket, now_ns()) {
            return true;
        }
        self.ignore(token);
        false
    }

    pub(super) fn ignore(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        pending.ignored = true;
        // Cannot fail: it is registered.
        let _ = epoll::delete(&self.epoll, &pending.stream);
        self.event_log.count(|counters| counters.throttled += 1);
    }

    pub(super) fn knocked(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        let allowed = pending.ticket.as_mut().is_none_or(|ticket| self.admission.may_shake_hands(ticket, now_ns()));
        if !allowed {
            return self.ignore(token);
        }
        match pending.shake_hands(&self.us) {
            Ok(()) => self.step(token),
            Err(error) => self.failed(token, &error),
        }
    }
}
