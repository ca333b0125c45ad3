//! Real numbers between workers: sums that all workers see alike, and parts of vectors.
//!
//! What you may rely on: every worker gets the same bits, whatever the order in which the others came; so loops that
//! depend on a sum go the same way everywhere.
//!
//! How it works: a real is two words, the low one first. Parts of a sum are kept by rank and added in that order.

use super::{Lost, Team, WORKERS_MAX, others};

/// Writes these numbers as words; gives the words written.
pub fn write(numbers: impl Iterator<Item = f64>, words: &mut [u32]) -> &[u32] {
    let mut written = 0;
    for (pair, number) in words.chunks_exact_mut(2).zip(numbers) {
        let bits = number.to_bits();
        pair.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
        written += 2;
    }
    &words[..written]
}

/// Reads numbers from the pieces of a message, which may be cut between the words of a number.
#[derive(Debug, Default)]
pub struct Reader {
    low: u32,
    words: usize,
}

impl Reader {
    /// Gives each number of a piece that is complete, with its place in the message.
    #[inline(always)]
    pub fn read(&mut self, piece: &[u32], mut number: impl FnMut(usize, f64)) {
        for word in piece {
            match self.words % 2 {
                0 => self.low = *word,
                _ => number(self.words / 2, f64::from_bits(u64::from(self.low) | u64::from(*word) << 32)),
            }
            self.words += 1;
        }
    }
}

/// The sum of each worker's number.
///
/// # Errors
/// [`Lost`].
pub fn sum(team: &mut impl Team, own: f64) -> Result<f64, Lost> {
    let mut parts = [0.0; WORKERS_MAX];
    parts[team.rank()] = own;
    let mut words = [0; 2];
    let words = write([own].into_iter(), &mut words);
    for other in others(team).into_iter().take(team.size() - 1) {
        let mut reader = Reader::default();
        team.swap(other, words, &mut |piece| reader.read(piece, |_, number| parts[other] = number))?;
    }
    Ok(parts[..team.size()].iter().sum())
}
