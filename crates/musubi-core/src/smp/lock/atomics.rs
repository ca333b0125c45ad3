//! The atomic counters and bits of Linux/M32R, on whatever the target offers.
//!
//! What you may rely on: each operation is one atomic step between cores and handlers. Those that return something order
//! all that stands before them before all that stands behind; those that return nothing only change the word. On M32R each
//! was a locked load and store with interrupts masked; here it is the target's own atomic instruction.
//!
//! | Linux/M32R | here |
//! | --- | --- |
//! | `atomic_read`, `atomic_set` | [`Counter::read`], [`Counter::set`] |
//! | `atomic_add`, `_sub`, `_inc`, `_dec` | [`Counter::add`], [`Counter::sub`], [`Counter::inc`], [`Counter::dec`] |
//! | `atomic_add_return`, `_sub_`, `_inc_`, `_dec_` | [`Counter::add_return`], [`Counter::sub_return`], [`Counter::inc_return`], [`Counter::dec_return`] |
//! | `atomic_sub_and_test`, `_inc_`, `_dec_`, `atomic_add_negative` | [`Counter::sub_and_test`], [`Counter::inc_and_test`], [`Counter::dec_and_test`], [`Counter::add_negative`] |
//! | `atomic_cmpxchg`, `_xchg`, `_add_unless`, `_inc_not_zero` | [`Counter::cmpxchg`], [`Counter::xchg`], [`Counter::add_unless`], [`Counter::inc_not_zero`] |
//! | `atomic_set_mask`, `_clear_mask` | [`Counter::set_mask`], [`Counter::clear_mask`] |
//! | `set_bit`, `clear_bit`, `change_bit`, `test_bit` | [`Bits::set`], [`Bits::clear`], [`Bits::change`], [`Bits::test`] |
//! | `test_and_set_bit`, `_clear_`, `_change_` | [`Bits::test_and_set`], [`Bits::test_and_clear`], [`Bits::test_and_change`] |
//!
//! How it works: [`Site::Exchange`] is acquire and release at once. Counters wrap.

use crate::sync::{AtomicU32, Ordering, Site, acquire_release, array, constructor};

/// Tries of [`Counter::add_unless`] before its step is taken by others so often that it is worth a longer hint.
const TRIES_BEFORE_HINT: u32 = 4;

/// A counter of 32 bits with a sign.
#[derive(Debug)]
#[repr(transparent)]
pub struct Counter(AtomicU32);

impl Counter {
    constructor! {
        /// A counter with this value.
        pub fn new(value: i32) -> Self {
            Counter(AtomicU32::new(value as u32))
        }
    }

    /// The value; orders nothing.
    pub fn read(&self) -> i32 {
        self.0.load(Ordering::Relaxed) as i32
    }

    /// Replaces the value; orders nothing.
    pub fn set(&self, value: i32) {
        self.0.store(value as u32, Ordering::Relaxed);
    }

    /// Adds.
    pub fn add(&self, amount: i32) {
        self.0.fetch_add(amount as u32, Ordering::Relaxed);
    }

    /// Subtracts.
    pub fn sub(&self, amount: i32) {
        self.0.fetch_sub(amount as u32, Ordering::Relaxed);
    }

    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Subtracts one.
    pub fn dec(&self) {
        self.sub(1);
    }

    /// Adds; gives the new value.
    pub fn add_return(&self, amount: i32) -> i32 {
        let before = self.0.fetch_add(amount as u32, acquire_release(Site::Exchange)) as i32;
        before.wrapping_add(amount)
    }

    /// Subtracts; gives the new value.
    pub fn sub_return(&self, amount: i32) -> i32 {
        let before = self.0.fetch_sub(amount as u32, acquire_release(Site::Exchange)) as i32;
        before.wrapping_sub(amount)
    }

    /// Adds one; gives the new value.
    pub fn inc_return(&self) -> i32 {
        self.add_return(1)
    }

    /// Subtracts one; gives the new value.
    pub fn dec_return(&self) -> i32 {
        self.sub_return(1)
    }

