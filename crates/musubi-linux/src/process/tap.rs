//! Looking at the messages of a channel from outside, through restarts of either side.
//!
//! What you may rely on: what is given is certain (`musubi_core::fifo::Tap`), each message at most once and in order within
//! one incarnation of the sender; what else has passed is counted. Neither side notices: nothing is written, nobody is
//! rung, no slot is taken.
//!
//! How it works: an [`Observer`] maps the sections of sender and receiver. Who is there is asked again in short
//! intervals, at once when a message depends on a receiver that we don't know. A sender that was there before us is
//! followed from what it has queued, a later one from its first message. What a dead one left is looked at to its end.
//!
//! What it does not do: sleep until there is a message. The wake-up would be taken from the side that it is meant for.

use musubi_core::fifo::{Look, Tap, Tapped};
use musubi_core::layout::Part;
use musubi_core::plan::{Plan, PortKind};
use musubi_core::words::PeerWords;

use crate::direction::Direction;
use crate::error::Error;
use crate::os::clock::{Deadline, DeadlineExt, now_ns};
use crate::process::observer::{Observed, Observer};
use crate::process::section::PeerPart;

/// Time between two looks who is there, in nanoseconds; at least this many times as long as the last one took.
const ROUND_NS: u64 = 5_000_000;
const ROUND_TIMES: u64 = 20;
/// Time between two of them where a message depends on a receiver that we don't know.
const STRANGER_ROUND_NS: u64 = 500_000;
/// Longest wait for answers in one of them.
const ANSWERS_NS: u64 = 20_000_000;
/// Longest wait for answers in the first.
const FIRST_ANSWERS_NS: u64 = 250_000_000;
/// Receiving ends that are kept mapped, the newest. One that is gone may still be asked for what it has returned.
const RECEIVERS_MAX: usize = 8;

/// An observer of one channel.
#[derive(Debug)]
pub struct ChannelTap {
    plan: &'static Plan<'static>,
    fifo: u16,
    observer: Observer,
    sender: Option<Followed>,
    /// Newest last.
    receivers: Vec<PeerPart>,
    /// Participant and epoch of the sender that has ended last.
    ended: Option<(u16, u32)>,
    /// Messages of senders that have ended which could not be shown.
    unseen: u64,
    next_round_ns: u64,
    last_round_ns: u64,
    /// The next message depends on a receiver whose memory we don't have.
    lacks_receiver: bool,
}

/// The incarnation of a sender that is looked at.
#[derive(Debug)]
struct Followed {
    tap: Tap,
    tx: PeerPart,
    /// It has ended: nothing more comes than what it had announced.
    has_ended: bool,
}

/// What a look at a channel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// A message of this sender, by participant and epoch; its bytes are copied.
    Message((u16, u32), Tapped),
    /// Something has passed or changed; look again at once.
    More,
    /// No message yet.
    Nothing,
}

impl ChannelTap {
    /// Begins to look at a channel; a sender that is there already, from what it has queued.
    ///
    /// # Errors
    /// As [`Observer::refresh`]; [`Error::Plan`] if there is no such channel or one of its sides is no process.
    pub fn new(plan: &'static Plan<'static>, fifo: u16, instance: Option<&str>) -> Result<ChannelTap, Error> {
        let channel = plan.fifos.get(usize::from(fifo)).ok_or(Error::Plan)?;
        let is_process = |domain: u16| plan.domains[usize::from(domain)].port == PortKind::LinuxProcess;
        if !is_process(channel.from) || !is_process(channel.to) {
            return Err(Error::Plan);
        }
        let observer = Observer::new(plan, instance)?;
        let mut tap = ChannelTap {
            plan,
            fifo,
            observer,
            sender: None,
            receivers: Vec::new(),
            ended: None,
            unseen: 0,
            next_round_ns: 0,
            last_round_ns: 0,
            lacks_receiver: false,
        };
        tap.go_round(FIRST_ANSWERS_NS)?;
        let receivers = &tap.receivers;
        if let Some(sender) = &mut tap.sender {
            sender.tap.begin_now(sender.tx.words(), |participant, epoch| find(receivers, participant, epoch));
        }
        Ok(tap)
    }

    /// Messages that have passed unseen since we look.
    pub fn unseen(&self) -> u64 {
        self.unseen + self.sender.as_ref().map_or(0, |sender| sender.tap.unseen())
    }

    /// Whether there is a sender.
    pub fn has_sender(&self) -> bool {
        self.sender.is_some()
    }

    /// Whether there is a message that cannot be shown before its receiver, which does not answer, lets us look.
    pub fn lacks_receiver(&self) -> bool {
        self.lacks_receiver
    }

