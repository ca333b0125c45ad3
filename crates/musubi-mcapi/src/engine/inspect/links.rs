//! The records of what links say of themselves.

use alloc::vec::Vec;

use super::fields::record;
use super::{DOOR, ENTRY, LINK, WAKES};
use musubi_transport::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};

record!(
    LinkStatus,
    LINK,
    node,
    kind,
    state,
    rtt_ns,
    frames_sent,
    frames_received,
    bytes_sent,
    bytes_received,
    connections,
    resumed,
    cuts,
    repeated,
    violations,
    silences,
    refused,
    waited
);
record!(
    AcceptorStatus,
    DOOR,
    accepted,
    admitted,
    dialed,
    dials_failed,
    hung_up,
    throttled,
    garbage,
    version,
    system,
    plan,
    recipient,
    unknown_node,
    identity,
    busy,
    crossed,
    stale,
    session_unknown,
    leaving,
    time_out,
    other_authority,
    expired,
    no_certificate,
    disbelieved,
    other_tls,
    memory_refused,
    memory_garbage,
    memory_silent,
    memory_faults,
    memory_strangers
);
record!(LoggedEvent, ENTRY, age_ns, times, text);
record!(WakeStatus, WAKES, woken, frames, raised, deferred);
