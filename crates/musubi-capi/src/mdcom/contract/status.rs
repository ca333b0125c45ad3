//! Codes of the C interface, and the tables that map errors to them.
//!
//! What you may rely on: every error of the crates below has a code; one that these tables do not know yet is
//! [`Status::Internal`], and a test fails when such a one is added.

use core::ffi::CStr;

/// `mdcom_status_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs, reason = "include/mdcom.h documents them; a test compares the two")]
pub enum Status {
    Ok = 0,
    Timeout = -1,
    Empty = -2,
    NoBlock = -3,
    Locked = -4,
    Peer = -5,
    Throttled = -6,
    NotReady = -7,
    Terminated = -8,
    PeerFault = -9,
    Argument = -20,
    Channel = -21,
    Side = -22,
    Block = -23,
    TooLong = -24,
    NotHeld = -25,
    NotInit = -26,
    Already = -27,
    Forked = -28,
    Busy = -29,
    Description = -40,
    Domain = -41,
    Plan = -42,
    Version = -43,
    Permission = -44,
    System = -45,
    Internal = -46,
}

/// Every code with its name in C and its text.
pub const STATUSES: [(Status, &str, &CStr); 27] = [
    (Status::Ok, "MDCOM_OK", c"done"),
    (Status::Timeout, "MDCOM_E_TIMEOUT", c"the timeout has passed"),
    (Status::Empty, "MDCOM_E_EMPTY", c"no message is queued"),
    (Status::NoBlock, "MDCOM_E_NO_BLOCK", c"no block is free"),
    (Status::Locked, "MDCOM_E_LOCKED", c"another participant or thread holds the lock"),
    (Status::Peer, "MDCOM_E_PEER", c"the peer at the other end has gone"),
    (Status::Throttled, "MDCOM_E_THROTTLED", c"the regulation of the channel holds the message back"),
    (Status::NotReady, "MDCOM_E_NOT_READY", c"the memory or the members of the channel are not there yet"),
    (Status::Terminated, "MDCOM_E_TERMINATED", c"mdcom_term() was called"),
    (Status::PeerFault, "MDCOM_E_PEER_FAULT", c"the peer wrote what the description does not allow"),
    (Status::Argument, "MDCOM_E_ARGUMENT", c"an argument is NULL or out of range"),
    (Status::Channel, "MDCOM_E_CHANNEL", c"no such channel, or this domain has no part in it"),
    (Status::Side, "MDCOM_E_SIDE", c"the function is for the other side of the channel"),
    (Status::Block, "MDCOM_E_BLOCK", c"the block is not in the caller's hands"),
    (Status::TooLong, "MDCOM_E_TOO_LONG", c"the length is larger than a block"),
    (Status::NotHeld, "MDCOM_E_NOT_HELD", c"the calling thread does not hold the lock"),
    (Status::NotInit, "MDCOM_E_NOT_INIT", c"mdcom_init() was not called or has not returned"),
    (Status::Already, "MDCOM_E_ALREADY", c"mdcom_init() was called before"),
    (Status::Forked, "MDCOM_E_FORKED", c"this process is a fork of the attached one"),
    (Status::Busy, "MDCOM_E_BUSY", c"another process of the domain has this channel end or slot"),
    (Status::Description, "MDCOM_E_DESCRIPTION", c"the description cannot be read or has mistakes"),
    (Status::Domain, "MDCOM_E_DOMAIN", c"no such domain or slot for a Linux process"),
    (Status::Plan, "MDCOM_E_PLAN", c"the program or a peer was built from another description"),
    (Status::Version, "MDCOM_E_VERSION", c"a peer speaks another version of Musubi"),
    (Status::Permission, "MDCOM_E_PERMISSION", c"this user is not allowed, or a permission is missing"),
    (Status::System, "MDCOM_E_SYSTEM", c"the operating system refused"),
    (Status::Internal, "MDCOM_E_INTERNAL", c"a mistake in Musubi"),
];

/// The text of a code as it came from C, which may be any number.
pub(crate) fn text_of(code: i32) -> &'static CStr {
    let known = STATUSES.iter().find(|(status, _, _)| *status as i32 == code);
    known.map_or(c"not a code of MDCOM", |(_, _, text)| text)
}

