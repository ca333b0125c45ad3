//! Tasks whose memory is a static.
//!
//! What you may rely on: a task's memory is used for one task at a time and never moves; there is no heap.
//!
//! How it works: [`Task`] is the stack, the kernel's control block and what the task begins with; spawning gives it to
//! the kernel, once. A body that returns ends its task; its memory stays taken.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::kernel::{self, Handle};

/// Highest priority; 0 is the idle task's.
pub const PRIORITY_MAX: u32 = 7;
/// Length of a tick in nanoseconds (`configTICK_RATE_HZ`).
pub const TICK_NS: u64 = 1_000_000;
/// Bytes of a control block; `kernel/glue.c` asserts that the kernel's fits.
const CONTROL_BYTES: usize = 384;

#[repr(C, align(16))]
struct Control([u8; CONTROL_BYTES]);

#[repr(C, align(16))]
struct Memory<const STACK_BYTES: usize> {
    stack: [u8; STACK_BYTES],
    control: Control,
    start: Option<Start>,
}

/// What a task in Rust begins with.
#[derive(Clone, Copy)]
struct Start {
    body: fn(*const c_void, *const c_void),
    function: *const c_void,
    argument: *const c_void,
}

/// Memory of one task.
pub struct Task<const STACK_BYTES: usize> {
    memory: UnsafeCell<Memory<STACK_BYTES>>,
    taken: AtomicBool,
}

// SAFETY: who sets `taken` writes the memory and gives it to the kernel; nobody else touches it.
unsafe impl<const STACK_BYTES: usize> Sync for Task<STACK_BYTES> {}

impl<const STACK_BYTES: usize> Task<STACK_BYTES> {
    /// Memory that no task uses yet.
    #[allow(clippy::new_without_default, reason = "a task is a static")]
    pub const fn new() -> Self {
        const { assert!(STACK_BYTES.is_multiple_of(16), "a stack is a multiple of 16 bytes") };
        let memory = Memory { stack: [0; STACK_BYTES], control: Control([0; CONTROL_BYTES]), start: None };
        Task { memory: UnsafeCell::new(memory), taken: AtomicBool::new(false) }
    }

    /// Makes a task that runs `body(argument)`, before or after [`crate::start`]. Gives `false`, and does nothing, if
    /// this memory is a task's already.
    pub fn spawn<A: Sync>(
        &'static self,
        name: &CStr,
        priority: u32,
        body: fn(&'static A),
        argument: &'static A,
    ) -> bool {
        let start =
            Start { body: call::<A>, function: body as *const c_void, argument: ptr::from_ref(argument).cast() };
        // SAFETY: `begin` gets a place that holds a start for ever, as `give` writes it there first.
        unsafe { self.give(name, priority, begin, ptr::null_mut(), Some(start)) }
    }

    /// The same with a function in C.
    ///
    /// # Safety
    /// The function may be called with this argument in a task of its own.
    pub unsafe fn spawn_c(
        &'static self,
        name: &CStr,
        priority: u32,
        body: extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.give(name, priority, body, argument, None) }
    }

    /// Gives the memory to the kernel. With a start, its place is the argument.
    ///
    /// # Safety
    /// `body` may be called with that argument in a task of its own.
    unsafe fn give(
        &'static self,
        name: &CStr,
        priority: u32,
        body: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        start: Option<Start>,
    ) -> bool {
        if self.taken.swap(true, Ordering::Relaxed) {
            return false;
        }
        let memory = self.memory.get();
        // SAFETY: `memory` points to our cell, which is ours alone now.
        let place = unsafe { &raw mut (*memory).start };
        // SAFETY: likewise.
        unsafe { place.write(start) };
        // SAFETY: likewise.
        let stack = unsafe { &raw mut (*memory).stack };
        // SAFETY: likewise.
        let control = unsafe { &raw mut (*memory).control };
        let argument = if start.is_some() { place.cast() } else { argument };
        let priority = priority.clamp(1, PRIORITY_MAX) as c_uint;
        // SAFETY: stack and control block are static, aligned to 16 and this task's alone; the body is fit by the
        // caller's promise. The kernel copies the name.
        let task = unsafe {
            kernel::musubi_freertos_create(
                body,
                name.as_ptr(),
                STACK_BYTES,
                argument,
                priority,
                stack.cast(),
                control.cast(),
            )
        };
        !task.is_null()
    }
}

/// The first function of a task in Rust.
extern "C" fn begin(start: *mut c_void) {
    // SAFETY: `give` wrote it before the task began and nobody writes it again.
    let start = unsafe { *start.cast::<Option<Start>>() };
    if let Some(Start { body, function, argument }) = start {
        body(function, argument);
    }
    end();
}

fn call<A: Sync + 'static>(function: *const c_void, argument: *const c_void) {
    // SAFETY: `spawn` made it of a function of this very type.
    let function = unsafe { core::mem::transmute::<*const c_void, fn(&'static A)>(function) };
    // SAFETY: `spawn` made it of a reference of this very type.
    function(unsafe { &*argument.cast::<A>() });
}

/// Ends the calling task.
pub fn end() -> ! {
    // SAFETY: NULL is the calling task. Its memory stays a static that is marked as taken.
    unsafe { kernel::vTaskDelete(ptr::null_mut()) };
    unreachable!("the kernel does not run an ended task")
}

/// The calling task. Only from a task.
pub(crate) fn current() -> Handle {
    // SAFETY: reads the kernel's pointer to the running task.
    unsafe { kernel::xTaskGetCurrentTaskHandle() }
}

/// Lets other tasks of this priority run.
pub fn yield_now() {
    kernel::musubi_freertos_yield();
}

/// Sleeps for so many ticks; the first may be short.
pub fn delay(ticks: u32) {
    kernel::musubi_freertos_delay(ticks);
}

/// Ticks since the scheduler started.
pub fn ticks() -> u64 {
    kernel::musubi_freertos_ticks()
}

/// Whether the scheduler runs tasks.
pub(crate) fn is_running() -> bool {
    kernel::musubi_freertos_is_running() != 0
}
