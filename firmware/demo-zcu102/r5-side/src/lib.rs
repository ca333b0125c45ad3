//! The Cortex-R5F's side of the ZCU102 system: where the shared memory is, and both doorbells.
//!
//! What you may rely on: everything is as `system.toml` says; whichever scheduler an image has, it gets the same from here.
#![no_std]

use core::sync::atomic::{AtomicBool, Ordering};

use musubi_core::mapped::Memory;
use musubi_core::plan::Doorbell;
use musubi_metal::board::zcu102_r5::{self, GIC};
use musubi_metal::core_data::this_core;
use musubi_metal::registers::{Registers, Window, before_device};
use zcu102_demo::system::{domain, doorbell};

pub use zcu102_demo::system::PLAN;

/// Number of the only participant of the Cortex-R5F's domain.
pub const PARTICIPANT: u16 = 0;
/// That domain.
pub const DOMAIN: u16 = domain::R5;
/// Registers of a doorbell lie in a page of an interrupt controller.
const PAGE_BYTES: usize = 0x1000;

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
        raise(doorbell::LINUX);
    }
}

/// Stores what raises a domain's interrupt.
fn raise(bell: Doorbell) {
    let register = bell.register as usize;
    // SAFETY: the description says that this register raises the domain's interrupt, and the board maps it as a device.
    let window = unsafe { Window::new(register & !(PAGE_BYTES - 1), PAGE_BYTES) };
    before_device();
    window.write_u32(register & (PAGE_BYTES - 1), bell.value);
}

/// Lets Linux's rings interrupt this core, if anything can.
pub fn listen() {
    if zcu102_r5::has_interrupts(this_core().hardware()) {
        let number = doorbell::R5.interrupt;
        // The description's number is a shared interrupt, which this controller has.
        let _ = GIC.edge(number, true) && GIC.target(number, GIC.own_bit()) && GIC.enable(number);
    }
}
