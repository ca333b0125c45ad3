//! The C library: include/mdcom.h over the Linux process port, and for the tasks of an image on bare metal, in [`mdcom`];
//! and include/mcapi.h, in [`mcapi`]. This is the only crate with functions for C.
//!
//! What you may rely on: the headers say what each function does; no panic crosses into C; misuse is answered with a
//! code and changes nothing. Every function may be called from any thread or task.
//!
//! How it works: each interface has its functions, its codes and its state in a folder; [`ffi`] reads and writes through
//! the pointers that a C program gives, for both.
//!
//! The same sources are two packages more, in firmware/: `mdcom-c`, for tasks without a heap, and `mcapi-c`, whose feature
//! `mapped` puts MCAPI's nodes into memory that they map, and leaves MDCOM to the other.
//!
//! What it does not do: serve programs in Rust. Those use `musubi-mdcom` and `musubi-mcapi`, where misuse does not compile.
#![cfg_attr(target_os = "none", no_std)]

#[cfg(any(feature = "mapped", not(target_os = "none")))]
extern crate alloc;

mod ffi;
#[cfg(any(feature = "mapped", not(target_os = "none")))]
pub mod mcapi;
#[cfg(not(feature = "mapped"))]
pub mod mdcom;
#[cfg(not(any(feature = "mapped", target_os = "none")))]
mod reading;
