//! IS, "integer sort": the ranks of small integer keys, ten times, then the keys in order.
//!
//! How it works: each worker has a share of the keys and owns a range of their values. In each iteration it counts its
//! keys by value and gives every other worker, in one message, the counts of that one's range, how many keys it has in each
//! range, and the keys to be checked. Added up, with the number of keys in lower ranges, the counts are ranks. The ranges
//! are halves, quarters and so on of the values, which the keys' distribution (sum of four uniform deviates) balances
//! for two workers.
//!
//! What it does not do: balance the ranges of more than two workers.

use core::ops::Range;

use super::random::Random;
use super::{Lost, Team, WORKERS_MAX, others, share};

/// Keys of class S.
pub const KEYS: usize = 1 << 16;
/// Values are below this.
pub const VALUES: usize = 1 << 11;
/// Times that the keys are ranked.
const ITERATIONS: u32 = 10;
/// The first keys, among which are all that the iterations change.
const CHANGED: usize = 2 * ITERATIONS as usize + 1;
const SEED: u64 = 314_159_265;
/// Published places of class S whose ranks are checked in each iteration, and their ranks but for the iteration.
const PLACES: [usize; 5] = [48_427, 17_148, 23_627, 62_548, 4_431];
const RANKS: [u32; 5] = [0, 18, 346, 64_917, 65_463];
/// Words of a message: keys to be checked, keys in each range, the counts of one range.
const MESSAGE_WORDS: usize = PLACES.len() + WORKERS_MAX + VALUES;

/// A worker's memory.
#[derive(Debug)]
pub struct Workspace {
    /// Its share of the keys.
    keys: [u32; KEYS],
    /// The keys of its range in order.
    sorted: [u32; KEYS],
    /// How many keys of each value its share has; in its own range then how many there are up to it in all shares.
    counts: [u32; VALUES],
    /// What it gives another worker.
    message: [u32; MESSAGE_WORDS],
}

impl Workspace {
    /// Memory of which nothing was used.
    #[allow(clippy::new_without_default, reason = "it is a static, or large")]
    pub const fn new() -> Self {
        Self { keys: [0; KEYS], sorted: [0; KEYS], counts: [0; VALUES], message: [0; MESSAGE_WORDS] }
    }
}

/// What IS found: how many of the published ranks were right, over all iterations and workers, and whether all keys are
/// in order in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Ranks that were right, of `RANKS.len() * ITERATIONS`.
    pub right: u32,
    /// Keys that were found in order.
    pub in_order: u32,
}

impl Outcome {
    /// Whether it is as published.
    pub fn is_right(&self) -> bool {
        self.right == RANKS.len() as u32 * ITERATIONS && self.in_order == KEYS as u32
    }
}

/// Makes a worker's share of the keys; not part of what is timed.
pub fn prepare(team: &impl Team, space: &mut Workspace) {
    let (first, end) = share(team.rank(), team.size(), KEYS);
    let mut random = Random::new(SEED, 4 * first as u64);
    for key in &mut space.keys[..end - first] {
        let sum = random.next() + random.next() + random.next() + random.next();
        *key = (sum * (VALUES / 4) as f64) as u32;
    }
}

/// Ranks the keys ten times and checks the ranks, then that all are in order; every worker gets the whole outcome.
///
/// # Errors
/// [`Lost`].
pub fn run(team: &mut impl Team, space: &mut Workspace) -> Result<Outcome, Lost> {
    let mut outcome = Outcome { right: 0, in_order: 0 };
    let mut lower = 0;
    let unchanged: [u32; CHANGED] = core::array::from_fn(|place| space.keys[place]);
    for iteration in 1..=ITERATIONS {
        let mut checked = change_keys(team, space, iteration);
        lower = rank(team, space, &mut checked)?;
        outcome.right += right_ranks(team, space, lower, &checked, iteration);
    }
    outcome.in_order = keys_in_order(team, space, lower);
    // So that a second run begins like the first. Who does not have these places in its share puts back what was there.
    space.keys[..CHANGED].copy_from_slice(&unchanged);
    let own = [outcome.right, outcome.in_order];
    for other in others(team).into_iter().take(team.size() - 1) {
        team.swap(other, &own, &mut |words| {
            outcome.right += words[0];
            outcome.in_order += words[1];
        })?;
    }
    Ok(outcome)
}

