//! What a peer says: messages, writes, reads, answers, confirmations; and what each level makes of what does not fit.
//!
//! What you may rely on: every field of a frame is checked before it has an effect, against what this side registered,
//! posted and asked for at that moment; a frame that a peer which follows the protocol does not send ends the connection
//! ([`AsyncError::Transport`]) and touches nothing. Places are checked again for every part.
//!
//! How it works: a message or write is one *assembly*, begun by its first part and ended by its last; the next begins after
//! that. Where it goes is decided by the first part: into the oldest posted receive, into a region, or nowhere.
//!
//! The reliability table (standard, section 2.5; the shared facts list it row by row) is [`Vi::does_not_fit`].

use super::attributes::Reliability;
use super::descriptor::Descriptor;
use super::frame::{LocalMemory, ViFrame, Wire};
use super::outgoing::{Answer, READS_MAX};
use super::protection::{Access, NotPermitted, Protection, RemotePlace};
use super::segments::{LocalPlace, Places};
use super::status::{AsyncError, Completion, Status};
use super::vi::{Vi, ViState, failed};

/// Messages that may be in their place without that the peer has taken the news: more than anybody posts at once.
const OWED_MAX: u32 = 1 << 20;

/// Where the parts of a message go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sink {
    /// Into the receive of this number.
    Receive(u64),
    /// Into a region of ours.
    Registered(RemotePlace),
    /// Nowhere.
    Nowhere,
}

/// A message of which a part has come.
#[derive(Clone, Copy, Debug)]
struct Assembly {
    /// Its first frame.
    first: ViFrame,
    came: u32,
    sink: Sink,
    /// A part of it was offered: the sender waits until it is placed.
    is_offered: bool,
}

/// What has come in part.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    assembly: Option<Assembly>,
}

impl Incoming {
    /// The receive that was filled in part.
    pub(super) fn partly_filled(&self) -> Option<u64> {
        match self.assembly?.sink {
            Sink::Receive(number) => Some(number),
            _ => None,
        }
    }
}

/// A part of a message, as the peer says.
#[derive(Clone, Copy)]
struct Fragment {
    frame: ViFrame,
    bytes: u32,
    offset: u32,
    immediate: Option<u32>,
    length: u32,
}

/// The peer does not follow the protocol.
struct Violation;

/// Why a part is not where it belongs.
#[derive(Clone, Copy)]
enum Misplaced {
    /// It may not be there.
    NoPlace(AsyncError),
    /// It was offered, and is not to be had.
    Gone,
}

impl Vi {
    /// A frame came. What it makes this side say goes out at once, as far as there is room.
    pub fn frame<M: LocalMemory>(
        &mut self,
        frame: &ViFrame,
        payload: &M::Payload,
        protection: &Protection,
        wire: &mut impl Wire,
        memory: &mut M,
    ) {
        if self.state == ViState::Connected && self.hear(frame, payload, protection, memory).is_err() {
            let messages = core::mem::take(&mut self.outgoing.owed);
            self.outgoing.farewell = Some(ViFrame::Broken { messages, status: Status::TRANSPORT_ERROR });
            self.end(AsyncError::Transport, memory);
        }
        self.pump(protection, wire, memory);
    }

    fn hear<M: LocalMemory>(
        &mut self,
        frame: &ViFrame,
        payload: &M::Payload,
        protection: &Protection,
        memory: &mut M,
    ) -> Result<(), Violation> {
        let length = M::bytes(payload);
        match *frame {
            ViFrame::Send { bytes, offset, immediate } | ViFrame::Write { bytes, offset, immediate, .. } => {
                let part = Fragment { frame: *frame, bytes, offset, immediate, length };
                self.part_came(&part, payload, protection, memory)
            }
            ViFrame::Data { offset } => self.data_came(offset, payload, protection, memory),
            _ if length > 0 => Err(Violation),
            ViFrame::Read { from, bytes } => self.read_came(from, bytes),
            ViFrame::ReadRefused { messages } => self.read_was_refused(messages, memory),
            ViFrame::Placed { messages } => self.were_placed(messages),
            ViFrame::Credit { receives } => self.credit_came(receives).then_some(()).ok_or(Violation),
            ViFrame::Broken { messages, status } => self.was_broken(messages, status, memory),
        }
    }

