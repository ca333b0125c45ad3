//! What there is with another node, without the links to it: credit of messages, what it is to be told.
//!
//! What you may rely on: pure; nothing here knows an engine, a link or a clock.

pub(super) mod flow;
pub(super) mod news;
