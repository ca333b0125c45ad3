//! What became of every message, drawn up from the record and the sections.
//!
//! How it works: within an incarnation of a sender, messages are numbered from 1 without gaps. The receivers count what
//! is missing before each message that comes; what is missing at the end is the difference between the last committed
//! and the last received. On a channel that keeps messages, any missing one is lost. On a channel that drops those that
//! a dead receiver had not taken, the sender's own counter must say the same number.

use musubi_core::plan::OnRestart;
use serde::Serialize;

use crate::record::{At, In, Of, Record, SUPERVISOR};
use crate::system::channels;

/// The sum over all channels.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Messages {
    /// Messages whose enqueue had returned.
    pub committed: u64,
    /// Messages dequeued and recorded.
    pub received: u64,
    /// Committed, taken by nobody, and not void by policy.
    pub lost: u64,
    /// Received twice, or after later ones.
    pub duplicated: u64,
    /// Received with other contents than were sent.
    pub corrupt: u64,
    /// Received although never sent.
    pub invented: u64,
    /// Dequeued by a receiver that was killed before it could record it.
    pub in_hand_at_kill: u64,
    /// Published by a sender that was killed before its enqueue returned, and received.
    pub uncommitted_received: u64,
    /// Void because the receiver restarted and the plan says so.
    pub dropped_by_policy: u64,
    /// Announcements that a receiver refused.
    pub refused: u64,
}

/// What the sections of a sender's incarnation said at its end, or say now.
pub trait Sections {
    /// Messages dropped because the receiver restarted.
    fn dropped(&self, channel: u16, incarnation: u32) -> u32;
    /// The present incarnation of a participant.
    fn incarnation(&self, participant: u16) -> u32;
}

/// Draws up the account; exact while nobody sends.
pub fn of(record: &Record, sections: &impl Sections, in_hand_at_kill: u64) -> Messages {
    let mut sum = Messages { in_hand_at_kill, ..Messages::default() };
    for (channel, fifo) in channels() {
        sum.duplicated += u64::from(record.at(channel, At::Duplicated).get());
        sum.corrupt += u64::from(record.at(channel, At::Corrupt).get());
        sum.refused += u64::from(record.at(channel, At::Refused).get());
        for incarnation in 1..=sections.incarnation(fifo.from) {
            let of = |what| u64::from(record.of_incarnation(channel, incarnation, what).get());
            let (committed, received) = (of(In::Committed), of(In::Received));
            let missing = of(In::Missing) + committed.saturating_sub(received);
            let dropped = match fifo.on_restart {
                OnRestart::Keep => 0,
                OnRestart::Drop => u64::from(sections.dropped(channel, incarnation)),
            };
            sum.committed += committed;
            sum.received += received - of(In::Missing);
            sum.lost += missing.saturating_sub(dropped);
            // Said to be dropped, and yet received.
            sum.duplicated += dropped.saturating_sub(missing);
            sum.dropped_by_policy += dropped.min(missing);
            let beyond = received.saturating_sub(committed);
            sum.uncommitted_received += beyond.min(1);
            sum.invented += beyond.saturating_sub(1);
        }
    }
    sum.received -= in_hand_at_kill;
    sum
}

/// What was counted of calls and of the lock.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Calls {
    /// Calls with a deadline.
    pub timed: u64,
    /// Of these, past it by more than the margin and by more than any plain sleep.
    pub late: u64,
    /// Past the margin by no more than a sleep by plain system calls had been before.
    pub late_within_plain_sleeps: u64,
    /// Past it while sleeps by plain system calls were late, too.
    pub late_with_the_machine: u64,
    /// Past it while the caller was stopped.
    pub late_while_stopped: u64,
    /// Longest overrun in microseconds, waiting for a processor not counted.
    pub overrun_us_max: u32,
    /// Longest overrun in microseconds by the clock.
    pub raw_overrun_us_max: u32,
    /// Sleeps by plain system calls, for comparison.
    pub control: u64,
    /// Of these, late by the same rule.
    pub control_late: u64,
    /// Their longest overrun in microseconds.
    pub control_overrun_us_max: u32,
    /// Calls that answered with an error that may not be.
    pub faults: u64,
    /// Losses of a peer that calls reported.
    pub losses_reported: u64,
}

