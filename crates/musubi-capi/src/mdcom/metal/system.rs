//! What the C interface asks of an image: its scheduler and its participant.
//!
//! What you may rely on: these are all the calls that leave this crate on bare metal, besides those of the ends.

use musubi_core::channel::{ReceivingEnd, SendingEnd};
use musubi_core::plan::Plan;

use super::Addressed;
use crate::mdcom::status::Status;

/// The image's scheduler, for C tasks. All functions are called from tasks.
pub trait System: Sync {
    /// Attaches as a new incarnation; called by `mdcom_init`.
    ///
    /// # Errors
    /// Why that cannot be now.
    fn attach(&self) -> Result<&'static dyn Node, Status>;
    /// Enters the monitor, waiting for the task that is inside. The port's board leaves it while a task rests in it.
    fn enter(&self);
    /// Leaves the monitor.
    fn leave(&self);
    /// Identity of the calling task; never 0.
    fn task(&self) -> usize;
    /// Makes tasks that rest look again.
    fn wake(&self);
    /// Lets other tasks run until about this instant of the node's clock. Outside the monitor.
    fn sleep_until(&self, at_ns: u64);
}

/// A participant and its ends.
///
/// Every function is called inside the monitor.
pub trait Node {
    /// The plan that is compiled in.
    fn plan(&self) -> &Plan<'static>;
    /// Number of our domain.
    fn domain(&self) -> u16;
    /// Nanoseconds of the port's clock.
    fn now_ns(&self) -> u64;
    /// How many participants of a domain are attached.
    fn attached(&self, domain: u16) -> u16;
    /// The sending end of a channel, opened by the first call.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    fn sending(&'static self, fifo: u16) -> Result<&'static dyn SendingEnd, Status>;
    /// The receiving end of a channel, likewise.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    fn receiving(&'static self, fifo: u16) -> Result<&'static dyn ReceivingEnd, Status>;
    /// An SMEM channel, likewise; [`Status::NotReady`] until a member has made its memory.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    fn segment(&'static self, smem: u16) -> Result<&'static dyn Addressed, Status>;
    /// Closes the ends and leaves the system.
    ///
    /// # Safety
    /// Nobody uses an end or a block of one any more.
    unsafe fn close(&self);
}
