//! What slow messages waited for: the gateway's turn on a processor, or anything else.
//!
//! What you may rely on: the kernel's own account, not a guess. Where it keeps none, that is what is said.
//!
//! How it works: `/proc/thread-self/schedstat` counts how long a thread was ready to run while others had the processors.
//! The gateway records that count with each message; what it grew by while a message was under way, the message waited
//! for an ordinary process's turn.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use super::journal::Entry;
use crate::table::grouped;

/// Where the kernel keeps the account.
const ACCOUNT: &str = "/proc/thread-self/schedstat";
/// From here on a message is slow: a period of the loop.
pub const SLOW_NS: u64 = super::system::PERIOD_NS;
/// What an entry says where there is no account.
pub const UNKNOWN: u64 = u64::MAX;

/// The calling thread's account.
#[derive(Debug)]
pub struct Account(Option<File>);

impl Account {
    pub fn of_this_thread() -> Account {
        Account(File::open(ACCOUNT).ok())
    }

    /// How long the thread has been ready to run without running, in nanoseconds; [`UNKNOWN`] without an account.
    pub fn ready_ns(&self) -> u64 {
        let mut text = [0; 96];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|bytes| second_number(&text[..bytes])).unwrap_or(UNKNOWN)
    }
}

fn second_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The slow messages of a run, those apart that waited for a gateway to start or to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slow {
    /// Messages that took a period of the loop or longer.
    pub messages: u64,
    /// Part of their time that the gateway was ready to run and another thread had the processor, in percent; none if
    /// there were no such messages, or the kernel keeps no account.
    pub for_processor_percent: Option<f64>,
}

impl Slow {
    /// Of the entries in the order of the journal.
    pub fn of(entries: &[Entry]) -> Slow {
        let (mut slow, mut took_ns, mut ready_ns, mut known) = (Slow::default(), 0, 0, true);
        for run in entries.chunk_by(|one, other| one.incarnation == other.incarnation) {
            let began_ns = run[0].received_ns;
            for (at, entry) in run.iter().enumerate() {
                let latency_ns = entry.received_ns.saturating_sub(entry.sent_ns);
                if latency_ns < SLOW_NS || entry.sent_ns < began_ns {
                    continue;
                }
                // The last one received before this was sent: the account then.
                let before = run[..at].iter().rev().find(|earlier| earlier.received_ns <= entry.sent_ns);
                let then_ns = before.map_or(UNKNOWN, |earlier| earlier.ready_ns);
                known &= then_ns != UNKNOWN && entry.ready_ns != UNKNOWN;
                slow.messages += 1;
                took_ns += latency_ns;
                ready_ns += entry.ready_ns.saturating_sub(then_ns).min(latency_ns);
            }
        }
        slow.for_processor_percent = (known && took_ns > 0).then(|| 100.0 * ready_ns as f64 / took_ns as f64);
        slow
    }

    /// For people.
    pub fn text(&self) -> String {
        let slower = format!("{} messages took 1 ms or more", grouped(self.messages));
        match (self.messages, self.for_processor_percent) {
            (0, _) => "no message took 1 ms".to_owned(),
            (_, None) => format!("{slower}; the kernel keeps no account of why"),
            (_, Some(percent)) => format!(
                "{slower}: {percent:.0} % of that time the gateway, an ordinary process, was ready and waited for a processor"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn entry(sent_ns: u64, received_ns: u64, ready_ns: u64, incarnation: u32) -> Entry {
        Entry { sequence: 0, sent_ns, received_ns, ready_ns, lateness_ns: 0, incarnation }
    }

    #[test]
    fn the_time_of_slow_messages_is_divided() {
        let fast = [entry(MS, MS + 100, 0, 1), entry(2 * MS, 2 * MS + 100, 0, 1)];
        assert_eq!(Slow::of(&fast), Slow::default());
        // 10 ms under way, 8 of them for a processor; the next was sent 5 ms later and shared the last 5.
        let slow = [fast[0], fast[1], entry(3 * MS, 13 * MS, 8 * MS, 1), entry(8 * MS, 13 * MS, 8 * MS, 1)];
        let seen = Slow::of(&slow);
        assert_eq!((seen.messages, seen.for_processor_percent.map(f64::round)), (2, Some(87.0)));
        assert!(seen.text().contains("2 messages took 1 ms or more: 87 %"), "{}", seen.text());
    }

    #[test]
    fn without_an_account_it_says_so() {
        let slow = [entry(MS, MS + 100, UNKNOWN, 1), entry(3 * MS, 13 * MS, UNKNOWN, 1)];
        assert_eq!(Slow::of(&slow), Slow { messages: 1, for_processor_percent: None });
        assert!(Slow::of(&slow).text().contains("no account"));
    }

    #[test]
    fn messages_that_waited_for_a_gateway_are_not_counted() {
        let waited = [entry(MS, MS + 100, 0, 1), entry(3 * MS, 30 * MS, 0, 2), entry(4 * MS, 30 * MS, 0, 2)];
        assert_eq!(Slow::of(&waited).messages, 0);
    }

    #[test]
    fn the_kernels_account_is_read() {
        assert_eq!(second_number(b"556913 71579 2\n"), Some(71_579));
        assert_eq!(second_number(b""), None);
        let account = Account::of_this_thread();
        let before = account.ready_ns();
        assert!(account.ready_ns() >= before, "it only grows, or is unknown all the time");
    }
}
