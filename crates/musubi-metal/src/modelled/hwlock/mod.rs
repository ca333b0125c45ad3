//! Locks between cores that share no atomic operations: in hardware where the chip has them, else the core's bakery.
//!
//! What you may rely on: at most one party is inside; [`HardwareLock::try_lock`] is bounded; a lock that a dead party holds
//! can be taken from it once whoever supervises it is sure of its death.
//!
//! How it works: [`sema4`] is a driver over [`crate::registers::Registers`]; [`bakery`] puts the same trait over the
//! single-writer algorithm of [`musubi_core::lock`], which needs nothing but loads and stores.
//!
//! What it does not do: queue. These locks are not fair; sections are short, and who must not wait tries.

pub mod bakery;
pub mod sema4;

/// A lock between a few parties that know each other by numbers.
pub trait HardwareLock {
    /// Takes the lock if it is free. A party that holds it is refused.
    fn try_lock(&mut self) -> bool;
    /// Gives it back. `false`, and nothing changed, if this party does not hold it.
    fn unlock(&mut self) -> bool;
    /// Who holds it, if the lock can tell: the party's number.
    fn holder(&self) -> Option<u32>;
    /// Takes the lock away from a party that is surely dead, and leaves it free. `false` if that party does not hold it,
    /// or the lock did not come free.
    fn free_from_dead(&mut self, party: u32) -> bool;
}
