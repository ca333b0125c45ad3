//! MCAPI 2.015: include/mcapi.h over the nodes of `musubi-transport`.
//!
//! What you may rely on: docs/mcapi-conformance.md says which status is for what. NULL never crashes, no panic crosses
//! into C, and a thread without a node hears so before anything else.
//!
//! How it works: the port, [`process`], finds the calling thread's node; each function does one thing with its engine under
//! its lock, or waits, which means trying again whenever the engine's changes moved. [`requests`] is what
//! `mcapi_request_t` names. The thread that waits drives the links itself; nothing here has a thread of its own.
//!
//! There are two ports with the same parts: [`process`], and `mapped` where the package that has these sources says so.
//!
//! What it does not do: know shared memory from TCP.

#[cfg(not(feature = "mapped"))]
mod at_exit;
#[cfg(not(feature = "mapped"))]
mod cancellation;
mod channels;
mod display;
mod endpoints;
mod exports;
#[cfg(feature = "mapped")]
pub mod mapped;
mod messages;
mod node;
pub mod nodes;
mod packets;
mod packets_in_hand;
#[cfg(not(feature = "mapped"))]
mod process;
pub mod requests;
mod scalars;
mod sent_buffers;
pub mod status;
#[cfg(not(feature = "mapped"))]
mod threads;
mod waiting;

#[cfg(feature = "mapped")]
use mapped as port;
#[cfg(not(feature = "mapped"))]
use process as port;
