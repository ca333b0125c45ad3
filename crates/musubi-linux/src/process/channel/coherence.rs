//! Cache hints. Processes on one Linux kernel see coherent memory, so nothing has to be published or acquired.
//!
//! How it works: a line that will be written is asked for with write intent, so that it comes over exclusive in one
//! transfer instead of shared first and exclusive later; a line that will be read is asked for early.

use musubi_core::port::Coherence;

/// Prefetch with and without write intent where the processor has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints;

impl Coherence for Hints {
    #[inline(always)]
    fn intend_write(&self, line: *const u8) {
        prefetch_write(line);
    }

    #[inline(always)]
    fn intend_read(&self, line: *const u8) {
        prefetch_read(line);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_write(line: *const u8) {
    // SAFETY: a prefetch accesses nothing in the sense of the language and never faults, whatever the address; every
    // x86-64 processor accepts the instruction, some as a no-op.
    unsafe { core::arch::asm!("prefetchw [{0}]", in(reg) line, options(nostack, preserves_flags, readonly)) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_read(line: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch_write(line: *const u8) {
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe { core::arch::asm!("prfm pstl1keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly)) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch_read(line: *const u8) {
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe { core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly)) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn prefetch_write(line: *const u8) {
    let _ = line;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn prefetch_read(line: *const u8) {
    let _ = line;
}
