//! Output on a UART of the 16550 family (register names of National's data sheet PC16550D).
//!
//! What it does not do: set the line's speed and format, which the firmware before us has done.

use crate::registers::Registers;

/// Transmitter holding register.
const THR: usize = 0;
/// Line status register.
const LSR: usize = 5;
/// The holding register is empty.
const LSR_THRE: u8 = 1 << 5;
/// Looks at the status before a byte is dropped: longer than a byte takes at 9600 baud on any core.
const LOOKS_MAX: u32 = 1_000_000;

/// Writes a byte; drops it if the UART does not take it in time, and says so.
pub fn write(uart: &impl Registers, byte: u8) -> bool {
    let is_empty = (0..LOOKS_MAX).any(|_| uart.read_u8(LSR) & LSR_THRE != 0);
    if is_empty {
        uart.write_u8(THR, byte);
    }
    is_empty
}
