//! Filter: decides whether a notification is worth raising now (seed 000 "filter"; seed 004 interrupt-rate control).
//!
//! What you may rely on: no request is held longer than the rule's `latest_ns`, whatever the other conditions say, as
//! long as the caller asks [`Filter::due`] at the instant that [`Verdict::Hold`] named; so no wake-up is ever lost. Two
//! notifications are at least `interval_ns_min` apart unless `latest_ns` is shorter than that and forces one.
//!
//! How it works: a request *meets* the rule if it is the `every`-th since the last notification, or if `level` messages
//! are queued; a rule once met stays met until a notification is raised. A notification is raised
//! - when the rule is met and the last notification is `interval_ns_min` ago, or there was none yet;
//! - when the oldest held request is `latest_ns` old.
//!
//! Whichever comes first is the instant in [`Verdict::Hold`]. A later request may meet the rule and so name an earlier
//! instant, never a later one: the caller sets its timer anew at each `Hold` that differs from the one before. A
//! `latest_ns` of 0 raises every request.
//!
//! What it does not do: keep the timer, or ring. The sender's end asks, its port rings and keeps the timer.

use super::{SPAN_NS_MAX, elapsed_ns};
use crate::plan::FilterRule;

/// What to do with a request to notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Notify now; it covers all requests held so far.
    Raise,
    /// Do not notify yet.
    Hold {
        /// Ask [`Filter::due`] at this instant at the latest, in nanoseconds of the caller's clock.
        latest_at_ns: u64,
    },
}

/// The filter of one channel end.
#[derive(Clone, Debug)]
pub struct Filter {
    /// [`FilterRule::is_each`] of the rule, so that the usual case is one test.
    each: bool,
    /// Whether the level was reached since the last notification.
    met: bool,
    rule: FilterRule,
    /// Requests since the last notification; stays at its largest value.
    requests: u32,
    /// When the oldest held request came.
    held_since_ns: Option<u64>,
    last_raise_ns: Option<u64>,
}

impl Filter {
    /// A filter that has not seen a request. Spans above [`SPAN_NS_MAX`] count as that.
    pub const fn new(rule: FilterRule) -> Self {
        let (each, rule) = (rule.is_each(), normal(rule));
        Filter { each, met: false, rule, requests: 0, held_since_ns: None, last_raise_ns: None }
    }

    /// Whether every request is raised at once, so that the caller needs no time and no queue length.
    #[inline]
    pub const fn is_each(&self) -> bool {
        self.each
    }

    /// A notification is asked for while `queued` messages wait.
    #[inline]
    pub fn offer(&mut self, now_ns: u64, queued: u32) -> Verdict {
        if self.each { Verdict::Raise } else { self.weigh(now_ns, queued) }
    }

    fn weigh(&mut self, now_ns: u64, queued: u32) -> Verdict {
        self.requests = self.requests.saturating_add(1);
        self.met |= self.rule.level > 0 && queued >= self.rule.level;
        let since_ns = *self.held_since_ns.get_or_insert(now_ns);
        match self.left_ns(since_ns, now_ns) {
            0 => {
                self.raised(now_ns);
                Verdict::Raise
            }
            left => Verdict::Hold { latest_at_ns: now_ns.wrapping_add(left) },
        }
    }

    /// Time until the request held since `since_ns` must be raised.
    fn left_ns(&self, since_ns: u64, now_ns: u64) -> u64 {
        let met = self.met || self.requests >= self.rule.every;
        let until_latest = self.rule.latest_ns.saturating_sub(elapsed_ns(since_ns, now_ns));
        match self.last_raise_ns {
            _ if !met => until_latest,
            None => 0,
            Some(last) => until_latest.min(self.rule.interval_ns_min.saturating_sub(elapsed_ns(last, now_ns))),
        }
    }

    /// Whether a held request must be raised now. If so it counts as raised: the caller notifies.
    pub fn due(&mut self, now_ns: u64) -> bool {
        let Some(since_ns) = self.held_since_ns else { return false };
        let due = self.left_ns(since_ns, now_ns) == 0;
        if due {
            self.raised(now_ns);
        }
        due
    }

    /// The instant at which [`Filter::due`] will say yes; `None` if no request is held.
    pub fn due_at_ns(&self, now_ns: u64) -> Option<u64> {
        let since_ns = self.held_since_ns?;
        Some(now_ns.wrapping_add(self.left_ns(since_ns, now_ns)))
    }

    /// Until when a request that came now would be held, as long as no other comes; `None` if it would be raised at once.
    pub fn shut_until_ns(&self, now_ns: u64) -> Option<u64> {
        if self.each {
            return None;
        }
        match self.clone().weigh(now_ns, 0) {
            Verdict::Raise => None,
            Verdict::Hold { latest_at_ns } => Some(latest_at_ns),
        }
    }

