//! The look at every peer: who came, left, stands still or goes on, what its clock says, and which banks it may take anew.
//!
//! What you may rely on: nothing here waits; each look takes a number of steps that the plan bounds.
//!
//! How it works: a peer whose root shows another epoch is taken note of once, in [`Peer::known`]; ends link only with
//! incarnations that were taken note of. Before the first use of a peer our root must say so, else that peer's successor
//! would not wait for us (`handshake.rs`). Later `RELEASED` moves on only when all our ends have followed and none uses
//! the predecessor's bank.

use super::sights::{Sight, Watch};
use super::surroundings::{Peer, Surroundings};
use super::{Host, handshake, stamp};
use crate::guarantee::elapsed_ns;
use crate::layout::{header, root};
use crate::plan::Role;
use crate::sync::Ordering;

impl<'m, B: Host> Surroundings<'m, B> {
    /// Takes note of peers at once, for an end that has none. Leaves it to whoever does it just now.
    pub fn note_peers(&self) {
        if let Some(mut watch) = self.watch.try_lock() {
            self.look_at_peers(&mut watch, self.host.now_ns());
        }
    }

    /// Renews our heartbeat.
    pub fn renew(&self, now_ns: u64) {
        stamp::publish(&self.root.part(root::BEAT, stamp::WORDS), now_ns);
        self.section.set(header::HEARTBEAT_MS, (now_ns / 1_000_000) as u32);
    }

    /// Takes note of peers that came, left, stalled or went on.
    pub fn look_at_peers(&self, watch: &mut Watch<'m>, now_ns: u64) {
        let Watch { sights, changes, .. } = watch;
        let others = (0u16..).zip(self.peers.iter().zip(sights.iter_mut())).filter(|(number, _)| *number != self.me);
        for (participant, (peer, sight)) in others {
            let epoch = self.epoch_of(participant);
            let Some(root) = self.root_of(participant) else { continue };
            let (beat, known) = (root.get(root::BEAT), peer.known.load(Ordering::Relaxed));
            if epoch != known {
                *changes += 1;
                if self.may_be_noted(participant, epoch) {
                    peer.stalled.store(0, Ordering::Relaxed);
                    peer.known.store(epoch, Ordering::SeqCst);
                }
                *sight = Sight { beat, changed_at_ns: now_ns };
            } else if beat != sight.beat {
                *sight = Sight { beat, changed_at_ns: now_ns };
                *changes += u32::from(peer.stalled.swap(0, Ordering::Relaxed) != 0);
            } else if epoch != 0 && elapsed_ns(sight.changed_at_ns, now_ns) > self.plan.liveness.stalled_ns {
                *changes += u32::from(peer.stalled.swap(epoch, Ordering::Relaxed) != epoch);
            }
        }
    }

    /// Tells a peer's successors that we may use its bank, before we do. Gives whether it is still that incarnation.
    fn may_be_noted(&self, participant: u16, epoch: u32) -> bool {
        if epoch == 0 || handshake::has_met(&self.root, participant) {
            return true;
        }
        self.root_of(participant).is_some_and(|peer| handshake::meet(&self.root, participant, peer, epoch))
    }

    pub fn follow_clock(&self, watch: &mut Watch<'m>) {
        let Some(master) = self.plan.domains.iter().position(|domain| domain.role == Role::Master) else { return };
        let master = self.plan.first_participant(master as u16);
        let epoch = self.peer(master).map_or(0, |peer| peer.known.load(Ordering::Relaxed));
        let Some(root) = self.root_of(master).filter(|_| epoch != 0 && !self.host.has_common_clock()) else { return };
        if let Some(beat) = stamp::see(root.part(root::BEAT, stamp::WORDS))
            // The time after the look: an earlier one would put the Master's clock ahead by what came in between.
            && let Some(offset) = watch.estimate.take(epoch, beat, self.host.now_ns())
        {
            self.offset.set(offset);
        }
    }

    /// Says of each peer whose predecessors' banks nothing of ours uses that it may take them.
    pub fn release(&self) {
        for (participant, peer) in (0u16..).zip(self.peers) {
            let known = peer.known.load(Ordering::Relaxed);
            if known != 0 && is_free_of_predecessors(peer, known) {
                handshake::release(&self.root, participant, known);
            }
        }
    }
}

/// Whether none of our ends uses the bank that is not the present incarnation's.
fn is_free_of_predecessors(peer: &Peer, known: u32) -> bool {
    peer.is_unused(known ^ 1)
}
