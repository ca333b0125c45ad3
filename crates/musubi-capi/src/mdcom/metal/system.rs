//! What the C interface asks of an image: its scheduler and its participant.
//!
//! What you may rely on: these are all the calls that leave this crate on bare metal, besides those of the ends.

use core::marker::PhantomData;

use musubi_core::channel::{ReceivingEnd, SendingEnd};
use musubi_core::plan::Plan;

use super::Addressed;
use crate::mdcom::contract::status::Status;

/// Proof that the task that has it is inside the monitor. It leaves only in calls that return inside, so the proof holds
/// for whoever can use it.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'m>(PhantomData<&'m *mut ()>);

impl Inside<'_> {
    /// # Safety
    /// The calling task is inside the monitor of the installed system, and whenever it uses the result.
    pub(super) const unsafe fn new() -> Self {
        Inside(PhantomData)
    }
}

/// The image's scheduler, for C tasks. All functions are called from tasks.
///
/// # Safety
/// After [`System::enter`], and until it calls [`System::leave`] or rests in its port's board, a task is the only one that
/// has come out of [`System::enter`] so, and sees what the others wrote there. Resting ends inside. [`System::task`] is
/// different for tasks that live at the same time.
pub unsafe trait System: Sync {
    /// Attaches as a new incarnation; called by `mdcom_init`.
    ///
    /// # Errors
    /// Why that cannot be now.
    fn attach(&self, inside: Inside<'_>) -> Result<&'static dyn Node, Status>;
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
pub trait Node {
    /// The plan that is compiled in.
    fn plan(&self) -> &'static Plan<'static>;
    /// Number of our domain.
    fn domain(&self, inside: Inside<'_>) -> u16;
    /// Nanoseconds of the port's clock.
    fn now_ns(&self, inside: Inside<'_>) -> u64;
    /// How many participants of a domain are attached.
    fn attached(&self, inside: Inside<'_>, domain: u16) -> u16;
    /// The sending end of a channel, opened by the first call.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    ///
    /// # Safety
    /// The end is used inside the monitor only, and no more once the node is closed.
    unsafe fn sending(&'static self, inside: Inside<'_>, fifo: u16) -> Result<&'static dyn SendingEnd, Status>;
    /// The receiving end of a channel, likewise.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    ///
    /// # Safety
    /// As [`Node::sending`].
    unsafe fn receiving(&'static self, inside: Inside<'_>, fifo: u16) -> Result<&'static dyn ReceivingEnd, Status>;
    /// An SMEM channel, likewise; [`Status::NotReady`] until a member has made its memory.
    ///
    /// # Errors
    /// The port's, or that there is no room.
    ///
    /// # Safety
    /// As [`Node::sending`].
    unsafe fn segment(&'static self, inside: Inside<'_>, smem: u16) -> Result<&'static dyn Addressed, Status>;
    /// Closes the ends and leaves the system.
    ///
    /// # Safety
    /// Nobody uses an end or a block of one any more.
    unsafe fn close(&self, inside: Inside<'_>);
}