    fn part_came<M: LocalMemory>(
        &mut self,
        part: &Fragment,
        payload: &M::Payload,
        protection: &Protection,
        memory: &mut M,
    ) -> Result<(), Violation> {
        let assembly = self.assemble(part, protection, memory)?;
        if self.state != ViState::Connected {
            return Ok(());
        }
        let is_offered = assembly.is_offered || M::is_offered(payload);
        let sink = match self.place(&assembly, part, payload, protection, memory) {
            Ok(()) => assembly.sink,
            Err(Misplaced::Gone) => return self.is_gone(memory),
            Err(Misplaced::NoPlace(error)) => {
                self.does_not_fit(assembly.sink, error, part.immediate, memory);
                Sink::Nowhere
            }
        };
        if self.state != ViState::Connected {
            return Ok(());
        }
        let came = assembly.came + part.length;
        if came < part.bytes {
            self.incoming.assembly = Some(Assembly { came, sink, is_offered, ..assembly });
            return Ok(());
        }
        if is_offered && !memory.still_stands() {
            return self.is_gone(memory);
        }
        self.incoming.assembly = None;
        self.message_came(sink, part, protection, memory);
        self.note_taken(is_offered);
        Ok(())
    }

    /// What was offered is not to be had, or not any more: the sender has ended the connection, or does not keep to what it says.
    fn is_gone(&mut self, memory: &mut impl LocalMemory) -> Result<(), Violation> {
        let messages = core::mem::take(&mut self.outgoing.owed);
        self.outgoing.farewell = Some(ViFrame::Broken { messages, status: Status::TRANSPORT_ERROR });
        self.end(AsyncError::ConnectionLost, memory);
        Ok(())
    }

    /// A message was taken whole: its sender may wait to hear so.
    fn note_taken(&mut self, is_offered: bool) {
        if self.state == ViState::Connected && (is_offered || self.attributes.reliability == Reliability::Reception) {
            self.outgoing.owed += 1;
        }
    }

    /// The message that a part belongs to: the one that has begun, or a new one.
    fn assemble(
        &mut self,
        part: &Fragment,
        protection: &Protection,
        memory: &mut impl LocalMemory,
    ) -> Result<Assembly, Violation> {
        let is_possible = part.bytes <= self.attributes.transfer_bytes_max
            && part.offset.checked_add(part.length).is_some_and(|end| end <= part.bytes)
            && (part.length > 0 || part.bytes == 0)
            && self.outgoing.owed < OWED_MAX;
        if !is_possible {
            return Err(Violation);
        }
        match self.incoming.assembly {
            Some(assembly) if part.offset == assembly.came && is_same(&assembly.first, &part.frame) => Ok(assembly),
            None if part.offset == 0 => {
                let sink = self.sink_for(part, protection, memory);
                Ok(Assembly { first: part.frame, came: 0, sink, is_offered: false })
            }
            _ => Err(Violation),
        }
    }

    /// Where a message goes that begins now.
    fn sink_for(&mut self, part: &Fragment, protection: &Protection, memory: &mut impl LocalMemory) -> Sink {
        if let ViFrame::Write { to, .. } = part.frame {
            let may = self.attributes.remote_write
                && protection
                    .check(self.attributes.tag, Access::RemoteWrite, to.handle, to.address, part.bytes)
                    .is_ok();
            if may {
                return Sink::Registered(to);
            }
            self.does_not_fit(Sink::Nowhere, AsyncError::WriteProtection, part.immediate, memory);
            return Sink::Nowhere;
        }
        let Some((number, receive)) = self.receives.next() else {
            self.does_not_fit(Sink::Nowhere, AsyncError::ReceiveQueueEmpty, None, memory);
            return Sink::Nowhere;
        };
        let mistake = receive.refused.or_else(|| {
            let is_fault = self.check_receive(receive, 0, receive.bytes(), protection).is_err();
            let is_short = receive.bytes() < part.bytes;
            is_fault.then_some(Status::PROTECTION_ERROR).or(is_short.then_some(Status::LENGTH_ERROR))
        });
        self.receives.begin_next();
        match mistake {
            None => Sink::Receive(number),
            Some(status) => {
                self.receives.end_work(number, failed(Status::OP_RECEIVE.and(status)));
                self.break_unless_unreliable(Status::REMOTE_DESCRIPTOR_ERROR, AsyncError::ConnectionLost, memory);
                Sink::Nowhere
            }
        }
    }

