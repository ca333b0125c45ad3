//! `examples/freertos/receive.c` as a task of FreeRTOS on a Cortex-R5F, beside Linux on the Cortex-A53s.
#![no_std]
#![no_main]

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use musubi::mdcom::metal::{Ends, Inside, Node, install};
use musubi::mdcom::status::Status;
use musubi_core::mapped::{Participant, Pulse, Setup, StorageLine, storage_lines};
use musubi_freertos::{CTasks, OnBoard, Task, TaskHost, on_ring, task};
use musubi_metal::board::zcu102_r5::Zcu102R5;
use musubi_metal::{image, println};
use zcu102_r5_side::{DOMAIN, PARTICIPANT, PLAN, listen, memory, ring};

image! { Cpu: Zcu102R5, 1, main }

type Here = Participant<'static, TaskHost>;

static MACHINE: OnBoard<Zcu102R5> = OnBoard::new();
static BOARD: TaskHost = TaskHost { machine: &MACHINE, has_common_clock: false, ring };
static TASKS: CTasks = CTasks { machine: &MACHINE, attach };
static ENDS: Ends<Here, { PLAN.fifos.len() }, { PLAN.smems.len() }> = Ends::new(&PLAN);
static STORAGE: [StorageLine; storage_lines::<TaskHost>(&PLAN, DOMAIN)] =
    [const { StorageLine::new() }; storage_lines::<TaskHost>(&PLAN, DOMAIN)];
/// What the doorbell and the beat need of the participant. Writer: [`attach`], once.
static PULSE: AtomicPtr<Pulse<'static, TaskHost>> = AtomicPtr::new(null_mut());
static RECEIVE: Task<8192> = Task::new();
static BEAT: Task<8192> = Task::new();

unsafe extern "C" {
    /// The task of the example.
    fn receive(unused: *mut c_void);
}

extern "C" fn receive_task(unused: *mut c_void) {
    // SAFETY: the example's function takes nothing and never returns.
    unsafe { receive(unused) };
}

fn main() -> ! {
    listen();
    on_ring(|| with_pulse(Pulse::wake));
    install(&TASKS);
    BEAT.spawn(c"beat", 6, beat_for_ever, &());
    // SAFETY: the example's task may be called so.
    unsafe { RECEIVE.spawn_c(c"receive", 3, receive_task, null_mut()) };
    println!(Cpu, "FreeRTOS, {} interrupts", if MACHINE.is_interrupted() { "with" } else { "polling, without" });
    MACHINE.start()
}

/// Attaches for the C task; once, as the example never ends its attachment.
fn attach(inside: Inside<'_>) -> Result<&'static dyn Node, Status> {
    let memory = memory().ok_or(Status::Busy)?;
    let participant = Participant::attach(Setup::new(&PLAN, PARTICIPANT, &BOARD, memory, &STORAGE))?;
    keep(participant.pulse());
    ENDS.put(inside, participant)?;
    Ok(&ENDS)
}

/// Gives the pulse to the doorbell and the beat for ever.
fn keep(pulse: Pulse<'static, TaskHost>) {
    static PLACE: Kept = Kept(core::cell::UnsafeCell::new(None));
    struct Kept(core::cell::UnsafeCell<Option<Pulse<'static, TaskHost>>>);
    // SAFETY: written once, before `PULSE` leads others to it.
    unsafe impl Sync for Kept {}
    // SAFETY: the only call, as the memory is given once.
    let kept = unsafe { (*PLACE.0.get()).insert(pulse) };
    PULSE.store(kept, Ordering::Release);
}

fn with_pulse(by: fn(&Pulse<'static, TaskHost>)) {
    // SAFETY: null, or what `keep` stored: a reference for ever that nobody writes.
    if let Some(pulse) = unsafe { PULSE.load(Ordering::Acquire).as_ref() } {
        by(pulse);
    }
}

/// The participant's periodic work.
fn beat_for_ever(_: &()) {
    loop {
        with_pulse(Pulse::beat);
        task::delay(5);
    }
}

/// Prints a line for the C task.
///
/// # Safety
/// `text` is a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn example_print(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    println!(Cpu, "{}", text.to_str().unwrap_or("?"));
}
