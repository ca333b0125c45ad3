//! What a VI has to say: posted sends and RDMA operations, answers to the peer's reads, confirmations.
//!
//! What you may rely on: descriptors begin in the order in which they were posted, one with a fence when all reads before it
//! have ended; a read and what follows it may be under way together. At most [`READS_MAX`] reads are. Local places are checked
//! again for every part that goes out, so a region that is given up meanwhile is not read.
//!
//! How it works: in turn a part of an answer and a part of what was posted, until the wire is full or nothing is left. When a
//! send has ended depends on the level: handed over, accepted, or placed. One of which a part was offered, so that the peer
//! fetches it, has ended when it is placed, at every level: its memory is read until then.

use alloc::collections::VecDeque;

use super::attributes::Reliability;
use super::descriptor::{Descriptor, Operation};
use super::frame::{Handed, LocalMemory, ViFrame, Wire};
use super::protection::{Access, Protection, RemotePlace};
use super::segments::{LocalPlace, Places, Segments};
use super::status::{AsyncError, Status};
use super::vi::{Vi, ViState, failed, sent};
use super::work_queue::WorkQueue;

/// Reads under way in one direction of a connection.
pub(super) const READS_MAX: usize = 16;

/// A read of ours that is not answered whole.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its descriptor.
    pub(super) number: u64,
    /// Bytes that have come.
    pub(super) came: u32,
}

/// A read of the peer's that is not answered whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) from: RemotePlace,
    pub(super) bytes: u32,
    pub(super) said: u32,
}

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes of the first descriptor whose work has not ended that were handed over.
    said: u32,
    /// A part of that descriptor was offered.
    has_offered: bool,
    /// Frames that were numbered, and the descriptors that they end (level of delivery).
    unaccepted: VecDeque<(u64, u64)>,
    /// Descriptors whose data is to be confirmed: of the level of reception, and those of which a part was offered.
    pub(super) unplaced: VecDeque<u64>,
    pub(super) asked: VecDeque<Asked>,
    pub(super) answers: VecDeque<Answer>,
    /// Messages of the peer that are in their place and that it was not told of.
    pub(super) owed: u32,
    /// The last word.
    pub(super) farewell: Option<ViFrame>,
}

impl Outgoing {
    /// The descriptor of which a part has gone.
    pub(super) fn partly_sent(&self, sends: &WorkQueue) -> Option<u64> {
        sends.next().filter(|_| self.said > 0).map(|(number, _)| number)
    }

    /// Whether anything besides what is posted waits to be said.
    pub(super) fn has_to_say(&self) -> bool {
        self.farewell.is_some() || self.owed > 0 || !self.answers.is_empty()
    }

    /// The connection has ended: nothing is under way but the last word.
    pub(super) fn forget(&mut self) {
        *self = Outgoing { farewell: self.farewell.take(), ..Outgoing::default() };
    }
}

/// Why what was posted does not go on.
enum Stop {
    /// The wire is full, or nothing is left that may begin.
    Wait,
    /// The descriptor has a mistake.
    Mistake(Status),
}

impl Vi {
    pub(super) fn say(&mut self, protection: &Protection, wire: &mut impl Wire, memory: &mut impl LocalMemory) {
        self.part(wire);
        if self.state != ViState::Connected {
            return;
        }
        self.confirm(wire);
        self.tell_receives(wire);
        loop {
            let has_answered = self.answer(protection, wire, memory);
            let has_sent = self.state == ViState::Connected && self.send_next(protection, wire, memory);
            if !has_answered && !has_sent {
                break;
            }
        }
        self.part(wire);
    }

    /// Says the last word, if there is one to be said.
    #[inline]
    fn part(&mut self, wire: &mut impl Wire) {
        if let Some(farewell) = self.outgoing.farewell
            && wire.hand(&farewell, Segments::NONE.part(0, 0)) != Handed::Full
        {
            self.outgoing.farewell = None;
        }
    }