/// The lock of the SMEM channel.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lock {
    /// Turns completed.
    pub turns: u64,
    /// Turns that the counter in the memory shows; more by those killed before they could record theirs.
    pub counter: u64,
    /// Holders that died inside.
    pub died_inside: u64,
    /// Times two were inside.
    pub intruders: u64,
    /// Turns that the counter does not show.
    pub lost_turns: u64,
}

/// Adds up the words of the participants and the supervisor.
pub fn calls(record: &Record) -> Calls {
    let sum = |what: fn() -> Of| (0..=SUPERVISOR).map(|p| u64::from(record.of(p, what()).get())).sum();
    let most = |what: fn() -> Of| (0..=SUPERVISOR).map(|p| record.of(p, what()).get()).max().unwrap_or(0);
    Calls {
        timed: sum(|| Of::Calls),
        late: sum(|| Of::Late),
        late_within_plain_sleeps: sum(|| Of::UsuallyLate),
        late_with_the_machine: sum(|| Of::MachineLate),
        late_while_stopped: sum(|| Of::Stopped),
        overrun_us_max: most(|| Of::OverrunUsMax),
        raw_overrun_us_max: most(|| Of::RawOverrunUsMax),
        control: sum(|| Of::ControlCalls),
        control_late: sum(|| Of::ControlLate),
        control_overrun_us_max: most(|| Of::ControlOverrunUsMax),
        faults: sum(|| Of::Faults),
        losses_reported: sum(|| Of::Losses),
    }
}

/// Adds up what was done under the lock.
pub fn lock(record: &Record) -> Lock {
    let sum = |what: fn() -> Of| (0..=SUPERVISOR).map(|p| u64::from(record.of(p, what()).get())).sum();
    let turns = sum(|| Of::Turns);
    let counter = (0..=SUPERVISOR).map(|p| u64::from(record.of(p, Of::Counter).get())).max().unwrap_or(0);
    let (died_inside, intruders) = (sum(|| Of::Torn), sum(|| Of::Intruders));
    Lock { turns, counter, died_inside, intruders, lost_turns: turns.saturating_sub(counter) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections of two incarnations of each participant; the second dropped this many.
    struct Dropped(u32);

    impl Sections for Dropped {
        fn dropped(&self, _channel: u16, incarnation: u32) -> u32 {
            if incarnation == 2 { self.0 } else { 0 }
        }

        fn incarnation(&self, _participant: u16) -> u32 {
            2
        }
    }

    const KEEPS: u16 = 0;
    const DROPS: u16 = 4;

    fn record(channel: u16, incarnation: u32, committed: u32, received: u32, missing: u32) -> Record {
        let record = Record::create().unwrap();
        record.of_incarnation(channel, incarnation, In::Committed).set(committed);
        record.of_incarnation(channel, incarnation, In::Received).set(received);
        record.of_incarnation(channel, incarnation, In::Missing).set(missing);
        record
    }

    #[test]
    fn what_is_committed_and_received_is_even() {
        let sum = of(&record(KEEPS, 1, 10, 10, 0), &Dropped(0), 1);
        assert_eq!((sum.committed, sum.received, sum.in_hand_at_kill, sum.lost), (10, 9, 1, 0));
    }

    #[test]
    fn a_gap_and_a_missing_end_are_lost() {
        assert_eq!(of(&record(KEEPS, 1, 10, 10, 1), &Dropped(0), 0).lost, 1);
        assert_eq!(of(&record(KEEPS, 2, 10, 8, 0), &Dropped(0), 0).lost, 2);
    }

    #[test]
    fn policy_explains_exactly_what_the_sender_says() {
        let drops = |dropped| of(&record(DROPS, 2, 10, 9, 3), &Dropped(dropped), 0);
        assert_eq!((drops(4).lost, drops(4).dropped_by_policy, drops(4).duplicated), (0, 4, 0));
        assert_eq!((drops(3).lost, drops(3).dropped_by_policy), (1, 3));
        assert_eq!(drops(5).duplicated, 1, "said to be dropped, and yet received");
        assert_eq!(
            of(&record(KEEPS, 2, 10, 9, 3), &Dropped(4), 0).lost,
            4,
            "nothing is dropped by a channel that keeps"
        );
    }

    #[test]
    fn one_message_may_be_received_that_was_not_committed() {
        let beyond = |received| of(&record(KEEPS, 1, 10, received, 0), &Dropped(0), 0);
        assert_eq!((beyond(11).uncommitted_received, beyond(11).invented), (1, 0));
        assert_eq!((beyond(13).uncommitted_received, beyond(13).invented), (1, 2));
    }
}
