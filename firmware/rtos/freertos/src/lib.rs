//! The FreeRTOS kernel for images: tasks in Rust and C, and the core's waiting as its scheduler does it.
//!
//! What you may rely on: no heap, neither the kernel's nor ours; a task that waits for a channel is blocked in the
//! kernel until a doorbell or its deadline.
//!
//! How it works: `build.rs` compiles the kernel's C sources; an image implements [`Machine`], spawns [`Task`]s and calls
//! [`start`]. [`TaskHost`] is the host of a participant whose threads are tasks.
//!
//! What it does not do: floating point in tasks on the R5F, timers and event groups of the kernel, more than one core.
#![no_std]

mod c_tasks;
pub mod critical;
mod host;
mod kernel;
mod machine;
pub mod monitor;
#[cfg(target_arch = "arm")]
mod on_board;
mod sleepers;
pub mod task;
pub mod trap;

pub use c_tasks::CTasks;
pub use host::TaskHost;
pub use machine::{Machine, Served, idle_rounds, on_ring, start};
#[cfg(target_arch = "arm")]
pub use on_board::OnBoard;
pub use sleepers::{SLEEP_TICKS_MAX, SLEEPERS_MAX, sleep, wake_all};
pub use task::{PRIORITY_MAX, TICK_NS, Task};
