//! The A profile: memory map by sections, vectors by VBAR, coherence among the cores.
//!
//! What you may rely on: what [`Board::MEMORY`](crate::board::Board::MEMORY) names is mapped at its own addresses and nothing
//! else; memory is shareable and cached, so exclusive accesses work between cores.
//!
//! How it works: one table of the first level with sections of 1 MiB (short descriptors, DDI 0406C chapter B3.5). The boot
//! core writes it before any other core runs; nobody changes it afterwards. What a core wants in ACTLR and in its
//! diagnostic register, [`cortex_a`] says. Memory that no cache holds is so for the first level; what a second-level
//! controller makes of it, [`crate::board::pl310`] says.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch::cortex_a;
use crate::board::{MemoryKind, Region};

pub mod generic_timer;

/// Bytes of a section.
const SECTION_BYTES: usize = 1 << 20;
/// Entries of the table: 4 GiB.
const SECTIONS: usize = 4096;
/// A section that privileged and user mode may read and write.
const SECTION: u32 = 0b10 | 0b11 << 10;
/// Nobody executes here.
const NO_EXECUTE: u32 = 1 << 4;
/// Shared with other cores.
const SHAREABLE: u32 = 1 << 16;
/// Normal memory, write-back, allocated on reads and writes (TEX 001, C, B).
const CACHED: u32 = 1 << 12 | 1 << 3 | 1 << 2;
/// Normal memory that no cache holds (TEX 001).
const NOT_CACHED: u32 = 1 << 12;
/// Registers (TEX 000, B).
const DEVICE: u32 = 1 << 2;
/// Table walks go through the caches, inner and outer, and are shareable (TTBR0.IRGN, RGN, S).
const WALKS_CACHED: usize = 1 << 6 | 1 << 3 | 1 << 1;
/// SCTLR: translation, data cache, branch prediction, instruction cache.
const SCTLR_ON: u32 = 1 | 1 << 2 | 1 << 11 | 1 << 12;

/// The table as the hardware reads it. Writer: the boot core, before others run.
#[repr(C, align(16384))]
struct Table([AtomicU32; SECTIONS]);

static MAP: Table = Table([const { AtomicU32::new(0) }; SECTIONS]);

/// Sets the vectors, the core's work-arounds and its part in coherence, and turns translation on, for this core.
pub fn prepare_core(vectors: usize, memory: &[Region]) {
    // SAFETY: the vectors are 32-byte aligned code for exactly this purpose.
    unsafe { asm!("mcr p15, 0, {}, c12, c0, 0", "isb", in(reg) vectors, options(nostack, preserves_flags)) };
    fit();
    if memory.first().is_some_and(|region| MAP.0[region.start / SECTION_BYTES].load(Ordering::Relaxed) == 0) {
        fill(memory);
    }
    enable();
}

/// Sets the core's work-arounds and lets it take part in coherence, where the firmware before us has not. On each core.
fn fit() {
    let midr: u32;
    // SAFETY: reads an identification register.
    unsafe { asm!("mrc p15, 0, {}, c0, c0, 0", out(reg) midr, options(nomem, nostack, preserves_flags)) };
    set_diagnostics(cortex_a::diagnostics(midr));
    join_coherence(cortex_a::coherence(midr));
}

/// Sets bits of the Cortex-A9's diagnostic register. Only a core that starts in the secure world may write it; where they are set
/// already, as a boot loader sets them on the first core, nothing is written.
fn set_diagnostics(bits: u32) {
    if bits == 0 {
        return;
    }
    let before: u32;
    // SAFETY: a core with `bits` is a Cortex-A9, which has this register; reading it has no effect.
    unsafe { asm!("mrc p15, 0, {}, c15, c0, 1", out(reg) before, options(nostack, preserves_flags)) };
    if before & bits != bits {
        // SAFETY: the bits only make the core do less at once; caches are still off.
        unsafe { asm!("mcr p15, 0, {}, c15, c0, 1", "isb", in(reg) before | bits, options(nostack, preserves_flags)) };
    }
}

/// Sets bits of ACTLR, if one of them is missing.
fn join_coherence(bits: u32) {
    let before: u32;
    // SAFETY: reads a control register.
    unsafe { asm!("mrc p15, 0, {}, c1, c0, 1", out(reg) before, options(nostack, preserves_flags)) };
    if before & bits != bits {
        // SAFETY: caches are still off and empty, as the manual demands for these bits, and the snoop control unit is on.
        unsafe { asm!("mcr p15, 0, {}, c1, c0, 1", "isb", in(reg) before | bits, options(nostack, preserves_flags)) };
    }
}

fn fill(memory: &[Region]) {
    for region in memory {
        let last = (region.start + region.bytes).div_ceil(SECTION_BYTES).min(SECTIONS);
        for section in region.start / SECTION_BYTES..last {
            let entry = (section * SECTION_BYTES) as u32 | attributes(region.kind);
            MAP.0[section].store(entry, Ordering::Relaxed);
        }
    }
}

fn attributes(kind: MemoryKind) -> u32 {
    match kind {
        MemoryKind::Normal => SECTION | SHAREABLE | CACHED,
        MemoryKind::Shared => SECTION | SHAREABLE | NOT_CACHED | NO_EXECUTE,
        MemoryKind::Device => SECTION | DEVICE | NO_EXECUTE,
    }
}

fn enable() {
    let table = MAP.0.as_ptr().addr() | WALKS_CACHED;
    flush_translations();
    // SAFETY: the table maps code, data and stack of this program at their own addresses, so the next instruction is where it
    // was. All of domain 0 is checked against the table (DACR 1), and TTBR0 covers all addresses (TTBCR 0).
    unsafe {
        asm!("mcr p15, 0, {zero}, c2, c0, 2", "mcr p15, 0, {table}, c2, c0, 0", "mcr p15, 0, {one}, c3, c0, 0",
            "dsb", "isb", "mrc p15, 0, {t}, c1, c0, 0", "orr {t}, {t}, {on}", "mcr p15, 0, {t}, c1, c0, 0", "dsb", "isb",
            zero = in(reg) 0, table = in(reg) table, one = in(reg) 1, on = in(reg) SCTLR_ON, t = out(reg) _,
            options(nostack, preserves_flags));
    }
}

/// Forgets this core's address translations (TLBIALL).
pub fn flush_translations() {
    // SAFETY: translations are then read again from the table, which does not change.
    unsafe { asm!("dsb", "mcr p15, 0, {}, c8, c7, 0", "dsb", "isb", in(reg) 0, options(nostack, preserves_flags)) };
}
