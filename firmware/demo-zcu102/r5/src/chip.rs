//! The Cortex-R5F as the carrier of the demo's Master: its memory, FreeRTOS, and the doorbells of the description.
//!
//! What you may rely on: where the core has interrupts, tasks sleep until Linux rings or their time has come; where it has
//! none (QEMU before 10.1), the idle task polls for them.
//!
//! How it works: `zcu102-r5-side` has the doorbells; Linux's raises our interrupt, whose handler wakes the participant and the
//! tasks.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use musubi_core::mapped::{Participant, Pulse, Setup, StorageLine, storage_lines};
use musubi_freertos::{OnBoard, TaskHost, on_ring};
use musubi_metal::board::zcu102_r5::Zcu102R5;
use zcu102_r5_side::{DOMAIN, PARTICIPANT, PLAN, memory, ring};

/// Private memory of the participant. Writer: the participant.
static STORAGE: [StorageLine; storage_lines::<TaskHost>(&PLAN, DOMAIN)] =
    [const { StorageLine::new() }; storage_lines::<TaskHost>(&PLAN, DOMAIN)];
/// What the doorbell's handler wakes. Writer: [`listen`], once.
static PULSE: AtomicPtr<Pulse<'static, TaskHost>> = AtomicPtr::new(null_mut());

/// FreeRTOS's machine.
pub static MACHINE: OnBoard<Zcu102R5> = OnBoard::new();
/// The board of the participant: its threads are tasks.
static BOARD: TaskHost = TaskHost { machine: &MACHINE, has_common_clock: false, ring };

/// Attaches the Master.
///
/// # Errors
/// What the port says of the plan, which was checked when it was generated.
pub fn attach() -> Result<Participant<'static, TaskHost>, musubi_core::Error> {
    let memory = memory().ok_or(musubi_core::Error::Plan)?;
    Participant::attach(Setup::new(&PLAN, PARTICIPANT, &BOARD, memory, &STORAGE))
}

/// Lets Linux's rings interrupt us, if anything can, and wake the participant.
pub fn listen(pulse: &'static mut Pulse<'static, TaskHost>) {
    PULSE.store(pulse, Ordering::Release);
    on_ring(rung);
    zcu102_r5_side::listen();
}

/// What the doorbell's interrupt does before it wakes the tasks that sleep.
fn rung() {
    // SAFETY: null, or what `listen` was given: a reference for ever, of which nobody has another.
    if let Some(pulse) = unsafe { PULSE.load(Ordering::Acquire).as_ref() } {
        pulse.wake();
    }
}
