//! MCAPI between nodes that each run for themselves: cores, tasks or threads.
//!
//! What you may rely on: no operating system and no threads are asked for, only a heap; the cases know the Rust interface of
//! MCAPI and nothing else. Each wait ends within [`PATIENCE_NS`].
//!
//! How it works: each node calls [`run`] with its own [`Part`], all at the same time. Node 2k and node 2k + 1 are partners: the
//! even one sends in most cases, the odd one receives. Both come to each case by themselves and end it together.
//!
//! What it does not do: messages within one node, networks; `musubi-mcapi`'s own tests have those.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::fmt;

use musubi_mcapi::NodeId;
use musubi_mcapi::over::{Node, Running};

mod channels;
mod lives;
mod messages;
mod part;

pub use part::Part;

/// How long a case waits for something that must come, in nanoseconds.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// What a target brings for each node.
pub struct Setup<'s, R: Running> {
    /// All nodes; an even number.
    pub nodes: &'s [NodeId],
    /// Which of them this one is.
    pub place: usize,
    /// Starts the node, again too while the former run of it is still there but called no more: as after a reset.
    pub start: &'s dyn Fn() -> Node<R>,
    /// The instant so many nanoseconds from now.
    pub within: &'s dyn Fn(u64) -> R::Deadline,
}

/// Why a case failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where, a file of this crate.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// What was expected.
    pub expected: &'static str,
    /// What came instead, if that was an error.
    pub found: Option<musubi_mcapi::Error>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected: {}", self.file, self.line, self.expected)?;
        self.found.map_or(Ok(()), |found| write!(f, ", found {found}"))
    }
}

/// Fails the case unless something holds.
macro_rules! ensure {
    ($condition:expr, $expected:expr) => {
        if !$condition {
            return Err($crate::Failure { file: file!(), line: line!(), expected: $expected, found: None });
        }
    };
}
/// The value of a result, or the case fails.
macro_rules! have {
    ($value:expr, $expected:expr) => {
        match $value {
            Ok(value) => value,
            Err(error) => {
                return Err($crate::Failure { file: file!(), line: line!(), expected: $expected, found: Some(error) });
            }
        }
    };
}
pub(crate) use {ensure, have};

/// A node's part of a case.
type Case<R> = fn(&mut Part<'_, R>) -> Result<(), Failure>;

macro_rules! cases {
    ($($module:ident::$name:ident),+ $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),+]
    };
}

/// How many cases there are.
pub const CASES: usize = 13;
/// How many of them, from the first on, need no node that begins anew: for a node whose memory is given once.
pub const CASES_WITHIN_A_LIFE: usize = 11;

/// Runs this node's part of all cases; `hear` is told how each ended here, with its number. After a case that failed the
/// others are not begun, as the partners do not stand at the same place any more; they have failed too.
pub fn run<R: Running>(setup: &Setup<'_, R>, hear: impl FnMut(usize, &'static str, Result<(), Failure>)) {
    run_some(setup, CASES, hear);
}

/// The same with the first `count` cases.
pub fn run_some<R: Running>(
    setup: &Setup<'_, R>,
    count: usize,
    mut hear: impl FnMut(usize, &'static str, Result<(), Failure>),
) {
    let cases: [(&'static str, Case<R>); CASES] = cases![
        messages::a_name_is_waited_for_and_the_wait_ends,
        messages::every_length_arrives_exact,
        messages::the_most_urgent_is_first,
        messages::credit_stops_the_sender,
        messages::a_receive_that_is_dropped_takes_nothing,
        messages::everybody_reaches_everybody,
        messages::a_sleeper_is_woken,
        channels::packets_come_in_order_and_credit_stops_the_sender,
        channels::scalars_keep_order_and_size,
        channels::a_close_comes_after_the_data,
        channels::attributes_are_read_from_afar,
        lives::who_leaves_is_told_of_and_comes_back,
        lives::who_dies_is_told_of_when_it_comes_back,
    ];
    let mut part = Part::new(setup);
    let mut lost = None;
    for (number, (name, case)) in cases.into_iter().enumerate().take(count) {
        let result = match lost {
            None => part.begin(number as u32).and_then(|()| case(&mut part)).and_then(|()| part.meet()),
            Some(failure) => Err(failure),
        };
        lost = lost.or(result.err());
        hear(number, name, result);
    }
}
