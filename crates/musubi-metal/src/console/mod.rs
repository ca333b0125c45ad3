//! Printing lines on a board's console.
//!
//! What you may rely on: lines of different cores do not mix, also when a core prints while it panics: whoever waits for
//! the console longer than [`TURN_NS_MAX`] writes without its turn.

pub mod cadence;
pub mod imx;
pub mod ns16550;
pub mod pl011;

#[cfg(target_os = "none")]
mod line;
#[cfg(target_os = "none")]
pub use line::write_line;

/// Longest wait for another core to finish its line, in nanoseconds.
pub const TURN_NS_MAX: u64 = 1_000_000_000;
/// Most characters of a line; what is longer is cut.
pub const LINE_BYTES_MAX: usize = 240;

/// Prints a line on the console of the program `$program`.
#[macro_export]
macro_rules! println {
    ($program:ty, $($words:tt)*) => {
        $crate::console::write_line::<$program>(format_args!($($words)*))
    };
}
