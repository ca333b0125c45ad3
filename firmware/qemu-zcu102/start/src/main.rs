//! What runs first on the demo's chip, on the first Cortex-A53: starts a Cortex-R5F, then the Linux kernel.
//!
//! What you may rely on: Linux is started in any case; if the Cortex-R5F does not come up, the demo's Linux side says
//! that it has no Master.
//!
//! How it works: CPU_ON of Arm's Power State Coordination Interface (DEN 0022, section 5.1.4), by SMC; QEMU's firmware
//! takes the number of a Cortex-R5F too (4 or 5), and starts it in ARM state at the given address. Then the boot
//! protocol of the arm64 kernel: x0 is the address of the devicetree, x1 to x3 are 0.
//!
//! What it does not do: load anything. The kernel, the devicetree, the initial file system and the image of the
//! Cortex-R5F are in memory already (`cargo xtask qemu zcu102` has QEMU's loader put them there). On a board, this is
//! the work of its boot loader.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::panic::PanicInfo;

global_asm!(
    r#"
    .section .text.start, "ax"
    .global start
start:
    ldr     x0, =0xc4000003     // CPU_ON, 64-bit calling convention
    mov     x1, #4              // the first Cortex-R5F
    mov     x2, #0              // where it begins on the chip, too: the vectors
    mov     x3, #0
    smc     #0
    ldr     x0, =0x07000000     // devicetree
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    ldr     x4, =0x00200000     // kernel
    br      x4
    "#
);

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // Nothing here can panic; the language wants this function.
    loop {}
}
