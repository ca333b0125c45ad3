//! Priority: a small class number, 0 the most urgent, decides who comes first (HDOSP's QoS value, a VI's service class).
//!
//! What you may rely on: [`Schedule::next`] gives a ready member of the most urgent class that has one; within a class
//! every member that stays ready comes up once in each round, so none starves among its equals. Every call is a fixed
//! number of steps, whatever the number of members.
//!
//! How it works: a set of ready members is one 64-bit mask a class, the classes with ready members are one mask over
//! them; the first member at or after the class's turn is found with a rotation and a count of zeros.
//!
//! What it does not do: bound the wait of a less urgent class; that is the work of a [`super::Regulator`] on the more
//! urgent one. It also keeps no messages: a member is ready until [`Schedule::idle`] says otherwise.

use crate::plan::PRIORITIES;

/// Most members of a [`Schedule`].
pub const MEMBERS_MAX: u8 = 64;

/// A priority class. It orders as a queue does: the lesser comes first, class 0 before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Class 0.
    pub const MOST_URGENT: Priority = Priority(0);
    /// The last class.
    pub const LEAST_URGENT: Priority = Priority(PRIORITIES - 1);
    /// How many there are, for tables that have one entry a class.
    pub const COUNT: usize = PRIORITIES as usize;

    /// All, the most urgent first.
    pub fn all() -> impl DoubleEndedIterator<Item = Priority> + ExactSizeIterator {
        (0..PRIORITIES).map(Priority)
    }

    /// The class with this number; `None` if it is not below [`PRIORITIES`].
    pub const fn new(class: u8) -> Option<Priority> {
        if class < PRIORITIES { Some(Priority(class)) } else { None }
    }

    /// Number of the class, below [`PRIORITIES`].
    pub const fn class(self) -> u8 {
        self.0
    }

    /// Whether this comes before the other.
    pub const fn is_before(self, other: Priority) -> bool {
        self.0 < other.0
    }

    /// Its place in a table of [`Priority::COUNT`] entries.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The ready members of a wait-set, most urgent first. A member is a number below [`MEMBERS_MAX`].
#[derive(Clone, Debug)]
pub struct Schedule {
    class_of: [Priority; MEMBERS_MAX as usize],
    /// Ready members of each class, a bit a member.
    ready: [u64; PRIORITIES as usize],
    /// Classes that have ready members, a bit a class.
    classes: u32,
    /// The member of each class that is looked at first.
    turn: [u8; PRIORITIES as usize],
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// A schedule in which nobody is ready and everybody is of the least urgent class.
    pub const fn new() -> Self {
        Schedule {
            class_of: [Priority::LEAST_URGENT; MEMBERS_MAX as usize],
            ready: [0; PRIORITIES as usize],
            classes: 0,
            turn: [0; PRIORITIES as usize],
        }
    }

    /// Gives a member its class; it stays ready if it was. `false`, and nothing changed, if there is no such member.
    pub fn assign(&mut self, member: u8, priority: Priority) -> bool {
        let was_ready = self.is_ready(member);
        self.idle(member);
        let Some(class_of) = self.class_of.get_mut(usize::from(member)) else { return false };
        *class_of = priority;
        if was_ready {
            self.ready(member);
        }
        true
    }

    /// The member has something to do. `false`, and nothing changed, if there is no such member.
    pub fn ready(&mut self, member: u8) -> bool {
        let Some(&class) = self.class_of.get(usize::from(member)) else { return false };
        self.ready[class.index()] |= 1 << member;
        self.classes |= 1 << class.class();
        true
    }

    /// The member has nothing to do. `false`, and nothing changed, if there is no such member.
    pub fn idle(&mut self, member: u8) -> bool {
        let Some(&class) = self.class_of.get(usize::from(member)) else { return false };
        let ready = &mut self.ready[class.index()];
        *ready &= !(1 << member);
        if *ready == 0 {
            self.classes &= !(1 << class.class());
        }
        true
    }

    /// Whether the member has something to do.
    pub fn is_ready(&self, member: u8) -> bool {
        self.class_of.get(usize::from(member)).is_some_and(|class| self.ready[class.index()] & (1 << member) != 0)
    }

    /// Whether nobody has anything to do.
    pub const fn is_empty(&self) -> bool {
        self.classes == 0
    }

