//! What keeps a node from having its links over TCP.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::{NodeId, keys};

/// What can go wrong when a node's links over TCP are opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The node's own address cannot be found.
    #[error("the address {0} of this node: {1}")]
    Address(String, std::io::Error),
    /// Nobody can connect to the node's own address.
    #[error("listening at {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Another socket listens there.
    #[error(
        "listening at {0}: address in use: another program listens there, or another process that runs as this node"
    )]
    AddressInUse(SocketAddr),
    /// Certificates or keys.
    #[error(transparent)]
    Keys(#[from] keys::Error),
    /// The certificate names somebody else.
    #[error("{0} is not a certificate of node {1} of this system")]
    NotOurCertificate(PathBuf, NodeId),
    /// The certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// As above.
    #[error("TLS: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// Links need TLS, and the description names no keys.
    #[error("links at {0} need TLS: name a directory of keys (`musubi keys`), or say `insecure = true`")]
    NoKeys(SocketAddr),
    /// A filter (seccomp) or the kernel refuses a system call.
    #[error("this system refuses {0}: {1}")]
    Refused(&'static str, std::io::Error),
    /// The system refuses a descriptor or a thread.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Error {
        Error::System(error.into())
    }
}
