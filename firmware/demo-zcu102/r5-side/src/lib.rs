//! The Cortex-R5F's side of the ZCU102 system: where the shared memory is, and both doorbells.
//!
//! What you may rely on: everything is as `system.toml` says; whichever scheduler an image has, it gets the same from here.
#![no_std]

use core::sync::atomic::{AtomicBool, Ordering};

use musubi_core::mapped::Memory;
use zcu102_demo::system::domain;

mod bell;

pub use bell::listen;
pub use zcu102_demo::system::PLAN;

/// Number of the only participant of the Cortex-R5F's domain.
pub const PARTICIPANT: u16 = 0;
/// That domain.
pub const DOMAIN: u16 = domain::R5;

unsafe extern "C" {
    /// Where the shared memory begins: the generated linker script says so.
    static __musubi_map: u8;
}

/// The shared memory; once, as one participant of the image attaches with it.
pub fn memory() -> Option<Memory<'static>> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    let base = (&raw const __musubi_map).cast_mut();
    // SAFETY: the description places the system there, in memory that Linux's devicetree reserves; the board maps it
    // uncached, and nothing else of the image refers to it, as this is the only time.
    unsafe { Memory::whole(base, &PLAN, PARTICIPANT) }
}

/// Rings a participant.
pub fn ring(participant: u16) {
    if PLAN.domain_of(participant) == Some(domain::LINUX) {
        bell::ring_linux();
    }
}
