//! A table of things that programs name by number.
//!
//! What you may rely on: a number that was given back names nothing until its place has been used 65,535 times more; a made-up one is looked
//! up, never followed. Every call takes a constant number of steps.
//!
//! How it works: a number is a place, from 1 on, and how often it was used; places that are free are used again in turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Most things of one table.
pub const SLOTS_MAX: u32 = u16::MAX as u32 - 1;

const PLACE_BITS: u32 = 16;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;

#[derive(Debug)]
struct Slot<T> {
    uses: u16,
    value: Option<T>,
}

/// Things by number.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: VecDeque<u16>,
    limit: u32,
    count: u32,
}

impl<T> Slots<T> {
    /// None, and at most `limit` at a time.
    pub fn new(limit: u32) -> Slots<T> {
        Slots { slots: Vec::new(), free: VecDeque::new(), limit: limit.min(SLOTS_MAX), count: 0 }
    }

    /// Puts one in and gives its number; `None` if there are too many.
    pub fn insert(&mut self, value: T) -> Option<u32> {
        if self.count >= self.limit {
            return None;
        }
        self.count += 1;
        let place = match self.free.pop_front() {
            Some(place) => place,
            None => {
                self.slots.push(Slot { uses: 0, value: None });
                self.slots.len() as u16 - 1
            }
        };
        let slot = &mut self.slots[usize::from(place)];
        slot.value = Some(value);
        Some(u32::from(slot.uses) << PLACE_BITS | (u32::from(place) + 1))
    }

    /// Takes one out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let slot = self.slot_mut(number)?;
        let value = slot.value.take()?;
        slot.uses = slot.uses.wrapping_add(1);
        self.count -= 1;
        self.free.push_back(place_of(number) as u16);
        Some(value)
    }

    /// The one of this number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        let slot = self.slots.get(place_of(number))?;
        slot.value.as_ref().filter(|_| u32::from(slot.uses) == number >> PLACE_BITS)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slot_mut(number)?.value.as_mut()
    }

    /// All, with their numbers, by place.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(place, slot)| {
            let number = u32::from(slot.uses) << PLACE_BITS | (place as u32 + 1);
            slot.value.as_ref().map(|value| (number, value))
        })
    }

    /// All, to be changed, by place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// The one in a place, from 0 on, with its number.
    #[inline]
    pub fn at_place_mut(&mut self, place: u16) -> Option<(u32, &mut T)> {
        let slot = self.slots.get_mut(usize::from(place))?;
        let number = u32::from(slot.uses) << PLACE_BITS | (u32::from(place) + 1);
        slot.value.as_mut().map(|value| (number, value))
    }

    /// The place of a number.
    pub fn place(number: u32) -> u16 {
        place_of(number) as u16
    }

    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(place_of(number))?;
        if u32::from(slot.uses) == number >> PLACE_BITS { Some(slot) } else { None }
    }
}

/// The index of a number; none is there for 0.
const fn place_of(number: u32) -> usize {
    ((number & PLACE_MASK) as usize).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_given_back_name_nothing() {
        let mut slots = Slots::new(2);
        let (a, b) = (slots.insert('a').unwrap(), slots.insert('b').unwrap());
        assert_eq!(slots.insert('c'), None);
        assert_eq!((slots.get(a), slots.get(b)), (Some(&'a'), Some(&'b')));
        assert_eq!(slots.remove(a), Some('a'));
        assert_eq!(slots.get(a), None);
        assert_eq!(slots.remove(a), None);
        assert_eq!(slots.get_mut(a), None);
        let c = slots.insert('c').unwrap();
        assert_ne!(a, c);
        assert_eq!(Slots::<char>::place(a), Slots::<char>::place(c));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(c, &'c'), (b, &'b')]);
        assert_eq!(slots.at_place_mut(0), Some((c, &mut 'c')));
        for made_up in [0, 3, u32::MAX, 1 << 16, 7 << 16 | 1] {
            assert_eq!(slots.get(made_up), None);
            assert_eq!(slots.remove(made_up), None);
        }
    }

    #[test]
    fn places_are_used_again_in_turn() {
        let mut slots = Slots::new(10);
        let numbers: Vec<u32> = (0..3).map(|value| slots.insert(value).unwrap()).collect();
        for number in [2, 0, 1] {
            slots.remove(numbers[number]);
        }
        let again: Vec<u16> = (0..3).map(|value| Slots::<u32>::place(slots.insert(value).unwrap())).collect();
        assert_eq!(again, [2, 0, 1]);
    }
}
