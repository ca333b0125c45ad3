//! What takes time: a future, or a call that waits until a deadline.
//!
//! What you may rely on: the futures need no runtime, timer or thread of their own; whoever polls them is woken when it is
//! time. One that is dropped leaves what is posted as it was: the memory stays the VI's and comes with the completion, to whoever
//! asks next. [`Waiting::wait`] does the same in the calling thread and without an allocation.
//!
//! How it works: each is a step that is tried under the node's lock; while it finds nothing the node keeps the waker of
//! who awaits it. A time limit is an alarm that the node's links sleep no longer than.

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use musubi_transport::running::{Running, Ways as _};

use super::failure::ViFailure;
use super::nic::NicCore;
use crate::nic::{AlarmNumber, Awaited};
use crate::over::{NicNode, StateOf};

/// Who has a NIC, of his own or lent.
pub trait Holds: Unpin {
    /// What the NIC runs as.
    type Node: NicNode;

    /// The NIC.
    #[doc(hidden)]
    fn nic(&self) -> &Arc<NicCore<Self::Node>>;
}

impl<R: NicNode> Holds for Arc<NicCore<R>> {
    type Node = R;

    #[inline]
    fn nic(&self) -> &Arc<NicCore<R>> {
        self
    }
}

impl<R: NicNode> Holds for &Arc<NicCore<R>> {
    type Node = R;

    #[inline]
    fn nic(&self) -> &Arc<NicCore<R>> {
        self
    }
}

/// What is tried until it gives something.
pub trait Awaitable<R: NicNode>: Unpin {
    /// What it gives.
    type Output;

    /// What has changed when it is worth another try.
    #[doc(hidden)]
    fn awaited(&self) -> Awaited;

    /// Tries, under the node's lock.
    #[doc(hidden)]
    fn look(&mut self, state: &mut StateOf<R>, nic: &Arc<NicCore<R>>) -> Option<Self::Output>;

    /// Gives up, without the lock: what comes of it.
    #[doc(hidden)]
    fn fail(&mut self, nic: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output;
}

/// Something that will come: to be awaited, or waited for in this thread.
#[must_use = "nothing waits until it is awaited, or `wait` is called"]
pub struct Waiting<N, S> {
    nic: N,
    step: S,
}

impl<N: Holds, S: Awaitable<N::Node>> Waiting<N, S> {
    #[inline]
    pub(super) fn new(nic: N, step: S) -> Waiting<N, S> {
        Waiting { nic, step }
    }

    /// Waits in this thread; at the deadline it ends with [`ViFailure::Timeout`]. With the deadline "poll" it looks at what has
    /// come and does not wait.
    #[inline]
    pub fn wait(mut self, deadline: <N::Node as Running>::Deadline) -> S::Output {
        let nic = self.nic.nic();
        match nic.node.wait_for(deadline, |state, _| self.step.look(state, nic)) {
            Ok(output) => output,
            Err(error) => self.step.fail(nic, error.into()),
        }
    }

    /// The same with a time limit, from its first poll on: then it ends with [`ViFailure::Timeout`].
    pub fn within(self, limit: Duration) -> Within<N, S> {
        Within { waiting: self, limit, alarm: None }
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<S::Output> {
        let nic = self.nic.nic();
        for _ in 0..LOOKS_MAX {
            match nic.node.with_aside(|state, _| self.step.look(state, nic)) {
                Ok(None) => {}
                Ok(Some(output)) => return Poll::Ready(output),
                Err(error) => return Poll::Ready(self.step.fail(nic, error.into())),
            }
            match nic.node.wake_when_complete(self.step.awaited(), context.waker()) {
                Ok(false) => return Poll::Pending,
                // It has come meanwhile.
                Ok(true) => {}
                Err(error) => return Poll::Ready(self.step.fail(nic, error.into())),
            }
        }
        // Others take what comes as it comes: they go first.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Looks of one poll.
const LOOKS_MAX: u32 = 3;

impl<N: Holds, S: Awaitable<N::Node>> Future for Waiting<N, S> {
    type Output = S::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<S::Output> {
        self.get_mut().poll_step(context)
    }
}

/// A [`Waiting`] with a time limit.
#[must_use = "nothing waits until it is awaited"]
pub struct Within<N: Holds, S> {
    waiting: Waiting<N, S>,
    limit: Duration,
    /// Set by the first poll.
    alarm: Option<AlarmNumber>,
}

impl<N: Holds, S: Awaitable<N::Node>> Within<N, S> {
    /// The alarm of the limit.
    fn alarm(&mut self) -> Result<AlarmNumber, ViFailure> {
        if let Some(alarm) = self.alarm {
            return Ok(alarm);
        }
        let limit_ns = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let nic = self.waiting.nic.nic();
        let set = nic.aside(|state, links| {
            let at_ns = links.now_ns().saturating_add(limit_ns);
            state.set_alarm(at_ns)
        });
        let (alarm, is_first) = set??;
        self.alarm = Some(alarm);
        if is_first {
            // A call that is no future's takes the links from who sleeps on them, and a change wakes it.
            nic.with(|state, _| state.note_change())?;
        }
        Ok(alarm)
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<S::Output> {
        let failure = match self.alarm() {
            Err(failure) => failure,
            Ok(alarm) => {
                if let Poll::Ready(output) = self.waiting.poll_step(context) {
                    return Poll::Ready(output);
                }
                let nic = self.waiting.nic.nic();
                match nic.node.wake_when_complete(Awaited::Alarm(alarm), context.waker()) {
                    Ok(false) => return Poll::Pending,
                    Ok(true) => ViFailure::Timeout,
                    Err(error) => error.into(),
                }
            }
        };
        Poll::Ready(self.waiting.step.fail(self.waiting.nic.nic(), failure))
    }
}

impl<N: Holds, S: Awaitable<N::Node>> Future for Within<N, S> {
    type Output = S::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<S::Output> {
        self.get_mut().poll_step(context)
    }
}

impl<N: Holds, S> Drop for Within<N, S> {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            // With the NIC its alarms have gone.
            let _ = self.waiting.nic.nic().aside(|state, _| state.clear_alarm(alarm));
        }
    }
}

impl<N, S> fmt::Debug for Waiting<N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl<N: Holds, S> fmt::Debug for Within<N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").field("limit", &self.limit).finish_non_exhaustive()
    }
}
