//! The memory of nodes: an SMEM channel's, used as what all nodes of a chip map.
//!
//! What you may rely on: a participant has one place in it, that of its number in the plan, and gets it once; so nobody
//! else in this program writes its row.
//!
//! How it works: the Master makes the memory zero when it is cold, which is what a [`Region`] asks for. A restarted
//! participant finds the rows as they were, and its next incarnation follows from them.
//!
//! What it does not do: keep the channel's other members from this row. They may write all of an SMEM channel, so a hostile
//! one can spoil any link there, not only its own; nothing read from it is believed, but it can be lost.

use super::ends::segment;
use super::{Host, Participant};
use crate::channel::{Attachment as _, Deadline};
use crate::error::Error;
use crate::lane::Region;
use crate::layout::LinkShape;

impl<'m, B: Host> Participant<'m, B> {
    /// The memory of nodes in an SMEM channel of which this domain is a member: the nodes are the plan's participants, by
    /// number. The channel's own lock and handle are not to be had beside it, and this participant stays attached from
    /// now on.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if the domain is no member, [`Error::TooLong`] if the channel has not room for links of this
    /// shape among so many, [`Error::InUse`] if the channel is open or the memory was given before; [`Error::Timeout`]
    /// while the Master has not made it.
    pub fn region(&self, smem: u16, shape: LinkShape, deadline: Deadline) -> Result<Region<'m>, Error> {
        let shared = self.shared;
        let record = shared.segments.iter().find(|record| record.smem == smem).ok_or(Error::NotOurs)?;
        let nodes = self.plan().participants();
        let room = shared.here.plan.smems.get(usize::from(smem)).map_or(0, |channel| channel.bytes);
        if Region::bytes(nodes, shape).is_none_or(|needed| needed > room) {
            return Err(Error::TooLong);
        }
        let (handle, words, bytes) = segment::claim(shared, record, deadline)?;
        // For ever: it is never given back.
        core::mem::forget(handle);
        // SAFETY: the channel's memory is `'m`'s, begins at a page and has room, as was checked; the Master zeroed it when
        // it was cold. It is claimed for ever, so no other handle or region of this program writes our row, and nobody
        // makes references into it.
        unsafe { Region::whole(words.bytes_at(0, bytes), nodes, shared.here.me, shape) }.ok_or(Error::TooLong)
    }

    /// What carries this participant.
    pub fn host(&self) -> &'m B {
        self.shared.here.host
    }
}
