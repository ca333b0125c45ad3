//! What a program asks for again and again before it goes on with what would complete it.
//!
//! What you may rely on: an opening or closing completes when both ends are open or closed; a send when the receiving node
//! has it. But programs of one thread loop until one end is open before they open the other one, or until a message is
//! sent before they receive any, and would never end. So what has been asked for [`OPEN_POLLS`](super::OPEN_POLLS) times and for
//! [`OPEN_POLLED_MS`] completes alone, if it is between connected ends, or to an endpoint, of this node. Whatever the
//! program does afterwards, it sees what it would have seen otherwise: what it sends stays for the other end, up to the
//! credit. Whoever waits, or asks about another node, waits for both.
//!
//! How it works: the clock is read by the first question and by those after the [`OPEN_POLLS`](super::OPEN_POLLS)th. The end is opened; a closing or
//! sending only completes, as the other end's program has yet to read and close.

use super::channel::end::ChannelRequest;
use super::peers::ME;
use super::requests::Doing;
use super::{Engine, Outcome, RequestId};
use crate::EndpointId;
use musubi_transport::links::{Block, Links};

impl<B: Block> Engine<B> {
    /// A program asks, without waiting, for a request that has not completed, and nobody waits for it.
    pub fn polled<L: Links<Block = B>>(
        &mut self,
        request: RequestId,
        clock: impl FnOnce(&mut L) -> u64,
        links: &mut L,
    ) {
        let Some(doing) = self.requests.pending(request).map(|pending| pending.doing) else { return };
        if !self.is_own_affair(doing) {
            return;
        }
        let pending = self.requests.pending_mut(request);
        if !pending.is_some_and(|pending| pending.polled.once_more(|| clock(links))) {
            return;
        }
        match doing {
            Doing::Channel(ChannelRequest::Open { at }) => self.open_alone(at, links),
            Doing::Channel(ChannelRequest::Close { .. }) => self.complete(request, Ok(Outcome::Plain)),
            _ => {
                if let Some(bytes) = self.queued_bytes(request, doing) {
                    self.complete(request, Ok(Outcome::Sent(bytes)));
                }
            }
        }
        self.settle(links);
    }

    /// Whether this node's programs alone can bring it forward, and nothing but the other end is missing.
    fn is_own_affair(&mut self, doing: Doing) -> bool {
        let at = match doing {
            Doing::Send { to } => return to.node() == self.me,
            Doing::Channel(
                ChannelRequest::Open { at } | ChannelRequest::Close { at } | ChannelRequest::SendPacket { at },
            ) => at,
            _ => return false,
        };
        let me = self.me;
        let end = self.end_at(at).filter(|end| end.state.is_joined());
        end.and_then(|end| EndpointId::from_bits(end.wire.to)).is_some_and(|other| other.node() == me)
    }

    fn open_alone(&mut self, at: EndpointId, links: &mut impl Links<Block = B>) {
        let Some(other) = self.end_at(at).and_then(|end| EndpointId::from_bits(end.wire.to)) else { return };
        let Some(end) = self.end_at(other).filter(|end| end.state.is_joined() && end.wire.to == at.bits()) else {
            return;
        };
        end.state.expect_alone();
        if let Some(end) = self.end_at(at) {
            let todo = end.state.open_alone();
            self.carry_out(at, todo, links);
        }
    }

    /// Length of what a request has queued to be sent within this node.
    fn queued_bytes(&mut self, request: RequestId, doing: Doing) -> Option<usize> {
        match doing {
            Doing::Send { to } => {
                let flow = self.peers.at(ME).known_flow(to)?;
                Some(flow.waiting.iter().find(|message| message.request == request)?.payload.len())
            }
            Doing::Channel(ChannelRequest::SendPacket { at }) => {
                Some(self.end_at(at)?.queue.iter().find(|packet| packet.request == request)?.payload.len())
            }
            _ => None,
        }
    }
}
