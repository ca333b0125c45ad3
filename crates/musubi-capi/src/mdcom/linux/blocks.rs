//! The blocks in a program's hands at one end, by the names that C uses for them.
//!
//! What you may rely on: a name is valid on its channel from [`Blocks::put`] until [`Blocks::take`]; every other number
//! is refused: of another channel, made up, or used up, though its block may be in the program's hands again. (After
//! 16 million uses of one place a name of its first use would fit again.)
//!
//! How it works: a table of places with a free list. A name is the channel, the place, and how often the place was used.

use musubi_core::plan::FIFOS_MAX;

const PLACE_BITS: u32 = 24;
const USE_BITS: u32 = 24;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const USE_MASK: u64 = (1 << USE_BITS) - 1;
const _: () = assert!(FIFOS_MAX < 1 << (64 - PLACE_BITS - USE_BITS), "a channel number and one fits");

/// One block in the program's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Incarnation of the sender, at a receiver.
    pub(crate) tag: u16,
    /// Number in the channel.
    pub(crate) block: u32,
    /// Bytes that may be used.
    pub(crate) bytes: u32,
    /// Where they are.
    pub(crate) address: *mut u8,
}

// SAFETY: the address is a number here; who uses it answers for that.
unsafe impl Send for Held {}

#[derive(Debug)]
struct Place {
    uses: u64,
    held: Option<Held>,
}

/// All of them at one end.
#[derive(Debug)]
pub(crate) struct Blocks {
    channel: u64,
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Blocks {
    /// For a channel of this many blocks. More can be held only of senders that have gone; only for these it allocates.
    pub(crate) fn new(channel: u16, blocks: u32) -> Blocks {
        let places = (0..blocks).map(|_| Place { uses: 0, held: None }).collect();
        Blocks { channel: u64::from(channel) + 1, places, free: (0..blocks).rev().collect() }
    }

    /// Takes a block in; gives its name, or the block if there are too many.
    pub(crate) fn put(&mut self, held: Held) -> Result<u64, Held> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.places.len() as u64 > PLACE_MASK => return Err(held),
            None => {
                self.places.push(Place { uses: 0, held: None });
                self.places.len() as u32 - 1
            }
        };
        let Some(place) = self.places.get_mut(index as usize) else { return Err(held) };
        place.held = Some(held);
        Ok(self.channel << (PLACE_BITS + USE_BITS) | place.uses << PLACE_BITS | u64::from(index))
    }

    /// The block of this name.
    #[inline]
    pub(crate) fn get(&self, name: u64) -> Option<Held> {
        let place = self.places.get((name & PLACE_MASK) as usize)?;
        let fits = name >> (PLACE_BITS + USE_BITS) == self.channel && name >> PLACE_BITS & USE_MASK == place.uses;
        if fits { place.held } else { None }
    }

    /// Forgets the block of this name, which must be one that [`Blocks::get`] knows.
    #[inline]
    pub(crate) fn take(&mut self, name: u64) {
        let index = (name & PLACE_MASK) as u32;
        if let Some(place) = self.places.get_mut(index as usize)
            && place.held.take().is_some()
        {
            place.uses = (place.uses + 1) & USE_MASK;
            self.free.push(index);
        }
    }

    /// Forgets all; gives them.
    pub(crate) fn take_all(&mut self) -> Vec<Held> {
        let held: Vec<(u64, Held)> =
            self.places.iter().enumerate().filter_map(|(index, place)| Some((index as u64, place.held?))).collect();
        held.into_iter()
            .map(|(index, held)| {
                self.take(index);
                held
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(block: u32) -> Held {
        Held { tag: 0, block, bytes: 8, address: std::ptr::null_mut() }
    }

    #[test]
    fn only_a_name_in_use_is_known() {
        let (mut blocks, other) = (Blocks::new(3, 2), Blocks::new(4, 2));
        let first = blocks.put(held(1)).unwrap();
        assert_ne!(first, 0);
        assert_eq!(blocks.get(first), Some(held(1)));
        assert_eq!(other.get(first), None, "another channel");
        blocks.take(first);
        assert_eq!(blocks.get(first), None, "used up");
        let again = blocks.put(held(1)).unwrap();
        assert_ne!(again, first);
        assert_eq!((blocks.get(first), blocks.get(again)), (None, Some(held(1))), "the same block under a new name");
        for made_up in [0, 1, 5, u64::MAX, again + 1, again ^ 1 << 63] {
            assert_eq!(blocks.get(made_up), None, "{made_up:#x}");
        }
    }

    #[test]
    fn more_than_the_channels_blocks_have_room() {
        let mut blocks = Blocks::new(0, 1);
        let names: Vec<u64> = (0..5).map(|block| blocks.put(held(block)).unwrap()).collect();
        for (block, name) in (0..).zip(&names) {
            assert_eq!(blocks.get(*name), Some(held(block)));
        }
        assert_eq!(blocks.take_all().len(), 5);
        assert!(names.iter().all(|name| blocks.get(*name).is_none()));
        assert!(blocks.take_all().is_empty());
    }
}
