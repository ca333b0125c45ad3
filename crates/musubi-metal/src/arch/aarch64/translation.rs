//! The memory map: every region at its own address, in blocks of 2 MiB, below 4 GiB.
//!
//! How it works: one table of the first level with four entries, each a table of 512 blocks (DDI 0487, chapter D8, granule
//! 4 KiB, 32 bits of input address). The core that boots writes the tables before any other core runs; nobody changes
//! them afterwards.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::board::{MemoryKind, Region};

/// Bytes that one entry of the second level maps.
const BLOCK_BYTES: usize = 2 << 20;
/// Entries of a table.
const ENTRIES: usize = 512;
/// Tables of the second level: 1 GiB each.
const TABLES: usize = 4;

/// The entry is a table.
const TABLE: u64 = 0b11;
/// The entry is a block, accessed already (AF).
const BLOCK: u64 = 0b01 | 1 << 10;
/// Inner shareable.
const INNER: u64 = 0b11 << 8;
/// Nobody executes here (UXN, PXN).
const NO_EXECUTE: u64 = 0b11 << 53;
/// User mode does not execute here (UXN).
const NO_USER_EXECUTE: u64 = 1 << 54;
/// Attributes by index: 0 normal write-back, 1 normal not cached, 2 device nGnRE.
const MAIR: u64 = 0x04_44_FF;
/// 32 bits of address, tables in cached shareable memory, no second half.
const TCR: u64 = 32 | 1 << 8 | 1 << 10 | 0b11 << 12 | 1 << 23;
/// Translation, data and instruction caches on (SCTLR_EL1.M, C, I).
const SCTLR_ON: u64 = 1 | 1 << 2 | 1 << 12;

/// Tables as the hardware reads them. Writer: the boot core, before others run.
#[repr(C, align(4096))]
struct Tables {
    second: [[AtomicU64; ENTRIES]; TABLES],
    first: [AtomicU64; TABLES],
}

static MAP: Tables = Tables {
    second: [const { [const { AtomicU64::new(0) }; ENTRIES] }; TABLES],
    first: [const { AtomicU64::new(0) }; TABLES],
};

/// Turns translation on for this core.
pub fn enable(memory: &[Region]) {
    if MAP.first[0].load(Ordering::Relaxed) == 0 {
        fill(memory);
    }
    let first = MAP.first.as_ptr();
    // SAFETY: the tables map code, data and stack of this program at their own addresses, so the next instruction is where
    // it was. Stale lines of the caches are the boot loader's duty, which hands over with clean caches.
    unsafe {
        asm!("msr mair_el1, {mair}", "msr tcr_el1, {tcr}", "msr ttbr0_el1, {first}", "dsb sy", "isb",
            "tlbi vmalle1", "ic iallu", "dsb sy", "isb",
            "mrs {t}, sctlr_el1", "orr {t}, {t}, {on}", "msr sctlr_el1, {t}", "isb",
            mair = in(reg) MAIR, tcr = in(reg) TCR, first = in(reg) first, on = in(reg) SCTLR_ON, t = out(reg) _,
            options(nostack));
    }
}

fn fill(memory: &[Region]) {
    for region in memory {
        let last = (region.start + region.bytes).div_ceil(BLOCK_BYTES).min(TABLES * ENTRIES);
        for block in region.start / BLOCK_BYTES..last {
            let entry = (block * BLOCK_BYTES) as u64 | attributes(region.kind);
            MAP.second[block / ENTRIES][block % ENTRIES].store(entry, Ordering::Relaxed);
        }
    }
    for (entry, table) in MAP.first.iter().zip(&MAP.second) {
        entry.store(table.as_ptr() as u64 | TABLE, Ordering::Relaxed);
    }
}

fn attributes(kind: MemoryKind) -> u64 {
    let index = |number: u64| number << 2;
    match kind {
        MemoryKind::Normal => BLOCK | INNER | NO_USER_EXECUTE | index(0),
        MemoryKind::Shared => BLOCK | INNER | NO_EXECUTE | index(1),
        MemoryKind::Device => BLOCK | NO_EXECUTE | index(2),
    }
}
