//! The shared byte layout of Musubi and the single-writer protocols on it.
//!
//! What you may rely on: no heap, no operating system, no compare-and-swap between participants; a word of shared memory has
//! one writer; whatever a peer writes is a claim that is checked before it is used; every wait has a deadline and every loop a
//! bound. The bytes are those of docs/layout.md on every target.
//!
//! # What it gives
//!
//! | for | is |
//! | --- | --- |
//! | programs on cores that map one memory | [`mapped`]: participants and their ends, over a [`mapped::Host`] of a few lines |
//! | interfaces (MDCOM, MCAPI) | [`channel`]: the traits of ends that wait and survive a peer's restart |
//! | a port of another kind | [`fifo`], [`lock`], [`lane`] over [`words`] and [`layout`]; [`port`] is what they ask of it |
//! | the cores of one program | [`smp`]: locks, cross calls, start of cores, diagnosis |
//! | whoever decides how urgent, how often, how much | [`guarantee`]: Priority, Regulator, Filter, without a clock of their own |
//!
//! # In which order to read it
//!
//! 1. [`plan`]: what a system is, as constants. Everything else is sized by it.
//! 2. [`words`] and [`layout`]: views of memory of which one can store and the other cannot, and where each word lies.
//! 3. [`fifo`]: how a message goes from one section to another and its block comes back; `fifo::session` for restarts.
//! 4. [`mapped`]: all of it together, with sessions, deaths and waiting. `lock` and `lane` are read the same way.
//! 5. [`sync`]: the only place that names memory orders, when the question is why a word is read this way and not that.
//!
//! # A FIFO between two participants
//!
//! Both live in one process here, in one allocation; on a chip each would be an image of its own with the same lines.
//!
//! ```
//! use core::sync::atomic::AtomicU32;
//! use std::sync::LazyLock;
//! use std::time::Instant;
//!
//! use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};
//! use musubi_core::layout;
//! use musubi_core::mapped::{Memory, Participant, Polling, Setup, StorageLine, storage_lines};
//! use musubi_core::plan::*;
//!
//! // The system: two domains of one participant each, and a channel of 4 blocks between them.
//! const fn domain(name: &'static str, role: Role) -> Domain<'static> {
//!     let (port, trust) = (PortKind::Metal, Trust::MayCrash);
//!     Domain { name, role, port, trust, participants: 1, uids: &[], gids: &[], spin_ns: 0 }
//! }
//! static PLAN: Plan<'static> = Plan {
//!     name: "example",
//!     hash: 1,
//!     domains: &[domain("motor", Role::Master), domain("panel", Role::Remote)],
//!     fifos: &[Fifo {
//!         name: "speed",
//!         from: 0,
//!         to: 1,
//!         blocks: 4,
//!         block_bytes: 16,
//!         priority: 0,
//!         filter: FilterRule::EACH,
//!         regulation: Regulation::NONE,
//!         budget_ns: 0,
//!         on_restart: OnRestart::Keep,
//!         sample_every: 0,
//!     }],
//!     smems: &[],
//!     liveness: Liveness { heartbeat_ns: 100_000_000, stalled_ns: 2_000_000_000 },
//! };
//!
//! // The memory that both map: pages of zeros.
//! #[repr(align(4096))]
//! struct Page([AtomicU32; 1024]);
//! let bytes = layout::mapped_bytes(&PLAN).unwrap();
//! let pages: Vec<Page> = (0..bytes / 4096).map(|_| Page([const { AtomicU32::new(0) }; 1024])).collect();
//!
//! // What each has for itself: storage, and a host, here one that polls and has a clock.
//! static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
//! fn now_ns() -> u64 {
//!     BEGIN.elapsed().as_nanos() as u64
//! }
//! let host = Polling { now_ns, is_common: true };
//! let storage = |domain| -> Vec<StorageLine> {
//!     (0..storage_lines::<Polling>(&PLAN, domain)).map(|_| StorageLine::new()).collect()
//! };
//! let (of_motor, of_panel) = (storage(0), storage(1));
//! let attach = |participant, storage| {
//!     let base = pages.as_ptr().cast_mut().cast();
//!     // SAFETY: the pages hold the whole system, are atomics, and outlive both participants, of which there is one a slot.
//!     let memory = unsafe { Memory::whole(base, &PLAN, participant) }.unwrap();
//!     Participant::attach(Setup::new(&PLAN, participant, &host, memory, storage)).unwrap()
//! };
//! let (motor, panel) = (attach(0, &of_motor), attach(1, &of_panel));
//! let sending = motor.open_sending(0).unwrap();
//! let receiving = panel.open_receiving(0).unwrap();
//!
//! // A block of the sender's own memory is written, sent, and told of.
//! let mut loan = sending.allocate(Deadline::Poll).unwrap();
//! loan[..4].copy_from_slice(&3000_u32.to_le_bytes());
//! assert!(sending.enqueue(loan, 4).is_ok());
//! sending.notify();
//!
//! // The receiver waits, looks, and gives the block back.
//! receiving.wait(Deadline::At(panel.now_ns() + 10_000_000_000)).unwrap();
//! let received = receiving.dequeue().unwrap();
//! let mut speed = [0; 4];
//! assert_eq!(received.copy_to(0, &mut speed), 4);
//! assert_eq!(u32::from_le_bytes(speed), 3000);
//! assert!(receiving.free(received).is_ok());
//! ```
//!
//! # What it does not do
//!
//! Find memory or peers (a port does), name an interface's functions (`musubi-mdcom`, `musubi-mcapi`), or check a description
//! file (`musubi-config`): a [`plan::Plan`] is taken as checked, but for what attaching itself relies on.
#![no_std]

#[cfg(any(test, loom))]
extern crate std;

pub mod channel;
pub mod error;
pub mod fifo;
pub mod guarantee;
pub mod histogram;
pub mod lane;
pub mod layout;
pub mod lock;
pub mod mapped;
pub mod plan;
pub mod port;
pub mod smp;
pub mod sync;
pub mod words;

pub use error::Error;
