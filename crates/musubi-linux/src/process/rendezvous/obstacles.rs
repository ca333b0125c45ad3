//! What stands between us and a participant that is there: why it did not let us in, or we not it.
//!
//! What you may rely on: one entry a participant, the latest; it goes when the two link. No entry keeps us from starting,
//! except the Master's own word: a Remote that the Master refuses has nothing to start for.

use std::collections::BTreeMap;

use rustix::io::Errno;

use crate::process::rendezvous::message::Refusal;

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It refused us, or what it answered was not to be accepted; with the hash of its plan.
    Refused(Refusal, u64),
    /// We refused it, a process of this user; with the hash of its plan.
    NotLetIn(Refusal, u64, u32),
    /// This user, which may not, holds its name.
    Foreign(u32),
    /// The kernel keeps us from talking to it.
    System(&'static str, Errno),
}

/// The obstacles of all participants.
#[derive(Debug, Default)]
pub(crate) struct Obstacles {
    pub(super) of: BTreeMap<u16, Obstacle>,
    /// The Master's, found before our start was over.
    pub(super) of_master: Option<u16>,
}

impl Obstacles {
    /// The participant is linked now.
    pub(crate) fn forget(&mut self, participant: u16) {
        self.of.remove(&participant);
        // A Master that came to us itself has taken its refusal back.
        if self.of_master == Some(participant) {
            self.of_master = None;
        }
    }

    /// Whether our start is over, because the Master does not let us in.
    pub(crate) fn forbid_start(&self) -> bool {
        self.of_master.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_that_links_after_all_forbids_nothing() {
        let mut obstacles = Obstacles { of_master: Some(3), ..Obstacles::default() };
        obstacles.of.insert(3, Obstacle::Refused(Refusal::Plan, 7));
        obstacles.forget(1);
        assert!(obstacles.forbid_start(), "another participant's link says nothing of the Master");
        obstacles.forget(3);
        assert!(!obstacles.forbid_start() && obstacles.of.is_empty());
    }
}
