//! The SABRE Lite with an i.MX6Quad: four Cortex-A9 (`sabrelite` of QEMU).
//!
//! What you may rely on: up to four cores. The chip cannot switch itself off; its watchdog resets it, which ends QEMU if that
//! runs with `-no-reboot`.
//!
//! How it works: cores are started by the System Reset Controller, with their entry in a general purpose register. The cluster's
//! timers run at half the processor's clock, which U-Boot leaves at 792 MHz (IMX6DQRM, chapter CCM; `PERIPHCLK` is half of
//! `ARM_CLK_ROOT`); the General Purpose Timer on the crystal tells which one it is. Addresses and names are those of the i.MX
//! 6Dual/6Quad reference manual (IMX6DQRM): CCM chapter 18, SRC chapter 60, WDOG chapter 70, UART 64.

use core::sync::atomic::{AtomicBool, Ordering};

use super::a9::{A9, Chip, Cluster};
use super::{MemoryKind, Region, imx_watchdog, pl310};
use crate::arch;
use crate::console::imx;
use crate::registers::{Registers, Window};
use crate::timer::check::{Checked, Known, Origin};
use crate::timer::found::Found;
use crate::timer::gpt;

/// SRC: control register, and the entry of core 0, eight bytes a core.
const SCR: usize = 0x00;
const GPR1: usize = 0x20;
/// SCR: core 1 is enabled; the others follow.
const SCR_CORE1_ENABLE: u32 = 1 << 22;
/// SCR: core 0 is reset, the others follow. Clears itself.
const SCR_CORE0_RESET: u32 = 1 << 13;
/// CCM: clock gating register 1, with both clocks of the General Purpose Timer.
const CCGR1: usize = 0x6C;
const CCGR1_GPT: u32 = 0b1111 << 20;
/// Ticks of the second timer that the clock is held against it: a tenth of a millisecond.
const CHECK_TICKS: u32 = gpt::HZ / 10_000;

const fn on_board(clock_hz: u32) -> Known {
    Known { clock_hz, second_hz: gpt::HZ, origin: Origin::Board }
}
/// Rates of the cluster's timers: at 792 MHz, which is usual, and at the other clocks that the chip is sold for; and in QEMU, whose
/// model has 100 MHz whatever the clock registers say.
const RATES: [Known; 6] = [
    on_board(396_000_000),
    on_board(498_000_000),
    on_board(426_000_000),
    on_board(600_000_000),
    on_board(198_000_000),
    Known { clock_hz: 100_000_000, second_hz: gpt::HZ, origin: Origin::Emulator },
];

// SAFETY: UART 1 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x0202_0000, 0x1000) };
// SAFETY: the system reset controller lies there.
static SRC: Window = unsafe { Window::new(0x020D_8000, 0x1000) };
// SAFETY: watchdog 1 lies there.
static WATCHDOG: Window = unsafe { Window::new(0x020B_C000, 0x1000) };
// SAFETY: the clock controller lies there.
static CCM: Window = unsafe { Window::new(0x020C_4000, 0x1000) };
// SAFETY: the General Purpose Timer lies there, and nobody else uses it.
static GPT: Window = unsafe { Window::new(0x0209_8000, 0x1000) };
// SAFETY: the second-level cache's controller lies there.
static L2: Window = unsafe { Window::new(0x00A0_2000, 0x1000) };
// SAFETY: the private memory region lies there, mapped as `MEMORY` says.
static CLUSTER: Cluster = unsafe { Cluster::new(0x00A0_0000, RATES[0].clock_hz) };

/// What holding the clock against the General Purpose Timer gave. Writer: the boot core.
static FOUND: Found = Found::new();
/// Whether memory that is not cached is safe from the second-level cache. Writer: the boot core.
static SHARED_IS_SAFE: AtomicBool = AtomicBool::new(true);

/// The board.
pub type Sabrelite = A9<Imx6Quad>;

/// Its own parts.
#[derive(Debug)]
pub struct Imx6Quad;

/// Whether memory of the kind [`MemoryKind::Shared`] is in no second-level cache; false if whatever ran before the image has
/// switched that on without its bit 22 (see [`pl310`]).
pub fn shared_is_safe() -> bool {
    SHARED_IS_SAFE.load(Ordering::Relaxed)
}

impl Chip for Imx6Quad {
    const NAME: &'static str = "sabrelite";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x0080_0000, bytes: 0x0040_0000, kind: MemoryKind::Device },
        Region { start: 0x0200_0000, bytes: 0x0100_0000, kind: MemoryKind::Device },
        Region { start: 0x1000_0000, bytes: 0x1000_0000, kind: MemoryKind::Normal },
    ];

    fn cluster() -> &'static Cluster {
        &CLUSTER
    }

    fn prepare() {
        imx::enable(&UART);
        imx_watchdog::hold(&WATCHDOG);
        SHARED_IS_SAFE.store(pl310::respect_shared(&L2), Ordering::Relaxed);
        CCM.write_u32(CCGR1, CCM.read_u32(CCGR1) | CCGR1_GPT);
        gpt::start(&GPT);
        FOUND.note(CLUSTER.check_clock(|| gpt::now(&GPT), CHECK_TICKS, &RATES));
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = imx::write(&UART, byte);
    }

    fn clock_check() -> Checked {
        FOUND.get()
    }

    fn start(hardware: usize, entry: usize, argument: usize) {
        if hardware == 0 || SRC.read_u32(SCR) & SCR_CORE1_ENABLE << (hardware - 1) != 0 {
            arch::release(hardware, entry);
            CLUSTER.ring(hardware);
            return;
        }
        SRC.write_u32(GPR1 + 8 * hardware, entry as u32);
        SRC.write_u32(GPR1 + 8 * hardware + 4, argument as u32);
        let control = SRC.read_u32(SCR);
        SRC.write_u32(SCR, control | SCR_CORE1_ENABLE << (hardware - 1) | SCR_CORE0_RESET << hardware);
    }

    fn power_off() {
        imx_watchdog::reset(&WATCHDOG);
    }
}
