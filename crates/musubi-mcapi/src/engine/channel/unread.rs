//! Scalars that came and have not been read.
//!
//! What you may rely on: no allocation after the first one.

use alloc::boxed::Box;

use crate::limits::SCALAR_CREDIT;

/// Places for scalars; as many as the credit of a channel, so there is always one for a scalar that has credit.
const PLACES: usize = SCALAR_CREDIT as usize;
const _: () = assert!(PLACES.is_power_of_two());

/// A scalar that came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scalar {
    pub size: u8,
    pub value: u64,
}

/// The scalars that came and have not been read. A ring of a fixed length: putting one in and taking it out is on the way of
/// each.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// None before the first one.
    ring: Option<Box<[Scalar; PLACES]>>,
    /// How many were taken and put, wrapping.
    taken: u32,
    put: u32,
}

impl Unread {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken) as usize
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.taken = self.put;
    }

    /// Puts one behind the others. Credit has seen to it that there is room.
    #[inline(always)]
    pub fn push(&mut self, scalar: Scalar) {
        debug_assert!(self.len() < PLACES);
        match &mut self.ring {
            Some(ring) => ring[self.put as usize % PLACES] = scalar,
            None => self.begin_with(scalar),
        }
        self.put = self.put.wrapping_add(1);
    }

    #[cold]
    fn begin_with(&mut self, scalar: Scalar) {
        let mut ring = Box::new([Scalar::default(); PLACES]);
        ring[self.put as usize % PLACES] = scalar;
        self.ring = Some(ring);
    }

    /// The first one.
    #[inline(always)]
    pub fn first(&self) -> Option<Scalar> {
        let ring = self.ring.as_ref().filter(|_| !self.is_empty())?;
        Some(ring[self.taken as usize % PLACES])
    }

    /// Takes that one.
    #[inline(always)]
    pub fn take_first(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }
}
