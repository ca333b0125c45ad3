//! What include/mdcom.h agrees with a C program, for both ports alike: structs, codes, names of blocks.
//!
//! What you may rely on: nothing in here knows a port.

pub mod abi;
pub(crate) mod handles;
pub mod status;