    /// Subtracts; gives whether the new value is 0.
    pub fn sub_and_test(&self, amount: i32) -> bool {
        self.sub_return(amount) == 0
    }

    /// Adds one; gives whether the new value is 0.
    pub fn inc_and_test(&self) -> bool {
        self.inc_return() == 0
    }

    /// Subtracts one; gives whether the new value is 0.
    pub fn dec_and_test(&self) -> bool {
        self.dec_return() == 0
    }

    /// Adds; gives whether the new value is negative.
    pub fn add_negative(&self, amount: i32) -> bool {
        self.add_return(amount) < 0
    }

    /// Replaces the value by `new` if it is `expected`; gives what it was.
    pub fn cmpxchg(&self, expected: i32, new: i32) -> i32 {
        let order = acquire_release(Site::Exchange);
        let done = self.0.compare_exchange(expected as u32, new as u32, order, Ordering::Relaxed);
        done.unwrap_or_else(|found| found) as i32
    }

    /// Replaces the value; gives what it was.
    pub fn xchg(&self, new: i32) -> i32 {
        self.0.swap(new as u32, acquire_release(Site::Exchange)) as i32
    }

    /// Adds unless the value is `unless`; gives whether it has added. Each try that fails means that another core succeeded.
    pub fn add_unless(&self, amount: i32, unless: i32) -> bool {
        let (mut found, mut tries) = (self.read(), 0);
        while found != unless {
            let before = self.cmpxchg(found, found.wrapping_add(amount));
            if before == found {
                return true;
            }
            found = before;
            tries += 1;
            if tries >= TRIES_BEFORE_HINT {
                core::hint::spin_loop();
            }
        }
        false
    }

    /// Adds one unless the value is 0; gives whether it has added.
    pub fn inc_not_zero(&self) -> bool {
        self.add_unless(1, 0)
    }

    /// Sets these bits.
    pub fn set_mask(&self, mask: u32) {
        self.0.fetch_or(mask, Ordering::Relaxed);
    }

    /// Clears these bits.
    pub fn clear_mask(&self, mask: u32) {
        self.0.fetch_and(!mask, Ordering::Relaxed);
    }
}

/// `32 * N` bits. Numbers count from the lowest bit of the first word.
#[derive(Debug)]
#[repr(transparent)]
pub struct Bits<const N: usize>([AtomicU32; N]);

/// Operations panic if the bit's number is not below `32 * N`.
impl<const N: usize> Bits<N> {
    constructor! {
        /// All bits clear.
        #[allow(clippy::new_without_default, reason = "a static")]
        pub fn new() -> Self {
            Bits(array![AtomicU32::new(0); N])
        }
    }

    /// Sets a bit.
    pub fn set(&self, number: usize) {
        self.word(number).fetch_or(mask(number), Ordering::Relaxed);
    }

    /// Clears a bit.
    pub fn clear(&self, number: usize) {
        self.word(number).fetch_and(!mask(number), Ordering::Relaxed);
    }

    /// Inverts a bit.
    pub fn change(&self, number: usize) {
        self.word(number).fetch_xor(mask(number), Ordering::Relaxed);
    }

    /// Whether a bit is set; orders nothing.
    pub fn test(&self, number: usize) -> bool {
        self.word(number).load(Ordering::Relaxed) & mask(number) != 0
    }

    /// Sets a bit; gives whether it was set.
    pub fn test_and_set(&self, number: usize) -> bool {
        self.word(number).fetch_or(mask(number), acquire_release(Site::Exchange)) & mask(number) != 0
    }

    /// Clears a bit; gives whether it was set.
    pub fn test_and_clear(&self, number: usize) -> bool {
        self.word(number).fetch_and(!mask(number), acquire_release(Site::Exchange)) & mask(number) != 0
    }

    /// Inverts a bit; gives whether it was set.
    pub fn test_and_change(&self, number: usize) -> bool {
        self.word(number).fetch_xor(mask(number), acquire_release(Site::Exchange)) & mask(number) != 0
    }

    fn word(&self, number: usize) -> &AtomicU32 {
        &self.0[number / 32]
    }
}

fn mask(number: usize) -> u32 {
    1 << (number % 32)
}
