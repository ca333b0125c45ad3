//! Sites of locks: the instructions that mask and unmask, over which [`crate::lock_patching`] writes jumps.
//!
//! What you may rely on: a site is one 4-byte instruction, `csrrci a0, sstatus, 2` to enter and `csrs sstatus, a0` to leave.
//! Written over, it is `jal t0, target`, which reaches 1 MiB each way; a site that is farther from its target is refused.
//!
//! How it works: the lock's address is in `a1` in either form and stays there. The code out of line keeps `ra`, `a0` and
//! `a1`; the other registers that a call may change are declared as changed at the site, which costs nothing where they are
//! free anyway. Encoding of `jal`: The RISC-V Instruction Set Manual, volume I, "J-type".

use core::arch::{asm, naked_asm};

use musubi_core::smp::Turn;

use super::{Mask, SSTATUS_SIE};
use crate::lock_patching::{Site, give, take};

/// `csrrci a0, sstatus, 2`.
const ENTER: u32 = 0x1001_7573;
/// `csrs sstatus, a0`.
const LEAVE: u32 = 0x1005_2073;

/// An instruction at a site, with the record that names it and the code out of line.
macro_rules! site {
    ($instruction:literal, $target:path, $($operand:tt)*) => {
        asm!(
            "9:",
            ".option push",
            ".option norvc",
            $instruction,
            ".option pop",
            ".pushsection musubi_sites, \"a\", @progbits",
            ".balign 8",
            ".dword 9b",
            ".dword {target}",
            ".popsection",
            target = sym $target,
            $($operand)*
            out("t0") _, out("t1") _, out("t2") _, out("t3") _, out("t4") _, out("t5") _, out("t6") _,
            out("a2") _, out("a3") _, out("a4") _, out("a5") _, out("a6") _, out("a7") _,
            out("ft0") _, out("ft1") _, out("ft2") _, out("ft3") _, out("ft4") _, out("ft5") _, out("ft6") _,
            out("ft7") _, out("ft8") _, out("ft9") _, out("ft10") _, out("ft11") _,
            out("fa0") _, out("fa1") _, out("fa2") _, out("fa3") _, out("fa4") _, out("fa5") _, out("fa6") _,
            out("fa7") _,
        )
    };
}

/// Masks interrupts and, once not alone, takes the turn.
#[inline(always)]
pub fn enter<T: Turn>(turn: &T) -> Mask {
    let before: usize;
    // SAFETY: masks, or calls `take` as a function would, with every register that may change declared.
    unsafe { site!("csrrci a0, sstatus, 2", enter_in_full::<T>, in("a1") turn, out("a0") before,) };
    before & SSTATUS_SIE
}

/// Gives the turn, once not alone, and puts the mask back.
///
/// # Safety
/// This core entered by [`enter`], which gave `before`.
#[inline(always)]
pub unsafe fn leave<T: Turn>(turn: &T, before: Mask) {
    // SAFETY: unmasks, or calls `give` as a function would; the caller has the turn.
    unsafe { site!("csrs sstatus, a0", leave_in_full::<T>, in("a1") turn, in("a0") before,) };
}

/// What [`enter`] jumps to: like a call by `t0`, with the lock in `a1` and the mask to be given in `a0`.
#[unsafe(naked)]
#[unsafe(link_section = ".text.lock")]
extern "C" fn enter_in_full<T: Turn>() {
    naked_asm!(
        "csrrci a0, sstatus, 2",
        "addi sp, sp, -32",
        "sd ra, 0(sp)",
        "sd t0, 8(sp)",
        "sd a0, 16(sp)",
        "sd a1, 24(sp)",
        "mv a0, a1",
        "call {take}",
        "ld ra, 0(sp)",
        "ld t0, 8(sp)",
        "ld a0, 16(sp)",
        "ld a1, 24(sp)",
        "addi sp, sp, 32",
        "jr t0",
        take = sym take::<T>,
    )
}

/// What [`leave`] jumps to: like a call by `t0`, with the lock in `a1` and the mask in `a0`.
#[unsafe(naked)]
#[unsafe(link_section = ".text.lock")]
extern "C" fn leave_in_full<T: Turn>() {
    naked_asm!(
        "addi sp, sp, -32",
        "sd ra, 0(sp)",
        "sd t0, 8(sp)",
        "sd a0, 16(sp)",
        "sd a1, 24(sp)",
        "mv a0, a1",
        "call {give}",
        "ld ra, 0(sp)",
        "ld t0, 8(sp)",
        "ld a0, 16(sp)",
        "ld a1, 24(sp)",
        "addi sp, sp, 32",
        "csrs sstatus, a0",
        "jr t0",
        give = sym give::<T>,
    )
}

/// Whether the instruction is one of ours.
pub(crate) fn is_site(site: &Site) -> bool {
    let [low, high] = [0, 2].map(|offset| {
        let half = core::ptr::with_exposed_provenance::<u16>(site.at + offset);
        // SAFETY: the record names an instruction of this program, and instructions are 2-byte aligned.
        u32::from(unsafe { half.read_volatile() })
    });
    [ENTER, LEAVE].contains(&(high << 16 | low))
}

/// The jump from a site to its target, if it reaches.
pub(crate) fn jump(site: &Site) -> Option<u32> {
    crate::arch::encoding::jal_t0(site.target.wrapping_sub(site.at) as isize)
}

/// Writes one instruction, in halves since it may lie across a word's border.
pub(crate) fn write_instruction(at: usize, instruction: u32) {
    for (offset, half) in [(0, instruction as u16), (2, (instruction >> 16) as u16)] {
        let place = core::ptr::with_exposed_provenance_mut::<u16>(at + offset);
        // SAFETY: an instruction of this program that nobody executes meanwhile; program memory can be written.
        unsafe { place.write_volatile(half) };
    }
}
