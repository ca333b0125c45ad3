//! Many interrupts and many calls at once: none is lost, none runs twice.

use core::sync::atomic::Ordering;

use musubi_core::smp::{Causes, Cores, Processor, Until, Work};
use musubi_metal::board::Board;
use musubi_metal::{Machine, arch, cause_handlers, println};

use crate::report::{Case, Failure, ensure_eq};
use crate::{CORES, Suite, Target};

/// Raises of each core in the flood.
const RAISES: usize = 20_000;
/// Cross calls that are counted.
const CALLS: usize = if option_env!("MUSUBI_LONG").is_some() { 10_000_000 } else { 1_000_000 };
/// Calls, or calls of all cores together, between two choices of the way.
const CHUNK: usize = 100;
/// Time for the calls on a board whose cores poll. Each call then takes as long as the host lets a core wait, unless it has
/// a processor for each; what was not made in this time is said.
const POLLED_NS: u64 = 60_000_000_000;
/// Choices after which the slower way is tried again.
const TRY_AGAIN: u32 = 200;
/// How long all cores call each other at once. Not a number of calls: where cores outnumber the emulator's processors, a
/// call can take as long as the host lets one wait.
const CROWD_NS: u64 = 2_000_000_000;
/// Count of calls that came twice or out of turn.
const FAULTS: usize = CORES * CORES;
/// Count of calls that were refused.
const REFUSED: usize = FAULTS + 1;
/// Count of calls that each core has made: from here on.
const MADE: usize = FAULTS + 2;
/// Count that ends the answering.
const END: usize = MADE + CORES;
/// How often a core looks for calls before it sleeps.
const LOOKING: usize = END + 1;
/// Few and many looks. A core that looks takes the time of an emulator's processor.
const LOOKS_FEW: u32 = 20;
const LOOKS_MANY: u32 = 2_000;
/// Count of the core that is flooded, of raises that it has seen by each core: from here on.
const SEEN: usize = CORES;

pub fn cases<P: Target>() -> [Case<P>; 3] {
    crate::cases![
        a_flood_of_interrupts_loses_none on 2,
        no_call_of_many_cores_is_lost_or_runs_twice on 2,
        no_call_of_very_many_is_lost_or_runs_twice on 2,
    ]
}

/// What the flooded core does: notes how far each core has raised.
fn note_raises<P: Target>(_: u32) {
    let s = P::suite();
    for core in 0..CORES {
        s.counts[SEEN + core].store(s.counted(core), Ordering::Release);
    }
}

fn raise_often<P: Target>(s: &'static Suite<P>, core: usize) {
    for _ in 0..RAISES {
        s.count(core);
        s.calls.raise(0, Causes::program(core as u32));
    }
}

fn a_flood_of_interrupts_loses_none<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(note_raises::<P>));
    let others = s.calls.others();
    let before = s.rings(0);
    s.begin_on(others, raise_often);
    s.finish(others)?;
    for core in others {
        let seen = || s.counted(SEEN + core);
        let _ = s.rest_until(crate::PATIENCE_NS, || seen() == RAISES);
        ensure_eq!(seen(), RAISES, "the last raise of each core is handled");
    }
    let (raises, rings) = (others.count() as usize * RAISES, s.rings(0) - before);
    println!(P, "  {raises} raises were {rings} interrupts");
    Ok(())
}

/// A call with its number: each caller's calls to a core come in order, none missing, none twice.
fn check_number<P: Target>(argument: usize) {
    let s = P::suite();
    let (caller, number) = (argument % CORES, argument / CORES);
    if s.count(caller * CORES + Machine::<P>::core()) != number {
        s.count(FAULTS);
    }
}

/// Calls all others, `times` times or until an instant.
fn call_others_often<P: Target>(s: &'static Suite<P>, core: usize, times: usize, until_ns: u64) {
    for number in 0..times {
        let work = Work::new(check_number::<P>, number * CORES + core);
        if s.calls.call_others(work, Until::Completed, s.patience()).is_err() {
            s.count(REFUSED);
        }
        s.count(MADE + core);
        if Machine::<P>::now_ns() > until_ns {
            return;
        }
    }
}

