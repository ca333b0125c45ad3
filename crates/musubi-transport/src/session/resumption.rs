//! Which session a new connection goes on with, and which end of it decides.
//!
//! What you may rely on: a connection that comes late (dialed before another that has been taken, or by an earlier
//! incarnation) changes nothing. If both sides still have the session, they go on with it. If one has given it up, or is
//! another incarnation, the other reports it down before the next comes up.
//!
//! How it works: whoever dials says which session it has, or proposes one, and whether it has received anything in it
//! (*touched*). Who is dialed chooses: the same, if it has it too; else a proposed one, for what nobody has touched may
//! still begin; else it refuses. It does so before it answers, for the dialer has no other connection any more. The link is
//! up for the dialer with the welcome, for the dialed with the record that follows; so a welcome that is lost costs
//! nothing: both go on with the same session next time. An incarnation that we do not know may be one that died before its
//! hello came; so the link with the one that we know ends only with the record that shows that the other lives.
//!
//! A session's number is made of the incarnation, count and place of the node that proposed it; so no two of one pair
//! have the same. If both dial at once, the connection of the node with the smaller index is kept.

use super::hello::{Greeting, Hello, Reason, Step};
use super::{Broken, Session, State};
use crate::links::{Loss, Report};

/// What becomes of our session when the peer's hello is taken.
enum Fate {
    /// We go on with it; the peer has this much of it.
    Resume { received: u32 },
    /// The peer has given ours up, if there is one, and another begins.
    Begin,
    /// Another incarnation begins one: ours, if there is one, ends as soon as that incarnation is known to live.
    Succeed,
}

/// An incarnation of the peer that has said hello and not yet confirmed our welcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Successor {
    incarnation: u32,
    session: u64,
    attempt: u32,
}

impl Session {
    /// A connection that we began stands: our hello goes out. A former connection is no longer.
    pub fn dial(&mut self, now_ns: u64) {
        self.disconnected(now_ns);
        self.attempt = self.attempt.wrapping_add(1);
        if self.session == 0 {
            self.session = self.proposal();
        }
        self.state = State::Dialing;
        self.heard_ns = now_ns;
        self.welcome = Greeting::new();
        let hello = self.greeting(Step::Hello);
        self.outbox.greet(hello.encode());
    }

    /// A connection that the peer began has said this. On `Ok` it is ours and the welcome goes out on it; a former
    /// connection of this session is no longer, and is to be closed.
    ///
    /// # Errors
    /// Why it is to be refused: send [`Hello::refusal`], count, close. A former connection goes on.
    pub fn accept(&mut self, now_ns: u64, hello: &Hello) -> Result<(), Reason> {
        hello.check(&self.identity)?;
        if hello.step != Step::Hello || hello.session == 0 || hello.identity.node != self.peer {
            return Err(Reason::Garbage);
        }
        if self.leaving {
            return Err(Reason::Leaving);
        }
        let incarnation = hello.identity.incarnation;
        let known = self.peer_incarnation == Some(incarnation);
        let newer = |than: u32| hello.attempt.wrapping_sub(than) as i32 > 0;
        let overtaken = self.successor.is_some_and(|s| s.incarnation == incarnation && !newer(s.attempt));
        if self.former.contains(&incarnation) || known && !newer(self.peer_attempt) || overtaken {
            return Err(Reason::Stale);
        }
        if self.state == State::Dialing && self.identity.node < self.peer {
            return Err(Reason::Crossed);
        }
        let fate = self.fate(hello, known)?;
        self.disconnected(now_ns);
        match fate {
            Fate::Resume { received } => self.resume(received).map_err(|_| Reason::Garbage)?,
            Fate::Begin => {
                self.end(Loss::Cut);
                self.session = hello.session;
            }
            Fate::Succeed => {
                self.successor = Some(Successor { incarnation, session: hello.session, attempt: hello.attempt });
            }
        }
        let mut welcome = self.greeting(Step::Welcome);
        if self.successor.is_some() {
            welcome = Hello { session: hello.session, touched: false, ended: 0, received: 0, ..welcome };
        } else {
            self.peer_attempt = hello.attempt;
        }
        self.state = State::Greeted;
        self.heard_ns = now_ns;
        self.outbox.greet(welcome.encode());
        Ok(())
    }

    /// Bytes have come after our welcome: whoever said hello has it, and lives.
    pub(super) fn succeed(&mut self) {
        let Some(Successor { incarnation, session, attempt }) = self.successor.take() else { return };
        let state = self.state;
        self.end(Loss::Gone);
        self.state = state;
        self.session = session;
        self.peer_incarnation = Some(incarnation);
        self.peer_attempt = attempt;
    }

