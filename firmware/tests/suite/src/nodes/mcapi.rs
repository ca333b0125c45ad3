//! MCAPI between cores.

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_mcapi::NodeId;
use musubi_mcapi::over::Node;
use musubi_testsuite_nodes::{CASES, Setup};
use musubi_transport::mapped::{self, Deadline, Options, Table};

use super::{CASES_MAX, Hear, Kind, NODES, RUNNING, Shared, tell};
use crate::{Suite, Target};

const _: () = assert!(CASES <= CASES_MAX);

const fn node(number: u32) -> NodeId {
    match NodeId::new(2, number) {
        Some(node) => node,
        None => panic!("no such node"),
    }
}

const IDS: [NodeId; NODES] = [node(0), node(1), node(2), node(3)];

/// One for the run of two nodes and one for that of four: neither was used before.
static SHARED: [Shared<{ Table::new(&IDS).bytes() }>; 2] = [const { Shared::new() }; 2];

pub(super) fn kind<P: Target>() -> Kind<P> {
    Kind { what: "MCAPI", cases: CASES, play: play::<P>, begin: begin::<P> }
}

fn begin<P: Target>(s: &'static Suite<P>, core: usize) {
    let count = s.counted(RUNNING);
    play(s, core, count, &mut |case, name, result| tell::<P>(core, count, case, name, result));
}

fn play<P: Target>(s: &'static Suite<P>, core: usize, count: usize, hear: &mut Hear<'_>) {
    let (table, bare) = (Table::new(&IDS[..count]), &s.nodes.bares[core]);
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
    musubi_testsuite_nodes::run(&setup, |case, name, result| {
        let result = result.as_ref();
        hear(case, name, result.map(|_| ()).map_err(|failure| failure as _));
    });
}
