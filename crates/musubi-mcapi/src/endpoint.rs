//! Endpoints: this node's own, and names of others'; how a node makes and finds them.
//!
//! ```
//! # use std::sync::Arc;
//! # use musubi_mcapi::{attribute, Deadline, Error, Node, Topology};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-endpoint-{}", std::process::id());
//! # let system = Arc::new(system);
//! let node = Node::initialize(&system, 0, 1)?;
//! let endpoint = node.create_endpoint(Some(9))?;
//! endpoint.set(attribute::PRIORITY, 2)?;
//! let name = node.get_endpoint((0, 1), 9, Deadline::Forever)?;
//! assert_eq!(node.attribute(&name, attribute::PRIORITY, Deadline::Forever)?, 2);
//! # Ok(())
//! # }
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::attribute::{Attribute, Value};
use crate::message::Message;
use crate::node::Node;
use crate::request::Request;
use crate::{EndpointId, Error};

use crate::engine::{Outcome, Sending};
use crate::running::Running;
use musubi_transport::LinkError;

/// Anything that names an endpoint.
pub trait Named {
    /// Its name in the whole system.
    fn name(&self) -> EndpointId;
}

impl Named for EndpointId {
    fn name(&self) -> EndpointId {
        *self
    }
}

impl<R: Running> Node<R> {
    /// Creates an endpoint at a port; `None` takes any free one.
    ///
    /// # Errors
    /// [`Error::PortInvalid`], [`Error::EndpointExists`].
    pub fn create_endpoint(&self, port: Option<u32>) -> Result<Endpoint<R>, Error> {
        let id = self.runtime.with(|engine, links| engine.create_endpoint(port, links))??;
        Ok(Endpoint::new(self.clone(), id))
    }

    /// The endpoint at a port of a node, as soon as both exist.
    ///
    /// # Errors
    /// [`Error::DomainInvalid`], [`Error::NodeInvalid`], [`Error::PortInvalid`], [`Error::EndpointGetLimit`],
    /// [`Error::Timeout`].
    pub fn get_endpoint(&self, node: (u32, u32), port: u32, deadline: R::Deadline) -> Result<Remote<R>, Error> {
        self.request_endpoint(node, port)?.wait(deadline)
    }

    /// Begins to look for an endpoint.
    ///
    /// # Errors
    /// As [`Node::get_endpoint`]; [`Error::RequestLimit`].
    pub fn request_endpoint(&self, node: (u32, u32), port: u32) -> Result<Request<Remote<R>, R>, Error> {
        let finder = self.clone();
        self.request(
            |engine, links| engine.get_endpoint(node, port, links),
            move |outcome| match outcome {
                Outcome::Endpoint(id) => Ok(Remote::new(finder, id)),
                _ => Err(Error::General),
            },
        )
    }

    /// An attribute of an endpoint anywhere.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::AttributeNotSupported`], [`Error::Timeout`].
    pub fn attribute<T: Value>(
        &self,
        endpoint: &impl Named,
        attribute: Attribute<T>,
        deadline: R::Deadline,
    ) -> Result<T, Error> {
        let name = endpoint.name();
        let mut request: Request<T, R> = self.request(
            |engine, links| engine.endpoint_attribute(name, attribute.number(), T::BYTES, links),
            |outcome| match outcome {
                Outcome::Attribute(bytes) => T::from_bytes(&bytes).ok_or(Error::AttributeSize),
                _ => Err(Error::General),
            },
        )?;
        request.wait(deadline)
    }
}

/// An endpoint of this node. Clones are handles of the same; it is deleted when the last handle, and any end of a
/// channel opened on it, is dropped.
#[derive(Debug)]
pub struct Endpoint<R: Running> {
    own: Arc<Own<R>>,
}

impl<R: Running> Clone for Endpoint<R> {
    fn clone(&self) -> Endpoint<R> {
        Endpoint { own: Arc::clone(&self.own) }
    }
}

#[derive(Debug)]
struct Own<R: Running> {
    node: Node<R>,
    id: EndpointId,
}

impl<R: Running> Drop for Own<R> {
    fn drop(&mut self) {
        let id = self.id;
        // Deleted before, connected, or the node has ended: then it ends with the node.
        let _ = self.node.runtime.with_aside(|engine, links| engine.delete_endpoint(id, links));
    }
}

impl<R: Running> Named for Endpoint<R> {
    fn name(&self) -> EndpointId {
        self.own.id
    }
}

/// An endpoint of some node that this node has found. Dropping it gives the find back.
#[derive(Debug)]
pub struct Remote<R: Running> {
    node: Node<R>,
    id: EndpointId,
}

impl<R: Running> Remote<R> {
    pub(crate) fn new(node: Node<R>, id: EndpointId) -> Remote<R> {
        Remote { node, id }
    }
}

impl<R: Running> Named for Remote<R> {
    fn name(&self) -> EndpointId {
        self.id
    }
}

impl<R: Running> Drop for Remote<R> {
    fn drop(&mut self) {
        let id = self.id;
        let _ = self.node.runtime.with_aside(|engine, links| engine.release_endpoint(id, links));
    }
}

