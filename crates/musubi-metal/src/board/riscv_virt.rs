//! QEMU's `virt` machine for RISC-V, with an SBI firmware (OpenSBI) beneath.
//!
//! What you may rely on: any number of harts that QEMU offers, any of which may be the boot core.
//!
//! What it does not do: the interrupts of devices (PLIC). A participant that shares memory with others is rung by another
//! hart.

use super::{Board, Event, Region, StartError};
use crate::arch::{self, sbi};
use crate::console::ns16550;
use crate::registers::Window;

/// Nanoseconds of a tick: the clock has 10 MHz.
const TICK_NS: u64 = 100;

// SAFETY: this machine has a 16550 there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x1000_0000, 0x100) };

/// The board.
#[derive(Debug)]
pub struct RiscvVirt;

impl Board for RiscvVirt {
    const NAME: &'static str = "riscv-virt";
    const MEMORY: &'static [Region] = &[];

    fn prepare() {}

    fn prepare_core() {
        sbi::set_timer(u64::MAX);
        arch::enable(arch::SOFTWARE);
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = ns16550::write(&UART, byte);
    }

    fn now_ns() -> u64 {
        arch::ticks() * TICK_NS
    }

    fn set_alarm(at_ns: u64) {
        if at_ns == u64::MAX {
            arch::disable(arch::TIMER);
        } else {
            sbi::set_timer(at_ns.div_ceil(TICK_NS));
            arch::enable(arch::TIMER);
        }
    }

    fn exists(hardware: usize) -> bool {
        sbi::exists(hardware)
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        sbi::start(hardware, entry, argument).map_err(|code| match code {
            // What the firmware also says of a hart that is about to start or to stop.
            sbi::INVALID_PARAMETER if sbi::exists(hardware) => StartError::Running,
            sbi::INVALID_PARAMETER => StartError::Absent,
            sbi::ALREADY_AVAILABLE => StartError::Running,
            code => StartError::Refused(code as i32),
        })
    }

    fn stop() -> ! {
        let _ = arch::mask();
        sbi::stop();
        loop {
            arch::wait_for_interrupt();
        }
    }

    fn ring(hardware: usize) {
        sbi::ring(hardware);
    }

    fn accept() -> Option<Event> {
        match arch::pending() {
            pending if pending & arch::SOFTWARE != 0 => {
                arch::clear_software();
                Some(Event::Ring)
            }
            pending if pending & arch::TIMER != 0 => {
                arch::disable(arch::TIMER);
                Some(Event::Alarm)
            }
            _ => None,
        }
    }

    fn power_off() -> ! {
        sbi::power_off();
        Self::stop()
    }
}
