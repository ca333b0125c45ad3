//! The SABRE Lite with an i.MX6Quad: four Cortex-A9 (`sabrelite` of QEMU).
//!
//! What you may rely on: up to four cores. The chip cannot switch itself off; its watchdog resets it, which ends QEMU if that
//! runs with `-no-reboot`.
//!
//! How it works: cores are started by the System Reset Controller, with their entry in a general purpose register; those that
//! stopped wait in the entry code for a release and a ring. Addresses
//! and names are those of the i.MX 6Dual/6Quad reference manual (IMX6DQRM): SRC chapter 60, WDOG chapter 70, UART 64.

use super::a9::Cluster;
use super::{Board, Event, MemoryKind, Region, StartError};
use crate::arch;
use crate::console::imx;
use crate::registers::{Registers, Window};

/// SRC: control register, and the entry of core 0, eight bytes a core.
const SCR: usize = 0x00;
const GPR1: usize = 0x20;
/// SCR: core 1 is enabled; the others follow.
const SCR_CORE1_ENABLE: u32 = 1 << 22;
/// SCR: core 0 is reset, the others follow. Clears itself.
const SCR_CORE0_RESET: u32 = 1 << 13;
/// Watchdog control register: enabled, with the reset asserted at once (SRS is active low).
const WCR: usize = 0x00;
const WCR_RESET_NOW: u16 = 1 << 2;
/// The cluster's timer: half of 792 MHz on hardware runs at 396 MHz; QEMU's has 100 MHz.
const TICK_NS: u64 = 10;

// SAFETY: UART 1 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x0202_0000, 0x1000) };
// SAFETY: the system reset controller lies there.
static SRC: Window = unsafe { Window::new(0x020D_8000, 0x1000) };
// SAFETY: watchdog 1 lies there.
static WATCHDOG: Window = unsafe { Window::new(0x020B_C000, 0x1000) };
// SAFETY: the private memory region lies there, mapped as `MEMORY` says.
static CLUSTER: Cluster = unsafe { Cluster::new(0x00A0_0000, TICK_NS) };

/// The board.
#[derive(Debug)]
pub struct Sabrelite;

impl Board for Sabrelite {
    const NAME: &'static str = "sabrelite";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x0080_0000, bytes: 0x0040_0000, kind: MemoryKind::Device },
        Region { start: 0x0200_0000, bytes: 0x0100_0000, kind: MemoryKind::Device },
        Region { start: 0x1000_0000, bytes: 0x1000_0000, kind: MemoryKind::Normal },
    ];

    fn prepare() {
        imx::enable(&UART);
        CLUSTER.prepare();
    }

    fn prepare_core() {
        CLUSTER.prepare_core();
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = imx::write(&UART, byte);
    }

    fn now_ns() -> u64 {
        CLUSTER.now_ns()
    }

    fn set_alarm(at_ns: u64) {
        CLUSTER.set_alarm(at_ns);
    }

    fn exists(hardware: usize) -> bool {
        CLUSTER.exists(hardware)
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if !CLUSTER.exists(hardware) {
            return Err(StartError::Absent);
        }
        if hardware == 0 || SRC.read_u32(SCR) & SCR_CORE1_ENABLE << (hardware - 1) != 0 {
            arch::release(hardware, entry);
            CLUSTER.ring(hardware);
            return Ok(());
        }
        SRC.write_u32(GPR1 + 8 * hardware, entry as u32);
        SRC.write_u32(GPR1 + 8 * hardware + 4, argument as u32);
        let control = SRC.read_u32(SCR);
        SRC.write_u32(SCR, control | SCR_CORE1_ENABLE << (hardware - 1) | SCR_CORE0_RESET << hardware);
        Ok(())
    }

    fn stop() -> ! {
        // The ring that follows the release wakes it.
        arch::park(true)
    }

    fn ring(hardware: usize) {
        CLUSTER.ring(hardware);
    }

    fn accept() -> Option<Event> {
        CLUSTER.accept()
    }

    fn power_off() -> ! {
        WATCHDOG.write_u16(WCR, WCR_RESET_NOW);
        Self::stop()
    }
}
