//! A checked description, and the plan that it stands for.
//!
//! What you may rely on: every [`Description`] passed all rules, so its plan passes [`Plan::check`] if it has domains.
//!
//! How it works: entries own their names and lists; a [`Plan`] that borrows them is built when it is asked for.

use std::sync::{Mutex, PoisonError};

use musubi_core::plan::{
    Domain, Doorbell, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};
use musubi_transport::topology::Topology;

use crate::nics::Nics;

/// A checked description of one system: domains with channels, nodes, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub(crate) name: String,
    pub(crate) domains: Vec<DomainEntry>,
    pub(crate) fifos: Vec<FifoEntry>,
    pub(crate) smems: Vec<SmemEntry>,
    pub(crate) liveness: Liveness,
    pub(crate) address_map: Option<AddressMap>,
    /// Of the devicetree only; both sides need not agree on it.
    pub(crate) cells: u32,
    pub(crate) hash: u64,
    pub(crate) topology: Topology,
    pub(crate) nics: Nics,
}

/// Where the shared memory lies, for ports that cannot ask an operating system for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// First address; a multiple of the page size.
    pub base: u64,
    /// Length in bytes; a multiple of the page size.
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DomainEntry {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) port: PortKind,
    pub(crate) trust: Trust,
    pub(crate) participants: u16,
    pub(crate) uids: Vec<u32>,
    pub(crate) gids: Vec<u32>,
    pub(crate) spin_ns: u32,
    pub(crate) doorbell: Option<Doorbell>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FifoEntry {
    pub(crate) name: String,
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) blocks: u32,
    pub(crate) block_bytes: u32,
    pub(crate) priority: u8,
    pub(crate) filter: FilterRule,
    pub(crate) regulation: Regulation,
    pub(crate) budget_ns: u32,
    pub(crate) on_restart: OnRestart,
    pub(crate) sample_every: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmemEntry {
    pub(crate) name: String,
    pub(crate) domains: Vec<u16>,
    pub(crate) bytes: u32,
    pub(crate) lock: LockKind,
}

/// What [`Description::leak`] keeps: the plan has pointers into a description, not to it, and who looks for lost memory
/// wants one to it.
static LEAKED: Mutex<Vec<&'static Description>> = Mutex::new(Vec::new());

impl Description {
    /// The system's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plan's hash ([`Plan::hash`]).
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Where the shared memory lies, if the description says so.
    pub fn address_map(&self) -> Option<AddressMap> {
        self.address_map
    }

    /// Whether it has domains. Without one there is no plan that anything could attach to.
    pub fn has_domains(&self) -> bool {
        !self.domains.is_empty()
    }

    /// The nodes and their places. Without any `[[node]]`: all nodes on this machine, by shared memory.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The NICs of the VI Architecture and their places.
    pub fn nics(&self) -> &Nics {
        &self.nics
    }

    /// Calls `use_plan` with the plan.
    pub fn with_plan<R>(&self, use_plan: impl FnOnce(&Plan<'_>) -> R) -> R {
        let domains: Vec<Domain<'_>> = self.domains.iter().map(DomainEntry::borrow).collect();
        let fifos: Vec<Fifo<'_>> = self.fifos.iter().map(FifoEntry::borrow).collect();
        let smems: Vec<Smem<'_>> = self.smems.iter().map(SmemEntry::borrow).collect();
        use_plan(&Plan {
            name: &self.name,
            hash: self.hash,
            domains: &domains,
            fifos: &fifos,
            smems: &smems,
            liveness: self.liveness,
        })
    }

    /// The plan for the rest of the process. Leaks the description's memory, once a call: meant for a program that
    /// loads its description at start.
    pub fn leak(self) -> &'static Plan<'static> {
        let description: &'static Description = Box::leak(Box::new(self));
        LEAKED.lock().unwrap_or_else(PoisonError::into_inner).push(description);
        Box::leak(Box::new(Plan {
            name: &description.name,
            hash: description.hash,
            domains: Vec::leak(description.domains.iter().map(DomainEntry::borrow).collect()),
            fifos: Vec::leak(description.fifos.iter().map(FifoEntry::borrow).collect()),
            smems: Vec::leak(description.smems.iter().map(SmemEntry::borrow).collect()),
            liveness: description.liveness,
        }))
    }
}

impl DomainEntry {
    fn borrow(&self) -> Domain<'_> {
        Domain {
            name: &self.name,
            role: self.role,
            port: self.port,
            trust: self.trust,
            participants: self.participants,
            uids: &self.uids,
            gids: &self.gids,
            spin_ns: self.spin_ns,
        }
    }
}

impl FifoEntry {
    pub(crate) fn borrow(&self) -> Fifo<'_> {
        Fifo {
            name: &self.name,
            from: self.from,
            to: self.to,
            blocks: self.blocks,
            block_bytes: self.block_bytes,
            priority: self.priority,
            filter: self.filter,
            regulation: self.regulation,
            budget_ns: self.budget_ns,
            on_restart: self.on_restart,
            sample_every: self.sample_every,
        }
    }
}

impl SmemEntry {
    fn borrow(&self) -> Smem<'_> {
        Smem { name: &self.name, domains: &self.domains, bytes: self.bytes, lock: self.lock }
    }
}
