//! The interface of programs in Rust: NICs, VIs and registered memory as values with owners.
//!
//! What you may rely on: memory that is posted is not in the program's hands, so it can be neither touched nor freed nor posted
//! twice: that does not compile (below). It comes back with its completion, or is freed with its VI, whatever is dropped before. A NIC
//! stays open as long as anything made from it lives. Polling for and posting messages over shared memory allocates nothing, once
//! queues are as long as they get; a future that has to wait allocates when it is woken.
//!
//! How it works: a region's bytes move into the NIC while they are posted, without a copy. All that takes time is a [`Waiting`]: a
//! future without a runtime of its own, or a call with a deadline. All is generic over where the node runs; [`process`] names it for
//! processes of Linux.
//!
//! What it does not do: several segments for one descriptor; the error handler of VIPL, as completions and [`Vi::ended`] say all that a
//! program of these types can cause.
//!
//! ```
//! use std::time::Duration;
//! use musubi_transport::runtime::{Deadline, DeadlineExt};
//! use musubi_vipl::owned::process::Nic;
//! use musubi_vipl::owned::{ViFailure, ViOptions, Work};
//! use musubi_vipl::process::NicSystem;
//!
//! # fn main() -> Result<(), ViFailure> {
//! # let system = NicSystem::on_one_machine(&format!("doc-owned-{}", std::process::id()));
//! // Usually in two processes.
//! let (server, client) = (Nic::open(&system, "VINIC0")?, Nic::open(&system, "VINIC0")?);
//! let mut listener = server.listen(b"port")?;
//! let connecting = client.vi(ViOptions::default())?.connect(&client.address("VINIC0", b"port")?);
//!
//! // Receives are posted before there can be a message.
//! let mut vi = server.vi(ViOptions::default())?;
//! vi.receives().post(server.region(64)?)?;
//! let soon = Deadline::after(Duration::from_secs(10));
//! let accepting = listener.caller().wait(soon)?.accept(vi);
//! let mut here = connecting.wait(soon)?;
//! let mut there = accepting.wait(soon)?;
//!
//! here.sends().post(Work::send(client.register(*b"hello")?))?;
//! # fn block_on<F: std::future::Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     loop {
//! #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) { return output; }
//! #     }
//! # }
//! # block_on(async {
//! let came = there.receives().completed().within(Duration::from_secs(10)).await?.done()?;
//! assert_eq!(&came.region[..came.bytes], b"hello");
//! # Ok::<(), ViFailure>(())
//! # })?;
//! let sent = here.sends().completed().wait(soon)?.done()?;
//! assert_eq!(sent.region.into_vec(), b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # What does not compile
//!
//! To touch memory that is posted:
//! ```compile_fail,E0382
//! # use musubi_vipl::owned::{Connected, ViFailure, Work, process::{OwnRegion, Vi}};
//! # fn misuse(vi: &mut Vi<Connected>, mut region: OwnRegion) -> Result<(), ViFailure> {
//! vi.sends().post(Work::send(region))?;
//! region[0] = 1;
//! # Ok(())
//! # }
//! ```
//! To keep a reference into it while it is posted:
//! ```compile_fail,E0505
//! # use musubi_vipl::owned::{Connected, ViFailure, process::{OwnRegion, Vi}};
//! # fn misuse(vi: &mut Vi<Connected>, mut region: OwnRegion) -> Result<(), ViFailure> {
//! let head = &mut region[..8];
//! vi.receives().post(region)?;
//! head[0] = 1;
//! # Ok(())
//! # }
//! ```
//! To free it, or take its registration back, while it is posted:
//! ```compile_fail,E0382
//! # use musubi_vipl::owned::{Connected, ViFailure, process::{OwnRegion, Vi}};
//! # fn misuse(vi: &mut Vi<Connected>, region: OwnRegion) -> Result<(), ViFailure> {
//! vi.receives().post(region)?;
//! drop(region.into_vec());
//! # Ok(())
//! # }
//! ```
//! To post it twice, to whichever queues:
//! ```compile_fail,E0382
//! # use musubi_vipl::owned::{Connected, ViFailure, Work, process::{OwnRegion, Vi}};
//! # fn misuse(vi: &mut Vi<Connected>, region: OwnRegion) -> Result<(), ViFailure> {
//! vi.receives().post(region)?;
//! vi.sends().post(Work::send(region))?;
//! # Ok(())
//! # }
//! ```
//! To post one piece of work twice:
//! ```compile_fail,E0382
//! # use musubi_vipl::owned::{Connected, ViFailure, process::{Vi, Work}};
//! # fn misuse(vi: &mut Vi<Connected>, work: Work) -> Result<(), ViFailure> {
//! vi.sends().post(work)?;
//! vi.sends().post(work)?;
//! # Ok(())
//! # }
//! ```
//! To send on a VI that is not connected:
//! ```compile_fail,E0599
//! # use musubi_vipl::owned::{ViFailure, Idle, Work, process::{OwnRegion, Vi}};
//! # fn misuse(vi: &mut Vi<Idle>, region: OwnRegion) -> Result<(), ViFailure> {
//! vi.sends().post(Work::send(region))?;
//! # Ok(())
//! # }
//! ```
//! To use a VI as it was after it was disconnected, or to connect one twice:
//! ```compile_fail,E0382
//! # use musubi_vipl::owned::{Connected, process::Vi};
//! # fn misuse(mut vi: Vi<Connected>) {
//! let (idle, posted) = vi.disconnect();
//! vi.sends();
//! # }
//! ```
//! ```compile_fail,E0382
//! # use musubi_vipl::{address::Address, owned::{Idle, process::Vi}};
//! # fn misuse(vi: Vi<Idle>, to: &Address) {
//! let first = vi.connect(to);
//! let second = vi.connect(to);
//! # }
//! ```
//! To close a NIC under its VIs: there is no such call, it closes with the last of what was made from it:
//! ```compile_fail,E0599
//! # use musubi_vipl::owned::{Connected, process::{Nic, Vi}};
//! # fn misuse(nic: Nic, vi: Vi<Connected>) {
//! nic.close();
//! # }
//! ```
//! To await one queue from two places, of which only one would be woken:
//! ```compile_fail,E0499
//! # use musubi_vipl::owned::{Connected, process::Vi};
//! # fn misuse(vi: &mut Vi<Connected>) {
//! let first = vi.receives().completed();
//! let second = vi.receives().completed();
//! drop(first);
//! # }
//! ```
//! To hold a reference into memory that a peer may write:
//! ```compile_fail,E0608
//! # use musubi_vipl::owned::process::SharedRegion;
//! # fn misuse(shared: &SharedRegion) {
//! let first = &shared[0];
//! # }
//! ```
#![forbid(unsafe_code)]

mod completion_queue;
mod connecting;
mod failure;
mod nic;
#[cfg(feature = "std")]
pub mod process;
mod queues;
mod region;
mod vi;
mod waiting;

pub use completion_queue::{CompletionQueue, OldestTold};
pub use connecting::{Acceptance, Attempt, Caller, Connecting, FirstCaller, Listener, NotConnected};
pub use failure::ViFailure;
pub use nic::Nic;
pub use queues::{Completion, CompletionKind, NextCompletion, NotPosted, OldestPosted, ReceiveQueue, SendQueue, Work};
pub use region::{OwnRegion, Permission, RemoteRegion, SharedRegion};
pub use vi::{Connected, EndOfConnection, Idle, Vi, ViOptions};
pub use waiting::{Awaitable, Holds, Waiting, Within};
