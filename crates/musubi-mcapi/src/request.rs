//! Operations that have begun: futures that can also be waited for, and that cancel when they are dropped.
//!
//! What you may rely on: a request that is dropped has no effect any more: a receive takes no message, an opening opens
//! nothing. One that had completed already gives back what it had got (an endpoint, an end of a channel, a message). A wait
//! that runs into its deadline leaves the request as it was.
//!
//! ```
//! # use std::sync::Arc;
//! # use musubi_mcapi::{Deadline, Error, Node, Topology, wait_any};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-request-{}", std::process::id());
//! # let system = Arc::new(system);
//! let node = Node::initialize(&system, 0, 1)?;
//! let (a, b) = (node.create_endpoint(None)?, node.create_endpoint(None)?);
//! let mut first = a.request_receive()?;
//! let mut second = b.request_receive()?;
//! a.send(&b, 0, b"for b", Deadline::Forever)?;
//! assert_eq!(wait_any(&[&first, &second], Deadline::Forever)?, 1);
//! assert_eq!(second.wait(Deadline::Forever)?.to_vec(), b"for b");
//! assert!(first.try_take()?.is_none());
//! # Ok(())
//! # }
//! ```

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::engine::{self, RequestId};
use crate::running::Running;

use crate::Error;

/// What comes of a request.
pub(crate) type Came<R> = engine::Outcome<<R as musubi_transport::running::Running>::Block>;
/// Makes the result of what came.
type Finish<T, R> = Box<dyn FnOnce(Came<R>) -> Result<T, Error> + Send>;

/// An operation that has begun and will give a `T`.
pub struct Request<T, R: Running> {
    node: R,
    id: RequestId,
    /// Gone once the request has been taken note of.
    finish: Option<Finish<T, R>>,
}

/// What [`wait_any`] waits for: any [`Request`].
pub trait Awaited<R> {
    #[doc(hidden)]
    fn place(&self) -> (&R, RequestId);
}

impl<T, R: Running> Request<T, R> {
    pub(crate) fn new<F>(node: &R, id: RequestId, finish: F) -> Request<T, R>
    where
        F: FnOnce(Came<R>) -> Result<T, Error> + Send + 'static,
    {
        Request { node: node.clone(), id, finish: Some(Box::new(finish)) }
    }

    /// Waits until it has completed.
    ///
    /// # Errors
    /// [`Error::Timeout`]: it goes on, and can be waited for again. Anything else is why the operation failed, or
    /// [`Error::RequestInvalid`] if its result was taken before.
    pub fn wait(&mut self, deadline: R::Deadline) -> Result<T, Error> {
        if self.finish.is_none() {
            return Err(Error::RequestInvalid);
        }
        let id = self.id;
        let taken = self.node.wait_for(deadline, |engine, _| engine.take_outcome(id).transpose())?;
        self.conclude(taken.and_then(|outcome| outcome))
    }

    /// Gives the result if it has completed.
    ///
    /// # Errors
    /// As [`Request::wait`], but never a timeout.
    pub fn try_take(&mut self) -> Result<Option<T>, Error> {
        match self.wait(R::POLL) {
            Ok(result) => Ok(Some(result)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn conclude(&mut self, outcome: Result<Came<R>, Error>) -> Result<T, Error> {
        let finish = self.finish.take().ok_or(Error::RequestInvalid)?;
        finish(outcome?)
    }
}

impl<T, R: Running> Awaited<R> for Request<T, R> {
    fn place(&self) -> (&R, RequestId) {
        (&self.node, self.id)
    }
}

impl<T, R: Running> Future for Request<T, R> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let request = self.get_mut();
        if request.finish.is_none() {
            return Poll::Ready(Err(Error::RequestInvalid));
        }
        let id = request.id;
        match request.node.wake_when_complete(id, context.waker()) {
            Ok(false) => return Poll::Pending,
            Ok(true) => (),
            Err(error) => return Poll::Ready(request.conclude(Err(error.into()))),
        }
        let taken = request.node.with_aside(|engine, _| engine.take_outcome(id));
        match taken.map_err(Error::from).and_then(|taken| taken) {
            Ok(None) => Poll::Pending,
            Ok(Some(outcome)) => Poll::Ready(request.conclude(outcome)),
            Err(error) => Poll::Ready(request.conclude(Err(error))),
        }
    }
}

impl<T, R: Running> Drop for Request<T, R> {
    fn drop(&mut self) {
        let Some(finish) = self.finish.take() else { return };
        let id = self.id;
        let last = self.node.with_aside(|engine, links| {
            let outcome = engine.take_outcome(id);
            if let Ok(None) = outcome {
                engine.drop_request(id, links);
            }
            outcome
        });
        // What it got goes back as it is dropped.
        if let Ok(Ok(Some(Ok(outcome)))) = last {
            drop(finish(outcome));
        }
    }
}

impl<T, R: Running> core::fmt::Debug for Request<T, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Waits until one of several requests of one node has completed; gives its place. It is still to be taken, and fails
/// then if it failed.
///
/// # Errors
/// [`Error::Timeout`]; [`Error::Parameter`] if there are none or they are of several nodes; [`Error::RequestInvalid`] if
/// the result of one was taken before.
pub fn wait_any<R: Running>(requests: &[&dyn Awaited<R>], deadline: R::Deadline) -> Result<usize, Error> {
    let (node, _) = requests.first().ok_or(Error::Parameter)?.place();
    if requests.iter().any(|request| request.place().0.id() != node.id()) {
        return Err(Error::Parameter);
    }
    let find = |engine: &mut engine::Engine<R::Block>| {
        requests.iter().enumerate().find_map(|(place, request)| match engine.is_complete(request.place().1) {
            Ok(true) => Some(Ok(place)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    };
    node.wait_for(deadline, |engine, _| find(engine))?
}
