//! Output on a PL011 UART (PrimeCell UART technical reference manual, DDI 0183).
//!
//! What it does not do: set the line's speed, which the boot loader has done.

use crate::registers::Registers;

/// Data register.
const DR: usize = 0x000;
/// Flag register.
const FR: usize = 0x018;
/// The transmit FIFO is full.
const FR_TXFF: u32 = 1 << 5;
/// Control register: UART and transmitter enabled.
const CR: usize = 0x030;
const CR_ENABLED: u32 = 1 << 8 | 1;
/// Looks at the flags before a byte is dropped: longer than a byte takes at 9600 baud on any core.
const LOOKS_MAX: u32 = 1_000_000;

/// Enables the transmitter.
pub fn enable(uart: &impl Registers) {
    uart.write_u32(CR, uart.read_u32(CR) | CR_ENABLED);
}

/// Writes a byte; drops it if the UART does not take it in time, and says so.
pub fn write(uart: &impl Registers, byte: u8) -> bool {
    let has_room = (0..LOOKS_MAX).any(|_| uart.read_u32(FR) & FR_TXFF == 0);
    if has_room {
        uart.write_u32(DR, u32::from(byte));
    }
    has_room
}
