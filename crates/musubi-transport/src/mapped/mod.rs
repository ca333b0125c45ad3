//! A node without an operating system, or beside one: a core or a task whose links are lanes in memory that all nodes map.
//!
//! What you may rely on: everything that the engine says holds here too; what a node committed before it ended or began anew is
//! taken in before its end is reported. Every wait has a deadline. The heap is used when the node starts and grows with what
//! is open and under way (endpoints, requests, unread messages and packets), which limits and credit bound: see
//! docs/GUARANTEES.md for numbers.
//!
//! How it works: a [`Table`] says which nodes there are and how large the links are; each program has the same. A [`Node`] has
//! one engine and, through [`musubi_core::lane::Meeting`]s, a link with every other node of the table that is there. There is
//! no thread and no leader: a call that waits looks at the links itself, for [`Options::looks`] rounds; then it lets its
//! [`Host`] rest (WFI, an RTOS's sleep, a poll) until somebody rings, or for 10 ms at most. Several
//! tasks may call; one that rests lets the others do so, and whichever looks takes in what has come for all.
//!
//! What it does not do: answer peers while nobody calls; a program that computes for long calls [`Node::serve`] now and then.
//! Notice that a node stands still: messages for it stop at its credit, and only its new run, or its leaving, ends the link.
//! Lend payload in place: it is copied out once. Carry payload that is longer than a block.

mod links;
mod node;
mod table;

pub use links::{MappedLinks, Refusals};
pub use musubi_core::channel::Deadline;
pub use musubi_core::lane::Region;
pub use musubi_core::mapped::Host;
pub use node::{Node, Options};
pub use table::Table;
