//! Tests that every port must pass, on any target.
//!
//! What you may rely on: no heap, no threads, no operating system; the tests know only the traits of
//! [`musubi_core::channel`] and the MDCOM interface. Each waits at most as long as [`PATIENCE_NS`] for anything.
//!
//! How it works: a target brings a [`Wrapper`], which gives a fresh Master and a fresh Remote attached to the system of
//! [`plan`], and lets the port work while a test waits. [`run`] goes through the cases one after the other; each plays
//! both parts in turn.
//!
//! What it does not do: race. One thread plays both parts, so lost wake-ups and weak memory are left to the models, and
//! deaths to the crash proof.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

use musubi_core::channel::Attachment;

mod flow;
mod lock;
mod misuse;
mod notification;
pub mod plan;
mod reset;
mod stage;
mod typed;

use stage::Stage;

/// How long a test waits for something that must come, in nanoseconds of the port's clock.
pub const PATIENCE_NS: u64 = 2_000_000_000;

/// What a target brings.
pub trait Wrapper {
    /// The port's attachment.
    type Attachment: Attachment;

    /// A Master and a Remote, attached anew to the system of [`plan`]; nothing is left of earlier ones.
    fn fresh(&mut self) -> Pair<Self::Attachment>;

    /// Lets the port do what it does in the background, for some microseconds at least.
    fn pause(&mut self);

    /// Hears how a test ended.
    fn report(&mut self, name: &str, result: Result<(), Failure>);
}

/// Both participants.
#[derive(Debug)]
pub struct Pair<A> {
    /// Attached to [`plan::MASTER`].
    pub master: A,
    /// Attached to [`plan::REMOTE`].
    pub remote: A,
}

/// Why a test failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where, a file of this crate.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected: {}", self.file, self.line, self.expected)
    }
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed.
    pub failed: u32,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// One test.
struct Case<W: Wrapper> {
    name: &'static str,
    run: fn(&mut Stage<'_, W>) -> Result<(), Failure>,
}

/// Fails the test unless something holds.
macro_rules! ensure {
    ($condition:expr, $expected:expr) => {
        if !$condition {
            return Err($crate::Failure { file: file!(), line: line!(), expected: $expected });
        }
    };
}
/// The value of a result or option, or the test fails.
macro_rules! have {
    ($value:expr, $expected:expr) => {
        match $value.ok() {
            Some(value) => value,
            None => return Err($crate::Failure { file: file!(), line: line!(), expected: $expected }),
        }
    };
}
/// The cases of some functions, named after them.
macro_rules! cases {
    ($($module:ident::$name:ident),+ $(,)?) => {
        [$(Case { name: concat!(stringify!($module), "::", stringify!($name)), run: $module::$name }),+]
    };
}
pub(crate) use {ensure, have};

/// Runs all tests.
pub fn run<W: Wrapper>(wrapper: &mut W) -> Outcome {
    let cases: [Case<W>; 40] = cases![
        flow::messages_come_in_order,
        flow::both_directions_are_independent,
        flow::a_full_queue_gives_no_block,
        flow::a_freed_block_can_be_allocated_again,
        flow::waiting_for_a_block_ends_at_the_deadline,
        flow::several_blocks_go_out_in_the_order_of_enqueuing,
        flow::blocks_can_be_freed_out_of_order,
        flow::a_kept_message_does_not_hold_up_others,
        flow::an_unsent_block_goes_back,
        flow::odd_sizes_arrive_exact,
        flow::a_message_can_be_empty,
        flow::a_channel_of_one_block_works,
        flow::large_blocks_arrive_exact,
        flow::usage_says_what_is_where,
        flow::many_laps_keep_order,
        flow::messages_are_taken_before_their_notification,
        flow::what_a_participant_sent_survives_it,
        misuse::too_long_a_message_is_refused,
        misuse::a_block_of_another_channel_is_refused,
        misuse::a_message_of_another_channel_is_refused,
        misuse::ends_of_others_cannot_be_opened,
        misuse::an_end_is_open_once,
        misuse::an_empty_channel_has_nothing,
        notification::waiting_is_level_triggered,
        notification::waiting_ends_at_the_deadline,
        notification::an_event_needs_no_message,
        notification::the_receiver_can_tell_the_sender,
        notification::every_second_request_is_raised,
        notification::a_level_is_raised,
        notification::an_interval_is_kept,
        notification::the_latest_time_is_kept,
        notification::a_new_filter_raises_what_was_held,
        notification::any_of_several_ends_is_waited_for,
        notification::the_regulator_holds_back,
        reset::the_sender_can_begin_anew,
        reset::the_receiver_can_begin_anew,
        lock::one_at_a_time_is_inside,
        lock::the_lock_is_handed_over,
        lock::memory_is_shared_and_has_an_end,
        typed::values_travel_by_type,
    ];
    let mut outcome = Outcome::default();
    for case in cases {
        let result = Stage::open(wrapper).and_then(|mut stage| (case.run)(&mut stage));
        match result {
            Ok(()) => outcome.passed += 1,
            Err(_) => outcome.failed += 1,
        }
        wrapper.report(case.name, result);
    }
    outcome
}
