//! Arm's Versatile Express with a CoreTile of four Cortex-A9 (`vexpress-a9` of QEMU).
//!
//! What you may rely on: up to four cores. The machine is switched off through its system controller.
//!
//! How it works: addresses are those of the motherboard (DUI 0447, legacy memory map) and of the tile (DUI 0448). The other
//! cores wait in the monitor until the flags register holds an address and an interrupt comes; where nothing starts before
//! the image, all cores come to the image's entry and wait there for the same.

use super::a9::Cluster;
use super::{Board, Event, MemoryKind, Region, StartError};
use crate::arch;
use crate::console::pl011;
use crate::registers::{Registers, Window};

/// System registers: flags (set and clear), configuration data and control.
const FLAGS_SET: usize = 0x30;
const FLAGS_CLEAR: usize = 0x34;
const CONFIGURATION_DATA: usize = 0xA0;
const CONFIGURATION_CONTROL: usize = 0xA4;
/// Start, write, function 8 (shut down) of the motherboard.
const SHUT_DOWN: u32 = 1 << 31 | 1 << 30 | 8 << 20;
/// The cluster's timer has 100 MHz.
const TICK_NS: u64 = 10;

// SAFETY: UART 0 of the motherboard lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x1000_9000, 0x1000) };
// SAFETY: the system registers lie there.
static SYSTEM: Window = unsafe { Window::new(0x1000_0000, 0x1000) };
// SAFETY: the tile's private memory region lies there, mapped as `MEMORY` says.
static CLUSTER: Cluster = unsafe { Cluster::new(0x1E00_0000, TICK_NS) };

/// The board.
#[derive(Debug)]
pub struct VexpressA9;

impl Board for VexpressA9 {
    const NAME: &'static str = "vexpress-a9";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x1000_0000, bytes: 0x1000_0000, kind: MemoryKind::Device },
        Region { start: 0x6000_0000, bytes: 0x4000_0000, kind: MemoryKind::Normal },
    ];

    fn prepare() {
        pl011::enable(&UART);
        CLUSTER.prepare();
    }

    fn prepare_core() {
        CLUSTER.prepare_core();
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = pl011::write(&UART, byte);
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

    fn start(hardware: usize, entry: usize, _argument: usize) -> Result<(), StartError> {
        if !CLUSTER.exists(hardware) {
            return Err(StartError::Absent);
        }
        SYSTEM.write_u32(FLAGS_CLEAR, !0);
        SYSTEM.write_u32(FLAGS_SET, entry as u32);
        arch::release(hardware, entry);
        CLUSTER.ring(hardware);
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
        SYSTEM.write_u32(CONFIGURATION_DATA, 0);
        SYSTEM.write_u32(CONFIGURATION_CONTROL, SHUT_DOWN);
        Self::stop()
    }
}
