//! Channels: connecting, and what ends of packets and scalars have in common.
//!
//! What you may rely on: an end that is dropped is closed, and its endpoint can be connected again once the other side
//! has closed too. Closing the sending side drops nothing: the receiver reads what is queued and gets
//! [`Error::ChannelInvalid`] after it.

use crate::engine::{ChannelHandle, ChannelKind};
use crate::running::Running;

use crate::endpoint::{Endpoint, Named};
use crate::node::Node;
use crate::request::Request;
use crate::{EndpointId, Error};

/// An end that is being opened: complete once both sides are open and connected.
pub type Opening<T, R> = Request<T, R>;
/// A channel that is being closed: complete once both sides have closed.
pub type Closing<R> = Request<(), R>;

impl<R: Running> Node<R> {
    /// Connects two endpoints, anywhere, by a packet channel; complete when both owners know. Both sides still have to be
    /// opened.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::ChannelConnected`], [`Error::AttributeIncompatible`] and others, at once or
    /// by the request.
    pub fn connect_packets(&self, from: &impl Named, to: &impl Named) -> Result<Request<(), R>, Error> {
        self.connect(ChannelKind::Packet, from.name(), to.name())
    }

    /// The same by a scalar channel.
    ///
    /// # Errors
    /// As [`Node::connect_packets`].
    pub fn connect_scalars(&self, from: &impl Named, to: &impl Named) -> Result<Request<(), R>, Error> {
        self.connect(ChannelKind::Scalar, from.name(), to.name())
    }

    fn connect(&self, kind: ChannelKind, from: EndpointId, to: EndpointId) -> Result<Request<(), R>, Error> {
        self.request(|engine, links| engine.connect(kind, from, to, links), |_| Ok(()))
    }
}

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
        let (handle, request) = node.runtime.with(|engine, links| engine.open(kind, receives, name, links))??;
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
        node.request(|engine, links| engine.close(kind, receives, handle, links), |_| Ok(()))
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
        let _ = self.endpoint.node().runtime.with_aside(|engine, links| {
            if let Ok(request) = engine.close(kind, receives, handle, links) {
                engine.drop_request(request, links);
            }
        });
    }
}
