//! First instructions of the boot core and of others, and the vectors, for the A and the R profile.
//!
//! How it works: a core that starts in HYP mode goes to SVC mode, where everything runs. The boot core switches caches and
//! memory protection off (a restart comes here with them on), puts the initialised data in place and clears what Rust
//! expects to be zero. A started core gets no argument on most boards, so it looks for its `CoreData` by its number. An IRQ
//! stores its return state on the SVC stack (`srs`) and saves what a Rust function may change, so that a handler may let
//! itself be interrupted; no other mode needs a stack. A fault stores every register in [`REGISTERS`] first.
//!
//! Source: ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition (DDI 0406C), chapters B1.8 and B1.9.

use core::arch::global_asm;
use core::sync::atomic::AtomicUsize;

use crate::core_data::CoreData;

unsafe extern "C" {
    fn _start();
    fn _musubi_secondary();
    fn _musubi_vectors();
    fn _musubi_park(by_interrupt: u32) -> !;
    fn _musubi_probe(address: usize, value: u32) -> u32;
}

/// r0 to r12, sp, lr, pc and cpsr at the last fault. Writer: the core that faulted; a fault ends the program or restarts it.
#[unsafe(no_mangle)]
pub static MUSUBI_METAL_REGISTERS: [AtomicUsize; 17] = [const { AtomicUsize::new(0) }; 17];

/// Address of the vectors: eight instructions that load the program counter, and the eight addresses behind them.
pub fn vectors() -> usize {
    _musubi_vectors as *const () as usize
}

/// Address of the entry of started cores.
pub fn secondary() -> usize {
    _musubi_secondary as *const () as usize
}

/// Address of the entry of the boot core.
pub fn boot() -> usize {
    _start as *const () as usize
}

/// Waits for a release with caches and protection off.
///
/// # Safety
/// Nothing that only this core's data cache holds is needed any more, and nobody uses this core's stack.
pub unsafe fn park(by_interrupt: bool) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _musubi_park(by_interrupt.into()) }
}

/// Stores a word and says whether the memory let it.
///
/// # Safety
/// Either the store faults, or `address` is a word that the caller may write.
pub unsafe fn probe(address: usize, value: u32) -> bool {
    // SAFETY: the caller's promise; a data abort of the one store in there is answered by returning 0.
    unsafe { _musubi_probe(address, value) != 0 }
}

