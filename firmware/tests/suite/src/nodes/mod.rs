//! MCAPI between cores: each core is a node, over memory that all of them map.
//!
//! How it works: the cases of `musubi-testsuite-nodes` run on two and on four cores at once (as far as there are as many), each
//! sleeping in WFI until it is rung. A case has passed if it has on every core.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_core::smp::{Causes, Cores, Processor};
use musubi_heap::Heap;
use musubi_mcapi::NodeId;
use musubi_mcapi::over::Node;
use musubi_metal::bare_host::BareHost;
use musubi_metal::{Machine, cause_handlers, println};
use musubi_testsuite_nodes::{CASES, Setup};
use musubi_transport::mapped::{self, Deadline, Options, Table};

use crate::report::{Failure, Outcome};
use crate::{Suite, Target};

/// The image's heap: a node takes 214 KiB at most in these cases.
#[global_allocator]
static HEAP: Heap<{ 4 << 20 }> = Heap::new();

/// Most cores that are nodes.
const NODES: usize = 4;
/// The cause by which nodes are rung.
const BELL: u32 = 6;
/// The count of nodes of the run, among the suite's counts.
const RUNNING: usize = 0;

const fn node(number: u32) -> NodeId {
    match NodeId::new(2, number) {
        Some(node) => node,
        None => panic!("no such node"),
    }
}

const IDS: [NodeId; NODES] = [node(0), node(1), node(2), node(3)];

/// The table of a run with so many nodes.
fn table(count: usize) -> Table<'static> {
    Table::new(&IDS[..count])
}

/// Memory as the nodes share it.
#[repr(C, align(4096))]
struct Shared(UnsafeCell<[u8; Table::new(&IDS).bytes()]>);

// SAFETY: only nodes touch it, each as `Region` says.
unsafe impl Sync for Shared {}

/// One for the run of two nodes and one for that of four: neither was used before.
static SHARED: [Shared; 2] = [const { Shared(UnsafeCell::new([0; Table::new(&IDS).bytes()])) }; 2];

/// Nodes at which each case of the run has passed.
static PASSED: [AtomicU32; CASES] = [const { AtomicU32::new(0) }; CASES];

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

/// A core's part of a run.
fn be_a_node<P: Target>(s: &'static Suite<P>, core: usize) {
    let count = s.counted(RUNNING);
    play(s, core, count, |case, name, result| match result {
        Ok(()) => _ = PASSED[case].fetch_add(1, Ordering::AcqRel),
        Err(failure) => println!(P, "  {name} on core {core} of {count}: {failure}"),
    });
}

/// Runs this core's part of all cases.
fn play<P: Target>(
    s: &'static Suite<P>,
    core: usize,
    count: usize,
    hear: impl FnMut(usize, &'static str, Result<(), musubi_testsuite_nodes::Failure>),
) {
    let (table, bare) = (table(count), &s.nodes.bares[core]);
    let memory = SHARED[usize::from(count > 2)].0.get().cast();
    let start = || {
        // SAFETY: the static is long enough for all nodes and was zero before this run; a former run of the place is not
        // called any more.
        let region = unsafe { Region::whole(memory, count as u16, core as u16, table.shape) };
        let region = region.expect("the table has this place");
        Node::of(mapped::Node::start(table, region, bare, Options::default()).expect("the table is that of the memory"))
    };
    let within = |ns| Deadline::At(bare.now_ns() + ns);
    let setup = Setup { nodes: table.nodes, place: core, start: &start, within: &within };
    musubi_testsuite_nodes::run(&setup, hear);
}

/// Runs the cases on two cores, then on four.
pub fn run_between_cores<P: Target>(s: &'static Suite<P>, outcome: &mut Outcome) {
    for count in [2, NODES] {
        if (s.calls.online().count() as usize) < count {
            outcome.skip::<P>("MCAPI between cores", format_args!("needs {count} cores"));
            continue;
        }
        s.clean();
        cause_handlers::PROGRAM.set(Some(heard::<P>));
        PASSED.iter().for_each(|passed| passed.store(0, Ordering::Relaxed));
        s.counts[RUNNING].store(count, Ordering::Release);
        let others = Cores::first(count).without(Cores::one(0));
        let mut names = [""; CASES];
        let begin_ns = Machine::<P>::now_ns();
        s.begin_on(others, be_a_node::<P>);
        play(s, 0, count, |case, name, result| {
            names[case] = name;
            match result {
                Ok(()) => _ = PASSED[case].fetch_add(1, Ordering::AcqRel),
                Err(failure) => println!(P, "  {name} on core 0 of {count}: {failure}"),
            }
        });
        let ended = s.finish(others);
        for (name, passed) in names.into_iter().zip(&PASSED) {
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
        println!(P, "ok MCAPI between {count} cores, {CASES} cases in {took_ms} ms; heap: {}", HEAP.report());
    }
}
