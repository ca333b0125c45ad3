//! The two Cortex-R5F of a Zynq UltraScale+ (ZCU102), in split mode, beside Cortex-A53 cores that run something else.
//!
//! What you may rely on: cores 0 and 1. Where a core has an interface of an interrupt controller ([`has_interrupts`]), rings
//! and alarms are interrupts; where it has not, it polls: it finds rings and alarms when it waits
//! ([`arch::wait_for_interrupt`]), and nothing interrupts it while it computes. On hardware both cores have one; QEMU has
//! none before 10.1, and since then one for the first core only (seen with 11.1: whatever core touches the interface's
//! registers, it is the first core's that changes). The clock needs no interrupt, see [`crate::timer::ttc`].
//!
//! How it works: addresses and interrupt numbers are those of the Zynq UltraScale+ technical reference manual (UG1085). All
//! memory of the program is shareable, so no cache of these cores holds it and both may run one program; a program that runs
//! on one core alone could have it cached, which no board here offers yet. The counters' input is 100 MHz on the board
//! (embeddedsw, `lib/sw_apps/zynqmp_fsbl/misc/zcu102/` and `xparameters.h`: XPAR_PSU_TTC_0_TTC_CLK_FREQ_HZ); at the start it is held
//! against this core's cycle counter, of 500 MHz there. QEMU's model has another pair of rates, by which it is recognised: then
//! [`qemu`] starts the other core and switches off, else [`chip`] does. An image begins with its vectors at address 0, as the
//! chip begins there (`musubi_r5.ld`).
//!
//! What it does not do: exclusive accesses between the two cores are carried out by QEMU; on the chip no monitor watches both,
//! so a program for both must keep to words with one writer there, or run as two programs.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::{Board, Event, MemoryKind, Region, StartError, rings};
use crate::arch::{self, armv7r};
use crate::console::cadence;
use crate::core_data::this_core;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::Window;
use crate::timer::check::{self, Checked, Known, Origin};
use crate::timer::found::Found;
use crate::timer::ttc::{Alarm, Clock};

mod chip;
pub mod qemu;

/// Cores of the cluster.
pub const CORES: usize = 2;
/// The software generated interrupt of rings.
const RING: u32 = 0;
/// Interrupt of the first counter of TTC 1: core n's alarm is counter n.
const ALARM: u32 = 71;
/// Hertz of the counters' input on the board.
const TTC_HZ: u32 = 100_000_000;
/// Hertz of the cores on the board.
const CYCLES_HZ: u32 = 500_000_000;
/// A clock that takes its input for [`TTC_HZ`], in ticks of a nanosecond, against the cycle counter: on the board and in QEMU.
const PACES: [Known; 2] = [
    Known { clock_hz: NS_PER_S, second_hz: CYCLES_HZ, origin: Origin::Board },
    Known {
        clock_hz: NS_PER_S / (TTC_HZ / 1_000_000) * (qemu::TTC_HZ / 1_000_000),
        second_hz: qemu::CYCLES_HZ,
        origin: Origin::Emulator,
    },
];
const NS_PER_S: u32 = 1_000_000_000;
/// Cycles that the clock is held against: 200 us on the board.
const CHECK_CYCLES: u32 = 100_000;
/// Interrupts that one call of [`Board::accept`] looks at before it gives up: an alarm that is not yet due is not an event.
const LOOKS_MAX: usize = 4;

// SAFETY: UART 1 lies there, and nobody else uses it.
static UART: Window = unsafe { Window::new(0xFF01_0000, 0x1000) };
// SAFETY: the triple timer counters 0 and 1 lie there, and nobody else uses them.
const TTC0: Window = unsafe { Window::new(0xFF11_0000, 0x1000) };
// SAFETY: as above.
const TTC1: Window = unsafe { Window::new(0xFF12_0000, 0x1000) };
// SAFETY: the distributor of these cores' interrupt controller lies there; what has none reads as zero.
const DISTRIBUTOR: Window = unsafe { Window::new(0xF900_0000, DISTRIBUTOR_BYTES) };
// SAFETY: each core's own interface of the controller lies there.
const INTERFACE: Window = unsafe { Window::new(0xF900_1000, INTERFACE_BYTES) };
/// The interrupt controller. To be used only if [`has_interrupts`].
pub static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);
static CLOCK: Clock<Window> = Clock::new(TTC0, TTC_HZ);
static ALARMS: [Alarm<Window>; CORES] = [Alarm::new(TTC1, 0), Alarm::new(TTC1, 1)];
/// What holding the clock against the cycle counter gave. Writer: the boot core.
static FOUND: Found = Found::new();

/// When each core's alarm is due. Writer: that core.
static DUE: [AtomicU64; CORES] = [const { AtomicU64::new(u64::MAX) }; CORES];
/// Each core's bit at the interrupt controller, 0 if it polls. Writer: that core, when it prepares itself.
static BITS: [AtomicU8; CORES] = [const { AtomicU8::new(0) }; CORES];
/// Whether a polling core was rung. Writers: who rings sets it, the core clears it before it serves; a ring in between is
/// served with the one before.
static RUNG: [AtomicBool; CORES] = [const { AtomicBool::new(false) }; CORES];

/// The board.
#[derive(Debug)]
pub struct Zcu102R5;

/// Whether a core can be interrupted. A core that is not up yet counts as one that can.
pub fn has_interrupts(hardware: usize) -> bool {
    !arch::is_polled(hardware)
}

/// Longest time between two readings of the clock.
pub fn clock_gap_ns_max() -> u64 {
    CLOCK.gap_ns_max()
}

