//! Bytes of links that have a connection: who is read when, what is written at once and what is held back.
//!
//! What you may rely on: no call waits. A peer that sends faster than the engine takes in fills the kernel's buffers, not our
//! memory. What is held back goes out with the next release, or once it is enough for a write.
//!
//! How it works: a frame that finds nothing before it is written within the call that sends it. Links that were used within
//! [`HOT_NS`] are looked at by spinning callers.

use musubi_linux::clock;

use super::TcpCarrier;
use super::carrier::HOT_MAX;
use super::link::End;
use crate::NodeId;
use crate::limits::{BURST_BYTES, READY_BYTES};
use crate::links::Sent;
use crate::session::{Session, State};

/// How long after its last frame a link is one of those, nanoseconds.
const HOT_NS: u64 = 1_000_000;

impl TcpCarrier {
    /// After anything that a session was told: what it has to say is looked at, and when it is due.
    #[inline]
    pub(super) fn settle(&mut self, place: usize) {
        let link = &mut self.links[place];
        if !link.noisy {
            link.noisy = true;
            self.noisy.push_back(place);
        }
        self.due_ns = self.due_ns.min(link.deadline_ns());
    }

    /// A link in use: spinning callers look at it.
    #[inline]
    fn warm(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        if link.hot_until_ns == 0 {
            if self.hot.len() == HOT_MAX {
                let coldest = (0..HOT_MAX).min_by_key(|&at| self.links[self.hot[at]].hot_until_ns).unwrap_or(0);
                let cooled = self.hot.swap_remove(coldest);
                self.links[cooled].hot_until_ns = 0;
            }
            self.hot.push(place);
        }
        self.links[place].hot_until_ns = now_ns + HOT_NS;
    }

    /// Reads, unless the engine has not taken in yet what was read before: so a peer that sends faster than that fills the
    /// kernel's buffers and not our memory. The descriptor stays ready.
    pub(super) fn read_in_turn(&mut self, now_ns: u64, place: usize) {
        if !self.links[place].session.has_report() {
            self.read(now_ns, place);
        }
    }

    pub(super) fn read(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        let came = link.read(now_ns, &mut self.buffer);
        match came {
            Ok(false) if !link.is_full() => return,
            Ok(true) => {
                self.read_last = place;
                self.warm(now_ns, place);
            }
            _ => {}
        }
        // A welcome that came lets out what has waited for it; an acknowledgement may have made room.
        let result = came.and_then(|_| self.write_ready(now_ns, place));
        self.ended(now_ns, place, result);
        self.settle(place);
    }

    /// Goes on writing, unless there is neither room nor anything to write.
    pub(super) fn write_ready(&mut self, now_ns: u64, place: usize) -> Result<(), End> {
        let link = &mut self.links[place];
        if link.is_full() || link.session.has_output() || link.session.state() == State::Ended {
            return link.write(now_ns);
        }
        Ok(())
    }

    /// Lets the session with `peer` take a frame of so many bytes, and writes it if it finds nothing before it and is not
    /// to be held back.
    #[inline]
    pub(super) fn send_by(
        &mut self,
        now_ns: u64,
        peer: NodeId,
        bytes: usize,
        enqueue: impl FnOnce(&mut Session) -> Sent,
    ) -> Sent {
        let Some(place) = self.find(peer) else { return Sent::NoLink };
        let sent = enqueue(&mut self.links[place].session);
        if let Sent::Numbered(_) = sent {
            if self.holding {
                self.hold_back(now_ns, place, bytes)
            } else {
                self.write_sent(now_ns, place, READY_BYTES)
            }
        }
        sent
    }

    /// Writes what a session was given to send.
    #[inline]
    fn write_sent(&mut self, now_ns: u64, place: usize, ready_bytes: usize) {
        let link = &mut self.links[place];
        let written = if link.is_full() { Ok(()) } else { link.write_by(now_ns, ready_bytes) };
        // Read only here, as the peer has the frame now: nobody waits for it.
        let now_ns = clock::now_ns();
        self.ended(now_ns, place, written);
        self.warm(now_ns, place);
        self.due_ns = self.due_ns.min(self.links[place].deadline_ns());
    }

    /// Leaves a frame of so many bytes unwritten, unless that is enough for a write.
    fn hold_back(&mut self, now_ns: u64, place: usize, bytes: usize) {
        if !self.held.contains(&place) {
            self.held.push(place);
        }
        self.held_bytes += bytes;
        if self.held_bytes >= BURST_BYTES {
            self.write_held(now_ns);
        }
    }

    pub(super) fn write_held(&mut self, now_ns: u64) {
        self.held_bytes = 0;
        while let Some(place) = self.held.pop() {
            self.write_sent(now_ns, place, BURST_BYTES);
        }
    }

    /// Writes what a session has to say.
    #[inline]
    pub(super) fn write(&mut self, now_ns: u64, place: usize) {
        let result = self.links[place].write(now_ns);
        self.ended(now_ns, place, result);
        self.due_ns = self.due_ns.min(self.links[place].deadline_ns());
    }
}
