//! Whether a frame that arrives wakes who sleeps now, by class: core's [`Filter`] for each class that has a rule.
//!
//! What you may rely on: what comes is always taken in at once; only the wake-up is put off, at most until its rule's latest
//! time, if the owner asks [`Notifier::due`] at [`Notifier::due_ns`]. A class wakes no more often than its rule says. Classes
//! without a rule, control always among them, wake at once.
//!
//! How it works: whoever wakes a sleeper has it look at everything, so a wake-up for any reason is good for all that was put off.
//!
//! What it does not do: wake, or keep the time; know what carries the frames.

use alloc::vec::Vec;

use musubi_core::guarantee::{Filter, Verdict};

use crate::Priority;
use crate::topology::ClassRule;

/// What became of the wake-ups that the frames of a class asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeCounts {
    /// Frames that came.
    pub frames: u64,
    /// Of those, how many woke at once.
    pub raised: u64,
    /// Wake-ups that came later, when the rule's time was over; each for all frames until then.
    pub deferred: u64,
    /// The longest that one of these was put off, nanoseconds.
    pub longest_deferral_ns: u64,
}

impl WakeCounts {
    /// Frames for which nobody was woken: the next wake-up was theirs, too.
    pub fn suppressed(&self) -> u64 {
        self.frames - self.raised - self.deferred
    }
}

/// The filtered classes of one node.
#[derive(Debug)]
pub struct Notifier {
    classes: Vec<Filtered>,
}

/// A class with a rule.
#[derive(Debug)]
struct Filtered {
    class: Priority,
    filter: Filter,
    /// When the oldest frame came that nobody was woken for, if there is one.
    held_since_ns: Option<u64>,
    counts: WakeCounts,
}

impl Notifier {
    /// By these rules; `None` if each frame wakes.
    pub fn of(rules: &[ClassRule]) -> Option<Notifier> {
        let filtered = rules.iter().filter(|rule| !rule.filter.is_each());
        let classes: Vec<Filtered> = filtered
            .map(|rule| Filtered {
                class: rule.class,
                filter: Filter::new(rule.filter),
                held_since_ns: None,
                counts: WakeCounts::default(),
            })
            .collect();
        (!classes.is_empty()).then_some(Notifier { classes })
    }

    /// A frame came for which somebody might be woken; whether it is done now. Tell [`Notifier::woken`] then.
    pub fn came(&mut self, now_ns: u64, class: Priority) -> bool {
        let Some(filtered) = self.classes.iter_mut().find(|filtered| filtered.class == class) else { return true };
        filtered.counts.frames += 1;
        let raise = filtered.filter.offer(now_ns, 0) == Verdict::Raise;
        filtered.counts.raised += u64::from(raise);
        filtered.held_since_ns = if raise { None } else { filtered.held_since_ns.or(Some(now_ns)) };
        raise
    }

    /// Whether a wake-up that was put off must come now. Tell [`Notifier::woken`] then.
    pub fn due(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        for filtered in &mut self.classes {
            if filtered.filter.due(now_ns) {
                let counts = &mut filtered.counts;
                counts.deferred += 1;
                let since_ns = filtered.held_since_ns.take().unwrap_or(now_ns);
                counts.longest_deferral_ns = counts.longest_deferral_ns.max(now_ns.saturating_sub(since_ns));
                any = true;
            }
        }
        any
    }

    /// The next instant at which [`Notifier::due`] says so; `u64::MAX` if nothing was put off.
    pub fn due_ns(&self, now_ns: u64) -> u64 {
        self.classes.iter().filter_map(|filtered| filtered.filter.due_at_ns(now_ns)).min().unwrap_or(u64::MAX)
    }

    /// Classes whose frames would wake somebody who sleeps from now on, a bit each, and the instant at which to look again, as
    /// then one more may; `u64::MAX` if all would. Nothing is lost if frames of the others do not even disturb who sleeps.
    pub fn open(&self, now_ns: u64) -> (u8, u64) {
        let (mut open, mut look_at_ns) = (u8::MAX, u64::MAX);
        for Filtered { class, filter, .. } in &self.classes {
            if let Some(until_ns) = filter.shut_until_ns(now_ns) {
                open &= !(1 << class.class());
                look_at_ns = look_at_ns.min(until_ns);
            }
        }
        (open, look_at_ns)
    }

