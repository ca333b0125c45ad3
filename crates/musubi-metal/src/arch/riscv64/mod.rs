//! 64-bit RISC-V in supervisor mode over an SBI firmware.
//!
//! What you may rely on: runs without address translation, so all memory is as the platform made it, and atomics work
//! everywhere. The boot core may be any hart. Interrupts save every register that a Rust function may change, the
//! floating-point ones included.
//!
//! How it works: `tp` holds the core's own data (there is no thread-local storage in an image). Rings are supervisor
//! software interrupts, alarms supervisor timer interrupts, both through SBI calls ([`sbi`]). Sources: The RISC-V
//! Instruction Set Manual, volume II (CSRs, traps); RISC-V SBI specification 1.0.

use core::arch::asm;

use crate::board::Region;
use crate::core_data::CoreData;

mod entry;
pub mod sbi;
mod sites;
mod switch;

pub use sites::{enter, leave};
pub(crate) use sites::{is_site, jump, write_instruction};
pub use switch::{prepare_stack, switch};

/// `sstatus.SIE`, the interrupt mask of the mode that we run in.
const SSTATUS_SIE: usize = 1 << 1;
/// `sstatus.FS` = initial: floating-point instructions work.
const SSTATUS_FS_INITIAL: usize = 1 << 13;
/// Supervisor software interrupt, in `sie` and `sip`.
pub const SOFTWARE: usize = 1 << 1;
/// Supervisor timer interrupt, in `sie` and `sip`.
pub const TIMER: usize = 1 << 5;

/// The interrupt mask before [`mask`]: `SSTATUS_SIE` if interrupts were let in.
pub type Mask = usize;

/// Address of this core's data.
#[inline(always)]
pub fn core_data() -> *const CoreData {
    let data: *const CoreData;
    // SAFETY: reads a register that Rust code does not use.
    unsafe { asm!("mv {}, tp", out(reg) data, options(nomem, nostack, preserves_flags)) };
    data
}

/// Sets what [`core_data`] gives on this core.
pub fn set_core_data(data: &'static CoreData) {
    // SAFETY: Rust code does not use this register: there is no thread-local storage.
    unsafe { asm!("mv tp, {}", in(reg) data, options(nomem, nostack, preserves_flags)) };
}

/// Masks interrupts.
#[inline(always)]
pub fn mask() -> Mask {
    let before: usize;
    // SAFETY: changes the interrupt mask only. Not `nomem`: accesses must stay behind it.
    unsafe { asm!("csrrci {}, sstatus, {}", out(reg) before, const SSTATUS_SIE, options(nostack)) };
    before & SSTATUS_SIE
}

/// Puts the mask back.
#[inline(always)]
pub fn restore(before: Mask) {
    // SAFETY: as in `mask`; `before` has no other bit set.
    unsafe { asm!("csrs sstatus, {}", in(reg) before, options(nostack)) };
}

/// Lets interrupts in.
#[inline(always)]
pub fn unmask() {
    restore(SSTATUS_SIE);
}

/// Whether interrupts are masked.
#[inline(always)]
pub fn is_masked() -> bool {
    let status: usize;
    // SAFETY: reads a register.
    unsafe { asm!("csrr {}, sstatus", out(reg) status, options(nomem, nostack)) };
    status & SSTATUS_SIE == 0
}

/// A hint in a waiting loop: the instruction `pause` of Zihintpause, a no-op where that is not implemented.
#[inline(always)]
pub fn relax() {
    // SAFETY: a fence without sets, which only spends time.
    unsafe { asm!(".4byte 0x0100000F", options(nomem, nostack, preserves_flags)) };
}

/// Nothing: `pause` ends by itself.
#[inline(always)]
pub fn signal() {}

/// Sleeps until an interrupt that this core has enabled is pending, even while they are masked.
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: only spends time.
    unsafe { asm!("wfi", options(nostack, preserves_flags)) };
}

/// Sets the trap vector and enables floating point. There is no translation to set up.
pub fn prepare_core(_memory: &[Region]) {
    let vector = entry::trap_vector();
    // SAFETY: the vector is 4-byte aligned code for exactly this purpose; interrupts are masked until the caller wishes.
    unsafe { asm!("csrw stvec, {}", in(reg) vector, options(nostack)) };
    // SAFETY: enables the floating-point unit that this target's code expects.
    unsafe { asm!("csrs sstatus, {}", in(reg) SSTATUS_FS_INITIAL, options(nostack)) };
}

/// Where a started hart begins, with its data's address in `a1`.
pub fn secondary_entry() -> usize {
    entry::secondary()
}

/// Lets interrupts of these kinds ([`SOFTWARE`], [`TIMER`]) reach this core.
pub fn enable(kinds: usize) {
    // SAFETY: the trap vector handles these kinds.
    unsafe { asm!("csrs sie, {}", in(reg) kinds, options(nostack)) };
}

/// Keeps interrupts of these kinds away.
pub fn disable(kinds: usize) {
    // SAFETY: changes what interrupts this core only.
    unsafe { asm!("csrc sie, {}", in(reg) kinds, options(nostack)) };
}

/// Kinds of interrupts that are pending and enabled.
pub fn pending() -> usize {
    let (pending, enabled): (usize, usize);
    // SAFETY: reads two registers.
    unsafe { asm!("csrr {}, sip", "csrr {}, sie", out(reg) pending, out(reg) enabled, options(nomem, nostack)) };
    pending & enabled
}

/// Takes back a pending software interrupt.
pub fn clear_software() {
    // SAFETY: clears a pending bit that the caller is about to serve.
    unsafe { asm!("csrc sip, {}", in(reg) SOFTWARE, options(nostack)) };
}

/// Ticks of the platform's common clock.
#[inline(always)]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reads a counter. Not `nomem`: two readings around an access stay around it.
    unsafe { asm!("rdtime {}", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

/// Orders what this core did to memory before its next access to a device, and the other way round.
#[inline(always)]
pub fn before_device() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("fence iorw, iorw", options(nostack, preserves_flags)) };
}

/// Makes memory visible to cores whose caches are off. Harts are coherent; orders only.
pub fn clean(_from: *const u8, _bytes: usize) {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Makes this core fetch instructions anew.
pub fn flush_instructions() {
    // SAFETY: an ordering instruction (`fence.i`; spelt as a number, since the target does not name Zifencei).
    unsafe { asm!(".4byte 0x0000100F", options(nostack)) };
}

/// Writes this core's data cache back. Harts are coherent with each other and with devices here; orders only.
pub fn flush_data() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("fence iorw, iorw", options(nostack)) };
}

/// Forgets this core's address translations.
pub fn flush_translations() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("sfence.vma", options(nostack)) };
}

/// Nothing: these vectors save no registers of a fault.
pub fn registers_at_fault() -> [usize; 0] {
    []
}

/// Instructions that this hart has retired; where the machine counts them for all harts together, of all.
#[inline(always)]
pub fn instructions() -> u64 {
    let count: u64;
    // SAFETY: reads a counter, which the firmware lets this mode read. Not `nomem`: it stays where it is written.
    unsafe { asm!("rdinstret {}", out(reg) count, options(nostack, preserves_flags)) };
    count
}
