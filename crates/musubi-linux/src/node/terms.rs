//! What a presence is given, and what it says: its options, the descriptors it has, and what came of calls.

use std::sync::Arc;

use musubi_core::layout::LinkShape;

use super::hello::Refused;
use super::link::Link;
use crate::os::descriptor::Descriptor;

/// What a presence is for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the system.
    pub system: String,
    /// Hash of the description.
    pub hash: u64,
    /// Number of this node.
    pub node: u16,
    /// Number of names of nodes there are.
    pub nodes: u16,
    /// Tells this run from others of this node.
    pub incarnation: u32,
    /// Sizes of links.
    pub shape: LinkShape,
    /// Version of the frames.
    pub frames: u16,
    /// Where descriptors are watched.
    pub epoll: Arc<Descriptor>,
    /// Bits that are set in all tokens there, at 56 and above.
    pub token: u64,
}

/// The descriptor that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Somebody calls.
    Listener,
    /// The socket of the link or connection with this number.
    Socket(u32),
    /// The bell of the link with this number.
    Bell(u32),
}

impl Source {
    /// Reads a token.
    pub fn of(token: u64) -> Option<Source> {
        let number = token as u32;
        match token >> 32 & 0xff {
            0 => Some(Source::Listener),
            1 => Some(Source::Socket(number)),
            2 => Some(Source::Bell(number)),
            _ => None,
        }
    }

    pub(super) fn token(self) -> u64 {
        match self {
            Source::Listener => 0,
            Source::Socket(id) => 1 << 32 | u64::from(id),
            Source::Bell(id) => 2 << 32 | u64::from(id),
        }
    }
}

/// What came of calls.
#[derive(Debug)]
pub enum Event {
    /// There is a link. It replaces any other with that node.
    Linked(Box<Link>),
    /// The call of this node has failed, or was refused.
    Failed {
        /// Whom we called.
        peer: u16,
        /// Why it did not let us in; `None` if it did not answer.
        refused: Option<Refused>,
    },
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialed {
    /// An [`Event`] follows.
    Begun,
    /// Nobody is there.
    Absent,
    /// It could not be tried now.
    Busy,
}

/// How many callers were not let in, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Refused: who they were, what they sent, or at the wrong time.
    pub refused: u32,
    /// Cut off: what no node sends.
    pub garbage: u32,
    /// Cut off: silent for too long, or one too many.
    pub silent: u32,
    /// Names of nodes that another user holds.
    pub squatters: u32,
    /// The last reason.
    pub last: Option<Refused>,
}