    /// Whether who sleeps can be kept from being disturbed without that a rule holds longer than it says: each rule has an
    /// interval only, and none counts what came.
    pub fn is_by_time_alone(&self) -> bool {
        self.classes.iter().all(|Filtered { filter, .. }| filter.rule().every <= 1)
    }

    /// Somebody has been woken, for whatever reason: nothing is put off any more.
    pub fn woken(&mut self, now_ns: u64) {
        for filtered in &mut self.classes {
            if filtered.filter.due_at_ns(now_ns).is_some() {
                filtered.filter.raised(now_ns);
            }
            filtered.held_since_ns = None;
        }
    }

    /// What became of the frames of all classes that have a rule.
    pub fn totals(&self) -> WakeCounts {
        self.classes.iter().fold(WakeCounts::default(), |sum, Filtered { counts, .. }| WakeCounts {
            frames: sum.frames + counts.frames,
            raised: sum.raised + counts.raised,
            deferred: sum.deferred + counts.deferred,
            longest_deferral_ns: sum.longest_deferral_ns.max(counts.longest_deferral_ns),
        })
    }

    /// What became of the frames of each class that has a rule.
    pub fn by_class(&self) -> impl Iterator<Item = (Priority, WakeCounts)> {
        self.classes.iter().map(|Filtered { class, counts, .. }| (*class, *counts))
    }

