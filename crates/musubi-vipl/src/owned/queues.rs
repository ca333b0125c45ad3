//! The two queues of a VI: posting hands memory over, completions hand it back.
//!
//! What you may rely on: completions of a queue come in the order in which it was posted to, each once, with the memory that was
//! posted; also those of what the end of the connection has cut off, which say [`ViFailure::Ended`]. A posting that is refused gives
//! the memory back at once. Neither posting nor taking a completion allocates, once the queues are as long as they get.
//!
//! How it works: [`crate::nic::Lent`] goes into the NIC and comes back; the queues here are only the right to do so, one each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

use super::failure::ViFailure;
use super::nic::NicCore;
use super::region::{OwnRegion, RemoteRegion};
use super::vi::ViCore;
use super::waiting::{Awaitable, Waiting};
use crate::engine::{Completion as Ending, Operation, Queue, RemotePlace, Status};
use crate::memory::Lent;
use crate::nic::{Awaited, LentBack, LentWork, ViNumber};
use crate::over::{NicNode, StateOf};

/// What is to be done with a region: made by [`Work::send`], [`Work::write`] or [`Work::read`], posted by [`SendQueue::post`].
pub struct Work<R: NicNode> {
    region: OwnRegion<R>,
    range: Range<usize>,
    operation: Operation,
    remote: Option<RemoteRegion>,
    immediate: Option<u32>,
    fence: bool,
}

impl<R: NicNode> Work<R> {
    /// Sends the region's bytes.
    #[inline]
    pub fn send(region: OwnRegion<R>) -> Work<R> {
        Work::of(region, Operation::SendReceive, None)
    }

    /// Writes the region's bytes to the beginning of a peer's.
    #[inline]
    pub fn write(region: OwnRegion<R>, to: RemoteRegion) -> Work<R> {
        Work::of(region, Operation::Write, Some(to))
    }

    /// Fills the region from the beginning of a peer's.
    #[inline]
    pub fn read(region: OwnRegion<R>, from: RemoteRegion) -> Work<R> {
        Work::of(region, Operation::Read, Some(from))
    }

    #[inline]
    fn of(region: OwnRegion<R>, operation: Operation, remote: Option<RemoteRegion>) -> Work<R> {
        let range = 0..region.len();
        Work { region, range, operation, remote, immediate: None, fence: false }
    }

    /// With these bytes of the region only.
    #[inline]
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Work<R> {
        Work { range, ..self }
    }

    /// With a word that the other side's receive tells; a write with one takes a receive there. Not of a read.
    #[inline]
    #[must_use]
    pub fn immediate(self, word: u32) -> Work<R> {
        Work { immediate: Some(word), ..self }
    }

    /// Not before all reads that were posted earlier have ended.
    #[inline]
    #[must_use]
    pub fn fenced(self) -> Work<R> {
        Work { fence: true, ..self }
    }

    /// As the NIC is told, if it can be.
    #[inline]
    fn checked(&self, transfer_bytes_max: u32) -> Result<LentWork, ViFailure> {
        let (offset, bytes) = within(&self.region, &self.range)?;
        if bytes > transfer_bytes_max {
            return Err(ViFailure::Length);
        }
        let fits = self.remote.is_none_or(|remote| remote.len() >= u64::from(bytes));
        if !fits || (self.operation == Operation::Read && self.immediate.is_some()) {
            return Err(ViFailure::Invalid);
        }
        let remote = self.remote.map_or(RemotePlace::default(), |remote| remote.place());
        let (operation, immediate, fence) = (self.operation, self.immediate, self.fence);
        Ok(LentWork { operation, immediate, fence, remote, offset, bytes })
    }
}

/// Where a range lies in a region, if it does.
#[inline]
fn within<R: NicNode>(region: &OwnRegion<R>, range: &Range<usize>) -> Result<(u32, u32), ViFailure> {
    let bytes = range.end.checked_sub(range.start).filter(|_| range.end <= region.len());
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    u32::try_from(range.start).ok().zip(bytes).ok_or(ViFailure::Invalid)
}

/// Why something was not posted, and the region, which is in hand again.
pub struct NotPosted<R: NicNode> {
    /// Why.
    pub failure: ViFailure,
    /// What was to be posted.
    pub region: OwnRegion<R>,
}

