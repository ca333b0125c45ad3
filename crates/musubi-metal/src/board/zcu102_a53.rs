//! The four Cortex-A53 of a Zynq UltraScale+ (ZCU102), at EL1 over PSCI.
//!
//! What you may rely on: cores are numbered by their affinity, 0 to 3. The first 2 GiB are cached memory of the program, but
//! for 16 MiB at 0x3F00_0000; those and the on-chip memory are not cached, so that cores without our caches see the same.
//!
//! How it works: addresses and interrupt numbers are those of the Zynq UltraScale+ technical reference manual (UG1085); the
//! interrupt controller is a GIC-400.

use super::psci_cores::{Chip, PsciCores};
use super::{MemoryKind, Region};
use crate::console::cadence;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;

// SAFETY: UART 0 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0xFF00_0000, 0x1000) };
// SAFETY: the distributor of the cores' interrupt controller lies there.
const DISTRIBUTOR: Window = unsafe { Window::new(0xF901_0000, DISTRIBUTOR_BYTES) };
// SAFETY: each core's own interface of the controller lies there.
const INTERFACE: Window = unsafe { Window::new(0xF902_0000, INTERFACE_BYTES) };
/// The interrupt controller.
pub static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);

/// The board.
pub type Zcu102A53 = PsciCores<ApuCores>;

/// Its own parts.
#[derive(Debug)]
pub struct ApuCores;

impl Chip for ApuCores {
    const NAME: &'static str = "zcu102-a53";
    const MEMORY: &'static [Region] = &[
        Region { start: 0, bytes: 0x8000_0000, kind: MemoryKind::Normal },
        Region { start: 0x3F00_0000, bytes: 0x0100_0000, kind: MemoryKind::Shared },
        Region { start: 0x8000_0000, bytes: 0x7FE0_0000, kind: MemoryKind::Device },
        Region { start: 0xFFE0_0000, bytes: 0x0020_0000, kind: MemoryKind::Shared },
    ];
    const CORES: usize = 4;

    fn gic() -> &'static Gic<Window> {
        &GIC
    }

    fn prepare() {
        cadence::enable(&UART);
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = cadence::write(&UART, byte);
    }
}
