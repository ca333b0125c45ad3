//! What may watch locks, cross calls and waits: statistics, the order checker, a recorder, the report on stuck cores.
//!
//! What you may rely on: where it is off, it has no size and its calls are empty.
//!
//! How it works: a lock has a [`Watch`], the cores' interprocessor structure an [`observe::Observer`], as type parameters.

pub mod observe;
pub mod order;
pub mod recorder;
pub mod statistics;
pub mod stuck;
pub mod waiting;
pub mod watch;

pub use order::{Class, Order, Violation};
pub use statistics::Statistics;
pub use watch::{Noted, Off, Watch};
