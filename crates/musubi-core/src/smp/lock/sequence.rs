//! Sequence lock: small values that are read often, never torn, without a store by the readers.
//!
//! What you may rely on: a read gives a value that was written as a whole; writers come first, first served, and wait for
//! no reader. A read takes at most [`READS_MAX`] tries and then its turn among the writers, so it ends. For one core reading
//! and writing are masked copies.
//!
//! How it works: a count is odd while a value is being written; a reader that finds it odd, or another than before, reads
//! again (Lameter, "Effective synchronization on Linux/NUMA systems", 2005). The value lies in atomic words, so that a read
//! that is thrown away is no data race either, with the fences that Boehm gives in "Can seqlocks get along with programming
//! language memory models?" (2012).
//!
//! What it does not do: hold values that are not plain words; [`Words`] turns a type into words without `unsafe`.

use core::marker::PhantomData;

use crate::smp::{Lock, Processor, Ticket};
use crate::sync::{AtomicU32, Ordering, Site, acquire, acquire_fence, array, constructor, release, release_fence};

/// Tries of a read before it takes its turn among the writers.
pub const READS_MAX: u32 = if cfg!(loom) { 1 } else { 16 };

/// A type that `N` words hold.
pub trait Words<const N: usize>: Copy {
    /// The value as words.
    fn to_words(self) -> [u32; N];
    /// The value of these words, which [`Words::to_words`] gave.
    fn from_words(words: [u32; N]) -> Self;
}

impl<const N: usize> Words<N> for [u32; N] {
    fn to_words(self) -> [u32; N] {
        self
    }
    fn from_words(words: [u32; N]) -> Self {
        words
    }
}

impl Words<1> for u32 {
    fn to_words(self) -> [u32; 1] {
        [self]
    }
    fn from_words([word]: [u32; 1]) -> Self {
        word
    }
}

impl Words<2> for u64 {
    fn to_words(self) -> [u32; 2] {
        [self as u32, (self >> 32) as u32]
    }
    fn from_words([low, high]: [u32; 2]) -> Self {
        u64::from(high) << 32 | u64::from(low)
    }
}

impl Words<4> for (u64, u64) {
    fn to_words(self) -> [u32; 4] {
        let ([a, b], [c, d]) = (self.0.to_words(), self.1.to_words());
        [a, b, c, d]
    }
    fn from_words([a, b, c, d]: [u32; 4]) -> Self {
        (u64::from_words([a, b]), u64::from_words([c, d]))
    }
}

/// A value of type `T` in `N` words, shared by the cores `P`.
#[derive(Debug)]
pub struct Sequence<P, T, const N: usize> {
    writers: Ticket<P>,
    /// Odd while a value is written. Written by the holder of `writers`, like the words.
    count: AtomicU32,
    words: [AtomicU32; N],
    value: PhantomData<fn() -> T>,
}

impl<P, T, const N: usize> Sequence<P, T, N> {
    constructor! {
        /// The value whose words are all zero.
        pub fn zero() -> Self {
            Sequence {
                writers: Ticket::new(),
                count: AtomicU32::new(0),
                words: array![AtomicU32::new(0); N],
                value: PhantomData,
            }
        }
    }
}

impl<P: Processor, T: Words<N>, const N: usize> Sequence<P, T, N> {
    /// Replaces the value, after the writers that came before.
    pub fn write(&self, value: T) {
        self.update(|_| value);
    }

    /// Replaces the value by what `change` makes of it. `change` runs with interrupts masked and must not write here.
    pub fn update(&self, change: impl FnOnce(T) -> T) {
        let held = self.writers.lock();
        let words = change(T::from_words(self.copy())).to_words();
        if P::CORES == 1 {
            self.store(words);
        } else {
            self.store_counted(words);
        }
        drop(held);
    }

    /// The value. May be called in handlers, also of a core that writes.
    pub fn read(&self) -> T {
        if P::CORES > 1 {
            for _ in 0..READS_MAX {
                if let Some(words) = self.try_copy() {
                    return T::from_words(words);
                }
                P::relax();
            }
        }
        let held = self.writers.lock();
        let words = self.copy();
        drop(held);
        T::from_words(words)
    }

    fn store_counted(&self, words: [u32; N]) {
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count.wrapping_add(1), Ordering::Relaxed);
        release_fence(Site::PublishChange);
        self.store(words);
        self.count.store(count.wrapping_add(2), release(Site::PublishChanged));
    }

    fn store(&self, words: [u32; N]) {
        self.words.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }

    fn copy(&self) -> [u32; N] {
        core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }

    /// The words, unless somebody writes them meanwhile.
    fn try_copy(&self) -> Option<[u32; N]> {
        let before = self.count.load(acquire(Site::SeeChanged));
        let words = self.copy();
        acquire_fence(Site::SeeChange);
        let unchanged = before & 1 == 0 && self.count.load(Ordering::Relaxed) == before;
        unchanged.then_some(words)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::smp::tests::threads::{Pending, Program, Threads};

    struct With<const N: usize>;
    impl<const N: usize> Program for With<N> {
        const CORES: usize = N;
        fn pending() -> &'static Pending {
            static PENDING: Pending = Pending::new();
            &PENDING
        }
    }

    fn count_after_three_writes<const N: usize>() -> u32 {
        let value = Sequence::<Threads<With<N>>, u64, 2>::zero();
        value.write(1);
        value.update(|value| value + 1);
        value.write(3);
        assert_eq!(value.read(), 3);
        value.count.into_inner()
    }

    #[test]
    fn a_write_counts_twice_where_another_core_may_read_meanwhile_and_else_not() {
        assert_eq!(count_after_three_writes::<2>(), 6);
        assert_eq!(count_after_three_writes::<1>(), 0);
    }

    #[test]
    fn a_value_that_is_being_written_is_not_copied_and_a_read_ends_all_the_same() {
        let value = Sequence::<Threads<With<2>>, u32, 1>::zero();
        value.write(7);
        assert_eq!(value.try_copy(), Some([7]));
        value.count.store(3, Ordering::Relaxed);
        assert_eq!(value.try_copy(), None);
        assert_eq!(value.read(), 7, "in its turn among the writers");
        value.count.store(4, Ordering::Relaxed);
        assert_eq!(value.try_copy(), Some([7]));
    }
}
