//! Lock-order checker: finds deadlocks that could happen, from executions in which they did not.
//!
//! What you may rely on: each lock belongs to a class that the program names. Reported, once each, are: two classes
//! taken in both orders, also by way of others ([`Violation::Cycle`]); a class taken while held ([`Violation::Twice`]); a
//! class that handlers take and that somebody held with interrupts open ([`Violation::Open`]); a cross call awaited with
//! a class held that handlers take ([`Violation::AwaitedHolding`]); a lock waited for by what is served in the waiting
//! loop of another ([`Violation::WaitedWaiting`]). A report needs no bad timing: it is enough that the parts happened
//! once, in whatever order. A lock without a [`Class`] pays nothing.
//!
//! How it works: the idea is that of Linux's lock validator (2006). For each class a word has a bit for each class that
//! was ever taken while it was held; a new bit that closes a circle is an order that can deadlock. Facts are noted
//! first and contradictions looked for afterwards, both sequentially consistent, so of two cores that note
//! contradicting facts at the same time at least one sees it ([`Site::NoteThenLook`]).
//!
//! What it does not do: follow a lock that is only tried, as nobody waits for it then; tell locks of one class apart.

use crate::smp::cores::Cores;
use crate::smp::watch::Watch;
use crate::smp::{CORES_MAX, Processor};
use crate::sync::{AtomicU32, Ordering, Site, array, constructor, load_after_look, set_then_look};

/// Classes of locks in a program.
pub const CLASSES_MAX: usize = 32;

/// A rule that is broken. Numbers are those of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// `taken` was waited for with `held` held, and elsewhere `held` with `taken` held, directly or by way of others.
    Cycle {
        /// Held by this core.
        held: u8,
        /// Asked for by this core.
        taken: u8,
    },
    /// A core waited for a class that it held.
    Twice {
        /// That class.
        class: u8,
    },
    /// Handlers wait for this class, and somebody held it with interrupts open.
    Open {
        /// That class.
        class: u8,
    },
    /// Handlers wait for this class, and somebody held it while awaiting a cross call.
    AwaitedHolding {
        /// That class.
        class: u8,
    },
    /// What was served in the waiting loop of a lock waited for a lock.
    WaitedWaiting {
        /// What the core waited for.
        awaited: u8,
        /// What it then waited for as well.
        taken: u8,
    },
}

/// What one core does. Writer: that core, with interrupts masked.
#[derive(Debug)]
struct Doing {
    /// Classes that it holds, a bit each.
    held: AtomicU32,
    /// The class that it waits for, plus 1.
    awaited: AtomicU32,
}

/// What is known about the locks of a program. Writers of the facts: all cores, which only set bits.
#[derive(Debug)]
pub struct Order {
    names: &'static [&'static str],
    report: fn(Violation),
    /// For each class: the classes that were waited for while it was held.
    after: [AtomicU32; CLASSES_MAX],
    /// Classes that handlers waited for.
    in_handler: AtomicU32,
    /// Classes that were held with interrupts open.
    held_open: AtomicU32,
    /// Classes that were held while a cross call was awaited.
    held_awaiting: AtomicU32,
    /// Classes whose other rules were broken, so that each is reported once: twice, and waited waiting.
    told: [AtomicU32; 2],
    cores: [Doing; CORES_MAX],
}

