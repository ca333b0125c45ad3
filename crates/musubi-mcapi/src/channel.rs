//! Ends of channels: what packets and scalars have in common.
//!
//! What you may rely on: an end that is dropped is closed, and its endpoint can be connected again once the other side
//! has closed too. Closing the sending side drops nothing: the receiver reads what is queued and gets
//! [`Error::ChannelInvalid`] after it.

use crate::engine::{ChannelHandle, ChannelKind};
use crate::running::Running;

use crate::endpoint::{Endpoint, Named};
use crate::request::Request;
use crate::{EndpointId, Error};

/// An end that is being opened: complete once both sides are open and connected.
pub type Opening<T, R> = Request<T, R>;
/// A channel that is being closed: complete once both sides have closed.
pub type Closing<R> = Request<(), R>;

/// One open end of a channel.
#[derive(Debug)]
pub(crate) struct End<R: Running> {
    pub endpoint: Endpoint<R>,
    pub handle: ChannelHandle,
    kind: ChannelKind,
    receives: bool,
    closed: bool,
}

impl<R: Running> End<R> {
    pub fn open<T, F>(
        endpoint: &Endpoint<R>,
        kind: ChannelKind,
        receives: bool,
        wrap: F,
    ) -> Result<Opening<T, R>, Error>
    where
        F: FnOnce(End<R>) -> T + Send + 'static,
    {
        let node = endpoint.node();
        let name = endpoint.name();
        let (handle, request) = node.runtime.with(|engine, hub| engine.open(kind, receives, name, hub))??;
        let endpoint = endpoint.clone();
        // An end only from when the request completes; until then dropping the request takes the opening back.
        Ok(Request::new(&node.runtime.clone(), request, move |_| {
            Ok(wrap(End { endpoint, handle, kind, receives, closed: false }))
        }))
    }

    pub fn close(mut self) -> Result<Closing<R>, Error> {
        self.closed = true;
        let (kind, receives, handle) = (self.kind, self.receives, self.handle);
        let node = self.endpoint.node();
        node.request(|engine, hub| engine.close(kind, receives, handle, hub), |_| Ok(()))
    }

    pub fn available(&self) -> Result<usize, Error> {
        let (kind, handle) = (self.kind, self.handle);
        self.endpoint.node().runtime.with_arrivals(|engine, _| engine.channel_available(kind, handle))?
    }

    pub fn name(&self) -> EndpointId {
        self.endpoint.name()
    }
}

impl<R: Running> Drop for End<R> {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let (kind, receives, handle) = (self.kind, self.receives, self.handle);
        // The node may have ended, and the channel with it.
        let _ = self.endpoint.node().runtime.with_aside(|engine, hub| {
            if let Ok(request) = engine.close(kind, receives, handle, hub) {
                engine.drop_request(request, hub);
            }
        });
    }
}
