//! The triple timer counter of Zynq (counters of 16 bits) and Zynq UltraScale+ (32 bits): a clock and alarms.
//!
//! What you may rely on: [`Clock::now_ns`] never goes backwards on one core and needs no interrupt, if it is read at least
//! once in [`Clock::gap_ns_max`]: 42 s with 32-bit counters at 100 MHz, 15 s with 16-bit ones at 133 MHz. Its step is a tick of
//! the input clock (32 bits) or sixteen (16 bits: 120 ns). With 16-bit counters it wraps after a year.
//!
//! How it works: which width there is shows in the interval register. A 32-bit counter is extended by the time of the
//! last reading. A 16-bit one wraps every few milliseconds, too often for that; so a second counter, which is 4096 times
//! slower, tells how often it has wrapped since. Only the time since the last reading enters, so the two counters may drift
//! apart and need not have started together. Registers: Zynq UltraScale+ technical reference manual (UG1085), chapter 14,
//! and register reference (UG1087), module TTC.
//!
//! What it does not do: waveform output, external clocks, event timers.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::registers::Registers;

#[cfg(test)]
mod tests;

/// Registers of the three counters lie four bytes apart.
const CLOCK_CONTROL: usize = 0x00;
const COUNTER_CONTROL: usize = 0x0C;
const VALUE: usize = 0x18;
const INTERVAL: usize = 0x24;
/// Interrupts that occurred; reading clears them.
const INTERRUPTS: usize = 0x54;
const INTERRUPTS_ENABLED: usize = 0x60;

/// CLOCK_CONTROL: divide by 2 to the power of the four bits above, plus one.
const PRESCALE: u32 = 1;
/// COUNTER_CONTROL.
const DISABLED: u32 = 1;
const BY_INTERVAL: u32 = 1 << 1;
const RESTART: u32 = 1 << 4;
const NO_WAVEFORM: u32 = 1 << 5;
/// INTERRUPTS: the counter has passed its interval.
const PASSED_INTERVAL: u32 = 1;

/// Division of the slow counter: the largest.
const SLOW_LOG2: u32 = 16;
/// Division of the fast counter where it has 16 bits.
const NARROW_LOG2: u32 = 4;
/// Ticks of a 16-bit fast counter in a tick of the slow one.
const SLOW_TICKS: u64 = 1 << (SLOW_LOG2 - NARROW_LOG2);
/// Ticks until a 16-bit counter wraps.
const NARROW_TICKS: u64 = 1 << 16;
/// Times the two counters are read before a reading that took too long is used as it is.
const READS_MAX: usize = 8;

/// Longest time of an alarm that is worth computing; no product with a clock's hertz overflows.
const ALARM_NS_MAX: u64 = 60_000_000_000;

/// The counters' uses in a clock's TTC.
const FAST: usize = 0;
const SLOW: usize = 1;

/// A clock on counters 0 and 1 of a TTC.
#[derive(Debug)]
pub struct Clock<R> {
    ttc: R,
    /// Hertz of the input clock. Writer: the boot core, in `start`.
    input_hz: AtomicU32,
    /// The last reading: ticks (32-bit counters), or ticks and the slow counter's value in the lower 16 bits. Writer: any
    /// core of this program, by compare-exchange. 0 before the start.
    last: AtomicU64,
    /// Nanoseconds a tick, times 2^24; its lowest bit tells narrow counters. Writer: the boot core, in `start`.
    scale: AtomicU64,
}

/// Bits after the point of the scale.
const SCALE_BITS: u32 = 24;

impl<R: Registers> Clock<R> {
    /// A clock on a TTC whose input clock usually has so many hertz.
    pub const fn new(ttc: R, input_hz: u32) -> Self {
        let input_hz = AtomicU32::new(input_hz);
        Clock { ttc, input_hz, last: AtomicU64::new(0), scale: AtomicU64::new(0) }
    }

    /// Hertz of the input clock.
    pub fn input_hz(&self) -> u32 {
        self.input_hz.load(Ordering::Relaxed)
    }

    /// Starts from zero, with an input clock of so many hertz. On the boot core, before another core reads; again if that turned
    /// out to be another number.
    pub fn start(&self, input_hz: u32) {
        self.input_hz.store(input_hz, Ordering::Relaxed);
        let narrow = is_narrow(&self.ttc, FAST);
        run(&self.ttc, FAST, if narrow { NARROW_LOG2 } else { 0 });
        run(&self.ttc, SLOW, SLOW_LOG2);
        let division_log2 = if narrow { NARROW_LOG2 } else { 0 };
        let scale = ((1_000_000_000 << (SCALE_BITS + division_log2)) / u64::from(input_hz)) & !1;
        self.last.store(0, Ordering::Relaxed);
        self.scale.store(scale | u64::from(narrow), Ordering::Release);
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        let scale = self.scale.load(Ordering::Relaxed);
        let ticks = if scale & 1 == 0 { self.wide_ticks() } else { self.narrow_ticks() };
        let (high, low) = (ticks >> 32, ticks & 0xFFFF_FFFF);
        ((high * scale) << (32 - SCALE_BITS)) + ((low * scale) >> SCALE_BITS)
    }

