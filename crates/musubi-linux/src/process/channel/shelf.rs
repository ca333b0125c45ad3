//! Opening channels on a participant, and keeping their state while no handle is open.
//!
//! What you may rely on: an end that was opened once stays with its participant until that leaves; closing a handle and
//! opening it again goes on where it was, so the other side notices nothing and no message is lost or repeated.
//!
//! How it works: a handle's state goes back to a shelf when the handle is dropped. When the participant leaves, the
//! shelf is cleared and closed, which closes the ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use musubi_core::channel::{Attachment, Deadline};
use musubi_core::plan::Plan;
use musubi_core::port::Clock;

use crate::direction::Direction;
use crate::error::Error;
use crate::process::channel::receiver::{self, ReceivingEnd};
use crate::process::channel::sender::{self, SendingEnd};
use crate::process::channel::smem::SharedEnd;
use crate::process::channel::wait::Spin;
use crate::process::channel::wait_any;
use crate::process::participant::Participant;

/// Where states of ends wait while no handle is open; `None` once the participant has left.
#[derive(Debug)]
pub(crate) struct Shelf(Mutex<Option<Parked>>);

#[derive(Debug, Default)]
struct Parked {
    sending: HashMap<u16, sender::State>,
    receiving: HashMap<u16, receiver::State>,
    /// SMEM channels of which there is a handle; a second one would write the same ticket.
    segments: HashSet<u16>,
}

impl Shelf {
    pub(crate) fn new() -> Arc<Shelf> {
        Arc::new(Shelf(Mutex::new(Some(Parked::default()))))
    }

    /// Closes every parked end, and from now on each end whose handle is dropped.
    pub(crate) fn close(&self) {
        let parked = self.lock().take();
        drop(parked);
    }

    pub(crate) fn park_sending(&self, state: sender::State) {
        let mut parked = self.lock();
        // A state that finds no place is dropped after the lock, which closes its end.
        let _closed = match &mut *parked {
            Some(parked) => parked.sending.insert(state.fifo(), state),
            None => Some(state),
        };
        drop(parked);
    }

    pub(crate) fn park_receiving(&self, state: receiver::State) {
        let mut parked = self.lock();
        let _closed = match &mut *parked {
            Some(parked) => parked.receiving.insert(state.fifo(), state),
            None => Some(state),
        };
        drop(parked);
    }

    /// Notes that there is a handle of an SMEM channel; false if there was one already.
    fn open_segment(&self, smem: u16) -> bool {
        self.lock().as_mut().is_some_and(|parked| parked.segments.insert(smem))
    }

    /// Notes that there is none any more.
    pub(crate) fn close_segment(&self, smem: u16) {
        if let Some(parked) = self.lock().as_mut() {
            parked.segments.remove(&smem);
        }
    }

    fn sending(&self, fifo: u16) -> Option<sender::State> {
        self.lock().as_mut()?.sending.remove(&fifo)
    }

    fn receiving(&self, fifo: u16) -> Option<receiver::State> {
        self.lock().as_mut()?.receiving.remove(&fifo)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment for Participant {
    type Sending = SendingEnd;
    type Receiving = ReceivingEnd;
    type Segment = SharedEnd;
    type Error = Error;

    fn plan(&self) -> &Plan<'_> {
        Participant::plan(self)
    }

    fn domain(&self) -> u16 {
        Participant::domain(self)
    }

    fn now_ns(&self) -> u64 {
        self.clock().now_ns()
    }

    fn sleep_until(&self, at_ns: u64) {
        let left_ns = at_ns.saturating_sub(self.clock().now_ns());
        std::thread::sleep(std::time::Duration::from_nanos(left_ns));
    }

    fn attached(&self, domain: u16) -> u16 {
        let others = self.peers().iter().filter(|peer| peer.domain == domain).count() as u16;
        others + u16::from(domain == Participant::domain(self))
    }

    fn open_sending(&self, fifo: u16) -> Result<SendingEnd, Error> {
        let state = match self.shelf().sending(fifo) {
            Some(state) => state,
            None => sender::State::new(self.claim_end(fifo, Direction::Send)?)?,
        };
        Ok(SendingEnd::new(state, self.spin(), Arc::clone(self.shelf())))
    }

    fn open_receiving(&self, fifo: u16) -> Result<ReceivingEnd, Error> {
        let state = match self.shelf().receiving(fifo) {
            Some(state) => state,
            None => receiver::State::new(self.claim_end(fifo, Direction::Receive)?, Participant::plan(self))?,
        };
        Ok(ReceivingEnd::new(state, self.spin(), Arc::clone(self.shelf())))
    }

    fn wait_any(&self, ends: &[&ReceivingEnd], deadline: Deadline) -> Result<(), musubi_core::Error> {
        wait_any::wait_any(ends, self.spin(), deadline)
    }

    fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<SharedEnd, Error> {
        let segment = Participant::open_segment(self, smem, deadline.into())?;
        if !self.shelf().open_segment(smem) {
            return Err(Error::SegmentInUse(segment.channel().name.to_owned()));
        }
        SharedEnd::new(segment, self.spin(), Arc::clone(self.shelf()))
    }
}

impl Participant {
    fn spin(&self) -> Spin {
        Spin::of(Participant::plan(self), Participant::domain(self))
    }
}
