//! EP, "embarrassingly parallel": pairs of Gaussian deviates, counted by the square ring that they fall into.
//!
//! How it works: pairs of uniform deviates in (-1, 1); those inside the unit circle become two Gaussian ones by Marsaglia's
//! polar method. The workers take blocks of pairs, each of which begins at its own place of the sequence.

use super::random::Random;
use super::{Lost, Team, others, share};

/// Pairs of class S, as a power of two.
const PAIRS_LOG2: u32 = 24;
/// Pairs of one block, as a power of two.
const BLOCK_LOG2: u32 = 16;
const SEED: u64 = 271_828_183;
/// Published sums of class S.
const SUM_X: f64 = -3.247_834_652_034_74e3;
const SUM_Y: f64 = -6.958_407_078_382_297e3;
const TOLERANCE: f64 = 1e-8;
/// Rings that are counted.
const RINGS: usize = 10;

/// What EP computes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Sum of the first deviates.
    pub x: f64,
    /// Sum of the second.
    pub y: f64,
    /// Pairs with the larger absolute value between n and n + 1.
    pub rings: [u64; RINGS],
}

impl Sums {
    /// Whether the sums are the published ones of class S.
    pub fn are_right(&self) -> bool {
        let near = |value: f64, right: f64| ((value - right) / right).abs() <= TOLERANCE;
        near(self.x, SUM_X) && near(self.y, SUM_Y)
    }

    fn words(&self) -> [u32; 4 + 2 * RINGS] {
        let mut words = [0; 4 + 2 * RINGS];
        let values = [self.x.to_bits(), self.y.to_bits()].into_iter().chain(self.rings);
        for (pair, value) in words.chunks_exact_mut(2).zip(values) {
            pair.copy_from_slice(&[value as u32, (value >> 32) as u32]);
        }
        words
    }

    fn add_words(&mut self, words: &[u32]) {
        let mut values = words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
        self.x += f64::from_bits(values.next().unwrap_or_default());
        self.y += f64::from_bits(values.next().unwrap_or_default());
        self.rings.iter_mut().zip(values).for_each(|(ring, value)| *ring += value);
    }
}

/// Runs EP of class S; every worker gets all sums.
///
/// # Errors
/// [`Lost`].
pub fn run(team: &mut impl Team) -> Result<Sums, Lost> {
    run_of(team, PAIRS_LOG2)
}

/// EP with so many pairs.
pub(super) fn run_of(team: &mut impl Team, pairs_log2: u32) -> Result<Sums, Lost> {
    let (first, end) = share(team.rank(), team.size(), 1 << (pairs_log2 - BLOCK_LOG2));
    let mut sums = Sums::default();
    for block in first..end {
        add_block(block as u64, &mut sums);
    }
    let own = sums.words();
    for other in others(team).into_iter().take(team.size() - 1) {
        team.swap(other, &own, &mut |words| sums.add_words(words))?;
    }
    Ok(sums)
}

fn add_block(block: u64, sums: &mut Sums) {
    let mut random = Random::new(SEED, block << (BLOCK_LOG2 + 1));
    for _ in 0..1u32 << BLOCK_LOG2 {
        let (x, y) = (2.0 * random.next() - 1.0, 2.0 * random.next() - 1.0);
        let square = x * x + y * y;
        if square <= 1.0 {
            let stretch = libm::sqrt(-2.0 * libm::log(square) / square);
            let (x, y) = (x * stretch, y * stretch);
            sums.x += x;
            sums.y += y;
            let ring = x.abs().max(y.abs()) as usize;
            sums.rings[ring.min(RINGS - 1)] += 1;
        }
    }
}