    /// Moves a part to where it belongs.
    fn place<M: LocalMemory>(
        &mut self,
        assembly: &Assembly,
        part: &Fragment,
        payload: &M::Payload,
        protection: &Protection,
        memory: &mut M,
    ) -> Result<(), Misplaced> {
        let is_placed = match assembly.sink {
            Sink::Nowhere => true,
            Sink::Registered(to) => {
                let no_place = Misplaced::NoPlace(AsyncError::WriteProtection);
                let address = to.address.checked_add(u64::from(part.offset)).ok_or(no_place)?;
                let (tag, handle) = (self.attributes.tag, to.handle);
                protection
                    .check(tag, Access::RemoteWrite, handle, address, part.length)
                    .map_err(|NotPermitted| no_place)?;
                memory.place(payload, Places::one(&LocalPlace { address, handle, bytes: part.length }))
            }
            Sink::Receive(number) => {
                let no_descriptor = Misplaced::NoPlace(AsyncError::Catastrophic);
                let receive = self.receives.descriptor(number).ok_or(no_descriptor)?;
                self.check_receive(receive, part.offset, part.length, protection)
                    .map_err(|NotPermitted| Misplaced::NoPlace(AsyncError::ConnectionLost))?;
                memory.place(payload, receive.segments.part(part.offset, part.length))
            }
        };
        if is_placed { Ok(()) } else { Err(Misplaced::Gone) }
    }

    /// All parts of a message have come.
    fn message_came(&mut self, sink: Sink, part: &Fragment, protection: &Protection, memory: &mut impl LocalMemory) {
        let immediate = part.immediate.unwrap_or(0);
        let bits = part.immediate.map_or(Status::default(), |_| Status::IMMEDIATE).and(Status::DONE);
        match (sink, part.immediate) {
            (Sink::Nowhere, _) => {}
            (Sink::Receive(number), _) => {
                let status = Status::OP_RECEIVE.and(bits);
                self.receives.end_work(number, Completion { bytes: part.bytes, immediate, status });
            }
            (Sink::Registered(_), None) => {}
            (Sink::Registered(_), Some(_)) => {
                let Some((number, receive)) = self.receives.next() else {
                    return self.does_not_fit(Sink::Nowhere, AsyncError::ReceiveQueueEmpty, None, memory);
                };
                let mistake = receive.refused.or_else(|| {
                    let is_fault = self.check_receive(receive, 0, receive.bytes(), protection).is_err();
                    is_fault.then_some(Status::PROTECTION_ERROR)
                });
                self.receives.begin_next();
                if let Some(status) = mistake {
                    self.receives.end_work(number, failed(Status::OP_REMOTE_WRITE.and(status)));
                    let error = AsyncError::ConnectionLost;
                    return self.break_unless_unreliable(Status::REMOTE_DESCRIPTOR_ERROR, error, memory);
                }
                let status = Status::OP_REMOTE_WRITE.and(bits);
                self.receives.end_work(number, Completion { bytes: part.bytes, immediate, status });
            }
        }
    }

    /// A message or write has no place here. Unreliable: it is dropped, and the error handler hears of it, or, if it carried
    /// immediate data, the receive that it would have used. Reliable: the connection ends, and the sender hears why.
    fn does_not_fit(&mut self, sink: Sink, error: AsyncError, immediate: Option<u32>, memory: &mut impl LocalMemory) {
        let is_write = error == AsyncError::WriteProtection;
        let status = if is_write { Status::RDMA_PROTECTION_ERROR } else { Status::REMOTE_DESCRIPTOR_ERROR };
        let own = if is_write {
            Status::OP_REMOTE_WRITE.and(status)
        } else {
            Status::OP_RECEIVE.and(Status::PROTECTION_ERROR)
        };
        let told = match sink {
            Sink::Receive(number) => Some(number),
            _ if immediate.is_some() => {
                self.receives.next().map(|(number, _)| number).inspect(|_| self.receives.begin_next())
            }
            _ => None,
        };
        match told {
            Some(number) => self.receives.end_work(number, failed(own)),
            None => self.note(error),
        }
        self.break_unless_unreliable(status, error, memory);
    }

    fn break_unless_unreliable(&mut self, status: Status, error: AsyncError, memory: &mut impl LocalMemory) {
        if self.attributes.reliability.is_reliable() {
            let messages = core::mem::take(&mut self.outgoing.owed);
            self.outgoing.farewell = Some(ViFrame::Broken { messages, status });
            self.end(error, memory);
        }
    }

    /// A read waits for its turn, as what is asked first is answered first; whether it may be done is looked at then.
    fn read_came(&mut self, from: RemotePlace, bytes: u32) -> Result<(), Violation> {
        let is_possible = self.attributes.reliability.is_reliable()
            && bytes <= self.attributes.transfer_bytes_max
            && self.outgoing.answers.len() < READS_MAX;
        if !is_possible {
            return Err(Violation);
        }
        self.outgoing.answers.push_back(Answer { from, bytes, said: 0 });
        Ok(())
    }

