//! The nodes that this interface is for: those whose protocol is MCAPI's, wherever they run.

use musubi_transport::running;

use crate::engine::Engine;

/// A handle of a running node of MCAPI; the last one that is dropped ends it. Whatever runs the engine is one.
pub trait Running: running::Running<Protocol = Engine<<Self as running::Running>::Block>> {}

impl<R> Running for R where R: running::Running<Protocol = Engine<<R as running::Running>::Block>> {}
