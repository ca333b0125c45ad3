//! One opened NIC: its VIs, completion queues, tags, memory and connections, as the protocol of a running node.
//!
//! What you may rely on: it is pure but for the program's memory, which it touches within what is registered and nowhere else
//! ([`RegisteredMemory`]); it reads no clock, waits for nothing, and is bounded by its [`Limits`] and by what it says of
//! each part. Every handle is looked up. Nothing that a peer says changes a VI that is not connected with it.
//!
//! How it works: [`crate::engine`] decides about a VI; here frames find their VI by name, completions find their queue, and
//! the connection manager (`connecting`) makes and ends connections. Frames for VIs of this NIC itself go through a queue that is empty again before a call returns.
//!
//! What it does not do: call handlers, wait, know a kernel: that is for who has the running node.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

use musubi_transport::links::{Block, Links};
use musubi_transport::{NodeId, Priority};

use crate::address::{Directory, NicNumber};
use crate::engine::{
    Access, AsyncError, CONTROL_BYTES, CompletionQueue, CompletionSource, ControlWords, Dequeue, Descriptor, Limits,
    MemoryHandle, Protection, Queue, SEGMENT_BYTES, SegmentWords, TagHandle, Vi, ViAttributes, ViState,
};
use crate::error::ViError;
use crate::memory::RegisteredMemory;
use crate::slots::Slots;
use crate::wire::ViName;

mod alarms;
mod answers;
mod attempts;
mod carriage;
mod connecting;
mod connection;
mod counts;
mod frames;
mod grants;
mod intake;
mod lent;
mod links;
mod notifying;
mod offers;
mod pacing;
mod protocol;
mod resources;
mod servers;
#[cfg(test)]
mod tests;
mod turns;

use alarms::Alarms;
use carriage::{Carriage, ViWire};
use connecting::Connecting;
use connection::{Connection, Names};
use counts::Asked;
use frames::Edge;
use intake::Intake;
use notifying::{Notifying, Policy};
use pacing::{Pace, Paced};

pub use alarms::AlarmNumber;
pub use connecting::{CallerNumber, ListenerNumber};
pub use counts::{ClassCounts, ClassPicture, NicPicture};
pub use lent::{LentBack, LentWork};
pub use notifying::Notification;
pub use protocol::Awaited;
pub use turns::Weight;

/// Alignment of descriptors.
pub const DESCRIPTOR_ALIGNMENT: u64 = 64;
/// Errors that wait for the handler; what comes beyond is counted.
const NEWS_MAX: usize = 1024;

/// A VI of this NIC, by number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViNumber(pub u32);

/// A completion queue of this NIC, by number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueNumber(pub u32);

/// What the error handler is to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorNews {
    /// The VI that it is about, if it is about one.
    pub vi: Option<ViNumber>,
    /// The completion queue likewise.
    pub queue: Option<QueueNumber>,
    /// Where the descriptor lies, if it is about one.
    pub descriptor: u64,
    /// What.
    pub error: AsyncError,
}

#[derive(Debug)]
struct ViEntry {
    vi: Vi,
    send_queue: Option<QueueNumber>,
    receive_queue: Option<QueueNumber>,
    connection: Option<Connection>,
    attempt: Option<connecting::Attempt>,
    pace: Option<Box<Pace>>,
    /// What came with the answer to its last attempt.
    told: Vec<u8>,
    policy: Option<Box<Policy>>,
    weight: Weight,
}

impl ViEntry {
    fn completion_queue(&self, queue: Queue) -> Option<QueueNumber> {
        match queue {
            Queue::Send => self.send_queue,
            Queue::Receive => self.receive_queue,
        }
    }
}

/// What `VipQueryVi` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViPicture {
    /// Its state.
    pub state: ViState,
    /// Its attributes.
    pub attributes: ViAttributes,
    /// Whether nothing is posted for sending.
    pub sends_empty: bool,
    /// Whether no receive is posted.
    pub receives_empty: bool,
}

/// One opened NIC.
#[derive(Debug)]
pub struct NicState<B> {
    nic: NicNumber,
    directory: Directory,
    limits: Limits,
    vis: Slots<ViEntry>,
    queues: Slots<CompletionQueue>,
    protection: Protection,
    memory: RegisteredMemory,
    carriage: Carriage,
    intake: Intake,
    connecting: Connecting,
    alarms: Alarms,
    paced: Paced,
    notifying: Notifying,
    /// By class, without what the VIs that there are count themselves.
    counts: [ClassCounts; Priority::COUNT],
    /// Connections that were made, and those that were lost.
    connections: u64,
    lost: u64,
    asked: Asked,
    names: Names,
    /// Tells one run of this node from another.
    incarnation: u32,
    news: VecDeque<ErrorNews>,
    /// Errors that found no room in `news`.
    news_lost: u64,
    /// A descriptor's segments, while it is read.
    segments: Vec<SegmentWords>,
    changes: u64,
    now_ns: u64,
    /// What stays counted of frames that were against the rules.
    refused: u64,
    blocks: PhantomData<fn() -> B>,
}

