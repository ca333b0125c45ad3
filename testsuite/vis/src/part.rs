//! A NIC's place in the cases, and the steps that most begin and end with.

use alloc::vec::Vec;

use musubi_vipl::ViError;
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::engine::{
    AsyncError, Dequeue, MemoryAttributes, MemoryHandle, Queue, Reliability, TagHandle, ViAttributes, ViState,
};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::{QueueNumber, ViNumber};
use musubi_vipl::over::{Nic, NicNode};

use crate::descriptors::{BYTES, Done, PLACES, Written};
use crate::{Failure, PATIENCE_NS, Setup, ensure, have};

/// Longest message of the cases.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 20_000;
/// Where partners meet.
const MEETING: &[u8] = b"meeting";
/// What partners tell each other when they meet, bytes.
pub(crate) const TOLD_BYTES: usize = 64;
/// Places of the descriptors for that, the last ones: one to send, two to receive.
const SAYS: usize = PLACES - 3;
const HEARS: [usize; 2] = [PLACES - 2, PLACES - 1];
/// Their buffers lie at the region's end.
const WORDS: usize = BYTES - 3 * TOLD_BYTES;
/// Time between two questions whether somebody listens, nanoseconds.
const AGAIN_NS: u64 = 2_000_000;

/// A NIC in the cases.
pub struct Part<'s, R: NicNode> {
    setup: &'s Setup<'s, R>,
    nic: Nic<R>,
    pub(crate) tag: TagHandle,
    /// The region of descriptors and buffers.
    pub(crate) region: (u64, MemoryHandle),
    /// Connected with the partner: by it they meet.
    meeting: ViNumber,
    /// Words that the partner has said, so far.
    heard: usize,
    case: u8,
    connections: u8,
}

impl<'s, R: NicNode> Part<'s, R> {
    /// Opens the NIC and meets the partner.
    ///
    /// # Errors
    /// If the partner does not come, or the NIC has no memory.
    pub fn join(setup: &'s Setup<'s, R>) -> Result<Self, Failure> {
        let nic = (setup.open)();
        let tag = have!(nic.with(|nic| nic.create_tag()), "there are tags");
        let attributes = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let region = have!(nic.with(|nic| nic.register_own(Lines::zeroed(BYTES), attributes)), "memory is registered");
        let meeting = ViNumber(0);
        let mut part = Part { setup, nic, tag, region, meeting, heard: 0, case: u8::MAX, connections: 0 };
        part.meeting = part.vi(part.usual(Reliability::Delivery))?;
        part.connect_meeting()?;
        Ok(part)
    }

    /// Connects the VI by which partners meet: at the beginning, and after the partner's end.
    pub(crate) fn connect_meeting(&mut self) -> Result<(), Failure> {
        self.heard = 0;
        for (index, place) in HEARS.into_iter().enumerate() {
            self.post_told(place, index)?;
        }
        self.connect_at(MEETING, self.meeting)
    }

    /// The VI by which partners meet has lost its connection; it is idle again.
    pub(crate) fn leave_meeting(&mut self) -> Result<(), Failure> {
        have!(self.nic().disconnect(self.meeting), "there is this VI");
        while let Some(done) = self.done(self.meeting, Queue::Receive)? {
            ensure!(done.status & 0x20 != 0, "what nobody said comes back flushed");
        }
        while self.done(self.meeting, Queue::Send)?.is_some() {}
        Ok(())
    }

    pub(crate) fn begin(&mut self, case: u8) -> Result<(), Failure> {
        (self.case, self.connections) = (case, 0);
        Ok(())
    }

    /// The NIC.
    pub(crate) fn nic(&self) -> &Nic<R> {
        &self.nic
    }

    /// The NIC is opened anew, as after a reset: the former run is neither ended nor called any more.
    pub(crate) fn begin_anew(&mut self) -> Result<(), Failure> {
        let anew = Part { case: self.case, ..Part::join(self.setup)? };
        core::mem::forget(core::mem::replace(self, anew));
        Ok(())
    }

