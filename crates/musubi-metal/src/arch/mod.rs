//! The one place that selects an architecture.
//!
//! What you may rely on: every architecture offers the same functions, so nothing above asks which one it is:
//!
//! | function | what it does |
//! | --- | --- |
//! | `core_data`, `set_core_data` | reads and writes the register that holds this core's `crate::core_data::CoreData` |
//! | `hardware_core` | this core's number as the hardware knows it |
//! | `mask`, `restore`, `unmask`, `is_masked` | the core's interrupt mask, as `Mask` |
//! | `relax`, `signal` | the hint of a waiting loop, and what ends it |
//! | `wait_for_interrupt` | sleeps until an interrupt is pending, masked or not |
//! | `prepare_core` | vectors and, where there is one, the map of [`crate::board::Board::MEMORY`]; on each core, first of all |
//! | `secondary_entry` | the address at which another core must start, with its `CoreData` as the argument |
//! | `before_device` | orders what this core wrote to memory, as seen by everybody, before its next access to a device |
//! | `registers_at_fault` | what the vectors saved before they called `musubi_metal_fault`, in the set's own order; may be empty |
//! | `enter`, `leave`; `is_site`, `jump`, `write_instruction` | locks while the core is alone, see `crate::lock_patching`; what writes over their sites |
//! | `clean`, `flush_instructions`, `flush_data`, `flush_translations` | this core's caches |
//!
//! The entry code calls `musubi_metal_boot(hardware_core, argument)` on the boot core and
//! `musubi_metal_secondary(core_data)` on others; the vectors call `musubi_metal_interrupt()` and
//! `musubi_metal_fault(cause, address, at)`. `crate::image!` defines these four.

pub mod cortex_a;
pub mod encoding;
#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), target_os = "none"))]
pub mod psci;

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod aarch64;
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub use aarch64::*;

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
mod riscv64;
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub use riscv64::*;

#[cfg(all(target_arch = "arm", target_os = "none"))]
mod armv7;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod armv7a;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod armv7r;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use armv7::*;