    /// Tells the peer what is in its place.
    fn confirm(&mut self, wire: &mut impl Wire) {
        let messages = self.outgoing.owed;
        if messages > 0 && wire.hand(&ViFrame::Placed { messages }, Segments::NONE.part(0, 0)) != Handed::Full {
            self.outgoing.owed = 0;
        }
    }

    /// Says one part of an answer. False if there is none to be said now.
    fn answer(&mut self, protection: &Protection, wire: &mut impl Wire, memory: &mut impl LocalMemory) -> bool {
        let Some(answer) = self.outgoing.answers.front_mut() else { return false };
        let bytes = (answer.bytes - answer.said).min(wire.payload_bytes_max());
        let address = answer.from.address.wrapping_add(u64::from(answer.said));
        // Before anything is said of it, whether all of it may be.
        let asked = if answer.said == 0 { answer.bytes } else { bytes };
        let (tag, handle) = (self.attributes.tag, answer.from.handle);
        let may =
            self.attributes.remote_read && protection.check(tag, Access::RemoteRead, handle, address, asked).is_ok();
        if !may {
            self.refuse_read(memory);
            return false;
        }
        let place = LocalPlace { address, handle: answer.from.handle, bytes };
        if wire.hand(&ViFrame::Data { offset: answer.said }, Places::one(&place)) == Handed::Full {
            return false;
        }
        answer.said += bytes;
        if answer.said == answer.bytes {
            self.outgoing.answers.pop_front();
        }
        true
    }

    /// The peer asked for what it may not read.
    fn refuse_read(&mut self, memory: &mut impl LocalMemory) {
        let messages = core::mem::take(&mut self.outgoing.owed);
        self.outgoing.farewell = Some(ViFrame::ReadRefused { messages });
        self.end(AsyncError::ReadProtection, memory);
    }

    /// Says one part of what was posted. False if there is none to be said now.
    fn send_next(&mut self, protection: &Protection, wire: &mut impl Wire, memory: &mut impl LocalMemory) -> bool {
        match self.try_send(protection, wire) {
            Ok(()) => true,
            Err(Stop::Wait) => false,
            Err(Stop::Mistake(status)) => self.end_mistaken(status, memory),
        }
    }

    /// A descriptor with a mistake ends when everything before it has, and at the reliable levels the connection with it.
    /// False if it has to wait for that.
    fn end_mistaken(&mut self, status: Status, memory: &mut impl LocalMemory) -> bool {
        self.settle(memory);
        let Some((number, send)) = self.sends.next() else { return false };
        let said = core::mem::take(&mut self.outgoing.said);
        if said == 0 && self.sends.oldest().is_some_and(|(oldest, _)| oldest != number) {
            return false;
        }
        if said == 0 {
            self.credit.give_back(number);
        }
        let partial = if said > 0 { Status::PARTIAL_ERROR } else { Status::default() };
        let completion = failed(Status::of_send(send.operation).and(status).and(partial));
        self.sends.end_work(number, completion);
        self.sends.begin_next();
        // The peer waits for the rest of a message that has begun, at every level.
        if said > 0 || self.attributes.reliability.is_reliable() {
            let messages = core::mem::take(&mut self.outgoing.owed);
            self.outgoing.farewell = Some(ViFrame::Broken { messages, status: Status::TRANSPORT_ERROR });
            self.end(AsyncError::ConnectionLost, memory);
        }
        true
    }

    fn try_send(&mut self, protection: &Protection, wire: &mut impl Wire) -> Result<(), Stop> {
        let (number, send) = self.sends.next().ok_or(Stop::Wait)?;
        let said = self.outgoing.said;
        if said == 0 {
            self.check_whole(send, protection)?;
        }
        if send.fence && !self.outgoing.asked.is_empty() {
            return Err(Stop::Wait);
        }
        let (operation, bytes, immediate) = (send.operation, send.bytes(), send.immediate);
        if self.attributes.credit && takes_receive(operation, immediate) && !self.credit.take(number) {
            return Err(Stop::Wait);
        }
        if operation == Operation::Read {
            return self.ask(number, wire);
        }
        let part = (bytes - said).min(wire.payload_bytes_max());
        if said > 0 {
            check_part(send, said, part, self.attributes.tag, protection)?;
        }
        let offset = said;
        let frame = match operation {
            Operation::Write => ViFrame::Write { to: send.remote, bytes, offset, immediate },
            _ => ViFrame::Send { bytes, offset, immediate },
        };
        let handed = wire.hand(&frame, send.segments.part(said, part));
        if handed == Handed::Full {
            return Err(Stop::Wait);
        }
        self.outgoing.said += part;
        self.outgoing.has_offered |= handed == Handed::Offered;
        if self.outgoing.said == bytes {
            self.outgoing.said = 0;
            self.sends.begin_next();
            self.await_end(number, operation, bytes, handed);
        }
        Ok(())
    }

