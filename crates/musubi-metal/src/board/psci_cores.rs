//! What boards have in common whose cores are started by a PSCI firmware, with a generic timer each and a GIC-400 between them.
//!
//! What you may rely on: cores are numbered by their affinity. One clock for all of them, the generic timer's, in whose frequency
//! register the firmware before us has written the truth; its interrupt is a level, so nothing stale comes of it.
//!
//! How it works: a board says what is its own ([`Chip`]); [`PsciCores`] of it is the [`Board`].

use core::marker::PhantomData;

use super::{Board, Event, Region, StartError, rings};
#[cfg(target_arch = "aarch64")]
use crate::arch as timer;
#[cfg(target_arch = "arm")]
use crate::arch::armv7a::generic_timer as timer;
use crate::arch::{self, psci};
use crate::interrupt::gic::Gic;
use crate::registers::Window;
use crate::timer::generic;

/// Private interrupt of the virtual timer.
const ALARM: u32 = 27;

/// What a board has for itself.
pub trait Chip: 'static {
    /// See [`Board::NAME`].
    const NAME: &'static str;
    /// See [`Board::MEMORY`].
    const MEMORY: &'static [Region];
    /// Cores of the chip.
    const CORES: usize;

    /// The interrupt controller.
    fn gic() -> &'static Gic<Window>;
    /// Makes the console work.
    fn prepare();
    /// See [`Board::write`].
    fn write(byte: u8);
}

/// The board whose own parts are `C`.
#[derive(Debug)]
pub struct PsciCores<C>(PhantomData<C>);

impl<C: Chip> Board for PsciCores<C> {
    const NAME: &'static str = C::NAME;
    const MEMORY: &'static [Region] = C::MEMORY;

    fn prepare() {
        C::prepare();
        C::gic().open();
    }

    fn prepare_core() {
        timer::set_timer(None);
        C::gic().open_interface();
        // Every such controller has this interrupt.
        let _ = C::gic().enable(ALARM);
    }

    fn write(byte: u8) {
        C::write(byte);
    }

    fn now_ns() -> u64 {
        generic::ns_of_ticks(timer::ticks(), timer::ticks_per_s())
    }

    fn set_alarm(at_ns: u64) {
        timer::set_timer((at_ns != u64::MAX).then(|| generic::ticks_at_ns(at_ns, timer::ticks_per_s())));
    }

    fn exists(hardware: usize) -> bool {
        hardware < C::CORES && psci::exists(hardware)
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if hardware >= C::CORES {
            return Err(StartError::Absent);
        }
        psci::start(hardware, entry, argument).map_err(StartError::of_psci)
    }

    fn stop() -> ! {
        let _ = arch::mask();
        C::gic().close_interface();
        arch::flush_data();
        psci::stop();
        loop {
            arch::wait_for_interrupt();
        }
    }

    fn ring(hardware: usize) {
        rings::ring(C::gic(), hardware);
    }

    fn accept() -> Option<Event> {
        let take_alarm = || {
            timer::set_timer(None);
            true
        };
        rings::accept(C::gic(), ALARM, take_alarm)
    }

    fn power_off() -> ! {
        psci::power_off();
        Self::stop()
    }
}
