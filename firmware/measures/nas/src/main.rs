//! NAS EP, IS, CG and MG, class S, on one hart or two of QEMU's virt machine for RISC-V.
//!
//! How it works: a worker is a core; workers swap by showing each other where their words lie ([`measures::team`]).
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use measures::team::{Meeting, Worker};
use musubi_core::smp::Processor;
use musubi_measures::nas::{Kernel, Lost, Team, Workspaces, barrier};
use musubi_metal::board::Board;
use musubi_metal::board::riscv_virt::RiscvVirt;
use musubi_metal::{Machine, image, println, start};

/// Most workers.
const WORKERS: usize = 2;
/// Longest wait for the other worker, in nanoseconds.
const WAIT_NS_MAX: u64 = 200_000_000_000;

image! { Cpu: RiscvVirt, WORKERS, main, serve: (), rung: (), idle: second }

static MEETING: Meeting<WORKERS> = Meeting::new();
/// Workers of this run. Writer: core 0, before it starts the other.
static TEAM: AtomicU32 = AtomicU32::new(1);

/// Each worker's memory.
struct Spaces([UnsafeCell<Workspaces>; WORKERS]);
// SAFETY: each worker touches its own only; the words that it shows are read between the two halves of a swap.
unsafe impl Sync for Spaces {}
static SPACES: Spaces = Spaces([const { UnsafeCell::new(Workspaces::new()) }; WORKERS]);

/// What a kernel took, in nanoseconds, and whether its values are the published ones.
type Timing = (u64, bool);

fn work(rank: usize) -> Result<[Timing; Kernel::ALL.len()], Lost> {
    let size = TEAM.load(Ordering::Acquire) as usize;
    let mut team = Worker::new(&MEETING, rank, size, RiscvVirt::now_ns, WAIT_NS_MAX);
    // SAFETY: this worker's own memory, once.
    let spaces = unsafe { &mut *SPACES.0[rank].get() };
    let mut timings = [(0, false); Kernel::ALL.len()];
    for (timing, kernel) in timings.iter_mut().zip(Kernel::ALL) {
        kernel.prepare(&team, spaces);
        *timing = timed(&mut team, |team| kernel.run(team, spaces))?;
    }
    Ok(timings)
}

fn timed<T: Team>(team: &mut T, kernel: impl FnOnce(&mut T) -> Result<bool, Lost>) -> Result<Timing, Lost> {
    barrier(team)?;
    let begin_ns = RiscvVirt::now_ns();
    let right = kernel(team)?;
    barrier(team)?;
    Ok((RiscvVirt::now_ns() - begin_ns, right))
}

/// Core 1.
fn second() -> ! {
    // The first worker reports.
    let _ = work(Machine::<Cpu>::core());
    start::sleep()
}

fn main() -> ! {
    let workers = start::cores_present::<Cpu>().min(WORKERS);
    TEAM.store(workers as u32, Ordering::Release);
    let started = workers == 1 || start::start_core::<Cpu>(1).is_ok();
    let passed = match work(0) {
        Ok(timings) if started => {
            for (kernel, (ns, right)) in Kernel::ALL.into_iter().zip(timings) {
                let name = kernel.name();
                println!(Cpu, "nas {name} S workers {workers} ns {ns} verified {right}");
            }
            timings.iter().filter(|(_, right)| *right).count()
        }
        _ => {
            println!(Cpu, "FAILED the other worker did not come");
            0
        }
    };
    println!(Cpu, "{passed} passed, {} failed", Kernel::ALL.len() - passed);
    RiscvVirt::power_off()
}
