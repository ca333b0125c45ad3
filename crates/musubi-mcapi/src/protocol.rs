//! The engine as the [`Protocol`] of a running node.
//!
//! How it works: scalars and messages, which come often, go to where they belong without a report being put together.

use musubi_transport::frame::{Header, Kinds};
use musubi_transport::links::{Block, Links, Payload, Report, Short};
use musubi_transport::protocol::Protocol;

use crate::engine::{Engine, RequestId};
use crate::frame::{KINDS, Kind};
use musubi_transport::NodeId;

impl<B: Block> Protocol for Engine<B> {
    type Block = B;
    type Request = RequestId;
    const KINDS: &'static Kinds = &KINDS;

    fn new(me: NodeId, incarnation: u32) -> Self {
        Engine::new(me, incarnation)
    }

    fn limit_payload(&mut self, bytes: u32) {
        Engine::limit_payload(self, bytes);
    }

    #[inline(always)]
    fn changes(&self) -> u64 {
        Engine::changes(self)
    }

    #[inline(always)]
    fn is_timed(header: &Header) -> bool {
        header.kind == Kind::Ping as u8 || header.kind == Kind::Pong as u8
    }

    #[inline(always)]
    fn word(&mut self, now_ns: u64, from: NodeId, header: &Header, word: u64, links: &mut impl Links<Block = B>) {
        if header.kind == Kind::Scalar as u8 {
            let word = (header.length as usize == size_of_val(&word)).then_some(word);
            Engine::word(self, now_ns, from, header, word, links);
        } else {
            let payload = Payload::Short(Short::of_word(word, header.length as usize));
            Protocol::frame(self, now_ns, from, header, payload, links);
        }
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
        if header.kind == Kind::Message as u8 {
            return self.came(now_ns, from, header, payload, links);
        }
        Engine::report(self, now_ns, Report::Frame { peer: from, header: *header, payload }, links);
    }

    fn report(&mut self, now_ns: u64, report: Report<B>, links: &mut impl Links<Block = B>) {
        Engine::report(self, now_ns, report, links);
    }

    #[inline]
    fn tick(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) -> u64 {
        Engine::tick(self, now_ns, links)
    }

    fn end(&mut self) {
        Engine::end(self);
    }

    fn is_over(&self, request: RequestId) -> bool {
        self.is_complete(request).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use musubi_transport::links::NoBlock;

    #[test]
    fn the_clock_is_read_for_pings_and_their_answers() {
        let timed = Kind::ALL.into_iter().filter(|kind| Engine::<NoBlock>::is_timed(&Header::new(*kind as u8)));
        assert_eq!(timed.collect::<alloc::vec::Vec<_>>(), [Kind::Ping, Kind::Pong]);
    }
}