/// The table for the core.
pub(crate) fn status_of_core(error: &musubi_core::Error) -> Status {
    use musubi_core::Error;
    match error {
        Error::Plan => Status::Description,
        Error::Mismatch => Status::Plan,
        Error::NoBlock => Status::NoBlock,
        Error::Empty => Status::Empty,
        Error::NotHeld => Status::NotHeld,
        Error::TooLong => Status::TooLong,
        Error::Throttled { .. } => Status::Throttled,
        Error::Locked => Status::Locked,
        Error::Timeout => Status::Timeout,
        Error::PeerGone => Status::Peer,
        Error::NotReady => Status::NotReady,
        Error::PeerFault => Status::PeerFault,
        Error::InUse => Status::Busy,
        Error::NotOurs => Status::Channel,
        // Of the multiprocessor layer inside a domain, and of lanes between nodes; no channel gives them.
        Error::Unresponsive { .. } | Error::TooDeep | Error::Crowded | Error::Full => Status::Internal,
        _ => Status::Internal,
    }
}

/// What a port without an operating system answers with.
#[cfg(target_os = "none")]
impl From<musubi_core::Error> for Status {
    fn from(error: musubi_core::Error) -> Status {
        status_of_core(&error)
    }
}

/// The table for the Linux port.
#[cfg(not(target_os = "none"))]
pub(crate) fn status_of_port(error: &musubi_linux::Error) -> Status {
    use musubi_linux::Error;
    match error {
        Error::Plan => Status::Description,
        Error::NoSuchDomain(..) | Error::NoSuchSlot { .. } | Error::OtherPort(..) => Status::Domain,
        Error::NotOurs { .. } => Status::Channel,
        Error::Instance(_) | Error::Argument(_) => Status::Argument,
        // A node is of MCAPI; no participant gives that one.
        Error::DomainFull { .. } | Error::EndInUse { .. } | Error::SegmentInUse(_) | Error::NodeOccupied { .. } => {
            Status::Busy
        }
        Error::NameForeign { .. }
        | Error::UserNotAllowed { .. }
        | Error::RefusedUser { .. }
        | Error::Permission { .. } => Status::Permission,
        Error::PlanMismatch { .. } => Status::Plan,
        Error::VersionMismatch { .. } => Status::Version,
        Error::TimedOut(_) => Status::Timeout,
        Error::Left => Status::Terminated,
        Error::Forked => Status::Forked,
        Error::Refused { .. }
        | Error::NotLetIn { .. }
        | Error::System { .. }
        | Error::NoDevice(_)
        | Error::OtherDevice(_) => Status::System,
        _ => Status::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names of the variants in the source of an error enum.
    fn variants(source: &str) -> BTreeSet<String> {
        let body = source.split_once("pub enum Error {").unwrap().1.split_once("\n}").unwrap().0;
        let lines = body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
        let names = lines.map(|line| line.trim().chars().take_while(char::is_ascii_alphabetic).collect::<String>());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Names that a table of this file mentions.
    fn mapped(function: &str) -> BTreeSet<String> {
        let body = include_str!("status.rs").split_once(function).unwrap().1.split_once("\n}").unwrap().0;
        let names = body.split("Error::").skip(1);
        names.map(|rest| rest.chars().take_while(char::is_ascii_alphabetic).collect()).collect()
    }

    #[test]
    fn every_error_of_the_crates_below_has_a_code_of_its_own_choice() {
        let core = variants(include_str!("../../../../musubi-core/src/error.rs"));
        assert!(core.contains("PeerFault") && core.len() >= 12, "{core:?}");
        let extra: BTreeSet<String> = ["use", "Error"].map(String::from).into();
        assert_eq!(core, &mapped("fn status_of_core") - &extra);
        let port = variants(include_str!("../../../../musubi-linux/src/error.rs"));
        assert!(port.contains("System") && port.len() >= 19, "{port:?}");
        assert_eq!(port, &mapped("fn status_of_port") - &extra);
    }

    #[test]
    fn codes_and_texts_are_different() {
        let codes: BTreeSet<i32> = STATUSES.iter().map(|(status, _, _)| *status as i32).collect();
        let texts: BTreeSet<&CStr> = STATUSES.iter().map(|(_, _, text)| *text).collect();
        assert_eq!((codes.len(), texts.len()), (STATUSES.len(), STATUSES.len()));
        assert_eq!(text_of(1234), c"not a code of MDCOM");
    }
}
