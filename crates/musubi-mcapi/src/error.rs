//! Why an operation was refused or failed. MCAPI's status codes are mapped from these in one table.

use musubi_transport::LinkError;

/// What the caller can do about it is told by the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Error {
    /// A value no call takes (correct the call).
    Parameter = 1,
    /// No such domain in the system.
    DomainInvalid = 2,
    /// No such node in the system.
    NodeInvalid = 3,
    /// The node runs already.
    NodeInitialized = 4,
    /// The node could not start: links or description.
    NodeInitFailed = 5,
    /// The node has ended, or has not begun.
    NodeNotInitialized = 6,
    /// A port out of range or reserved, or none left.
    PortInvalid = 7,
    /// No such endpoint (any more).
    EndpointInvalid = 8,
    /// The port has an endpoint.
    EndpointExists = 9,
    /// An endpoint of a channel can be had by one node only.
    EndpointGetLimit = 10,
    /// The endpoint was deleted meanwhile.
    EndpointDeleted = 11,
    /// Only its owner may.
    EndpointNotOwner = 12,
    /// Only on the owner's node.
    EndpointRemote = 13,
    /// The two ends differ in an attribute that must be equal.
    AttributeIncompatible = 14,
    /// The value's size is not the attribute's.
    AttributeSize = 15,
    /// No such attribute.
    AttributeNumber = 16,
    /// A value that the attribute cannot have.
    AttributeValue = 17,
    /// Not supported here.
    AttributeNotSupported = 18,
    /// The attribute is read only.
    AttributeReadOnly = 19,
    /// Longer than messages are.
    MessageSize = 20,
    /// The message was longer than the buffer.
    MessageTruncated = 21,
    /// The channel is open.
    ChannelOpen = 22,
    /// The channel is of the other type.
    ChannelType = 23,
    /// The other end is meant.
    ChannelDirection = 24,
    /// The endpoint is connected.
    ChannelConnected = 25,
    /// An opening is under way.
    ChannelOpenPending = 26,
    /// A closing is under way.
    ChannelClosePending = 27,
    /// The channel is not open.
    ChannelNotOpen = 28,
    /// No such channel (any more).
    ChannelInvalid = 29,
    /// Longer than packets are.
    PacketSize = 30,
    /// Not delivered: the peer or the way to it is gone.
    Transmission = 31,
    /// No such priority.
    Priority = 32,
    /// Not a buffer of a packet in hand.
    BufferInvalid = 33,
    /// Memory for this is used up for now; try again.
    MemoryLimit = 34,
    /// No such request (any more).
    RequestInvalid = 35,
    /// Too many requests at a time.
    RequestLimit = 36,
    /// The request was cancelled.
    RequestCancelled = 37,
    /// Another thread waits for the request.
    WaitPending = 38,
    /// The deadline has passed.
    Timeout = 39,
    /// A scalar of another size is next.
    ScalarSize = 40,
    /// Anything else; what it was is in the node's log.
    General = 41,
}

impl Error {
    /// All, in the order of their numbers.
    pub const ALL: [Error; 41] = {
        use Error::*;
        [
            Parameter,
            DomainInvalid,
            NodeInvalid,
            NodeInitialized,
            NodeInitFailed,
            NodeNotInitialized,
            PortInvalid,
            EndpointInvalid,
            EndpointExists,
            EndpointGetLimit,
            EndpointDeleted,
            EndpointNotOwner,
            EndpointRemote,
            AttributeIncompatible,
            AttributeSize,
            AttributeNumber,
            AttributeValue,
            AttributeNotSupported,
            AttributeReadOnly,
            MessageSize,
            MessageTruncated,
            ChannelOpen,
            ChannelType,
            ChannelDirection,
            ChannelConnected,
            ChannelOpenPending,
            ChannelClosePending,
            ChannelNotOpen,
            ChannelInvalid,
            PacketSize,
            Transmission,
            Priority,
            BufferInvalid,
            MemoryLimit,
            RequestInvalid,
            RequestLimit,
            RequestCancelled,
            WaitPending,
            Timeout,
            ScalarSize,
            General,
        ]
    };

    /// The number that stands for it on the wire (docs/wire.md); never 0.
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// The error that a peer names; what it cannot name is [`Error::General`].
    pub fn from_wire(number: u8) -> Option<Error> {
        match number {
            0 => None,
            _ => Some(Error::ALL.get(usize::from(number) - 1).copied().unwrap_or(Error::General)),
        }
    }
}

impl From<LinkError> for Error {
    #[inline]
    fn from(error: LinkError) -> Error {
        match error {
            LinkError::DomainUnknown => Error::DomainInvalid,
            LinkError::NodeUnknown => Error::NodeInvalid,
            LinkError::NodeRuns => Error::NodeInitialized,
            LinkError::Unavailable => Error::NodeInitFailed,
            LinkError::Ended => Error::NodeNotInitialized,
            LinkError::Timeout => Error::Timeout,
            _ => Error::General,
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for error in Error::ALL {
            assert_eq!(Error::from_wire(error.wire()), Some(error));
        }
        assert_eq!(Error::from_wire(0), None);
        assert_eq!(Error::from_wire(200), Some(Error::General));
    }

    #[test]
    fn what_links_say_is_said_in_words_of_the_standard() {
        let said = [
            (LinkError::DomainUnknown, Error::DomainInvalid),
            (LinkError::NodeUnknown, Error::NodeInvalid),
            (LinkError::NodeRuns, Error::NodeInitialized),
            (LinkError::Unavailable, Error::NodeInitFailed),
            (LinkError::Ended, Error::NodeNotInitialized),
            (LinkError::Timeout, Error::Timeout),
        ];
        for (link, error) in said {
            assert_eq!(Error::from(link), error);
        }
    }
}
