//! Draws some of many, the same ones for the same seed.
//!
//! How it works: the first steps of a shuffle (Fisher and Yates), with the generator SplitMix64 (Steele, Lea and Flood, 2014).

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};

/// A seed that nobody has looked at.
///
/// # Errors
/// If the clock stands before 1970.
pub fn fresh_seed() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the time of day")?.as_secs())
}

/// `count` of `all`, each as likely as any other; all of them if there are no more. In the order in which they were given.
pub fn draw<T>(all: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut numbers: Vec<usize> = (0..all.len()).collect();
    let count = count.min(all.len());
    let mut state = seed;
    for first in 0..count {
        let rest = (all.len() - first) as u64;
        // The remainder's bias is below one in 2^50 with some thousand mutants.
        let other = first + usize::try_from(next(&mut state) % rest).unwrap_or(0);
        numbers.swap(first, other);
    }
    numbers.truncate(count);
    let mut is_drawn = vec![false; all.len()];
    numbers.iter().for_each(|&number| is_drawn[number] = true);
    all.into_iter().zip(is_drawn).filter_map(|(item, drawn)| drawn.then_some(item)).collect()
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut state = 1_234_567;
        assert_eq!(next(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(next(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn the_same_seed_draws_the_same_in_order_and_another_does_not() {
        let all: Vec<u32> = (0..1000).collect();
        let drawn = draw(all.clone(), 50, 7);
        assert_eq!(drawn.len(), 50);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(drawn, draw(all.clone(), 50, 7));
        assert_ne!(drawn, draw(all.clone(), 50, 8));
        assert_eq!(draw(all.clone(), 2000, 7), all);
    }

    #[test]
    fn each_is_as_likely_as_any_other() {
        let mut times = [0_u32; 10];
        (0..10_000).for_each(|seed| draw((0..10).collect(), 3, seed).iter().for_each(|&n: &usize| times[n] += 1));
        assert!(times.iter().all(|&count| (2800..3200).contains(&count)), "{times:?}");
    }
}