global_asm!(
    r#"
    .arch armv7-a
    .arch_extension virt
    .section .text.entry, "ax"
    .arm

    // Goes to SVC mode with everything masked, with caches, translation and protection off and vectors low.
    // From HYP mode, it first takes the virtual counter's offset back (CNTVOFF, which no reset defines), so that all cores read one
    // clock; a core with that mode has that counter.
    .macro to_plain_svc
    mrs r0, cpsr
    and r1, r0, #0x1f
    cmp r1, #0x1a
    bne 8f
    mov r1, #0
    mcrr p15, 4, r1, r1, c14
    bic r0, r0, #0x1f
    orr r0, r0, #0x1c0
    orr r0, r0, #0x13
    msr spsr_cxsf, r0
    adr r0, 8f
    msr elr_hyp, r0
    eret
8:  cpsid aif, #0x13
    mrc p15, 0, r0, c1, c0, 0
    bic r0, r0, #0x0007
    bic r0, r0, #0x3000
    bic r0, r0, #0x70000000
    mcr p15, 0, r0, c1, c0, 0
    dsb
    isb
    .endm

    // The number of this core among at most four, in r4.
    .macro core_number
    mrc p15, 0, r4, c0, c0, 5
    and r4, r4, #3
    .endm

    .global _start
_start:
    to_plain_svc
    core_number
    // On the A profile (ID_MMFR0 names a translation) all cores may come here; those but 0 wait to be started.
    mrc p15, 0, r0, c0, c1, 4
    tst r0, #0xf
    cmpne r4, #0
    bne _musubi_parked_core
    bl _musubi_invalidate
    ldr r0, =__data_start
    ldr r1, =__data_end
    ldr r2, =__data_load
    cmp r0, r2
    beq 2f
1:  cmp r0, r1
    ldrlo r3, [r2], #4
    strlo r3, [r0], #4
    blo 1b
2:  ldr r0, =__bss_start
    ldr r1, =__bss_end
    mov r2, #0
3:  cmp r0, r1
    strlo r2, [r0], #4
    blo 3b
    ldr sp, =__boot_stack_top
    mov r0, r4
    mov r1, #0
    bl musubi_metal_boot
4:  wfi
    b 4b

_musubi_parked_core:
    mov r5, #0
1:  ldr r0, =MUSUBI_METAL_RELEASE
    ldr r1, [r0, r4, lsl #2]
    cmp r1, #0
    bxne r1
    cmp r5, #0
    beq 2f
    wfi
    b 1b
2:  wfe
    b 1b

    // Stops this core until it is released; r0 says whether an interrupt announces that.
    .global _musubi_park
_musubi_park:
    mov r5, r0
    to_plain_svc
    core_number
    b 1b

    .global _musubi_secondary
_musubi_secondary:
    to_plain_svc
    bl _musubi_invalidate
    core_number
    mov r1, #0
    ldr r0, =MUSUBI_METAL_RELEASE
    str r1, [r0, r4, lsl #2]
    ldr r0, =MUSUBI_METAL_CORES
    ldr r1, =({stride} * {cores})
    add r1, r1, r0
1:  ldr r2, [r0, #4]
    cmp r2, r4
    beq 2f
    add r0, r0, #{stride}
    cmp r0, r1
    blo 1b
3:  wfi
    b 3b
2:  mcr p15, 0, r0, c13, c0, 4
    ldr sp, [r0]
    bl musubi_metal_secondary
    b 3b

    // Empties the instruction cache, the branch predictor and the first level of the data cache, whose contents after power-on
    // are not defined. By set and way (clause B2.2.6); changes r0 to r3, r5 to r8.
_musubi_invalidate:
    mov r0, #0
    mcr p15, 0, r0, c7, c5, 0
    mcr p15, 0, r0, c7, c5, 6
    mcr p15, 2, r0, c0, c0, 0
    isb
    mrc p15, 1, r0, c0, c0, 0
    and r1, r0, #7
    add r1, r1, #4
    ubfx r2, r0, #3, #10
    clz r3, r2
    ubfx r5, r0, #13, #15
1:  mov r6, r2
2:  lsl r7, r5, r1
    lsl r8, r6, r3
    orr r7, r7, r8
    mcr p15, 0, r7, c7, c6, 2
    subs r6, r6, #1
    bge 2b
    subs r5, r5, #1
    bge 1b
    dsb
    isb
    bx lr
    .ltorg

    .macro vectors
    .rept 8
    ldr pc, [pc, #24]
    .endr
    .word _start
    .word _musubi_undefined
    .word _musubi_call
    .word _musubi_prefetch
    .word _musubi_data
    .word _start
    .word _musubi_irq
    .word _musubi_fiq
    .endm

    .balign 32
    .global _musubi_vectors
_musubi_vectors:
    vectors

    // What a Cortex-R5F's image begins with, at 0. Apart from the former, so that a kernel that writes over some of these can be taken
    // back when the program begins anew.
    .section .first_vectors, "ax"
    .global _musubi_first_vectors
_musubi_first_vectors:
    vectors

    .section .text.entry, "ax"
_musubi_irq:
    sub lr, lr, #4
    srsdb sp!, #0x13
    cps #0x13
    push {{r0-r3, r12, lr}}
    and r1, sp, #4
    sub sp, sp, r1
    push {{r1, lr}}
    clrex
    bl musubi_metal_interrupt
    pop {{r1, lr}}
    add sp, sp, r1
    pop {{r0-r3, r12, lr}}
    rfeia sp!

    // Return state to the SVC stack, all registers to their place, then on with the cause in r0.
    .macro fault_vector cause, back
    .if \back
    sub lr, lr, #\back
    .endif
    srsdb sp!, #0x13
    cpsid if, #0x13
    push {{r0, r1, r2}}
    ldr r0, =MUSUBI_METAL_REGISTERS
    ldr r1, [sp, #0]
    ldr r2, [sp, #4]
    stmia r0!, {{r1, r2}}
    ldr r1, [sp, #8]
    stmia r0!, {{r1, r3-r12}}
    add r1, sp, #20
    stmia r0!, {{r1, lr}}
    ldr r1, [sp, #12]
    ldr r2, [sp, #16]
    stmia r0!, {{r1, r2}}
    mov r2, r1
    mov r0, #\cause
    .endm

_musubi_undefined:
    fault_vector 1, 4
    mov r1, #0
    b _musubi_fault
_musubi_call:
    fault_vector 2, 4
    mov r1, #0
    b _musubi_fault
_musubi_fiq:
    fault_vector 7, 4
    mov r1, #0
    b _musubi_fault
_musubi_prefetch:
    fault_vector 3, 4
    mrc p15, 0, r1, c5, c0, 1
    orr r0, r0, r1, lsl #8
    mrc p15, 0, r1, c6, c0, 2
    b _musubi_fault
_musubi_data:
    fault_vector 4, 8
    ldr r1, =_musubi_probe
    cmp r1, r2
    beq _musubi_probed
    mrc p15, 0, r1, c5, c0, 0
    orr r0, r0, r1, lsl #8
    mrc p15, 0, r1, c6, c0, 0
_musubi_fault:
    bic sp, sp, #7
    bl musubi_metal_fault
1:  wfi
    b 1b

    // The store of a probe was refused: goes on behind it with 0.
_musubi_probed:
    ldr r1, =_musubi_probe_refused
    str r1, [sp, #12]
    pop {{r0, r1, r2}}
    rfeia sp!

    .global _musubi_probe
_musubi_probe:
    str r1, [r0]
    dsb
    mov r0, #1
    bx lr
_musubi_probe_refused:
    mov r0, #0
    bx lr
    .ltorg

    // Where parked cores find their entries, a word each. Outside of what the boot clears or restores. Writer: who starts the
    // core; the core clears it when it begins.
    .section .release, "aw"
    .balign 64
    .global MUSUBI_METAL_RELEASE
MUSUBI_METAL_RELEASE:
    .word 0, 0, 0, 0
    .balign 64
"#,
    stride = const size_of::<CoreData>(),
    cores = const musubi_core::smp::CORES_MAX,
);
