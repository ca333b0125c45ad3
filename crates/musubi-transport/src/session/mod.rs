//! A reliable link between two nodes over byte streams that may break and come back.
//!
//! What you may rely on: a frame that was taken ([`Sent::Numbered`]) arrives exactly once, in the order of its class,
//! however often the stream breaks, as long as it comes back within `resume_ms`; if it does not, both sides report the
//! link down, once, and what was acknowledged is what had arrived. An urgent frame waits for at most one piece of a less
//! urgent one and for what was already handed to the stream. Memory is bounded by `window_bytes`, [`CONTROL_BYTES`] and
//! one frame a class in each direction. Nothing that the peer says can panic; what breaks the protocol ends the link.
//!
//! How it works: no clock and no socket; time and bytes are passed in. A session belongs to one pair of nodes and goes
//! through *connections*, one at a time:
//!
//! - [`Session::dial`] when a connection that we began stands, or [`Session::accept`] with the [`Hello`] that a [`Greeting`]
//!   gathered from one that came in. Either takes the place of the connection before; the owner closes that one.
//! - While it lasts: [`Session::fill`], [`Session::slices`], [`Session::consumed`] for what goes out, [`Session::input`] (or
//!   [`Session::landing`] and [`Session::landed`]) for what comes in, [`Session::next_report`] after each.
//! - [`Session::disconnected`] when the stream has ended. `Err` from `input` or `tick` says that the session has already let
//!   go of the connection: close it.
//!
//! What a node may put onto a link can be bounded, by class ([`Session::regulate`], the description's `[[node.rule]]`): the
//! frames of a class that has used up its rate wait, and those of others go on.
//!
//! What it does not do: dial by itself, find addresses, encrypt.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::frame::{Header, Kinds};
use crate::links::{Loss, NoBlock, Report, Sent, SharedBytes};
use crate::topology::{ClassRule, Network};
use crate::{NodeId, Priority};

mod account;
mod hello;
mod pieces;
mod pool;
mod receiving;
mod record;
mod regulation;
mod resumption;
mod sending;

pub use account::{Broken, ClassCounts, Counts, State};
pub use hello::{Greeting, Hello, Identity, MAGIC, NAME_BYTES_MAX, Reason, Refusals, Step};
pub use record::{Record, Word};
pub use regulation::Regulators;
pub use sending::CONTROL_BYTES;

use receiving::{Inbox, Item};
use sending::{Body, Outbox};

/// Payload of fewer bytes is copied also where it could be shared: then head and payload are one piece of memory.
const SHARED_BYTES_MIN: usize = 4096;

/// Part of the window after which pieces are acknowledged though nothing goes there: more than a busy channel takes between two
/// frames of credit, which carry the acknowledgement for nothing.
const ACKNOWLEDGE_PART: usize = 4;

/// Incarnations of the peer that have ended and are remembered, so that a late connection of one is known for what it is.
const FORMER_MAX: usize = 4;

/// The link with one other node.
#[derive(Debug)]
pub struct Session {
    identity: Identity,
    peer: NodeId,
    state: State,
    /// Between the reports of up and down.
    up: bool,
    /// The incarnation that we have last spoken with, unless it has gone.
    peer_incarnation: Option<u32>,
    former: [u32; FORMER_MAX],
    successor: Option<resumption::Successor>,
    /// Number of the session; 0 for none. What it is made of: see [`resumption`].
    session: u64,
    /// A record has come in this session.
    touched: bool,
    ended: u64,
    proposals: u32,
    attempt: u32,
    peer_attempt: u32,
    outbox: Outbox,
    inbox: Inbox,
    welcome: Greeting,
    reports: VecDeque<Report<NoBlock>>,
    /// An acknowledgement goes out even if there is nothing to go with.
    acknowledge_now: bool,
    acknowledge_bytes: usize,
    leaving: bool,
    goodbye_said: bool,
    /// When the peer was last heard, when it last heard us, when the connection was lost.
    heard_ns: u64,
    said_ns: u64,
    lost_ns: u64,
    heartbeat_ns: u64,
    silence_ns: u64,
    resume_ns: u64,
    counts: Counts,
}

