//! The R profile: memory protection by regions, vectors at address 0.
//!
//! What you may rely on: what [`Board::MEMORY`](crate::board::Board::MEMORY) names may be used, with its kind; every other
//! access is a data abort. [`protect`] takes writing away from a part of it, on this core, and [`allow`] gives a part of that
//! back: so a participant can see all of a shared memory and change its own slot only, whatever its program does.
//!
//! How it works: the protection unit of PMSAv7 (DDI 0406C, chapter B5): of the regions that hold an address, the one with the
//! highest number counts, so a protection is a region above the board's. Cortex-R5 has 12 or 16 regions. There is no VBAR:
//! the vectors are copied to address 0, where a Cortex-R5 has tightly coupled memory and QEMU's model ordinary memory. An image
//! that is linked by `musubi_r5.ld` has them there already, as it starts with them; copied again, they are whole after a kernel
//! has written over some of them and the program begins anew.
//!
//! What it does not do: the tightly coupled memories themselves, which a boot loader enables.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::board::{MemoryKind, Region};
use crate::core_data::this_core;
use crate::protection::{Block, blocks};

/// Words of the vectors: eight instructions and eight addresses.
const VECTOR_WORDS: usize = 16;
/// Cores of a cluster.
const CORES: usize = 2;
/// Privileged and user mode may read and write.
const READ_WRITE: u32 = 0b011 << 8;
/// Both may only read.
const READ_ONLY: u32 = 0b110 << 8;
/// Nobody executes here.
const NO_EXECUTE: u32 = 1 << 12;
/// Shared with others, so never kept in this core's cache.
const SHAREABLE: u32 = 1 << 2;
/// Normal memory, write-back, allocated on reads and writes (TEX 001, C, B).
const CACHED: u32 = 1 << 3 | 1 << 1 | 1;
/// Normal memory that no cache holds (TEX 001).
const NOT_CACHED: u32 = 1 << 3;
/// Registers (TEX 000, B).
const DEVICE: u32 = 1;
/// SCTLR: protection, data cache, branch prediction, instruction cache.
const SCTLR_ON: u32 = 1 | 1 << 2 | 1 << 11 | 1 << 12;

/// Regions in use on each core. Writer: that core.
static REGIONS: [AtomicU32; CORES] = [const { AtomicU32::new(0) }; CORES];

/// The protection unit has no regions left, or the area is not in units of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRegion;

/// Copies the vectors to address 0 and turns protection on, for this core.
pub fn prepare_core(vectors: usize, memory: &[Region]) {
    copy_vectors(vectors);
    switch_off_regions();
    let used = regions_used();
    used.store(0, Ordering::Relaxed);
    for region in memory {
        // A board whose memory needs more regions than the core has is a bug of ours, and nothing works without.
        assert!(add(region.start, region.bytes, attributes(region.kind)).is_ok());
    }
    enable();
}

/// Takes writing away from this core for `bytes` bytes at `start`, memory that it shares with others: a store there is then a
/// data abort. Areas that are an aligned power of two take one region, others several.
///
/// # Errors
/// [`NoRegion`]; nothing is protected then.
pub fn protect(start: usize, bytes: usize) -> Result<(), NoRegion> {
    add(start, bytes, READ_ONLY | NO_EXECUTE | SHAREABLE | NOT_CACHED)
}

/// Gives writing back to this core for `bytes` bytes at `start` of what it has protected: its own part.
///
/// # Errors
/// [`NoRegion`]; nothing is given back then.
pub fn allow(start: usize, bytes: usize) -> Result<(), NoRegion> {
    add(start, bytes, attributes(MemoryKind::Shared))
}

/// Regions of the protection unit that this core still has.
pub fn regions_left() -> usize {
    regions_max() as usize - regions_used().load(Ordering::Relaxed) as usize
}

/// Lets this core's cycle counter count every cycle (PMCR, PMCNTENSET; DDI 0406C, chapter C12.8).
pub fn start_cycles() {
    // SAFETY: the performance monitors are nobody else's; E on, D (one in 64) off, the cycle counter enabled.
    unsafe {
        asm!("mrc p15, 0, {t}, c9, c12, 0", "bic {t}, {t}, #8", "orr {t}, {t}, #1", "mcr p15, 0, {t}, c9, c12, 0",
            "mcr p15, 0, {cycles}, c9, c12, 1", "isb", t = out(reg) _, cycles = in(reg) 1u32 << 31,
            options(nostack, preserves_flags));
    }
}

