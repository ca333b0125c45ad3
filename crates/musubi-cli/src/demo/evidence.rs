//! What the launcher has seen of a run, and the figures that follow from it.
//!
//! What you may rely on: no figure is assumed. `lost` counts every sequence number that control sent and that is
//! neither in the journal nor was in a dead gateway's hands; how many it had in its hands is read from the dead
//! gateway's own section, where the channel has counted what was dequeued.
//!
//! How it works: the journal ([`super::journal`]) survives the gateway. A gateway dequeues one message at a time and
//! appends it to the journal before it gives the block back. So, for the gateway that was killed: messages taken from
//! the channel (its `TAKEN` word) less entries in the journal = messages in hand, 0 or 1.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::control::{ControlEnd, ControlSays, Start};
use super::journal::Entry;
use super::storage::{Progress, StorageEnd, StorageSays};
use super::system::PERIOD_NS;

/// Significant digits of histograms.
const DIGITS: u8 = 3;
/// The loop counts as disturbed for at least this long after the kill, in nanoseconds.
pub const DISTURBED_NS_MIN: u64 = 100_000_000;
const NS_PER_US: f64 = 1_000.0;

/// What has been seen.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What the gateways recorded, in order.
    pub entries: Vec<Entry>,
    /// How the loop runs.
    pub start: Option<Start>,
    /// What it did.
    pub control: Option<ControlEnd>,
    /// How the stream went.
    pub progress: Vec<Progress>,
    /// What storage did.
    pub storage: Option<StorageEnd>,
    /// The kill.
    pub kill: Option<Kill>,
}

/// The gateway's end.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// Just before the signal, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Messages that the dead gateway had dequeued, from its section; `None` if that could not be seen.
    pub taken: Option<u64>,
}

/// Where the messages are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Messages {
    /// Enqueued by control.
    pub sent: u64,
    /// Not sent, because no block was free.
    pub not_sent: u64,
    /// Different ones in the journal.
    pub received: u64,
    /// In the killed gateway's hands: dequeued, not yet recorded.
    pub in_hand: u64,
    /// Sent, but neither received nor in hand.
    pub lost: u64,
    /// Entries in the journal beyond one a message.
    pub duplicated: u64,
    /// Entries that came after one with a higher number.
    pub out_of_order: u64,
}

/// Quantiles of times in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Samples.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// 99 of 100 are not above.
    pub p99: f64,
    /// 999 of 1000 are not above.
    pub p999: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}

impl Evidence {
    /// Takes in what control says.
    pub fn note_control(&mut self, said: ControlSays) {
        match said {
            ControlSays::Started(start) => self.start = Some(start),
            ControlSays::Ended(end) => self.control = Some(end),
        }
    }

    /// Takes in what storage says.
    pub fn note_storage(&mut self, said: StorageSays) {
        match said {
            StorageSays::Progress(progress) => self.progress.push(progress),
            StorageSays::Ended(end) => self.storage = Some(end),
        }
    }

    /// When the first message came to a gateway.
    pub fn first_received_ns(&self, incarnation: u32) -> Option<u64> {
        self.entries.iter().find(|entry| entry.incarnation == incarnation).map(|entry| entry.received_ns)
    }

    /// From the loop's start to its last cycle, in seconds.
    pub fn seconds_run(&self) -> f64 {
        let last = self.control.as_ref().and_then(|control| control.latenesses.last());
        last.map_or(0.0, |(cycle, _)| (u64::from(*cycle) * PERIOD_NS) as f64 / 1e9)
    }

    /// From the signal to the successor's first message.
    pub fn recovery_ns(&self) -> Option<u64> {
        Some(self.first_received_ns(2)?.saturating_sub(self.kill?.at_ns))
    }

    /// The end of the time that counts as "during the kill".
    pub fn settled_ns(&self) -> Option<u64> {
        let kill_ns = self.kill?.at_ns;
        Some((kill_ns + DISTURBED_NS_MIN).max(self.first_received_ns(2).unwrap_or(u64::MAX)))
    }

    /// Where the messages are.
    pub fn messages(&self) -> Messages {
        let control = self.control.clone().unwrap_or_default();
        let mut seen = vec![false; control.sent as usize];
        let mut messages = Messages { sent: control.sent, not_sent: control.no_block, ..Messages::default() };
        let mut highest = None;
        for entry in &self.entries {
            match seen.get_mut(entry.sequence as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => messages.duplicated += 1,
            }
            messages.out_of_order += u64::from(highest > Some(entry.sequence));
            highest = highest.max(Some(entry.sequence));
        }
        messages.received = seen.iter().filter(|seen| **seen).count() as u64;
        messages.in_hand = self.in_hand(&seen);
        messages.lost = messages.sent - messages.received - messages.in_hand;
        messages
    }

    /// Unrecorded messages among those that the killed gateway had dequeued; sequence numbers begin with the channel's
    /// positions, at 0.
    fn in_hand(&self, seen: &[bool]) -> u64 {
        let taken = self.kill.and_then(|kill| kill.taken).unwrap_or(0);
        let recorded = self.entries.iter().filter(|entry| entry.incarnation == 1).count() as u64;
        (recorded..taken).filter(|sequence| seen.get(*sequence as usize) == Some(&false)).count() as u64
    }

