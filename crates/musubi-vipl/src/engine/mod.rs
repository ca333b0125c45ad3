//! The pure part of a VI: state, input in, actions out.
//!
//! What you may rely on: every call takes a number of steps that is bounded by what it is given (segments of one
//! descriptor) and by what is posted and asked for (what is said until the wire is full, what is flushed); memory is bounded by [`Limits`]; nothing that a peer says makes it panic, nor
//! reach outside the regions that this side registered for it.
//!
//! How it works: [`Descriptor`] reads what a program wrote, once; a work queue keeps it in order;
//! [`Protection`] says what may be touched; a [`Vi`] moves between its states and says what to transmit, what to place and
//! what has completed. [`CompletionQueue`] gathers completions of several.
//!
//! What it does not do: find the peer (connection management), carry frames, copy bytes, wake threads.

mod attributes;
mod completion_queue;
mod credit;
mod descriptor;
mod frame;
mod incoming;
mod lease;
mod outgoing;
mod protection;
mod segments;
mod status;
#[cfg(test)]
mod tests;
mod vi;
mod work_queue;

pub use attributes::{Limits, MemoryAttributes, Mismatch, Reliability, ViAttributes};
pub use completion_queue::{CompletionQueue, CompletionSource, TooSmall};
pub use descriptor::{CONTROL_BYTES, ControlWords, Descriptor, Operation, SEGMENT_BYTES, SegmentWords};
pub use frame::{Handed, LocalMemory, ViFrame, Wire};
pub use lease::{Lease, LeaseWords};
pub use protection::{Access, MemoryHandle, NotPermitted, Protection, RegistrationError, RemotePlace, TagHandle};
pub use segments::{LocalPlace, Places, Segments};
pub use status::{AsyncError, Completion, Status};
pub use vi::{Happened, PeerVi, Queue, StateError, Vi, ViState};
pub use work_queue::{Dequeue, Oldest, Overrun};
