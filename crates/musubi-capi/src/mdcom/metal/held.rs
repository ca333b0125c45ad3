//! The blocks in the hands of C tasks, by the names that C uses for them.
//!
//! What you may rely on: a name is valid on its channel until its block is freed or enqueued; every other number is
//! refused. (After 16 million uses of one place a name of its first use would fit again.)
//!
//! How it works: one table for all channels. A name is the channel and one, the uses of the place, and the place.

use musubi_core::fifo::{Loan, Received};

use super::{CHANNELS_MAX, HELD_MAX};

const PLACE_BITS: u32 = 24;
const USE_BITS: u32 = 24;
const USE_MASK: u64 = (1 << USE_BITS) - 1;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const _: () = assert!(CHANNELS_MAX < 1 << (64 - PLACE_BITS - USE_BITS), "a channel number and one fits");
const _: () = assert!(HELD_MAX < 1 << PLACE_BITS, "a place fits");

/// One block.
#[derive(Debug)]
pub(super) enum Held {
    /// Allocated at a sending end.
    Loan(Loan<'static>),
    /// Dequeued at a receiving end.
    Received(Received<'static>),
}

#[derive(Debug)]
struct Place {
    channel: u16,
    uses: u64,
    held: Option<Held>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Table([Place; HELD_MAX]);

impl Table {
    /// An empty one.
    pub(super) const fn new() -> Table {
        Table([const { Place { channel: 0, uses: 0, held: None } }; HELD_MAX])
    }

    /// Takes a block in and gives its name, or the block if there is no room.
    pub(super) fn put(&mut self, channel: u16, held: Held) -> Result<u64, Held> {
        let Some(index) = self.0.iter().position(|place| place.held.is_none()) else { return Err(held) };
        let place = &mut self.0[index];
        (place.channel, place.held) = (channel, Some(held));
        Ok((u64::from(channel) + 1) << (PLACE_BITS + USE_BITS) | place.uses << PLACE_BITS | index as u64)
    }

    /// The block of this name.
    pub(super) fn get(&self, channel: u16, name: u64) -> Option<&Held> {
        let place = self.0.get((name & PLACE_MASK) as usize)?;
        let channel_fits = name >> (PLACE_BITS + USE_BITS) == u64::from(channel) + 1 && place.channel == channel;
        let fits = channel_fits && name >> PLACE_BITS & USE_MASK == place.uses;
        place.held.as_ref().filter(|_| fits)
    }

    /// Address of the block of this name, and the bytes that may be used there.
    pub(super) fn memory(&mut self, channel: u16, name: u64) -> Option<(*mut u8, u32)> {
        self.get(channel, name)?;
        match self.0.get_mut((name & PLACE_MASK) as usize)?.held.as_mut()? {
            Held::Loan(loan) => Some((loan.as_mut_ptr(), loan.len() as u32)),
            Held::Received(received) => Some((received.address().cast_mut(), received.len())),
        }
    }

    /// Takes the block of this name out.
    pub(super) fn take(&mut self, channel: u16, name: u64) -> Option<Held> {
        self.get(channel, name)?;
        self.take_at((name & PLACE_MASK) as usize)
    }

    /// Puts a block back that was taken out by [`Table::take`] just now, under its name.
    pub(super) fn put_back(&mut self, name: u64, held: Held) {
        if let Some(place) = self.0.get_mut((name & PLACE_MASK) as usize) {
            place.uses = name >> PLACE_BITS & USE_MASK;
            place.held = Some(held);
        }
    }

    /// Takes out any block of this channel.
    pub(super) fn take_any(&mut self, channel: u16) -> Option<Held> {
        let index = self.0.iter().position(|place| place.held.is_some() && place.channel == channel)?;
        self.take_at(index)
    }

    /// Whether one more fits.
    pub(super) fn has_room(&self) -> bool {
        self.0.iter().any(|place| place.held.is_none())
    }

    fn take_at(&mut self, index: usize) -> Option<Held> {
        let place = self.0.get_mut(index)?;
        let held = place.held.take()?;
        place.uses = (place.uses + 1) & USE_MASK;
        Some(held)
    }
}
