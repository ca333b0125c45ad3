//! The configurator: a description file becomes a checked plan and the files that each side needs.
//!
//! What you may rely on: a [`Description`] exists only if every rule of docs/description.md holds; what is wrong with a
//! file is reported at once, each mistake with file, line and column ([`Report`]). Equal systems have equal plan hashes,
//! however their files are written.
//!
//! How it works: [`parse`] reads TOML with the place of every key and value, `grammar` turns tables into entries,
//! `rules` checks them against each other, `digest` computes the plan's hash. [`MemoryMap`] lays the participants'
//! sections out; [`check`] and [`generate`] write it down.
//!
//! A description may have domains and channels (of MDCOM), nodes (of MCAPI), NICs (of the VI Architecture), or all of these. The former become a
//! [`musubi_core::plan::Plan`], the others a [`musubi_transport::topology::Topology`] each, all with a hash of their own.
//!
//! What it does not do: attach to anything, or decide the bytes inside a section; that is [`musubi_core::layout`].
#![forbid(unsafe_code)]

mod accounts;
mod check;
mod description;
mod digest;
mod drafts;
mod error;
mod generate;
mod grammar;
mod guarantees;
mod load;
mod map;
mod network;
mod nics;
mod nodes;
mod print;
mod quantity;
mod reader;
mod report;
mod rules;
pub mod table;

pub use check::check;
pub use description::{AddressMap, Description};
pub use error::Error;
pub use generate::generate;
pub use load::{
    DESCRIPTION_BYTES_MAX, Reader, SYSTEM_VARIABLE, find, from_env_by, load, load_by, parse, topology_from_env,
    topology_from_env_by,
};
pub use map::{Content, MemoryMap, Region};
pub use nics::{NicEntry, Nics};
pub use print::print;
pub use report::{Finding, Report};
