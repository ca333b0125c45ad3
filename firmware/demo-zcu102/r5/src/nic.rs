//! A task that has a NIC beside Linux: it takes what processes of Linux stream to it, outlives one that is killed, and runs the test
//! suite's cases of VIs with its successor.
//!
//! What you may rely on: nothing that a process of Linux does, its death among it, holds up anything but this task.
//!
//! How it works: the NIC's memory is an SMEM channel of the same participant, like that of the nodes of MCAPI. What this side registers
//! is memory of its heap, which Linux does not reach.

use musubi_core::channel::Deadline as Until;
use musubi_core::mapped::Participant;
use musubi_freertos::TaskHost;
use musubi_metal::board::Board as _;
use musubi_metal::board::zcu102_r5::Zcu102R5;
use musubi_metal::println;
use musubi_testsuite_vis::{Account, CASES_WITHIN_A_LIFE, Failure, Part, Setup, outlive, run_some};
use musubi_transport::mapped::{Deadline, Options};
use musubi_vipl::address::NicNumber;
use musubi_vipl::mapped;
use zcu102_demo::nics::{MEMORY, NAMES, Running, TABLE};

use crate::Cpu;
use crate::node::HEAP;

/// Waits of the cases that are longer than this have no end: a process comes when Linux starts it, and its end is told by its successor.
const SHORT_NS: u64 = 1_000_000_000;

/// Outlives a process and runs the cases with its successor; then says what came of it.
pub fn serve(participant: &Participant<'static, TaskHost>) {
    if let Err(failure) = try_serve(participant) {
        println!(Cpu, "FAILED VIs on the Cortex-R5F: {failure}");
    }
}

fn try_serve(participant: &Participant<'static, TaskHost>) -> Result<(), Failure> {
    let open = || {
        let region = participant.region(MEMORY, TABLE.shape, Until::Forever);
        let region = region.expect("the description has this memory");
        // It rests at once when nothing has come, as the node of MCAPI does.
        let nic = mapped::open(&NAMES, TABLE, region, participant.host(), Options { looks: 0 });
        nic.expect("the table is that of the description")
    };
    let within = |ns| if ns < SHORT_NS { Deadline::At(Zcu102R5::now_ns() + ns) } else { Deadline::Forever };
    let setup: Setup<'_, Running<TaskHost>> = Setup { nics: 2, own: NicNumber(0), open: &open, within: &within };
    let mut part = Part::join(&setup)?;
    let [former, latter] = outlive(&mut part)?;
    println!(Cpu, "VIs: a process of Linux was killed: {}", told(&former));
    println!(Cpu, "VIs: its successor: {}", told(&latter));
    let mut passed = 0;
    run_some(&mut part, CASES_WITHIN_A_LIFE, |_, name, result| match result {
        Ok(()) => passed += 1,
        Err(failure) => println!(Cpu, "FAILED {name} on the Cortex-R5F: {failure}"),
    });
    println!(Cpu, "VIs beside Linux: {passed} of {CASES_WITHIN_A_LIFE} cases passed here; heap: {}", HEAP.report());
    part.exchange(&[passed]).map(|_| ())
}

/// An account in words.
fn told(account: &Account) -> impl core::fmt::Display + '_ {
    struct Told<'a>(&'a Account);
    impl core::fmt::Display for Told<'_> {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            let sum = |of: fn(&musubi_testsuite_vis::Totals) -> u32| self.0.0.iter().map(of).sum::<u32>();
            let (received, flushed) = (sum(|one| one.received), sum(|one| one.flushed));
            write!(f, "{received} messages received, {flushed} descriptors flushed, {} stray", self.0.stray())
        }
    }
    Told(account)
}
