//! What a session says of itself: where it is with its connection, why it let go of one, and what it has done.

use super::hello::{Reason, Refusals};

/// Where a session is with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Disconnected,
    /// We have said hello and wait for the answer.
    Dialing,
    /// We have said welcome and wait for the first record.
    Greeted,
    /// Frames go to and fro.
    Live,
    /// Goodbyes have been exchanged: nothing more will come. Close the connection once everything has been consumed.
    Ended,
}

/// Why a session has let go of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The peer broke the protocol.
    Protocol,
    /// The peer refused us.
    Refused(Reason),
    /// Nothing came for `silence_ms`, or no answer to a hello.
    Silent,
}

/// What a session has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that came to carry frames.
    pub connections: u64,
    /// Of those, how many went on with a session that had lost its connection.
    pub resumed: u64,
    /// Sessions given up: not resumed in time, or the protocol broken.
    pub cuts: u64,
    /// Connections ended because the peer broke the protocol.
    pub violations: u64,
    /// Connections ended because the peer was silent.
    pub silences: u64,
    /// Refusals by the peer.
    pub refused: Refusals,
    /// Frames taken to be sent.
    pub frames_sent: u64,
    /// Frames that came.
    pub frames_received: u64,
    /// Records that were sent again after a cut.
    pub repeated: u64,
    /// Bytes written to connections.
    pub bytes_sent: u64,
    /// Bytes read from them.
    pub bytes_received: u64,
}

/// What a session has done with the frames of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Frames taken to be sent.
    pub taken: u64,
    /// Of those, how many waited until their class's rule let them go.
    pub waited: u64,
}
