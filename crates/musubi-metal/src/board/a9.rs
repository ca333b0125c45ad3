//! What every Cortex-A9 MPCore has in common, whatever the board: snoop control, interrupt controller, clock, alarm.
//!
//! What you may rely on: cores are numbered 0 to 3 by their affinity. The clock has 64 bits and one value for all cores.
//!
//! Source: Cortex-A9 MPCore manual (DDI 0407): private memory region (chapter 1.5), snoop control unit (2.2), interrupt
//! controller (3), global timer (4.4, private interrupt 27).

use super::{Event, rings};
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::{Registers, Window};
use crate::timer::a9_global;

/// Private interrupt of the global timer's comparator.
const ALARM: u32 = 27;

/// Snoop control unit: control register, configuration register, invalidation of all tags.
const CONTROL: usize = 0x00;
const CONFIGURATION: usize = 0x04;
const INVALIDATE_ALL: usize = 0x0C;

/// The private memory region of a cluster.
#[derive(Debug)]
pub struct Cluster {
    snoop: Window,
    timer: Window,
    /// The interrupt controller.
    pub gic: Gic<Window>,
    tick_ns: u64,
}

impl Cluster {
    /// The cluster whose private memory region lies at `base`, with a timer clock of `tick_ns` nanoseconds.
    ///
    /// # Safety
    /// The region lies there as long as the program runs, mapped as device memory, and nobody else uses it.
    pub const unsafe fn new(base: usize, tick_ns: u64) -> Self {
        // SAFETY: the caller's promise, for the snoop control unit.
        let snoop = unsafe { Window::new(base, 0x100) };
        // SAFETY: the caller's promise, for this core's interrupt interface.
        let interface = unsafe { Window::new(base + 0x100, INTERFACE_BYTES) };
        // SAFETY: the caller's promise, for the global timer.
        let timer = unsafe { Window::new(base + 0x200, 0x100) };
        // SAFETY: the caller's promise, for the interrupt distributor.
        let distributor = unsafe { Window::new(base + 0x1000, DISTRIBUTOR_BYTES) };
        Cluster { snoop, timer, gic: Gic::new(distributor, interface), tick_ns }
    }

    /// Coherence, clock and interrupt distributor. Once, on the boot core.
    pub fn prepare(&self) {
        if self.snoop.read_u32(CONTROL) & 1 == 0 {
            self.snoop.write_u32(INVALIDATE_ALL, 0xFFFF);
            self.snoop.write_u32(CONTROL, self.snoop.read_u32(CONTROL) | 1);
        }
        a9_global::start(&self.timer, 1);
        self.gic.open();
    }

    /// Rings and alarms of this core.
    pub fn prepare_core(&self) {
        a9_global::set_alarm(&self.timer, None);
        self.gic.open_interface();
        // Every such controller has this interrupt.
        let _ = self.gic.enable(ALARM);
    }

    /// Whether the cluster has this core.
    pub fn exists(&self, hardware: usize) -> bool {
        hardware <= (self.snoop.read_u32(CONFIGURATION) & 0b11) as usize
    }

    /// Nanoseconds since [`Cluster::prepare`].
    pub fn now_ns(&self) -> u64 {
        a9_global::now(&self.timer) * self.tick_ns
    }

    /// Interrupts this core at an instant; `u64::MAX`: not at all.
    pub fn set_alarm(&self, at_ns: u64) {
        a9_global::set_alarm(&self.timer, (at_ns != u64::MAX).then(|| at_ns.div_ceil(self.tick_ns)));
    }

    /// Rings a core of the cluster.
    pub fn ring(&self, hardware: usize) {
        rings::ring(&self.gic, hardware);
    }

    /// Accepts this core's most urgent interrupt.
    pub fn accept(&self) -> Option<Event> {
        rings::accept(&self.gic, ALARM, || a9_global::set_alarm(&self.timer, None))
    }
}
