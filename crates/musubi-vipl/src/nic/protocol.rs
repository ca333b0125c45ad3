//! The NIC as the [`Protocol`] of a running node.

use musubi_transport::NodeId;
use musubi_transport::frame::{Header, Kinds};
use musubi_transport::links::{Block, Links, Payload, Report};
use musubi_transport::protocol::{Holding, Protocol};

use super::frames::Came;
use super::{AlarmNumber, CallerNumber, ListenerNumber, NicState, QueueNumber, ViNumber};
use crate::engine::{Queue, ViState};
use crate::wire::KINDS;

/// What a future waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The oldest descriptor of a queue of a VI.
    Descriptor(ViNumber, Queue),
    /// An entry of a completion queue.
    Completion(QueueNumber),
    /// The end of a VI's attempt to be connected.
    Outcome(ViNumber),
    /// Somebody who asks a listener.
    Caller(ListenerNumber),
    /// The confirmation of a caller that was accepted.
    Confirmation(CallerNumber),
    /// The end of a VI's connection.
    End(ViNumber),
    /// An instant.
    Alarm(AlarmNumber),
}

impl<B: Block> Protocol for NicState<B> {
    type Block = B;
    type Request = Awaited;
    const KINDS: &'static Kinds = &KINDS;

    fn new(me: NodeId, incarnation: u32) -> Self {
        NicState::new(me, incarnation)
    }

    fn limit_payload(&mut self, bytes: u32) {
        self.carriage.piece_bytes_max = self.carriage.piece_bytes_max.min(bytes);
    }

    #[inline(always)]
    fn changes(&self) -> u64 {
        self.changes
    }

    #[inline(always)]
    fn is_timed(_: &Header) -> bool {
        false
    }

    #[inline(always)]
    fn word(&mut self, now_ns: u64, from: NodeId, header: &Header, word: u64, links: &mut impl Links<Block = B>) {
        self.now_ns = now_ns;
        self.frame_came(from, header, Came::Word(word, header.length), links);
        self.carry_local(links);
    }

    #[inline(never)]
    fn frame(
        &mut self,
        now_ns: u64,
        from: NodeId,
        header: &Header,
        payload: Payload<B>,
        links: &mut impl Links<Block = B>,
    ) {
        self.now_ns = now_ns;
        self.frame_came(from, header, Came::Payload(&payload), links);
        self.carry_local(links);
    }

    #[inline(always)]
    fn bytes(&mut self, now_ns: u64, from: NodeId, header: &Header, bytes: &[u8], links: &mut impl Links<Block = B>) {
        self.now_ns = now_ns;
        self.frame_came(from, header, Came::Bytes(bytes), links);
        self.carry_local(links);
    }

    fn report(&mut self, now_ns: u64, report: Report<B>, links: &mut impl Links<Block = B>) {
        self.now_ns = now_ns;
        match report {
            Report::Up { peer, .. } => self.up(peer, links),
            Report::Down { peer, .. } => self.down(peer, links),
            Report::Absent { peer } => self.absent(peer, links),
            Report::Frame { peer, header, payload } => self.frame_came(peer, &header, Came::Payload(&payload), links),
            Report::Acknowledged { peer, number } => {
                if let Some(place) = self.carriage.find(peer) {
                    self.acknowledged(place, number, links);
                }
            }
            Report::Room { peer } => {
                if let Some(place) = self.carriage.find(peer) {
                    self.room(place, links);
                }
            }
        }
        self.carry_local(links);
    }

    fn tick(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) -> u64 {
        self.now_ns = now_ns;
        let paced_ns = self.tick_paces(now_ns, links);
        let told_ns = self.tick_notifications(now_ns).min(self.tick_intake(links));
        self.alarms_ring(now_ns).min(self.tick_attempts(now_ns, links)).min(paced_ns).min(told_ns)
    }

    #[inline]
    fn wants_time(&self) -> bool {
        self.notifying.is_used
    }

    fn holding(&self) -> Holding {
        self.holding_now()
    }

    fn shut(&self, now_ns: u64) -> Option<(u8, u64)> {
        self.notifying.is_used.then(|| self.shut_now(now_ns))
    }

    fn take_hastened(&mut self) -> bool {
        self.take_hastened_now()
    }

    fn take_put_off(&mut self) -> (u8, u64) {
        self.take_put_off_now()
    }

    fn end(&mut self) {
        self.changes += 1;
    }

    fn is_over(&self, request: Awaited) -> bool {
        match request {
            Awaited::Descriptor(vi, queue) => self.vis.get(vi.0).is_none_or(|entry| entry.vi.has_complete(queue)),
            Awaited::Completion(queue) => self.queues.get(queue.0).is_none_or(|queue| !queue.is_empty()),
            Awaited::Outcome(vi) => self.vis.get(vi.0).is_none_or(|entry| entry.vi.state() != ViState::ConnectPending),
            Awaited::Caller(listener) => self.has_caller(listener),
            Awaited::Confirmation(caller) => self.has_answer(caller),
            Awaited::End(vi) => self.vis.get(vi.0).is_none_or(|entry| entry.vi.state() != ViState::Connected),
            Awaited::Alarm(alarm) => self.has_rung(alarm),
        }
    }
}
