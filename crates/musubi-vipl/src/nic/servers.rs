//! Servers: who listens, and what becomes of those who ask.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use musubi_transport::Priority;
use musubi_transport::links::{Block, Links};

use super::connecting::{CallerNumber, GRACE_NS, LISTENERS_MAX, Listener, ListenerNumber, Standing, class_of};
use super::connection::Connection;
use super::{NicState, ViEntry, ViNumber};
use crate::address::{Address, DISCRIMINATOR_BYTES_MAX};
use crate::engine::{Lease, PeerVi, ViAttributes, ViState};
use crate::error::ViError;
use crate::slots::Slots;
use crate::wire::{CONNECTION_DATA_BYTES_MAX, NicFrame, Refusal, ViName};

impl<B: Block> NicState<B> {
    /// `VipConnectWait` begins.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if the address is another NIC's or the discriminator too long; [`ViError::Resource`].
    pub fn listen(&mut self, local: &Address) -> Result<ListenerNumber, ViError> {
        if local.nic != self.nic || local.discriminator.len() > DISCRIMINATOR_BYTES_MAX {
            return Err(ViError::Parameter);
        }
        let listeners = &mut self.connecting.listeners;
        if let Some(known) = listeners.iter_mut().find(|one| one.discriminator == local.discriminator) {
            known.waiting += 1;
            return Ok(ListenerNumber(known.number));
        }
        if listeners.len() >= LISTENERS_MAX {
            return Err(ViError::Resource);
        }
        self.connecting.listened = self.connecting.listened.wrapping_add(1);
        let number = self.connecting.listened;
        let (discriminator, callers) = (local.discriminator.clone(), VecDeque::new());
        listeners.push(Listener { number, discriminator, waiting: 1, until_ns: 0, callers });
        Ok(ListenerNumber(number))
    }

    /// The next that asks there: who, from where, with which attributes.
    pub fn next_caller(&mut self, listener: ListenerNumber) -> Option<(CallerNumber, Address, ViAttributes)> {
        let listener = self.connecting.listeners.iter_mut().find(|one| one.number == listener.0)?;
        let number = listener.callers.pop_front()?;
        let caller = self.connecting.callers.get_mut(number)?;
        caller.standing = Standing::Taken;
        Some((CallerNumber(number), caller.request.local.clone(), caller.request.attributes))
    }

    /// Whether [`NicState::next_caller`] would give one, or there is no such listener.
    pub(super) fn has_caller(&self, listener: ListenerNumber) -> bool {
        let listener = self.connecting.listeners.iter().find(|one| one.number == listener.0);
        listener.is_none_or(|listener| !listener.callers.is_empty())
    }

    /// Whether [`NicState::accepted`] would give something.
    pub(super) fn has_answer(&self, caller: CallerNumber) -> bool {
        let standing = self.connecting.callers.get(caller.0).map_or(Standing::Gone, |known| known.standing);
        matches!(standing, Standing::Confirmed | Standing::Gone)
    }

    /// `VipConnectWait` ends.
    pub fn end_listening(&mut self, now_ns: u64, listener: ListenerNumber) {
        if let Some(listener) = self.connecting.listeners.iter_mut().find(|one| one.number == listener.0) {
            listener.waiting = listener.waiting.saturating_sub(1);
            listener.until_ns = now_ns.saturating_add(GRACE_NS);
        }
    }

    /// `VipConnectAccept`: the VI is connected; [`NicState::accepted`] says when the caller is too.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such caller or VI; [`ViError::Timeout`] if it does not wait any more;
    /// [`ViError::State`] unless the VI is idle; what does not fit. Only after a time-out the caller is no more.
    pub fn accept(
        &mut self,
        caller: CallerNumber,
        vi: ViNumber,
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        self.accept_with(caller, vi, &[], links)
    }

