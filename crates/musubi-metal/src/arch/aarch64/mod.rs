//! 64-bit Arm (Armv8-A) at exception level 1 over a PSCI firmware.
//!
//! What you may rely on: what [`Board::MEMORY`](crate::board::Board::MEMORY) names is mapped at its own addresses before the
//! first atomic access, since exclusive accesses need normal cached memory. Interrupts save every general register that a
//! Rust function may change; images use no floating-point or vector registers (target `softfloat`).
//!
//! How it works: `TPIDR_EL1` holds the core's own data. Interrupts come as IRQ; FIQ and SError stay masked. Names are those
//! of the Arm Architecture Reference Manual for A-profile (DDI 0487).
//!
//! What it does not do: run at EL3, or at EL2 after the first instructions.

use core::arch::asm;

use crate::board::Region;
use crate::core_data::CoreData;

mod entry;
mod sites;
mod translation;

pub use sites::{enter, leave};
pub(crate) use sites::{is_site, jump, write_instruction};

/// The interrupt mask before [`mask`]: the register DAIF.
pub type Mask = usize;

/// DAIF.I: IRQ is masked.
const DAIF_I: usize = 1 << 7;

/// Address of this core's data.
#[inline(always)]
pub fn core_data() -> *const CoreData {
    let data: *const CoreData;
    // SAFETY: reads a register that only `set_core_data` and the entry code write.
    unsafe { asm!("mrs {}, tpidr_el1", out(reg) data, options(nomem, nostack, preserves_flags)) };
    data
}

/// Sets what [`core_data`] gives on this core.
pub fn set_core_data(data: &'static CoreData) {
    // SAFETY: a register for software's own use.
    unsafe { asm!("msr tpidr_el1, {}", in(reg) data, options(nomem, nostack, preserves_flags)) };
}

/// Masks interrupts.
#[inline(always)]
pub fn mask() -> Mask {
    let before: usize;
    // SAFETY: changes the interrupt mask only. Not `nomem`: accesses must stay behind it.
    unsafe { asm!("mrs {}, daif", "msr daifset, #2", out(reg) before, options(nostack)) };
    before
}

/// Puts the mask back.
#[inline(always)]
pub fn restore(before: Mask) {
    // SAFETY: `before` is what `mask` read.
    unsafe { asm!("msr daif, {}", in(reg) before, options(nostack)) };
}

/// Lets interrupts in.
#[inline(always)]
pub fn unmask() {
    // SAFETY: changes the interrupt mask only.
    unsafe { asm!("msr daifclr, #2", options(nostack)) };
}

/// Whether interrupts are masked.
#[inline(always)]
pub fn is_masked() -> bool {
    let daif: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, daif", out(reg) daif, options(nomem, nostack)) };
    daif & DAIF_I != 0
}

/// A hint in a waiting loop. Not WFE: while IRQ is masked, a pending interrupt does not end that, and a waiting core must
/// go on serving others.
#[inline(always)]
pub fn relax() {
    // SAFETY: only spends time.
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) };
}

/// Nothing: `yield` ends by itself.
#[inline(always)]
pub fn signal() {}

/// Sleeps until an interrupt that the controller lets through is pending, even while it is masked.
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: only spends time; the barrier lets earlier writes reach others before.
    unsafe { asm!("dsb sy", "wfi", options(nostack, preserves_flags)) };
}

/// Sets the vectors and turns the memory map on; the core that comes first writes the map.
pub fn prepare_core(memory: &[Region]) {
    let vectors = entry::vectors();
    // SAFETY: the vectors are 2 KiB aligned code for exactly this purpose.
    unsafe { asm!("msr vbar_el1, {}", "isb", in(reg) vectors, options(nostack)) };
    translation::enable(memory);
}

/// Where a started core begins, with its data's address in `x0`.
pub fn secondary_entry() -> usize {
    entry::secondary()
}

/// Ticks of the counter that all cores share.
#[inline(always)]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reads a counter; the barrier keeps it from being read early.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

/// Ticks of the counter in a second.
pub fn ticks_per_s() -> u64 {
    let frequency: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags)) };
    frequency
}

/// Raises the virtual timer's interrupt (private interrupt 27 of the usual boards) at these ticks; `None`: never.
pub fn set_timer(at: Option<u64>) {
    // SAFETY: sets this core's virtual timer, which nobody else uses. CTL 1: enabled and not masked.
    unsafe {
        asm!("msr cntv_cval_el0, {}", "msr cntv_ctl_el0, {}", "isb",
            in(reg) at.unwrap_or(u64::MAX), in(reg) u64::from(at.is_some()), options(nostack));
    }
}

/// Calls the firmware by SMC; gives its result, of which the functions that we call use the low word.
pub(crate) fn firmware_call(function: usize, arguments: [usize; 3]) -> i32 {
    let result: usize;
    // SAFETY: the SMC calling convention: the firmware may change x0 to x17; what the functions of `psci` ask for does not
    // touch memory that Rust knows of.
    unsafe {
        asm!("smc #0", inlateout("x0") function => result,
            inlateout("x1") arguments[0] => _, inlateout("x2") arguments[1] => _, inlateout("x3") arguments[2] => _,
            out("x4") _, out("x5") _, out("x6") _, out("x7") _, out("x8") _, out("x9") _, out("x10") _, out("x11") _,
            out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _, out("x17") _, options(nostack));
    }
    result as i32
}

/// Orders what this core wrote to memory before its next access to a device, as cores of other clusters see it, too.
#[inline(always)]
pub fn before_device() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Bytes of a line of the data cache, at least; every Armv8-A core has 64.
const LINE_BYTES: usize = 64;

/// Makes memory visible to cores whose caches are off.
pub fn clean(from: *const u8, bytes: usize) {
    let first = from.addr() & !(LINE_BYTES - 1);
    for line in (first..from.addr() + bytes).step_by(LINE_BYTES) {
        // SAFETY: writes a line back to memory; no value changes.
        unsafe { asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: an ordering instruction.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Makes this core fetch instructions anew.
pub fn flush_instructions() {
    // SAFETY: forgets cached instructions, which are then read again.
    unsafe { asm!("ic iallu", "dsb nsh", "isb", options(nostack, preserves_flags)) };
}

/// Waits until what this core wrote can be seen by all. Cores are coherent, so no line need be written back; by line,
/// [`clean`] does it.
pub fn flush_data() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Forgets this core's address translations.
pub fn flush_translations() {
    // SAFETY: translations are then read again from the tables, which do not change.
    unsafe { asm!("dsb nshst", "tlbi vmalle1", "dsb nsh", "isb", options(nostack, preserves_flags)) };
}

/// Nothing: these vectors save no registers of a fault.
pub fn registers_at_fault() -> [usize; 0] {
    []
}
