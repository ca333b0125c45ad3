//! The first instructions of each hart.
//!
//! What you may rely on: hart 0 clears the memory of statics and calls `boot_hart`; hart 1 sleeps until hart 0 rings it,
//! then calls `second_hart`; any other sleeps for ever. Interrupts are masked all the while.
//!
//! How it works: RISC-V Privileged Architecture, 3.1: `mhartid`, `mie`, `wfi`, which ends also while interrupts are masked.

use core::arch::global_asm;

global_asm!(
    ".option push",
    ".option arch, +a, +zicsr",
    ".pushsection .text.entry, \"ax\"",
    ".global _start",
    "_start:",
    "    csrw mie, zero",
    "    li   t0, 1 << 13", // floating point on; tasks inherit it
    "    csrw mstatus, t0",
    "    csrr t0, mhartid",
    "    li   t1, 2",
    "1:  bgeu t0, t1, 5f",
    "    la   sp, {stacks}",
    "    slli t2, t0, 14",
    "    add  sp, sp, t2",
    "    li   t2, 1 << 14",
    "    add  sp, sp, t2",
    "    bnez t0, 4f",
    "    la   t1, {bss_start}",
    "    la   t2, {bss_end}",
    "2:  bgeu t1, t2, 3f",
    "    sd   zero, 0(t1)",
    "    addi t1, t1, 8",
    "    j    2b",
    "3:  tail {boot_hart}",
    "4:  li   t1, 8", // machine software interrupt: enabled, not taken
    "    csrw mie, t1",
    "    wfi",
    "    csrr t2, mip",
    "    and  t2, t2, t1",
    "    beqz t2, 4b",
    "    fence",
    "    tail {second_hart}",
    "5:  wfi",
    "    j    5b",
    ".popsection",
    ".option pop",
    stacks = sym MUSUBI_STACKS,
    bss_start = sym MUSUBI_BSS_START,
    bss_end = sym MUSUBI_BSS_END,
    boot_hart = sym crate::boot_hart,
    second_hart = sym crate::second_hart,
);

unsafe extern "C" {
    #[link_name = "musubi_stacks"]
    static MUSUBI_STACKS: u8;
    #[link_name = "musubi_bss_start"]
    static MUSUBI_BSS_START: u8;
    #[link_name = "musubi_bss_end"]
    static MUSUBI_BSS_END: u8;
}