impl<B: Block> NicState<B> {
    fn new(me: NodeId, incarnation: u32) -> NicState<B> {
        let limits = Limits::DEFAULT;
        NicState {
            nic: NicNumber::of_node(me).map_or(NicNumber(0), |(nic, _)| nic),
            directory: Directory { nics: Vec::new() },
            limits,
            vis: Slots::new(limits.vis),
            queues: Slots::new(limits.completion_queues),
            protection: Protection::new(&limits, incarnation),
            memory: RegisteredMemory::new(),
            carriage: Carriage::new(me, incarnation),
            intake: Intake::default(),
            connecting: Connecting::default(),
            alarms: Alarms::default(),
            paced: Paced::default(),
            notifying: Notifying::default(),
            counts: [ClassCounts::default(); Priority::COUNT],
            connections: 0,
            lost: 0,
            asked: Asked::default(),
            names: Names::new(incarnation),
            incarnation,
            news: VecDeque::new(),
            news_lost: 0,
            segments: Vec::new(),
            changes: 0,
            now_ns: 0,
            refused: 0,
            blocks: PhantomData,
        }
    }

    /// Says what NICs the system has. To be called before anything else.
    pub fn describe(&mut self, directory: Directory) {
        self.intake = Intake::of(directory.intakes(self.nic));
        self.directory = directory;
    }

    /// Which NIC this is.
    pub fn number(&self) -> NicNumber {
        self.nic
    }

    /// The NICs of the system.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Frames of peers that were against the rules, so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// `VipPostSend`, `VipPostRecv`: of the descriptor at this address, in this region.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI, or no descriptor there that may be used by it; [`ViError::Resource`] if the
    /// queue is full. The error handler hears of the latter two.
    pub fn post(
        &mut self,
        vi: ViNumber,
        queue: Queue,
        (address, handle): (u64, MemoryHandle),
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        let tag = self.vis.get(vi.0).ok_or(ViError::Parameter)?.vi.attributes().tag;
        let Some(control) = self.read_descriptor(tag, address, handle) else {
            self.tell(ErrorNews { vi: Some(vi), queue: None, descriptor: address, error: AsyncError::PostDescriptor });
            return Err(ViError::Parameter);
        };
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        let (segments, limits) = (&self.segments, &self.limits);
        let write = |place: &mut Descriptor| place.read((address, handle), &control, segments, queue, limits);
        let posted = entry.vi.post(queue, write, &mut Edge::<B>::of(&self.memory));
        if queue == Queue::Send || entry.vi.has_receives_to_tell() {
            self.pump(Slots::<ViEntry>::place(vi.0), links);
        } else {
            self.settle(Slots::<ViEntry>::place(vi.0));
        }
        self.carry_local(links);
        posted.map_err(|_| ViError::Resource)
    }

    /// The control segment at an address, if there may be a descriptor; its segments are in `self.segments` then.
    #[inline]
    fn read_descriptor(&mut self, tag: TagHandle, address: u64, handle: MemoryHandle) -> Option<ControlWords> {
        let may_use = |bytes: u32| self.protection.check(tag, Access::Local, handle, address, bytes).is_ok();
        if !address.is_multiple_of(DESCRIPTOR_ALIGNMENT) || !may_use(CONTROL_BYTES as u32) {
            return None;
        }
        let control = self.memory.control(handle, address)?;
        let count = control.segments;
        self.segments.clear();
        // More than are allowed are not read: the descriptor completes with an error.
        if count <= self.limits.segments {
            if !may_use(CONTROL_BYTES as u32 + u32::from(count) * SEGMENT_BYTES as u32) {
                return None;
            }
            self.memory.segments(handle, address, count, &mut self.segments)?;
        }
        Some(control)
    }

    /// `VipSendDone`, `VipRecvDone`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI.
    #[inline]
    pub fn dequeue(&mut self, vi: ViNumber, queue: Queue) -> Result<Dequeue, ViError> {
        let dequeued = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?.vi.dequeue(queue);
        if matches!(dequeued, Dequeue::Complete { .. }) {
            self.note_taken(Self::place_of(vi), queue);
        }
        Ok(dequeued)
    }

    /// The next error for the handler.
    pub fn take_news(&mut self) -> Option<ErrorNews> {
        self.news.pop_front()
    }

    // ---- what all of these share ----

