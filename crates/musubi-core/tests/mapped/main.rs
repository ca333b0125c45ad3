//! Participants in mapped memory: restarts, standing still, hostile peers, waking.
#![cfg(not(loom))]

mod ends;
mod hostile;
mod hosts;
mod meanwhile;
mod nodes;
mod restarts;
mod smem;
mod stalled;
mod waking;
mod world;
