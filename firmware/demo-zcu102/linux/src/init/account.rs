//! Where every message is, as far as records and counts tell.
//!
//! What you may rely on: `lost` counts every number that was sent and is neither recorded nor was in a dead receiver's
//! hands; how many those were follows from the dead receiver's own count. Nothing is assumed.
//!
//! How it works: both directions count alike, with numbers that begin at 0 for each incarnation of the sender. A sender
//! that died may have announced a message and not have counted it yet; so what was received counts as sent.

use std::collections::HashSet;

use zcu102_linux::{Answered, Received};

use crate::script::{Evidence, Remote};

/// Where the messages of one direction are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Sent.
    pub sent: u64,
    /// Received and recorded, each counted once.
    pub received: u64,
    /// Taken by a receiver that died before it had recorded or digested them.
    pub in_hand: u64,
    /// Dropped because the receiver had restarted, as the plan says for this channel.
    pub dropped: u64,
    /// Sent, and nowhere.
    pub lost: u64,
    /// Received again.
    pub duplicated: u64,
    /// Received after one that was sent later.
    pub out_of_order: u64,
}

/// Telemetry, from the Master to the processes.
pub fn telemetry(evidence: &Evidence) -> Messages {
    let mut all = Messages::default();
    for (number, master) in evidence.masters.iter().enumerate() {
        let of_master = || evidence.received.iter().filter(|record| record.telemetry.incarnation == master.epoch);
        let (mut seen, mut highest) = (HashSet::new(), None);
        for record in of_master() {
            let sequence = record.telemetry.sequence;
            all.duplicated += u64::from(!seen.insert(sequence));
            all.out_of_order += u64::from(highest > Some(sequence));
            highest = highest.max(Some(sequence));
        }
        let reached = highest.map_or(0, |highest| highest + 1);
        // The last one still sends; what nobody has taken yet is not lost.
        let is_dead = number + 1 < evidence.masters.len();
        let sent = if is_dead { reached.max(master.telemetry_sent) } else { reached };
        all.sent += sent;
        all.received += seen.len() as u64;
    }
    all.in_hand = evidence.remotes.iter().map(|remote| unrecorded(remote, &evidence.received)).sum();
    all.lost = all.sent.saturating_sub(all.received + all.in_hand);
    all
}

/// Messages that a process had taken and not recorded.
fn unrecorded(remote: &Remote, records: &[Received]) -> u64 {
    let recorded = records.iter().filter(|record| record.reader == remote.epoch).count() as u64;
    remote.telemetry_received.saturating_sub(recorded)
}

/// The stream, from the processes to the Master.
pub fn stream(evidence: &Evidence) -> Messages {
    let [first, second] = evidence.remotes;
    let last_of = |remote: Remote, master: u32| {
        let mut answers = evidence.answered.iter().map(|record| record.answer);
        answers.rfind(|answer| answer.sender == remote.epoch && answer.incarnation == master).unwrap_or_default()
    };
    let [former, successor] = evidence.masters;
    // The Master closes the account of the killed process when another one comes.
    let closed = last_of(first, former.epoch);
    let after = last_of(second, successor.epoch);
    // What the Master's former incarnation took of the second process it did not live to tell; its count tells.
    let before = former.stream_received.saturating_sub(closed.messages);
    // One of those was in its hands when it crashed, and counts as taken.
    let sent = first.stream_sent.max(closed.messages) + second.stream_sent;
    let received = closed.messages + before + after.messages;
    let expected_first = before + second.stream_dropped;
    let told_again = expected_first.saturating_sub(after.first_sequence);
    let accounts = [closed, after];
    Messages {
        sent,
        received,
        in_hand: 0,
        dropped: second.stream_dropped,
        lost: sent.saturating_sub(received + second.stream_dropped)
            + accounts.iter().map(|account| u64::from(account.gaps)).sum::<u64>(),
        duplicated: told_again + accounts.iter().map(|account| u64::from(account.repeated)).sum::<u64>(),
        out_of_order: 0,
    }
}

