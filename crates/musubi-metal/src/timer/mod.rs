//! Clocks and alarms, over registers, so that they are tested on the host against models.

pub mod a9_global;
pub mod generic;
pub mod ttc;
