//! The words in which completions and errors are told, with the values of `vipl.h`.

use super::descriptor::Operation;

/// The status word of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// `VIP_STATUS_DONE`.
    pub const DONE: Status = Status(0x1);
    /// `VIP_STATUS_FORMAT_ERROR`: the descriptor is not one.
    pub const FORMAT_ERROR: Status = Status(0x2);
    /// `VIP_STATUS_PROTECTION_ERROR`: a local place is not the VI's to use.
    pub const PROTECTION_ERROR: Status = Status(0x4);
    /// `VIP_STATUS_LENGTH_ERROR`: too long, or not the sum of its segments.
    pub const LENGTH_ERROR: Status = Status(0x8);
    /// `VIP_STATUS_PARTIAL_ERROR`: a part of the data had been moved.
    pub const PARTIAL_ERROR: Status = Status(0x10);
    /// `VIP_STATUS_DESC_FLUSHED_ERROR`: the connection ended first, or there was none.
    pub const FLUSHED: Status = Status(0x20);
    /// `VIP_STATUS_TRANSPORT_ERROR`: what carries the connection failed.
    pub const TRANSPORT_ERROR: Status = Status(0x40);
    /// `VIP_STATUS_RDMA_PROT_ERROR`: the remote place may not be used so.
    pub const RDMA_PROTECTION_ERROR: Status = Status(0x80);
    /// `VIP_STATUS_REMOTE_DESC_ERROR`: the remote side had no descriptor that fits.
    pub const REMOTE_DESCRIPTOR_ERROR: Status = Status(0x100);
    /// `VIP_STATUS_ERROR_MASK`.
    pub const ERRORS: Status = Status(0x1fe);
    /// `VIP_STATUS_OP_MASK`.
    pub const OPERATIONS: Status = Status(0x7_0000);
    /// `VIP_STATUS_IMMEDIATE`.
    pub const IMMEDIATE: Status = Status(0x8_0000);
    /// `VIP_STATUS_OP_RECEIVE`.
    pub const OP_RECEIVE: Status = Status(0x1_0000);
    /// `VIP_STATUS_OP_REMOTE_RDMA_WRITE`.
    pub const OP_REMOTE_WRITE: Status = Status(0x3_0000);

    /// What was done, for a descriptor of the send queue.
    pub const fn of_send(operation: Operation) -> Status {
        Status(match operation {
            Operation::SendReceive => 0,
            Operation::Write => 0x2_0000,
            Operation::Read => 0x4_0000,
        })
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }

    /// Whether it has any of these bits.
    pub const fn has(self, other: Status) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it says that something went wrong.
    pub const fn is_error(self) -> bool {
        self.has(Status::ERRORS)
    }
}

/// What is written into a descriptor when it completes: everything else first, the status last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Bytes of the message; of a failed receive those that were placed.
    pub bytes: u32,
    /// Immediate data that came, if the status says so.
    pub immediate: u32,
    /// With [`Status::DONE`].
    pub status: Status,
}

impl Completion {
    /// Of nothing.
    pub const NONE: Completion = Completion { bytes: 0, immediate: 0, status: Status(0) };

    /// Whether immediate data came.
    pub const fn has_immediate(&self) -> bool {
        self.status.has(Status::IMMEDIATE)
    }

    /// Whether the descriptor's length is to say how many bytes came: of receives. That of the send queue's descriptors is the
    /// program's, also where they fail.
    pub const fn has_length(&self) -> bool {
        let operation = self.status.0 & Status::OPERATIONS.0;
        operation == Status::OP_RECEIVE.0 || operation == Status::OP_REMOTE_WRITE.0
    }
}

/// `VIP_ERROR_CODE`: what is told through the error handler, as no descriptor says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum AsyncError {
    /// A descriptor cannot be read or written: its alignment, or its memory handle.
    PostDescriptor = 0,
    /// The connection was lost.
    ConnectionLost = 1,
    /// A message came and no receive was posted.
    ReceiveQueueEmpty = 2,
    /// More descriptors than the queue holds.
    Overrun = 3,
    /// A peer's write was refused.
    WriteProtection = 4,
    /// A peer's write was damaged.
    WriteData = 5,
    /// A peer's write ended in the middle.
    WriteAborted = 6,
    /// A peer's read was refused.
    ReadProtection = 7,
    /// A completion could not be told.
    CompletionProtection = 8,
    /// What carries the connection failed.
    Transport = 9,
    /// A mistake in Musubi.
    Catastrophic = 10,
}

impl AsyncError {
    /// Every error.
    pub const ALL: [AsyncError; 11] = [
        AsyncError::PostDescriptor,
        AsyncError::ConnectionLost,
        AsyncError::ReceiveQueueEmpty,
        AsyncError::Overrun,
        AsyncError::WriteProtection,
        AsyncError::WriteData,
        AsyncError::WriteAborted,
        AsyncError::ReadProtection,
        AsyncError::CompletionProtection,
        AsyncError::Transport,
        AsyncError::Catastrophic,
    ];
}
