//! Nodes that map one memory, on a host whose clock, bells and rests the test has in its hand: nothing here depends on time.

mod links;
mod table;
mod tasks;
mod world;