    fn data_came<M: LocalMemory>(
        &mut self,
        offset: u32,
        payload: &M::Payload,
        protection: &Protection,
        memory: &mut M,
    ) -> Result<(), Violation> {
        let length = M::bytes(payload);
        let asked = self.outgoing.asked.front_mut().ok_or(Violation)?;
        let read = self.sends.descriptor(asked.number).ok_or(Violation)?;
        let bytes = read.bytes();
        let is_possible = offset == asked.came && length <= bytes - asked.came && (length > 0 || bytes == 0);
        if !is_possible {
            return Err(Violation);
        }
        let tag = self.attributes.tag;
        let is_fault =
            |place: LocalPlace| protection.check(tag, Access::Local, place.handle, place.address, place.bytes).is_err();
        if read.segments.part(offset, length).any(is_fault) {
            let number = asked.number;
            self.sends.end_work(number, failed(Status::of_send(read.operation).and(Status::PROTECTION_ERROR)));
            self.break_unless_unreliable(Status::TRANSPORT_ERROR, AsyncError::ConnectionLost, memory);
            return Ok(());
        }
        // Answers are never offered.
        if M::is_offered(payload) || !memory.place(payload, read.segments.part(offset, length)) {
            return Err(Violation);
        }
        asked.came += length;
        if asked.came == bytes {
            let number = asked.number;
            self.outgoing.asked.pop_front();
            self.end_sent(number);
        }
        Ok(())
    }

    fn read_was_refused(&mut self, messages: u32, memory: &mut impl LocalMemory) -> Result<(), Violation> {
        self.were_placed(messages)?;
        let asked = self.outgoing.asked.pop_front().ok_or(Violation)?;
        let operation = self.sends.descriptor(asked.number).ok_or(Violation)?.operation;
        let completion = failed(Status::of_send(operation).and(Status::RDMA_PROTECTION_ERROR));
        self.sends.end_work(asked.number, completion);
        self.end(AsyncError::ConnectionLost, memory);
        Ok(())
    }

    fn were_placed(&mut self, messages: u32) -> Result<(), Violation> {
        if messages as usize > self.outgoing.unplaced.len() {
            return Err(Violation);
        }
        for _ in 0..messages {
            if let Some(number) = self.outgoing.unplaced.pop_front() {
                self.end_sent(number);
            }
        }
        Ok(())
    }

    fn was_broken(&mut self, messages: u32, status: Status, memory: &mut impl LocalMemory) -> Result<(), Violation> {
        self.were_placed(messages)?;
        if let (Some(status), Some((number, partial))) = (known(status), self.first_unplaced())
            && let Some(send) = self.sends.descriptor(number)
        {
            let completion = failed(Status::of_send(send.operation).and(status).and(partial));
            self.sends.end_work(number, completion);
        }
        self.end(AsyncError::ConnectionLost, memory);
        Ok(())
    }

    /// The first message that is not in its place, of those that are confirmed one by one; perhaps only a part of it has gone.
    fn first_unplaced(&mut self) -> Option<(u64, Status)> {
        if self.attributes.reliability != Reliability::Reception {
            return None;
        }
        let whole = self.outgoing.unplaced.pop_front().map(|number| (number, Status::default()));
        whole.or_else(|| Some((self.outgoing.partly_sent(&self.sends)?, Status::PARTIAL_ERROR)))
    }

    fn check_receive(
        &self,
        receive: &Descriptor,
        offset: u32,
        bytes: u32,
        protection: &Protection,
    ) -> Result<(), NotPermitted> {
        receive.segments.part(offset, bytes).try_for_each(|place| {
            protection.check(self.attributes.tag, Access::Local, place.handle, place.address, place.bytes)
        })
    }
}

/// Whether both are parts of one message.
fn is_same(first: &ViFrame, other: &ViFrame) -> bool {
    let begin = |frame: &ViFrame| match *frame {
        ViFrame::Send { bytes, immediate, .. } => Some((None, bytes, immediate)),
        ViFrame::Write { to, bytes, immediate, .. } => Some((Some(to), bytes, immediate)),
        _ => None,
    };
    begin(first) == begin(other)
}

/// What a peer may say of a message of ours. Of anything else (a mistake of its own, say) ours are not at fault.
fn known(status: Status) -> Option<Status> {
    let known = [Status::REMOTE_DESCRIPTOR_ERROR, Status::RDMA_PROTECTION_ERROR];
    known.into_iter().find(|&one| one == status)
}