/// Cycles of this core (PMCCNTR), once [`start_cycles`] has run; wraps.
pub fn cycles() -> u32 {
    let cycles: u32;
    // SAFETY: reads a counter. Not `nomem`: it stays where it is written.
    unsafe { asm!("isb", "mrc p15, 0, {}, c9, c13, 0", out(reg) cycles, options(nostack, preserves_flags)) };
    cycles
}

fn regions_used() -> &'static AtomicU32 {
    &REGIONS[this_core().hardware() % CORES]
}

fn regions_max() -> u32 {
    let kind: u32;
    // SAFETY: reads an identification register (MPUIR).
    unsafe { asm!("mrc p15, 0, {}, c0, c0, 4", out(reg) kind, options(nomem, nostack, preserves_flags)) };
    kind >> 8 & 0xFF
}

fn attributes(kind: MemoryKind) -> u32 {
    match kind {
        MemoryKind::Normal => READ_WRITE | CACHED,
        MemoryKind::Shared => READ_WRITE | NO_EXECUTE | SHAREABLE | NOT_CACHED,
        MemoryKind::Device => READ_WRITE | NO_EXECUTE | SHAREABLE | DEVICE,
    }
}

/// Adds regions above those in use.
fn add(start: usize, bytes: usize, attributes: u32) -> Result<(), NoRegion> {
    let used = regions_used();
    let first = used.load(Ordering::Relaxed);
    let needed = blocks(start, bytes).count() as u32;
    if needed == 0 || first + needed > regions_max() {
        return Err(NoRegion);
    }
    for (number, block) in (first..).zip(blocks(start, bytes)) {
        set_region(number, block, attributes);
    }
    used.store(first + needed, Ordering::Relaxed);
    Ok(())
}

fn set_region(number: u32, block: Block, attributes: u32) {
    let size_and_enable = (block.bytes_log2 - 1) << 1 | 1;
    // SAFETY: a region of memory that the board names, or one that only takes rights away (RGNR, DRBAR, DRACR, DRSR).
    unsafe {
        asm!("dsb", "mcr p15, 0, {n}, c6, c2, 0", "isb", "mcr p15, 0, {zero}, c6, c1, 2", "mcr p15, 0, {base}, c6, c1, 0",
            "mcr p15, 0, {access}, c6, c1, 4", "mcr p15, 0, {size}, c6, c1, 2", "dsb", "isb",
            n = in(reg) number, zero = in(reg) 0, base = in(reg) block.start, access = in(reg) attributes,
            size = in(reg) size_and_enable, options(nostack, preserves_flags));
    }
}

/// Switches every region off; the unit itself is off.
fn switch_off_regions() {
    for number in 0..regions_max() {
        // SAFETY: the unit is off while the core prepares itself (RGNR, DRSR).
        unsafe {
            asm!("mcr p15, 0, {n}, c6, c2, 0", "isb", "mcr p15, 0, {zero}, c6, c1, 2", n = in(reg) number, zero = in(reg) 0,
                options(nostack, preserves_flags));
        }
    }
}

fn enable() {
    // SAFETY: the regions hold code, data and stack of this program; caches were emptied by the entry code.
    unsafe {
        asm!("dsb", "mrc p15, 0, {t}, c1, c0, 0", "orr {t}, {t}, {on}", "mcr p15, 0, {t}, c1, c0, 0", "dsb", "isb",
            on = in(reg) SCTLR_ON, t = out(reg) _, options(nostack, preserves_flags));
    }
}

/// Copies the vectors. In assembly, since address 0 is no address to Rust.
fn copy_vectors(from: usize) {
    // SAFETY: the board gives the first bytes of memory to the vectors; the source is code of this size.
    unsafe {
        asm!("2:", "ldr {w}, [{from}], #4", "str {w}, [{to}], #4", "subs {left}, {left}, #1", "bne 2b", "dsb", "isb",
            from = inout(reg) from => _, to = inout(reg) 0 => _, left = inout(reg) VECTOR_WORDS => _, w = out(reg) _,
            options(nostack));
    }
}
