//! Critical sections: no other task and no interrupt runs in between.
//!
//! What you may rely on: they nest; they are as long as the closure, so keep it to a few stores.
//!
//! What it does not do: run in an interrupt, where nothing of this core comes in between anyhow.

use crate::kernel;

/// Calls `by` with interrupts masked.
pub fn section<R>(by: impl FnOnce() -> R) -> R {
    /// Leaves the section however the closure ends.
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            kernel::musubi_freertos_exit_critical();
        }
    }
    kernel::musubi_freertos_enter_critical();
    let _inside = Inside;
    by()
}