/// Whole passes over the file, and those of them whose digest and length were equal.
pub fn digests(answered: &[Answered]) -> (usize, usize) {
    let whole = || answered.iter().filter(|record| record.answer.whole == 1);
    (whole().count(), whole().filter(|record| record.equal == 1).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Master;
    use zcu102_demo::{Answer, Telemetry};
    use zerocopy::FromZeros;

    fn received(incarnation: u32, reader: u32, sequence: u64) -> Received {
        let telemetry = Telemetry { incarnation, sequence, ..Telemetry::new_zeroed() };
        Received { telemetry, at_ns: 0, reader, reserved: 0 }
    }

    /// Master 1 sent `sent` messages and died; reader 10 took `taken`; then whatever `records` say.
    fn evidence(sent: u64, taken: u64, records: &[(u32, u32, u64)]) -> Evidence {
        let received: Vec<Received> = records.iter().map(|&(master, reader, n)| received(master, reader, n)).collect();
        let of_second = received.iter().filter(|record| record.reader == 20).count() as u64;
        Evidence {
            received,
            masters: [
                Master { epoch: 1, telemetry_sent: sent, stream_received: 0 },
                Master { epoch: 2, ..Master::default() },
            ],
            remotes: [
                Remote { epoch: 10, telemetry_received: taken, ..Remote::default() },
                Remote { epoch: 20, telemetry_received: of_second, ..Remote::default() },
            ],
            ..Evidence::default()
        }
    }

    fn counts(evidence: &Evidence) -> [u64; 5] {
        let all = telemetry(evidence);
        [all.received, all.in_hand, all.lost, all.duplicated, all.out_of_order]
    }

    #[test]
    fn what_a_killed_process_had_in_hand_is_not_lost() {
        assert_eq!(counts(&evidence(3, 1, &[(1, 10, 0), (1, 20, 1), (1, 20, 2), (2, 20, 0)])), [4, 0, 0, 0, 0]);
        assert_eq!(counts(&evidence(4, 2, &[(1, 10, 0), (1, 20, 2), (1, 20, 3)])), [3, 1, 0, 0, 0]);
    }

    #[test]
    fn lost_repeated_and_misplaced_messages_are_found() {
        assert_eq!(counts(&evidence(4, 1, &[(1, 10, 0), (1, 20, 2), (1, 20, 3)])), [3, 0, 1, 0, 0], "lost in between");
        assert_eq!(counts(&evidence(4, 1, &[(1, 10, 0), (1, 20, 1), (1, 20, 2)])), [3, 0, 1, 0, 0], "lost at the end");
        assert_eq!(counts(&evidence(2, 1, &[(1, 10, 0), (1, 20, 0), (1, 20, 1)])), [2, 0, 0, 1, 0]);
        assert_eq!(counts(&evidence(3, 1, &[(1, 10, 0), (1, 20, 2), (1, 20, 1)])), [3, 0, 0, 0, 1]);
        assert_eq!(counts(&evidence(1, 1, &[(1, 10, 0), (2, 20, 0), (2, 20, 2)])), [3, 0, 1, 0, 0], "of the successor");
    }

    fn stream_evidence(closed: u64, taken: u64, sent: [u64; 2], dropped: u64, after: (u64, u64)) -> Evidence {
        let answer = |sender, incarnation, messages, first_sequence| Answered {
            answer: Answer { sender, incarnation, messages, first_sequence, ..Answer::default() },
            sent_bytes: 0,
            equal: 0,
            reader: sender,
        };
        Evidence {
            answered: vec![answer(10, 1, closed, 0), answer(20, 2, after.1, after.0)],
            masters: [
                Master { epoch: 1, telemetry_sent: 0, stream_received: taken },
                Master { epoch: 2, ..Master::default() },
            ],
            remotes: [
                Remote { epoch: 10, stream_sent: sent[0], ..Remote::default() },
                Remote { epoch: 20, stream_sent: sent[1], stream_dropped: dropped, ..Remote::default() },
            ],
            ..Evidence::default()
        }
    }

    #[test]
    fn every_message_of_the_stream_is_received_or_dropped_by_the_plan() {
        // 10 of the first; of the second 6 before the crash, 4 dropped, 20 after it.
        let whole = stream(&stream_evidence(10, 16, [10, 30], 4, (10, 20)));
        assert_eq!((whole.sent, whole.received, whole.dropped, whole.lost, whole.duplicated), (40, 36, 4, 0, 0));
        assert_eq!(stream(&stream_evidence(10, 16, [10, 30], 3, (10, 20))).lost, 1);
        assert_eq!(stream(&stream_evidence(9, 15, [10, 30], 4, (10, 20))).lost, 1);
        assert_eq!(stream(&stream_evidence(10, 16, [10, 30], 4, (9, 21))).duplicated, 1);
    }
}
