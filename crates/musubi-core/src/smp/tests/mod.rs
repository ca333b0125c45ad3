//! Tests of the multiprocessor layer on a host: threads as cores, models, explicit states.

#[cfg(not(loom))]
mod boot;
#[cfg(not(loom))]
mod call_history;
#[cfg(loom)]
mod call_models;
#[cfg(not(loom))]
mod calls;
#[cfg(not(loom))]
pub mod checker;
#[cfg(not(loom))]
mod details;
#[cfg(not(loom))]
mod exclusion;
#[cfg(not(loom))]
mod history;
#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod recorded;
#[cfg(not(loom))]
mod sharing;
#[cfg(not(loom))]
pub mod threads;
#[cfg(not(loom))]
mod unanswered;
#[cfg(not(loom))]
mod values;
#[cfg(not(loom))]
mod watching;
