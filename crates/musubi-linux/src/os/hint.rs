//! Hints to the processor about lines of memory.
//!
//! What you may rely on: a hint changes nothing but time, whatever the address. Where there is no instruction for it, and under an
//! interpreter, it is nothing.
//!
//! How it works: a line that another core has read last comes over, for the right to write it, when the first store to it
//! leaves the store buffer; a fence behind that store waits for it. Asked for before, it comes while something else is done.

/// The line of this address will be written soon. x86-64: `PREFETCHW`, which processors without it take as no operation;
/// Arm: `PRFM PSTL1KEEP`.
#[inline(always)]
pub fn will_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address reads and writes nothing, raises no fault, and changes no flag.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the same.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    let _ = address;
}
