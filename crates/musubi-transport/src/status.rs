//! What links say of themselves, for tools on other nodes (by the frames of `musubi-mcapi`).
//!
//! What you may rely on: counts only grow while the node runs. What a node of another version does not know is 0.

use alloc::string::String;

use crate::NodeId;

/// The link with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// With which.
    pub node: NodeId,
    /// 1 shared memory, 2 TCP, 3 TCP through TLS (of the last connection).
    pub kind: u32,
    /// 0 none, 1 stands, 2 is sought, 3 broken and to be resumed.
    pub state: u32,
    /// The kernel's estimate of a round trip, nanoseconds; 0 if it has none.
    pub rtt_ns: u64,
    /// Frames handed to it.
    pub frames_sent: u64,
    /// Frames that came.
    pub frames_received: u64,
    /// Bytes that went out, all that is repeated or goes before frames included, without what TLS adds.
    pub bytes_sent: u64,
    /// Bytes that came, likewise.
    pub bytes_received: u64,
    /// Connections there have been.
    pub connections: u64,
    /// Of those, how many went on where one had broken.
    pub resumed: u64,
    /// Links given up: not resumed in time, or the protocol broken. What was not acknowledged may be lost.
    pub cuts: u64,
    /// Records sent again.
    pub repeated: u64,
    /// Connections ended because the peer broke the protocol.
    pub violations: u64,
    /// Connections ended because the peer was silent.
    pub silences: u64,
    /// Times that the peer refused us.
    pub refused: u64,
    /// Frames that waited until the rule of their class let them go; `None` of a node that does not say it.
    pub waited: Option<u64>,
}

/// What became of connections that others began, and the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptorStatus {
    /// Connections that others began.
    pub accepted: u64,
    /// Of those, how many said who they are and were let in.
    pub admitted: u64,
    /// Connections that this node began and that came to stand.
    pub dialed: u64,
    /// Attempts to begin one that came to nothing.
    pub dials_failed: u64,
    /// Ended before they had said who they are.
    pub hung_up: u64,
    /// Times that accepting was put off because too many came at once, or the system refused to.
    pub throttled: u64,
    /// Refused: see [`crate::session::Reason`] for this and the following.
    pub garbage: u64,
    /// Refused.
    pub version: u64,
    /// Refused.
    pub system: u64,
    /// Refused.
    pub plan: u64,
    /// Refused.
    pub recipient: u64,
    /// Refused.
    pub unknown_node: u64,
    /// Refused.
    pub identity: u64,
    /// Refused.
    pub busy: u64,
    /// Refused.
    pub crossed: u64,
    /// Refused.
    pub stale: u64,
    /// Refused.
    pub session_unknown: u64,
    /// Refused.
    pub leaving: u64,
    /// Refused.
    pub time_out: u64,
    /// TLS: the certificate is of another authority.
    pub other_authority: u64,
    /// TLS: the certificate has expired, or is not valid yet.
    pub expired: u64,
    /// TLS: no certificate.
    pub no_certificate: u64,
    /// TLS: the other side does not believe this node's certificate.
    pub disbelieved: u64,
    /// TLS: anything else, such as no TLS at all.
    pub other_tls: u64,
    /// Shared memory: refused for what they were or said, or the time of it.
    pub memory_refused: u64,
    /// Shared memory: cut off for what no node sends.
    pub memory_garbage: u64,
    /// Shared memory: cut off because they were silent, or one too many.
    pub memory_silent: u64,
    /// Shared memory: links ended because the peer broke the protocol.
    pub memory_faults: u64,
    /// Shared memory: links of nodes that the system does not reach this way.
    pub memory_strangers: u64,
}

/// How often a node's threads were woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeStatus {
    /// Times that threads of the program which slept in a call were woken to look again, by whomever.
    pub woken: u64,
    /// Of the classes with a filter, here and below: frames that came.
    pub frames: u64,
    /// Of those, how many woke at once.
    pub raised: u64,
    /// Wake-ups that came later, when a rule's time was over.
    pub deferred: u64,
}

/// Something that happened to connections, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// How long ago last, nanoseconds.
    pub age_ns: u64,
    /// How often.
    pub times: u64,
    /// What.
    pub text: String,
}
