//! What nodes of MCAPI in C exchange between the Cortex-R5F and Linux; `c/exchange.h` says what.
//!
//! What you may rely on: both run the same C program over `include/mcapi.h`, each on a node that the program has installed
//! ([`musubi_nodes::mcapi::mapped::install`]) before.
#![no_std]

pub use musubi_nodes::mcapi::mapped::{Installation, install};

/// `struct exchange_side`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Side {
    /// Domain of both.
    pub domain: u32,
    /// The own node.
    pub node: u32,
    /// The other one.
    pub peer: u32,
    /// 1 for the one that asks.
    pub asks: u32,
}

/// `struct exchange_tally`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tally {
    /// Messages that were received as they were sent.
    pub messages: u32,
    /// Packets likewise.
    pub packets: u32,
    /// Scalars likewise.
    pub scalars: u32,
    /// Messages that came by way of another task.
    pub relayed: u32,
    /// 0, or the line of `exchange.c` that failed.
    pub failed_at: u32,
    /// What the call there said.
    pub status: u32,
}

impl Tally {
    /// What it is when all is right: `EXCHANGE_MESSAGES` and its like.
    pub const WHOLE: Tally = Tally { messages: 40, packets: 40, scalars: 64, relayed: 1, failed_at: 0, status: 0 };

    /// One of these numbers.
    pub fn of([messages, packets, scalars, relayed, failed_at, status]: [u32; 6]) -> Tally {
        Tally { messages, packets, scalars, relayed, failed_at, status }
    }

    /// Its numbers, in order.
    pub fn numbers(self) -> [u32; 6] {
        [self.messages, self.packets, self.scalars, self.relayed, self.failed_at, self.status]
    }
}

unsafe extern "C" {
    fn exchange_live(side: *const Side, life: u32, theirs: *mut Tally) -> Tally;
    fn exchange_relay(side: *const Side, pause: extern "C" fn());
}

/// Lives one life of a node; gives the own tally and the peer's.
pub fn live(side: &Side, life: u32) -> (Tally, Tally) {
    let mut theirs = Tally::default();
    // SAFETY: both pointers are good as long as the call; the C program keeps none.
    let own = unsafe { exchange_live(side, life, &raw mut theirs) };
    (own, theirs)
}

/// Hands on the last message of each life, for ever. For another task of the side that answers; `pause` lets others run.
pub fn relay(side: &'static Side, pause: extern "C" fn()) {
    // SAFETY: the side lives for ever.
    unsafe { exchange_relay(side, pause) };
}
