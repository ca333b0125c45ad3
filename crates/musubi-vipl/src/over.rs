//! The calls of the interface over a running node, wherever that runs.
//!
//! What you may rely on: every wait has a deadline; a call that finds what it asks for takes and gives back one lock. Threads
//! may call at the same time, about the same VI too. Once the NIC was closed every call says [`ViError::Closed`], also one that waits.
//!
//! How it works: each call is a step of [`NicState`], made under the node's lock; one that waits tries its step again whenever
//! something has changed.
//!
//! What it does not do: own memory or descriptors: this is the interface of handles and addresses, on which the C
//! library stands. Programs in Rust have [`owned`](crate::owned).

use musubi_transport::LinkError;
use musubi_transport::running::{self, Ways as _};

use crate::address::Address;
use crate::engine::{Dequeue, MemoryHandle, Queue, ViAttributes};
use crate::error::ViError;
use crate::nic::{CallerNumber, ErrorNews, NicState, QueueNumber, ViNumber};

/// A handle of a running node whose protocol is that of a NIC.
pub trait NicNode: running::Running<Protocol = NicState<<Self as running::Running>::Block>> {}

impl<R> NicNode for R where R: running::Running<Protocol = NicState<<R as running::Running>::Block>> {}

pub(crate) type StateOf<R> = NicState<<R as running::Running>::Block>;

/// Tells a NIC the time, if that is a matter of anything.
#[inline]
pub(crate) fn tell_time<R: NicNode>(nic: &mut StateOf<R>, links: &mut R::Ways) {
    if nic.needs_time() {
        nic.note_time(links.now_ns());
    }
}

/// An opened NIC. Clones are handles of the same; it is closed when all are dropped, or by [`Nic::close`].
#[derive(Clone, Debug)]
pub struct Nic<R> {
    node: R,
}

impl<R: NicNode> Nic<R> {
    /// The NIC of a node that runs.
    pub fn of(node: R) -> Nic<R> {
        Nic { node }
    }

    /// The node that it runs as.
    pub fn node(&self) -> &R {
        &self.node
    }

    /// Closes it: connections end, waiting threads come back.
    ///
    /// # Errors
    /// [`ViError::Closed`] if it was closed.
    pub fn close(&self) -> Result<(), ViError> {
        Ok(self.node.finish()?)
    }

    /// Does something that does not wait with what the NIC has: tags, memory, queues, VIs.
    ///
    /// # Errors
    /// [`ViError::Closed`], and what `by` says.
    #[inline]
    pub fn with<T>(&self, by: impl FnOnce(&mut StateOf<R>) -> Result<T, ViError>) -> Result<T, ViError> {
        self.node.with(|nic, _| by(nic))?
    }

    // ---- descriptors and completions ----

    /// `VipPostSend`, `VipPostRecv`.
    ///
    /// # Errors
    /// As [`NicState::post`], and [`ViError::Closed`].
    #[inline]
    pub fn post(&self, vi: ViNumber, queue: Queue, descriptor: (u64, MemoryHandle)) -> Result<(), ViError> {
        self.node.with(|nic, links| {
            tell_time::<R>(nic, links);
            nic.post(vi, queue, descriptor, links)
        })?
    }

    /// `VipSendDone`, `VipRecvDone`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::Closed`].
    #[inline]
    pub fn dequeue(&self, vi: ViNumber, queue: Queue) -> Result<Dequeue, ViError> {
        match self.wait(vi, queue, R::POLL) {
            Err(ViError::Timeout) => Ok(Dequeue::Pending),
            other => other,
        }
    }

    /// `VipSendWait`, `VipRecvWait`; never [`Dequeue::Pending`].
    ///
    /// # Errors
    /// As [`Nic::dequeue`]; [`ViError::Timeout`].
    #[inline]
    pub fn wait(&self, vi: ViNumber, queue: Queue, deadline: R::Deadline) -> Result<Dequeue, ViError> {
        self.node.wait_for(deadline, |nic, links| {
            tell_time::<R>(nic, links);
            match nic.dequeue(vi, queue) {
                Ok(Dequeue::Pending) => None,
                other => Some(other),
            }
        })?
    }

    /// `VipCQWait`, and with a poll `VipCQDone`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such queue; [`ViError::Timeout`]; [`ViError::Closed`].
    #[inline]
    pub fn wait_completion(&self, queue: QueueNumber, deadline: R::Deadline) -> Result<(ViNumber, Queue), ViError> {
        self.node.wait_for(deadline, |nic, _| nic.take_completion(queue).transpose())?
    }

    /// Waits until `by` gives something, which is asked whenever something has changed.
    ///
    /// # Errors
    /// [`ViError::Timeout`]; [`ViError::Closed`].
    pub fn wait_until<T>(
        &self,
        deadline: R::Deadline,
        mut by: impl FnMut(&mut StateOf<R>) -> Option<T>,
    ) -> Result<T, ViError> {
        let asked = self.node.wait_for(deadline, |nic, links| {
            tell_time::<R>(nic, links);
            by(nic)
        });
        Ok(asked?)
    }

    /// Has those who wait look again: what they wait for has changed elsewhere.
    ///
    /// # Errors
    /// [`ViError::Closed`].
    pub fn rouse(&self) -> Result<(), ViError> {
        self.with(|nic| {
            nic.note_change();
            Ok(())
        })
    }

