//! What the handles of one participant share: where it stands, and the records of its channels.
//!
//! What you may rely on: [`Shared::beat`] never waits. What it finds latched by a thread it leaves to the next beat. It
//! takes a number of steps that the plan bounds.
//!
//! How it works: a beat renews our heartbeat, looks at every peer (`watch.rs`), has every open end follow and raise what is
//! due, and releases banks when all of them could.

use super::Host;
use super::records::{ReceivingRecord, SegmentRecord, SendingRecord};
use super::surroundings::Surroundings;
use crate::guarantee::elapsed_ns;
use crate::layout::{header, root, state};
use crate::sync::{Ordering, Site};

/// What the handles of one participant share.
#[derive(Debug)]
pub(super) struct Shared<'m, B: Host> {
    pub here: Surroundings<'m, B>,
    pub sending: &'m [SendingRecord<'m, B>],
    pub receiving: &'m [ReceivingRecord<'m, B>],
    pub segments: &'m [SegmentRecord<'m>],
}

impl<B: Host> Shared<'_, B> {
    /// The periodic work.
    pub fn beat(&self) {
        let Some(mut watch) = self.here.watch.try_lock() else { return };
        let now_ns = self.here.host.now_ns();
        if elapsed_ns(watch.renewed_at_ns, now_ns) >= self.here.plan.liveness.heartbeat_ns {
            watch.renewed_at_ns = now_ns;
            self.here.renew(now_ns);
        }
        let before = watch.changes;
        self.here.look_at_peers(&mut watch, now_ns);
        self.here.follow_clock(&mut watch);
        let changes = watch.changes;
        drop(watch);
        let (all, changed) = self.follow_all();
        if all
            && let Some(watch) = self.here.watch.try_lock()
            && watch.changes == changes
        {
            self.here.release();
        }
        if changed || before != changes || !self.here.host.can_be_woken() {
            self.wake();
        }
    }

    /// Has every open end follow its peers and raise what is due; gives whether all could, and whether anything changed.
    fn follow_all(&self) -> (bool, bool) {
        let (mut all, mut changed) = (true, false);
        for record in self.sending {
            match record.state.try_lock() {
                Some(mut state) => changed |= state.beat(&self.here),
                None => all = false,
            }
        }
        for record in self.receiving {
            match record.state.try_lock() {
                Some(mut state) => {
                    changed |= state.follow(&self.here);
                    all &= !state.is_postponed();
                }
                None => all = false,
            }
        }
        (all, changed)
    }

    /// Makes our sleeping threads and futures look.
    pub fn wake(&self) {
        self.here.rung.fetch_add(1, Ordering::SeqCst);
        self.sending.iter().for_each(|record| record.waker.wake());
        self.receiving.iter().for_each(|record| record.waker.wake());
    }

    /// The last handle has gone: says so to the peers, and gives the storage back.
    pub fn end(&self) {
        self.sending.iter().for_each(|record| record.close(self.here.host));
        self.receiving.iter().for_each(|record| record.close(self.here.host));
        self.here.section.set(header::STATE, state::TERMINATED);
        self.here.root.publish(root::LEFT, self.here.epoch, Site::PublishRoot);
        self.here.ring_all();
        self.here.users.end();
    }
}
