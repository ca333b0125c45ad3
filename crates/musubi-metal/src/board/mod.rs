//! What an image needs from a board, and the one place that selects boards by target.
//!
//! What you may rely on: every function is bounded; none allocates. Core numbers here are the hardware's own (hart,
//! affinity); `crate::core_data` maps them to the program's, where 0 is the core that booted.

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub mod riscv_virt;

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub mod zcu102_a53;

#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), target_os = "none"))]
mod rings;

#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), target_os = "none"))]
pub mod psci_cores;

pub mod imx7_sharing;
pub mod imx_watchdog;
pub mod pl310;
pub mod rpu_start;
pub mod scu;
pub mod zynqmp_map;

#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod a9;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod mcimx7d_sabre;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod sabrelite;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod vexpress_a9;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod zcu102_r5;

#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), target_os = "none"))]
use crate::arch::psci;

use crate::timer::check::Checked;

/// An interrupt that a core has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Another core rang.
    Ring,
    /// The alarm of this core has gone off; it is silent until set again.
    Alarm,
    /// A device's interrupt, by the number that the controller gives it.
    Device(u32),
}

/// Why a core could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The hardware has no such core.
    Absent,
    /// It runs already.
    Running,
    /// Interrupts are masked, so a lock may be held that was not taken in full; or the program cannot be written over.
    Masked,
    /// The firmware or the controller refused, with its own code.
    Refused(i32),
}

/// Memory that an address translation or a protection unit lets the program use, at its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address, a multiple of 2 MiB.
    pub start: usize,
    /// Bytes, a multiple of 2 MiB.
    pub bytes: usize,
    /// How it is accessed.
    pub kind: MemoryKind,
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Normal memory, cached, coherent among the cores of this program.
    Normal,
    /// Normal memory, not cached: shared with cores that see no cache of ours.
    Shared,
    /// Registers of devices, or memory that must be accessed like such.
    Device,
}

impl StartError {
    /// [`StartError::Absent`] as the code of [`musubi_core::smp::boot::Reason::Refused`].
    pub const ABSENT: i32 = i32::MIN;
    /// [`StartError::Running`] likewise.
    pub const RUNNING: i32 = i32::MIN + 1;
    /// [`StartError::Masked`] as a code.
    pub const MASKED: i32 = i32::MIN + 2;

    /// What a PSCI firmware that did not start a core says.
    #[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), target_os = "none"))]
    pub(crate) const fn of_psci(code: i32) -> Self {
        match code {
            psci::INVALID_PARAMETERS => StartError::Absent,
            psci::ALREADY_ON => StartError::Running,
            code => StartError::Refused(code),
        }
    }

    /// The error as a code: the firmware's own, or one of ours.
    pub const fn code(self) -> i32 {
        match self {
            StartError::Absent => Self::ABSENT,
            StartError::Running => Self::RUNNING,
            StartError::Masked => Self::MASKED,
            StartError::Refused(code) => code,
        }
    }
}

/// A board, as the programs on it see it. A board is a type without values; its functions touch the hardware.
pub trait Board: Sized + 'static {
    /// What it is called in reports.
    const NAME: &'static str;
    /// What a program may access; where regions overlap, the last one counts. Not used by architectures that run without
    /// translation.
    const MEMORY: &'static [Region];
    /// Whether a core that [`Board::stop`] has ended can be started again.
    const RESTARTS: bool = true;

    /// Opens what keeps the caches of several cores alike. On the boot core, before its caches and its memory map are on, so that
    /// nothing may be read or written but registers.
    fn open_coherence() {}
    /// Makes the console and the clock work. On the boot core, once, with the memory map on.
    fn prepare();
    /// Makes the interrupt controller deliver rings and alarms to this core. On each core, once, with interrupts masked.
    fn prepare_core();
    /// Writes a byte to the console, waiting for room for a bounded time; drops it then.
    fn write(byte: u8);
    /// Nanoseconds of a clock that all cores read alike.
    fn now_ns() -> u64;
    /// What was found when the clock was held against a second timer, at the start.
    fn clock_check() -> Checked {
        Checked::Alone
    }
    /// Interrupts this core at an instant of [`Board::now_ns`], or at once if it has passed; `u64::MAX`: not at all.
    fn set_alarm(at_ns: u64);
    /// Whether the hardware has this core.
    fn exists(hardware: usize) -> bool;
    /// Starts a core at `entry`, with `argument` in the register that the architecture's entry code expects.
    ///
    /// # Errors
    /// Where the hardware or its firmware says at once that this cannot be.
    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError>;
    /// Ends this core for good, or until it is started again.
    fn stop() -> !;
    /// Interrupts a core with [`Event::Ring`]. Never waits; rings of one core that were not yet accepted are one.
    fn ring(hardware: usize);
    /// Accepts this core's most urgent pending interrupt, silences its source and tells the controller that it is done,
    /// so that the handler may unmask interrupts. With interrupts masked. None if nothing is pending.
    fn accept() -> Option<Event>;
    /// Why no interrupt reaches this core, if so: then `crate::arch::wait_for_interrupt` looks for rings and alarms itself.
    fn polls() -> Option<&'static str> {
        None
    }
    /// Ends the program: power off where that exists, else every interrupt off and sleep.
    fn power_off() -> !;
}
