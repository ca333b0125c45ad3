//! A set of cores, by their numbers.
//!
//! What you may rely on: a set is one word; printing gives the numbers in order, `none` for the empty set.

use super::CORES_MAX;

/// A set of cores of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cores(u32);

impl Cores {
    /// No core.
    pub const NONE: Cores = Cores(0);

    /// The set whose members are the bits of `mask`, core 0 the lowest.
    pub const fn from_mask(mask: u32) -> Self {
        Cores(mask)
    }

    /// One core. A number that no program can have gives the empty set.
    pub const fn one(core: usize) -> Self {
        if core < CORES_MAX { Cores(1 << core) } else { Cores::NONE }
    }

    /// The cores below `count`.
    pub const fn first(count: usize) -> Self {
        if count >= CORES_MAX { Cores(u32::MAX) } else { Cores((1 << count) - 1) }
    }

    /// The members as bits, core 0 the lowest.
    pub const fn mask(self) -> u32 {
        self.0
    }

    /// Whether the set has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many members it has.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether a core is a member.
    pub const fn contains(self, core: usize) -> bool {
        Cores::one(core).0 & self.0 != 0
    }

    /// The members of either.
    pub const fn with(self, other: Cores) -> Self {
        Cores(self.0 | other.0)
    }

    /// The members that the other does not have.
    pub const fn without(self, other: Cores) -> Self {
        Cores(self.0 & !other.0)
    }

    /// The members of both.
    pub const fn within(self, other: Cores) -> Self {
        Cores(self.0 & other.0)
    }
}

impl Iterator for Cores {
    type Item = usize;

    /// Takes the lowest member out.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let core = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (core < CORES_MAX).then_some(core)
    }
}

impl core::fmt::Display for Cores {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, core) in self.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{core}")?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn members_in_order() {
        let set = Cores::one(3).with(Cores::one(31)).with(Cores::one(0));
        assert_eq!(set.collect::<std::vec::Vec<_>>(), [0, 3, 31]);
        assert_eq!(set.to_string(), "0, 3, 31");
        assert_eq!(Cores::NONE.to_string(), "none");
        assert_eq!(set.without(Cores::one(3)).count(), 2);
    }

    #[test]
    fn numbers_out_of_range_are_in_no_set() {
        assert!(Cores::one(CORES_MAX).is_empty());
        assert!(!Cores::first(CORES_MAX).contains(CORES_MAX));
        assert_eq!(Cores::first(CORES_MAX).mask(), u32::MAX);
        assert_eq!(Cores::first(0), Cores::NONE);
    }
}
