//! VIs: made idle, connected, and idle again.
//!
//! What you may rely on: what can only be done on a connected VI is only there on a [`Vi<Connected>`](Vi). A connection may still end at
//! any moment, by the peer or by its death: then what is posted completes with [`ViFailure::Ended`], in order, and [`Vi::ended`] comes.
//! Dropping a VI ends its connection and frees what was posted to it; [`Vi::disconnect`] gives it back instead.
//!
//! How it works: a VI is its two queues and the number that they have in common; the last of these that goes ends it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use musubi_transport::Priority;

use super::completion_queue::{CompletionQueue, QueueCore};
use super::connecting::{self, Connecting};
use super::failure::ViFailure;
use super::nic::NicCore;
use super::queues::{Completion, ReceiveQueue, SendQueue};
use super::waiting::{Awaitable, Waiting};
use crate::address::Address;
use crate::engine::{Queue, Reliability, ViAttributes, ViState};
use crate::nic::{Awaited, LentBack, ViNumber, Weight};
use crate::over::{NicNode, StateOf};

/// How a VI is to be. Both sides of a connection have the same level, largest message, class and credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViOptions {
    /// What a completed send promises, and what an error does.
    pub reliability: Reliability,
    /// Most bytes of one message.
    pub message_bytes_max: u32,
    /// Class of its traffic, 0 the most urgent.
    pub class: Priority,
    /// Its share beside other VIs of its class when not all can go; this side's own business.
    pub weight: Weight,
    /// Whether the peer may write shared regions that permit it.
    pub remote_write: bool,
    /// Whether the peer may read shared regions that permit it.
    pub remote_read: bool,
    /// Whether messages wait until the peer has posted a receive for them, both ways, instead of ending the connection.
    pub credit: bool,
}

impl Default for ViOptions {
    /// Reliable delivery, 64 KiB, the least urgent class, no peer in this side's memory.
    fn default() -> ViOptions {
        ViOptions {
            reliability: Reliability::Delivery,
            message_bytes_max: 64 * 1024,
            class: Priority::LEAST_URGENT,
            weight: Weight::DEFAULT,
            remote_write: false,
            remote_read: false,
            credit: false,
        }
    }
}

/// The state of a VI that is not connected: receives can be posted.
#[derive(Debug)]
pub enum Idle {}

/// The state of a VI that was connected.
#[derive(Debug)]
pub enum Connected {}

/// What the queues of a VI have in common.
pub struct ViCore<R: NicNode> {
    pub(super) nic: Arc<NicCore<R>>,
    pub(super) number: ViNumber,
    pub(super) transfer_bytes_max: u32,
    /// Completion queues that it tells: they stay as long as it does.
    sends_to: Option<Arc<QueueCore<R>>>,
    receives_to: Option<Arc<QueueCore<R>>>,
}

impl<R: NicNode> ViCore<R> {
    /// Whether a queue tells a completion queue.
    #[inline]
    pub(super) fn tells(&self, queue: Queue) -> bool {
        match queue {
            Queue::Send => self.sends_to.is_some(),
            Queue::Receive => self.receives_to.is_some(),
        }
    }

    fn disconnect(&self) -> Vec<Completion<R>> {
        let mut back = Vec::new();
        let _ = self.nic.with(|state, links| {
            // There is such a VI.
            let _ = state.disconnect(self.number, links);
            for queue in [Queue::Send, Queue::Receive].into_iter().filter(|queue| !self.tells(*queue)) {
                while let Ok(LentBack::Complete { lent, operation, completion }) = state.take_lent(self.number, queue) {
                    back.push(Completion::of(&self.nic, self.number, lent, operation, completion));
                }
            }
        });
        back
    }
}

impl<R: NicNode> Drop for ViCore<R> {
    fn drop(&mut self) {
        // With the NIC its VIs have gone.
        let _ = self.nic.aside(|state, links| state.end_lent(self.number, links));
    }
}

impl<R: NicNode> fmt::Debug for ViCore<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViCore").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A VI, in state [`Idle`] or [`Connected`].
pub struct Vi<S, R: NicNode> {
    sends: SendQueue<R>,
    receives: ReceiveQueue<R>,
    state: PhantomData<S>,
}

