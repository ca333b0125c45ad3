//! How VIs come together: who asks, who listens, and who is told why not.
//!
//! What you may rely on: an attempt that fails gives the VI back, idle, with its receives posted. One that is dropped, at either
//! side, is given up, and the other side is told. A caller that is neither accepted nor rejected is rejected when it is dropped.
//!
//! How it works: the steps of the connection manager ([`crate::nic`]); a time limit or a deadline ends them as there.

use alloc::sync::Arc;
use core::fmt;

use super::failure::ViFailure;
use super::nic::NicCore;
use super::vi::{Connected, Idle, Vi};
use super::waiting::{Awaitable, Waiting};
use crate::address::Address;
use crate::engine::ViAttributes;
use crate::error::ViError;
use crate::nic::{Awaited, CallerNumber, ListenerNumber, ViNumber};
use crate::over::{NicNode, StateOf};
use musubi_transport::running::Ways as _;

/// Why there is no connection, and the VI, which is idle again.
pub struct NotConnected<R: NicNode> {
    /// Why.
    pub failure: ViFailure,
    /// The VI that was to be connected.
    pub vi: Vi<Idle, R>,
}

/// How a VI asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Client,
    PeerNode,
}

/// A connection that was asked for.
pub type Connecting<R> = Waiting<Arc<NicCore<R>>, Attempt<R>>;

/// Sees how an attempt of a VI to be connected ends.
pub struct Attempt<R: NicNode> {
    /// Gone once it has ended.
    vi: Option<Vi<Idle, R>>,
    number: ViNumber,
    /// It has not even begun.
    refused: Option<ViFailure>,
}

pub(super) fn begin<R: NicNode>(vi: Vi<Idle, R>, manner: Manner, name: &[u8], to: &Address) -> Connecting<R> {
    let nic = Arc::clone(&vi.core().nic);
    let number = vi.number();
    let refused = match Address::new(nic.number, name) {
        None => Some(ViFailure::Invalid),
        Some(local) => {
            let asked = nic.with(|state, links| match manner {
                Manner::Client => state.request(number, local, to.clone(), links),
                Manner::PeerNode => state.request_peer(number, local, to.clone(), u64::MAX, links),
            });
            asked.and_then(|asked| Ok(asked?)).err()
        }
    };
    Waiting::new(nic, Attempt { vi: Some(vi), number, refused })
}

impl<R: NicNode> Attempt<R> {
    fn ended(&mut self, how: Result<ViAttributes, ViError>) -> Option<Result<Vi<Connected, R>, NotConnected<R>>> {
        let vi = self.vi.take()?;
        Some(match how {
            Ok(_) => Ok(vi.connected()),
            Err(error) => Err(NotConnected { failure: error.into(), vi }),
        })
    }
}

impl<R: NicNode> Awaitable<R> for Attempt<R> {
    type Output = Result<Vi<Connected, R>, NotConnected<R>>;

    fn awaited(&self) -> Awaited {
        Awaited::Outcome(self.number)
    }

    fn look(&mut self, state: &mut StateOf<R>, _: &Arc<NicCore<R>>) -> Option<Self::Output> {
        if let Some(failure) = self.refused {
            return self.vi.take().map(|vi| Err(NotConnected { failure, vi }));
        }
        let how = state.take_outcome(self.number)?;
        self.ended(how)
    }

    fn fail(&mut self, nic: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        let number = self.number;
        let how = nic.with(|state, links| state.give_up(number, links));
        match (how, self.vi.take()) {
            (Ok(Ok(_)), Some(vi)) => Ok(vi.connected()),
            (Ok(Err(error)), Some(vi)) if failure == ViFailure::Timeout => {
                Err(NotConnected { failure: error.into(), vi })
            }
            (_, Some(vi)) => Err(NotConnected { failure, vi }),
            (_, None) => unreachable!("an attempt is not asked again once it has ended"),
        }
    }
}

/// Who listens by a name.
pub struct Listener<R: NicNode> {
    nic: Arc<NicCore<R>>,
    number: ListenerNumber,
}

impl<R: NicNode> Listener<R> {
    pub(super) fn begin(nic: &Arc<NicCore<R>>, name: &[u8]) -> Result<Listener<R>, ViFailure> {
        let local = Address::new(nic.number, name).ok_or(ViFailure::Invalid)?;
        let number = nic.with(|state, _| state.listen(&local))??;
        Ok(Listener { nic: Arc::clone(nic), number })
    }

    /// The next who asks for a connection.
    pub fn caller(&mut self) -> Waiting<&Arc<NicCore<R>>, FirstCaller> {
        Waiting::new(&self.nic, FirstCaller { listener: self.number })
    }
}

impl<R: NicNode> Drop for Listener<R> {
    fn drop(&mut self) {
        // With the NIC its listeners have gone.
        let _ = self.nic.aside(|state, links| state.end_listening(links.now_ns(), self.number));
    }
}

/// Takes the next who asks a listener.
#[derive(Debug)]
pub struct FirstCaller {
    listener: ListenerNumber,
}

impl<R: NicNode> Awaitable<R> for FirstCaller {
    type Output = Result<Caller<R>, ViFailure>;