impl Session {
    /// No link yet.
    pub fn new(identity: &Identity, peer: NodeId, network: &Network, kinds: &'static Kinds) -> Session {
        let nanoseconds = |milliseconds: u32| u64::from(milliseconds) * 1_000_000;
        Session {
            identity: identity.clone(),
            peer,
            state: State::Disconnected,
            up: false,
            peer_incarnation: None,
            former: [0; FORMER_MAX],
            successor: None,
            session: 0,
            touched: false,
            ended: 0,
            proposals: 0,
            attempt: 0,
            peer_attempt: 0,
            outbox: Outbox::new(network),
            inbox: Inbox::new(kinds),
            welcome: Greeting::new(),
            reports: VecDeque::new(),
            acknowledge_now: false,
            acknowledge_bytes: network.window_bytes as usize / ACKNOWLEDGE_PART,
            leaving: false,
            goodbye_said: false,
            heard_ns: 0,
            said_ns: 0,
            lost_ns: 0,
            heartbeat_ns: nanoseconds(network.heartbeat_ms),
            silence_ns: nanoseconds(network.silence_ms),
            resume_ns: nanoseconds(network.resume_ms),
            counts: Counts::default(),
        }
    }

    /// Bounds what this node puts onto the link from now on. What the rules do not let go yet waits in its class, within the
    /// window; [`Session::deadline_ns`] says until when at least.
    pub fn regulate(&mut self, rules: &[ClassRule]) {
        self.outbox.regulate(Regulators::of(rules));
    }

    /// The other node.
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// The connection has ended. The session waits `resume_ms` for another one.
    pub fn disconnected(&mut self, now_ns: u64) {
        if self.state == State::Live {
            self.lost_ns = now_ns;
        }
        self.outbox.disconnect();
        self.inbox.disconnect();
        self.acknowledge_now = false;
        self.successor = None;
        self.state = State::Disconnected;
    }

    /// Where the session is with its connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether there is a link: between its reports of up and down, also while there is no connection.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Takes a frame: [`Sent::Numbered`], [`Sent::Full`] or [`Sent::NoLink`]. Copies the payload once.
    pub fn enqueue(&mut self, header: &Header, payload: &[u8]) -> Sent {
        self.take_to_send(header, Body::Copied(payload))
    }

    /// The same; keeps the payload where it lies until the frame is acknowledged or the link ends, unless it is so short
    /// that a copy costs less.
    pub fn enqueue_shared(&mut self, header: &Header, payload: &SharedBytes) -> Sent {
        let is_short = payload.len() < SHARED_BYTES_MIN;
        self.take_to_send(header, if is_short { Body::Copied(payload) } else { Body::Shared(payload) })
    }

    #[inline]
    fn take_to_send(&mut self, header: &Header, body: Body<'_>) -> Sent {
        if !self.up || self.leaving {
            return Sent::NoLink;
        }
        let Some(number) = self.outbox.enqueue(header, body) else { return Sent::Full };
        self.counts.frames_sent += 1;
        Sent::Numbered(number)
    }

    /// Makes ready to go out: whole pieces, the most urgent first, until at least `budget_bytes` are ready or nothing is
    /// left that may go. Gives the bytes that are ready. What is ready is no longer overtaken, so a small budget keeps urgent
    /// frames fast.
    pub fn fill(&mut self, now_ns: u64, budget_bytes: usize) -> usize {
        if self.state == State::Live {
            self.outbox.release(now_ns);
            while self.outbox.may_cut(budget_bytes) {
                if !self.outbox.admits_next(now_ns) {
                    continue;
                }
                self.acknowledge_now = false;
                let received = self.inbox.acknowledge();
                self.outbox.cut(received, budget_bytes);
            }
            if self.must_acknowledge() && self.outbox.ready_bytes() < budget_bytes {
                self.acknowledge_now = false;
                let received = self.inbox.acknowledge();
                self.outbox.say(Word::Ack, 0, received);
            }
            if self.leaving && !self.goodbye_said && self.outbox.is_spent() {
                self.goodbye_said = true;
                self.outbox.say(Word::Bye, 0, self.inbox.received());
            }
        }
        self.outbox.ready_bytes()
    }

    fn must_acknowledge(&self) -> bool {
        self.acknowledge_now || self.inbox.due_bytes() > self.acknowledge_bytes
    }