    // ---- who and when ----

    /// Whether this NIC waits for callers, in a case of two.
    pub(crate) fn serves(&self) -> bool {
        self.setup.own.0.is_multiple_of(2)
    }

    pub(crate) fn own(&self) -> NicNumber {
        self.setup.own
    }

    pub(crate) fn partner(&self) -> NicNumber {
        NicNumber(self.setup.own.0 ^ 1)
    }

    /// How many NICs there are.
    pub(crate) fn nics(&self) -> u16 {
        self.setup.nics
    }

    pub(crate) fn within(&self, ns: u64) -> R::Deadline {
        (self.setup.within)(ns)
    }

    pub(crate) fn soon(&self) -> R::Deadline {
        self.within(PATIENCE_NS)
    }

    /// Lets some time go by.
    pub(crate) fn pause(&self) -> Result<(), Failure> {
        let nothing = self.nic().wait_until(self.within(AGAIN_NS), |_| None::<()>);
        ensure!(nothing == Err(ViError::Timeout), "time goes by");
        Ok(())
    }

    // ---- VIs and connections ----

    /// Attributes as most cases have them.
    pub(crate) fn usual(&self, reliability: Reliability) -> ViAttributes {
        ViAttributes {
            reliability,
            transfer_bytes_max: MESSAGE_BYTES_MAX,
            class: 3,
            tag: self.tag,
            remote_write: true,
            remote_read: reliability.is_reliable(),
            credit: false,
        }
    }

    pub(crate) fn vi(&self, attributes: ViAttributes) -> Result<ViNumber, Failure> {
        self.vi_with(attributes, None)
    }

    /// A VI whose queues both tell this completion queue.
    pub(crate) fn vi_with(&self, attributes: ViAttributes, queue: Option<QueueNumber>) -> Result<ViNumber, Failure> {
        Ok(have!(self.nic().with(|nic| nic.create_vi(attributes, queue, queue)), "a VI is made"))
    }

    pub(crate) fn destroy(&self, vi: ViNumber) -> Result<(), Failure> {
        have!(self.nic().with(|nic| nic.destroy_vi(vi)), "an idle VI with nothing posted is destroyed");
        Ok(())
    }

    pub(crate) fn state(&self, vi: ViNumber) -> Result<ViState, Failure> {
        Ok(have!(self.nic().with(|nic| nic.query_vi(vi)), "there is this VI").state)
    }

    pub(crate) fn address(&self, of: NicNumber, discriminator: &[u8]) -> Result<Address, Failure> {
        Address::new(of, discriminator).ok_or(Failure {
            file: file!(),
            line: line!(),
            expected: "a discriminator that is not too long",
            found: None,
        })
    }

    /// Where the case's next connection is made: both partners count alike.
    pub(crate) fn next_port(&mut self) -> [u8; 2] {
        self.connections += 1;
        [self.case, self.connections]
    }

    /// Connects a VI with the partner's, as the case's next one.
    pub(crate) fn connect(&mut self, vi: ViNumber) -> Result<(), Failure> {
        let port = self.next_port();
        self.connect_at(&port, vi)
    }

    /// Connects a VI with the partner's, which uses the same port.
    pub(crate) fn connect_at(&self, port: &[u8], vi: ViNumber) -> Result<(), Failure> {
        if self.serves() {
            self.accept(port, vi)
        } else {
            have!(self.ask(port, vi), "the server accepts");
            Ok(())
        }
    }

    fn accept(&self, port: &[u8], vi: ViNumber) -> Result<(), Failure> {
        let local = self.address(self.own(), port)?;
        let (caller, from, _) = have!(self.nic().wait_caller(&local, self.soon()), "the partner asks");
        ensure!(from.nic == self.partner(), "it is the partner who asks");
        have!(self.nic().accept(caller, vi, self.soon()), "the caller confirms");
        Ok(())
    }

