//! The MCAPI interface in Rust: messages, packet channels and scalar channels between nodes, on and off chip.
//!
//! What you may rely on: a program is the same wherever its peers are, in another thread, another process or on another
//! machine; the system says where. What the C interface answers with a status does not compile here or is an [`Error`]:
//! the two ends of a channel are different types, a scalar channel knows its word, a packet goes back by itself when it
//! is dropped, an endpoint is deleted, a channel closed and a request cancelled likewise. Every call that could wait
//! takes a [`Deadline`]; what the C interface calls non-blocking is a [`Request`], which is a future and can be waited
//! for as well.
//!
//! How it works: a [`Node`] is a handle of a running node of `musubi-transport` whose protocol is the [`engine`]. A thread that
//! waits drives the node's links itself; a future is woken by the node's own thread.
//!
//! ```
//! use std::sync::Arc;
//! use musubi_mcapi::{Deadline, Error, Node, Topology};
//!
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-lib-{}", std::process::id());
//! # let system = Arc::new(system);
//! // Two nodes; here in one process, but either could be anywhere.
//! let display = Node::initialize(&system, 0, 1)?;
//! let sensor = Node::initialize(&system, 0, 2)?;
//!
//! let inbox = display.create_endpoint(Some(5))?;
//! let from = sensor.create_endpoint(None)?;
//! let to = sensor.get_endpoint((0, 1), 5, Deadline::Forever)?;
//!
//! from.send(&to, 0, b"21.5 C", Deadline::Forever)?;
//! let message = inbox.receive(Deadline::Forever)?;
//! assert_eq!(message.to_vec(), b"21.5 C");
//! # Ok(())
//! # }
//! ```
//!
//! | MCAPI | here |
//! | --- | --- |
//! | `mcapi_initialize`, `mcapi_finalize` | [`Node::initialize`], [`Node::finalize`] or dropping everything of the node |
//! | `mcapi_endpoint_create`, `_delete` | [`Node::create_endpoint`], [`Endpoint::delete`] or dropping it |
//! | `mcapi_endpoint_get`, `_get_i`, `_release` | [`Node::get_endpoint`], [`Node::request_endpoint`], dropping the [`Remote`] |
//! | `mcapi_endpoint_get_attribute`, `_set_attribute` | [`Node::attribute`], [`Endpoint::set`] with [`attribute`] |
//! | `mcapi_msg_send`, `_send_i`, `_recv`, `_recv_i`, `_available` | [`Endpoint::send`], [`Endpoint::request_send`], [`Endpoint::receive`], [`Endpoint::request_receive`], [`Endpoint::available`] |
//! | `mcapi_pktchan_connect_i`, `mcapi_sclchan_connect_i` | [`Node::connect_packets`], [`Node::connect_scalars`] |
//! | `mcapi_pktchan_*_open_i`, `mcapi_sclchan_*_open_i` | [`PacketSender::open`] and its like |
//! | `mcapi_pktchan_send`, `_recv`, `_release` | [`PacketSender::send`] (or [`PacketSender::send_shared`], [`PacketSender::send_burst`]), [`PacketReceiver::receive`], dropping the [`Packet`] |
//! | `mcapi_sclchan_send_uint*`, `_recv_uint*` | [`ScalarSender::send`], [`ScalarReceiver::receive`] |
//! | `mcapi_test`, `_wait`, `_wait_any`, `_cancel` | [`Request::try_take`], [`Request::wait`], [`wait_any`], dropping the request |
//!
//! Without the feature `std` there is no Linux, and [`over`] is all of it: the same over any running node, such as those of
//! `musubi-transport`'s `mapped` on cores without an operating system.
//!
//! What it does not do: read descriptions (`musubi-config` makes a [`Topology`] of one), name a port.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod attribute;
pub mod engine;
pub mod limits;

mod channel;
mod endpoint;
mod error;
pub mod frame;
mod message;
mod name;
mod node;
mod packet;
#[cfg(feature = "std")]
pub mod process;
mod protocol;
mod request;
mod running;
mod scalar;

pub use endpoint::Named;
pub use error::Error;
pub use musubi_transport::NodeId;
pub use musubi_transport::links::SharedBytes;
pub use name::EndpointId;
pub use node::RoundTrip;
pub use request::Awaited;
pub use scalar::Scalar;

/// The interface over any running node. Every name stands for the same in the crate's root, over
/// [`process::Running`].
pub mod over {
    pub use crate::channel::{Closing, Opening};
    pub use crate::endpoint::{Endpoint, Remote};
    pub use crate::message::Message;
    pub use crate::node::Node;
    pub use crate::packet::{Packet, PacketReceiver, PacketSender};
    pub use crate::request::{Request, wait_any};
    pub use crate::running::Running;
    pub use crate::scalar::{ScalarReceiver, ScalarSender};
}

#[cfg(feature = "std")]
pub use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
#[cfg(feature = "std")]
pub use musubi_transport::topology::Topology;
#[cfg(feature = "std")]
pub use process::{
    Closing, Endpoint, Message, Node, Opening, Packet, PacketReceiver, PacketSender, Remote, Request, ScalarReceiver,
    ScalarSender, wait_any,
};
