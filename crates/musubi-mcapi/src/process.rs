//! Nodes in processes of Linux: what is not the same everywhere.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use musubi_transport::runtime::{self, Block, Options};
use musubi_transport::topology::Topology;

use crate::engine::Engine;
use crate::{Error, Node, NodeId};

/// A running node of MCAPI in a process of Linux.
pub type Running = runtime::Node<Engine<Block>>;

impl AsFd for Node {
    /// See [`Node::arm`]; only to be watched.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.runtime.as_fd()
    }
}

impl Node {
    /// Starts a node of a system.
    ///
    /// # Errors
    /// [`Error::NodeInitialized`] if it runs already, [`Error::DomainInvalid`], [`Error::NodeInvalid`] if the system has
    /// it not, [`Error::NodeInitFailed`].
    pub fn initialize(system: &Arc<Topology>, domain: u32, node: u32) -> Result<Node, Error> {
        Node::initialize_with(system, domain, node, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Node::initialize`].
    pub fn initialize_with(system: &Arc<Topology>, domain: u32, node: u32, options: Options) -> Result<Node, Error> {
        let id = match NodeId::new(domain, node) {
            Some(id) => id,
            None if domain > crate::limits::DOMAIN_MAX => return Err(Error::DomainInvalid),
            None => return Err(Error::NodeInvalid),
        };
        Ok(Node::of(Running::start(Arc::clone(system), id, options)?))
    }

    /// The system it is of.
    pub fn system(&self) -> &Arc<Topology> {
        self.runtime.topology()
    }

    /// For a program's own event loop: looks at the links, and lets whatever comes from now on make this node's descriptor
    /// ([`AsFd`]) readable. `None` if something has changed since the last time: try everything, then arm again.
    /// Otherwise the nanoseconds after which to arm again at the latest; `u64::MAX` for none. Other threads may
    /// call and wait meanwhile; one thread at a time is the loop.
    ///
    /// # Errors
    /// [`Error::NodeNotInitialized`].
    pub fn arm(&self) -> Result<Option<u64>, Error> {
        let until_ns = self.runtime.arm()?;
        Ok(until_ns.map(|ns| if ns == u64::MAX { ns } else { ns.saturating_sub(self.runtime.now_ns()) }))
    }
}
