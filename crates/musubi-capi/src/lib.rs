//! The C library: include/mdcom.h over the Linux process port, and for the tasks of an image on bare metal, in [`mdcom`];
//! and include/mcapi.h, in [`mcapi`]. This is the only crate with functions for C.
//!
//! What you may rely on: the headers say what each function does; no panic crosses into C; misuse is answered with a
//! code and changes nothing. Every function may be called from any thread or task.
//!
//! How it works: each interface has its functions, its codes and its state in a folder; [`ffi`] reads and writes through
//! the pointers that a C program gives, for both.
//!
//! What it does not do: serve programs in Rust. Those use `musubi-mdcom` and `musubi-mcapi`, where misuse does not compile.
#![cfg_attr(target_os = "none", no_std)]

#[cfg(not(target_os = "none"))]
extern crate alloc;

mod ffi;
#[cfg(not(target_os = "none"))]
pub mod mcapi;
pub mod mdcom;
#[cfg(not(target_os = "none"))]
mod reading;
