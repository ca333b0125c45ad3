//! How a Cortex-R5F of a Zynq UltraScale+ is started: the boot loader's steps, as a list.
//!
//! What you may rely on: [`steps`] is pure; [`run`] carries it out with a bound on each wait. A core that was never loaded must not be
//! started: it begins at 0, in its tightly coupled memory, wherever the rest of its image is.
//!
//! How it works: the order is that of the first stage boot loader (embeddedsw, `lib/sw_apps/zynqmp_fsbl/src/xfsbl_handoff.c` and
//! `xfsbl_misc.c`, XFsbl_PowerUpIsland; registers by UG1087, modules RPU, CRL_APB and PMU_GLOBAL): power of the island, which both cores
//! share; split mode with memories apart; the core halted before its clock and its reset are released; vectors low, as it has nothing
//! at 0xFFFF_0000; then go. [`Step::Settle`] is the loader's pause for the clock.
//!
//! What it does not do: load. The memories answer once the island has power and the reset is released, so a loader that fills them does
//! so between [`Stage::Memory`] and [`Stage::Go`]. Beside Linux none of this is ours: the platform management unit does it for
//! remoteproc.

use crate::registers::Registers;

/// A block of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Real-time processing unit, 0xFF9A_0000.
    Rpu,
    /// Clocks and resets of the low-power domain, 0xFF5E_0000.
    Crl,
    /// Platform management unit, 0xFFD8_0000.
    Pmu,
}

impl Block {
    /// Where it lies.
    pub const fn base(self) -> usize {
        match self {
            Block::Rpu => 0xFF9A_0000,
            Block::Crl => 0xFF5E_0000,
            Block::Pmu => 0xFFD8_0000,
        }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a word.
    Write(Block, usize, u32),
    /// Sets and clears bits of a register, the others stay: bits to clear, bits to set.
    Change(Block, usize, u32, u32),
    /// Waits until these bits are 0.
    UntilClear(Block, usize, u32),
    /// Lets the clock settle: 80 us.
    Settle,
}

/// A part of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Power, halt, clock, reset: the tightly coupled memories can be written then.
    Memory,
    /// The core runs.
    Go,
}

const RPU_GLBL_CNTL: usize = 0x00;
const SLSPLIT: u32 = 1 << 3;
const TCM_COMB: u32 = 1 << 6;
const SLCLAMP: u32 = 1 << 4;
/// RPU_n_CFG of core 0; core 1's follows.
const RPU_0_CFG: usize = 0x100;
const RPU_CFG_BYTES: usize = 0x100;
const NCPUHALT: u32 = 1;
const VINITHI: u32 = 1 << 2;
const CPU_R5_CTRL: usize = 0x90;
const CLKACT: u32 = 1 << 24;
const RST_LPD_TOP: usize = 0x23C;
/// Reset of core 0; core 1's follows; and that of the interconnect they share.
const R50_RESET: u32 = 1;
const AMBA_RESET: u32 = 1 << 2;
const REQ_PWRUP_STATUS: usize = 0x110;
const REQ_PWRUP_INT_EN: usize = 0x118;
const REQ_PWRUP_TRIG: usize = 0x120;
/// The island of both cores, and the memories of core 0; those of core 1 follow two bits on.
const ISLAND: u32 = 1 << 10;
const TCM_0: u32 = 0b11 << 12;

/// Steps of the first stage, and of the second.
const MEMORY_STEPS: usize = 8;
const GO_STEPS: usize = 1;

/// The steps of a stage for core 0 or 1.
pub const fn steps(core: usize, stage: Stage) -> &'static [Step] {
    const MEMORY: [[Step; MEMORY_STEPS]; 2] = [memory(0), memory(1)];
    const GO: [[Step; GO_STEPS]; 2] = [go(0), go(1)];
    match stage {
        Stage::Memory => &MEMORY[core % 2],
        Stage::Go => &GO[core % 2],
    }
}

const fn memory(core: usize) -> [Step; MEMORY_STEPS] {
    let power = ISLAND | TCM_0 << (2 * core);
    let cfg = RPU_0_CFG + RPU_CFG_BYTES * core;
    [
        Step::Write(Block::Pmu, REQ_PWRUP_INT_EN, power),
        Step::Write(Block::Pmu, REQ_PWRUP_TRIG, power),
        Step::UntilClear(Block::Pmu, REQ_PWRUP_STATUS, power),
        Step::Change(Block::Rpu, RPU_GLBL_CNTL, TCM_COMB | SLCLAMP, SLSPLIT),
        Step::Change(Block::Rpu, cfg, NCPUHALT | VINITHI, 0),
        Step::Change(Block::Crl, CPU_R5_CTRL, 0, CLKACT),
        Step::Settle,
        Step::Change(Block::Crl, RST_LPD_TOP, R50_RESET << core | AMBA_RESET, 0),
    ]
}

const fn go(core: usize) -> [Step; GO_STEPS] {
    [Step::Change(Block::Rpu, RPU_0_CFG + RPU_CFG_BYTES * core, 0, NCPUHALT)]
}

/// Looks at a register before a wait is given up.
const LOOKS_MAX: u32 = 1_000_000;

/// Carries steps out; `settle` lets 80 us pass. Gives the step that waited in vain, after which nothing more is done.
pub fn run<'r, R: Registers + 'r>(
    steps: &[Step],
    registers: impl Fn(Block) -> &'r R,
    settle: impl Fn(),
) -> Result<(), Step> {
    for step in steps {
        match *step {
            Step::Write(block, at, value) => registers(block).write_u32(at, value),
            Step::Change(block, at, clear, set) => {
                let before = registers(block).read_u32(at);
                registers(block).write_u32(at, before & !clear | set);
            }
            Step::UntilClear(block, at, bits) => {
                if !(0..LOOKS_MAX).any(|_| registers(block).read_u32(at) & bits == 0) {
                    return Err(*step);
                }
            }
            Step::Settle => settle(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
