//! The port for Linux processes that share memory with other cores of the chip, by a UIO device.
//!
//! What you may rely on: a process writes its domain's slots and the segments and nothing else, which the kernel's driver
//! enforces (domain by domain; among processes of one domain it is an agreement). A slot has one process at a time and
//! is free as soon as that process has died, however it died. All of it ends with the process; nothing stays behind but
//! what it has written, which its successor and its peers know how to use.
//!
//! How it works: [`musubi_core::mapped`] is the port's logic, the same that runs on the other cores. Here are the parts
//! that Linux brings: [`Device`] finds and maps the memory, takes interrupts and rings; `host` lets threads sleep;
//! [`Participant`] claims a slot by binding its name, as processes among themselves do, and has one thread, the
//! attendant, that waits for the interrupt and keeps the heartbeat.
//!
//! What it does not do: bring the kernel's driver and the devicetree (firmware/demo-zcu102/linux, `musubi generate`); work
//! in a child made by `fork`, which does not have the mapping and must not drop what it has of a participant; work
//! through /dev/mem, which lets a process write everything and has no interrupts.

mod attendant;
mod device;
mod host;
mod observer;
mod participant;
mod twin;

pub use device::Device;
pub use host::{POLL_NS, ProcessHost};
pub use observer::Observer;
pub use participant::{Options, Participant};
pub use twin::Twin;
