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
//! on one core alone could have it cached, which no board here offers yet. Starting the other core and switching off is the
//! Cortex-A53s' business: a program there ([`call_firmware`]) makes calls of the power interface (PSCI) for us.
//!
//! What it does not do: exclusive accesses between the two cores are carried out by QEMU; on the chip no monitor watches both,
//! so a program for both must keep to words with one writer there, or run as two programs.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::{Board, Event, MemoryKind, Region, StartError};
use crate::arch;
use crate::console::cadence;
use crate::core_data::this_core;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::{Registers, Window, before_device};
use crate::timer::ttc::{Alarm, Clock};

/// Cores of the cluster.
pub const CORES: usize = 2;
/// The software generated interrupt of rings.
const RING: u32 = 0;
/// Interrupt of the first counter of TTC 1: core n's alarm is counter n.
const ALARM: u32 = 71;
/// Hertz of the TTCs' input. QEMU's has 133 MHz; boards that give them the usual 100 MHz must say so here.
const TTC_HZ: u32 = 133_000_000;
/// Interrupts that one call of [`Board::accept`] looks at before it gives up: an alarm that is not yet due is not an event.
const LOOKS_MAX: usize = 4;

/// Where calls for the firmware are left: on-chip memory that the Cortex-A53s look at.
const FIRMWARE: usize = 0xFFFC_0000;
/// Longest time that the program on the Cortex-A53 may take for a call.
const FIRMWARE_NS_MAX: u64 = 500_000_000;
/// Our words there: number of the call (written last), function, three arguments.
const CALL: usize = 0x00;
const FUNCTION: usize = 0x04;
const ARGUMENTS: usize = 0x08;
/// The other side's words there: number of the call that was answered (written last), result.
const ANSWERED: usize = 0x40;
const RESULT: usize = 0x44;
/// Functions of PSCI (DEN 0022) with 32-bit arguments, and their codes.
const CPU_ON: u32 = 0x8400_0003;
const AFFINITY_INFO: u32 = 0x8400_0004;
const SYSTEM_OFF: u32 = 0x8400_0008;
const INVALID_PARAMETERS: i32 = -2;
const ALREADY_ON: i32 = -4;
/// What we say for a call that nobody answers.
pub const NO_FIRMWARE: i32 = -128;
/// What QEMU's firmware calls the first of these cores.
const FIRST_AFFINITY: u32 = 4;

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
// SAFETY: on-chip memory that is set aside for this.
static MAILBOX: Window = unsafe { Window::new(FIRMWARE, 0x80) };
/// The interrupt controller. To be used only if [`has_interrupts`].
pub static GIC: Gic<Window> = Gic::new(DISTRIBUTOR, INTERFACE);
static CLOCK: Clock<Window> = Clock::new(TTC0, TTC_HZ);
static ALARMS: [Alarm<Window>; CORES] = [Alarm::new(TTC1, 0, TTC_HZ), Alarm::new(TTC1, 1, TTC_HZ)];

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

/// Has the program on the Cortex-A53s make a call of PSCI, and gives its result; [`NO_FIRMWARE`] if there is none that
/// answers in time. From one core at a time.
pub fn call_firmware(function: u32, arguments: [u32; 3]) -> i32 {
    let call = MAILBOX.read_u32(ANSWERED).wrapping_add(1);
    MAILBOX.write_u32(FUNCTION, function);
    for (number, argument) in arguments.into_iter().enumerate() {
        MAILBOX.write_u32(ARGUMENTS + 4 * number, argument);
    }
    before_device();
    MAILBOX.write_u32(CALL, call);
    let until_ns = CLOCK.now_ns() + FIRMWARE_NS_MAX;
    while CLOCK.now_ns() < until_ns {
        if MAILBOX.read_u32(ANSWERED) == call {
            before_device();
            return MAILBOX.read_u32(RESULT).cast_signed();
        }
    }
    NO_FIRMWARE
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
        ALARMS[own].set(due_ns - now_ns);
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
            number => Some(Event::Device(number)),
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
        CLOCK.start();
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
                _ => ALARMS[own].set(at_ns.saturating_sub(CLOCK.now_ns())),
            }
        }
    }

    fn exists(hardware: usize) -> bool {
        let affinity = FIRST_AFFINITY + hardware as u32;
        hardware == own() || hardware < CORES && call_firmware(AFFINITY_INFO, [affinity, 0, 0]) >= 0
    }

    fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
        if hardware >= CORES {
            return Err(StartError::Absent);
        }
        match call_firmware(CPU_ON, [FIRST_AFFINITY + hardware as u32, entry as u32, argument as u32]) {
            0 => Ok(()),
            INVALID_PARAMETERS => Err(StartError::Absent),
            ALREADY_ON => {
                // It has stopped, and waits in the entry code.
                arch::release(hardware, entry);
                Self::ring(hardware);
                Ok(())
            }
            code => Err(StartError::Refused(code)),
        }
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
        let _ = call_firmware(SYSTEM_OFF, [0; 3]);
        Self::stop()
    }
}