    /// What became of the frames of a class; zeros if it has no rule.
    pub fn counts(&self, class: Priority) -> WakeCounts {
        let filtered = self.classes.iter().find(|filtered| filtered.class == class);
        filtered.map_or_else(WakeCounts::default, |filtered| filtered.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use musubi_core::plan::{FilterRule, Regulation};
    use proptest::prelude::*;

    const MILLISECOND_NS: u64 = 1_000_000;

    fn class(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    fn rule(number: u8, interval_ns_min: u64, latest_ns: u64) -> ClassRule {
        let filter = FilterRule { interval_ns_min, latest_ns, ..FilterRule::EACH };
        ClassRule { class: class(number), regulation: Regulation::NONE, filter }
    }

    #[test]
    fn a_class_is_shut_from_a_wake_up_until_its_next_one_may_come() {
        let mut notifier = Notifier::of(&[rule(3, 100, 500), rule(5, 1000, 300)]).unwrap();
        assert!(notifier.is_by_time_alone());
        assert_eq!(notifier.open(0), (0xff, u64::MAX), "nobody was woken yet");
        assert!(notifier.came(10, class(3)));
        assert_eq!(notifier.open(10), (!(1 << 3), 110));
        assert_eq!(notifier.open(109), (!(1 << 3), 110));
        assert_eq!(notifier.open(110), (0xff, u64::MAX));
        assert!(notifier.came(50, class(5)));
        assert_eq!(notifier.open(60), (!(1 << 3 | 1 << 5), 110), "the first that opens");
        assert_eq!(notifier.open(120), (!(1 << 5), 420), "at most as late as the rule's latest time");
        let counting = ClassRule { filter: FilterRule { every: 2, ..FilterRule::EACH }, ..rule(2, 0, 0) };
        assert!(!Notifier::of(&[rule(3, 100, 500), counting]).unwrap().is_by_time_alone());
    }

    #[test]
    fn without_filters_there_is_nothing() {
        assert!(Notifier::of(&[]).is_none());
        assert!(Notifier::of(&[rule(3, 0, 7)]).is_none());
    }

    #[test]
    fn a_class_wakes_once_in_its_interval_and_others_at_once() {
        let mut notifier = Notifier::of(&[rule(4, 10 * MILLISECOND_NS, 20 * MILLISECOND_NS)]).unwrap();
        assert!(notifier.came(0, class(4)));
        assert_eq!(notifier.due_ns(0), u64::MAX);
        assert!((1..1000).all(|now_ns| !notifier.came(now_ns, class(4))));
        assert!((1..1000).all(|now_ns| notifier.came(now_ns, class(1)) && notifier.came(now_ns, class(0))));
        assert_eq!(notifier.due_ns(1000), 10 * MILLISECOND_NS);
        assert!(!notifier.due(10 * MILLISECOND_NS - 1));
        assert!(notifier.due(10 * MILLISECOND_NS));
        assert!(!notifier.due(10 * MILLISECOND_NS), "once");
        let counts = notifier.counts(class(4));
        assert_eq!(
            (counts, counts.suppressed()),
            (WakeCounts { frames: 1000, raised: 1, deferred: 1, longest_deferral_ns: 10 * MILLISECOND_NS - 1 }, 998)
        );
        assert_eq!(notifier.counts(class(1)), WakeCounts::default());
    }

    #[test]
    fn a_wake_up_for_another_reason_is_good_for_what_was_put_off() {
        let mut notifier = Notifier::of(&[rule(4, 10, 20)]).unwrap();
        assert!(notifier.came(0, class(4)) && !notifier.came(1, class(4)));
        notifier.woken(5);
        assert_eq!(notifier.due_ns(5), u64::MAX);
        assert!(!notifier.came(14, class(4)) && notifier.due(15), "the interval begins with that");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// A sleeper is told of every frame by its class's latest time, and no class wakes it more often than its rule says.
        #[test]
        fn none_is_told_late_and_no_class_wakes_too_often(
            spans in (0..2_000u64, 0..2_000u64, 0..2_000u64, 0..2_000u64),
            frames in proptest::collection::vec((0..400u64, 1..5u8), 1..80),
        ) {
            let of = |number, interval_ns: u64, more_ns: u64| rule(number, interval_ns + 1, interval_ns + 1 + more_ns);
            let rules = [of(2, spans.0, spans.1), of(4, spans.2, spans.3)];
            let mut notifier = Notifier::of(&rules).unwrap();
            let latest = |number: u8| rules.iter().find(|rule| rule.class.class() == number).map_or(0, |rule| rule.filter.latest_ns);
            let (mut now_ns, mut waiting, mut wakes) = (0, Vec::<(u64, u8)>::new(), [Vec::<u64>::new(), Vec::new()]);
            for (pause_ns, number) in frames {
                let until_ns = now_ns + pause_ns;
                while notifier.due_ns(now_ns) <= until_ns {
                    now_ns = notifier.due_ns(now_ns);
                    let before = [2, 4].map(|number| notifier.counts(class(number)).deferred);
                    prop_assert!(notifier.due(now_ns));
                    notifier.woken(now_ns);
                    for (place, number) in [2, 4].into_iter().enumerate() {
                        if notifier.counts(class(number)).deferred > before[place] {
                            wakes[place].push(now_ns);
                        }
                    }
                    prop_assert!(waiting.drain(..).all(|(came_ns, number)| now_ns - came_ns <= latest(number)));
                }
                now_ns = until_ns;
                waiting.push((now_ns, number));
                if notifier.came(now_ns, class(number)) {
                    notifier.woken(now_ns);
                    if number % 2 == 0 {
                        wakes[usize::from(number / 2 - 1)].push(now_ns);
                    }
                    prop_assert!(waiting.drain(..).all(|(came_ns, number)| now_ns - came_ns <= latest(number)));
                }
            }
            let each = [2, 4].map(|number| notifier.counts(class(number)));
            let sum = |of: fn(&WakeCounts) -> u64| each.iter().map(of).sum::<u64>();
            let totals = WakeCounts { frames: sum(|c| c.frames), raised: sum(|c| c.raised), deferred: sum(|c| c.deferred), longest_deferral_ns: each.iter().map(|c| c.longest_deferral_ns).max().unwrap_or(0) };
            prop_assert_eq!(notifier.totals(), totals);
            for (rule, wakes) in rules.iter().zip(&wakes) {
                prop_assert!(wakes.windows(2).all(|pair| pair[1] - pair[0] >= rule.filter.interval_ns_min));
            }
        }
    }
}
