//! MCAPI and VIs between cores: each core is a node, over memory that all of them map.
//!
//! How it works: the cases of `musubi-testsuite-nodes` ([`mcapi`]) and of `musubi-testsuite-vis` ([`vis`]) run on two and on four
//! cores at once (as far as there are as many), each sleeping in WFI until it is rung. A case has passed if it has on every core.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::smp::{Causes, Cores, Processor};
use musubi_heap::Heap;
use musubi_metal::bare_host::BareHost;
use musubi_metal::{Machine, cause_handlers, println};

use crate::report::{Failure, Outcome};
use crate::{Suite, Target};

mod mcapi;
mod vis;

/// The image's heap: a node of MCAPI takes 214 KiB at most in these cases, a NIC 183 KiB.
#[global_allocator]
static HEAP: Heap<{ 4 << 20 }> = Heap::new();

/// Most cores that are nodes.
const NODES: usize = 4;
/// Most cases of a kind.
const CASES_MAX: usize = 16;
/// The cause by which nodes are rung.
const BELL: u32 = 6;
/// The count of nodes of the run, among the suite's counts.
const RUNNING: usize = 0;

/// Memory as the nodes share it.
#[repr(C, align(4096))]
struct Shared<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: only nodes touch it, each as `Region` says.
unsafe impl<const BYTES: usize> Sync for Shared<BYTES> {}

impl<const BYTES: usize> Shared<BYTES> {
    const fn new() -> Self {
        Shared(UnsafeCell::new([0; BYTES]))
    }
}

/// Nodes at which each case of the run has passed.
static PASSED: [AtomicU32; CASES_MAX] = [const { AtomicU32::new(0) }; CASES_MAX];

/// The cores as carriers of nodes.
pub struct Nodes<P: Target> {
    bares: [BareHost<P>; NODES],
}

impl<P: Target> Nodes<P> {
    pub const fn new() -> Self {
        Nodes { bares: [const { BareHost::new(ring::<P>, true) }; NODES] }
    }
}

/// The node at place n is on core n.
fn ring<P: Target>(place: u16) {
    P::suite().calls.raise(usize::from(place), Causes::program(BELL));
}

/// The bell, on the core that was rung.
fn heard<P: Target>(_: u32) {
    if let Some(bare) = P::suite().nodes.bares.get(Machine::<P>::core()) {
        bare.heard();
    }
}

/// Who is told how each case ended on a core.
type Hear<'h> = dyn FnMut(usize, &'static str, Result<(), &dyn fmt::Display>) + 'h;

/// Cases between nodes.
struct Kind<P: Target> {
    what: &'static str,
    cases: usize,
    /// A core's part of all cases, with so many nodes.
    play: fn(&'static Suite<P>, usize, usize, &mut Hear<'_>),
    /// The same, as it is begun on another core.
    begin: fn(&'static Suite<P>, usize),
}

/// What a core makes of its part of a run.
fn tell<P: Target>(core: usize, count: usize, case: usize, name: &str, result: Result<(), &dyn fmt::Display>) {
    match result {
        Ok(()) => _ = PASSED[case].fetch_add(1, Ordering::AcqRel),
        Err(failure) => println!(P, "  {name} on core {core} of {count}: {failure}"),
    }
}

/// Runs the cases on two cores, then on four.
pub fn run_between_cores<P: Target>(s: &'static Suite<P>, outcome: &mut Outcome) {
    for kind in [mcapi::kind::<P>(), vis::kind::<P>()] {
        for count in [2, NODES] {
            run_kind(s, outcome, &kind, count);
        }
    }
}

fn run_kind<P: Target>(s: &'static Suite<P>, outcome: &mut Outcome, kind: &Kind<P>, count: usize) {
    if (s.calls.online().count() as usize) < count {
        outcome.skip::<P>(kind.what, format_args!("needs {count} cores"));
        return;
    }
    s.clean();
    cause_handlers::PROGRAM.set(Some(heard::<P>));
    PASSED.iter().for_each(|passed| passed.store(0, Ordering::Relaxed));
    s.counts[RUNNING].store(count, Ordering::Release);
    let others = Cores::first(count).without(Cores::one(0));
    let mut names = [""; CASES_MAX];
    let begin_ns = Machine::<P>::now_ns();
    s.begin_on(others, kind.begin);
    (kind.play)(s, 0, count, &mut |case, name, result| {
        names[case] = name;
        tell::<P>(0, count, case, name, result);
    });
    let ended = s.finish(others);
    for (name, passed) in names.into_iter().zip(&PASSED).take(kind.cases) {
        let passed = passed.load(Ordering::Acquire) as usize;
        let all = (passed == count).then_some(()).ok_or(Failure {
            file: file!(),
            line: line!(),
            expected: "the case passes on every core",
            found: Some(passed as u64),
        });
        outcome.add::<P>(name, ended.and(all));
    }
    let took_ms = (Machine::<P>::now_ns() - begin_ns) / 1_000_000;
    println!(
        P,
        "ok {} between {count} cores, {} cases in {took_ms} ms; heap: {}",
        kind.what,
        kind.cases,
        HEAP.report()
    );
}
