//! First instructions of the boot core and of others, and the vectors.
//!
//! How it works: a core that starts at EL2 gives EL1 the counters and goes there. The boot core clears what Rust expects to
//! be zero and takes the stack that the linker script laid out; a started core gets its `CoreData` in `x0`, whose first
//! word is its stack. An IRQ saves what a Rust function may change, and the exception's return state besides, so that a
//! handler may let itself be interrupted.

use core::arch::global_asm;

unsafe extern "C" {
    fn _musubi_secondary();
    fn _musubi_vectors();
}

/// Address of the vectors.
pub fn vectors() -> usize {
    _musubi_vectors as *const () as usize
}

/// Address of the entry of started cores.
pub fn secondary() -> usize {
    _musubi_secondary as *const () as usize
}

global_asm!(
    r#"
    .section .text.entry, "ax"

    // Goes from EL2 to EL1; keeps x19.
    .macro to_el1
    mrs x1, CurrentEL
    cmp x1, #0x8
    b.ne 9f
    mov x1, #(1 << 31)
    msr hcr_el2, x1
    mov x1, #3
    msr cnthctl_el2, x1
    msr cntvoff_el2, xzr
    mov x1, #0x3c5
    msr spsr_el2, x1
    adr x1, 9f
    msr elr_el2, x1
    eret
9:  msr daifset, #0xf
    msr spsel, #1
    .endm

    .global _start
_start:
    mov x19, x0
    to_el1
    ldr x1, =__bss_start
    ldr x2, =__bss_end
1:  cmp x1, x2
    b.hs 2f
    str xzr, [x1], #8
    b 1b
2:  ldr x1, =__boot_stack_top
    mov sp, x1
    mrs x0, mpidr_el1
    and x0, x0, #0xff
    mov x1, x19
    bl musubi_metal_boot
3:  wfi
    b 3b

    .global _musubi_secondary
_musubi_secondary:
    mov x19, x0
    to_el1
    msr tpidr_el1, x19
    ldr x1, [x19]
    mov sp, x1
    mov x0, x19
    bl musubi_metal_secondary
4:  wfi
    b 4b
    .ltorg

    .macro fault_vector
    .balign 0x80
    mrs x0, esr_el1
    mrs x1, far_el1
    mrs x2, elr_el1
    b musubi_metal_fault
    .endm

    .balign 0x800
    .global _musubi_vectors
_musubi_vectors:
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    .balign 0x80
    b _musubi_irq
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector
    fault_vector

    .balign 16
_musubi_irq:
    sub sp, sp, #192
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x30, [sp, #144]
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [sp, #160]
    bl musubi_metal_interrupt
    ldp x0, x1, [sp, #160]
    msr elr_el1, x0
    msr spsr_el1, x1
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldp x10, x11, [sp, #80]
    ldp x12, x13, [sp, #96]
    ldp x14, x15, [sp, #112]
    ldp x16, x17, [sp, #128]
    ldp x18, x30, [sp, #144]
    ldp x0, x1, [sp, #0]
    add sp, sp, #192
    eret
"#
);
