//! The benchmark's generator: x -> a x mod 2^46, in integers, so that no rounding needs an argument.

/// 5^13, the usual multiplier.
pub const A: u64 = 1_220_703_125;
const MODULUS_MASK: u64 = (1 << 46) - 1;
const SCALE: f64 = 1.0 / (1u64 << 46) as f64;

/// A place in the sequence.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed, `skipped` values on.
    pub const fn new(seed: u64, skipped: u64) -> Self {
        Random(times(seed, power(A, skipped)))
    }

    /// The next value, between 0 and 1.
    #[inline(always)]
    pub fn next(&mut self) -> f64 {
        self.0 = times(self.0, A);
        self.0 as f64 * SCALE
    }
}

/// `a b` mod 2^46: the low bits of a product do not depend on the high ones.
#[inline(always)]
const fn times(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b) & MODULUS_MASK
}

/// `a` to the `exponent`, mod 2^46.
const fn power(a: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, a);
    while exponent > 0 {
        if exponent & 1 != 0 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}