    /// Looks for the next message, and copies as many of its bytes as there is room for.
    ///
    /// # Errors
    /// One of the two sides does not let us look: [`Error::RefusedUser`], [`Error::PlanMismatch`] and others.
    pub fn look(&mut self, into: &mut [u8]) -> Result<Glance, Error> {
        if now_ns() >= self.next_round_ns {
            self.go_round(ANSWERS_NS)?;
        }
        let receivers = &self.receivers;
        let Some(sender) = &mut self.sender else { return Ok(Glance::Nothing) };
        let found = |participant: u16, epoch: u32| find(receivers, participant, epoch);
        let look = sender.tap.look(sender.tx.words(), found, into);
        self.lacks_receiver = matches!(look, Look::Unknown(participant, epoch) if found(participant, epoch).is_none());
        match look {
            Look::Message(message) => Ok(Glance::Message(sender.tap.sender(), message)),
            Look::Passed => Ok(Glance::More),
            Look::Nothing if sender.has_ended => Ok(self.end_sender()),
            Look::Nothing => Ok(Glance::Nothing),
            Look::Unknown(participant, epoch) if self.lacks_receiver => self.meet(participant, epoch),
            // Of an ended sender the receiver says nothing any more once it has begun with the next one.
            Look::Unknown(..) if sender.has_ended => Ok(self.end_sender()),
            Look::Unknown(..) => Ok(Glance::Nothing),
        }
    }

    /// Asks for a receiver that we do not know.
    fn meet(&mut self, participant: u16, epoch: u32) -> Result<Glance, Error> {
        if now_ns() - self.last_round_ns < STRANGER_ROUND_NS {
            return Ok(Glance::Nothing);
        }
        self.go_round(ANSWERS_NS)?;
        if find(&self.receivers, participant, epoch).is_some() {
            return Ok(Glance::More);
        }
        if let Some(why) = self.observer.take_refusal(participant) {
            return Err(why);
        }
        let has_ended = self.sender.as_ref().is_some_and(|sender| sender.has_ended);
        Ok(if has_ended { self.end_sender() } else { Glance::Nothing })
    }

    /// Looks who is there.
    fn go_round(&mut self, answers_ns: u64) -> Result<(), Error> {
        // Before the look at what it has announced, so that nothing of it is overlooked.
        if let Some(sender) = &mut self.sender {
            let alive = self.observer.participants().iter().any(|one| who(one) == sender.tap.sender() && one.alive());
            sender.has_ended |= !alive;
        }
        let begin_ns = now_ns();
        self.observer.refresh(Deadline::Forever.within_ns(answers_ns))?;
        self.keep_receivers();
        self.find_sender()?;
        let end_ns = now_ns();
        self.last_round_ns = end_ns;
        self.next_round_ns = end_ns + ROUND_NS.max((end_ns - begin_ns) * ROUND_TIMES);
        Ok(())
    }

    fn keep_receivers(&mut self) {
        for seen in self.observer.participants() {
            let (participant, epoch) = who(seen);
            if let Some(part) = seen.section.part(Part::Rx(self.fifo))
                && find(&self.receivers, participant, epoch).is_none()
            {
                self.receivers.push(part);
            }
        }
        let excess = self.receivers.len().saturating_sub(self.kept());
        self.receivers.drain(..excess);
    }

    /// Receiving ends to keep: those of all who may be there, and of some who were.
    fn kept(&self) -> usize {
        let to = self.plan.fifos[usize::from(self.fifo)].to;
        usize::from(self.plan.domains[usize::from(to)].participants) + RECEIVERS_MAX
    }

    /// Takes up the sender that is there, if none is followed.
    fn find_sender(&mut self) -> Result<(), Error> {
        if self.sender.is_some() {
            return Ok(());
        }
        let channel = &self.plan.fifos[usize::from(self.fifo)];
        let holder = self.observer.holders(self.fifo, Direction::Send).find(|holder| Some(who(holder)) != self.ended);
        if let Some(holder) = holder
            && let Some(tx) = holder.section.part(Part::Tx(self.fifo))
        {
            let tap = Tap::new(channel, who(holder), self.ended).map_err(|_| Error::Plan)?;
            self.sender = Some(Followed { tap, tx, has_ended: false });
            return Ok(());
        }
        let first = self.plan.first_participant(channel.from);
        let slots = first..first + self.plan.domains[usize::from(channel.from)].participants;
        match slots.into_iter().find_map(|slot| self.observer.take_refusal(slot)) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Nothing more can be shown of the sender that has ended.
    fn end_sender(&mut self) -> Glance {
        if let Some(mut sender) = self.sender.take() {
            sender.tap.end(sender.tx.words());
            self.unseen += sender.tap.unseen();
            self.ended = Some(sender.tap.sender());
            self.next_round_ns = 0;
        }
        Glance::More
    }
}

fn who(seen: &Observed) -> (u16, u32) {
    (seen.section.participant(), seen.section.epoch())
}

/// The words of a receiving end, if we have it.
fn find(receivers: &[PeerPart], participant: u16, epoch: u32) -> Option<PeerWords<'_>> {
    let is_it = |part: &&PeerPart| (part.section().participant(), part.section().epoch()) == (participant, epoch);
    receivers.iter().find(is_it).map(PeerPart::words)
}