    /// A notification was raised elsewhere, for a reason of its own; it covers all requests held so far.
    pub fn raised(&mut self, now_ns: u64) {
        self.met = false;
        self.requests = 0;
        self.held_since_ns = None;
        self.last_raise_ns = Some(now_ns);
    }

    /// Changes the rule while running. Gives whether a held request must be raised now under the new rule; if so it
    /// counts as raised: the caller notifies.
    #[must_use]
    pub fn set_rule(&mut self, now_ns: u64, rule: FilterRule) -> bool {
        (self.each, self.rule) = (rule.is_each(), normal(rule));
        self.due(now_ns)
    }

    /// The rule in force.
    pub const fn rule(&self) -> FilterRule {
        self.rule
    }
}

/// The rule with its spans in the range that [`elapsed_ns`] can reach, and its count at least 1.
const fn normal(rule: FilterRule) -> FilterRule {
    FilterRule {
        every: if rule.every == 0 { 1 } else { rule.every },
        level: rule.level,
        interval_ns_min: if rule.interval_ns_min > SPAN_NS_MAX { SPAN_NS_MAX } else { rule.interval_ns_min },
        latest_ns: if rule.latest_ns > SPAN_NS_MAX { SPAN_NS_MAX } else { rule.latest_ns },
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{cases, length};
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const EVERY_SECOND: FilterRule = FilterRule { every: 2, level: 0, interval_ns_min: 0, latest_ns: 1_000 };

    #[test]
    fn every_second_request_and_the_odd_one_in_time() {
        let mut filter = Filter::new(EVERY_SECOND);
        assert_eq!(filter.offer(10, 1), Verdict::Hold { latest_at_ns: 1_010 });
        assert_eq!(filter.offer(20, 2), Verdict::Raise);
        assert!(!filter.due(5_000), "nothing is held");
        assert_eq!(filter.offer(5_000, 1), Verdict::Hold { latest_at_ns: 6_000 });
        assert!(!filter.due(5_999));
        assert!(filter.due(6_000));
        assert!(!filter.due(6_000), "once");
    }

    #[test]
    fn a_level_raises_before_the_count() {
        let mut filter = Filter::new(FilterRule { every: 100, level: 3, interval_ns_min: 0, latest_ns: 1_000 });
        assert_eq!(filter.offer(0, 2), Verdict::Hold { latest_at_ns: 1_000 });
        assert_eq!(filter.offer(1, 3), Verdict::Raise);
    }

    #[test]
    fn an_interval_is_kept_until_latest_breaks_it() {
        let mut filter = Filter::new(FilterRule { every: 1, level: 0, interval_ns_min: 500, latest_ns: 200 });
        assert_eq!(filter.offer(0, 1), Verdict::Raise);
        assert_eq!(filter.offer(100, 1), Verdict::Hold { latest_at_ns: 300 });
        assert!(filter.due(300));
        let mut patient = Filter::new(FilterRule { every: 1, level: 0, interval_ns_min: 500, latest_ns: 9_000 });
        assert_eq!(patient.offer(0, 1), Verdict::Raise);
        assert_eq!(patient.offer(100, 1), Verdict::Hold { latest_at_ns: 500 });
        assert_eq!(patient.due_at_ns(200), Some(500));
        assert_eq!(patient.offer(500, 1), Verdict::Raise);
    }

    #[test]
    fn the_count_does_not_wrap() {
        let rule = FilterRule { every: u32::MAX, level: 0, interval_ns_min: 9, latest_ns: u64::MAX };
        let mut filter = Filter::new(rule);
        filter.raised(0);
        filter.requests = u32::MAX - 2;
        assert_eq!(filter.offer(1, 0), Verdict::Hold { latest_at_ns: 1 + SPAN_NS_MAX });
        assert_eq!(filter.offer(2, 0), Verdict::Hold { latest_at_ns: 9 });
        assert_eq!(filter.offer(3, 0), Verdict::Hold { latest_at_ns: 9 });
        assert_eq!(filter.requests, u32::MAX);
        assert_eq!(filter.offer(9, 0), Verdict::Raise);
    }

    #[test]
    fn a_new_rule_lets_go_what_the_old_one_held() {
        let mut filter = Filter::new(EVERY_SECOND);
        let _ = filter.offer(0, 1);
        assert!(filter.set_rule(1, FilterRule::EACH));
        assert!(!filter.due(u64::MAX / 4));
        assert!(!filter.set_rule(2, EVERY_SECOND));
        assert_eq!(filter.offer(3, 1), Verdict::Hold { latest_at_ns: 1_003 });
    }

    /// The definition, said again in wide integers over the whole history.
    struct Model {
        rule: FilterRule,
        held: Vec<(i128, u32)>,
        last_raise: Option<i128>,
    }

    impl Model {
        fn raises_at(&self) -> Option<i128> {
            let latest = self.held.first()?.0 + i128::from(self.rule.latest_ns);
            let counted = self.held.len() >= self.rule.every.max(1) as usize;
            let full = self.rule.level > 0 && self.held.iter().any(|&(_, queued)| queued >= self.rule.level);
            let spaced = self.last_raise.map_or(i128::MIN, |last| last + i128::from(self.rule.interval_ns_min));
            Some(if counted || full { latest.min(spaced) } else { latest })
        }

        fn ask(&mut self, now: i128) -> bool {
            let raise = self.raises_at().is_some_and(|at| at <= now);
            if raise {
                self.held.clear();
                self.last_raise = Some(now);
            }
            raise
        }
    }

    fn rules() -> impl Strategy<Value = FilterRule> {
        let span = prop_oneof![Just(0u64), 0..50u64, 0..2_000u64];
        (0..6u32, 0..6u32, span.clone(), span).prop_map(|(every, level, interval_ns_min, latest_ns)| FilterRule {
            every,
            level,
            interval_ns_min,
            latest_ns,
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Offer(u32),
        Timer,
        Elsewhere,
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let pause = prop_oneof![2 => Just(0u64), 3 => 0..60u64, 1 => 0..3_000u64];
        let step =
            prop_oneof![6 => (0..8u32).prop_map(Step::Offer), 3 => Just(Step::Timer), 1 => Just(Step::Elsewhere)];
        prop::collection::vec((pause, step), 0..length(80))
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// The filter does what the definition says, also where the clock wraps.
        #[test]
        fn agrees_with_the_definition(rule in rules(), steps in steps(), to_wrap in 0..4_000u64) {
            let start = u64::MAX - to_wrap;
            let mut filter = Filter::new(rule);
            let mut model = Model { rule, held: Vec::new(), last_raise: None };
            let mut now = 0i128;
            for (pause, step) in steps {
                now += i128::from(pause);
                let clock = start.wrapping_add(now as u64);
                match step {
                    Step::Offer(queued) => {
                        model.held.push((now, queued));
                        let expected = match model.ask(now) {
                            true => Verdict::Raise,
                            false => Verdict::Hold {
                                latest_at_ns: start.wrapping_add(model.raises_at().unwrap() as u64),
                            },
                        };
                        let shut_until_ns = filter.shut_until_ns(clock);
                        prop_assert_eq!(filter.offer(clock, queued), expected);
                        if queued == 0 {
                            let held_until_ns = match expected {
                                Verdict::Raise => None,
                                Verdict::Hold { latest_at_ns } => Some(latest_at_ns),
                            };
                            prop_assert_eq!(shut_until_ns, held_until_ns, "what was said of a request before it came");
                        }
                    }
                    Step::Timer => prop_assert_eq!(filter.due(clock), model.ask(now)),
                    Step::Elsewhere => {
                        filter.raised(clock);
                        model.held.clear();
                        model.last_raise = Some(now);
                    }
                }
            }
        }

        /// With a timer that keeps the named instants, no request waits longer than `latest_ns`, and notifications keep
        /// their interval unless `latest_ns` is shorter.
        #[test]
        fn no_request_waits_too_long(rule in rules(), offers in prop::collection::vec((0..400u64, 0..8u32), 1..length(60))) {
            let mut filter = Filter::new(rule);
            let (mut now, mut timer, mut waiting) = (0u64, None::<u64>, Vec::<u64>::new());
            let mut raises = Vec::new();
            for (pause, queued) in offers {
                let until = now + pause;
                while let Some(at) = timer.filter(|&at| at <= until) {
                    prop_assert!(filter.due(at), "due at the instant that Hold named");
                    raises.push(at);
                    prop_assert!(waiting.drain(..).all(|came| at - came <= rule.latest_ns));
                    timer = None;
                }
                now = until;
                waiting.push(now);
                match filter.offer(now, queued) {
                    Verdict::Raise => {
                        raises.push(now);
                        prop_assert!(waiting.drain(..).all(|came| now - came <= rule.latest_ns));
                        timer = None;
                    }
                    Verdict::Hold { latest_at_ns } => {
                        prop_assert!(latest_at_ns > now && timer.is_none_or(|before| latest_at_ns <= before));
                        timer = Some(latest_at_ns);
                    }
                }
            }
            if rule.latest_ns >= rule.interval_ns_min {
                prop_assert!(raises.windows(2).all(|pair| pair[1] - pair[0] >= rule.interval_ns_min));
            }
        }

        /// No time, however far back or ahead, panics.
        #[test]
        fn any_time_is_survived(rule in any::<(u32, u32, u64, u64)>(), times in prop::collection::vec(any::<(u64, u32)>(), 0..length(40))) {
            let (every, level, interval_ns_min, latest_ns) = rule;
            let mut filter = Filter::new(FilterRule { every, level, interval_ns_min, latest_ns });
            for (now, queued) in times {
                if let Verdict::Hold { latest_at_ns } = filter.offer(now, queued) {
                    prop_assert_eq!(filter.due_at_ns(now), Some(latest_at_ns));
                    prop_assert!(elapsed_ns(now, latest_at_ns) > 0);
                }
            }
        }
    }
}
