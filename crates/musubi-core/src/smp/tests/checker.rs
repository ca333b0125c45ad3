//! Explicit-state checker: every order of the steps of a few cores with masks, pending interrupts and program counters.
//!
//! What you may rely on: [`explore`] visits each reachable state once and reports a broken rule or a deadlock with the
//! states that lead there. [`waits_for_ever`] says whether somebody can be kept waiting while others go on and on.
//!
//! How it works: breadth first over a model's states, as SPIN does without its reductions (Holzmann, 1997). A core that
//! waits has no step until what it waits for has come, so a deadlock is a state without a step that is no end.
//!
//! What it does not do: weak memory, which is the business of the loom models; here a step is atomic.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::vec::Vec;

/// Most states of a model.
const STATES_MAX: usize = 2_000_000;

/// A state of all cores.
pub trait Model: Clone + Eq + Hash + Debug {
    /// Every state that one step of one core can lead to.
    fn next(&self) -> Vec<Self>;
    /// Whether all cores have finished, so that no step is missed.
    fn has_ended(&self) -> bool;
    /// The rule that this state breaks.
    fn broken(&self) -> Option<&'static str> {
        None
    }
}

/// What was found, with the states that lead there.
#[derive(Debug)]
pub enum Failure<M> {
    /// A rule is broken in the last state.
    Broken(&'static str, Vec<M>),
    /// The last state has no step and is no end.
    Deadlock(Vec<M>),
}

impl<M> Failure<M> {
    /// Whether it is a deadlock.
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Failure::Deadlock(_))
    }

    /// The states that lead to the failure.
    pub fn way(&self) -> &[M] {
        match self {
            Failure::Broken(_, way) | Failure::Deadlock(way) => way,
        }
    }
}

/// Visits every state; gives how many there are.
///
/// # Errors
/// The first failure, by a shortest way.
pub fn explore<M: Model>(start: M) -> Result<usize, Failure<M>> {
    let graph = Graph::of(start);
    for (index, state) in graph.states.iter().enumerate() {
        if let Some(rule) = state.broken() {
            return Err(Failure::Broken(rule, graph.way_to(index)));
        }
        if graph.next[index].is_empty() && !state.has_ended() {
            return Err(Failure::Deadlock(graph.way_to(index)));
        }
    }
    Ok(graph.states.len())
}

/// Whether the cores can go round in a circle of states in all of which `waits` holds.
pub fn waits_for_ever<M: Model>(start: M, waits: fn(&M) -> bool) -> bool {
    let graph = Graph::of(start);
    let mut open: Vec<usize> = (0..graph.states.len()).filter(|&index| waits(&graph.states[index])).collect();
    // What has no step to another open state is in no circle; what remains when none such is left is.
    loop {
        let mut is_open = std::vec![false; graph.states.len()];
        open.iter().for_each(|&index| is_open[index] = true);
        let before = open.len();
        open.retain(|&index| graph.next[index].iter().any(|&next| is_open[next]));
        if open.len() == before {
            return !open.is_empty();
        }
    }
}

/// All states and steps.
struct Graph<M> {
    states: Vec<M>,
    /// From which state each was first reached.
    from: Vec<usize>,
    next: Vec<Vec<usize>>,
}

impl<M: Model> Graph<M> {
    fn of(start: M) -> Self {
        let mut numbers = HashMap::from([(start.clone(), 0)]);
        let mut graph = Graph { states: std::vec![start], from: std::vec![0], next: Vec::new() };
        while let Some(state) = graph.states.get(graph.next.len()) {
            let (here, found) = (graph.next.len(), state.next());
            let number_of = |state: M| {
                *numbers.entry(state.clone()).or_insert_with(|| {
                    graph.states.push(state);
                    graph.from.push(here);
                    graph.states.len() - 1
                })
            };
            let next = found.into_iter().map(number_of).collect();
            graph.next.push(next);
            assert!(graph.states.len() <= STATES_MAX, "the model is too large");
        }
        graph
    }

    fn way_to(&self, mut index: usize) -> Vec<M> {
        let mut way = std::vec![self.states[index].clone()];
        while index != 0 {
            index = self.from[index];
            way.push(self.states[index].clone());
        }
        way.reverse();
        way
    }
}

/// A counter that two cores add to in two steps each: the checker finds the lost addition, and without it the end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lost {
    count: u32,
    /// For each core: what it read; `None` before and after.
    read: [Option<u32>; 2],
    left: [u32; 2],
}

impl Model for Lost {
    fn next(&self) -> Vec<Self> {
        let step = |core: usize| {
            let mut state = self.clone();
            match self.read[core] {
                Some(read) => {
                    state.count = read + 1;
                    state.read[core] = None;
                    state.left[core] -= 1;
                }
                None => state.read[core] = Some(self.count),
            }
            state
        };
        (0..2).filter(|&core| self.left[core] > 0).map(step).collect()
    }
    fn has_ended(&self) -> bool {
        self.left == [0, 0]
    }
    fn broken(&self) -> Option<&'static str> {
        (self.has_ended() && self.count != 2).then_some("an addition was lost")
    }
}

#[test]
fn the_checker_finds_a_lost_addition_by_a_shortest_way() {
    let found = explore(Lost { count: 0, read: [None; 2], left: [1, 1] });
    let Err(Failure::Broken(rule, way)) = found else { panic!("{found:?}") };
    assert_eq!((rule, way.len()), ("an addition was lost", 5));
    assert!(explore(Lost { count: 1, read: [None; 2], left: [1, 0] }).is_ok());
}