    /// One-way latencies of messages in nanoseconds: with `waited`, of those sent before their receiver had received
    /// its first message; else of the others.
    pub fn latencies_ns(&self, waited: bool) -> impl Iterator<Item = u64> + '_ {
        let mut incarnation = (0, 0);
        self.entries.iter().filter_map(move |entry| {
            if entry.incarnation != incarnation.0 {
                incarnation = (entry.incarnation, entry.received_ns);
            }
            let has_waited = entry.sent_ns < incarnation.1;
            (has_waited == waited).then(|| entry.received_ns.saturating_sub(entry.sent_ns))
        })
    }

    /// Instant and lateness in nanoseconds of each cycle.
    pub fn latenesses(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let begin_ns = self.start.as_ref().map_or(0, |start| start.at_ns);
        let samples = self.control.iter().flat_map(|control| &control.latenesses);
        samples.map(move |(cycle, ns)| (begin_ns + u64::from(*cycle) * PERIOD_NS, u64::from(*ns)))
    }

    /// Lateness before, during and after the kill; without a kill, all is before.
    pub fn lateness_phases(&self) -> [Quantiles; 3] {
        let kill_ns = self.kill.map_or(u64::MAX, |kill| kill.at_ns);
        let settled_ns = self.settled_ns().unwrap_or(u64::MAX);
        let phase = |from: u64, to: u64| {
            Quantiles::of(self.latenesses().filter(|(at, _)| (from..to).contains(at)).map(|(_, ns)| ns))
        };
        [phase(0, kill_ns), phase(kill_ns, settled_ns), phase(settled_ns, u64::MAX)]
    }
}

impl Quantiles {
    /// Of times in nanoseconds.
    pub fn of(samples_ns: impl Iterator<Item = u64>) -> Quantiles {
        let Ok(mut histogram) = Histogram::<u64>::new(DIGITS) else { return Quantiles::default() };
        // It grows to the largest value, so it takes every one.
        samples_ns.for_each(|ns| histogram.record(ns).unwrap_or_default());
        let us = |ns: u64| ns as f64 / NS_PER_US;
        Quantiles {
            n: histogram.len(),
            p50: us(histogram.value_at_quantile(0.5)),
            p99: us(histogram.value_at_quantile(0.99)),
            p999: us(histogram.value_at_quantile(0.999)),
            max: us(histogram.max()),
            mean: histogram.mean() / NS_PER_US,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_all_samples() {
        let quantiles = Quantiles::of((1..=1000).map(|us| us * 1000).chain([0, 3_600_000_000_000]));
        assert_eq!(quantiles.n, 1002);
        assert!((quantiles.p50 - 500.0).abs() < 1.0 && (quantiles.p99 - 991.0).abs() < 2.0, "{quantiles:?}");
        assert!((quantiles.max / 3.6e9 - 1.0).abs() < 0.001, "{quantiles:?}");
    }

    fn evidence(sent: u64, taken: u64, received: &[(u64, u32)]) -> Evidence {
        let entry = |(sequence, incarnation): &(u64, u32)| Entry {
            sequence: *sequence,
            sent_ns: sequence * 1000,
            received_ns: sequence * 1000 + 100 + u64::from(*incarnation - 1) * 5000,
            ready_ns: 0,
            lateness_ns: 0,
            incarnation: *incarnation,
        };
        Evidence {
            entries: received.iter().map(entry).collect(),
            control: Some(ControlEnd { sent, ..ControlEnd::default() }),
            kill: Some(Kill { at_ns: 2500, taken: Some(taken) }),
            ..Evidence::default()
        }
    }

    fn counts(evidence: &Evidence) -> [u64; 5] {
        let messages = evidence.messages();
        [messages.received, messages.in_hand, messages.lost, messages.duplicated, messages.out_of_order]
    }

    #[test]
    fn a_message_in_hand_is_not_a_lost_one_and_a_lost_one_is_found() {
        assert_eq!(counts(&evidence(4, 2, &[(0, 1), (1, 1), (2, 2), (3, 2)])), [4, 0, 0, 0, 0]);
        assert_eq!(counts(&evidence(5, 3, &[(0, 1), (1, 1), (3, 2), (4, 2)])), [4, 1, 0, 0, 0]);
        assert_eq!(counts(&evidence(5, 2, &[(0, 1), (1, 1), (3, 2), (4, 2)])), [4, 0, 1, 0, 0]);
        assert_eq!(counts(&evidence(6, 2, &[(0, 1), (1, 1), (2, 2), (3, 2)])), [4, 0, 2, 0, 0]);
    }

    #[test]
    fn repeated_unknown_and_misplaced_messages_are_found() {
        assert_eq!(counts(&evidence(3, 2, &[(0, 1), (1, 1), (1, 2), (2, 2)])), [3, 0, 0, 1, 0]);
        assert_eq!(counts(&evidence(3, 2, &[(0, 1), (1, 1), (2, 2), (9, 2)])), [3, 0, 0, 1, 0]);
        assert_eq!(counts(&evidence(3, 1, &[(0, 1), (2, 2), (1, 2)])), [3, 0, 0, 0, 1]);
    }

    #[test]
    fn what_waited_for_a_successor_is_kept_apart() {
        let evidence = evidence(12, 2, &[(0, 1), (1, 1), (2, 2), (3, 2), (7, 2), (8, 2)]);
        assert_eq!(evidence.recovery_ns(), Some(2000 + 5100 - 2500));
        assert_eq!(evidence.latencies_ns(true).collect::<Vec<_>>(), [100, 5100, 5100, 5100]);
        assert_eq!(evidence.latencies_ns(false).collect::<Vec<_>>(), [100, 5100]);
    }
}
