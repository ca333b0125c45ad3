//! Passing a hart from one stack to another: the least that a scheduler needs.

use core::arch::global_asm;

/// Bytes of what a sleeping task keeps on its stack.
const FRAME_BYTES: usize = 26 * 8;

unsafe extern "C" {
    fn _musubi_switch(from: *mut usize, to: usize);
    fn _musubi_task_entry();
}

/// Makes a stack whose first switch calls `entry`, which must not return. Gives what [`switch`] takes.
///
/// # Safety
/// `top` is 16-byte aligned and ends at least 4 KiB of memory that only this task uses from now on.
pub unsafe fn prepare_stack(top: usize, entry: extern "C" fn() -> !) -> usize {
    let frame = top - FRAME_BYTES;
    let words: *mut usize = core::ptr::with_exposed_provenance_mut(frame);
    // SAFETY: the frame lies in the stack's memory; word 0 is the return address.
    unsafe { words.write(_musubi_task_entry as *const () as usize) };
    // SAFETY: likewise; word 1 is `s0`, from which the entry code jumps.
    unsafe { words.add(1).write(entry as usize) };
    frame
}

/// Goes on with the task whose stack is `to`, and keeps our own in `from`.
///
/// # Safety
/// `to` comes from [`prepare_stack`] or from an earlier switch away from that task, and is used once; `from` is valid, and
/// nobody goes on with what it holds before this call has written it.
#[inline(always)]
pub unsafe fn switch(from: *mut usize, to: usize) {
    // SAFETY: the caller's duty; the function keeps to the calling convention.
    unsafe { _musubi_switch(from, to) };
}

global_asm!(
    r#"
    .option push
    .option arch, +a, +f, +d, +zicsr
    .section .text.switch, "ax"
    .macro each_kept what
    \what ra, 0*8(sp)
    \what s0, 1*8(sp)
    \what s1, 2*8(sp)
    \what s2, 3*8(sp)
    \what s3, 4*8(sp)
    \what s4, 5*8(sp)
    \what s5, 6*8(sp)
    \what s6, 7*8(sp)
    \what s7, 8*8(sp)
    \what s8, 9*8(sp)
    \what s9, 10*8(sp)
    \what s10, 11*8(sp)
    \what s11, 12*8(sp)
    f\what fs0, 13*8(sp)
    f\what fs1, 14*8(sp)
    f\what fs2, 15*8(sp)
    f\what fs3, 16*8(sp)
    f\what fs4, 17*8(sp)
    f\what fs5, 18*8(sp)
    f\what fs6, 19*8(sp)
    f\what fs7, 20*8(sp)
    f\what fs8, 21*8(sp)
    f\what fs9, 22*8(sp)
    f\what fs10, 23*8(sp)
    f\what fs11, 24*8(sp)
    .endm

    .global _musubi_switch
_musubi_switch:
    addi sp, sp, -26*8
    each_kept sd
    sd sp, 0(a0)
    mv sp, a1
    each_kept ld
    addi sp, sp, 26*8
    ret

    .global _musubi_task_entry
_musubi_task_entry:
    jr s0
    .option pop
"#
);
