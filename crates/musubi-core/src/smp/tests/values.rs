//! The layer's values and counters, one at a time and without cores.

use std::string::ToString as _;
use std::vec::Vec;

use crate::smp::call::causes::{Inbox, PROGRAM_CAUSES, Raised};
use crate::smp::call::flush::Requests;
use crate::smp::queue::{Context, Queue, Task};
use crate::smp::{Causes, Cores};

const NAMED: [(Causes, &str); 7] = [
    (Causes::RESCHEDULE, "reschedule"),
    (Causes::CALL, "call"),
    (Causes::FLUSH_INSTRUCTIONS, "flush instructions"),
    (Causes::FLUSH_DATA, "flush data"),
    (Causes::FLUSH_TRANSLATIONS, "flush translations"),
    (Causes::STOP, "stop"),
    (Causes::TICK, "tick"),
];

#[test]
fn causes_are_sets() {
    let (call, both) = (Causes::CALL, Causes::CALL.with(Causes::TICK));
    assert_eq!((call.with(call), both.with(call)), (call, both), "a cause that is there already stays");
    assert!(both.contains(call) && both.contains(both) && call.contains(Causes::NONE));
    assert!(!call.contains(both) && !call.contains(Causes::TICK));
    assert!(Causes::NONE.is_empty() && !call.is_empty() && Causes::default() == Causes::NONE);
    assert_eq!(Causes::from_bits(both.bits()), both);
}

#[test]
fn a_programs_causes_are_apart_from_the_layers_and_wrap() {
    let own: Vec<Causes> = (0..PROGRAM_CAUSES).map(Causes::program).collect();
    let all = own.iter().chain(NAMED.iter().map(|(cause, _)| cause)).fold(0, |bits, cause| {
        assert_eq!((bits & cause.bits(), cause.bits().count_ones()), (0, 1), "{cause}");
        bits | cause.bits()
    });
    assert_eq!(all.count_ones(), 15);
    assert_eq!(Causes::program(PROGRAM_CAUSES + 3), Causes::program(3));
    let some = Causes::program(0).with(Causes::program(7)).with(Causes::CALL);
    assert_eq!(some.of_program(), Cores::one(0).with(Cores::one(7)));
}

#[test]
fn causes_are_printed_by_their_names() {
    assert!(NAMED.iter().all(|(cause, name)| cause.to_string() == *name));
    assert_eq!(Causes::CALL.with(Causes::TICK).with(Causes::STOP).to_string(), "call, stop, tick");
    assert_eq!(Causes::NONE.to_string(), "");
    assert_eq!(Causes::STOP.with(Causes::program(2)).to_string(), "stop (the program's own: 2)");
}

#[test]
fn cores_are_sets() {
    let (one, pair) = (Cores::one(1), Cores::from_mask(0b110));
    assert_eq!((one.with(one), one.with(Cores::one(2)), pair.mask()), (one, pair, 6));
    assert_eq!((pair.without(one), one.without(pair), pair.without(Cores::NONE)), (Cores::one(2), Cores::NONE, pair));
    assert_eq!((pair.within(one), one.within(Cores::one(2)), pair.within(pair)), (one, Cores::NONE, pair));
    assert!(pair.contains(1) && pair.contains(2) && !pair.contains(0) && !pair.contains(3));
    assert_eq!(
        (Cores::first(3).mask(), Cores::first(31).mask(), Cores::first(40).mask()),
        (7, u32::MAX >> 1, u32::MAX)
    );
    assert_eq!((pair.count(), Cores::NONE.count(), pair.is_empty(), Cores::NONE.is_empty()), (2, 0, false, true));
    assert_eq!(pair.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_inbox_says_who_has_to_ring() {
    let inbox = Inbox::new();
    assert!(inbox.is_quiet() && inbox.take().is_empty());
    assert_eq!(inbox.raise(Causes::CALL), Raised::Ring);
    assert_eq!(inbox.raise(Causes::CALL), Raised::Pending);
    assert_eq!(inbox.raise(Causes::TICK), Raised::Pending);
    assert!(!inbox.is_quiet());
    assert_eq!(inbox.take(), Causes::CALL.with(Causes::TICK));
    assert!(inbox.is_quiet());
    assert_eq!(inbox.raise(Causes::STOP), Raised::Ring);
}

#[test]
fn nobody_rings_at_a_core_that_polls() {
    let inbox = Inbox::new();
    let outer = inbox.begin_polling();
    assert!(!outer && inbox.is_polling());
    assert_eq!(inbox.raise(Causes::CALL), Raised::Polling);
    assert_eq!(inbox.take(), Causes::CALL);
    let inner = inbox.begin_polling();
    inbox.end_polling(inner);
    assert!(inner && inbox.is_polling(), "the outer one goes on");
    inbox.end_polling(outer);
    assert!(!inbox.is_polling());
    assert_eq!(inbox.raise(Causes::CALL), Raised::Ring);
}

#[test]
fn a_flush_answers_what_was_asked_before_it_began() {
    let requests = Requests::new();
    let first = requests.ask();
    assert!(!requests.is_answered(first));
    let mut second = 0;
    requests.answer(|| second = requests.ask());
    assert!(requests.is_answered(first) && !requests.is_answered(second), "it began before the second");
    let mut flushes = 0;
    requests.answer(|| flushes += 1);
    assert!(requests.is_answered(second) && flushes == 1);
}

#[test]
fn a_core_that_starts_owes_no_flush() {
    let requests = Requests::new();
    let asked = requests.ask();
    requests.forget();
    assert!(requests.is_answered(asked));
    let later = requests.ask();
    assert_ne!(asked, later);
    assert!(!requests.is_answered(later));
}

fn task(argument: usize) -> Task {
    Task { function: |_| (), argument, context: Context::Anywhere, posted_ns: 0 }
}

#[test]
fn a_sweep_serves_each_place_once_whatever_is_noted_meanwhile() {
    let queue = Queue::<2>::new();
    assert!(queue.post(0, 0, task(7)) && queue.post(1, 1, task(8)) && !queue.post(1, 1, task(9)));
    assert!(!queue.is_quiet(Context::Anywhere) && queue.is_quiet(Context::Interrupt));
    let mut served = Vec::new();
    queue.sweep(Context::Anywhere, |caller, slot| {
        served.push((caller, slot));
        assert!(served.len() < 10, "a sweep ends");
        assert!(queue.accept(Context::Anywhere, caller, slot).is_some());
        queue.complete(caller, slot);
        // Its caller is quick.
        assert!(queue.post(caller, slot, task(0)));
    });
    assert_eq!(served, [(0, 0), (1, 1)]);
    assert!(!queue.is_quiet(Context::Anywhere), "what came meanwhile is for the next sweep");
}
