//! The blocks in a C program's hands, by the names that C uses for them.
//!
//! What you may rely on: a name is valid on its channel from [`Handles::put`] until its block is taken out; every other
//! number is refused: of another channel, made up, or used up, though its block may be in the program's hands again.
//! (After 16 million uses of one place a name of its first use would fit again.) Each call takes a constant number of
//! steps, except [`Handles::take_next`], which passes over the places.
//!
//! How it works: a table of places; those that were given up are a list through the table, those beyond a mark were never
//! used. A name is the channel and one, how often the place was used, and the place. What C holds is the core's own loan
//! or received block, so nothing can be freed or enqueued that was not given out. Linux has a table a channel, which
//! grows; bare metal one for all channels, of a fixed size.
//!
//! What it does not do: lock. The channel's lock or the monitor is held by who calls.

use core::marker::PhantomData;

use musubi_core::fifo::{Loan, Received};

const PLACE_BITS: u32 = 24;
const USE_BITS: u32 = 24;
/// Places that names can tell apart.
pub(crate) const PLACES_MAX: usize = 1 << PLACE_BITS;
/// Channels that names can tell apart.
pub(crate) const CHANNELS_MAX: usize = (1 << (64 - PLACE_BITS - USE_BITS)) - 1;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const USE_MASK: u64 = (1 << USE_BITS) - 1;
/// No place.
const NONE: u32 = u32::MAX;

/// One block.
#[derive(Debug)]
pub(crate) enum Held {
    /// Allocated at a sending end.
    Loan(Loan<'static>),
    /// Dequeued at a receiving end.
    Received(Received<'static>),
}

impl Held {
    /// Address of the block, and the bytes that may be used there.
    #[inline]
    pub(crate) fn memory(&mut self) -> Memory {
        match self {
            Held::Loan(loan) => Memory { address: loan.as_mut_ptr(), bytes: loan.len() as u32 },
            Held::Received(received) => Memory { address: received.address().cast_mut(), bytes: received.len() },
        }
    }
}

/// Where a block, or the memory of an SMEM channel, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// First byte.
    pub(crate) address: *mut u8,
    /// How many may be used.
    pub(crate) bytes: u32,
}

// SAFETY: the address is a number here; who uses it answers for that.
unsafe impl Send for Memory {}

/// Room for one block.
#[derive(Debug)]
pub(crate) struct Place<H> {
    channel: u16,
    /// The next place that was given up, while this one is too.
    next: u32,
    uses: u64,
    held: Option<H>,
}

impl<H> Place<H> {
    /// Never used.
    pub(crate) const NEW: Place<H> = Place { channel: 0, next: NONE, uses: 0, held: None };
}

/// All of them. `P` is the table's memory.
#[derive(Debug)]
pub(crate) struct Handles<H, P> {
    places: P,
    /// The first place that was given up.
    given_up: u32,
    /// Places from here on were never used.
    unused: u32,
    holds: PhantomData<H>,
}

impl<H, P> Handles<H, P> {
    /// Over places that are all [`Place::NEW`], at most [`PLACES_MAX`].
    pub(crate) const fn new(places: P) -> Handles<H, P> {
        Handles { places, given_up: NONE, unused: 0, holds: PhantomData }
    }
}

impl<H, P: AsRef<[Place<H>]> + AsMut<[Place<H>]>> Handles<H, P> {
    /// Takes a block in and gives its name, or the block if there is no room.
    #[inline]
    pub(crate) fn put(&mut self, channel: u16, held: H) -> Result<u64, H> {
        let index = if self.given_up == NONE { self.unused } else { self.given_up };
        let Some(place) = self.places.as_mut().get_mut(index as usize) else { return Err(held) };
        if self.given_up == NONE {
            self.unused += 1;
        } else {
            self.given_up = place.next;
        }
        (place.channel, place.held) = (channel, Some(held));
        Ok((u64::from(channel) + 1) << (PLACE_BITS + USE_BITS) | place.uses << PLACE_BITS | u64::from(index))
    }

    /// The block of this name.
    #[inline]
    pub(crate) fn get(&mut self, channel: u16, name: u64) -> Option<&mut H> {
        self.place(channel, name)?.held.as_mut()
    }

    /// Takes the block of this name out.
    #[inline]
    pub(crate) fn take(&mut self, channel: u16, name: u64) -> Option<H> {
        let held = self.place(channel, name)?.held.take()?;
        self.give_up((name & PLACE_MASK) as u32);
        Some(held)
    }

