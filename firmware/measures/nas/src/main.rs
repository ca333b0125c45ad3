//! NAS EP and IS, class S, on one hart or two of QEMU's virt machine for RISC-V.
//!
//! How it works: a worker is a core; workers swap by showing each other where their words lie ([`measures::team`]).
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use measures::team::{Meeting, Worker};
use musubi_core::smp::Processor;
use musubi_measures::nas::{Lost, Team, barrier, ep, is};
use musubi_metal::board::Board;
use musubi_metal::board::riscv_virt::RiscvVirt;
use musubi_metal::{Machine, image, println, start};

/// Most workers.
const WORKERS: usize = 2;
/// How often IS runs in one timing, since one run takes milliseconds.
const IS_REPEATS: u32 = 100;
/// Longest wait for the other worker, in nanoseconds.
const WAIT_NS_MAX: u64 = 200_000_000_000;

image! { Cpu: RiscvVirt, WORKERS, main, serve: (), rung: (), idle: second }

static MEETING: Meeting<WORKERS> = Meeting::new();
/// Workers of this run. Writer: core 0, before it starts the other.
static TEAM: AtomicU32 = AtomicU32::new(1);

/// Each worker's memory.
struct Spaces([UnsafeCell<is::Workspace>; WORKERS]);
// SAFETY: each worker touches its own only; the words that it shows are read between the two halves of a swap.
unsafe impl Sync for Spaces {}
static SPACES: Spaces = Spaces([const { UnsafeCell::new(is::Workspace::new()) }; WORKERS]);

/// What a kernel took, in nanoseconds, and whether its values are the published ones.
type Timing = (u64, bool);

fn work(rank: usize) -> Result<[Timing; 2], Lost> {
    let size = TEAM.load(Ordering::Acquire) as usize;
    let mut team = Worker::new(&MEETING, rank, size, RiscvVirt::now_ns, WAIT_NS_MAX);
    // SAFETY: this worker's own memory, once.
    let space = unsafe { &mut *SPACES.0[rank].get() };
    let ep = timed(&mut team, |team| Ok(ep::run(team)?.are_right()))?;
    is::prepare(&team, space);
    let is = timed(&mut team, |team| {
        let mut right = true;
        for _ in 0..IS_REPEATS {
            right &= is::run(team, space)?.is_right();
        }
        Ok(right)
    })?;
    Ok([ep, is])
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
            for (name, (ns, right)) in ["EP", "IS"].iter().zip(timings) {
                println!(Cpu, "nas {name} S workers {workers} ns {ns} verified {right}");
            }
            timings.iter().filter(|(_, right)| *right).count()
        }
        _ => {
            println!(Cpu, "FAILED the other worker did not come");
            0
        }
    };
    println!(Cpu, "{passed} passed, {} failed", 2 - passed);
    RiscvVirt::power_off()
}
