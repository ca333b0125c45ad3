//! Limits of a system of nodes, the same on every node.

/// Largest domain number.
pub const DOMAIN_MAX: u32 = 31;
/// Largest node number within a domain.
pub const NODE_MAX: u32 = 1023;
/// Domain of the nodes that are kept for tools: every described system has them without a description.
pub const TOOL_DOMAIN: u32 = DOMAIN_MAX;
/// Their numbers. The first half reaches others by shared memory, the second by TCP.
pub const TOOL_NODES: core::ops::RangeInclusive<u32> = 1008..=NODE_MAX;
/// First number of the half that uses TCP.
pub const TOOL_NODE_TCP: u32 = 1016;
/// Most payload of a frame, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Most processes that take one place in turn, each as a node of its own.
pub const SLOTS_MAX: u16 = 16;
/// Most places whose nodes are slots: their nodes stay below those of the domain that is kept for tools.
pub const PLACES_MAX: u16 = ((TOOL_DOMAIN as usize * (NODE_MAX as usize + 1)) / SLOTS_MAX as usize) as u16;

// ---- what is finished before something more urgent has its turn ----

/// Most reports that are taken in at a time, before a thread looks at its own condition again.
pub const REPORTS_MAX: u32 = 256;
/// Most frames in a row from one link in shared memory while others may have some.
pub const ROW_MAX: u32 = 32;
/// Bytes that a link over TCP makes ready at a time: what is ready is not overtaken.
pub const READY_BYTES: usize = 64 * 1024;
/// The same of frames that were held back to go together.
pub const BURST_BYTES: usize = 128 * 1024;
/// Bytes that the kernel may hold for the sender and the receiver of a connection to another machine.
pub const KERNEL_BYTES: (usize, usize) = (128 * 1024, 128 * 1024);
/// The same within this machine: so much is written in the time in which a receiver is woken, so that the sender runs on
/// meanwhile instead of sleeping too. More would only stand before an urgent frame when the receiver is behind.
pub const KERNEL_BYTES_WITHIN: (usize, usize) = (256 * 1024, 512 * 1024);
/// Bytes of a look at a connection after which there is no further read: an urgent frame among them waits until they are taken in.
pub const LOOK_BYTES: usize = 128 * 1024;
/// Most bytes of one frame of a protocol that cuts its messages itself: both sides copy at the same time, and a more urgent
/// frame waits for one.
pub const PART_BYTES_MAX: usize = 64 * 1024;
