//! The lock of an SMEM channel: mutual exclusion from words that each have one writer.
//!
//! What you may rely on: of the participants that follow the protocol at most one is inside, whatever the others write
//! into their own lines. [`Bakery::try_lock`] takes at most two looks at each other contender and [`LOOKS_MAX`] more.
//! [`Bakery::begin`] and [`Bakery::poll`] take one or two looks at each and never wait; contenders that began enter in
//! the order in which they began. A contender that the caller calls dead is passed over, so a lock cannot be held by the
//! dead; [`Contender::died_inside`] says that it may have left the memory half written.
//!
//! How it works: Lamport's bakery ("A New Solution of Dijkstra's Concurrent Programming Problem", 1974), with his flag
//! "choosing" and his number in one word, so one look gives both. Who begins publishes [`CHOOSING`], looks at all
//! tickets, publishes a number above all of them, and enters once it has seen each other contender not choosing and
//! either outside or with a larger number (ties go by participant number). Who tries takes no number: it gives up if
//! anyone's ticket is not 0, else it publishes [`FIRST`] and enters only if it then sees every other at 0.
//!
//! Why two are never inside at once: take two contenders, each with the ticket it entered with. If the one saw the
//! other's ticket as it was before the other began, then the other's looks, which all come later, saw the one's ticket:
//! it drew a larger number and waits, or it gave up. If neither did, both compared the same two numbers. Nothing here
//! depends on a third contender, so a third one's garbage cannot break it. It needs that a contender's store and its
//! following looks keep their order as seen by all: every ticket store before a look, and the look, are sequentially
//! consistent ([`Site::TicketThenLook`]). Leaving is a release that the next one's look acquires, and orders the memory.
//!
//! Numbers do not wrap. They begin anew whenever nobody is interested; who tries never adds to them, and refuses as soon
//! as anybody is interested. If ever the largest number is drawn (2^32 draws in a row without a free moment, or
//! garbage), those who begin wait without a number, out of order, until the present ones have left.
//!
//! What it does not do: protect from a contender that ignores the protocol. Such a one can keep the others out up to
//! their deadlines, or write the channel's memory while another is inside; it harms this one channel only. The threads
//! of one participant share one [`Bakery`] behind the port's mutex. Waiting between polls, and deadlines, are the port's.
//! Nor does it find the contenders: for the whole of a call `others` lists every living member, and a member may contend
//! only after all living members have listed it (the rendezvous sees to that).

use crate::error::Error;
use crate::layout::ticket::{ACQUIRED, HOLDS, REFUSED, TICKET};
use crate::plan::PARTICIPANTS_MAX;
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// How often [`Bakery::try_lock`] looks again, over all contenders, while those that must yield to it give up.
pub const LOOKS_MAX: u32 = if cfg!(loom) { 1 } else { 16 };
/// Ticket of a participant that is not interested.
pub const OUTSIDE: u32 = 0;
/// Ticket of a participant that is drawing its number.
pub const CHOOSING: u32 = 1;
/// The least number, and the ticket of one that tries.
pub const FIRST: u32 = 2;

/// Another participant that may want the lock.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'m> {
    /// Its participant number.
    pub participant: u16,
    /// Its line ([`crate::layout::ticket`]); all of it, and its values are claims.
    pub line: PeerWords<'m>,
    /// Whether it lives. Once `false` for a line, `false` for ever: a successor has a line of its own.
    pub alive: bool,
}

impl Contender<'_> {
    /// Whether it died while it was inside, so that the channel's memory may be half written.
    pub fn died_inside(&self) -> bool {
        !self.alive && self.line.get(HOLDS) != 0
    }

    fn ticket(&self) -> u32 {
        self.line.look_at(TICKET, Site::SeeTicket)
    }
}

/// One participant's part in the lock of one SMEM channel.
#[derive(Debug)]
pub struct Bakery<'m> {
    me: u16,
    own: OwnWords<'m>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Outside,
    /// Began, but no number was left to draw.
    Unplaced,
    /// Waits with a number; `passed` are the participants that it need not wait for any more.
    Queued {
        number: u32,
        passed: u64,
    },
    Inside,
}

impl<'m> Bakery<'m> {
    /// The part of participant `me`, whose line ([`crate::layout::ticket`]) is `own`. Not interested at first.
    pub fn new(me: u16, own: OwnWords<'m>) -> Self {
        own.set(HOLDS, 0);
        own.publish(TICKET, OUTSIDE, Site::PublishTicket);
        Bakery { me, own, stage: Stage::Outside }
    }

    /// Whether this participant is inside.
    pub fn holds(&self) -> bool {
        self.stage == Stage::Inside
    }

