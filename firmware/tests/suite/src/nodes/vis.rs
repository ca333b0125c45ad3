//! VIs between cores.

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_testsuite_vis::{CASES, Setup};
use musubi_transport::NodeId;
use musubi_transport::mapped::{Deadline, Options, Table};
use musubi_vipl::address::NicNumber;
use musubi_vipl::mapped;

use super::{CASES_MAX, Hear, Kind, NODES, RUNNING, Shared, tell};
use crate::{Suite, Target};

const _: () = assert!(CASES <= CASES_MAX);

/// Names of the NICs, by core.
const NAMES: [&str; NODES] = ["core 0", "core 1", "core 2", "core 3"];
const IDS: [NodeId; NODES] = mapped::nodes();

/// One for the run of two NICs and one for that of four: neither was used before.
static SHARED: [Shared<{ Table::new(&IDS).bytes() }>; 2] = [const { Shared::new() }; 2];

pub(super) fn kind<P: Target>() -> Kind<P> {
    Kind { what: "VIs", cases: CASES, play: play::<P>, begin: begin::<P> }
}

fn begin<P: Target>(s: &'static Suite<P>, core: usize) {
    let count = s.counted(RUNNING);
    play(s, core, count, &mut |case, name, result| tell::<P>(core, count, case, name, result));
}

fn play<P: Target>(s: &'static Suite<P>, core: usize, count: usize, hear: &mut Hear<'_>) {
    let (table, bare) = (Table::new(&IDS[..count]), &s.nodes.bares[core]);
    let memory = SHARED[usize::from(count > 2)].0.get().cast();
    let open = || {
        // SAFETY: the static is long enough for all NICs and was zero before this run; a former run of the place is not
        // called any more.
        let region = unsafe { Region::whole(memory, count as u16, core as u16, table.shape) };
        let region = region.expect("the table has this place");
        let nic = mapped::open(&NAMES[..count], table, region, bare, Options::default());
        nic.expect("the table is that of the memory")
    };
    let within = |ns| Deadline::At(bare.now_ns() + ns);
    let setup = Setup { nics: count as u16, own: NicNumber(core as u16), open: &open, within: &within };
    musubi_testsuite_vis::run(&setup, |case, name, result| {
        let result = result.as_ref();
        hear(case, name, result.map(|_| ()).map_err(|failure| failure as _));
    });
}
