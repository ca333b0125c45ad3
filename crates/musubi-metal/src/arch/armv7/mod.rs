//! 32-bit Arm (ARMv7), what the A and the R profile have in common: instructions, modes, masks, caches.
//!
//! What you may rely on: everything runs in SVC mode. Interrupts save every general register that a Rust function may
//! change; images use no floating-point registers (soft-float target). The two profiles are one instruction set to the
//! compiler; which one runs is read from ID_MMFR0 when the first core prepares itself, and only [`prepare_core`] differs.
//!
//! How it works: `TPIDRPRW` holds the core's own data. Interrupts come as IRQ. Names are those of the ARM Architecture
//! Reference Manual, ARMv7-A and ARMv7-R edition (DDI 0406C).
//!
//! What it does not do: Thumb code in vectors, FIQ, the Security Extensions.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::board::Region;
use crate::core_data::{CoreData, this_core};

mod entry;
mod sites;

pub use sites::{enter, leave};
pub(crate) use sites::{is_site, jump, write_instruction};

/// The interrupt mask before [`mask`]: the register CPSR.
pub type Mask = u32;

/// CPSR.I: IRQ is masked.
const CPSR_I: u32 = 1 << 7;

/// Cores of a cluster: numbers of the hardware are below.
const CLUSTER_CORES: usize = 4;
/// Whether each core polls, because no interrupt can reach it. Writer: that core, when its board prepares it.
static POLLED: [AtomicBool; CLUSTER_CORES] = [const { AtomicBool::new(false) }; CLUSTER_CORES];

unsafe extern "C" {
    fn musubi_metal_interrupt();
    static MUSUBI_METAL_RELEASE: [AtomicUsize; CLUSTER_CORES];
}

/// Address of this core's data.
#[inline(always)]
pub fn core_data() -> *const CoreData {
    let data: *const CoreData;
    // SAFETY: reads a register that only `set_core_data` and the entry code write.
    unsafe { asm!("mrc p15, 0, {}, c13, c0, 4", out(reg) data, options(nomem, nostack, preserves_flags)) };
    data
}

/// Sets what [`core_data`] gives on this core.
pub fn set_core_data(data: &'static CoreData) {
    // SAFETY: a register for software's own use.
    unsafe { asm!("mcr p15, 0, {}, c13, c0, 4", in(reg) data, options(nomem, nostack, preserves_flags)) };
}

/// Masks interrupts.
#[inline(always)]
pub fn mask() -> Mask {
    let before: u32;
    // SAFETY: changes the interrupt mask only. Not `nomem`: accesses must stay behind it.
    unsafe { asm!("mrs {}, cpsr", "cpsid i", out(reg) before, options(nostack, preserves_flags)) };
    before
}

/// Puts the mask back.
#[inline(always)]
pub fn restore(before: Mask) {
    // SAFETY: `before` is what `mask` read in this mode; only the control byte is written.
    unsafe { asm!("msr cpsr_c, {}", in(reg) before, options(nostack, preserves_flags)) };
}

/// Lets interrupts in.
#[inline(always)]
pub fn unmask() {
    // SAFETY: changes the interrupt mask only.
    unsafe { asm!("cpsie i", options(nostack, preserves_flags)) };
}