impl<R: NicNode> Vi<Idle, R> {
    pub(super) fn create(
        nic: &Arc<NicCore<R>>,
        options: ViOptions,
        sends: Option<&CompletionQueue<R>>,
        receives: Option<&CompletionQueue<R>>,
    ) -> Result<Vi<Idle, R>, ViFailure> {
        if [sends, receives].into_iter().flatten().any(|queue| !queue.is_of(nic)) {
            return Err(ViFailure::Invalid);
        }
        let attributes = ViAttributes {
            reliability: options.reliability,
            transfer_bytes_max: options.message_bytes_max,
            class: options.class.class(),
            tag: nic.tag,
            remote_write: options.remote_write,
            remote_read: options.remote_read,
            credit: options.credit,
        };
        let [sends_to, receives_to] = [sends, receives].map(|queue| queue.map(CompletionQueue::core));
        let numbers = [&sends_to, &receives_to].map(|queue| queue.as_ref().map(|queue| queue.number));
        let number = nic.with(|state, _| {
            let number = state.create_vi(attributes, numbers[0], numbers[1])?;
            state.set_weight(number, options.weight).map(|()| number)
        })??;
        let transfer_bytes_max = attributes.transfer_bytes_max;
        let core = ViCore { nic: Arc::clone(nic), number, transfer_bytes_max, sends_to, receives_to };
        Ok(Vi::of(Arc::new(core)))
    }

    /// Asks who listens there for a connection. Before it comes, the attempt ends with what it is dropped with.
    pub fn connect(self, to: &Address) -> Connecting<R> {
        self.connect_as(b"", to)
    }

    /// The same by a name of this side's own, which the listener is told.
    pub fn connect_as(self, name: &[u8], to: &Address) -> Connecting<R> {
        connecting::begin(self, connecting::Manner::Client, name, to)
    }

    /// Asks another that asks the same: it names this side's `name` at this NIC, and this side names its. Any side may
    /// begin, or both at once.
    pub fn connect_peer(self, name: &[u8], to: &Address) -> Connecting<R> {
        connecting::begin(self, connecting::Manner::PeerNode, name, to)
    }

    /// It is connected now.
    pub(super) fn connected(self) -> Vi<Connected, R> {
        Vi { sends: self.sends, receives: self.receives, state: PhantomData }
    }
}

impl<S, R: NicNode> Vi<S, R> {
    fn of(core: Arc<ViCore<R>>) -> Vi<S, R> {
        let (sends, receives) = (SendQueue { vi: Arc::clone(&core) }, ReceiveQueue { vi: core });
        Vi { sends, receives, state: PhantomData }
    }

    /// What tells it from other VIs of its NIC, in completions.
    pub fn number(&self) -> ViNumber {
        self.sends.vi.number
    }

    /// Its queue of receives, to which may be posted before it is connected too.
    pub fn receives(&mut self) -> &mut ReceiveQueue<R> {
        &mut self.receives
    }

    pub(super) fn core(&self) -> &Arc<ViCore<R>> {
        &self.sends.vi
    }
}

impl<R: NicNode> Vi<Connected, R> {
    /// Its queue of sends.
    pub fn sends(&mut self) -> &mut SendQueue<R> {
        &mut self.sends
    }

    /// Both queues, to be awaited at the same time.
    pub fn queues(&mut self) -> (&mut SendQueue<R>, &mut ReceiveQueue<R>) {
        (&mut self.sends, &mut self.receives)
    }

    /// Both queues, each to go its own way. The connection ends when both are dropped.
    pub fn into_queues(self) -> (SendQueue<R>, ReceiveQueue<R>) {
        (self.sends, self.receives)
    }

    /// Comes when the connection has ended, by the peer, its death or a mistake.
    pub fn ended(&self) -> Waiting<&Arc<NicCore<R>>, EndOfConnection> {
        Waiting::new(&self.core().nic, EndOfConnection { vi: self.number() })
    }

    /// Whether the connection has not ended, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.ended().wait(R::POLL) == Err(ViFailure::Timeout)
    }

    /// Ends the connection, if it has not ended. Gives the VI, which can be connected anew, and what was posted and not taken:
    /// sends, then receives, each in order. What tells a completion queue comes there.
    pub fn disconnect(self) -> (Vi<Idle, R>, Vec<Completion<R>>) {
        let back = self.core().disconnect();
        (Vi { sends: self.sends, receives: self.receives, state: PhantomData }, back)
    }
}

/// Sees that a connection has ended.
#[derive(Debug)]
pub struct EndOfConnection {
    vi: ViNumber,
}

impl<R: NicNode> Awaitable<R> for EndOfConnection {
    type Output = Result<(), ViFailure>;

    fn awaited(&self) -> Awaited {
        Awaited::End(self.vi)
    }

    fn look(&mut self, state: &mut StateOf<R>, _: &Arc<NicCore<R>>) -> Option<Self::Output> {
        let is_connected = state.query_vi(self.vi).is_ok_and(|picture| picture.state == ViState::Connected);
        (!is_connected).then_some(Ok(()))
    }

    fn fail(&mut self, _: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        Err(failure)
    }
}

impl<S, R: NicNode> fmt::Debug for Vi<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vi").field("number", &self.number()).finish_non_exhaustive()
    }
}
