//! Arm's Versatile Express with a CoreTile of four Cortex-A9 (`vexpress-a9` of QEMU).
//!
//! What you may rely on: up to four cores. The machine is switched off through its system controller.
//!
//! How it works: addresses are those of the motherboard (DUI 0447, legacy memory map) and of the tile (DUI 0448). The other
//! cores wait in the monitor until the flags register holds an address and an interrupt comes; where nothing starts before
//! the image, all cores come to the image's entry and wait there for the same. The motherboard counts its 24 MHz crystal, which
//! tells the rate of the cluster's timers.

use super::a9::{A9, Chip, Cluster};
use super::{MemoryKind, Region, pl310};
use crate::arch;
use crate::console::pl011;
use crate::registers::{Registers, Window};
use crate::timer::check::{Checked, Known, Origin};
use crate::timer::found::Found;

/// System registers: flags (set and clear), the count of the crystal, configuration data and control.
const FLAGS_SET: usize = 0x30;
const FLAGS_CLEAR: usize = 0x34;
const COUNT_24MHZ: usize = 0x5C;
const CONFIGURATION_DATA: usize = 0xA0;
const CONFIGURATION_CONTROL: usize = 0xA4;
/// Start, write, function 8 (shut down) of the motherboard.
const SHUT_DOWN: u32 = 1 << 31 | 1 << 30 | 8 << 20;
/// The crystal.
const CRYSTAL_HZ: u32 = 24_000_000;
/// Its ticks that the clock is held against it: a tenth of a millisecond.
const CHECK_TICKS: u32 = CRYSTAL_HZ / 10_000;
/// The tile's timers: half of a processor's 400 MHz; in QEMU's model, 100 MHz.
const RATES: [Known; 2] = [
    Known { clock_hz: 200_000_000, second_hz: CRYSTAL_HZ, origin: Origin::Board },
    Known { clock_hz: 100_000_000, second_hz: CRYSTAL_HZ, origin: Origin::Emulator },
];

// SAFETY: UART 0 of the motherboard lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x1000_9000, 0x1000) };
// SAFETY: the system registers lie there.
static SYSTEM: Window = unsafe { Window::new(0x1000_0000, 0x1000) };
// SAFETY: the tile's second-level cache's controller lies there.
static L2: Window = unsafe { Window::new(0x1E00_A000, 0x1000) };
// SAFETY: the tile's private memory region lies there, mapped as `MEMORY` says.
static CLUSTER: Cluster = unsafe { Cluster::new(0x1E00_0000, RATES[0].clock_hz) };

/// What holding the clock against the crystal gave. Writer: the boot core.
static FOUND: Found = Found::new();

/// The board.
pub type VexpressA9 = A9<CoreTile>;

/// Its own parts.
#[derive(Debug)]
pub struct CoreTile;

impl Chip for CoreTile {
    const NAME: &'static str = "vexpress-a9";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x1000_0000, bytes: 0x1000_0000, kind: MemoryKind::Device },
        Region { start: 0x6000_0000, bytes: 0x4000_0000, kind: MemoryKind::Normal },
    ];

    fn cluster() -> &'static Cluster {
        &CLUSTER
    }

    fn prepare() {
        pl011::enable(&UART);
        // Nothing on this board shares memory with masters outside of the cluster, so a cache that is on does no harm.
        let _ = pl310::respect_shared(&L2);
        FOUND.note(CLUSTER.check_clock(|| SYSTEM.read_u32(COUNT_24MHZ), CHECK_TICKS, &RATES));
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = pl011::write(&UART, byte);
    }

    fn clock_check() -> Checked {
        FOUND.get()
    }

    fn start(hardware: usize, entry: usize, _argument: usize) {
        SYSTEM.write_u32(FLAGS_CLEAR, !0);
        SYSTEM.write_u32(FLAGS_SET, entry as u32);
        arch::release(hardware, entry);
        CLUSTER.ring(hardware);
    }

    fn power_off() {
        SYSTEM.write_u32(CONFIGURATION_DATA, 0);
        SYSTEM.write_u32(CONFIGURATION_CONTROL, SHUT_DOWN);
    }
}
