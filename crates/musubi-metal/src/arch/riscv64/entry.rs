//! First instructions of the boot hart and of others, and the trap vector.
//!
//! How it works: the boot hart gets its number in `a0`, clears what Rust expects to be zero and takes the stack that the
//! linker script laid out. A started hart gets its number in `a0` and its `CoreData` in `a1`, whose first word is its
//! stack. A trap saves what a Rust function may change, and `sepc` and `sstatus` besides, so that a handler may let
//! itself be interrupted.

use core::arch::global_asm;

unsafe extern "C" {
    fn _musubi_secondary();
    fn _musubi_trap();
}

/// Address of the trap vector.
pub fn trap_vector() -> usize {
    _musubi_trap as *const () as usize
}

/// Address of the entry of started harts.
pub fn secondary() -> usize {
    _musubi_secondary as *const () as usize
}

global_asm!(
    r#"
    .option push
    .option arch, +a, +f, +d, +zicsr
    .section .text.entry, "ax"
    .global _start
_start:
    csrw sie, zero
    csrci sstatus, 2
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, 0(t0)
    addi t0, t0, 8
    j 1b
2:  la sp, __boot_stack_top
    call musubi_metal_boot
3:  wfi
    j 3b

    .global _musubi_secondary
_musubi_secondary:
    csrw sie, zero
    csrci sstatus, 2
    mv tp, a1
    ld sp, 0(a1)
    mv a0, a1
    call musubi_metal_secondary
4:  wfi
    j 4b

    .macro each_saved what
    \what ra, 0*8(sp)
    \what t0, 1*8(sp)
    \what t1, 2*8(sp)
    \what t2, 3*8(sp)
    \what t3, 4*8(sp)
    \what t4, 5*8(sp)
    \what t5, 6*8(sp)
    \what t6, 7*8(sp)
    \what a0, 8*8(sp)
    \what a1, 9*8(sp)
    \what a2, 10*8(sp)
    \what a3, 11*8(sp)
    \what a4, 12*8(sp)
    \what a5, 13*8(sp)
    \what a6, 14*8(sp)
    \what a7, 15*8(sp)
    f\what ft0, 16*8(sp)
    f\what ft1, 17*8(sp)
    f\what ft2, 18*8(sp)
    f\what ft3, 19*8(sp)
    f\what ft4, 20*8(sp)
    f\what ft5, 21*8(sp)
    f\what ft6, 22*8(sp)
    f\what ft7, 23*8(sp)
    f\what ft8, 24*8(sp)
    f\what ft9, 25*8(sp)
    f\what ft10, 26*8(sp)
    f\what ft11, 27*8(sp)
    f\what fa0, 28*8(sp)
    f\what fa1, 29*8(sp)
    f\what fa2, 30*8(sp)
    f\what fa3, 31*8(sp)
    f\what fa4, 32*8(sp)
    f\what fa5, 33*8(sp)
    f\what fa6, 34*8(sp)
    f\what fa7, 35*8(sp)
    .endm

    .balign 4
    .global _musubi_trap
_musubi_trap:
    addi sp, sp, -40*8
    each_saved sd
    csrr t0, sepc
    csrr t1, sstatus
    frcsr t2
    sd t0, 36*8(sp)
    sd t1, 37*8(sp)
    sd t2, 38*8(sp)
    csrr a0, scause
    bgez a0, 5f
    call musubi_metal_interrupt
    ld t0, 36*8(sp)
    ld t1, 37*8(sp)
    ld t2, 38*8(sp)
    csrw sepc, t0
    csrw sstatus, t1
    fscsr t2
    each_saved ld
    addi sp, sp, 40*8
    sret
5:  csrr a1, stval
    mv a2, t0
    call musubi_metal_fault
6:  wfi
    j 6b
    .option pop
"#
);
