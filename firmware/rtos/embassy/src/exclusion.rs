//! The critical section of a program on one core: interrupts masked.

use musubi_metal::arch;

struct Masked;
critical_section::set_impl!(Masked);

// SAFETY: one core, so whoever has masked interrupts is alone; states nest like brackets.
unsafe impl critical_section::Impl for Masked {
    unsafe fn acquire() -> u64 {
        arch::mask() as u64
    }

    unsafe fn release(state: u64) {
        arch::restore(state as arch::Mask);
    }
}