    /// Asks the partner until it listens.
    pub(crate) fn ask(&self, port: &[u8], vi: ViNumber) -> Result<ViAttributes, ViError> {
        let local = Address::new(self.own(), port).ok_or(ViError::Parameter)?;
        let remote = Address::new(self.partner(), port).ok_or(ViError::Parameter)?;
        for _ in 0..PATIENCE_NS / AGAIN_NS {
            match self.nic().request(vi, local.clone(), remote.clone(), self.soon()) {
                Err(ViError::NoMatch) => self.pause().map_err(|_| ViError::Closed)?,
                other => return other,
            }
        }
        Err(ViError::NoMatch)
    }

    /// Waits until the VI has lost its connection.
    pub(crate) fn lost(&self, vi: ViNumber) -> Result<(), Failure> {
        let is_lost = self.nic().wait_until(self.soon(), |nic| {
            nic.query_vi(vi).is_ok_and(|picture| picture.state == ViState::Error).then_some(())
        });
        have!(is_lost, "the connection ends");
        Ok(())
    }

    /// What the error handler would have heard.
    pub(crate) fn news(&self) -> Result<Vec<(Option<ViNumber>, AsyncError)>, Failure> {
        let mut news = Vec::new();
        let all = self.nic().with(|nic| {
            news.extend(core::iter::from_fn(|| nic.take_news()).map(|one| (one.vi, one.error)));
            Ok(())
        });
        have!(all, "the NIC is open");
        Ok(news)
    }

    // ---- descriptors ----

    pub(crate) fn post(&self, vi: ViNumber, queue: Queue, place: usize, what: &Written) -> Result<(), Failure> {
        let address = self.write(place, what)?;
        have!(self.nic().post(vi, queue, (address, self.region.1)), "a descriptor is posted");
        Ok(())
    }

    /// Waits for the oldest descriptor of a queue.
    pub(crate) fn wait(&self, vi: ViNumber, queue: Queue) -> Result<Done, Failure> {
        match have!(self.nic().wait(vi, queue, self.soon()), "a descriptor completes") {
            Dequeue::Complete { address, .. } => self.completed(address),
            _ => Err(Failure { file: file!(), line: line!(), expected: "a descriptor is posted", found: None }),
        }
    }

    /// The oldest descriptor of a queue, if it has completed.
    pub(crate) fn done(&self, vi: ViNumber, queue: Queue) -> Result<Option<Done>, Failure> {
        match have!(self.nic().dequeue(vi, queue), "there is this VI") {
            Dequeue::Complete { address, .. } => Ok(Some(self.completed(address)?)),
            Dequeue::Pending | Dequeue::Empty => Ok(None),
        }
    }

    // ---- the partner ----

    fn post_told(&self, place: usize, index: usize) -> Result<(), Failure> {
        let buffer = WORDS + (1 + index) * TOLD_BYTES;
        self.post(self.meeting, Queue::Receive, place, &Written::message(buffer, TOLD_BYTES))
    }

    /// Both partners are here.
    pub(crate) fn meet(&mut self) -> Result<(), Failure> {
        self.exchange(&[]).map(|_| ())
    }

    /// Both partners are here and have told each other something, of 64 bytes at most.
    ///
    /// # Errors
    /// If the partner does not come.
    pub fn exchange(&mut self, told: &[u8]) -> Result<Vec<u8>, Failure> {
        let at = self.heard as u32;
        self.put(WORDS, told)?;
        let says = Written { immediate: Some(at), ..Written::message(WORDS, told.len()) };
        self.post(self.meeting, Queue::Send, SAYS, &says)?;
        let said = self.wait(self.meeting, Queue::Send)?;
        ensure!(said.status == 1, "word is given to the partner");
        let done = self.wait(self.meeting, Queue::Receive)?;
        let index = self.heard % HEARS.len();
        ensure!(done.status & 0x1fe == 0 && done.place == HEARS[index], "the partner comes, too");
        ensure!(done.immediate == at, "the partner is at the same place");
        let word = self.get(WORDS + (1 + index) * TOLD_BYTES, done.bytes as usize)?;
        self.post_told(done.place, index)?;
        self.heard += 1;
        Ok(word)
    }
}