/// How a posted region came back.
pub struct Completion<R: NicNode> {
    /// Whose it was.
    pub vi: ViNumber,
    /// The region, in hand again.
    pub region: OwnRegion<R>,
    /// What was done.
    pub kind: CompletionKind,
    /// Bytes of the message, or that were moved; of a failed receive those that were placed.
    pub bytes: usize,
    /// The word that came with a message, or with a peer's write.
    pub immediate: Option<u32>,
    /// Whether it was done.
    pub outcome: Result<(), ViFailure>,
}

/// What a completion is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompletionKind {
    /// A send.
    Sent,
    /// A write of the peer's memory.
    Written,
    /// A read of the peer's memory.
    Read,
    /// A receive, by a message.
    Received,
    /// A receive, by a peer's write with a word; the bytes lie where the peer wrote them, not here.
    WrittenByPeer,
}

impl<R: NicNode> Completion<R> {
    /// Itself, if it was done.
    ///
    /// # Errors
    /// Why not; the region is given up. To keep it, look at [`Completion::outcome`].
    #[inline]
    pub fn done(self) -> Result<Completion<R>, ViFailure> {
        self.outcome.map(|()| self)
    }

    #[inline]
    pub(super) fn of(
        nic: &Arc<NicCore<R>>,
        vi: ViNumber,
        lent: Box<Lent>,
        operation: Operation,
        ending: Ending,
    ) -> Self {
        let status = ending.status.0 & Status::OPERATIONS.0;
        let kind = match operation {
            _ if status == Status::OP_RECEIVE.0 => CompletionKind::Received,
            _ if status == Status::OP_REMOTE_WRITE.0 => CompletionKind::WrittenByPeer,
            Operation::SendReceive => CompletionKind::Sent,
            Operation::Write => CompletionKind::Written,
            Operation::Read => CompletionKind::Read,
        };
        Completion {
            vi,
            region: OwnRegion::of_lent(nic, lent),
            kind,
            bytes: ending.bytes as usize,
            immediate: ending.has_immediate().then_some(ending.immediate),
            outcome: ViFailure::of_status(ending.status),
        }
    }
}

/// A completion of a queue that will come.
pub type NextCompletion<'q, R> = Waiting<&'q Arc<NicCore<R>>, OldestPosted>;

/// Takes the oldest that was posted to a queue, once it is complete.
#[derive(Debug)]
pub struct OldestPosted {
    vi: ViNumber,
    queue: Queue,
    /// It tells a completion queue instead.
    is_told_elsewhere: bool,
}

impl<R: NicNode> Awaitable<R> for OldestPosted {
    type Output = Result<Completion<R>, ViFailure>;

    fn awaited(&self) -> Awaited {
        Awaited::Descriptor(self.vi, self.queue)
    }

    #[inline]
    fn look(&mut self, state: &mut StateOf<R>, nic: &Arc<NicCore<R>>) -> Option<Self::Output> {
        if self.is_told_elsewhere {
            return Some(Err(ViFailure::Invalid));
        }
        match state.take_lent(self.vi, self.queue) {
            Ok(LentBack::Pending) => None,
            Ok(LentBack::Empty) => Some(Err(ViFailure::NothingPosted)),
            Ok(LentBack::Complete { lent, operation, completion }) => {
                Some(Ok(Completion::of(nic, self.vi, lent, operation, completion)))
            }
            Err(error) => Some(Err(error.into())),
        }
    }

    fn fail(&mut self, _: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        Err(failure)
    }
}

/// The right to post sends and RDMA to a connected VI, and to take their completions.
pub struct SendQueue<R: NicNode> {
    pub(super) vi: Arc<ViCore<R>>,
}

/// The right to post receives to a VI, and to take their completions.
pub struct ReceiveQueue<R: NicNode> {
    pub(super) vi: Arc<ViCore<R>>,
}

impl<R: NicNode> SendQueue<R> {
    /// Hands a region over to be sent, written or filled.
    ///
    /// # Errors
    /// With the region: [`ViFailure::Invalid`] for a place outside it or the peer's, one of another `Nic`, or a read with a word;
    /// [`ViFailure::Length`] if the VI does not carry so much; [`ViFailure::Limit`] if as much is posted as may be; [`ViFailure::Closed`].
    /// If the connection has ended it is posted, and completes so.
    #[inline]
    pub fn post(&mut self, work: Work<R>) -> Result<(), NotPosted<R>> {
        let checked = match work.checked(self.vi.transfer_bytes_max) {
            Ok(_) if !work.region.is_of(&self.vi.nic) => Err(ViFailure::Invalid),
            other => other,
        };
        self.vi.post(Queue::Send, work.region, checked)
    }

