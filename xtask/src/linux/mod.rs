//! What Linux is made of on the ZCU102's machine: a kernel, a module for it, its programs, and the file system it starts with.
//!
//! What you may rely on: everything is built or fetched into the build directory; nothing is installed.
//!
//! What it does not do: put the parts into a machine. That is `qemu`'s, which this folder knows nothing of.

pub mod archive;
pub mod debian;
pub mod driver;
pub mod programs;
