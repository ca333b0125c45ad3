//! Sessions: which receiver a sender's lane is for, and where that receiver begins.
//!
//! What you may rely on: these functions write the link line of a transmit end and nothing that the data path writes,
//! so a port may call them from another thread than the one that sends.
//!
//! How it works: a message counts as delivered once it was dequeued, which the receiver records in `TAKEN` before it
//! hands the block out. When a receiver has died its section does not change any more; the position it had reached is
//! where its successor begins (or the tail, if the plan says that queued messages are dropped). Blocks before that
//! position come back to the pool ([`super::Sender::set_receiver`]).

use super::Ring;
use crate::layout::{rx, tx};
use crate::plan::OnRestart;
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// Opens the session with a receiver, which begins at position `start`.
pub fn publish_link(tx: &OwnWords<'_>, receiver: u16, epoch: u32, start: u32) {
    tx.set(tx::START, start);
    tx.set(tx::LINK_PARTICIPANT, u32::from(receiver));
    tx.publish(tx::LINK_EPOCH, epoch, Site::PublishLink);
}

/// Closes the session with a receiver that has gone, and gives the position where the next one begins.
///
/// `rx` is the gone receiver's end, `me` our participant number and epoch, `start` where that receiver began.
pub fn end_link(
    tx: &OwnWords<'_>,
    rx: Option<PeerWords<'_>>,
    ring: Ring,
    me: (u16, u32),
    start: u32,
    on_restart: OnRestart,
) -> u32 {
    let taken = rx.and_then(|rx| reached(rx, me)).unwrap_or(start);
    let tail = tx.get(tx::TAIL);
    let plausible = ring.contains(taken) && ring.distance(taken, tail) <= ring.slots();
    let next = match on_restart {
        OnRestart::Keep if plausible => taken,
        OnRestart::Keep | OnRestart::Drop => tail,
    };
    if !plausible {
        tx.advance(tx::REFUSED, 1);
    } else if next != taken {
        tx.set(tx::DROPPED, tx.get(tx::DROPPED).wrapping_add(ring.distance(taken, next)));
    }
    // In this order: who finds no link may rely on the start, even if we die in between.
    tx.set(tx::START, next);
    tx.publish(tx::LINK_EPOCH, 0, Site::PublishLink);
    next
}

/// How far a receiver got in its session with us (participant and epoch), if it ever began one.
pub fn reached(rx: PeerWords<'_>, (participant, epoch): (u16, u32)) -> Option<u32> {
    let began =
        rx.see(rx::LINK_EPOCH, Site::SeeBegin) == epoch && rx.get(rx::LINK_PARTICIPANT) == u32::from(participant);
    began.then(|| rx.see(rx::TAKEN, Site::SeeReturn))
}