    fn awaited(&self) -> Awaited {
        Awaited::Caller(self.listener)
    }

    fn look(&mut self, state: &mut StateOf<R>, nic: &Arc<NicCore<R>>) -> Option<Self::Output> {
        let (number, from, attributes) = state.next_caller(self.listener)?;
        Some(Ok(Caller { nic: Arc::clone(nic), number: Some(number), from, attributes }))
    }

    fn fail(&mut self, _: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        Err(failure)
    }
}

/// Who asked for a connection and waits for an answer.
pub struct Caller<R: NicNode> {
    nic: Arc<NicCore<R>>,
    /// Gone once it has an answer.
    number: Option<CallerNumber>,
    from: Address,
    attributes: ViAttributes,
}

impl<R: NicNode> Caller<R> {
    /// From where it asks.
    pub fn from(&self) -> &Address {
        &self.from
    }

    /// What its VI is like.
    pub fn attributes(&self) -> &ViAttributes {
        &self.attributes
    }

    /// Connects it with a VI of this side's. If that does not fit, or is not of this `Nic`, the caller is rejected.
    pub fn accept(mut self, vi: Vi<Idle, R>) -> Waiting<Arc<NicCore<R>>, Acceptance<R>> {
        let nic = Arc::clone(&self.nic);
        let number = vi.number();
        let is_ours = Arc::ptr_eq(&nic, &vi.core().nic);
        let accepted = match self.number.filter(|_| is_ours) {
            None => Err(ViFailure::Invalid),
            Some(caller) => nic
                .with(|state, links| state.accept(caller, number, links))
                .and_then(|accepted| Ok(accepted?))
                .map(|()| caller),
        };
        let (caller, refused) = match accepted {
            Ok(caller) => {
                self.number = None;
                (Some(caller), None)
            }
            Err(failure) => (None, Some(failure)),
        };
        let handle = nic.clone();
        Waiting::new(nic, Acceptance { nic: handle, vi: Some(vi), caller, refused })
    }

    /// Tells it that there is no connection for it.
    pub fn reject(self) {
        drop(self);
    }
}

impl<R: NicNode> Drop for Caller<R> {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            // It may have gone meanwhile.
            let _ = self.nic.aside(|state, links| state.reject(number, links));
        }
    }
}

/// Sees whether a caller that was accepted confirms.
pub struct Acceptance<R: NicNode> {
    nic: Arc<NicCore<R>>,
    /// Gone once it has ended.
    vi: Option<Vi<Idle, R>>,
    /// Gone once it has confirmed, or is not to any more.
    caller: Option<CallerNumber>,
    /// It was not even accepted.
    refused: Option<ViFailure>,
}

impl<R: NicNode> Acceptance<R> {
    fn give_up(&mut self) {
        if let Some(caller) = self.caller.take() {
            let _ = self.nic.aside(|state, links| state.give_up_accepted(caller, links));
        }
    }
}

impl<R: NicNode> Awaitable<R> for Acceptance<R> {
    type Output = Result<Vi<Connected, R>, NotConnected<R>>;

    fn awaited(&self) -> Awaited {
        // There is a caller unless it was refused, which is seen before anything is awaited.
        Awaited::Confirmation(self.caller.unwrap_or(CallerNumber(0)))
    }

    fn look(&mut self, state: &mut StateOf<R>, _: &Arc<NicCore<R>>) -> Option<Self::Output> {
        if let Some(failure) = self.refused {
            return self.vi.take().map(|vi| Err(NotConnected { failure, vi }));
        }
        let how = state.accepted(self.caller?)?;
        self.caller = None;
        let vi = self.vi.take()?;
        Some(match how {
            Ok(()) => Ok(vi.connected()),
            Err(error) => Err(NotConnected { failure: error.into(), vi }),
        })
    }

    fn fail(&mut self, _: &Arc<NicCore<R>>, failure: ViFailure) -> Self::Output {
        self.give_up();
        match self.vi.take() {
            Some(vi) => Err(NotConnected { failure, vi }),
            None => unreachable!("an acceptance is not asked again once it has ended"),
        }
    }
}

impl<R: NicNode> Drop for Acceptance<R> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<R: NicNode> From<NotConnected<R>> for ViFailure {
    fn from(refused: NotConnected<R>) -> ViFailure {
        refused.failure
    }
}

impl<R: NicNode> fmt::Display for NotConnected<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not connected: {}", self.failure)
    }
}

impl<R: NicNode> core::error::Error for NotConnected<R> {}

impl<R: NicNode> fmt::Debug for NotConnected<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotConnected").field("failure", &self.failure).field("vi", &self.vi).finish()
    }
}

impl<R: NicNode> fmt::Debug for Attempt<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("vi", &self.number).finish_non_exhaustive()
    }
}

impl<R: NicNode> fmt::Debug for Acceptance<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptance").field("vi", &self.vi).finish_non_exhaustive()
    }
}

impl<R: NicNode> fmt::Debug for Listener<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.number).finish()
    }
}

impl<R: NicNode> fmt::Debug for Caller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("from", &self.from).finish_non_exhaustive()
    }
}
