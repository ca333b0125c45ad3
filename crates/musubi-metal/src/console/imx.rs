//! Output on the UART of i.MX6 and i.MX7 (i.MX 6Dual/6Quad reference manual, chapter 64).
//!
//! What it does not do: set the line's speed, which the boot loader has done.

use crate::registers::Registers;

/// Transmitter register.
const UTXD: usize = 0x40;
/// Control registers 1 and 2.
const UCR1: usize = 0x80;
const UCR2: usize = 0x84;
/// Status register 1: the transmitter can take more.
const USR1: usize = 0x94;
const USR1_TRDY: u32 = 1 << 13;
/// UCR1: enabled.
const UARTEN: u32 = 1;
/// UCR2: transmitter and receiver enabled.
const TXEN_RXEN: u32 = 0b110;
/// Looks at the status before a byte is dropped: longer than a byte takes at 9600 baud on any core.
const LOOKS_MAX: u32 = 1_000_000;

/// Enables both directions.
pub fn enable(uart: &impl Registers) {
    uart.write_u32(UCR1, uart.read_u32(UCR1) | UARTEN);
    uart.write_u32(UCR2, uart.read_u32(UCR2) | TXEN_RXEN);
}

/// Writes a byte; drops it if the UART does not take it in time, and says so.
pub fn write(uart: &impl Registers, byte: u8) -> bool {
    let has_room = (0..LOOKS_MAX).any(|_| uart.read_u32(USR1) & USR1_TRDY != 0);
    if has_room {
        uart.write_u32(UTXD, u32::from(byte));
    }
    has_room
}
