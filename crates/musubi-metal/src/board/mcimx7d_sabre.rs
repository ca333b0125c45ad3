//! The SABRE board with an i.MX7Dual: two Cortex-A7 over a PSCI firmware (`mcimx7d-sabre` of QEMU).
//!
//! What you may rely on: two cores, numbered 0 and 1 by their affinity. One clock for both, the generic timer's. The firmware
//! starts and ends cores, and switches the machine off.
//!
//! How it works: addresses are those of the i.MX 7Dual reference manual (IMX7DRM), chapter 2.1; the interrupt controller is a
//! GIC-400. The firmware enters the image in HYP mode, at the address at which it would enter Linux. [`share_with_m4`] opens
//! what a program that owns the chip's clocks needs before it touches the Messaging Unit or the semaphores.
//!
//! What it does not do: run without such a firmware, where cores are started by the System Reset Controller.

use super::psci_cores::{Chip, PsciCores};
use super::{MemoryKind, Region, imx7_sharing};
use crate::console::imx;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;

// SAFETY: UART 1 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0x3086_0000, 0x1000) };
// SAFETY: the distributor of the interrupt controller lies there.
const DISTRIBUTOR: Window = unsafe { Window::new(0x3100_1000, DISTRIBUTOR_BYTES) };
// SAFETY: each core's own interface of the controller lies there.
const INTERFACE: Window = unsafe { Window::new(0x3100_2000, INTERFACE_BYTES) };
// SAFETY: the clock controller lies there.
static CCM: Window = unsafe { Window::new(0x3038_0000, 0x1_0000) };
// SAFETY: the resource domain controller lies there.
static RDC: Window = unsafe { Window::new(0x303D_0000, 0x1000) };
/// The interrupt controller.
pub static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);

/// The board.
pub type Mcimx7dSabre = PsciCores<Imx7Dual>;

/// Its own parts.
#[derive(Debug)]
pub struct Imx7Dual;

/// Opens the Messaging Unit and the semaphores for both processors. For a program that owns the chip's clocks and resource domains:
/// beside Linux, that is Linux. Gives whether both processors may use them now.
pub fn share_with_m4() -> bool {
    imx7_sharing::open(&CCM, &RDC)
}

impl Chip for Imx7Dual {
    const NAME: &'static str = "mcimx7d-sabre";
    const MEMORY: &'static [Region] = &[
        Region { start: 0x3000_0000, bytes: 0x0120_0000, kind: MemoryKind::Device },
        Region { start: 0x8000_0000, bytes: 0x1000_0000, kind: MemoryKind::Normal },
    ];
    const CORES: usize = 2;

    fn gic() -> &'static Gic<Window> {
        &GIC
    }

    fn prepare() {
        imx::enable(&UART);
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = imx::write(&UART, byte);
    }
}
