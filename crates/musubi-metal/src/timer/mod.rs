//! Clocks and alarms, over registers, so that they are tested on the host against models.

pub mod a9_global;
pub mod check;
pub mod found;
pub mod generic;
pub mod gpt;
pub mod rate;
pub mod ttc;