    /// What is ready, in order, for a vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.outbox.slices()
    }

    /// The same where it is one frame, as it mostly is: what is left of its headers, and its payload. Either may be empty.
    #[inline]
    pub fn only_frame(&self) -> Option<[&[u8]; 2]> {
        self.outbox.only_frame()
    }

    /// So many bytes of what was ready have been written.
    pub fn consumed(&mut self, now_ns: u64, bytes: usize) {
        self.said_ns = now_ns;
        self.counts.bytes_sent += bytes as u64;
        self.outbox.consumed(bytes);
    }

    /// Whether [`Session::fill`] would have something to give.
    pub fn has_output(&self) -> bool {
        let could_fill = self.outbox.has_open() || self.must_acknowledge() || self.leaving && !self.goodbye_said;
        self.outbox.ready_bytes() > 0 || self.state == State::Live && could_fill
    }

    /// Acknowledgements may no longer wait for a frame to go with: if one is due, [`Session::fill`] gives it.
    pub fn flush(&mut self) {
        self.acknowledge_now |= self.inbox.is_due();
    }

    /// Takes bytes that came.
    ///
    /// # Errors
    /// The session has let go of the connection.
    pub fn input(&mut self, now_ns: u64, bytes: &[u8]) -> Result<(), Broken> {
        self.counts.bytes_received += bytes.len() as u64;
        self.take_bytes(now_ns, bytes)
    }

    fn take_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Result<(), Broken> {
        self.heard_ns = now_ns;
        let mut bytes = bytes;
        if self.state == State::Greeted && !bytes.is_empty() {
            self.succeed();
        }
        if self.state == State::Dialing {
            self.answered(now_ns, &mut bytes)?;
        }
        while matches!(self.state, State::Greeted | State::Live) && !bytes.is_empty() {
            match self.inbox.input(&mut bytes) {
                Ok(item) => self.take(item)?,
                Err(receiving::Violation) => return self.violated(),
            }
        }
        self.report_acknowledged();
        Ok(())
    }

    /// Takes the memory of a payload that came and is no longer needed, for one that comes.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.inbox.recycle(buffer);
    }

    /// Where to read to directly, if the middle of a large piece is next, or a large frame is likely to be: the rest of the
    /// piece, room for the head of what follows it, and room for a payload. Each may be empty, and each is to be filled
    /// before the next (as `readv` does); then tell [`Session::landed`].
    pub fn landing(&mut self) -> Option<[&mut [u8]; 3]> {
        self.inbox.landing()
    }

    /// So many bytes were read to [`Session::landing`].
    ///
    /// # Errors
    /// As [`Session::input`].
    pub fn landed(&mut self, now_ns: u64, bytes: usize) -> Result<(), Broken> {
        self.counts.bytes_received += bytes as u64;
        let (item, beyond) = self.inbox.landed(bytes);
        self.take(item)?;
        let head = self.inbox.ahead();
        let of_head = beyond.min(head.len());
        self.take_bytes(now_ns, &head[..of_head])?;
        let of_payload = beyond - of_head;
        if of_payload == 0 {
            return Ok(());
        }
        if let Some(item) = self.inbox.adopt_spare(of_payload) {
            self.take(item)?;
            self.report_acknowledged();
            return Ok(());
        }
        // Not what was expected.
        let spare = self.inbox.lend_spare();
        self.take_bytes(now_ns, &spare[..of_payload.min(spare.len())])?;
        self.inbox.keep_spare(spare);
        Ok(())
    }

    /// Takes what the input has given: first the acknowledgement that came with it, of which a frame may be the consequence.
    fn take(&mut self, item: Option<Item>) -> Result<(), Broken> {
        let heard = self.inbox.take_heard();
        if let Some(received) = heard {
            self.confirmed();
            if !self.outbox.acknowledge(received) {
                return self.violated();
            }
        }
        match item {
            Some(Item::Frame(header, payload)) => {
                self.counts.frames_received += 1;
                if heard.is_some() {
                    self.report_acknowledged();
                }
                self.reports.push_back(Report::Frame { peer: self.peer, header, payload });
            }
            Some(Item::Bye { answer }) => self.goodbye(answer),
            None => {}
        }
        Ok(())
    }

    /// The peer leaves, or has answered that we do.
    fn goodbye(&mut self, answer: bool) {
        self.report_acknowledged();
        let received = self.inbox.received();
        self.end(Loss::Gone);
        if !answer {
            self.outbox.say(Word::Bye, 1, received);
        }
        self.state = State::Ended;
    }

    fn report_acknowledged(&mut self) {
        while let Some(number) = self.outbox.next_acknowledged() {
            self.reports.push_back(Report::Acknowledged { peer: self.peer, number });
        }
        if self.outbox.room_again() {
            self.reports.push_back(Report::Room { peer: self.peer });
        }
    }

    /// The peer broke the protocol: the link ends.
    fn violated(&mut self) -> Result<(), Broken> {
        self.counts.violations += 1;
        self.report_acknowledged();
        self.end(Loss::Cut);
        Err(Broken::Protocol)
    }

    /// The link ends, and with it session and connection.
    fn end(&mut self, loss: Loss) {
        if self.up {
            self.up = false;
            self.counts.cuts += u64::from(loss == Loss::Cut);
            self.reports.push_back(Report::Down { peer: self.peer, loss });
        }
        if loss == Loss::Gone
            && let Some(incarnation) = self.peer_incarnation.take()
        {
            self.former.rotate_right(1);
            self.former[0] = incarnation;
            self.peer_attempt = 0;
        }
        // A node that has gone will not ask for its sessions; one that lives might.
        self.ended = match loss {
            Loss::Gone => 0,
            Loss::Cut if self.session == 0 => self.ended,
            Loss::Cut => self.session,
        };
        (self.session, self.touched) = (0, false);
        self.outbox.reset();
        self.inbox.reset();
        self.acknowledge_now = false;
        self.state = State::Disconnected;
    }

    /// The next thing to report. Call until `None` after input, tick and accept.
    pub fn next_report(&mut self) -> Option<Report<NoBlock>> {
        self.reports.pop_front()
    }

    /// Whether [`Session::next_report`] has one. Whoever takes them in before more input keeps their number bounded.
    pub fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// When [`Session::tick`] is to be called; `u64::MAX` if never.
    pub fn deadline_ns(&self) -> u64 {
        match self.state {
            State::Live => {
                let due_ns = (self.heard_ns + self.silence_ns).min(self.said_ns + self.heartbeat_ns);
                due_ns.min(self.outbox.due_ns())
            }
            State::Dialing | State::Greeted | State::Ended => self.heard_ns + self.silence_ns,
            State::Disconnected if self.up => self.lost_ns + self.resume_ns,
            State::Disconnected => u64::MAX,
        }
    }

    /// Does what is due: a heartbeat goes out, what was held back by a rule may go, a silent connection is let go, a link is
    /// given up. Take in what has come
    /// before: what lies unread is not silence.
    ///
    /// # Errors
    /// The session has let go of the connection.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), Broken> {
        if self.state != State::Disconnected && now_ns >= self.heard_ns + self.silence_ns {
            self.counts.silences += u64::from(self.state != State::Ended);
            self.disconnected(now_ns);
            return Err(Broken::Silent);
        }
        self.outbox.release(now_ns);
        if self.state == State::Live && now_ns >= self.said_ns + self.heartbeat_ns {
            self.acknowledge_now = true;
            self.said_ns = now_ns;
        }
        if self.state == State::Disconnected && self.up && now_ns >= self.lost_ns + self.resume_ns {
            self.end(Loss::Cut);
        }
        Ok(())
    }

    /// Ends the link in an orderly way: what was taken goes out, then goodbye. Nothing more is taken. Go on with `fill` and
    /// `input` until [`Session::has_left`], within a time of your own.
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    /// Nothing is left to be said: the peer has answered our goodbye, or there is no connection.
    pub fn has_left(&self) -> bool {
        !self.up || self.state == State::Disconnected
    }

    /// What the frames count for that are taken and not yet acknowledged: payload, and a fixed cost each.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.outbox.cost()
    }

    /// Whether the peer has confirmed everything, and nothing waits to be written.
    pub fn has_delivered(&self) -> bool {
        self.unacknowledged_bytes() == 0 && !self.has_output()
    }

    /// What it has done with the frames of a class.
    pub fn class_counts(&self, class: Priority) -> ClassCounts {
        self.outbox.class_counts(class)
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        Counts { repeated: self.outbox.repeated, ..self.counts }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;
