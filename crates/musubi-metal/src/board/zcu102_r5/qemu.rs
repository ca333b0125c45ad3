//! What QEMU's model of the ZCU102 needs, and the chip does not know: there is no power controller in it, its firmware takes a
//! Cortex-R5F for a core that PSCI starts, and nothing is wired behind the inter-processor interrupts' triggers.
//!
//! What you may rely on: used only where the clock has the rate of QEMU's model ([`super::is_emulated`]); a call that nobody answers
//! gives [`NO_FIRMWARE`] within half a second.
//!
//! How it works: a program on a Cortex-A53 (firmware/qemu-zcu102/psci) makes calls of the power interface (PSCI, DEN 0022) for us; they
//! are left in on-chip memory.
//!
//! What it does not do: say anything of silicon. There, a Cortex-R5F is started by [`super::super::rpu_start`], by the boot loader or by
//! Linux, and rung by [`crate::doorbell::zynqmp_ipi`].

use super::CLOCK;
use crate::board::StartError;
use crate::interrupt::gic::{DISTRIBUTOR_BYTES, Gic, INTERFACE_BYTES};
use crate::registers::{Registers, Window, before_device};

/// Input of the triple timer counters.
pub const TTC_HZ: u32 = 133_000_000;
/// Cycles a second that a core's cycle counter counts, whatever the core.
pub const CYCLES_HZ: u32 = 1_000_000_000;

/// The bells that stand in for the inter-processor interrupts, whose triggers are wired to nothing: unused shared interrupts that the other
/// side makes pending, as edges. Linux's, and the first Cortex-R5F's; the chip has neither (the numbers are lines of the programmable
/// logic), and Linux could not reach the latter's controller there.
pub const LINUX_BELL: u32 = 121;
/// The first Cortex-R5F's.
pub const R5_BELL: u32 = 123;

// SAFETY: the distributor of the Cortex-A53s' controller lies there.
const APU_DISTRIBUTOR: Window = unsafe { Window::new(0xF901_0000, DISTRIBUTOR_BYTES) };
// SAFETY: an interface of that controller lies there; who only rings at it never touches it.
const APU_INTERFACE: Window = unsafe { Window::new(0xF902_0000, INTERFACE_BYTES) };
/// The Cortex-A53s' interrupt controller, to ring at it.
pub static APU_GIC: Gic<Window> = Gic::new(APU_DISTRIBUTOR, APU_INTERFACE);

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

// SAFETY: on-chip memory that is set aside for this.
static MAILBOX: Window = unsafe { Window::new(FIRMWARE, 0x80) };

/// Has the program on the Cortex-A53s make a call of PSCI, and gives its result. From one core at a time.
fn call_firmware(function: u32, arguments: [u32; 3]) -> i32 {
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

/// Whether there is such a core.
pub(super) fn exists(hardware: usize) -> bool {
    call_firmware(AFFINITY_INFO, [FIRST_AFFINITY + hardware as u32, 0, 0]) >= 0
}

/// Starts a core. [`StartError::Running`] for one that has run before and waits in the entry code now.
pub(super) fn start(hardware: usize, entry: usize, argument: usize) -> Result<(), StartError> {
    match call_firmware(CPU_ON, [FIRST_AFFINITY + hardware as u32, entry as u32, argument as u32]) {
        0 => Ok(()),
        INVALID_PARAMETERS => Err(StartError::Absent),
        ALREADY_ON => Err(StartError::Running),
        code => Err(StartError::Refused(code)),
    }
}

/// Switches the machine off.
pub(super) fn power_off() {
    let _ = call_firmware(SYSTEM_OFF, [0; 3]);
}
