//! Entries as far as they could be read: what the grammar makes and the rules check.
//!
//! How it works: a draft is an entry with stand-ins for wrong values, plus the places that a rule points at when it does
//! not hold. It becomes part of a description when no rule has anything against it.

use musubi_core::plan::{Liveness, Role};

use crate::description::{AddressMap, DomainEntry, FifoEntry, SmemEntry};
use crate::network::NetworkDraft;
use crate::nics::NicDraft;
use crate::nodes::NodeDraft;
use crate::reader::Located;
use crate::report::Span;

/// What `[system]` says.
pub(crate) struct SystemDraft {
    pub(crate) name: Option<Located<String>>,
    pub(crate) address_map: Option<Located<AddressMap>>,
    pub(crate) cells: Option<Located<u64>>,
}

/// A domain as far as it could be read.
pub(crate) struct DomainDraft {
    pub(crate) entry: DomainEntry,
    pub(crate) name: Option<Located<String>>,
    pub(crate) role: Option<Located<Role>>,
    pub(crate) port_at: Span,
    pub(crate) doorbell_at: Option<Span>,
    pub(crate) at: Span,
}

/// A FIFO channel as far as it could be read.
pub(crate) struct FifoDraft {
    /// With `from` and `to` still 0.
    pub(crate) entry: FifoEntry,
    pub(crate) name: Option<Located<String>>,
    pub(crate) from: Option<Located<String>>,
    pub(crate) to: Option<Located<String>>,
    /// Whether blocks and block size are both known.
    pub(crate) sized: bool,
    pub(crate) level_at: Option<Span>,
    pub(crate) at: Span,
}

/// An SMEM channel as far as it could be read.
pub(crate) struct SmemDraft {
    /// With `domains` still empty.
    pub(crate) entry: SmemEntry,
    pub(crate) name: Option<Located<String>>,
    pub(crate) members: Option<Located<Vec<Located<String>>>>,
    pub(crate) lock_at: Option<Span>,
    pub(crate) at: Span,
}

/// Everything that a file says.
pub(crate) struct Drafts {
    pub(crate) system: SystemDraft,
    pub(crate) liveness: Liveness,
    pub(crate) domains: Vec<DomainDraft>,
    pub(crate) fifos: Vec<FifoDraft>,
    pub(crate) smems: Vec<SmemDraft>,
    pub(crate) network: NetworkDraft,
    pub(crate) nodes: Vec<NodeDraft>,
    pub(crate) nics: Vec<NicDraft>,
}
