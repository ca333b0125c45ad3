//! The four Cortex-A53 of a Zynq UltraScale+ (ZCU102), at EL1 over PSCI.
//!
//! What you may rely on: cores are numbered by their affinity, 0 to 3. The first 2 GiB are cached memory of the program, but
//! for 16 MiB at 0x3F00_0000; those and the on-chip memory are not cached, so that cores without our caches see the same.
//!
//! How it works: addresses and interrupt numbers are those of the Zynq UltraScale+ technical reference manual (UG1085); the
//! interrupt controller is a GIC-400.

use super::{Board, Event, MemoryKind, Region, StartError, rings};
use crate::arch::{self, psci};
use crate::console::cadence;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;
use crate::timer::generic;

/// Cores of the chip.
const CORES: usize = 4;
/// Private interrupt of the virtual timer.
const ALARM: u32 = 27;

// SAFETY: UART 0 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0xFF00_0000, 0x1000) };
// SAFETY: the distributor of the cores' interrupt controller lies there.
const DISTRIBUTOR: Window = unsafe { Window::new(0xF901_0000, DISTRIBUTOR_BYTES) };
// SAFETY: each core's own interface of the controller lies there.
const INTERFACE: Window = unsafe { Window::new(0xF902_0000, INTERFACE_BYTES) };
/// The interrupt controller.
pub static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);

/// The board.
#[derive(Debug)]
pub struct Zcu102A53;

impl Board for Zcu102A53 {
    const NAME: &'static str = "zcu102-a53";
    const MEMORY: &'static [Region] = &[
        Region { start: 0, bytes: 0x8000_0000, kind: MemoryKind::Normal },
        Region { start: 0x3F00_0000, bytes: 0x0100_0000, kind: MemoryKind::Shared },
        Region { start: 0x8000_0000, bytes: 0x7FE0_0000, kind: MemoryKind::Device },
        Region { start: 0xFFE0_0000, bytes: 0x0020_0000, kind: MemoryKind::Shared },
    ];

    fn prepare() {
        cadence::enable(&UART);
        GIC.open();
    }

    fn prepare_core() {
        arch::set_timer(None);
        GIC.open_interface();
        // Every such controller has this interrupt.
        let _ = GIC.enable(ALARM);
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = cadence::write(&UART, byte);
    }

    fn now_ns() -> u64 {
        generic::ns_of_ticks(arch::ticks(), arch::ticks_per_s())
    }

    fn set_alarm(at_ns: u64) {
        arch::set_timer((at_ns != u64::MAX).then(|| generic::ticks_at_ns(at_ns, arch::ticks_per_s())));
    }

    fn exists(hardware: usize) -> bool {
        hardware < CORES && psci::exists(hardware)
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if hardware >= CORES {
            return Err(StartError::Absent);
        }
        psci::start(hardware, entry, argument).map_err(StartError::of_psci)
    }

    fn stop() -> ! {
        let _ = arch::mask();
        GIC.close_interface();
        psci::stop();
        loop {
            arch::wait_for_interrupt();
        }
    }

    fn ring(hardware: usize) {
        rings::ring(&GIC, hardware);
    }

    fn accept() -> Option<Event> {
        rings::accept(&GIC, ALARM, || arch::set_timer(None))
    }

    fn power_off() -> ! {
        psci::power_off();
        Self::stop()
    }
}
