//! How long a call may wait: the paper's poll, time, or forever.

use core::time::Duration;

use musubi_core::channel::{Attachment, Deadline};

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// For this long from now.
    For(Duration),
    /// Until this instant of the port's clock, in nanoseconds.
    Until(u64),
    /// As long as it takes.
    Forever,
}

impl Wait {
    pub(crate) fn from_deadline(deadline: Deadline) -> Wait {
        match deadline {
            Deadline::Poll => Wait::Poll,
            Deadline::At(ns) => Wait::Until(ns),
            Deadline::Forever => Wait::Forever,
        }
    }

    pub(crate) fn deadline(self, attachment: &impl Attachment) -> Deadline {
        match self {
            Wait::Poll => Deadline::Poll,
            Wait::Until(ns) => Deadline::At(ns),
            Wait::Forever => Deadline::Forever,
            Wait::For(time) => {
                let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                Deadline::At(attachment.now_ns().saturating_add(ns))
            }
        }
    }
}
