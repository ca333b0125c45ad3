//! What the Cortex-A53 and the Cortex-R5F of the pair agree on: the plan, the memory, the doorbells, what a message says.
//!
//! How it works: a shared interrupt that no device uses is each side's doorbell, set pending by the other side in this
//! side's interrupt controller. Where the Cortex-R5F has none, it polls and the Master's rings reach nobody. In QEMU only: on the chip a
//! Cortex-A53 reaches neither that controller nor, by PSCI, the core (`musubi_metal::board::{zynqmp_map, rpu_start}`).
#![no_std]

use musubi_core::mapped::{Memory, Participant, Setup, StorageLine, storage_lines};
use musubi_core::plan::{Domain, Liveness, Plan, PortKind};
use musubi_metal::Program;
use musubi_metal::bare_host::BareHost;
use musubi_metal::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use musubi_metal::registers::Window;
pub use musubi_testsuite::plan::{DOWN, MASTER, REMOTE, UP};
use musubi_testsuite::plan::{domains, plan};

static DOMAINS: [Domain<'static>; 2] = domains(PortKind::Metal);
const DOMAINS_OF_CONST: [Domain<'static>; 2] = domains(PortKind::Metal);
/// A peer that is silent for so long has stopped. Long, since an emulator's cores share those of the host.
const LIVENESS: Liveness = Liveness { heartbeat_ns: 20_000_000, stalled_ns: 5_000_000_000 };
/// The plan: two domains of one participant each.
pub static PLAN: Plan<'static> = Plan { liveness: LIVENESS, ..plan(&DOMAINS) };

/// Where the shared memory begins; the boards of both map it uncached.
pub const SHARED: usize = 0x3F00_0000;
/// Where the Cortex-R5F's image begins: with its vectors.
pub const R5_ENTRY: usize = 0;
/// Interrupts by which each is rung.
pub const A53_BELL: u32 = 121;
pub const R5_BELL: u32 = 123;

/// Longest time that either side leaves its heartbeat alone.
pub const SLICE_NS: u64 = 10_000_000;

/// The first byte of a message of the Master's: answer it, or break out of the own memory and begin anew.
pub const ANSWER: u8 = 1;
pub const BREAK_OUT: u8 = 2;
/// Bytes of an answer: the message's number, its digest, rings heard so far, whether there are interrupts.
pub const ANSWER_BYTES: usize = 13;
/// Where a message's number stands, behind its first byte.
pub const NUMBER_AT: usize = 1;

/// Lines of private memory of a participant.
pub const LINES: usize = {
    let master = storage_lines::<musubi_core::mapped::Polling>(&plan(&DOMAINS_OF_CONST), MASTER);
    let remote = storage_lines::<musubi_core::mapped::Polling>(&plan(&DOMAINS_OF_CONST), REMOTE);
    if master > remote { master } else { remote }
};
/// Private memory of this program's participant.
pub static STORAGE: [StorageLine; LINES] = [const { StorageLine::new() }; LINES];

// SAFETY: the distributor of the Cortex-A53s' controller lies there.
const A53_DISTRIBUTOR: Window = unsafe { Window::new(0xF901_0000, DISTRIBUTOR_BYTES) };
// SAFETY: the distributor of the Cortex-R5Fs' controller lies there; where there is none it reads as zero.
const R5_DISTRIBUTOR: Window = unsafe { Window::new(0xF900_0000, DISTRIBUTOR_BYTES) };
// SAFETY: a core that only rings at the other side never touches its interface; there is one of ours at this place.
const NO_INTERFACE: Window = unsafe { Window::new(0xF902_0000, INTERFACE_BYTES) };
/// The controllers as the other side uses them: to ring.
pub static A53_CONTROLLER: Gic<Window> = Gic::new(A53_DISTRIBUTOR, NO_INTERFACE);
pub static R5_CONTROLLER: Gic<Window> = Gic::new(R5_DISTRIBUTOR, NO_INTERFACE);

/// Attaches this program's participant.
///
/// # Errors
/// What the port says of the plan, or of a peer that does not let go of its memory.
pub fn attach<P: Program>(
    board: &'static BareHost<P>,
    participant: u16,
) -> Result<Participant<'static, BareHost<P>>, musubi_core::Error> {
    // SAFETY: both boards map memory there that nothing else uses; each program has one participant, attached once.
    let memory = unsafe { Memory::whole(SHARED as *mut u8, &PLAN, participant) }.ok_or(musubi_core::Error::Plan)?;
    Participant::attach(Setup::new(&PLAN, participant, board, memory, &STORAGE))
}

/// The digest of a message's bytes (FNV-1a, 32 bits).
pub fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |digest, &byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