    /// The member whose turn it is; it stays ready, and the turn passes on to the others of its class. `None` if nobody
    /// is ready.
    #[allow(clippy::should_implement_trait, reason = "not an iterator: members stay until they are idle")]
    pub fn next(&mut self) -> Option<u8> {
        if self.classes == 0 {
            return None;
        }
        let class = self.classes.trailing_zeros() as usize;
        let turn = self.turn[class];
        let ahead = self.ready[class].rotate_right(u32::from(turn)).trailing_zeros() as u8;
        let member = (turn + ahead) % MEMBERS_MAX;
        self.turn[class] = (member + 1) % MEMBERS_MAX;
        Some(member)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{cases, length};
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn class(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    #[test]
    fn class_zero_comes_first() {
        assert!(class(0) < class(1) && class(0).is_before(class(1)));
        assert_eq!(Priority::new(PRIORITIES), None);
        assert_eq!(class(PRIORITIES - 1), Priority::LEAST_URGENT);
        let mut schedule = Schedule::new();
        schedule.assign(3, class(5));
        schedule.assign(60, class(1));
        schedule.ready(3);
        assert_eq!(schedule.next(), Some(3));
        schedule.ready(60);
        assert_eq!((schedule.next(), schedule.next()), (Some(60), Some(60)));
        schedule.idle(60);
        assert_eq!(schedule.next(), Some(3));
        schedule.idle(3);
        assert_eq!((schedule.next(), schedule.is_empty()), (None, true));
    }

    #[test]
    fn equals_take_turns() {
        let mut schedule = Schedule::new();
        for member in [0, 7, 63] {
            schedule.ready(member);
        }
        let turns: Vec<_> = (0..6).filter_map(|_| schedule.next()).collect();
        assert_eq!(turns, [0, 7, 63, 0, 7, 63]);
    }

    #[test]
    fn no_such_member() {
        let mut schedule = Schedule::new();
        assert!(!schedule.ready(MEMBERS_MAX) && !schedule.idle(255) && !schedule.assign(64, class(0)));
        assert!(!schedule.is_ready(64) && schedule.is_empty());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Assign(u8, u8),
        Ready(u8),
        Idle(u8),
        Next,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let member = prop_oneof![0..8u8, 56..66u8, any::<u8>()];
        let step = prop_oneof![
            (member.clone(), 0..PRIORITIES).prop_map(|(member, class)| Step::Assign(member, class)),
            member.clone().prop_map(Step::Ready),
            member.prop_map(Step::Idle),
            Just(Step::Next),
        ];
        prop::collection::vec(step, 0..length(200))
    }

    /// What the schedule says, as a list in order of service: each class is a ring that begins at its turn.
    struct Model {
        class: [Option<u8>; 64],
        ready: [bool; 64],
        turn: [usize; PRIORITIES as usize],
    }

    impl Model {
        fn next(&mut self) -> Option<u8> {
            for class in 0..PRIORITIES {
                let turn = self.turn[usize::from(class)];
                let ring = (turn..64).chain(0..turn);
                let mut mine = ring.filter(|&m| self.ready[m] && self.class[m].unwrap_or(PRIORITIES - 1) == class);
                if let Some(member) = mine.next() {
                    self.turn[usize::from(class)] = (member + 1) % 64;
                    return Some(member as u8);
                }
            }
            None
        }
    }

    proptest! {
        #![proptest_config(cases(150))]

        #[test]
        fn agrees_with_a_list(steps in steps()) {
            let (mut schedule, mut model) = (Schedule::new(), Model { ready: [false; 64], class: [None; 64], turn: [0; 8] });
            for step in steps {
                match step {
                    Step::Assign(member, number) => {
                        prop_assert_eq!(schedule.assign(member, class(number)), member < 64);
                        if let Some(class) = model.class.get_mut(usize::from(member)) {
                            *class = Some(number);
                        }
                    }
                    Step::Ready(member) | Step::Idle(member) => {
                        let ready = matches!(step, Step::Ready(_));
                        let known = if ready { schedule.ready(member) } else { schedule.idle(member) };
                        prop_assert_eq!(known, member < 64);
                        if let Some(flag) = model.ready.get_mut(usize::from(member)) {
                            *flag = ready;
                        }
                        prop_assert_eq!(schedule.is_ready(member), ready && member < 64);
                    }
                    Step::Next => prop_assert_eq!(schedule.next(), model.next()),
                }
                prop_assert_eq!(schedule.is_empty(), model.ready.iter().all(|&ready| !ready));
            }
        }

        /// Whatever else is ready in the class, a member that stays ready is served within one round.
        #[test]
        fn nobody_starves_among_equals(before in 0..100usize, members: u64, waiting in 0..64u8) {
            let mut schedule = Schedule::new();
            (0..64).filter(|m| members & (1 << m) != 0 || *m == waiting).for_each(|m| { schedule.ready(m); });
            (0..before).for_each(|_| { schedule.next(); });
            let round = members.count_ones() as usize + 1;
            prop_assert!((0..round).any(|_| schedule.next() == Some(waiting)));
        }
    }
}
