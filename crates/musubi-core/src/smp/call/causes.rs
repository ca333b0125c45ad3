//! Why a core is interrupted: one hardware interrupt, many causes.
//!
//! What you may rely on: causes of one core are bits of one word, so they coalesce and never overwrite one another; a
//! raise is one read-modify-write and at most one ring. Whoever finds a cause pending does not ring again, and nobody
//! rings at a core that polls; no order of events leaves a cause that its core is neither rung for nor going to look at.
//!
//! How it works: a raiser adds its bits and then looks at the flag *polling*; a core that stops polling clears the flag and
//! then looks at its causes. This is Dekker's pattern: at least one sees the other. (Linux/M32R had one register a cause
//! and one argument slot, so that requests waited for each other; Zephyr defers rings in a word that all cores share and
//! lost those that a core took for itself, pull requests 105596 and 113181.)

use crate::smp::cores::Cores;
use crate::sync::{self, AtomicU32, Site, constructor};

/// Number of causes that a program may define for itself.
pub const PROGRAM_CAUSES: u32 = 8;
const PROGRAM_FIRST: u32 = 24;

/// A set of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Causes(u32);

impl Causes {
    /// No cause.
    pub const NONE: Causes = Causes(0);
    /// The core should choose anew what it runs.
    pub const RESCHEDULE: Causes = Causes(1);
    /// A cross call is queued.
    pub const CALL: Causes = Causes(1 << 1);
    /// The instruction cache is to be flushed.
    pub const FLUSH_INSTRUCTIONS: Causes = Causes(1 << 2);
    /// The data cache is to be written back and flushed.
    pub const FLUSH_DATA: Causes = Causes(1 << 3);
    /// Cached address translations are to be flushed.
    pub const FLUSH_TRANSLATIONS: Causes = Causes(1 << 4);
    /// The core is to stop.
    pub const STOP: Causes = Causes(1 << 5);
    /// The timer of the core that broadcasts has ticked.
    pub const TICK: Causes = Causes(1 << 6);

    /// A cause of the program's own, by its number below [`PROGRAM_CAUSES`]; larger numbers wrap around.
    pub const fn program(number: u32) -> Self {
        Causes(1 << (PROGRAM_FIRST + number % PROGRAM_CAUSES))
    }

    /// The causes as bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The causes whose bits are set.
    pub const fn from_bits(bits: u32) -> Self {
        Causes(bits)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Causes) -> bool {
        self.0 & other.0 == other.0
    }

    /// The causes of both sets.
    pub const fn with(self, other: Causes) -> Self {
        Causes(self.0 | other.0)
    }

    /// The program's own causes among these, as a set of numbers.
    pub(crate) fn of_program(self) -> Cores {
        Cores::from_mask(self.0 >> PROGRAM_FIRST)
    }
}

impl core::fmt::Display for Causes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const NAMES: [&str; 7] =
            ["reschedule", "call", "flush instructions", "flush data", "flush translations", "stop", "tick"];
        let named = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & 1 << bit != 0);
        for (index, (_, name)) in named.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        match self.of_program() {
            own if own.is_empty() => Ok(()),
            own => write!(f, " (the program's own: {own})"),
        }
    }
}

/// What a raiser has to do after it added a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// Ring: the core has not been rung for what is pending.
    Ring,
    /// Nothing: another cause was pending, so it has been rung, or will be by whoever raised that one.
    Pending,
    /// Nothing: it polls.
    Polling,
}

/// What other cores want of one core.
#[derive(Debug)]
pub struct Inbox {
    /// Writers: any core adds bits; only the owner takes them out.
    causes: AtomicU32,
    /// Whether the owner looks at its causes by itself. Writer: the owner, with interrupts masked.
    polling: AtomicU32,
}

impl Inbox {
    constructor! {
        /// Nothing is wanted.
        #[allow(clippy::new_without_default, reason = "inboxes are part of a static")]
        pub fn new() -> Self {
            Self { causes: AtomicU32::new(0), polling: AtomicU32::new(0) }
        }
    }

    /// Adds causes for the owner. The caller masks its interrupts until it has done what this answers: a handler of the
    /// same core that came between would find the cause pending and rely on a ring that comes too late for it.
    #[inline]
    pub fn raise(&self, causes: Causes) -> Raised {
        let before = sync::add_bits_then_look(&self.causes, causes.0, Site::PublishCause, Site::CauseThenLook);
        if before != 0 {
            Raised::Pending
        } else if sync::load_after_look(&self.polling) != 0 {
            Raised::Polling
        } else {
            Raised::Ring
        }
    }

    /// Takes all causes. Only the owner calls this.
    #[inline]
    pub fn take(&self) -> Causes {
        match self.is_quiet() {
            true => Causes::NONE,
            false => Causes(self.causes.swap(0, sync::acquire(Site::TakeCauses))),
        }
    }

    /// Whether there is no cause.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        sync::load_after_look(&self.causes) == 0
    }

    /// From here on the owner takes its causes by itself, so that nobody needs to ring. With interrupts masked.
    /// Gives whether it polled before, for [`Inbox::end_polling`].
    #[inline]
    pub fn begin_polling(&self) -> bool {
        let before = sync::load_after_look(&self.polling) != 0;
        sync::store_then_look(&self.polling, 1, Site::PollThenLook);
        before
    }

    /// Goes back to what was before [`Inbox::begin_polling`]. The owner must look at its causes once more after this.
    #[inline]
    pub fn end_polling(&self, before: bool) {
        sync::store_then_look(&self.polling, u32::from(before), Site::PollThenLook);
    }

    /// Whether the owner polls, as of now.
    pub fn is_polling(&self) -> bool {
        sync::load_after_look(&self.polling) != 0
    }
}