    /// Longest time between two readings.
    pub fn gap_ns_max(&self) -> u64 {
        let scale = self.scale.load(Ordering::Relaxed);
        let ticks = if scale & 1 == 0 { u64::from(u32::MAX) } else { SLOW_TICKS * NARROW_TICKS / 2 };
        (ticks >> 8) * (scale >> (SCALE_BITS - 8))
    }

    fn wide_ticks(&self) -> u64 {
        let last = self.last.load(Ordering::Acquire);
        let ticks = last + u64::from(value(&self.ttc, FAST).wrapping_sub(last as u32));
        if ticks - last > u64::from(u32::MAX / 4) {
            self.remember(last, ticks);
        }
        ticks
    }

    fn narrow_ticks(&self) -> u64 {
        // Acquire: a counter read before this word would seem to have gone backwards, once another core has noted it.
        let word = self.last.load(Ordering::Acquire);
        let (last, last_slow) = (word >> 16, word as u16);
        let (fast, slow) = self.read_both();
        let by_slow = u64::from(slow.wrapping_sub(last_slow)) * SLOW_TICKS;
        let by_fast = u64::from(fast.wrapping_sub(last as u16));
        // The whole wraps of the fast counter that bring it nearest to what the slow one says.
        let wraps = (by_slow + NARROW_TICKS / 2).saturating_sub(by_fast) / NARROW_TICKS;
        let ticks = last + by_fast + wraps * NARROW_TICKS;
        if ticks - last > NARROW_TICKS / 2 {
            self.remember(word, ticks << 16 | u64::from(slow));
        }
        ticks
    }

    /// Both counters, read so close together that they tell of the same time.
    fn read_both(&self) -> (u16, u16) {
        let mut both = (0, 0);
        for _ in 0..READS_MAX {
            let before = value(&self.ttc, SLOW) as u16;
            both = (value(&self.ttc, FAST) as u16, value(&self.ttc, SLOW) as u16);
            if both.1.wrapping_sub(before) <= 1 {
                break;
            }
        }
        both
    }

    /// Notes a reading; if another core has noted one meanwhile, that will do.
    fn remember(&self, before: u64, now: u64) {
        let _ = self.last.compare_exchange(before, now, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// An alarm on one counter of a TTC.
#[derive(Clone, Copy, Debug)]
pub struct Alarm<R> {
    ttc: R,
    counter: usize,
}

impl<R: Registers> Alarm<R> {
    /// The alarm on counter `counter` (0 to 2) of a TTC.
    pub const fn new(ttc: R, counter: usize) -> Self {
        assert!(counter < 3);
        Alarm { ttc, counter }
    }

    /// Raises the counter's interrupt after `after_ns` with an input clock of `input_hz`, or after the longest time that it can count (8 ms with 16 bits at
    /// 133 MHz): whoever handles it looks at the clock and sets the rest.
    pub fn set(&self, after_ns: u64, input_hz: u32) {
        self.clear();
        let limit = if is_narrow(&self.ttc, self.counter) { u64::from(u16::MAX) } else { u64::from(u32::MAX) };
        let hz = u64::from(input_hz) >> NARROW_LOG2;
        let ticks = (after_ns.min(ALARM_NS_MAX) * hz).div_ceil(1_000_000_000).clamp(1, limit);
        let at = 4 * self.counter;
        self.ttc.write_u32(INTERVAL + at, ticks as u32);
        self.ttc.write_u32(CLOCK_CONTROL + at, prescaled(NARROW_LOG2));
        self.ttc.write_u32(INTERRUPTS_ENABLED + at, PASSED_INTERVAL);
        self.ttc.write_u32(COUNTER_CONTROL + at, BY_INTERVAL | RESTART | NO_WAVEFORM);
    }

    /// Stops the counter and takes back its interrupt.
    pub fn clear(&self) {
        let at = 4 * self.counter;
        self.ttc.write_u32(COUNTER_CONTROL + at, DISABLED | NO_WAVEFORM);
        self.ttc.write_u32(INTERRUPTS_ENABLED + at, 0);
        let _ = self.ttc.read_u32(INTERRUPTS + at);
    }
}

/// Whether the counters have 16 bits. Changes the interval of a counter that does not use it.
fn is_narrow(ttc: &impl Registers, counter: usize) -> bool {
    ttc.write_u32(INTERVAL + 4 * counter, u32::MAX);
    ttc.read_u32(INTERVAL + 4 * counter) == u32::from(u16::MAX)
}

/// Lets a counter count up from zero and wrap, one tick in 2 to the power of `division_log2` clocks (0 to 16).
fn run(ttc: &impl Registers, counter: usize, division_log2: u32) {
    let at = 4 * counter;
    ttc.write_u32(COUNTER_CONTROL + at, DISABLED | NO_WAVEFORM);
    ttc.write_u32(INTERRUPTS_ENABLED + at, 0);
    ttc.write_u32(CLOCK_CONTROL + at, prescaled(division_log2));
    ttc.write_u32(COUNTER_CONTROL + at, RESTART | NO_WAVEFORM);
}

fn prescaled(division_log2: u32) -> u32 {
    if division_log2 == 0 { 0 } else { (division_log2 - 1) << 1 | PRESCALE }
}

fn value(ttc: &impl Registers, counter: usize) -> u32 {
    ttc.read_u32(VALUE + 4 * counter)
}
