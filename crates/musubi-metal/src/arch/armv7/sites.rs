//! Sites of locks: the instructions that mask and unmask, over which [`crate::lock_patching`] writes jumps.
//!
//! What you may rely on: a site is one instruction, `cpsid i` to enter and `msr cpsr_c, r0` to leave. Written over, it is
//! `b target`, which reaches 32 MiB each way.
//!
//! How it works: the lock's address is in `r1` in either form and stays there. Each site has its own code out of line, which
//! knows where to go back to, so the link register need not change and a function without calls stays one. The other
//! registers that a call may change are declared as changed at the site, which costs nothing where they are free anyway. There
//! are no floating-point registers to keep: images are built for the soft-float target.

use core::arch::asm;

use musubi_core::smp::Turn;

use super::Mask;
use crate::lock_patching::{Site, give, take};

/// `cpsid i`.
const ENTER: u32 = 0xF10C_0080;
/// `msr cpsr_c, r0`.
const LEAVE: u32 = 0xE121_F000;

/// An instruction at a site, with the record that names it and its code out of line: `$before`, a call with the lock as
/// argument, `$after`.
macro_rules! site {
    ($first:literal, $instruction:literal, $before:literal, $after:literal, $function:path, $($operand:tt)*) => {
        asm!(
            $first,
            "9:",
            $instruction,
            "8:",
            ".pushsection .text.lock, \"ax\", %progbits",
            "7:",
            $before,
            "push {{r0, r1, r2, lr}}",
            "mov r0, r1",
            "bl {function}",
            "pop {{r0, r1, r2, lr}}",
            $after,
            "b 8b",
            ".popsection",
            ".pushsection musubi_sites, \"a\", %progbits",
            ".balign 4",
            ".word 9b, 7b",
            ".popsection",
            function = sym $function,
            $($operand)*
            out("r2") _, out("r3") _, out("r12") _,
        )
    };
}

/// Masks interrupts and, once not alone, takes the turn.
#[inline(always)]
pub fn enter<T: Turn>(turn: &T) -> Mask {
    let before: u32;
    // SAFETY: masks, or calls `take` as a function would, with every register that may change declared.
    unsafe { site!("mrs r0, cpsr", "cpsid i", "cpsid i", "", take::<T>, in("r1") turn, out("r0") before,) };
    before
}

/// Gives the turn, once not alone, and puts the mask back.
///
/// # Safety
/// This core entered by [`enter`], which gave `before`.
#[inline(always)]
pub unsafe fn leave<T: Turn>(turn: &T, before: Mask) {
    // SAFETY: unmasks, or calls `give` as a function would; the caller has the turn.
    unsafe { site!("", "msr cpsr_c, r0", "", "msr cpsr_c, r0", give::<T>, in("r1") turn, in("r0") before,) };
}

/// Whether the instruction is one of ours.
pub(crate) fn is_site(site: &Site) -> bool {
    let place = core::ptr::with_exposed_provenance::<u32>(site.at);
    // SAFETY: the record names an instruction of this program, which is aligned.
    [ENTER, LEAVE].contains(&unsafe { place.read_volatile() })
}

/// The jump from a site to its target, if it reaches.
pub(crate) fn jump(site: &Site) -> Option<u32> {
    crate::arch::encoding::b_a32(site.target.wrapping_sub(site.at) as isize)
}

/// Writes one instruction, through to where instruction fetches of every core find it.
pub(crate) fn write_instruction(at: usize, instruction: u32) {
    let place = core::ptr::with_exposed_provenance_mut::<u32>(at);
    // SAFETY: an instruction of this program that nobody executes meanwhile; program memory can be written.
    unsafe { place.write_volatile(instruction) };
    super::clean(place.cast(), size_of::<u32>());
}