    fn fate(&self, hello: &Hello, known: bool) -> Result<Fate, Reason> {
        let ours = self.session;
        if known && ours == hello.session {
            return Ok(Fate::Resume { received: hello.received });
        }
        if hello.touched || hello.session == self.ended {
            return Err(Reason::SessionUnknown);
        }
        if !known {
            return Ok(Fate::Succeed);
        }
        if ours == 0 || self.touched || hello.ended == ours {
            return Ok(Fate::Begin);
        }
        Ok(Fate::Resume { received: 0 })
    }

    /// Bytes of the answer to our hello.
    pub(super) fn answered(&mut self, now_ns: u64, bytes: &mut &[u8]) -> Result<(), Broken> {
        let (taken, rest) = bytes.split_at(self.welcome.missing().min(bytes.len()));
        *bytes = rest;
        let answer = match self.welcome.input(taken) {
            Ok(None) => return Ok(()),
            Ok(Some(answer)) => answer,
            // Whoever this is, it does not speak for our peer: the link, if there is one, may yet be resumed.
            Err(_) => return self.not_ours(now_ns),
        };
        // An end that refuses us for another description or version says what it has.
        let from_peer = answer.identity.node == self.peer && answer.to == self.identity.node;
        match (answer.step, answer.reason) {
            (Step::Refusal, Some(reason)) if from_peer => self.refused(now_ns, &answer, reason),
            (Step::Welcome, _) if from_peer && answer.check(&self.identity).is_ok() => self.welcomed(now_ns, &answer),
            _ => self.not_ours(now_ns),
        }
    }

    fn not_ours(&mut self, now_ns: u64) -> Result<(), Broken> {
        self.counts.violations += 1;
        self.disconnected(now_ns);
        Err(Broken::Protocol)
    }

    fn refused(&mut self, now_ns: u64, answer: &Hello, reason: Reason) -> Result<(), Broken> {
        self.counts.refused.count(reason);
        self.disconnected(now_ns);
        let same = self.peer_incarnation == Some(answer.identity.incarnation);
        match reason {
            Reason::SessionUnknown if same => self.end(Loss::Cut),
            Reason::SessionUnknown => self.end(Loss::Gone),
            Reason::Leaving if same => self.end(Loss::Gone),
            _ => {}
        }
        Err(Broken::Refused(reason))
    }

    fn welcomed(&mut self, now_ns: u64, answer: &Hello) -> Result<(), Broken> {
        let incarnation = answer.identity.incarnation;
        if self.former.contains(&incarnation) {
            self.disconnected(now_ns);
            return Err(Broken::Refused(Reason::Stale));
        }
        let proposed = self.session;
        if self.peer_incarnation.is_some_and(|known| known != incarnation) {
            self.end(Loss::Gone);
            self.session = proposed;
        }
        // The peer may put its own untouched session in the place of ours if that is untouched too.
        let theirs = answer.session != 0 && answer.session != self.ended && !self.touched;
        if answer.session != proposed && !theirs {
            return self.violated();
        }
        self.session = answer.session;
        self.resume(answer.received)?;
        self.peer_incarnation = Some(incarnation);
        self.peer_attempt = answer.attempt;
        self.live();
        // The peer waits for a record before it holds the link to be up.
        self.acknowledge_now = true;
        Ok(())
    }

    /// The first record after our welcome: the dialer has it.
    pub(super) fn confirmed(&mut self) {
        if self.state == State::Greeted {
            self.live();
        }
        self.touched = true;
    }

    fn live(&mut self) {
        self.state = State::Live;
        self.counts.connections += 1;
        self.said_ns = self.heard_ns;
        if self.up {
            self.counts.resumed += 1;
            return;
        }
        self.up = true;
        let incarnation = self.peer_incarnation.unwrap_or_default();
        self.reports.push_back(Report::Up { peer: self.peer, incarnation });
    }

    fn resume(&mut self, received: u32) -> Result<(), Broken> {
        if self.outbox.resume(received) { Ok(()) } else { self.violated() }
    }

    fn proposal(&mut self) -> u64 {
        self.proposals = self.proposals.wrapping_add(1);
        let place = u32::from(self.identity.node > self.peer);
        u64::from(self.identity.incarnation) << 32 | u64::from(self.proposals << 1 | place)
    }

    fn greeting(&self, step: Step) -> Hello {
        Hello {
            step,
            reason: None,
            identity: self.identity.clone(),
            to: self.peer,
            session: self.session,
            touched: self.touched,
            ended: self.ended,
            attempt: self.attempt,
            received: self.inbox.received(),
        }
    }
}
