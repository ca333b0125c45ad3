//! Doorbells: how one core makes another look, over whatever the chip has for it.
//!
//! What you may rely on: [`DoorbellDevice::ring`] is a bounded number of register accesses and never waits for the other side. A
//! ring that comes before [`DoorbellDevice::take`] returns is either in what it gives, or interrupts again: so whoever takes first
//! and then looks at memory misses nothing. Rings coalesce; a message is never in the bell itself.
//!
//! How it works: each back end is a small driver over [`crate::registers::Registers`] (or [`crate::modelled::sbi::Firmware`]), tested on
//! the host against a model written from the device's manual, which its file names. The tests that all share are in
//! `conformance`: coalesced, duplicated, spurious and lost interrupts.
//!
//! Images ring by [`gic_spi`] (in QEMU) and by [`zynqmp_ipi`] behind [`gic_level`] (on the chip, where it was not tried).
//! What no image rings by is in [`crate::modelled`].
//!
//! What it does not do: carry data (the channels do), or recover a lost interrupt by itself: who sleeps has a deadline,
//! and the beat of a participant looks at the channels anyway.

pub mod gic_level;
pub mod gic_spi;
pub mod zynqmp_ipi;

#[cfg(test)]
pub(crate) mod conformance;

/// A wire to other cores, and from them to this one.
pub trait DoorbellDevice {
    /// Rings `target`, whose meaning is the back end's (a core, an agent's bit, a peer). Gives whether there is such a
    /// target; nothing else can fail.
    fn ring(&self, target: u32) -> bool;
    /// Acknowledges what has rung here since the last call, and gives it as a set: a bit for each ringer where the
    /// hardware tells them apart, else bit 0. Empty after a spurious or duplicated interrupt.
    fn take(&self) -> u32;
    /// Lets rings interrupt this core. A ring that came while it was disarmed interrupts now.
    fn arm(&self);
    /// Keeps rings from interrupting this core; they are kept.
    fn disarm(&self);
}

impl<L: DoorbellDevice> DoorbellDevice for &L {
    fn ring(&self, target: u32) -> bool {
        (**self).ring(target)
    }
    fn take(&self) -> u32 {
        (**self).take()
    }
    fn arm(&self) {
        (**self).arm();
    }
    fn disarm(&self) {
        (**self).disarm();
    }
}
