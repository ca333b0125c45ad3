//! What can go wrong in the Linux port, said so that the caller knows what to do.

use crate::direction::Direction;

/// Errors of the Linux port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan itself is broken.
    #[error("the plan breaks a limit; run `musubi check` on the description")]
    Plan,
    /// There is no such domain.
    #[error("the plan has no domain {0}; its domains are: {1}")]
    NoSuchDomain(String, String),
    /// The domain has fewer slots.
    #[error("domain {domain} has {slots} slots; slot {slot} does not exist")]
    NoSuchSlot {
        /// Name of the domain.
        domain: String,
        /// The slot asked for.
        slot: u16,
        /// Slots there are.
        slots: u16,
    },
    /// No such channel, or our domain is not on that side of it.
    #[error("domain {domain} does not have the {what} of channel number {channel}; look at the description")]
    NotOurs {
        /// Name of our domain.
        domain: String,
        /// Which part was asked for.
        what: &'static str,
        /// Number of the channel.
        channel: u16,
    },
    /// The domain is carried by another port.
    #[error("domain {0} is carried by another port; attach to one with `port = \"{1}\"`")]
    OtherPort(String, &'static str),
    /// There is no UIO device for the domain.
    #[error("no UIO device is named {0}: is the kernel module loaded, and the generated devicetree in use?")]
    NoDevice(String),
    /// The UIO device was made for another description.
    #[error("the UIO device {0} is not that of this description: generate the devicetree again, and start with it")]
    OtherDevice(String),
    /// The instance name cannot be part of a socket name.
    #[error("instance name {0:?} is not usable: 1 to 32 letters, digits, '-', '_' or '.'")]
    Instance(String),
    /// All slots of the domain were taken until the deadline.
    #[error("all {slots} slots of domain {domain} are taken; end another process or raise `participants`")]
    DomainFull {
        /// Name of the domain.
        domain: String,
        /// Slots there are.
        slots: u16,
    },
    /// A node of this number is there already.
    #[error("the node runs already: {name} is held by a living process")]
    NodeOccupied {
        /// The abstract socket name, without its leading zero byte.
        name: String,
    },
    /// A process of a user that the plan does not allow holds a name of this system.
    #[error(
        "user {uid} holds the socket name {name}, and the description does not allow that user there: run as one user, \
         name it under `uid`, or choose another instance name"
    )]
    NameForeign {
        /// The abstract socket name, without its leading zero byte.
        name: String,
        /// Who holds it.
        uid: u32,
    },
    /// The plan does not allow our user.
    #[error("user {uid} may not attach to domain {domain}; add it to `uid` or one of its groups to `gid`")]
    UserNotAllowed {
        /// Our effective user.
        uid: u32,
        /// Name of the domain.
        domain: String,
    },
    /// A peer refused our user.
    #[error("participant {participant} refused user {uid}: its description does not allow it in domain {domain}")]
    RefusedUser {
        /// Who refused.
        participant: u16,
        /// Our effective user.
        uid: u32,
        /// Name of our domain.
        domain: String,
    },
    /// A peer runs another plan.
    #[error("participant {participant} has plan {theirs:016x}, we have {ours:016x}: start both with one description")]
    PlanMismatch {
        /// Who refused or was refused.
        participant: u16,
        /// Hash of our plan.
        ours: u64,
        /// Hash of theirs.
        theirs: u64,
    },
    /// A peer runs another version of Musubi.
    #[error("participant {participant} speaks another version of Musubi: build both from one version")]
    VersionMismatch {
        /// Who refused.
        participant: u16,
    },
    /// A peer refused us for a reason that the plan cannot explain.
    #[error("participant {participant} refused us: {reason}")]
    Refused {
        /// Who refused.
        participant: u16,
        /// Why.
        reason: &'static str,
    },
    /// We did not let a peer in.
    #[error("participant {participant} was not let in: {reason}")]
    NotLetIn {
        /// Who called us.
        participant: u16,
        /// Why.
        reason: &'static str,
    },
    /// Another participant of our domain, or another thread, holds this channel end.
    #[error("the {direction} end of channel {channel} is in use by another participant or thread of this domain")]
    EndInUse {
        /// Name of the channel.
        channel: String,
        /// Which end.
        direction: Direction,
    },
    /// This participant has a handle of this SMEM channel already.
    #[error("SMEM channel {0} is open in this participant already; share that handle")]
    SegmentInUse(String),
    /// What was waited for did not come before the deadline.
    #[error("{0} did not come before the deadline")]
    TimedOut(&'static str),
    /// The participant has left.
    #[error("this participant has left the system; attach again")]
    Left,
    /// The process was forked; the child has no part in Musubi.
    #[error("this process is a fork of the attached one; attach again in the child")]
    Forked,
    /// A permission for real-time operation is missing.
    #[error("{action} needs {needed}; now: {current}")]
    Permission {
        /// What was tried.
        action: &'static str,
        /// What allows it.
        needed: &'static str,
        /// The present limit.
        current: String,
    },
    /// The argument of a real-time helper is out of range.
    #[error("{0}")]
    Argument(String),
    /// The kernel refused something else.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Names what was tried when a system call fails.
pub(crate) trait Tried<T> {
    /// The same result, with the action named in the error.
    fn tried(self, action: &'static str) -> Result<T, Error>;
}

impl Error {
    /// What the kernel said, if it is the kernel that did not do something.
    pub(crate) fn errno(&self) -> Option<rustix::io::Errno> {
        let Error::System { source, .. } = self else { return None };
        source.raw_os_error().map(rustix::io::Errno::from_raw_os_error)
    }
}

impl<T> Tried<T> for rustix::io::Result<T> {
    fn tried(self, action: &'static str) -> Result<T, Error> {
        self.map_err(|errno| Error::System { action, source: errno.into() })
    }
}

impl<T> Tried<T> for std::io::Result<T> {
    fn tried(self, action: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::System { action, source })
    }
}