    /// Calls `by` with the block of this name, which is out of the table if that succeeds, and as it was if it gives the
    /// block back. `None` if there is no such block.
    #[inline]
    pub(crate) fn take_if<E>(
        &mut self,
        channel: u16,
        name: u64,
        by: impl FnOnce(H) -> Result<(), (E, H)>,
    ) -> Option<Result<(), E>> {
        let place = self.place(channel, name)?;
        match by(place.held.take()?) {
            Ok(()) => self.give_up((name & PLACE_MASK) as u32),
            Err((error, held)) => {
                place.held = Some(held);
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }

    /// Takes out the next block of this channel at or after the place `*from`, which then is the place after it.
    pub(crate) fn take_next(&mut self, channel: u16, from: &mut usize) -> Option<H> {
        let fits = |place: &Place<H>| place.channel == channel && place.held.is_some();
        let index = *from + self.places.as_ref().get(*from..self.unused as usize)?.iter().position(fits)?;
        *from = index + 1;
        let held = self.places.as_mut()[index].held.take();
        self.give_up(index as u32);
        held
    }

    /// Whether one more fits.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.given_up != NONE || (self.unused as usize) < self.places.as_ref().len()
    }

    #[inline]
    fn place(&mut self, channel: u16, name: u64) -> Option<&mut Place<H>> {
        let place = self.places.as_mut().get_mut((name & PLACE_MASK) as usize)?;
        let fits = name >> (PLACE_BITS + USE_BITS) == u64::from(channel) + 1 && place.channel == channel;
        (fits && name >> PLACE_BITS & USE_MASK == place.uses).then_some(place)
    }

    /// The block of this place is out.
    #[inline]
    fn give_up(&mut self, index: u32) {
        let next = core::mem::replace(&mut self.given_up, index);
        if let Some(place) = self.places.as_mut().get_mut(index as usize) {
            place.next = next;
            place.uses = (place.uses + 1) & USE_MASK;
        }
    }
}

#[cfg(not(target_os = "none"))]
impl<H> Handles<H, Vec<Place<H>>> {
    /// With room for so many.
    pub(crate) fn with_room(places: u32) -> Self {
        Handles::new((0..places).map(|_| Place::NEW).collect())
    }

    /// [`Handles::put`] that makes room if there is none, until names run out.
    #[inline]
    pub(crate) fn put_growing(&mut self, channel: u16, held: H) -> Result<u64, H> {
        if !self.has_room() && self.places.len() < PLACES_MAX {
            self.places.push(Place::NEW);
        }
        self.put(channel, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Table = Handles<u32, Vec<Place<u32>>>;

    fn found(table: &mut Table, channel: u16, name: u64) -> Option<u32> {
        table.get(channel, name).map(|held| *held)
    }

    #[test]
    fn only_a_name_in_use_is_known() {
        let mut table = Table::with_room(2);
        let first = table.put(3, 1).unwrap();
        assert_ne!(first, 0);
        assert_eq!(found(&mut table, 3, first), Some(1));
        assert_eq!((found(&mut table, 4, first), table.take(4, first)), (None, None), "another channel");
        assert_eq!(table.take(3, first), Some(1));
        assert_eq!((found(&mut table, 3, first), table.take(3, first)), (None, None), "used up");
        let again = table.put(3, 1).unwrap();
        assert_ne!(again, first);
        assert_eq!((found(&mut table, 3, first), found(&mut table, 3, again)), (None, Some(1)), "under a new name");
        for made_up in [0, 1, 5, u64::MAX, again + 1, again ^ 1 << 63, again & PLACE_MASK] {
            assert_eq!(found(&mut table, 3, made_up), None, "{made_up:#x}");
        }
    }

    #[test]
    fn a_channels_name_is_refused_on_another_that_has_the_place_now() {
        let mut table = Table::with_room(1);
        let former = table.put(3, 1).unwrap();
        table.take(3, former).unwrap();
        let now = table.put(4, 2).unwrap();
        assert_eq!((found(&mut table, 3, former), found(&mut table, 3, now)), (None, None));
        assert_eq!(found(&mut table, 4, now), Some(2));
    }

    #[test]
    fn room_is_what_it_says_and_used_again() {
        let mut table = Table::with_room(3);
        let names: Vec<u64> = (0..3).map(|block| table.put(0, block).unwrap()).collect();
        assert!(!table.has_room());
        assert_eq!(table.put(0, 9), Err(9));
        for &name in &names[..2] {
            table.take(0, name).unwrap();
        }
        let fresh = [table.put(0, 7).unwrap(), table.put(0, 8).unwrap()];
        assert_eq!(table.put(0, 9), Err(9));
        assert_eq!(fresh.map(|name| found(&mut table, 0, name)), [Some(7), Some(8)]);
        assert_eq!(found(&mut table, 0, names[2]), Some(2));
    }

    #[test]
    fn what_is_refused_stays_under_its_name() {
        let mut table = Table::with_room(1);
        let name = table.put(0, 5).unwrap();
        assert_eq!(table.take_if(0, name, |held| Err(("full", held))), Some(Err("full")));
        assert_eq!((found(&mut table, 0, name), table.has_room()), (Some(5), false));
        assert_eq!(table.take_if(0, name, |_| Ok::<_, ((), u32)>(())), Some(Ok(())));
        assert!(table.has_room());
        assert_eq!(table.take_if(0, name, |_| Ok::<_, ((), u32)>(())), None);
    }

    #[test]
    fn more_than_the_first_room_fits_where_it_may_grow() {
        let mut table = Table::with_room(1);
        let names: Vec<u64> = (0..5).map(|block| table.put_growing(0, block).unwrap()).collect();
        for (block, name) in (0..).zip(&names) {
            assert_eq!(found(&mut table, 0, *name), Some(block));
        }
    }

    #[test]
    fn all_of_one_channel_come_out() {
        let mut table = Table::with_room(5);
        let names: Vec<u64> = [(0, 0), (1, 1), (0, 2), (1, 3)].map(|(ch, held)| table.put(ch, held).unwrap()).to_vec();
        table.take(0, names[2]).unwrap();
        let mut from = 0;
        let taken: Vec<u32> = std::iter::from_fn(|| table.take_next(1, &mut from)).collect();
        assert_eq!(taken, [1, 3]);
        assert!([1, 3].iter().all(|&index| found(&mut table, 1, names[index]).is_none()));
        assert_eq!(found(&mut table, 0, names[0]), Some(0));
        assert_eq!(table.take_next(1, &mut 0), None);
    }
}
