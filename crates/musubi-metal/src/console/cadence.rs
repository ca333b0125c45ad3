//! Output on the Cadence UART of Zynq and ZynqMP (Zynq UltraScale+ Registers, UG1087, module UART).
//!
//! What it does not do: set the line's speed, which the boot loader has done.

use crate::registers::Registers;

/// Control register.
const CR: usize = 0x00;
/// Transmitter and receiver enabled.
const CR_ENABLED: u32 = 1 << 4 | 1 << 2;
/// Channel status register.
const SR: usize = 0x2C;
/// The transmit FIFO is full.
const SR_FULL: u32 = 1 << 4;
/// Transmit and receive FIFO.
const FIFO: usize = 0x30;
/// Looks at the status before a byte is dropped: longer than a byte takes at 9600 baud on any core.
const LOOKS_MAX: u32 = 1_000_000;

/// Enables both directions.
pub fn enable(uart: &impl Registers) {
    uart.write_u32(CR, CR_ENABLED);
}

/// Writes a byte; drops it if the UART does not take it in time, and says so.
pub fn write(uart: &impl Registers, byte: u8) -> bool {
    let has_room = (0..LOOKS_MAX).any(|_| uart.read_u32(SR) & SR_FULL == 0);
    if has_room {
        uart.write_u32(FIFO, u32::from(byte));
    }
    has_room
}
