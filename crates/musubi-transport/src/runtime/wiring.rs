//! What the carriers of a node are made with.
//!
//! What you may rely on: the incarnations of a node's runs differ, within a process for certain, between two of them but for a
//! chance of one in 2^31.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use musubi_linux::descriptor::Descriptor;

use crate::frame::Kinds;
use crate::topology::Topology;
use crate::{LinkError, NodeId};

/// What a carrier is made with.
#[derive(Debug)]
pub struct Wiring {
    /// The system.
    pub topology: Arc<Topology>,
    /// This node.
    pub me: NodeId,
    /// Tells this run from others.
    pub incarnation: u32,
    /// Where descriptors are registered.
    pub epoll: Arc<Descriptor>,
    /// The frames that the node's protocol speaks.
    pub kinds: &'static Kinds,
}

impl Wiring {
    pub(super) fn new(topology: Arc<Topology>, me: NodeId, kinds: &'static Kinds) -> Result<Wiring, LinkError> {
        let epoll = Descriptor::epoll().map_err(|_| LinkError::Unavailable)?;
        Ok(Wiring { topology, me, incarnation: next_incarnation(), epoll: Arc::new(epoll), kinds })
    }
}

/// Even, and spreads neighbouring process numbers.
const PROCESSES_APART: u32 = 0x9e37_79b2;

/// Tells runs of a node apart: odd, by a hasher's random key from those of other processes, and one step on from the
/// last of this process, so that names of endpoints differ between a node's runs (see `Protocol::new`). Children of one
/// parent have its key and its steps, but not its number.
fn next_incarnation() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    static STEPS: AtomicU32 = AtomicU32::new(0);
    let first = FIRST.get_or_init(|| RandomState::new().build_hasher().finish() as u32 | 1);
    let process = std::process::id().wrapping_mul(PROCESSES_APART);
    first.wrapping_add(process).wrapping_add(2 * STEPS.fetch_add(1, Ordering::Relaxed))
}