    /// What is known to be wrong before anything goes out.
    fn check_whole(&self, send: &Descriptor, protection: &Protection) -> Result<(), Stop> {
        if let Some(status) = send.refused {
            return Err(Stop::Mistake(status));
        }
        if send.bytes() > self.attributes.transfer_bytes_max {
            return Err(Stop::Mistake(Status::LENGTH_ERROR));
        }
        if send.operation == Operation::Read && !self.attributes.reliability.is_reliable() {
            return Err(Stop::Mistake(Status::FORMAT_ERROR));
        }
        check_part(send, 0, send.bytes(), self.attributes.tag, protection)
    }

    fn ask(&mut self, number: u64, wire: &mut impl Wire) -> Result<(), Stop> {
        let send = self.sends.descriptor(number).ok_or(Stop::Wait)?;
        if self.outgoing.asked.len() >= READS_MAX {
            return Err(Stop::Wait);
        }
        let frame = ViFrame::Read { from: send.remote, bytes: send.bytes() };
        if wire.hand(&frame, Segments::NONE.part(0, 0)) == Handed::Full {
            return Err(Stop::Wait);
        }
        self.outgoing.asked.push_back(Asked { number, came: 0 });
        self.sends.begin_next();
        Ok(())
    }

    /// All of a message was handed over: when has its work ended?
    fn await_end(&mut self, number: u64, operation: Operation, bytes: u32, handed: Handed) {
        if core::mem::take(&mut self.outgoing.has_offered) {
            return self.outgoing.unplaced.push_back(number);
        }
        match (self.attributes.reliability, handed) {
            (Reliability::Reception, _) => self.outgoing.unplaced.push_back(number),
            (Reliability::Delivery, Handed::Numbered(frame)) => self.outgoing.unaccepted.push_back((frame, number)),
            _ => self.sends.end_work(number, sent(operation, bytes)),
        }
    }

    /// Frames up to this number have been accepted.
    pub(super) fn note_accepted(&mut self, frame: u64) {
        while let Some(&(accepted, number)) = self.outgoing.unaccepted.front() {
            if accepted > frame {
                return;
            }
            self.outgoing.unaccepted.pop_front();
            self.end_sent(number);
        }
    }

    /// The work of a descriptor has ended well.
    pub(super) fn end_sent(&mut self, number: u64) {
        if let Some(send) = self.sends.descriptor(number) {
            let completion = sent(send.operation, send.bytes());
            self.sends.end_work(number, completion);
        }
    }
}

/// Whether a message takes a receive of the peer's.
fn takes_receive(operation: Operation, immediate: Option<u32>) -> bool {
    operation == Operation::SendReceive || (operation == Operation::Write && immediate.is_some())
}

/// Whether these bytes of a message are the VI's to read, or for a read to write.
fn check_part(
    descriptor: &Descriptor,
    offset: u32,
    bytes: u32,
    tag: super::protection::TagHandle,
    protection: &Protection,
) -> Result<(), Stop> {
    let is_fault =
        |place: LocalPlace| protection.check(tag, Access::Local, place.handle, place.address, place.bytes).is_err();
    let fault = descriptor.segments.part(offset, bytes).any(is_fault);
    if fault { Err(Stop::Mistake(Status::PROTECTION_ERROR)) } else { Ok(()) }
}
