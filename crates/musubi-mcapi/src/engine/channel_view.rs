//! What the rest of the engine shows of channels: attributes, pictures.
//!
//! What you may rely on: looking changes nothing.

use super::attributes::role_status;
use super::channel::end::ChannelEnd;
use super::inspect::ChannelPicture;
use super::table::Endpoint;
use super::{ChannelKind, Engine, endpoint_status};
use crate::EndpointId;
use crate::limits::{PACKET_CREDIT, SCALAR_CREDIT};
use musubi_transport::links::Block;

impl<B: Block> Engine<B> {
    /// The bits of `endpoint_status`'s upper half that hold for an endpoint.
    pub(super) fn channel_status(&self, endpoint: &Endpoint<B>) -> u32 {
        endpoint.channel.as_ref().map_or(0, |end| end.status())
    }

    /// Free receive buffers of an end; `None` if the endpoint is none.
    pub(super) fn channel_buffers(&self, endpoint: &Endpoint<B>) -> Option<u32> {
        let end = endpoint.channel.as_ref()?;
        let role = end.state.role()?;
        let buffers = if role.kind == ChannelKind::Packet { PACKET_CREDIT } else { SCALAR_CREDIT };
        Some(if role.receives { buffers - end.incoming.held().min(buffers) } else { 0 })
    }

    /// What tools see of an end; `None` if the endpoint is none.
    pub(super) fn channel_picture(&self, endpoint: &Endpoint<B>) -> Option<ChannelPicture> {
        let end = endpoint.channel.as_ref()?;
        let other = EndpointId::from_bits(end.wire.to)?;
        let waiting = end.queue.len().max(end.out.held() as usize);
        let depth = if end.state.role()?.receives { end.unread() } else { waiting } as u32;
        let total = if end.state.role()?.receives { end.incoming.total } else { end.out.total };
        let (status, items, bytes) = (end.status(), total.items, total.bytes);
        Some(ChannelPicture { endpoint: endpoint.id, other, status, depth, items, bytes })
    }
}

impl<B> ChannelEnd<B> {
    fn status(&self) -> u32 {
        let state = &self.state;
        let bits = [
            (state.role().is_some(), endpoint_status::CONNECTED),
            (state.is_open(), endpoint_status::OPEN),
            (state.is_opening(), endpoint_status::OPEN_PENDING),
            (state.is_closing(), endpoint_status::CLOSE_PENDING),
        ];
        let role = state.role().map_or(0, |role| role_status(role.kind, role.receives));
        bits.iter().filter(|(holds, _)| *holds).fold(role, |status, (_, bit)| status | bit)
    }
}
