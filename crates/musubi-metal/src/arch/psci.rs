//! Calls to the PSCI firmware (Arm Power State Coordination Interface, DEN 0022) by SMC, from 64-bit and 32-bit cores.
//!
//! How it works: a function that takes addresses has a number for each width of registers (chapter 5.1); the architecture's
//! `firmware_call` makes the call.

use super::firmware_call as call;

/// What marks the form of a function that has 64-bit arguments.
const BY_WIDTH: usize = if size_of::<usize>() == 8 { 1 << 30 } else { 0 };
/// Ends the core that calls.
const CPU_OFF: usize = 0x8400_0002;
/// Starts a core.
const CPU_ON: usize = 0x8400_0003 | BY_WIDTH;
/// State of a core.
const AFFINITY_INFO: usize = 0x8400_0004 | BY_WIDTH;
/// Switches the machine off.
const SYSTEM_OFF: usize = 0x8400_0008;

/// No such core.
pub const INVALID_PARAMETERS: i32 = -2;
/// The core runs already.
pub const ALREADY_ON: i32 = -4;

/// Starts the core with this affinity at an address, with `argument` in its first register.
///
/// # Errors
/// The firmware's code.
pub fn start(affinity: usize, entry: usize, argument: usize) -> Result<(), i32> {
    match call(CPU_ON, [affinity, entry, argument]) {
        0 => Ok(()),
        code => Err(code),
    }
}

/// Whether the platform has a core with this affinity.
pub fn exists(affinity: usize) -> bool {
    call(AFFINITY_INFO, [affinity, 0, 0]) >= 0
}

/// Ends this core; it can be started again. Returns only if the firmware refuses.
pub fn stop() {
    let _ = call(CPU_OFF, [0; 3]);
}

/// Switches the machine off.
pub fn power_off() {
    let _ = call(SYSTEM_OFF, [0; 3]);
}
