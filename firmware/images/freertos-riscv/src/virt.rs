//! The devices of QEMU's `virt` machine that machine mode uses: console, clock, ringing the other hart, power.
//!
//! How it works: 16550 UART at 0x1000_0000, core-local interruptor at 0x0200_0000 (a word `msip` a hart, `mtime` with 10
//! MHz at 0xBFF8), test device at 0x10_0000, as `hw/riscv/virt.c` of QEMU maps them.

use core::arch::asm;
use core::fmt;

use musubi_freertos::{Machine, Served};

const UART_DATA: *mut u8 = 0x1000_0000 as *mut u8;
const UART_STATUS: *const u8 = 0x1000_0005 as *const u8;
const UART_CAN_WRITE: u8 = 1 << 5;
/// Looks at the UART's status before a byte is lost.
const UART_LOOKS_MAX: u32 = 100_000;
const MSIP: *mut u32 = 0x0200_0000 as *mut u32;
const MTIME: *const u64 = 0x0200_BFF8 as *const u64;
const POWER: *mut u32 = 0x10_0000 as *mut u32;
const POWER_OFF: u32 = 0x5555;
/// Nanoseconds of a step of `mtime`.
const STEP_NS: u64 = 100;
/// Enable and pending bit of the machine software interrupt.
const SOFTWARE: usize = 1 << 3;

/// Nanoseconds since the machine was switched on.
pub fn now_ns() -> u64 {
    // SAFETY: the device is there and reading it changes nothing.
    unsafe { MTIME.read_volatile() }.wrapping_mul(STEP_NS)
}

/// Interrupts a hart, 0 or 1, which then sees what this one wrote before.
pub fn ring(hart: usize) {
    // SAFETY: orders stores to memory before the one to the device.
    unsafe { asm!("fence w, o", options(nostack)) };
    // SAFETY: the word of a hart that exists; setting it only interrupts.
    let word = unsafe { MSIP.add(hart & 1) };
    // SAFETY: likewise.
    unsafe { word.write_volatile(1) };
}

/// The timer's word of hart 0; hart 1's is behind it.
const MTIMECMP: *mut u64 = 0x0200_4000 as *mut u64;
/// Enable bit of the machine timer interrupt.
const TIMER: usize = 1 << 7;

/// Lets a hart's timer be pending from this instant on; `u64::MAX`: not at all. For hart 1: the kernel has hart 0's.
pub fn set_alarm(hart: usize, at_ns: u64) {
    // SAFETY: the word of a hart that exists.
    let word = unsafe { MTIMECMP.add(hart & 1) };
    let at = if at_ns == u64::MAX { u64::MAX } else { at_ns.div_ceil(STEP_NS) };
    // SAFETY: likewise; the timer only ends this hart's sleep.
    unsafe { word.write_volatile(at) };
}

/// Lets the timer end a `wfi` of this hart, which takes no interrupts.
pub fn enable_alarm() {
    // SAFETY: with interrupts masked this only allows a pending one to end a sleep.
    unsafe { asm!("csrs mie, {}", in(reg) TIMER, options(nomem, nostack)) };
}

/// Takes this hart's ring back; gives whether there was one.
pub fn answer(hart: usize) -> bool {
    // SAFETY: our own word.
    let word = unsafe { MSIP.add(hart & 1) };
    // SAFETY: likewise.
    let was = unsafe { word.read_volatile() };
    // SAFETY: likewise.
    unsafe { word.write_volatile(0) };
    was != 0
}

/// Lets the software interrupt end a `wfi` and, once interrupts are unmasked, be taken.
pub fn enable_ring() {
    // SAFETY: with interrupts masked this only allows a later interrupt.
    unsafe { asm!("csrs mie, {}", in(reg) SOFTWARE, options(nomem, nostack)) };
}

/// Sleeps until an interrupt is pending.
pub fn wait_for_interrupt() {
    // SAFETY: waits, nothing else.
    unsafe { asm!("wfi", options(nomem, nostack)) };
}

/// Ends QEMU.
pub fn power_off() -> ! {
    // SAFETY: the test device ends the machine.
    unsafe { POWER.write_volatile(POWER_OFF) };
    loop {
        wait_for_interrupt();
    }
}

/// The console. Lines of one hart only: the other prints nothing while the first runs.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            for _ in 0..UART_LOOKS_MAX {
                // SAFETY: reading the status changes nothing that we use.
                if unsafe { UART_STATUS.read_volatile() } & UART_CAN_WRITE != 0 {
                    break;
                }
            }
            // SAFETY: writes a byte to the console.
            unsafe { UART_DATA.write_volatile(byte) };
        }
        Ok(())
    }
}

/// Prints a line.
macro_rules! println {
    ($($arg:tt)*) => {{
        let _ = core::fmt::Write::write_fmt(&mut $crate::virt::Console, format_args!("{}\n", format_args!($($arg)*)));
    }};
}
pub(crate) use println;

/// Hart 0 as the kernel's machine. The kernel's port serves the timer itself.
pub struct Hart0;

impl Machine for Hart0 {
    fn has_interrupts(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn start_tick(&self) {}

    fn serve(&self) -> Served {
        Served { tick: false, doorbell: answer(0) }
    }

    fn rest(&self) {
        wait_for_interrupt();
    }
}
