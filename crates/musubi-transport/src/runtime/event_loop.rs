//! What a program's own event loop sleeps on, and how it is woken ([`super::events`]).

use musubi_linux::descriptor::Descriptor;
use rustix::event::epoll;

use super::bells::ring;
use super::node_links::Block;
use super::state::State;
use crate::LinkError;
use crate::protocol::Protocol;

/// What a program's event loop sleeps on.
#[derive(Debug)]
pub(super) struct EventLoop {
    pub descriptor: Descriptor,
    pub bell: Descriptor,
}

impl EventLoop {
    /// Ready when `links` are, or when woken.
    pub fn new(links: &Descriptor) -> Result<EventLoop, LinkError> {
        let descriptor = Descriptor::epoll().map_err(|_| LinkError::Unavailable)?;
        let bell = Descriptor::event().map_err(|_| LinkError::Unavailable)?;
        for part in [links, &bell] {
            epoll::add(&descriptor, part, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                .map_err(|_| LinkError::Unavailable)?;
        }
        Ok(EventLoop { descriptor, bell })
    }

    /// Wakes the loop, if it sleeps or is about to; it is readable until the loop arms again.
    pub fn wake<P: Protocol<Block = Block>>(&self, state: &mut State<P>) {
        if state.armed_by.take().is_some() {
            ring(&self.bell);
        }
    }
}