    /// The same with up to `CONNECTION_DATA_BYTES_MAX` bytes for the caller, an extension.
    ///
    /// # Errors
    /// As [`NicState::accept`]; [`ViError::Parameter`] also of more bytes.
    pub fn accept_with(
        &mut self,
        caller: CallerNumber,
        vi: ViNumber,
        data: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        if data.len() > CONNECTION_DATA_BYTES_MAX {
            return Err(ViError::Parameter);
        }
        let known = self.connecting.callers.get_mut(caller.0).ok_or(ViError::Parameter)?;
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        match known.standing {
            Standing::Taken => {}
            Standing::Gone => {
                self.connecting.callers.remove(caller.0);
                return Err(ViError::Timeout);
            }
            _ => return Err(ViError::State),
        }
        let theirs = known.request.attributes;
        if entry.vi.state() != ViState::Idle {
            return Err(ViError::State);
        }
        entry.vi.attributes().fits(&theirs)?;
        entry.vi.accept(PeerVi { attributes: theirs })?;
        known.standing = Standing::Accepted(vi);
        let here = self.names.next(Slots::<ViEntry>::place(vi.0));
        let class = class_of(entry.vi.attributes());
        let (peer, there) = (known.peer, known.name);
        let lease = entry.vi.offer_under(Lease::new(here.0, self.incarnation));
        let is_bounded = self.carriage.peer(peer).bounds(class.index());
        let connection = Connection::new(peer, (here, there), class, lease);
        entry.connection = Some(Connection { is_bounded, ..connection });
        let ours = *entry.vi.attributes();
        self.connections += 1;
        self.want(peer, links);
        self.say_with(peer, &NicFrame::Accept(ours), (here, there), (class, data), links);
        self.pump(Slots::<ViEntry>::place(vi.0), links);
        self.carry_local(links);
        Ok(())
    }

    /// Whether a caller that was accepted has confirmed; asked again and again until it gives something.
    ///
    /// # Errors
    /// [`ViError::Timeout`] if it did not wait any more: the VI is idle again.
    pub fn accepted(&mut self, caller: CallerNumber) -> Option<Result<(), ViError>> {
        let standing = self.connecting.callers.get(caller.0).map_or(Standing::Gone, |known| known.standing);
        let result = match standing {
            Standing::Confirmed => Ok(()),
            Standing::Gone => Err(ViError::Timeout),
            _ => return None,
        };
        self.connecting.callers.remove(caller.0);
        Some(result)
    }

    /// The program waits no longer for a caller that it has accepted to confirm: the VI is idle again.
    pub fn give_up_accepted(&mut self, caller: CallerNumber, links: &mut impl Links<Block = B>) {
        let Some(known) = self.connecting.callers.remove(caller.0) else { return };
        if let Standing::Accepted(vi) = known.standing {
            // It may have been destroyed.
            let _ = self.disconnect(vi, links);
        }
    }

    /// `VipConnectReject`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such caller; [`ViError::State`] if it was accepted.
    pub fn reject(&mut self, caller: CallerNumber, links: &mut impl Links<Block = B>) -> Result<(), ViError> {
        self.reject_with(caller, &[], links)
    }

    /// The same with up to `CONNECTION_DATA_BYTES_MAX` bytes for the caller, an extension.
    ///
    /// # Errors
    /// As [`NicState::reject`]; [`ViError::Parameter`] also of more bytes.
    pub fn reject_with(
        &mut self,
        caller: CallerNumber,
        data: &[u8],
        links: &mut impl Links<Block = B>,
    ) -> Result<(), ViError> {
        if data.len() > CONNECTION_DATA_BYTES_MAX {
            return Err(ViError::Parameter);
        }
        let known = self.connecting.callers.get(caller.0).ok_or(ViError::Parameter)?;
        let (peer, name) = (known.peer, known.name);
        match known.standing {
            Standing::Taken => {
                let (frame, to) = (NicFrame::Refuse(Refusal::Rejected), (ViName::default(), name));
                self.say_with(peer, &frame, to, (Priority::LEAST_URGENT, data), links);
            }
            Standing::Gone => {}
            _ => return Err(ViError::State),
        }
        self.connecting.callers.remove(caller.0);
        self.carry_local(links);
        Ok(())
    }

    /// What came with the answer to a VI's last attempt: nothing, unless the other side says something by
    /// [`NicState::accept_with`] or [`NicState::reject_with`].
    pub fn take_connection_data(&mut self, vi: ViNumber) -> Vec<u8> {
        self.vis.get_mut(vi.0).map(|entry| core::mem::take(&mut entry.told)).unwrap_or_default()
    }
}
