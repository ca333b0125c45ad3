//! The port between processes: a participant, its section, its channels, and how participants find each other.
//!
//! What you may rely on: what a participant holds (its slot, its section, its ends) goes back by the kernel however the process
//! ends; nothing is left behind in the file system. Each section is sealed: its owner writes it, everybody else only reads.
//!
//! How it works: a [`participant::Participant`] claims a slot and makes a section; an attendant thread finds the other
//! participants and follows their deaths ([`rendezvous`]), and puts what it learns into mailboxes of the channels' ends
//! ([`channel`]). It is never on the data path. Who only looks ([`observer`], [`tap`]) takes no slot.

pub mod channel;
pub mod observer;
pub mod participant;
pub mod rendezvous;
pub mod section;
pub mod tap;

mod attachment;