impl Order {
    constructor! {
        /// Nothing is known. Class `n` has the name `names[n]`; `report` is called, masked, with each broken rule, and must
        /// not take a watched lock.
        pub fn new(names: &'static [&'static str], report: fn(Violation)) -> Self {
            assert!(names.len() <= CLASSES_MAX, "too many classes");
            Order {
                names,
                report,
                after: array![AtomicU32::new(0); CLASSES_MAX],
                in_handler: AtomicU32::new(0),
                held_open: AtomicU32::new(0),
                held_awaiting: AtomicU32::new(0),
                told: array![AtomicU32::new(0); 2],
                cores: array![Doing { held: AtomicU32::new(0), awaited: AtomicU32::new(0) }; CORES_MAX],
            }
        }
    }

    /// The name of a class.
    pub fn name(&self, class: u8) -> &'static str {
        self.names.get(usize::from(class)).copied().unwrap_or("?")
    }

    /// The classes that a core holds, as bits, and the one that it waits for. Old at once; for reports.
    pub fn doing(&self, core: usize) -> (u32, Option<u8>) {
        self.cores.get(core).map_or((0, None), |doing| {
            let awaited = doing.awaited.load(Ordering::Relaxed);
            (doing.held.load(Ordering::Relaxed), (awaited as u8).checked_sub(1))
        })
    }

    /// To be told by whoever is about to wait for a cross call's completion by `targets`.
    pub fn awaits_call<P: Processor>(&self, targets: Cores) {
        if targets.is_empty() {
            return;
        }
        let held = self.own::<P>().held.load(Ordering::Relaxed);
        let new = held & !set_then_look(&self.held_awaiting, held, Site::NoteThenLook);
        self.report_each(new & load_after_look(&self.in_handler), |class| Violation::AwaitedHolding { class });
    }

    fn own<P: Processor>(&self) -> &Doing {
        &self.cores[P::core() % CORES_MAX]
    }

    /// This core waits for a class.
    fn note_asking<P: Processor>(&self, class: u8) {
        let doing = self.own::<P>();
        let held = doing.held.load(Ordering::Relaxed);
        if held & bit(class) != 0 {
            self.tell_once(0, class, Violation::Twice { class });
        }
        if let Some(awaited) = (doing.awaited.load(Ordering::Relaxed) as u8).checked_sub(1) {
            self.tell_once(1, class, Violation::WaitedWaiting { awaited, taken: class });
        }
        if P::level() > 0 {
            self.note_in_handler(class);
        }
        for before in classes(held & !bit(class)) {
            self.note_pair(before, class);
        }
    }

    pub(in crate::smp) fn note_in_handler(&self, class: u8) {
        if set_then_look(&self.in_handler, bit(class), Site::NoteThenLook) & bit(class) != 0 {
            return;
        }
        self.report_each(bit(class) & load_after_look(&self.held_open), |class| Violation::Open { class });
        let awaiting = bit(class) & load_after_look(&self.held_awaiting);
        self.report_each(awaiting, |class| Violation::AwaitedHolding { class });
    }

    /// `taken` was waited for while `held` was held.
    pub(in crate::smp) fn note_pair(&self, held: u8, taken: u8) {
        let row = &self.after[usize::from(held)];
        if row.load(Ordering::Relaxed) & bit(taken) != 0 {
            return;
        }
        set_then_look(row, bit(taken), Site::NoteThenLook);
        if self.reachable_from(taken) & bit(held) != 0 {
            (self.report)(Violation::Cycle { held, taken });
        }
    }

    /// Classes that were taken while `class` was held, and so on. Each class is looked at once.
    fn reachable_from(&self, class: u8) -> u32 {
        let (mut found, mut looked) = (bit(class), 0);
        for _ in 0..CLASSES_MAX {
            let Some(next) = classes(found & !looked).next() else { break };
            looked |= bit(next);
            found |= load_after_look(&self.after[usize::from(next)]);
        }
        found
    }

    pub(in crate::smp) fn note_open(&self, class: u8) {
        let before = set_then_look(&self.held_open, bit(class), Site::NoteThenLook);
        self.report_each(bit(class) & !before & load_after_look(&self.in_handler), |class| Violation::Open { class });
    }

    fn tell_once(&self, rule: usize, class: u8, violation: Violation) {
        if self.told[rule].fetch_or(bit(class), Ordering::Relaxed) & bit(class) == 0 {
            (self.report)(violation);
        }
    }

    fn report_each(&self, broken: u32, violation: fn(u8) -> Violation) {
        classes(broken).for_each(|class| (self.report)(violation(class)));
    }
}

fn bit(class: u8) -> u32 {
    1 << (u32::from(class) % CLASSES_MAX as u32)
}

fn classes(set: u32) -> impl Iterator<Item = u8> {
    (0..CLASSES_MAX as u8).filter(move |&class| set & bit(class) != 0)
}

/// Watches a lock for the order checker.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    order: &'static Order,
    number: u8,
}

impl Class {
    /// The class with this number in `order`.
    ///
    /// # Panics
    /// If the order has no such class; at compile time where the lock is a static.
    pub const fn new(order: &'static Order, number: u8) -> Self {
        assert!((number as usize) < order.names.len(), "no such class");
        Class { order, number }
    }
}

impl Watch for Class {
    /// What this core waited for before.
    type Asked = u32;

    fn asks<P: Processor>(&self, tries: bool) -> u32 {
        let doing = self.order.own::<P>();
        let before = doing.awaited.load(Ordering::Relaxed);
        if !tries {
            self.order.note_asking::<P>(self.number);
            doing.awaited.store(u32::from(self.number) + 1, Ordering::Relaxed);
        }
        before
    }

    fn takes<P: Processor>(&self, before: u32, _ahead: u32) {
        let doing = self.order.own::<P>();
        doing.awaited.store(before, Ordering::Relaxed);
        doing.held.store(doing.held.load(Ordering::Relaxed) | bit(self.number), Ordering::Relaxed);
    }

    fn gives<P: Processor>(&self) {
        if !P::is_masked() {
            self.order.note_open(self.number);
        }
        let held = &self.order.own::<P>().held;
        held.store(held.load(Ordering::Relaxed) & !bit(self.number), Ordering::Relaxed);
    }
}