/// Whether this is QEMU's model of the chip.
pub fn is_emulated() -> bool {
    FOUND.get() == Checked::Agrees(Origin::Emulator)
}

/// Starts the clock at the rate that it turns out to have.
fn start_clock() {
    CLOCK.start(TTC_HZ);
    armv7r::start_cycles();
    let measured = check::ticks_while(|| CLOCK.now_ns() as u32, armv7r::cycles, CHECK_CYCLES);
    let (pace, checked) = check::recognise(measured, CHECK_CYCLES, &PACES);
    FOUND.note(checked);
    CLOCK.start((u64::from(pace) * u64::from(TTC_HZ) / u64::from(NS_PER_S)) as u32);
}

fn own() -> usize {
    this_core().hardware() % CORES
}

/// The alarm of this core has gone off or its counter has: whether it is due, else the rest is set.
fn is_due(own: usize) -> bool {
    let (due_ns, now_ns) = (DUE[own].load(Ordering::Relaxed), CLOCK.now_ns());
    if now_ns >= due_ns {
        DUE[own].store(u64::MAX, Ordering::Relaxed);
        return true;
    }
    if has_interrupts(own) && due_ns != u64::MAX {
        ALARMS[own].set(due_ns - now_ns, CLOCK.input_hz());
    }
    false
}

/// What a polling core finds.
fn found(own: usize) -> Option<Event> {
    if RUNG[own].load(Ordering::Relaxed) {
        RUNG[own].store(false, Ordering::SeqCst);
        return Some(Event::Ring);
    }
    (DUE[own].load(Ordering::Relaxed) != u64::MAX && is_due(own)).then_some(Event::Alarm)
}

/// What the interrupt controller gives.
fn taken(own: usize) -> Option<Event> {
    for _ in 0..LOOKS_MAX {
        let taken = GIC.take()?;
        let number = taken.number();
        let event = match number {
            RING => Some(Event::Ring),
            _ if number == ALARM + own as u32 => {
                ALARMS[own].clear();
                is_due(own).then_some(Event::Alarm)
            }
            number => Some(rings::device(number)),
        };
        GIC.complete(taken);
        if event.is_some() {
            return event;
        }
    }
    None
}

impl Board for Zcu102R5 {
    const NAME: &'static str = "zcu102-r5";
    const MEMORY: &'static [Region] = &[
        Region { start: 0, bytes: 0x8000_0000, kind: MemoryKind::Normal },
        Region { start: 0x3F00_0000, bytes: 0x0100_0000, kind: MemoryKind::Shared },
        Region { start: 0xE000_0000, bytes: 0x2000_0000, kind: MemoryKind::Device },
        Region { start: 0xFFE0_0000, bytes: 0x0020_0000, kind: MemoryKind::Shared },
    ];

    fn prepare() {
        cadence::enable(&UART);
        start_clock();
        if GIC.is_present() {
            GIC.close_interface();
            GIC.open();
        }
    }

    fn prepare_core() {
        let own = own();
        ALARMS[own].clear();
        let has_interface = GIC.is_present() && !GIC.is_interface_open();
        arch::set_polled(!has_interface);
        if has_interface {
            GIC.open_interface();
            BITS[own].store(GIC.own_bit(), Ordering::Release);
            // Every such controller has this interrupt.
            let _ = GIC.target(ALARM + own as u32, GIC.own_bit());
            let _ = GIC.enable(ALARM + own as u32);
        }
    }

    fn write(byte: u8) {
        // A byte that the UART does not take is lost.
        let _ = cadence::write(&UART, byte);
    }

    fn now_ns() -> u64 {
        CLOCK.now_ns()
    }

    fn set_alarm(at_ns: u64) {
        let own = own();
        DUE[own].store(at_ns, Ordering::Relaxed);
        if has_interrupts(own) {
            match at_ns {
                u64::MAX => ALARMS[own].clear(),
                _ => ALARMS[own].set(at_ns.saturating_sub(CLOCK.now_ns()), CLOCK.input_hz()),
            }
        }
    }

    fn clock_check() -> Checked {
        FOUND.get()
    }

    fn exists(hardware: usize) -> bool {
        hardware == own() || hardware < CORES && (!is_emulated() || qemu::exists(hardware))
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if hardware >= CORES {
            return Err(StartError::Absent);
        }
        let started = if is_emulated() { qemu::start(hardware, entry, argument) } else { chip::start(hardware, entry) };
        if started == Err(StartError::Running) {
            // It has stopped, and waits in the entry code.
            arch::release(hardware, entry);
            Self::ring(hardware);
            return Ok(());
        }
        started
    }

    fn stop() -> ! {
        arch::park(has_interrupts(own()))
    }

    fn ring(hardware: usize) {
        let core = hardware % CORES;
        match BITS[core].load(Ordering::Acquire) {
            0 => RUNG[core].store(true, Ordering::SeqCst),
            // The number is below 16, so it is never refused.
            bit => {
                let _ = GIC.send(RING, bit);
            }
        }
    }

    fn accept() -> Option<Event> {
        let own = own();
        if has_interrupts(own) { taken(own) } else { found(own) }
    }

    fn polls() -> Option<&'static str> {
        let why = "no interrupt controller for this core (QEMU 10.1 and later have one for the first Cortex-R5F)";
        arch::is_polled(own()).then_some(why)
    }

    fn power_off() -> ! {
        if is_emulated() {
            qemu::power_off();
        }
        Self::stop()
    }
}
