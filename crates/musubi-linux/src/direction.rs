//! The two ends of a channel, as names, messages, sections and errors speak of them.

use musubi_core::layout::{Part, rx, tx};

/// Which end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The end that sends.
    Send,
    /// The end that receives.
    Receive,
}

impl Direction {
    /// The end at the other side.
    pub fn other(self) -> Direction {
        match self {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
        }
    }

    /// The word of such an end that says whether it is in use.
    pub(crate) fn open_word(self) -> u32 {
        match self {
            Direction::Send => tx::OPEN,
            Direction::Receive => rx::OPEN,
        }
    }

    /// Such an end of a channel in its holder's section.
    pub(crate) fn part(self, fifo: u16) -> Part {
        match self {
            Direction::Send => Part::Tx(fifo),
            Direction::Receive => Part::Rx(fifo),
        }
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Direction::Send => "sending",
            Direction::Receive => "receiving",
        })
    }
}
