//! The C library of the VI Architecture: include/vipl.h over NICs in processes of Linux.
//!
//! What you may rely on: the header says what each function does, docs/vipl-conformance.md what it gives in each state; no panic
//! crosses into C; a handle is looked up and never followed, so a wrong one is answered with a code. Every function may be called from any
//! thread, and handlers may call any function.
//!
//! How it works: [`nics`] knows the opened NICs; each of the other files has the functions of one part of the standard, made of
//! steps of [`musubi_vipl::over`]. [`abi`] has the header's types, [`status`] its codes, [`handles`] what its handles are.
//!
//! What it does not do: decide anything about VIs.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles of vipl.h need 64 bits");

mod abi;
mod connections;
mod descriptors;
mod handlers;
mod handles;
mod memory;
mod names;
mod nics;
mod notifying;
mod qualities;
mod queues;
mod status;
mod vis;
