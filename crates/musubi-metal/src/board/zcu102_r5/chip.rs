//! Starting the other Cortex-R5F on the chip itself.
//!
//! What you may rely on: known from manuals, not tried. Only for a program that has the low-power domain to itself; beside
//! Linux, the platform management unit refuses nobody and knows nothing of it.
//!
//! How it works: the other core begins at 0, in its own tightly coupled memory. That gets a jump to the entry, the eight
//! vectors' first one, while the core is halted; then the core goes ([`crate::board::rpu_start`]).

use super::CLOCK;
use crate::board::StartError;
use crate::board::rpu_start::{Block, Stage, run, steps};
use crate::registers::{Registers, Window, before_device};

/// What the clock settles in: 80 us.
const SETTLE_NS: u64 = 80_000;
/// Where everybody sees the first tightly coupled memory of each core.
const MEMORIES: [usize; 2] = [0xFFE0_0000, 0xFFE9_0000];
/// `ldr pc, [pc, #24]`: jumps to the address eight words on.
const JUMP: u32 = 0xE59F_F018;
const TARGET: usize = 0x20;
/// What we say if the power does not come.
const NO_POWER: i32 = -129;
/// RPU_n_CFG, and that the core is not halted; RST_LPD_TOP, and the resets of a core.
const CFG: usize = 0x100;
const NCPUHALT: u32 = 1;
const RST_LPD_TOP: usize = 0x23C;
const AMBA_RESET: u32 = 1 << 2;

// SAFETY: the real-time processing unit's registers lie there.
static RPU: Window = unsafe { Window::new(Block::Rpu.base(), 0x300) };
// SAFETY: the low-power domain's clocks and resets lie there.
static CRL: Window = unsafe { Window::new(Block::Crl.base(), 0x300) };
// SAFETY: the platform management unit's registers lie there.
static PMU: Window = unsafe { Window::new(Block::Pmu.base(), 0x200) };

fn registers(block: Block) -> &'static Window {
    match block {
        Block::Rpu => &RPU,
        Block::Crl => &CRL,
        Block::Pmu => &PMU,
    }
}

fn settle() {
    let until_ns = CLOCK.now_ns() + SETTLE_NS;
    while CLOCK.now_ns() < until_ns {}
}

/// Whether a core fetches instructions.
fn runs(core: usize) -> bool {
    let in_reset = CRL.read_u32(RST_LPD_TOP) & (1 << core | AMBA_RESET) != 0;
    !in_reset && RPU.read_u32(CFG * (core + 1)) & NCPUHALT != 0
}

/// Starts a core. [`StartError::Running`] for one that runs already, as one does that has stopped and waits in the entry code.
pub(super) fn start(core: usize, entry: usize) -> Result<(), StartError> {
    if runs(core) {
        return Err(StartError::Running);
    }
    let stage = |stage| run(steps(core, stage), registers, settle).map_err(|_| StartError::Refused(NO_POWER));
    stage(Stage::Memory)?;
    // SAFETY: the first words of that core's memory, which the steps above have made answer.
    let memory = unsafe { Window::new(MEMORIES[core % MEMORIES.len()], 0x40) };
    memory.write_u32(0, JUMP);
    memory.write_u32(TARGET, entry as u32);
    before_device();
    stage(Stage::Go)
}
