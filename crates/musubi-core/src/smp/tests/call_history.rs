//! Failures of other kernels' interrupts between cores as models that fail, and the same with our rules, which pass.
//!
//! What it does not do: run our code; the loom models do. Here are the rules, with masks and interrupts as steps.

use std::vec::Vec;

use super::checker::{Failure, Model, explore};

/// Linux/M32R's head.S: a starting core reads the word of arrivals, adds its bit, and stores the bare bit. Ours: each core
/// has a mailbox.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Arrivals {
    has_mailboxes: bool,
    word: u8,
    /// For each core: 0 not here, 1 has read the word, 2 has stored.
    cores: [u8; 2],
}

impl Arrivals {
    fn step(&self, core: usize) -> Option<Self> {
        let mut state = self.clone();
        match self.cores[core] {
            0 => {}
            1 if self.has_mailboxes => state.word |= 1 << core,
            1 => state.word = 1 << core,
            _ => return None,
        }
        state.cores[core] += 1;
        Some(state)
    }
}

impl Model for Arrivals {
    fn next(&self) -> Vec<Self> {
        (0..2).filter_map(|core| self.step(core)).collect()
    }
    fn has_ended(&self) -> bool {
        self.cores == [2, 2]
    }
    fn broken(&self) -> Option<&'static str> {
        let arrived = |core: usize| self.cores[core] < 2 || self.word & 1 << core != 0;
        (!arrived(0) || !arrived(1)).then_some("a core that has arrived is not seen")
    }
}

#[test]
fn a_stored_bare_bit_loses_another_cores_arrival() {
    let old = Arrivals { has_mailboxes: false, word: 0, cores: [0, 0] };
    assert!(matches!(explore(old.clone()), Err(Failure::Broken(..))));
    assert!(explore(Arrivals { has_mailboxes: true, ..old }).is_ok());
}

/// One slot for the cause (Linux/M32R's single argument slot without its lock; Zephyr's intel_adsp before pull request
/// 114131): two cores write their cause and ring, the third takes what it finds. Ours: a mask.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slot {
    is_mask: bool,
    causes: u8,
    rung: bool,
    /// For each raiser: 0 begins, 1 has written its cause, 2 has rung.
    raisers: [u8; 2],
    taken: u8,
}

impl Slot {
    fn raise(&self, raiser: usize) -> Option<Self> {
        let mut state = self.clone();
        let bit = 1 << raiser;
        match self.raisers[raiser] {
            0 if self.is_mask => state.causes |= bit,
            0 => state.causes = bit,
            1 => state.rung = true,
            _ => return None,
        }
        state.raisers[raiser] += 1;
        Some(state)
    }

    fn take(&self) -> Option<Self> {
        self.rung.then(|| Slot { rung: false, causes: 0, taken: self.taken | self.causes, ..self.clone() })
    }
}

impl Model for Slot {
    fn next(&self) -> Vec<Self> {
        [self.raise(0), self.raise(1), self.take()].into_iter().flatten().collect()
    }
    fn has_ended(&self) -> bool {
        self.raisers == [2, 2] && !self.rung
    }
    fn broken(&self) -> Option<&'static str> {
        (self.has_ended() && self.taken != 0b11).then_some("a cause was lost")
    }
}

#[test]
fn a_slot_for_one_cause_is_overwritten() {
    let old = Slot { is_mask: false, causes: 0, rung: false, raisers: [0, 0], taken: 0 };
    assert!(matches!(explore(old.clone()), Err(Failure::Broken("a cause was lost", _))));
    assert!(explore(Slot { is_mask: true, ..old }).is_ok());
}

/// How rings are handed out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Dispatch {
    /// Zephyr before pull requests 105596 and 113181: a word of cores to ring at, which all cores share; whoever comes by
    /// takes all bits, rings at the others and drops its own bit.
    SharedTakesAll,
    /// As above, but a core leaves its own bit (113181); then whoever flags rings too, though another may have taken the
    /// flag before the work was there (119708, as we read it).
    SharedKeepsOwn,
    /// Ours: the work is written first, then the cause in the target's own word, and the raiser rings itself.
    Own,
}

/// Core 0 has work for core 1. Core 1 runs, comes by the place where rings are handed out, and sleeps until interrupted;
/// core 2 comes by there as well. An interrupt has core 1 look for work.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pending {
    dispatch: Dispatch,
    flagged: bool,
    work: bool,
    rung: bool,
    /// Core 0: steps done.
    raiser: u8,
    /// Whether cores 1 and 2 have come by.
    came_by: [bool; 2],
    asleep: bool,
    found: bool,
}

impl Pending {
    fn new(dispatch: Dispatch) -> Self {
        let [flagged, work, rung, asleep, found] = [false; 5];
        Pending { dispatch, flagged, work, rung, raiser: 0, came_by: [false; 2], asleep, found }
    }

