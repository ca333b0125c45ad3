//! The port between processes: a participant, its section, its channels, and how participants find each other.

pub mod channel;
pub mod observer;
pub mod participant;
pub mod rendezvous;
pub mod section;
pub mod tap;

mod attachment;