    /// Takes the lock if it is free and nobody waits for it. Where several try at the same moment, all may be refused.
    ///
    /// # Errors
    /// [`Error::Locked`], also if this participant itself is inside or waiting.
    pub fn try_lock(&mut self, others: &[Contender<'_>]) -> Result<(), Error> {
        if self.stage == Stage::Outside && self.seems_free(others) && self.claim(others) {
            self.enter();
            return Ok(());
        }
        self.own.count_one(REFUSED);
        Err(Error::Locked)
    }

    /// Whether it is worth a claim. Only looks, so that those who try again and again do not hold up who waits.
    fn seems_free(&self, others: &[Contender<'_>]) -> bool {
        self.living(others).all(|other| other.line.get(TICKET) == OUTSIDE)
    }

    /// Shows a ticket and keeps it only if nobody else shows one.
    fn claim(&self, others: &[Contender<'_>]) -> bool {
        self.own.publish_then_look(TICKET, FIRST, Site::TicketThenLook);
        let mut looks_left = LOOKS_MAX;
        let alone = self.living(others).all(|other| self.outlasts(other, &mut looks_left));
        if !alone {
            self.own.publish(TICKET, OUTSIDE, Site::PublishTicket);
        }
        alone
    }

    /// Whether the other is outside, or leaves soon. Of two that try, the one with the smaller number stays.
    fn outlasts(&self, other: &Contender<'_>, looks_left: &mut u32) -> bool {
        while other.ticket() != OUTSIDE {
            if other.participant < self.me || *looks_left == 0 {
                return false;
            }
            *looks_left -= 1;
            core::hint::spin_loop();
        }
        true
    }

    /// Queues for the lock; [`Bakery::poll`] then says when it is taken, [`Bakery::abandon`] ends the wait.
    ///
    /// # Errors
    /// [`Error::Locked`] if this participant itself is inside or waiting; nothing was changed.
    pub fn begin(&mut self, others: &[Contender<'_>]) -> Result<(), Error> {
        if self.stage != Stage::Outside {
            return Err(Error::Locked);
        }
        self.stage = self.draw(others);
        Ok(())
    }

    /// Draws a number above all that are shown.
    fn draw(&self, others: &[Contender<'_>]) -> Stage {
        self.own.publish_then_look(TICKET, CHOOSING, Site::TicketThenLook);
        let largest = self.living(others).map(|other| other.line.look(TICKET)).fold(CHOOSING, u32::max);
        match largest.checked_add(1) {
            Some(number) => {
                self.own.publish_then_look(TICKET, number, Site::TicketThenLook);
                Stage::Queued { number, passed: 0 }
            }
            None => {
                self.own.publish(TICKET, OUTSIDE, Site::PublishTicket);
                Stage::Unplaced
            }
        }
    }

    /// Looks whether it is this participant's turn, and enters if so. Gives whether it is inside.
    pub fn poll(&mut self, others: &[Contender<'_>]) -> bool {
        if self.stage == Stage::Unplaced {
            self.stage = self.draw(others);
        }
        if let Stage::Queued { number, passed } = self.stage {
            match self.pass(others, number, passed) {
                Some(passed) => self.stage = Stage::Queued { number, passed },
                None => self.enter(),
            }
        }
        self.holds()
    }

    /// Passes those that need not be waited for. Gives who was passed if it came to one that must be waited for, else
    /// `None`. Who was passed once stays passed: whatever it draws later is larger.
    fn pass(&self, others: &[Contender<'_>], number: u32, before: u64) -> Option<u64> {
        let mut passed = before;
        for other in self.living(others).filter(|other| before & bit(other.participant) == 0) {
            let ticket = other.ticket();
            let comes_first = ticket != OUTSIDE && (ticket, other.participant) < (number, self.me);
            if ticket == CHOOSING || comes_first {
                return Some(passed);
            }
            passed |= bit(other.participant);
        }
        None
    }

    /// Stops waiting. Nothing changes if this participant does not wait.
    pub fn abandon(&mut self) {
        if matches!(self.stage, Stage::Queued { .. } | Stage::Unplaced) {
            self.leave();
            self.own.count_one(REFUSED);
        }
    }

    /// Gives the lock back.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if this participant is not inside; nothing was changed.
    pub fn unlock(&mut self) -> Result<(), Error> {
        if !self.holds() {
            return Err(Error::NotHeld);
        }
        self.own.set(HOLDS, 0);
        self.leave();
        Ok(())
    }

    fn enter(&mut self) {
        self.own.set(HOLDS, 1);
        self.own.count_one(ACQUIRED);
        self.stage = Stage::Inside;
    }

    fn leave(&mut self) {
        self.own.publish(TICKET, OUTSIDE, Site::PublishTicket);
        self.stage = Stage::Outside;
    }

    fn living<'o, 'p>(&self, others: &'o [Contender<'p>]) -> impl Iterator<Item = &'o Contender<'p>> + use<'o, 'p> {
        let me = self.me;
        others.iter().filter(move |other| other.alive && other.participant != me)
    }
}

/// The participant's bit in a set; none for a number that no plan allows, which is then looked at in each poll.
fn bit(participant: u16) -> u64 {
    if usize::from(participant) < PARTICIPANTS_MAX { 1 << participant } else { 0 }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
