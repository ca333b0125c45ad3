//! What a node may put onto one link, by class: core's [`Regulator`] for each class that has a rule.
//!
//! What you may rely on: over any time no more frames and bytes of a class are admitted than its rule says. A class that is
//! held holds up no other. Memory is one regulator a class that has a rule; a link without rules has none of this.
//!
//! How it works: a frame is admitted as a whole, by its payload, before its first piece goes; refused, its class is *held*
//! until the instant at which the same frame will be admitted. [`Regulators::due_ns`] says when the next such instant is, so
//! that the owner need not try before.
//!
//! What it does not do: queue. The session keeps what waits within its window; over shared memory the sender does.

use alloc::vec::Vec;

use musubi_core::guarantee::Regulator;

use crate::Priority;
use crate::topology::ClassRule;

/// The regulated classes of one link.
#[derive(Debug)]
pub struct Regulators {
    classes: Vec<Regulated>,
}

/// A class with a rule.
#[derive(Debug)]
struct Regulated {
    class: Priority,
    regulator: Regulator,
    /// Nothing of it is admitted before; `None` if it is not held.
    held_until_ns: Option<u64>,
    waited: u64,
}

impl Regulators {
    /// By these rules; `None` if they bound nothing.
    pub fn of(rules: &[ClassRule]) -> Option<Regulators> {
        let bounded = rules.iter().filter(|rule| !rule.regulation.is_none());
        let classes: Vec<Regulated> = bounded
            .map(|rule| Regulated {
                class: rule.class,
                regulator: Regulator::new(rule.regulation),
                held_until_ns: None,
                waited: 0,
            })
            .collect();
        (!classes.is_empty()).then_some(Regulators { classes })
    }

    /// Whether a frame of so many bytes of payload may go now; then it counts as gone. If not, its class is held.
    pub fn admit(&mut self, now_ns: u64, class: Priority, bytes: u32) -> bool {
        let Some(regulated) = self.classes.iter_mut().find(|regulated| regulated.class == class) else { return true };
        if regulated.held_until_ns.is_some_and(|until_ns| now_ns < until_ns) {
            return false;
        }
        regulated.held_until_ns = None;
        let Err(retry_ns) = regulated.regulator.admit(now_ns, bytes) else { return true };
        regulated.held_until_ns = Some(now_ns.saturating_add(retry_ns));
        regulated.waited += 1;
        false
    }

    /// Classes whose time has come are held no longer. Gives them, a bit each.
    pub fn release(&mut self, now_ns: u64) -> u8 {
        let mut released = 0;
        for regulated in &mut self.classes {
            if regulated.held_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some() {
                released |= 1 << regulated.class.class();
            }
        }
        released
    }

    /// The next instant at which [`Regulators::release`] gives something; `u64::MAX` if nothing is held.
    pub fn due_ns(&self) -> u64 {
        self.classes.iter().filter_map(|regulated| regulated.held_until_ns).min().unwrap_or(u64::MAX)
    }

    /// Frames of a class that had to wait.
    pub fn waited(&self, class: Priority) -> u64 {
        self.classes.iter().find(|regulated| regulated.class == class).map_or(0, |regulated| regulated.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use musubi_core::plan::{FilterRule, Regulation};

    const MILLISECOND_NS: u64 = 1_000_000;

    fn class(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    fn rule(number: u8, messages_per_s: u32, messages_burst: u32) -> ClassRule {
        let regulation = Regulation { messages_per_s, messages_burst, ..Regulation::NONE };
        ClassRule { class: class(number), regulation, filter: FilterRule::EACH }
    }

    #[test]
    fn without_bounds_there_is_nothing() {
        assert!(Regulators::of(&[]).is_none());
        assert!(Regulators::of(&[rule(3, 0, 0)]).is_none());
        assert!(Regulators::of(&[rule(3, 0, 0), rule(4, 1, 1)]).is_some_and(|of| of.classes.len() == 1));
    }

    #[test]
    fn a_class_is_held_until_its_time_and_holds_up_no_other() {
        let mut regulators = Regulators::of(&[rule(2, 1000, 1), rule(4, 100, 2)]).unwrap();
        assert_eq!(regulators.due_ns(), u64::MAX);
        assert!(regulators.admit(0, class(4), 9) && regulators.admit(0, class(4), 9));
        assert!(!regulators.admit(0, class(4), 9));
        assert!(!regulators.admit(5, class(4), 9), "still");
        assert_eq!((regulators.waited(class(4)), regulators.due_ns()), (1, 10 * MILLISECOND_NS));
        assert!((0..9).all(|_| regulators.admit(5, class(3), 9)), "no rule");
        assert!(regulators.admit(5, class(2), 9) && !regulators.admit(5, class(2), 9));
        assert_eq!(regulators.due_ns(), MILLISECOND_NS + 5);
        assert_eq!(regulators.release(MILLISECOND_NS + 4), 0);
        assert_eq!(regulators.release(MILLISECOND_NS + 5), 1 << 2);
        assert_eq!(regulators.release(10 * MILLISECOND_NS), 1 << 4);
        assert_eq!(regulators.due_ns(), u64::MAX);
        assert!(regulators.admit(10 * MILLISECOND_NS, class(4), 9), "at the instant that was named");
        assert!(!regulators.admit(10 * MILLISECOND_NS, class(4), 9));
        assert_eq!(regulators.waited(class(4)), 2);
    }
}