impl<R: Running> Endpoint<R> {
    pub(crate) fn new(node: Node<R>, id: EndpointId) -> Endpoint<R> {
        Endpoint { own: Arc::new(Own { node, id }) }
    }

    /// Its node.
    pub fn node(&self) -> &Node<R> {
        &self.own.node
    }

    /// Deletes it now; what is queued is dropped. Other handles name nothing from now on.
    ///
    /// # Errors
    /// [`Error::ChannelConnected`]; [`Error::EndpointInvalid`] if it was deleted before.
    pub fn delete(self) -> Result<(), Error> {
        let id = self.own.id;
        self.own.node.runtime.with(|engine, links| engine.delete_endpoint(id, links))?
    }

    /// Sends a message and waits until the receiving node has it. Priority 0 is the most urgent.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::MessageSize`], [`Error::Priority`]; [`Error::Transmission`] if it was lost;
    /// [`Error::Timeout`]: not sent, or (over a network) perhaps sent but not confirmed in time.
    pub fn send(&self, to: &impl Named, priority: u32, bytes: &[u8], deadline: R::Deadline) -> Result<(), Error> {
        let (from, to) = (self.own.id, to.name());
        let runtime = &self.own.node.runtime;
        let mut confirming = None;
        let sent = runtime.wait_for(deadline, |engine, links| match confirming {
            Some(request) => engine.take_outcome(request).transpose().map(|outcome| outcome.flatten().map(drop)),
            None => match engine.send_message(from, to, priority, bytes, links) {
                Ok(Sending::Blocked) => None,
                Ok(Sending::Done) => Some(Ok(())),
                Ok(Sending::Confirming(request)) => {
                    confirming = Some(request);
                    None
                }
                Err(error) => Some(Err(error)),
            },
        });
        if let (Err(LinkError::Timeout), Some(request)) = (&sent, confirming) {
            // Nobody asks any more. If the node has ended meanwhile, there is nothing to drop.
            let _ = runtime.with_aside(|engine, links| engine.drop_request(request, links));
        }
        sent?
    }

    /// Sends a message if it can go now; true if it went. Over a network that is no confirmation yet.
    ///
    /// # Errors
    /// As [`Endpoint::send`], but never a timeout.
    pub fn try_send(&self, to: &impl Named, priority: u32, bytes: &[u8]) -> Result<bool, Error> {
        let (from, to) = (self.own.id, to.name());
        self.own.node.runtime.with(|engine, links| {
            let sending = engine.send_message(from, to, priority, bytes, links)?;
            if let Sending::Confirming(request) = sending {
                engine.drop_request(request, links);
            }
            Ok(sending != Sending::Blocked)
        })?
    }

    /// Begins to send a message.
    ///
    /// # Errors
    /// As [`Endpoint::send`]; [`Error::RequestLimit`], [`Error::MemoryLimit`].
    pub fn request_send(&self, to: &impl Named, priority: u32, bytes: Vec<u8>) -> Result<Request<(), R>, Error> {
        let (from, to) = (self.own.id, to.name());
        let begin = |engine: &mut crate::node::Engine<R>, links: &mut R::Ways| {
            engine.send_message_later(from, to, priority, bytes, links)
        };
        self.own.node.request(begin, |_| Ok(()))
    }

    /// The next message: the most urgent of those that are here, the oldest of those.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::Timeout`].
    pub fn receive(&self, deadline: R::Deadline) -> Result<Message<R>, Error> {
        let id = self.own.id;
        let took = self.own.node.runtime.wait_for(deadline, |engine, links| {
            // A more urgent one may have come right behind the first.
            R::take_in(engine, links);
            engine.receive_message(id, links).transpose()
        });
        Ok(Message::new(took??))
    }

    /// The next message if there is one.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`].
    pub fn try_receive(&self) -> Result<Option<Message<R>>, Error> {
        match self.receive(R::POLL) {
            Ok(message) => Ok(Some(message)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Begins to receive: takes the next message that is here or comes.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::RequestLimit`].
    pub fn request_receive(&self) -> Result<Request<Message<R>, R>, Error> {
        let id = self.own.id;
        self.own.node.request(
            |engine, links| {
                R::take_in(engine, links);
                engine.receive_message_later(id, links)
            },
            |outcome| match outcome {
                Outcome::Message(message) => Ok(Message::new(message)),
                _ => Err(Error::General),
            },
        )
    }

    /// Number of messages that are here.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`].
    pub fn available(&self) -> Result<usize, Error> {
        let id = self.own.id;
        self.own.node.runtime.with_arrivals(|engine, _| engine.messages_available(id))?
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// [`Error::AttributeReadOnly`], [`Error::AttributeValue`], [`Error::AttributeNotSupported`],
    /// [`Error::ChannelConnected`].
    pub fn set<T: Value>(&self, attribute: Attribute<T>, value: T) -> Result<(), Error> {
        let id = self.own.id;
        let bytes = value.to_bytes();
        self.own.node.runtime.with(|engine, _| engine.set_endpoint_attribute(id, attribute.number(), &bytes))?
    }
}
