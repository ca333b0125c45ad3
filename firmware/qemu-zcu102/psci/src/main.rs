//! What runs on the first Cortex-A53 while the chip's real-time cores run a program of their own: starts the first
//! Cortex-R5F, then makes calls of Arm's Power State Coordination Interface (DEN 0022) for the Cortex-R5Fs, which cannot.
//!
//! What you may rely on: a call is answered once. The core sleeps between two looks, about a thousand a second.
//!
//! How it works: the mailbox in on-chip memory has two lines with one writer each. The Cortex-R5F's: number of the call
//! (written last), function, three arguments. Ours: number of the call that was answered (written last), result. A call
//! whose number is not the answered one is passed to the firmware by SMC as it is. Between looks the core waits for the
//! interrupt of its virtual timer (private interrupt 27), masked. `musubi_metal::board::zcu102_r5` has the other end.
//!
//! What it does not do: check what it is asked. Whoever can write the mailbox can switch the machine off.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::panic::PanicInfo;

global_asm!(
    r#"
    .section .text.start, "ax"
    .global start
start:
    ldr     x19, =0xfffc0000    // mailbox
    str     wzr, [x19, #0x00]
    str     wzr, [x19, #0x40]
    dsb     sy
    ldr     x0, =0xc4000003     // CPU_ON, 64-bit calling convention
    mov     x1, #4              // the first Cortex-R5F
    mov     x2, #0              // where it begins on the chip, too: the vectors
    mov     x3, #0
    smc     #0

    // The timer's interrupt passes the controller; this core keeps it masked.
    msr     daifset, #0xf
    ldr     x1, =0xf9010000     // distributor
    mov     w2, #(1 << 27)
    str     w2, [x1, #0x100]
    mov     w2, #1
    str     w2, [x1]
    ldr     x1, =0xf9020000     // this core's interface
    mov     w3, #0xff
    str     w3, [x1, #4]
    str     w2, [x1]

1:  ldr     w20, [x19, #0x00]
    ldr     w1, [x19, #0x40]
    cmp     w1, w20
    b.ne    2f
    mrs     x1, cntfrq_el0      // a millisecond
    mov     x2, #1000
    udiv    x1, x1, x2
    msr     cntv_tval_el0, x1
    mov     x1, #1
    msr     cntv_ctl_el0, x1
    isb
    wfi
    b       1b

2:  dmb     sy
    ldr     w0, [x19, #0x04]
    ldr     w1, [x19, #0x08]
    ldr     w2, [x19, #0x0c]
    ldr     w3, [x19, #0x10]
    smc     #0
    str     w0, [x19, #0x44]
    dmb     sy
    str     w20, [x19, #0x40]
    b       1b
    "#
);

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // Nothing here can panic; the language wants this function.
    loop {}
}
