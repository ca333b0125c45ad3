//! Why a node could not start, or a wait has ended without what was waited for.
//!
//! What it does not do: speak for an interface. Each has errors of its own and maps these to them.

/// What the caller can do about it is told by the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkError {
    /// No node of the system is in this domain.
    DomainUnknown,
    /// No such node in the system.
    NodeUnknown,
    /// The node runs already.
    NodeRuns,
    /// The node could not start: links, threads or description.
    Unavailable,
    /// The node has ended, or has not begun (in this process: a child made by `fork` has no part in it).
    Ended,
    /// The deadline has passed.
    Timeout,
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for LinkError {}
