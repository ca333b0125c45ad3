//! A rate that allows for bursts.

/// How many come at once and how often.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Rate {
    pub burst: u64,
    pub each_ns: u64,
}

/// A token bucket: the instant since which its tokens count.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Bucket(u64);

impl Bucket {
    /// When the next token is there.
    pub fn due_ns(self, rate: Rate, now_ns: u64) -> u64 {
        self.0.max(now_ns.saturating_sub(rate.burst * rate.each_ns)) + rate.each_ns
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, rate: Rate, now_ns: u64) -> bool {
        let due_ns = self.due_ns(rate, now_ns);
        if due_ns > now_ns {
            return false;
        }
        self.0 = due_ns;
        true
    }
}
