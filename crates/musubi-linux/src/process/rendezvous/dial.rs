//! Calls to participants that may be there: when to try, and when again.
//!
//! How it works: everybody listens before it connects to the others. So of any two participants, the one that listened
//! later finds the other; "nobody listens there" is a final answer, because who comes later will call us.

/// First pause before a busy participant is called again, in nanoseconds; doubles each time.
pub(crate) const PAUSE_NS_MIN: u64 = 1_000_000;
/// Longest such pause, in nanoseconds.
pub(crate) const PAUSE_NS_MAX: u64 = 100_000_000;

/// A call to a participant that may be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dial {
    /// Connected, and waiting for the answer on this connection.
    pub(crate) connection: Option<u32>,
    /// When to call (again) if not connected.
    pub(crate) due_ns: u64,
    pub(crate) pause_ns: u64,
}

impl Dial {
    pub(crate) fn at(due_ns: u64) -> Dial {
        Dial { connection: None, due_ns, pause_ns: PAUSE_NS_MIN }
    }

    /// Calls again after a pause.
    pub(crate) fn postpone(&mut self, now_ns: u64) {
        self.connection = None;
        self.due_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut dial = Dial { connection: Some(1), ..Dial::at(5) };
        let mut pauses = Vec::new();
        for now_ns in (0..9).map(|round| round * 1_000) {
            dial.postpone(now_ns);
            assert_eq!(dial.connection, None);
            pauses.push((dial.due_ns - now_ns) / PAUSE_NS_MIN);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
    }
}
