//! What a sending end carries of the guarantees: a [`Filter`] and a [`Regulator`], or nothing where the plan asks for none.
//!
//! What you may rely on: an end that carries less refuses a plan that asks for more, so a guarantee is never left out
//! silently. The code and the memory of what is not carried are not in the program.
//!
//! How it works: a sending end has two type parameters. [`Filter`] and [`Regulator`] are the default; an image whose
//! plan is fixed and plain names [`Each`] and [`Unregulated`] instead.

use super::filter::{Filter, Verdict};
use super::regulator::Regulator;
use crate::plan::{FilterRule, Regulation};

/// What decides when a notification is raised.
pub trait Filtering: Sized {
    /// For this rule; `None` if it cannot keep it.
    fn of(rule: FilterRule) -> Option<Self>;
    /// Whether each request is raised at once.
    fn is_each(&self) -> bool;
    /// Whether the number of queued messages plays a part.
    fn counts_queued(&self) -> bool;
    /// One request, with the number of messages that are queued.
    fn offer(&mut self, now_ns: u64, queued: u32) -> Verdict;
}

/// What bounds the rate of messages and bytes.
pub trait Regulating: Sized {
    /// For this rule; `None` if it cannot keep it.
    fn of(regulation: Regulation) -> Option<Self>;
    /// Whether nothing is bounded.
    fn is_none(&self) -> bool;
    /// One message of so many bytes.
    ///
    /// # Errors
    /// Nanoseconds after which it may be admitted.
    fn admit(&mut self, now_ns: u64, bytes: u32) -> Result<(), u64>;
}

/// Each request is raised at once; there is nothing else to carry.
#[derive(Clone, Copy, Debug)]
pub struct Each;

/// Nothing is bounded; there is nothing to carry.
#[derive(Clone, Copy, Debug)]
pub struct Unregulated;

impl Filtering for Filter {
    fn of(rule: FilterRule) -> Option<Self> {
        Some(Filter::new(rule))
    }

    #[inline(always)]
    fn is_each(&self) -> bool {
        Filter::is_each(self)
    }

    #[inline(always)]
    fn counts_queued(&self) -> bool {
        self.rule().level > 0
    }

    #[inline(always)]
    fn offer(&mut self, now_ns: u64, queued: u32) -> Verdict {
        Filter::offer(self, now_ns, queued)
    }
}

impl Filtering for Each {
    fn of(rule: FilterRule) -> Option<Self> {
        rule.is_each().then_some(Each)
    }

    #[inline(always)]
    fn is_each(&self) -> bool {
        true
    }

    #[inline(always)]
    fn counts_queued(&self) -> bool {
        false
    }

    #[inline(always)]
    fn offer(&mut self, _: u64, _: u32) -> Verdict {
        Verdict::Raise
    }
}

impl Regulating for Regulator {
    fn of(regulation: Regulation) -> Option<Self> {
        Some(Regulator::new(regulation))
    }

    #[inline(always)]
    fn is_none(&self) -> bool {
        Regulator::is_none(self)
    }

    #[inline(always)]
    fn admit(&mut self, now_ns: u64, bytes: u32) -> Result<(), u64> {
        Regulator::admit(self, now_ns, bytes)
    }
}

impl Regulating for Unregulated {
    fn of(regulation: Regulation) -> Option<Self> {
        regulation.is_none().then_some(Unregulated)
    }

    #[inline(always)]
    fn is_none(&self) -> bool {
        true
    }

    #[inline(always)]
    fn admit(&mut self, _: u64, _: u32) -> Result<(), u64> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_less_refuses_a_plan_that_asks_for_more() {
        assert!(Each::of(FilterRule::EACH).is_some());
        assert!(Each::of(FilterRule { every: 2, ..FilterRule::EACH }).is_none());
        assert!(Unregulated::of(Regulation::NONE).is_some());
        assert!(Unregulated::of(Regulation { bytes_per_s: 1, ..Regulation::NONE }).is_none());
    }

    #[test]
    fn each_form_says_what_it_is() {
        let filter = |every, level| <Filter as Filtering>::of(FilterRule { every, level, ..FilterRule::EACH }).unwrap();
        let each = <Filter as Filtering>::of(FilterRule::EACH).unwrap();
        assert!(Filtering::is_each(&each) && !Filtering::is_each(&filter(2, 0)));
        assert!(!Filtering::counts_queued(&filter(2, 0)) && Filtering::counts_queued(&filter(2, 1)));
        assert!(Each.is_each() && !Each.counts_queued() && Each.offer(0, 7) == Verdict::Raise);
        let regulator = |messages_per_s, messages_burst| {
            let rule = Regulation { messages_per_s, messages_burst, ..Regulation::NONE };
            <Regulator as Regulating>::of(rule).unwrap()
        };
        assert!(Regulating::is_none(&regulator(0, 0)) && !Regulating::is_none(&regulator(1, 1)));
        assert!(Unregulated.is_none() && Unregulated.admit(0, u32::MAX) == Ok(()));
        let mut slow = regulator(1, 1);
        assert_eq!(Regulating::admit(&mut slow, 0, 1), Ok(()));
        assert_eq!(Regulating::admit(&mut slow, 0, 1), Err(1_000_000_000));
    }
}
