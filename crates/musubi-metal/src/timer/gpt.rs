//! The General Purpose Timer of i.MX6, as the second timer of a board: it counts the crystal, whatever the processor's clock is.
//!
//! How it works: clock source 5 is the 24 MHz crystal divided by eight on i.MX 6Dual/6Quad (Linux,
//! `drivers/clocksource/timer-imx-gpt.c`: V2_TCTL_CLK_OSC_DIV8), counted freely. Registers: i.MX 6Dual/6Quad reference manual
//! (IMX6DQRM), chapter GPT.
//!
//! What it does not do: share the timer with a program that has set it otherwise; it is set anew.

use crate::registers::Registers;

/// Ticks in a second.
pub const HZ: u32 = 3_000_000;

/// Control and prescaler registers, the counter.
const CR: usize = 0x00;
const PR: usize = 0x04;
const CNT: usize = 0x24;
/// CR: on; counts from zero when switched on; source; does not begin anew at a comparison.
const EN: u32 = 1;
const ENMOD: u32 = 1 << 1;
const CRYSTAL_BY_8: u32 = 5 << 6;
const FREE_RUN: u32 = 1 << 9;

/// Lets it count. The source is changed while the timer is off, as the manual wants it.
pub fn start(gpt: &impl Registers) {
    gpt.write_u32(CR, 0);
    gpt.write_u32(PR, 0);
    gpt.write_u32(CR, CRYSTAL_BY_8 | FREE_RUN | ENMOD);
    gpt.write_u32(CR, CRYSTAL_BY_8 | FREE_RUN | ENMOD | EN);
}

/// Its value.
pub fn now(gpt: &impl Registers) -> u32 {
    gpt.read_u32(CNT)
}
