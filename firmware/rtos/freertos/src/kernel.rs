//! What the C side offers: `kernel/glue.c` and the symbols that the kernel asks us for.
//!
//! What you may rely on: declarations agree with `kernel/glue.c`, which the C compiler checks against the kernel.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// A task as the kernel names it.
pub(crate) type Handle = *mut c_void;

unsafe extern "C" {
    pub(crate) fn musubi_freertos_create(
        body: extern "C" fn(*mut c_void),
        name: *const c_char,
        stack_bytes: usize,
        argument: *mut c_void,
        priority: c_uint,
        stack: *mut c_void,
        control: *mut c_void,
    ) -> Handle;
    pub(crate) fn vTaskStartScheduler();
    pub(crate) fn vTaskDelete(task: Handle);
    pub(crate) fn xTaskGetCurrentTaskHandle() -> Handle;
    pub(crate) safe fn musubi_freertos_enter_critical();
    pub(crate) safe fn musubi_freertos_exit_critical();
    pub(crate) safe fn musubi_freertos_yield();
    pub(crate) safe fn musubi_freertos_ticks() -> u64;
    pub(crate) safe fn musubi_freertos_delay(ticks: u32);
    pub(crate) safe fn musubi_freertos_sleep(ticks: u32) -> c_int;
    pub(crate) safe fn musubi_freertos_forget();
    pub(crate) fn musubi_freertos_wake(task: Handle);
    pub(crate) fn musubi_freertos_wake_from_interrupt(task: Handle) -> c_int;
    pub(crate) fn musubi_freertos_switch_from_interrupt();
    #[cfg(target_arch = "arm")]
    pub(crate) fn musubi_freertos_tick_from_interrupt();
    pub(crate) safe fn musubi_freertos_is_running() -> c_int;
    pub(crate) safe fn musubi_freertos_monitor_enter();
    pub(crate) safe fn musubi_freertos_monitor_leave();
    pub(crate) safe fn musubi_freertos_monitor_is_mine() -> c_int;
    pub(crate) safe fn musubi_freertos_catch_up(ticks: u32);
}

/// The kernel found a mistake of the program (`configASSERT`).
///
/// # Safety
/// `file` is a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn musubi_freertos_broken(file: *const c_char, line: c_int) -> ! {
    // SAFETY: the kernel passes `__FILE__`.
    let file = unsafe { CStr::from_ptr(file) };
    panic!("FreeRTOS: {}:{line}: an assertion does not hold", file.to_str().unwrap_or("?"))
}

/// The kernel found that a task has overrun its stack.
///
/// # Safety
/// `name` is the C string of the task's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn vApplicationStackOverflowHook(_task: Handle, name: *const c_char) -> ! {
    // SAFETY: the name lies in the control block and ends with NUL.
    let name = unsafe { CStr::from_ptr(name) };
    panic!("FreeRTOS: the stack of the task {} is too small", name.to_str().unwrap_or("?"))
}
