//! The Cortex-R5F as the carrier of the demo's Master: its memory, FreeRTOS, and the doorbells of the description.
//!
//! What you may rely on: where the core has interrupts, tasks sleep until Linux rings or their time has come; where it has
//! none (QEMU before 10.1), the idle task polls for them.
//!
//! How it works: a ring is a store in the register that the description names; Linux's raises our interrupt, whose
//! handler wakes the participant and the tasks.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use musubi_core::mapped::{Memory, Participant, Pulse, Setup, StorageLine, storage_lines};
use musubi_core::plan::Doorbell;
use musubi_freertos::{OnBoard, TaskHost, on_ring};
use musubi_metal::board::zcu102_r5::{GIC, Zcu102R5};
use musubi_metal::registers::{Registers, Window, before_device};
use zcu102_demo::system::{PLAN, domain, doorbell};

/// Our participant: the only one of the first domain.
const MASTER: u16 = 0;
/// Registers of a doorbell lie in a page of the interrupt controller.
const PAGE_BYTES: usize = 0x1000;

/// Private memory of the participant. Writer: the participant.
static STORAGE: [StorageLine; storage_lines::<TaskHost>(&PLAN, domain::R5)] =
    [const { StorageLine::new() }; storage_lines::<TaskHost>(&PLAN, domain::R5)];
/// What the doorbell's handler wakes. Writer: [`listen`], once.
static PULSE: AtomicPtr<Pulse<'static, TaskHost>> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    /// Where the shared memory begins: the generated linker script says so.
    static __musubi_map: u8;
}

/// FreeRTOS's machine.
pub static MACHINE: OnBoard<Zcu102R5> = OnBoard::new();
/// The board of the participant: its threads are tasks.
static BOARD: TaskHost = TaskHost { machine: &MACHINE, has_common_clock: false, ring };

/// Attaches the Master.
///
/// # Errors
/// What the port says of the plan, which was checked when it was generated.
pub fn attach() -> Result<Participant<'static, TaskHost>, musubi_core::Error> {
    // SAFETY: the description places the system there, in memory that the devicetree keeps Linux from using; the region
    // is mapped uncached by the board, this image has one participant, and nothing else here refers to it.
    let memory = unsafe { Memory::whole((&raw const __musubi_map).cast_mut(), &PLAN, MASTER) };
    let memory = memory.ok_or(musubi_core::Error::Plan)?;
    Participant::attach(Setup::new(&PLAN, MASTER, &BOARD, memory, &STORAGE))
}

/// Lets Linux's rings interrupt us, if anything can, and wake the participant.
pub fn listen(pulse: &'static mut Pulse<'static, TaskHost>) {
    PULSE.store(pulse, Ordering::Release);
    on_ring(rung);
    if MACHINE.is_interrupted() {
        let number = doorbell::R5.interrupt;
        // The description's number is a shared interrupt, which this controller has.
        let _ = GIC.edge(number, true) && GIC.target(number, GIC.own_bit()) && GIC.enable(number);
    }
}

/// Stores what raises a domain's interrupt.
fn raise(bell: Doorbell) {
    let register = bell.register as usize;
    // SAFETY: the description says that this register raises the domain's interrupt, and the board maps it as a device.
    let window = unsafe { Window::new(register & !(PAGE_BYTES - 1), PAGE_BYTES) };
    before_device();
    window.write_u32(register & (PAGE_BYTES - 1), bell.value);
}

/// Wakes a participant.
fn ring(participant: u16) {
    if PLAN.domain_of(participant) == Some(domain::LINUX) {
        raise(doorbell::LINUX);
    }
}

/// What the doorbell's interrupt does before it wakes the tasks that sleep.
fn rung() {
    // SAFETY: null, or what `listen` was given: a reference for ever, of which nobody has another.
    if let Some(pulse) = unsafe { PULSE.load(Ordering::Acquire).as_ref() } {
        pulse.wake();
    }
}
