//! The VI Architecture between NICs that each run for themselves: cores, tasks, processes or threads.
//!
//! What you may rely on: no operating system and no threads are asked for, only a heap; the cases know `musubi_vipl::over` and
//! nothing of what carries the VIs. Each wait ends within [`PATIENCE_NS`].
//!
//! How it works: each NIC's program calls [`run`] with its own [`Setup`], all at the same time. NIC 2k and NIC 2k + 1 are partners:
//! the even one waits for callers, the odd one asks. Both come to each case by themselves and end it together.
//!
//! [`die`] and [`outlive`] are for a target that can kill the program of the odd one at any instant: what it had completed is
//! compared by its successor, which calls [`live_on`].
//!
//! What it does not do: VIs within one NIC, several processes of one NIC, networks; `musubi-vipl`'s own tests have those.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::fmt;

use musubi_vipl::ViError;
use musubi_vipl::address::NicNumber;
use musubi_vipl::over::{Nic, NicNode};

mod connections;
mod descriptors;
mod lives;
mod messages;
mod part;
mod protection;
mod remote;
mod stream;

pub use lives::{die, live_on, outlive};
pub use part::Part;
pub use stream::{Account, LEVELS, Totals};

/// How long a case waits for something that must come, in nanoseconds.
pub const PATIENCE_NS: u64 = 20_000_000_000;

/// What a target brings for each NIC.
pub struct Setup<'s, R: NicNode> {
    /// How many NICs there are, numbered from 0; an even number.
    pub nics: u16,
    /// Which of them this one is.
    pub own: NicNumber,
    /// Opens the NIC, again too while the former run of it is still there but called no more: as after a reset.
    pub open: &'s dyn Fn() -> Nic<R>,
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
    pub found: Option<ViError>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected: {}", self.file, self.line, self.expected)?;
        self.found.map_or(Ok(()), |found| write!(f, ", found: {found}"))
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

/// A NIC's part of a case.
type Case<R> = fn(&mut Part<'_, R>) -> Result<(), Failure>;

macro_rules! cases {
    ($($module:ident::$name:ident),+ $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),+]
    };
}

/// How many cases there are.
pub const CASES: usize = 12;
/// How many of them, from the first on, need no NIC that begins anew: for one whose memory is given once.
pub const CASES_WITHIN_A_LIFE: usize = 11;

/// Runs this NIC's part of all cases; `hear` is told how each ended here, with its number. After a case that failed the
/// others are not begun, as the partners do not stand at the same place any more; they have failed too.
pub fn run<R: NicNode>(setup: &Setup<'_, R>, mut hear: impl FnMut(usize, &'static str, Result<(), Failure>)) {
    match Part::join(setup) {
        Ok(mut part) => run_some(&mut part, CASES, hear),
        Err(failure) => hear(0, "join", Err(failure)),
    }
}

/// The same with the first `count` cases, by a part that has met its partner.
pub fn run_some<R: NicNode>(
    part: &mut Part<'_, R>,
    count: usize,
    mut hear: impl FnMut(usize, &'static str, Result<(), Failure>),
) {
    let cases: [(&'static str, Case<R>); CASES] = cases![
        connections::nobody_listens_and_a_caller_is_rejected,
        connections::attributes_must_fit,
        connections::disconnecting_flushes_in_order_and_the_vi_connects_again,
        connections::those_who_ask_each_other_meet,
        messages::every_length_in_segments_with_immediate_data,
        messages::one_queue_tells_of_many_vis,
        messages::a_message_without_a_receive_is_told_by_its_level,
        messages::a_sleeper_is_woken,
        remote::writes_and_reads_arrive_exact,
        remote::immediate_data_tells_of_a_write,
        protection::nothing_is_touched_without_permission,
        lives::who_dies_in_the_middle_has_lost_nothing,
    ];
    let mut lost = None;
    for (number, (name, case)) in cases.into_iter().enumerate().take(count) {
        let result = match lost {
            None => part.begin(number as u8).and_then(|()| case(part)).and_then(|()| part.meet()),
            Some(failure) => Err(failure),
        };
        lost = lost.or(result.err());
        hear(number, name, result);
    }
}
