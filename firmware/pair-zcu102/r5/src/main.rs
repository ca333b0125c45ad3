//! The Remote of a pair of cores without operating systems: a Cortex-R5F that answers a Cortex-A53.
//!
//! What you may rely on: the core can write its own slot of the shared memory only; a store to the Master's is a fault,
//! after which the program begins anew with the next epoch.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_core::layout;
use musubi_core::mapped::Participant;
use musubi_metal::arch::{self, armv7r};
use musubi_metal::bare_host::BareHost;
use musubi_metal::board::zcu102_r5::{GIC, Zcu102R5, has_interrupts};
use musubi_metal::doorbell::DoorbellDevice;
use musubi_metal::doorbell::gic_spi::GicSpi;
use musubi_metal::{dispatch, image, println};
use zcu102_pair::{
    A53_BELL, A53_CONTROLLER, ANSWER_BYTES, BREAK_OUT, DOWN, MASTER, NUMBER_AT, PLAN, R5_BELL, REMOTE, SHARED,
    SLICE_NS, UP, attach, digest,
};

image! { Cpu: Zcu102R5, 1, main }

static BARE: BareHost<Cpu> = BareHost::new(ring, false);
/// Rings of the Master's that interrupted us. Writer: the handler.
static RINGS: AtomicU32 = AtomicU32::new(0);

/// Rings the Master.
fn ring(_: u16) {
    // That controller has this interrupt.
    let _ = GicSpi::that_only_rings(&A53_CONTROLLER).ring(A53_BELL);
}

fn rung(number: u32) {
    if number == R5_BELL {
        RINGS.fetch_add(1, Ordering::Relaxed);
        BARE.heard();
    }
}

fn main() -> ! {
    dispatch::FAULT.set(Some(|| arch::restart()));
    dispatch::DEVICE.set(Some(rung));
    if has_interrupts(0) {
        // This controller has the interrupt.
        let _ = GIC.target(R5_BELL, GIC.own_bit());
        GicSpi::new(&A53_CONTROLLER, &GIC, R5_BELL).inspect(GicSpi::arm);
    }
    let is_protected = protect();
    println!(Cpu, "r5: protected {is_protected}, interrupts {}", has_interrupts(0));
    match attach(&BARE, REMOTE).and_then(|remote| answer(&remote)) {
        Ok(()) | Err(_) => arch::restart(),
    }
}

/// Leaves this core its own slot and the segments of the shared memory to write.
fn protect() -> bool {
    let at = |participant| layout::slot_offset(&PLAN, participant).map(|offset| SHARED + offset as usize);
    let (Some(first), Some(own), Some(end)) = (at(MASTER), at(REMOTE), at(REMOTE + 1)) else { return false };
    let whole = layout::mapped_bytes(&PLAN).map_or(0, |bytes| (bytes as usize).next_power_of_two());
    let segments = layout::mapped_bytes(&PLAN).map_or(0, |bytes| SHARED + bytes as usize - end);
    first == SHARED
        && armv7r::protect(SHARED, whole).is_ok()
        && armv7r::allow(own, end - own).is_ok()
        && armv7r::allow(end, segments).is_ok()
}

/// Answers messages for ever.
fn answer(remote: &Participant<'static, BareHost<Cpu>>) -> Result<(), Error> {
    let down = remote.open_receiving(DOWN).map_err(|_| Error::NotOurs)?;
    let up = remote.open_sending(UP).map_err(|_| Error::NotOurs)?;
    loop {
        remote.beat();
        let slice = || Deadline::At(remote.now_ns() + SLICE_NS);
        match down.wait(slice()) {
            Err(Error::Timeout | Error::PeerGone) => continue,
            result => result?,
        }
        while let Ok(message) = down.dequeue() {
            let mut bytes = [0; 64];
            let length = message.copy_to(0, &mut bytes);
            let _ = down.free(message);
            if bytes[0] == BREAK_OUT {
                break_out();
            }
            let Ok(mut loan) = up.allocate(slice()) else { continue };
            loan[..4].copy_from_slice(&bytes[NUMBER_AT..NUMBER_AT + 4]);
            loan[4..8].copy_from_slice(&digest(&bytes[..length]).to_le_bytes());
            loan[8..12].copy_from_slice(&RINGS.load(Ordering::Relaxed).to_le_bytes());
            loan[12] = has_interrupts(0).into();
            up.enqueue(loan, ANSWER_BYTES as u32).map_err(|(error, _)| error)?;
            let _ = up.notify();
        }
    }
}

/// What a program with a wild pointer does: stores into the Master's slot.
fn break_out() {
    // SAFETY: the protection refuses the store, and the fault begins the program anew.
    unsafe { (SHARED as *mut u32).write_volatile(!0) };
    println!(Cpu, "FAILED r5: the store into the Master's slot was not refused");
}