    fn raise(&self) -> Option<Self> {
        let mut state = self.clone();
        match (self.dispatch, self.raiser) {
            // The thread is made ready a moment after the flag; a core that looks before that finds nothing.
            (Dispatch::SharedKeepsOwn, 0) => state.flagged = true,
            (Dispatch::SharedKeepsOwn, 1) => state.work = true,
            (_, 0) => state.work = true,
            (_, 1) => state.flagged = true,
            (Dispatch::Own, 2) => state.rung = true,
            (_, 2) => state.rung |= core::mem::take(&mut state.flagged),
            _ => return None,
        }
        state.raiser += 1;
        Some(state)
    }

    /// Core 1 or 2 hands out what is flagged.
    fn come_by(&self, core: usize) -> Option<Self> {
        if self.came_by[core - 1] {
            return None;
        }
        let mut state = self.clone();
        state.came_by[core - 1] = true;
        match (self.dispatch, core) {
            (Dispatch::Own, _) | (Dispatch::SharedKeepsOwn, 1) => {}
            (Dispatch::SharedTakesAll, 1) => state.flagged = false,
            _ => state.rung |= core::mem::take(&mut state.flagged),
        }
        Some(state)
    }

    /// Core 1 goes to sleep, after it has come by and found no work; or is interrupted and looks.
    fn target(&self) -> Option<Self> {
        let mut state = self.clone();
        if self.rung {
            state.rung = false;
            state.found |= self.work;
            state.asleep &= !self.work;
        } else if self.came_by[0] && !self.asleep && !self.found {
            state.asleep = true;
        } else {
            return None;
        }
        Some(state)
    }
}

impl Model for Pending {
    fn next(&self) -> Vec<Self> {
        [self.raise(), self.come_by(1), self.come_by(2), self.target()].into_iter().flatten().collect()
    }
    fn has_ended(&self) -> bool {
        self.found
    }
}

#[test]
fn a_shared_word_of_pending_rings_loses_wake_ups() {
    let lost = |dispatch| match explore(Pending::new(dispatch)) {
        Err(failure) => failure.is_deadlock() && failure.way().last().is_some_and(|last| last.asleep && last.work),
        Ok(_) => false,
    };
    assert!(lost(Dispatch::SharedTakesAll), "105596 and 113181: the core that sleeps has dropped its own bit");
    assert!(lost(Dispatch::SharedKeepsOwn), "119708: another rang before the work was there");
    assert!(explore(Pending::new(Dispatch::Own)).is_ok_and(|states| states > 20));
}

/// Two cores call each other, with interrupts masked, and wait for completion; a third is dead. Old: waits have no end and
/// do not serve. Ours: they serve, and have a deadline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Calls {
    serves: bool,
    has_deadline: bool,
    /// Which core each calls; core 2 never answers.
    targets: [usize; 2],
    /// For each caller: 0 begins, 1 waits, 2 has its answer, 3 gave up.
    at: [u8; 2],
    /// Whether a call of each caller is open.
    open: [bool; 2],
}

impl Calls {
    fn step(&self, core: usize) -> Option<Self> {
        let mut state = self.clone();
        state.at[core] = match self.at[core] {
            0 => {
                state.open[core] = true;
                1
            }
            1 if !self.open[core] => 2,
            1 if self.has_deadline && self.targets[core] == 2 => {
                // Withdrawn.
                state.open[core] = false;
                3
            }
            _ => return None,
        };
        Some(state)
    }

    /// The core runs the call that the other made: in the wait, or at the end, when interrupts are open again.
    fn serve(&self, core: usize) -> Option<Self> {
        let other = 1 - core;
        let may = self.at[core] >= 2 || (self.at[core] == 1 && self.serves);
        (may && self.open[other] && self.targets[other] == core).then(|| {
            let mut state = self.clone();
            state.open[other] = false;
            state
        })
    }
}

impl Model for Calls {
    fn next(&self) -> Vec<Self> {
        (0..2).flat_map(|core| [self.step(core), self.serve(core)]).flatten().collect()
    }
    fn has_ended(&self) -> bool {
        self.at.iter().all(|&at| at >= 2) && self.open == [false; 2]
    }
}

#[test]
fn masked_cores_that_call_each_other_need_to_serve() {
    let old = Calls { serves: false, has_deadline: true, targets: [1, 0], at: [0; 2], open: [false; 2] };
    assert!(explore(old.clone()).is_err_and(|failure| failure.is_deadlock()));
    assert!(explore(Calls { serves: true, ..old }).is_ok());
}

#[test]
fn a_dead_core_holds_up_who_waits_without_a_deadline() {
    let old = Calls { serves: true, has_deadline: false, targets: [2, 0], at: [0; 2], open: [false; 2] };
    assert!(explore(old.clone()).is_err_and(|failure| failure.is_deadlock()));
    assert!(explore(Calls { has_deadline: true, ..old }).is_ok());
}
