//! Calls to the SBI firmware (RISC-V Supervisor Binary Interface specification 1.0).

use core::arch::asm;

/// Timer extension, "TIME".
const TIMER: usize = 0x5449_4D45;
/// Inter-processor interrupt extension, "sPI".
const IPI: usize = 0x0073_5049;
/// Hart state management extension, "HSM".
const HART: usize = 0x0048_534D;
/// System reset extension, "SRST".
const RESET: usize = 0x5352_5354;

/// The call's parameter was not valid: no such hart.
pub const INVALID_PARAMETER: isize = -3;
/// The hart runs already.
pub const ALREADY_AVAILABLE: isize = -6;

/// Calls the firmware: an error (0 is none) and a value.
fn call(extension: usize, function: usize, arguments: [usize; 3]) -> (isize, usize) {
    let (error, value): (isize, usize);
    // SAFETY: the calling convention of the specification's chapter 3: all registers but a0 and a1 keep their values. What
    // the functions below ask for does not touch memory that Rust knows of.
    unsafe {
        asm!("ecall",
            inlateout("a0") arguments[0] => error, inlateout("a1") arguments[1] => value, in("a2") arguments[2],
            in("a6") function, in("a7") extension, options(nostack));
    }
    (error, value)
}

/// The firmware's error code, if it is one.
fn checked((error, value): (isize, usize)) -> Result<usize, isize> {
    if error == 0 { Ok(value) } else { Err(error) }
}

/// Asks for a timer interrupt of this hart at a time of the common clock, in ticks.
pub fn set_timer(ticks: u64) {
    // The extension is part of every SBI 1.0; without it there is no alarm, which a test notices.
    let _ = call(TIMER, 0, [ticks as usize, 0, 0]);
}

/// Raises the software interrupt of a hart.
pub fn ring(hart: usize) {
    // An absent hart cannot be rung; whoever waits for its answer notices.
    let _ = call(IPI, 0, [1, hart, 0]);
}

/// Starts a hart at an address, with its number in `a0` and `argument` in `a1`.
///
/// # Errors
/// The firmware's code, [`INVALID_PARAMETER`] for a hart that does not exist.
pub fn start(hart: usize, entry: usize, argument: usize) -> Result<(), isize> {
    checked(call(HART, 0, [hart, entry, argument])).map(|_| ())
}

/// Stops this hart; it can be started again.
pub fn stop() {
    let _ = call(HART, 1, [0; 3]);
}

/// Whether the platform has a hart.
pub fn exists(hart: usize) -> bool {
    checked(call(HART, 2, [hart, 0, 0])).is_ok()
}

/// Switches the machine off.
pub fn power_off() {
    let _ = call(RESET, 0, [0; 3]);
}
