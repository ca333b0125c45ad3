//! An attachment of any port with its open ends, in static memory.
//!
//! What you may rely on: an end is opened once an attachment and stays at its place until [`Node::close`].
//!
//! How it works: cells that are filled inside the monitor, so by one task at a time.

use core::cell::UnsafeCell;

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_core::mapped::{self, Host};
use musubi_core::plan::Plan;

use super::Node;
use crate::mdcom::status::Status;

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

// SAFETY: every access is inside the monitor, as `Node` says, and the ends are used there only.
unsafe impl<A: Attachment, const FIFOS: usize, const SMEMS: usize> Sync for Ends<A, FIFOS, SMEMS> {}

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

    /// Takes an attachment in. Inside the monitor, and only while there is none.
    pub fn put(&self, attachment: A) {
        // SAFETY: inside the monitor, so nobody else has the cell; what is replaced is `None`.
        unsafe { *self.attachment.get() = Some(attachment) };
    }

    fn attachment(&self) -> Result<&A, Status> {
        // SAFETY: inside the monitor, and it is written in `put` and `close` only, when nobody has a reference.
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
    fn plan(&self) -> &Plan<'static> {
        self.plan
    }

    fn domain(&self) -> u16 {
        self.attachment().map_or(u16::MAX, A::domain)
    }

    fn now_ns(&self) -> u64 {
        self.attachment().map_or(0, A::now_ns)
    }

    fn attached(&self, domain: u16) -> u16 {
        self.attachment().map_or(0, |attachment| attachment.attached(domain))
    }

    fn sending(&'static self, fifo: u16) -> Result<&'static dyn SendingEnd, Status> {
        let attachment = self.attachment()?;
        // SAFETY: inside the monitor; written again by `close` only.
        let end = unsafe { opened(&self.sending, fifo, || Ok(attachment.open_sending(fifo)?)) }?;
        Ok(end)
    }

    fn receiving(&'static self, fifo: u16) -> Result<&'static dyn ReceivingEnd, Status> {
        let attachment = self.attachment()?;
        // SAFETY: as above.
        let end = unsafe { opened(&self.receiving, fifo, || Ok(attachment.open_receiving(fifo)?)) }?;
        Ok(end)
    }

    fn segment(&'static self, smem: u16) -> Result<&'static dyn Addressed, Status> {
        let attachment = self.attachment()?;
        let open = || match attachment.open_segment(smem, Deadline::Poll).map_err(Status::from) {
            Err(Status::Timeout) => Err(Status::NotReady),
            done => done,
        };
        // SAFETY: as above.
        let segment = unsafe { opened(&self.segments, smem, open) }?;
        Ok(segment)
    }

    unsafe fn close(&self) {
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