/// Whether interrupts are masked.
#[inline(always)]
pub fn is_masked() -> bool {
    let status: u32;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, cpsr", out(reg) status, options(nomem, nostack, preserves_flags)) };
    status & CPSR_I != 0
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

/// Sleeps until an interrupt that the controller lets through is pending, even while it is masked. A core that polls
/// handles what it finds, as if it had been interrupted here, and comes back at once.
#[inline]
pub fn wait_for_interrupt() {
    if is_polled(this_core().hardware()) {
        relax();
        poll();
    } else {
        // SAFETY: only spends time; the barrier lets earlier writes reach others before.
        unsafe { asm!("dsb", "wfi", options(nostack, preserves_flags)) };
    }
}

/// Whether a core is never interrupted, and handles what there is when it waits ([`wait_for_interrupt`]).
#[inline]
pub fn is_polled(hardware: usize) -> bool {
    POLLED[hardware % CLUSTER_CORES].load(Ordering::Relaxed)
}

/// Says whether no interrupt reaches the core that calls.
pub(crate) fn set_polled(polls: bool) {
    POLLED[this_core().hardware() % CLUSTER_CORES].store(polls, Ordering::Relaxed);
}

/// Handles what an interrupt would be raised for. Also while interrupts are masked: whoever waits masked, so that nothing is
/// lost between looking and sleeping, unmasks next, and would be interrupted then.
fn poll() {
    let before = mask();
    // SAFETY: the image's handler, called as the vector does: in SVC mode with interrupts masked.
    unsafe { musubi_metal_interrupt() };
    restore(before);
}

/// Sets the vectors and turns the memory map (A profile) or the memory protection (R profile) on.
pub fn prepare_core(memory: &[Region]) {
    if has_translation() {
        super::armv7a::prepare_core(entry::vectors(), memory);
    } else {
        super::armv7r::prepare_core(entry::vectors(), memory);
    }
}

/// Whether this is an A-profile core: ID_MMFR0 names a virtual memory system.
fn has_translation() -> bool {
    let features: u32;
    // SAFETY: reads an identification register.
    unsafe { asm!("mrc p15, 0, {}, c0, c1, 4", out(reg) features, options(nomem, nostack, preserves_flags)) };
    features & 0xF != 0
}

/// Where a started core begins. It finds its data by its number, whatever its argument.
pub fn secondary_entry() -> usize {
    entry::secondary()
}

/// Lets a core that waits in the entry code go on, at an address.
pub(crate) fn release(hardware: usize, entry: usize) {
    // SAFETY: a static of the entry code, of this size and alignment.
    let words = unsafe { &MUSUBI_METAL_RELEASE };
    let word = &words[hardware % CLUSTER_CORES];
    word.store(entry, Ordering::Release);
    clean(core::ptr::from_ref(word).cast(), size_of::<usize>());
    // SAFETY: wakes cores that wait for an event, and nothing else.
    unsafe { asm!("sev", options(nostack, preserves_flags)) };
}

/// Ends what this core does until [`release`] starts it again. `by_interrupt` says that the release comes with an interrupt that
/// the controller lets through to this core, so that it can sleep until then.
pub(crate) fn park(by_interrupt: bool) -> ! {
    let _ = mask();
    flush_data();
    // SAFETY: the cache was written back, and the caller's stack is not used any more.
    unsafe { entry::park(by_interrupt) }
}

/// Begins the program anew at its first instruction, as a watchdog's reset would: initialised data as it was loaded, the
/// rest zero, stack empty. What lies outside of the image (shared memory, devices) stays as it is. Only on the boot core,
/// while no other core of the program runs; data keeps its initial values only in an image whose linker script loads
/// them elsewhere.
pub fn restart() -> ! {
    let _ = mask();
    flush_data();
    let first = entry::boot();
    // SAFETY: the entry code expects nothing but its own memory, which was written back; nothing of this run is used again.
    unsafe { asm!("bx {}", in(reg) first, options(noreturn)) }
}

/// r0 to r12, sp, lr, pc and cpsr as they were at the last fault.
pub fn registers_at_fault() -> [usize; 17] {
    entry::MUSUBI_METAL_REGISTERS.each_ref().map(|register| register.load(Ordering::Relaxed))
}

/// Stores a word and says whether the memory map or the memory protection let it. For tests of protection.
///
/// # Safety
/// Either the store faults, or `address` is a word that the caller may write.
pub unsafe fn probe_write(address: usize, value: u32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { entry::probe(address, value) }
}

/// Calls the firmware by SMC; gives its result. On the A profile only, where the firmware before us takes such calls.
pub(crate) fn firmware_call(function: usize, arguments: [usize; 3]) -> i32 {
    let result: usize;
    // SAFETY: the SMC calling convention: the firmware may change r0 to r3; what the functions of `psci` ask for does not
    // touch memory that Rust knows of.
    unsafe {
        asm!(".arch_extension sec", "smc #0", inlateout("r0") function => result, inlateout("r1") arguments[0] => _,
            inlateout("r2") arguments[1] => _, inlateout("r3") arguments[2] => _, out("r12") _, options(nostack));
    }
    result as i32
}

/// Orders what this core wrote to memory before its next access to a device, as cores of other clusters see it, too.
#[inline(always)]
pub fn before_device() {
    // SAFETY: an ordering instruction.
    unsafe { asm!("dsb", options(nostack, preserves_flags)) };
}

/// Bytes of a line of the data cache, at least: 32 on Cortex-A9 and Cortex-R5.
const LINE_BYTES: usize = 32;

/// Writes memory back, so that cores whose caches are off see it.
pub fn clean(from: *const u8, bytes: usize) {
    let first = from.addr() & !(LINE_BYTES - 1);
    for line in (first..from.addr() + bytes).step_by(LINE_BYTES) {
        // SAFETY: writes a line back to memory (DCCMVAC); no value changes.
        unsafe { asm!("mcr p15, 0, {}, c7, c10, 1", in(reg) line, options(nostack, preserves_flags)) };
    }
    wait_for_writes();
}

/// Makes this core fetch instructions anew.
pub fn flush_instructions() {
    // SAFETY: forgets cached instructions and branches (ICIALLU, BPIALL), which are then read again.
    unsafe {
        asm!("mcr p15, 0, {z}, c7, c5, 0", "mcr p15, 0, {z}, c7, c5, 6", "dsb", "isb", z = in(reg) 0,
            options(nostack, preserves_flags));
    }
}

/// Writes this core's first-level data cache back and empties it, by set and way (clause B2.2.6).
pub fn flush_data() {
    let geometry: u32;
    // SAFETY: selects and reads the geometry of the first-level data cache (CSSELR, CCSIDR).
    unsafe {
        asm!("mcr p15, 2, {z}, c0, c0, 0", "isb", "mrc p15, 1, {g}, c0, c0, 0", z = in(reg) 0, g = out(reg) geometry,
            options(nostack, preserves_flags));
    }
    let (ways, sets) = (geometry >> 3 & 0x3FF, geometry >> 13 & 0x7FFF);
    let (set_at, way_at) = ((geometry & 7) + 4, ways.leading_zeros() & 31);
    for set in 0..=sets {
        for way in 0..=ways {
            // SAFETY: writes a line back and forgets it (DCCISW); no value changes.
            unsafe {
                asm!("mcr p15, 0, {}, c7, c14, 2", in(reg) set << set_at | way << way_at,
                    options(nostack, preserves_flags));
            }
        }
    }
    wait_for_writes();
}

/// Forgets this core's address translations; on the R profile there are none.
pub fn flush_translations() {
    if has_translation() {
        super::armv7a::flush_translations();
    }
    wait_for_writes();
}

fn wait_for_writes() {
    // SAFETY: ordering instructions.
    unsafe { asm!("dsb", "isb", options(nostack, preserves_flags)) };
}
