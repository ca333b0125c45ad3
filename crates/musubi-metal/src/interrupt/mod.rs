//! Interrupt controllers, over registers, so that they are tested on the host against models.

pub mod gic;
