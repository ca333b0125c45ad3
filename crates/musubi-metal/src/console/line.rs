//! One line at a time.

use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use super::{LINE_BYTES_MAX, TURN_NS_MAX};
use crate::arch;
use crate::board::Board;
use crate::machine::Program;

/// Whether a core is writing. Not a lock of the multiprocessor layer: that may be what a line reports about, and a core
/// that died while it wrote must not silence the others.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A line while it is composed.
struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

/// Writes a line and its end.
pub fn write_line<P: Program>(words: Arguments<'_>) {
    let mut line = Line { bytes: [0; LINE_BYTES_MAX], length: 0 };
    // A value that cannot be formatted leaves its line short; there is nobody to tell.
    let _ = line.write_fmt(words);
    let before = arch::mask();
    let until_ns = P::Board::now_ns().saturating_add(TURN_NS_MAX);
    let mut is_ours = false;
    while !is_ours && P::Board::now_ns() < until_ns {
        is_ours = TAKEN.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !is_ours {
            P::serve();
            arch::relax();
        }
    }
    line.bytes[..line.length].iter().copied().chain(*b"\r\n").for_each(P::Board::write);
    if is_ours {
        TAKEN.store(false, Ordering::Release);
    }
    arch::restore(before);
}
