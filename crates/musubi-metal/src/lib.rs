//! Musubi without an operating system: boot, interrupts, caches, doorbells and boards.
//!
//! What you may rely on: no heap, no panic on what hardware or a peer says. What knows an instruction set is in [`arch`]
//! and compiles for that set only; what knows a device is written over [`registers::Registers`] and is tested on the host
//! against a model of the device.
//!
//! How it works: an image names its board and how many cores it is built for with `image!`. From that pair follows
//! `Machine`, the [`musubi_core::smp::Processor`] of its locks and cross calls. The architecture's entry sets up a
//! stack and the per-core pointer, then `start` takes over and calls the image's main function on the boot core.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod arch;
pub mod board;
pub mod console;
#[cfg(feature = "critical-section")]
pub mod critical;
pub mod doorbell;
pub mod interrupt;
pub mod modelled;
pub mod protection;
pub mod registers;
pub mod start_order;
pub mod timer;

#[cfg(target_os = "none")]
pub mod bare_host;
#[cfg(target_os = "none")]
pub mod cause_handlers;
#[cfg(target_os = "none")]
pub mod core_data;
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub mod coroutine;
#[cfg(target_os = "none")]
pub mod dispatch;
#[cfg(target_os = "none")]
mod image;
#[cfg(target_os = "none")]
pub mod lock_patching;
#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
pub mod start;

#[cfg(target_os = "none")]
pub use machine::{Machine, Program};
