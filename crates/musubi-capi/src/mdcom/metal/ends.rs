//! An attachment of any port with its open ends, in static memory.
//!
//! What you may rely on: an end is opened once an attachment and stays at its place until [`Node::close`].
//!
//! How it works: cells that are filled and read with a proof of being inside the monitor, so by one task at a time.

use core::cell::UnsafeCell;

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_core::mapped::{self, Host};
use musubi_core::plan::Plan;

use super::{Inside, Node};
use crate::mdcom::contract::status::Status;

/// An SMEM channel whose memory has an address.
pub trait Addressed: SharedSegment {
    /// First byte of the payload.
    fn address(&self) -> *mut u8;
}

impl<B: Host> Addressed for mapped::Segment<'_, B> {
    fn address(&self) -> *mut u8 {
        mapped::Segment::address(self)
    }
}

/// Memory for an attachment with `FIFOS` and `SMEMS` channels in its plan.
pub struct Ends<A: Attachment, const FIFOS: usize, const SMEMS: usize> {
    attachment: UnsafeCell<Option<A>>,
    sending: [UnsafeCell<Option<A::Sending>>; FIFOS],
    receiving: [UnsafeCell<Option<A::Receiving>>; FIFOS],
    segments: [UnsafeCell<Option<A::Segment>>; SMEMS],
    plan: &'static Plan<'static>,
}

// SAFETY: every access to a cell needs an `Inside`, which one task at a time has; what is in the cells may go from task to
// task, as the bounds say; and the callers of `Node`'s functions have promised to use the ends inside only.
unsafe impl<A, const FIFOS: usize, const SMEMS: usize> Sync for Ends<A, FIFOS, SMEMS>
where
    A: Attachment + Send,
    A::Sending: Send,
    A::Receiving: Send,
    A::Segment: Send,
{
}

impl<A: Attachment, const FIFOS: usize, const SMEMS: usize> Ends<A, FIFOS, SMEMS> {
    /// Memory in which nothing is attached, for this plan.
    pub const fn new(plan: &'static Plan<'static>) -> Self {
        Ends {
            attachment: UnsafeCell::new(None),
            sending: [const { UnsafeCell::new(None) }; FIFOS],
            receiving: [const { UnsafeCell::new(None) }; FIFOS],
            segments: [const { UnsafeCell::new(None) }; SMEMS],
            plan,
        }
    }

    /// Takes an attachment in.
    ///
    /// # Errors
    /// [`Status::Already`] if there is one, which stays.
    pub fn put(&self, inside: Inside<'_>, attachment: A) -> Result<(), Status> {
        if self.attachment(inside).is_ok() {
            return Err(Status::Already);
        }
        // SAFETY: inside the monitor, so nobody else has the cell; what is replaced is `None`, so there is no reference.
        unsafe { *self.attachment.get() = Some(attachment) };
        Ok(())
    }

    fn attachment<'m>(&'m self, _: Inside<'m>) -> Result<&'m A, Status> {
        // SAFETY: inside the monitor, so nobody writes. Later `put` writes over `None` only, and who calls `close` has
        // promised that nobody uses what was given.
        let attachment = unsafe { &*self.attachment.get() };
        attachment.as_ref().ok_or(Status::NotInit)
    }
}

/// The value of a cell, which `open` makes if it is not there.
///
/// # Safety
/// Nobody else uses the cell during the call, nor writes it as long as the result is used.
unsafe fn opened<T>(
    cells: &'static [UnsafeCell<Option<T>>],
    index: u16,
    open: impl FnOnce() -> Result<T, Status>,
) -> Result<&'static T, Status> {
    let place = cells.get(usize::from(index)).ok_or(Status::System)?.get();
    // SAFETY: the caller's promise.
    if unsafe { &*place }.is_none() {
        let end = open()?;
        // SAFETY: likewise; what is replaced is `None`, so there is no reference to it.
        unsafe { *place = Some(end) };
    }
    // SAFETY: likewise.
    unsafe { &*place }.as_ref().ok_or(Status::Internal)
}

impl<A: Attachment + 'static, const FIFOS: usize, const SMEMS: usize> Node for Ends<A, FIFOS, SMEMS>
where
    A::Segment: Addressed,
    Status: From<A::Error>,
{
    fn plan(&self) -> &'static Plan<'static> {
        self.plan
    }

    fn domain(&self, inside: Inside<'_>) -> u16 {
        self.attachment(inside).map_or(u16::MAX, A::domain)
    }

    fn now_ns(&self, inside: Inside<'_>) -> u64 {
        self.attachment(inside).map_or(0, A::now_ns)
    }

    fn attached(&self, inside: Inside<'_>, domain: u16) -> u16 {
        self.attachment(inside).map_or(0, |attachment| attachment.attached(domain))
    }

    unsafe fn sending(&'static self, inside: Inside<'_>, fifo: u16) -> Result<&'static dyn SendingEnd, Status> {
        let attachment = self.attachment(inside)?;
        // SAFETY: inside the monitor; written again by `close` only.
        let end = unsafe { opened(&self.sending, fifo, || Ok(attachment.open_sending(fifo)?)) }?;
        Ok(end)
    }

    unsafe fn receiving(&'static self, inside: Inside<'_>, fifo: u16) -> Result<&'static dyn ReceivingEnd, Status> {
        let attachment = self.attachment(inside)?;
        // SAFETY: as above.
        let end = unsafe { opened(&self.receiving, fifo, || Ok(attachment.open_receiving(fifo)?)) }?;
        Ok(end)
    }

    unsafe fn segment(&'static self, inside: Inside<'_>, smem: u16) -> Result<&'static dyn Addressed, Status> {
        let attachment = self.attachment(inside)?;
        let open = || match attachment.open_segment(smem, Deadline::Poll).map_err(Status::from) {
            Err(Status::Timeout) => Err(Status::NotReady),
            done => done,
        };
        // SAFETY: as above.
        let segment = unsafe { opened(&self.segments, smem, open) }?;
        Ok(segment)
    }

    unsafe fn close(&self, _: Inside<'_>) {
        for cell in &self.sending {
            // SAFETY: the caller's promise: nobody has a reference.
            unsafe { *cell.get() = None };
        }
        for cell in &self.receiving {
            // SAFETY: likewise.
            unsafe { *cell.get() = None };
        }
        for cell in &self.segments {
            // SAFETY: likewise.
            unsafe { *cell.get() = None };
        }
        // SAFETY: likewise; the ends are gone before what they are of.
        unsafe { *self.attachment.get() = None };
    }
}