/// Every call that was made ran once on each other core, in its turn. Gives how many.
fn judge<P: Target>(s: &'static Suite<P>) -> Result<usize, Failure> {
    ensure_eq!(s.counted(REFUSED), 0, "each call is answered");
    ensure_eq!(s.counted(FAULTS), 0, "no call is lost, runs twice or out of turn");
    let online = s.calls.online();
    let mut sum = 0;
    for caller in online {
        for core in online.without(Cores::one(caller)) {
            ensure_eq!(s.counted(caller * CORES + core), s.counted(MADE + caller), "each call ran");
            sum += s.counted(MADE + caller);
        }
    }
    Ok(sum)
}

fn no_call_of_many_cores_is_lost_or_runs_twice<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    s.run_on(s.calls.online(), |s, core| call_others_often(s, core, CALLS, s.in_ns(CROWD_NS)))?;
    let calls = judge(s)?;
    println!(P, "  {calls} calls of all cores at once, 0 lost, 0 twice");
    Ok(())
}

/// Looks for calls for a moment and then sleeps, again and again: some calls find a core that polls, others one that must
/// be rung.
fn answer<P: Target>(s: &'static Suite<P>, core: usize) {
    loop {
        let looks = if core == 1 { s.counted(LOOKING) as u32 } else { LOOKS_FEW };
        if s.calls.poll(looks, || s.counted(END) != 0) {
            return;
        }
        let before = arch::mask();
        if s.counted(END) == 0 {
            arch::wait_for_interrupt();
        }
        arch::restore(before);
    }
}

/// Two ways to make many calls, of which an emulator with few processors, and other work to do, does one or the other
/// much faster: core 1 polls and is called alone, or all sleep and are called together.
#[derive(Clone, Copy)]
struct Way {
    looks: u32,
    targets: Cores,
    /// The number of the caller for [`check_number`]; two ways count apart.
    caller: usize,
    /// Broadcasts so far.
    made: usize,
    /// What a call took when it was last used, in nanoseconds; 0 if it was not.
    call_ns: u64,
}

impl Way {
    /// Makes some calls in this way.
    fn go<P: Target>(&mut self, s: &'static Suite<P>) {
        s.counts[LOOKING].store(self.looks as usize, Ordering::Relaxed);
        let begin_ns = Machine::<P>::now_ns();
        for _ in 0..CHUNK {
            let work = Work::new(check_number::<P>, self.made * CORES + self.caller);
            if s.calls.call_many(self.targets, work, Until::Completed, s.patience()).is_err() {
                s.count(REFUSED);
            }
            self.made += 1;
        }
        let calls = CHUNK as u64 * u64::from(self.targets.count());
        self.call_ns = ((Machine::<P>::now_ns() - begin_ns) / calls).max(1);
    }

    fn calls(&self) -> usize {
        self.made * self.targets.count() as usize
    }
}

fn no_call_of_very_many_is_lost_or_runs_twice<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let others = s.calls.others();
    s.begin_on(others, answer);
    let mut one = Way { looks: LOOKS_MANY, targets: Cores::one(1), caller: CORES - 1, made: 0, call_ns: 0 };
    let mut all = Way { looks: LOOKS_FEW, targets: others, caller: 0, made: 0, call_ns: 0 };
    let until_ns = s.in_ns(POLLED_NS);
    for chunk in 0.. {
        let is_over = P::Board::polls().is_some() && Machine::<P>::now_ns() > until_ns;
        if is_over || one.calls() + all.calls() >= CALLS {
            break;
        }
        // The slower way is tried again now and then: what else the host does changes.
        let slower = chunk % TRY_AGAIN == 0;
        if (one.call_ns < all.call_ns) != slower { one.go(s) } else { all.go(s) }
    }
    s.count(END);
    others.for_each(|core| assert!(s.calls.reschedule(core)));
    s.finish(others)?;
    ensure_eq!(s.counted(REFUSED), 0, "each call is answered");
    ensure_eq!(s.counted(FAULTS), 0, "no call is lost, runs twice or out of turn");
    for way in [one, all] {
        for core in way.targets {
            ensure_eq!(s.counted(way.caller * CORES + core), way.made, "each call ran");
        }
    }
    let (polled, rung) = (one.calls(), all.calls());
    if polled + rung < CALLS {
        println!(P, "  not all {CALLS} calls: the cores poll, and the host has no processor for each");
    }
    println!(P, "  {} calls, 0 lost, 0 twice: {polled} of a polling core, {rung} of sleeping ones", polled + rung);
    Ok(())
}
