//! The generic timer of cores that have the extension (Cortex-A7, Cortex-A15): the virtual counter and its timer.
//!
//! What you may rely on: all cores read one counter, which never goes backwards. A core without the extension, such as the
//! Cortex-A9, takes these instructions as undefined.
//!
//! How it works: CP15 registers of DDI 0406C, chapter B8.2. The counter's frequency stands in CNTFRQ, where the firmware has
//! put it. The entry code makes the virtual counter the physical one where it starts in HYP mode.

use core::arch::asm;

/// Private interrupt of the virtual timer, on the usual boards.
pub const INTERRUPT: u32 = 27;

/// Ticks of the counter (CNTVCT).
pub fn ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter; the barrier keeps it from being read early.
    unsafe {
        asm!("isb", "mrrc p15, 1, {}, {}, c14", out(reg) low, out(reg) high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Ticks of the counter in a second (CNTFRQ).
pub fn ticks_per_s() -> u64 {
    let frequency: u32;
    // SAFETY: reads a register.
    unsafe { asm!("mrc p15, 0, {}, c14, c0, 0", out(reg) frequency, options(nomem, nostack, preserves_flags)) };
    frequency.into()
}

/// Raises this core's [`INTERRUPT`] at these ticks; `None`: never.
pub fn set_timer(at: Option<u64>) {
    let (ticks, on) = (at.unwrap_or(u64::MAX), u32::from(at.is_some()));
    // SAFETY: sets this core's virtual timer (CNTV_CVAL, CNTV_CTL), which nobody else uses. CTL 1: enabled and not masked.
    unsafe {
        asm!("mcrr p15, 3, {}, {}, c14", "mcr p15, 0, {}, c14, c3, 1", "isb",
            in(reg) ticks as u32, in(reg) (ticks >> 32) as u32, in(reg) on, options(nostack, preserves_flags));
    }
}
