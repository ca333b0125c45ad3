//! MDCOM for C: include/mdcom.h over the Linux process port, or for the tasks of an image on bare metal.
//!
//! What you may rely on: include/mdcom.h says what each function does. Every function may be called from any thread or
//! task.
//!
//! How it works: [`exports`] has the functions; `contract` the structs, the codes and the names of blocks in the program's
//! hands; the program's one attachment
//! and its channels stand in statics of the port, as C programs have no handle to pass. `linux` is the port for processes;
//! where there is no operating system it is `metal`, over the traits of `musubi_core::channel`, without a heap. Both have
//! the same parts under the same names.
//!
//! What it does not do: attach a program twice.

mod contract;
pub mod exports;
#[cfg(not(target_os = "none"))]
mod linux;
#[cfg(target_os = "none")]
pub mod metal;

pub use contract::{abi, status};

#[cfg(not(target_os = "none"))]
use linux as port;
/// What MCAPI has to say at length is told by the same function.
#[cfg(not(target_os = "none"))]
pub(crate) use linux::failure;
#[cfg(target_os = "none")]
use metal as port;