/// Changes the two keys that the benchmark changes in each iteration, and gives those of the keys to be checked that
/// this worker has, 0 for the others.
fn change_keys(team: &impl Team, space: &mut Workspace, iteration: u32) -> [u32; 5] {
    let (first, end) = share(team.rank(), team.size(), KEYS);
    let changes = [(iteration, iteration), (iteration + ITERATIONS, VALUES as u32 - iteration)];
    for (place, key) in changes {
        if (first..end).contains(&(place as usize)) {
            space.keys[place as usize - first] = key;
        }
    }
    PLACES.map(|place| if (first..end).contains(&place) { space.keys[place - first] } else { 0 })
}

/// The values that a worker owns.
fn range(size: usize, worker: usize) -> Range<usize> {
    (worker * VALUES).div_ceil(size)..((worker + 1) * VALUES).div_ceil(size)
}

/// Counts the keys of this worker's range; gives how many there are in lower ranges, and completes the checked keys.
fn rank(team: &mut impl Team, space: &mut Workspace, checked: &mut [u32; 5]) -> Result<u32, Lost> {
    let Workspace { keys, counts, message, .. } = space;
    let (first, end) = share(team.rank(), team.size(), KEYS);
    let (rank, size) = (team.rank(), team.size());
    counts.fill(0);
    for key in &keys[..end - first] {
        if let Some(count) = counts.get_mut(*key as usize) {
            *count += 1;
        }
    }
    let own_checked = *checked;
    let mut in_range = [0; WORKERS_MAX];
    for (worker, sum) in in_range.iter_mut().enumerate().take(size) {
        *sum = counts[range(size, worker)].iter().sum();
    }
    let mut lower: u32 = in_range[..rank].iter().sum();
    for other in others(team).into_iter().take(size - 1) {
        let theirs = range(size, other);
        let words = PLACES.len() + WORKERS_MAX + theirs.len();
        message[..PLACES.len()].copy_from_slice(&own_checked);
        message[PLACES.len()..][..WORKERS_MAX].copy_from_slice(&in_range);
        message[PLACES.len() + WORKERS_MAX..words].copy_from_slice(&counts[theirs]);
        // A long message may be taken in pieces.
        let mut taken = 0;
        team.swap(other, &message[..words], &mut |piece| {
            for word in piece {
                take(taken, *word, (checked, &mut lower, &mut counts[range(size, rank)]), rank);
                taken += 1;
            }
        })?;
    }
    let mut sum = 0;
    for count in &mut counts[range(size, rank)] {
        sum += *count;
        *count = sum;
    }
    Ok(lower)
}

/// Adds word `index` of another worker's message to what we know.
#[inline(always)]
fn take(index: usize, word: u32, (checked, lower, counts): (&mut [u32; 5], &mut u32, &mut [u32]), rank: usize) {
    if let Some(count) = index.checked_sub(PLACES.len() + WORKERS_MAX).and_then(|value| counts.get_mut(value)) {
        *count += word;
    } else if let Some(key) = checked.get_mut(index) {
        *key += word;
    } else if index - PLACES.len() < rank {
        *lower += word;
    }
}

/// How many of the published ranks that this worker knows are right.
fn right_ranks(team: &impl Team, space: &Workspace, lower: u32, checked: &[u32; 5], iteration: u32) -> u32 {
    let mut right = 0;
    for (index, (key, published)) in checked.iter().zip(RANKS).enumerate() {
        let below = key.wrapping_sub(1);
        if range(team.size(), team.rank()).contains(&(below as usize)) {
            let expected = if index <= 2 { published + iteration } else { published - iteration };
            right += u32::from(lower + space.counts[below as usize] == expected);
        }
    }
    right
}

/// Puts each key of the own range at its place, by its rank, and counts those that then stand in order.
fn keys_in_order(team: &impl Team, space: &mut Workspace, lower: u32) -> u32 {
    let Workspace { sorted, counts, .. } = space;
    let own = range(team.size(), team.rank());
    let mut before = 0;
    let mut in_order = 0;
    for (value, end) in own.clone().zip(&counts[own]) {
        for place in before..*end {
            sorted[place as usize] = value as u32;
            let follows = place == 0 || sorted[place as usize - 1] <= value as u32;
            in_order += u32::from(follows && lower + place < KEYS as u32);
        }
        before = *end;
    }
    in_order
}
