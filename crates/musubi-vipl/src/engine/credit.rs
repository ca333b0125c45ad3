//! Credit of a VI: how many receives the peer has posted for what this side sends, and what the peer knows of ours.
//!
//! What you may rely on: with [`super::ViAttributes::credit`] a send, or a write with immediate data, begins only when the peer has
//! told of a receive for it that nothing before took; so between two sides that keep to it no message finds the queue empty. A
//! count that comes twice, late, or from a peer that says anything changes nothing, or grants what ends only that peer's own connection.
//!
//! How it works: a count of all receives since the connection was made, which wraps on the wire. It is said with the connection,
//! and then when what was not told of is at least as much as the peer has left: at once where the peer may have run dry, and else once
//! for half of what is posted. Every message takes one receive at every level, so both sides count alike.
//!
//! What it does not do: bound memory or rates; that is for classes and their rules.

use super::frame::{Handed, ViFrame, Wire};
use super::segments::Segments;
use super::vi::{Vi, ViState};
use super::work_queue::WorkQueue;

/// Receives that a peer can have told of beyond those taken: more than any queue holds. What goes beyond is no news, but an old count.
const AHEAD_MAX: u32 = 1 << 20;

/// The accounts of one connection, both ways.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// Receives that the peer has told of, wrapping.
    granted: u32,
    /// Messages of ours that took one, wrapping.
    taken: u32,
    /// The descriptor that took the last one.
    holder: Option<u64>,
    /// Number of the first receive of this connection.
    first: u64,
    /// Receives of ours that the peer was told of.
    told: u64,
}

impl Credit {
    /// Of a connection that begins now.
    pub(super) fn of(receives: &WorkQueue) -> Credit {
        Credit { first: receives.next_number(), ..Credit::default() }
    }

    /// Begins both ways at a count, where none was said.
    #[cfg(test)]
    pub(super) fn count_from(&mut self, count: u32) {
        (self.granted, self.taken, self.told) = (count, count, u64::from(count));
        self.first = self.first.wrapping_sub(u64::from(count));
    }

    /// The peer tells of all receives that it has posted.
    fn grant(&mut self, receives: u32) {
        let ahead = receives.wrapping_sub(self.taken);
        if ahead <= AHEAD_MAX && ahead > self.granted.wrapping_sub(self.taken) {
            self.granted = receives;
        }
    }

    /// Takes a receive for what was posted under a number, once. False if there is none.
    #[cold]
    pub(super) fn take(&mut self, number: u64) -> bool {
        if self.holder == Some(number) {
            return true;
        }
        if self.granted == self.taken {
            return false;
        }
        self.taken = self.taken.wrapping_add(1);
        self.holder = Some(number);
        true
    }

    /// What was posted under a number will not go, and nothing of it has.
    pub(super) fn give_back(&mut self, number: u64) {
        if self.holder == Some(number) {
            self.holder = None;
            self.taken = self.taken.wrapping_sub(1);
        }
    }

    /// All receives that were posted, if the peer is to be told now.
    fn news(&self, receives: &WorkQueue) -> Option<u64> {
        let posted = receives.end_number().wrapping_sub(self.first);
        let left = self.told.saturating_sub(receives.next_number().wrapping_sub(self.first));
        let untold = posted - self.told;
        (untold > 0 && untold >= left).then_some(posted)
    }
}

impl Vi {
    /// Whether the peer is to be told of receives that were posted: [`Vi::pump`] does.
    #[inline]
    pub fn has_receives_to_tell(&self) -> bool {
        self.attributes.credit && self.state == ViState::Connected && self.credit.news(&self.receives).is_some()
    }

    /// Tells the peer what it can send.
    pub(super) fn tell_receives(&mut self, wire: &mut impl Wire) {
        if !self.attributes.credit {
            return;
        }
        if let Some(posted) = self.credit.news(&self.receives)
            && wire.hand(&ViFrame::Credit { receives: posted as u32 }, Segments::NONE.part(0, 0)) != Handed::Full
        {
            self.credit.told = posted;
        }
    }

    /// The peer tells of its receives. False if none were asked for.
    pub(super) fn credit_came(&mut self, receives: u32) -> bool {
        self.credit.grant(receives);
        self.attributes.credit
    }
}