    /// The completion of the oldest that was posted. [`ViFailure::NothingPosted`] if nothing is; [`ViFailure::Invalid`] if it tells a
    /// completion queue.
    #[inline]
    pub fn completed(&mut self) -> NextCompletion<'_, R> {
        self.vi.completed(Queue::Send)
    }

    /// The same if it is there now; `None` if not yet.
    ///
    /// # Errors
    /// As of [`SendQueue::completed`].
    #[inline]
    pub fn done(&mut self) -> Result<Option<Completion<R>>, ViFailure> {
        pending(self.completed().wait(R::POLL))
    }
}

impl<R: NicNode> ReceiveQueue<R> {
    /// Hands a region over to be filled by a message.
    ///
    /// # Errors
    /// With the region: [`ViFailure::Invalid`] for one of another `Nic`; [`ViFailure::Limit`] if as many are posted as may be;
    /// [`ViFailure::Closed`].
    #[inline]
    pub fn post(&mut self, region: OwnRegion<R>) -> Result<(), NotPosted<R>> {
        let is_ours = region.is_of(&self.vi.nic);
        let place =
            within(&region, &(0..region.len())).and_then(|place| is_ours.then_some(place).ok_or(ViFailure::Invalid));
        let work = place.map(|(offset, bytes)| LentWork {
            operation: Operation::SendReceive,
            immediate: None,
            fence: false,
            remote: RemotePlace::default(),
            offset,
            bytes,
        });
        self.vi.post(Queue::Receive, region, work)
    }

    /// As [`SendQueue::completed`].
    #[inline]
    pub fn completed(&mut self) -> NextCompletion<'_, R> {
        self.vi.completed(Queue::Receive)
    }

    /// As [`SendQueue::done`].
    ///
    /// # Errors
    /// As of [`SendQueue::completed`].
    #[inline]
    pub fn done(&mut self) -> Result<Option<Completion<R>>, ViFailure> {
        pending(self.completed().wait(R::POLL))
    }
}

impl<R: NicNode> ViCore<R> {
    #[inline]
    fn post(&self, queue: Queue, region: OwnRegion<R>, work: Result<LentWork, ViFailure>) -> Result<(), NotPosted<R>> {
        let work = match work {
            Ok(work) => work,
            Err(failure) => return Err(NotPosted { failure, region }),
        };
        let mut lent = region.lend();
        let posted = self.nic.with(|state, links| match lent.take() {
            Some(lent) => state.post_lent(self.number, queue, (lent, &work), links),
            None => Ok(()),
        });
        let (failure, back) = match posted {
            Ok(Ok(())) => return Ok(()),
            Ok(Err((error, back))) => (error.into(), Some(back)),
            Err(failure) => (failure, lent),
        };
        Err(NotPosted { failure, region: OwnRegion::again(&self.nic, back) })
    }

    #[inline]
    fn completed(&self, queue: Queue) -> NextCompletion<'_, R> {
        let is_told_elsewhere = self.tells(queue);
        Waiting::new(&self.nic, OldestPosted { vi: self.number, queue, is_told_elsewhere })
    }
}

/// What a look without waiting has found.
#[inline]
pub(super) fn pending<T>(found: Result<T, ViFailure>) -> Result<Option<T>, ViFailure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ViFailure::Timeout) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl<R: NicNode> From<NotPosted<R>> for ViFailure {
    fn from(refused: NotPosted<R>) -> ViFailure {
        refused.failure
    }
}

impl<R: NicNode> fmt::Display for NotPosted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not posted: {}", self.failure)
    }
}

impl<R: NicNode> core::error::Error for NotPosted<R> {}

impl<R: NicNode> fmt::Debug for NotPosted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotPosted").field("failure", &self.failure).field("region", &self.region).finish()
    }
}

impl<R: NicNode> fmt::Debug for Work<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("operation", &self.operation).field("range", &self.range).finish_non_exhaustive()
    }
}

impl<R: NicNode> fmt::Debug for Completion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Completion");
        shown.field("vi", &self.vi).field("kind", &self.kind).field("bytes", &self.bytes);
        shown.field("immediate", &self.immediate).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl<R: NicNode> fmt::Debug for SendQueue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendQueue").field(&self.vi.number).finish()
    }
}

impl<R: NicNode> fmt::Debug for ReceiveQueue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReceiveQueue").field(&self.vi.number).finish()
    }
}