    /// Waits for an error that the handler is to hear.
    ///
    /// # Errors
    /// [`ViError::Timeout`]; [`ViError::Closed`].
    pub fn wait_news(&self, deadline: R::Deadline) -> Result<ErrorNews, ViError> {
        Ok(self.node.wait_for(deadline, |nic, _| nic.take_news())?)
    }

    // ---- connections ----

    /// `VipConnectWait`: who asks, from where, with which attributes.
    ///
    /// # Errors
    /// As [`NicState::listen`]; [`ViError::Timeout`]; [`ViError::Closed`].
    pub fn wait_caller(
        &self,
        local: &Address,
        deadline: R::Deadline,
    ) -> Result<(CallerNumber, Address, ViAttributes), ViError> {
        let listener = self.node.with(|nic, _| nic.listen(local))??;
        let caller = self.node.wait_for(deadline, |nic, _| nic.next_caller(listener));
        self.node.with(|nic, links| nic.end_listening(links.now_ns(), listener))?;
        Ok(caller?)
    }

    /// `VipConnectAccept`: returns when the caller has confirmed.
    ///
    /// # Errors
    /// As [`NicState::accept`]; [`ViError::Timeout`] if it did not confirm by the deadline: the VI is idle.
    pub fn accept(&self, caller: CallerNumber, vi: ViNumber, deadline: R::Deadline) -> Result<(), ViError> {
        self.accept_with(caller, vi, &[], deadline)
    }

    /// The same with some bytes for the caller: see [`NicState::accept_with`].
    ///
    /// # Errors
    /// As [`NicState::accept_with`] and [`Nic::accept`].
    pub fn accept_with(
        &self,
        caller: CallerNumber,
        vi: ViNumber,
        data: &[u8],
        deadline: R::Deadline,
    ) -> Result<(), ViError> {
        self.node.with(|nic, links| nic.accept_with(caller, vi, data, links))??;
        match self.node.wait_for(deadline, |nic, _| nic.accepted(caller)) {
            Ok(result) => result,
            Err(error) => {
                self.node.with(|nic, links| nic.give_up_accepted(caller, links))?;
                Err(error.into())
            }
        }
    }

    /// `VipConnectReject`.
    ///
    /// # Errors
    /// As [`NicState::reject`]; [`ViError::Closed`].
    pub fn reject(&self, caller: CallerNumber) -> Result<(), ViError> {
        self.reject_with(caller, &[])
    }

    /// The same with some bytes for the caller: see [`NicState::reject_with`].
    ///
    /// # Errors
    /// As [`NicState::reject_with`]; [`ViError::Closed`].
    pub fn reject_with(&self, caller: CallerNumber, data: &[u8]) -> Result<(), ViError> {
        self.node.with(|nic, links| nic.reject_with(caller, data, links))?
    }

    /// `VipConnectRequest`: the other VI's attributes.
    ///
    /// # Errors
    /// As [`NicState::request`]; [`ViError::NoMatch`], [`ViError::Rejected`], [`ViError::Resource`], [`ViError::Timeout`];
    /// [`ViError::State`] if it was disconnected meanwhile; the VI is idle.
    pub fn request(
        &self,
        vi: ViNumber,
        local: Address,
        remote: Address,
        deadline: R::Deadline,
    ) -> Result<ViAttributes, ViError> {
        self.node.with(|nic, links| nic.request(vi, local, remote, links))??;
        match self.node.wait_for(deadline, |nic, _| nic.take_outcome(vi)) {
            Ok(outcome) => outcome,
            Err(_) => self.node.with(|nic, links| nic.give_up(vi, links))?,
        }
    }

    /// `VipConnectPeerRequest`: tried for so long.
    ///
    /// # Errors
    /// As [`NicState::request_peer`]; [`ViError::Closed`].
    pub fn request_peer(&self, vi: ViNumber, local: Address, remote: Address, time_ns: u64) -> Result<(), ViError> {
        self.node.with(|nic, links| {
            let until_ns = links.now_ns().saturating_add(time_ns);
            nic.request_peer(vi, local, remote, until_ns, links)
        })?
    }

    /// `VipConnectPeerDone`: the other VI's attributes, once it is connected.
    ///
    /// # Errors
    /// As [`Nic::wait_peer`]; [`ViError::Timeout`] is the request's.
    pub fn poll_peer(&self, vi: ViNumber) -> Result<Option<ViAttributes>, ViError> {
        match self.node.wait_for(R::POLL, |nic, _| nic.take_outcome(vi)) {
            Err(LinkError::Timeout) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(outcome) => outcome.map(Some),
        }
    }

    /// `VipConnectPeerWait`: the other VI's attributes.
    ///
    /// # Errors
    /// [`ViError::Timeout`], of the request or of this wait; [`ViError::State`] if the VI asked no peer; what does not fit.
    pub fn wait_peer(&self, vi: ViNumber, deadline: R::Deadline) -> Result<ViAttributes, ViError> {
        self.node.wait_for(deadline, |nic, _| nic.take_outcome(vi))?
    }

    /// `VipDisconnect`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::Closed`].
    pub fn disconnect(&self, vi: ViNumber) -> Result<(), ViError> {
        self.node.with(|nic, links| nic.disconnect(vi, links))?
    }
}
