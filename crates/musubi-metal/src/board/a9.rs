//! What every Cortex-A9 MPCore has in common, whatever the board: snoop control, interrupt controller, clock, alarm.
//!
//! What you may rely on: cores are numbered 0 to 3 by their affinity. The clock has 64 bits and one value for all cores; its rate
//! is held against a second timer at the start, if the board has one.
//!
//! How it works: a board says what is its own ([`Chip`]); [`A9`] of it is the [`Board`]. A core that stops waits in the entry code
//! for a release and a ring.
//!
//! Source: Cortex-A9 MPCore manual (DDI 0407): private memory region (chapter 1.5), interrupt controller (3), global timer
//! (4.4, private interrupt 27).

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{Board, Event, Region, StartError, rings, scu};
use crate::arch;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;
use crate::timer::a9_global;
use crate::timer::check::{self, Checked, Known};
use crate::timer::rate::Rate;

/// Private interrupt of the global timer's comparator.
const ALARM: u32 = 27;

/// The private memory region of a cluster.
#[derive(Debug)]
pub struct Cluster {
    snoop: Window,
    timer: Window,
    /// The interrupt controller.
    pub gic: Gic<Window>,
    /// The timer's rate, as [`Rate::to_word`]. Writer: the boot core, before others start.
    rate: AtomicU64,
}

impl Cluster {
    /// The cluster whose private memory region lies at `base`, with a timer clock of usually so many hertz.
    ///
    /// # Safety
    /// The region lies there as long as the program runs, mapped as device memory, and nobody else uses it.
    pub const unsafe fn new(base: usize, usual_hz: u32) -> Self {
        // SAFETY: the caller's promise, for the snoop control unit.
        let snoop = unsafe { Window::new(base, 0x100) };
        // SAFETY: the caller's promise, for this core's interrupt interface.
        let interface = unsafe { Window::new(base + 0x100, INTERFACE_BYTES) };
        // SAFETY: the caller's promise, for the global timer.
        let timer = unsafe { Window::new(base + 0x200, 0x100) };
        // SAFETY: the caller's promise, for the interrupt distributor.
        let distributor = unsafe { Window::new(base + 0x1000, DISTRIBUTOR_BYTES) };
        let rate = AtomicU64::new(Rate::of_hz(usual_hz).to_word());
        Cluster { snoop, timer, gic: Gic::new(distributor, interface), rate }
    }

    /// Coherence among the cores. Once, on the boot core, before its caches are on.
    pub fn open_coherence(&self) {
        scu::open(&self.snoop);
    }

    /// Clock and interrupt distributor. Once, on the boot core.
    pub fn prepare(&self) {
        a9_global::start(&self.timer, 1);
        self.gic.open();
    }

    /// Holds the clock against a second timer, over `ticks` ticks of that, and takes the rate that is found. Once, on the boot
    /// core, after [`Cluster::prepare`].
    pub fn check_clock(&self, second: impl Fn() -> u32, ticks: u32, known: &[Known]) -> Checked {
        let measured = check::ticks_while(|| a9_global::now(&self.timer) as u32, second, ticks);
        let (hz, checked) = check::recognise(measured, ticks, known);
        self.rate.store(Rate::of_hz(hz).to_word(), Ordering::Relaxed);
        checked
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
        hardware < scu::cores(&self.snoop)
    }

    fn rate(&self) -> Rate {
        Rate::of_word(self.rate.load(Ordering::Relaxed))
    }

    /// Nanoseconds since [`Cluster::prepare`].
    pub fn now_ns(&self) -> u64 {
        self.rate().ns(a9_global::now(&self.timer))
    }

    /// Interrupts this core at an instant; `u64::MAX`: not at all.
    pub fn set_alarm(&self, at_ns: u64) {
        a9_global::set_alarm(&self.timer, (at_ns != u64::MAX).then(|| self.rate().ticks(at_ns)));
    }

    /// Rings a core of the cluster.
    pub fn ring(&self, hardware: usize) {
        rings::ring(&self.gic, hardware);
    }

    /// Accepts this core's most urgent interrupt.
    pub fn accept(&self) -> Option<Event> {
        rings::accept(&self.gic, ALARM, || a9_global::take(&self.timer))
    }
}

/// What a board with such a cluster has for itself.
pub trait Chip: 'static {
    /// See [`Board::NAME`].
    const NAME: &'static str;
    /// See [`Board::MEMORY`].
    const MEMORY: &'static [Region];

    /// Its cluster.
    fn cluster() -> &'static Cluster;
    /// Makes the console work, and holds the clock against a second timer; the cluster is prepared.
    fn prepare();
    /// See [`Board::write`].
    fn write(byte: u8);
    /// See [`Board::clock_check`].
    fn clock_check() -> Checked;
    /// Starts a core that the cluster has.
    fn start(hardware: usize, entry: usize, argument: usize);
    /// Switches off or resets the machine, if it can.
    fn power_off();
}

/// The board whose own parts are `C`.
#[derive(Debug)]
pub struct A9<C>(PhantomData<C>);

impl<C: Chip> Board for A9<C> {
    const NAME: &'static str = C::NAME;
    const MEMORY: &'static [Region] = C::MEMORY;

    fn open_coherence() {
        C::cluster().open_coherence();
    }

    fn prepare() {
        C::cluster().prepare();
        C::prepare();
    }

    fn prepare_core() {
        C::cluster().prepare_core();
    }

    fn write(byte: u8) {
        C::write(byte);
    }

    fn now_ns() -> u64 {
        C::cluster().now_ns()
    }

    fn clock_check() -> Checked {
        C::clock_check()
    }

    fn set_alarm(at_ns: u64) {
        C::cluster().set_alarm(at_ns);
    }

    fn exists(hardware: usize) -> bool {
        C::cluster().exists(hardware)
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if !C::cluster().exists(hardware) {
            return Err(StartError::Absent);
        }
        C::start(hardware, entry, argument);
        Ok(())
    }

    fn stop() -> ! {
        // The ring that follows the release wakes it.
        arch::park(true)
    }

    fn ring(hardware: usize) {
        C::cluster().ring(hardware);
    }

    fn accept() -> Option<Event> {
        C::cluster().accept()
    }

    fn power_off() -> ! {
        C::power_off();
        Self::stop()
    }
}
