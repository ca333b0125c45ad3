//! The SABRE board with an i.MX7Dual: two Cortex-A7 over a PSCI firmware (`mcimx7d-sabre` of QEMU).
//!
//! What you may rely on: two cores, numbered 0 and 1 by their affinity. One clock for both, the generic timer's. The firmware
//! starts and ends cores, and switches the machine off.
//!
//! How it works: addresses are those of the i.MX 7Dual reference manual (IMX7DRM), chapter 2.1; the interrupt controller is a
//! GIC-400. The firmware enters the image in HYP mode, at the address at which it would enter Linux.
//!
//! What it does not do: run without such a firmware, where cores are started by the System Reset Controller.

use super::{Board, Event, MemoryKind, Region, StartError, rings};
use crate::arch::armv7a::generic_timer;
use crate::arch::{self, psci};
use crate::console::imx;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;
use crate::timer::generic;

/// Cores of the chip.
const CORES: usize = 2;

// SAFETY: UART 1 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x3086_0000, 0x1000) };
// SAFETY: the distributor of the interrupt controller lies there.
const DISTRIBUTOR: Window = unsafe { Window::new(0x3100_1000, DISTRIBUTOR_BYTES) };
// SAFETY: each core's own interface of the controller lies there.
const INTERFACE: Window = unsafe { Window::new(0x3100_2000, INTERFACE_BYTES) };
static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);

/// The board.
#[derive(Debug)]
pub struct Mcimx7dSabre;

impl Board for Mcimx7dSabre {
    const NAME: &'static str = "mcimx7d-sabre";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x3000_0000, bytes: 0x0120_0000, kind: MemoryKind::Device },
        Region { start: 0x8000_0000, bytes: 0x1000_0000, kind: MemoryKind::Normal },
    ];

    fn prepare() {
        imx::enable(&UART);
        GIC.open();
    }

    fn prepare_core() {
        generic_timer::set_timer(None);
        GIC.open_interface();
        // Every such controller has this interrupt.
        let _ = GIC.enable(generic_timer::INTERRUPT);
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = imx::write(&UART, byte);
    }

    fn now_ns() -> u64 {
        generic::ns_of_ticks(generic_timer::ticks(), generic_timer::ticks_per_s())
    }

    fn set_alarm(at_ns: u64) {
        let at = (at_ns != u64::MAX).then(|| generic::ticks_at_ns(at_ns, generic_timer::ticks_per_s()));
        generic_timer::set_timer(at);
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
        arch::flush_data();
        psci::stop();
        loop {
            arch::wait_for_interrupt();
        }
    }

    fn ring(hardware: usize) {
        rings::ring(&GIC, hardware);
    }

    fn accept() -> Option<Event> {
        rings::accept(&GIC, generic_timer::INTERRUPT, || generic_timer::set_timer(None))
    }

    fn power_off() -> ! {
        psci::power_off();
        Self::stop()
    }
}
