//! One queue for the completions of many VIs.
//!
//! What you may rely on: each completion of a VI that tells it comes once, in the order in which they happened; it has room for all that
//! is posted, as what would find none is refused when it is posted.
//!
//! How it works: [`crate::engine::CompletionQueue`] says which VI's turn it is; the completion is taken from there in the same step.

use alloc::sync::Arc;
use core::fmt;

use super::failure::ViFailure;
use super::nic::NicCore;
use super::queues::{Completion, pending};
use super::waiting::{Awaitable, Waiting};
use crate::nic::{Awaited, LentBack, QueueNumber};
use crate::over::{NicNode, StateOf};

/// What a completion queue and the VIs that tell it share.
pub struct QueueCore<R: NicNode> {
    nic: Arc<NicCore<R>>,
    pub(super) number: QueueNumber,
}

impl<R: NicNode> Drop for QueueCore<R> {
    fn drop(&mut self) {
        // The VIs that were bound to it had a part in it.
        let _ = self.nic.aside(|state, _| state.destroy_queue(self.number));
    }
}

impl<R: NicNode> fmt::Debug for QueueCore<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueCore").field(&self.number).finish()
    }
}

/// A queue in which completions of many VIs come together.
pub struct CompletionQueue<R: NicNode> {
    core: Arc<QueueCore<R>>,
}

impl<R: NicNode> CompletionQueue<R> {
    pub(super) fn create(nic: &Arc<NicCore<R>>) -> Result<CompletionQueue<R>, ViFailure> {
        let number = nic.with(|state, _| {
            let entries = state.limits().completion_entries;
            state.create_queue(entries)
        })??;
        Ok(CompletionQueue { core: Arc::new(QueueCore { nic: Arc::clone(nic), number }) })
    }

    pub(super) fn is_of(&self, nic: &Arc<NicCore<R>>) -> bool {
        Arc::ptr_eq(&self.core.nic, nic)
    }

    pub(super) fn core(&self) -> Arc<QueueCore<R>> {
        Arc::clone(&self.core)
    }

    /// The next completion of any VI that tells it. It comes never if nothing is posted to any.
    #[inline]
    pub fn completed(&mut self) -> Waiting<&Arc<NicCore<R>>, OldestTold> {
        Waiting::new(&self.core.nic, OldestTold { queue: self.core.number })
    }

    /// The same if it is there now; `None` if not yet.
    ///
    /// # Errors
    /// [`ViFailure::Closed`].
    #[inline]
    pub fn done(&mut self) -> Result<Option<Completion<R>>, ViFailure> {
        pending(self.completed().wait(R::POLL))
    }
}

/// Takes the next completion that a completion queue tells of.
#[derive(Debug)]
pub struct OldestTold {
    queue: QueueNumber,
}

impl<R: NicNode> Awaitable<R> for OldestTold {
    type Output = Result<Completion<R>, ViFailure>;

    fn awaited(&self) -> Awaited {
        Awaited::Completion(self.queue)
    }

    #[inline]
    fn look(&mut self, state: &mut StateOf<R>, nic: &Arc<NicCore<R>>) -> Option<Self::Output> {
        match state.take_lent_of(self.queue) {
            Ok(Some((vi, LentBack::Complete { lent, operation, completion }))) => {
                Some(Ok(Completion::of(nic, vi, lent, operation, completion)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    fn fail(&mut self, _: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        Err(failure)
    }
}

impl<R: NicNode> fmt::Debug for CompletionQueue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompletionQueue").field(&self.core.number).finish()
    }
}