    /// Lets a VI say what it has to say.
    #[inline]
    fn pump(&mut self, place: u16, links: &mut impl Links<Block = B>) {
        let Some((_, entry)) = self.vis.at_place_mut(place) else { return };
        if let Some(connection) = &mut entry.connection {
            let (carriage, memory) = (&mut self.carriage, &self.memory);
            let pace = entry.pace.as_deref_mut().map(|pace| (pace, self.now_ns));
            let is_alone = entry.vi.has_one_send();
            let mut wire = ViWire { carriage, links, memory, connection, pace, place, is_alone, turn: None };
            entry.vi.pump(&self.protection, &mut wire, &mut Edge::<B>::of(memory));
        }
        self.settle(place);
        self.note_pace(place);
    }

    /// Tells what happened to a VI.
    #[inline]
    fn settle(&mut self, place: u16) {
        let Some((number, entry)) = self.vis.at_place_mut(place) else { return };
        let happened = entry.vi.take_happened();
        if happened.is_nothing() {
            return;
        }
        let class = usize::from(entry.vi.attributes().class);
        match (&mut entry.policy, self.counts.get_mut(class)) {
            (Some(policy), Some(counts)) => match policy.completed(self.now_ns, &happened, counts) {
                None => self.changes += 1,
                Some(due_ns) => self.notifying.hold(place, due_ns),
            },
            _ => self.changes += 1,
        }
        let counts = [(Queue::Send, happened.sends), (Queue::Receive, happened.receives)];
        for (queue, count) in counts {
            let Some(bound) = entry.completion_queue(queue).filter(|_| count > 0) else { continue };
            let Some(completions) = self.queues.get_mut(bound.0) else { continue };
            let source = CompletionSource { vi: number, queue };
            let overrun = (0..count).filter(|_| completions.push(source).is_err()).count();
            if overrun > 0 {
                let news = ErrorNews {
                    vi: Some(ViNumber(number)),
                    queue: Some(bound),
                    descriptor: 0,
                    error: AsyncError::Overrun,
                };
                tell(&mut self.news, &mut self.news_lost, news);
            }
        }
        if happened.has_errors() {
            self.lost += u64::from(happened.has(AsyncError::ConnectionLost));
            let of = |error: &AsyncError| happened.has(*error);
            for error in AsyncError::ALL.into_iter().filter(of) {
                let news = ErrorNews { vi: Some(ViNumber(number)), queue: None, descriptor: 0, error };
                tell(&mut self.news, &mut self.news_lost, news);
            }
        }
    }

    /// Who waits is to look again.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    fn tell(&mut self, news: ErrorNews) {
        self.changes += 1;
        tell(&mut self.news, &mut self.news_lost, news);
    }

    /// Takes what VIs of this NIC said to each other, and lets those speak that waited for that.
    #[inline]
    fn carry_local(&mut self, links: &mut impl Links<Block = B>) {
        if !self.carriage.local.is_empty() {
            self.carry_local_frames(links);
        }
    }

    #[cold]
    fn carry_local_frames(&mut self, links: &mut impl Links<Block = B>) {
        let me = self.carriage.me;
        loop {
            while let Some((header, payload)) = self.carriage.local.pop_front() {
                self.frame_came(me, &header, frames::Came::Bytes(&payload), links);
            }
            let waiting = core::mem::take(&mut self.carriage.local_waiting);
            if waiting.is_empty() {
                return;
            }
            waiting.into_iter().for_each(|place| self.pump(place, links));
        }
    }

    /// The links acknowledged a frame, and all of its class before.
    fn acknowledged(&mut self, peer: u16, number: u64, links: &mut impl Links<Block = B>) {
        let mut accepted: Vec<(ViName, u64)> = Vec::new();
        self.carriage.accepted(peer, number, |name, number| accepted.push((name, number)));
        for (name, number) in accepted {
            let Some(place) = name.place() else { continue };
            let Some((_, entry)) = self.vis.at_place_mut(place) else { continue };
            let Some(connection) = entry.connection.as_mut().filter(|connection| connection.here == name) else {
                continue;
            };
            let (carriage, memory) = (&mut self.carriage, &self.memory);
            let pace = entry.pace.as_deref_mut().map(|pace| (pace, self.now_ns));
            let is_alone = entry.vi.has_one_send();
            let mut wire = ViWire { carriage, links, memory, connection, pace, place, is_alone, turn: None };
            entry.vi.accepted(number, &self.protection, &mut wire, &mut Edge::<B>::of(memory));
            self.settle(place);
            self.note_pace(place);
        }
    }
}

/// Keeps an error for the handler; what there is no room for is counted.
fn tell(news: &mut VecDeque<ErrorNews>, lost: &mut u64, one: ErrorNews) {
    if news.len() < NEWS_MAX {
        news.push_back(one);
    } else {
        *lost += 1;
    }
}
