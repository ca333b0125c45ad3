//! Between an incarnation's successor and those who used the predecessors' memory: who may use which bank.
//!
//! What you may rely on: if [`meet`] says that the incarnation is present, then no successor takes that bank before
//! [`release`] has been called for a later one, unless it takes it by force. A section whose header still has an epoch,
//! looked at after the contents, had the contents of that incarnation.
//!
//! How it works: the user writes the epoch that it has met into its root and then looks whether the peer's root still
//! shows it; the successor marks its root and then looks what the user has written (Dekker's pattern; `MeetThenLook`).
//! `release` comes after the last access to the predecessors' banks; the successor acquires it before it clears the bank.
//!
//! It knows words only, so that all of it runs under a model checker.

use crate::layout::{header, root};
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// The word of a root that is about this participant.
const fn released(participant: u16) -> u32 {
    root::RELEASED + participant as u32
}

/// Whether our root says of a participant that we have met it.
pub(super) fn has_met(own: &OwnWords<'_>, participant: u16) -> bool {
    own.get(released(participant)) != 0
}

/// Says in our root that we have met an incarnation of a participant; gives whether its root still shows that one.
pub(super) fn meet(own: &OwnWords<'_>, participant: u16, peer: PeerWords<'_>, epoch: u32) -> bool {
    own.publish_then_look(released(participant), epoch, Site::MeetThenLook);
    peer.look(root::EPOCH) == epoch
}

/// Says that we hold nothing of the predecessors of an incarnation.
pub(super) fn release(own: &OwnWords<'_>, participant: u16, epoch: u32) {
    if own.get(released(participant)) != epoch {
        own.publish(released(participant), epoch, Site::PublishReleased);
    }
}

/// Whether our root says that we may still use the predecessor of `present`.
pub(super) fn keeps_predecessor(own: &OwnWords<'_>, participant: u16, present: u32) -> bool {
    own.get(released(participant)) != present
}

/// Marks our root: the former incarnation will never store again. A look at [`released_by`] may follow.
pub(super) fn mark_left(own: &OwnWords<'_>, former: u32) {
    own.publish_then_look(root::LEFT, former, Site::MeetThenLook);
}

/// What a peer's root says of us: the newest of our epochs of whose predecessors it holds nothing; 0: it has not met us.
pub(super) fn released_by(peer: PeerWords<'_>, me: u16) -> u32 {
    peer.look_at(released(me), Site::SeeReleased)
}

/// Shows the new incarnation in our root, after all that a peer may look at then. A look at tickets may follow.
pub(super) fn show(own: &OwnWords<'_>, epoch: u32) {
    own.publish_then_look(root::EPOCH, epoch, Site::MeetThenLook);
}

/// Clears a bank for a new incarnation. Who reads on in the former contents sees that the header is not theirs any more.
pub(super) fn clear(section: &OwnWords<'_>) {
    section.publish(header::EPOCH, 0, Site::PublishRoot);
    (0..section.len()).for_each(|word| section.publish(word, 0, Site::PublishRoot));
}

/// Completes the header of a section.
pub(super) fn sign(section: &OwnWords<'_>, epoch: u32) {
    section.publish(header::EPOCH, epoch, Site::PublishRoot);
}

/// The epoch in a section's header.
pub(super) fn signed(section: PeerWords<'_>) -> u32 {
    section.see(header::EPOCH, Site::SeeRoot)
}

#[cfg(all(test, loom))]
mod models;
