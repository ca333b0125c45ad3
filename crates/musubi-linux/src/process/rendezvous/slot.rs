//! Slots and epochs: which participant of its domain a process is, and which incarnation.
//!
//! What you may rely on: no two processes have the same slot at once; a slot's holders, one after the other, have
//! different epochs, none of them 0.
//!
//! How it works: binding the slot's name takes the slot. The epoch is the boot clock in units of 65,536 ns, taken after
//! the unit in which the slot was claimed has ended: so it differs from that of any earlier holder.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_core::plan::Plan;

use crate::error::Error;
use crate::os::clock::{Deadline, DeadlineExt, boot_ns};
use crate::os::forks::Kept;
use crate::os::packet_socket::{Answer, call, claim};
use crate::process::rendezvous::socket_names::Names;

/// Pause between attempts to get a slot, in nanoseconds.
const SLOT_PAUSE_NS: u64 = 2_000_000;
/// The unit of epochs is 2 to this power nanoseconds.
const EPOCH_SHIFT: u32 = 16;

/// Takes a slot of the domain: the global participant number and the socket that holds its name.
pub(crate) fn take_slot_of(
    plan: &Plan<'_>,
    domain: u16,
    slot: Option<u16>,
    deadline: Deadline,
    names: &Names,
) -> Result<(u16, Kept), Error> {
    let of_domain = &plan.domains[usize::from(domain)];
    let (first, slots) = (plan.first_participant(domain), of_domain.participants);
    let wanted = match slot {
        Some(slot) if slot >= slots => {
            return Err(Error::NoSuchSlot { domain: of_domain.name.to_owned(), slot, slots });
        }
        Some(slot) => first + slot..first + slot + 1,
        None => first..first + slots,
    };
    loop {
        let mut foreign = Vec::new();
        for number in wanted.clone() {
            let name = names.participant(number);
            if let Some(slot) = claim(&name)? {
                return Ok((number, slot));
            }
            match call(&name)? {
                Answer::Connected(_, holder) if !holder.may_attach(of_domain) => foreign.push((name, holder.uid)),
                _ => (),
            }
        }
        let hopeless = foreign.len() == wanted.len();
        if hopeless || deadline.passed() {
            let full = Error::DomainFull { domain: of_domain.name.to_owned(), slots };
            return Err(foreign.pop().map_or(full, |(name, uid)| Error::NameForeign { name, uid }));
        }
        std::thread::sleep(Duration::from_nanos(SLOT_PAUSE_NS));
    }
}

/// An epoch that no earlier holder of any slot had that this process, or another before it, has held.
pub(crate) fn new_epoch() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let tick = || (boot_ns() >> EPOCH_SHIFT) as u32;
    let claimed_at = tick();
    loop {
        let now = tick();
        let last = LAST.load(Ordering::SeqCst);
        let fresh = now != 0 && now != claimed_at && now != last;
        if fresh && LAST.compare_exchange(last, now, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return now;
        }
        std::thread::sleep(Duration::from_nanos(1 << EPOCH_SHIFT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_differ() {
        let begin = (boot_ns() >> EPOCH_SHIFT) as u32;
        let mut epochs = vec![begin];
        for _ in 0..50 {
            epochs.push(new_epoch());
        }
        epochs.sort_unstable();
        epochs.dedup();
        assert_eq!(epochs.len(), 51);
    }
}
