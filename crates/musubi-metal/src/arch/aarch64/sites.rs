//! Sites of locks: the instructions that mask and unmask, over which [`crate::lock_patching`] writes jumps.
//!
//! What you may rely on: a site is one instruction, `msr daifset, #2` to enter and `msr daif, x0` to leave. Written over, it
//! is `b target`, which reaches 128 MiB each way.
//!
//! How it works: the lock's address is in `x1` in either form and stays there. Each site has its own code out of line, which
//! knows where to go back to, so the link register need not change and a function without calls stays one; it keeps `x18`,
//! too, which a call may change here but `asm!` cannot name on every target. The other registers that a call may change are
//! declared as changed at the site, which costs nothing where they are free anyway. There are no vector registers to keep:
//! images are built for the target without them.

use core::arch::asm;

use musubi_core::smp::Turn;

use super::Mask;
use crate::lock_patching::{Site, give, take};

/// `msr daifset, #2`.
const ENTER: u32 = 0xD503_42DF;
/// `msr daif, x0`.
const LEAVE: u32 = 0xD51B_4220;
/// Least line of a cache that is cleaned or forgotten by address.
const LINE_BYTES: usize = 16;

/// An instruction at a site, with the record that names it and its code out of line: `$before`, a call with the lock as
/// argument, `$after`.
macro_rules! site {
    ($first:literal, $instruction:literal, $before:literal, $after:literal, $function:path, $($operand:tt)*) => {
        asm!(
            $first,
            "9:",
            $instruction,
            "8:",
            ".pushsection .text.lock, \"ax\", @progbits",
            "7:",
            $before,
            "sub sp, sp, #32",
            "stp x0, x1, [sp]",
            "stp x30, x18, [sp, #16]",
            "mov x0, x1",
            "bl {function}",
            "ldp x30, x18, [sp, #16]",
            "ldp x0, x1, [sp]",
            "add sp, sp, #32",
            $after,
            "b 8b",
            ".popsection",
            ".pushsection musubi_sites, \"a\", @progbits",
            ".balign 8",
            ".quad 9b, 7b",
            ".popsection",
            function = sym $function,
            $($operand)*
            out("x2") _, out("x3") _, out("x4") _, out("x5") _, out("x6") _, out("x7") _, out("x8") _, out("x9") _,
            out("x10") _, out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _,
            out("x17") _,
        )
    };
}

/// Masks interrupts and, once not alone, takes the turn.
#[inline(always)]
pub fn enter<T: Turn>(turn: &T) -> Mask {
    let before: usize;
    // SAFETY: masks, or calls `take` as a function would, with every register that may change declared.
    unsafe {
        site!("mrs x0, daif", "msr daifset, #2", "msr daifset, #2", "", take::<T>, in("x1") turn, out("x0") before,)
    };
    before
}

/// Gives the turn, once not alone, and puts the mask back.
///
/// # Safety
/// This core entered by [`enter`], which gave `before`.
#[inline(always)]
pub unsafe fn leave<T: Turn>(turn: &T, before: Mask) {
    // SAFETY: unmasks, or calls `give` as a function would; the caller has the turn.
    unsafe { site!("", "msr daif, x0", "", "msr daif, x0", give::<T>, in("x1") turn, in("x0") before,) };
}

/// Whether the instruction is one of ours.
pub(crate) fn is_site(site: &Site) -> bool {
    let place = core::ptr::with_exposed_provenance::<u32>(site.at);
    // SAFETY: the record names an instruction of this program, which is aligned.
    [ENTER, LEAVE].contains(&unsafe { place.read_volatile() })
}

/// The jump from a site to its target, if it reaches.
pub(crate) fn jump(site: &Site) -> Option<u32> {
    crate::arch::encoding::b(site.target.wrapping_sub(site.at) as isize)
}

/// Writes one instruction, and sees to it that instruction fetches of this core, and of cores without caches, find it.
pub(crate) fn write_instruction(at: usize, instruction: u32) {
    let place = core::ptr::with_exposed_provenance_mut::<u32>(at);
    // SAFETY: an instruction of this program that nobody executes meanwhile; program memory can be written.
    unsafe { place.write_volatile(instruction) };
    let line = at & !(LINE_BYTES - 1);
    // SAFETY: cleans one line of the data cache and forgets it in the instruction cache.
    unsafe {
        asm!("dc civac, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", in(reg) line, options(nostack, preserves_flags))
    };
}
