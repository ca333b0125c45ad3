//! A participant as the interfaces see it: what opens the ends of channels.
//!
//! What you may rely on: an end that was opened once stays with its participant until that leaves; closing a handle and
//! opening it again goes on where it was, so the other side notices nothing and no message is lost or repeated.
//!
//! How it works: an end's state comes from the participant's shelf if it was open before, else the end is claimed.

use std::sync::Arc;

use musubi_core::channel::{Attachment, Deadline};
use musubi_core::plan::Plan;
use musubi_core::port::Clock;

use crate::direction::Direction;
use crate::error::Error;
use crate::process::channel::incarnations::ReceivingState;
use crate::process::channel::receiver::ReceivingEnd;
use crate::process::channel::sender::{SendingEnd, SendingState};
use crate::process::channel::smem::SharedEnd;
use crate::process::channel::wait::Spin;
use crate::process::channel::wait_any;
use crate::process::participant::Participant;

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
        let state = match self.shelves.sending.take(fifo) {
            Some(state) => state,
            None => SendingState::new(self.claim_end(fifo, Direction::Send)?)?,
        };
        Ok(SendingEnd::new(state, self.spin(), Arc::clone(&self.shelves.sending)))
    }

    fn open_receiving(&self, fifo: u16) -> Result<ReceivingEnd, Error> {
        let state = match self.shelves.receiving.take(fifo) {
            Some(state) => state,
            None => ReceivingState::new(self.claim_end(fifo, Direction::Receive)?, Participant::plan(self))?,
        };
        Ok(ReceivingEnd::new(state, self.spin(), Arc::clone(&self.shelves.receiving)))
    }

    fn wait_any(&self, ends: &[&ReceivingEnd], deadline: Deadline) -> Result<(), musubi_core::Error> {
        wait_any::wait_any(ends, self.spin(), deadline)
    }

    fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<SharedEnd, Error> {
        let segment = Participant::open_segment(self, smem, deadline)?;
        let Some(permit) = self.shelves.segments.take(smem) else {
            return Err(Error::SegmentInUse(segment.channel().name.to_owned()));
        };
        SharedEnd::new(segment, permit, self.spin(), Arc::clone(&self.shelves.segments))
    }
}

impl Participant {
    fn spin(&self) -> Spin {
        Spin::of(Participant::plan(self), Participant::domain(self))
    }
}
