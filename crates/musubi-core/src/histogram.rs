//! A latency histogram of fixed size in shared words: 8 buckets an octave, so a value is known to 12.5 %.
//!
//! What you may rely on: recording is two plain loads and stores on the owner's words, no loop, no division; a reader
//! in another process sees each bucket whole, though not all at the same instant.
//!
//! How it works: values below 8 have a bucket each; above, the position of the top bit and the three bits after it name
//! the bucket (the scheme of HdrHistogram, with a fixed range of 32 bits).

/// Number of buckets: 8 exact ones, then 8 for each of the octaves from 2^3 to 2^31.
pub const BUCKETS: u32 = 240;
/// Index of the largest value, in words from the histogram's start.
pub const MAX: u32 = 0;
/// Index of the number of recorded values.
pub const COUNT: u32 = 1;
/// Index of the first bucket.
pub const FIRST_BUCKET: u32 = 16;
/// Length in words: one line of summary, then the buckets.
pub const WORDS: u32 = FIRST_BUCKET + BUCKETS;

/// The bucket of a value.
pub const fn bucket(value: u32) -> u32 {
    if value < 8 {
        return value;
    }
    let octave = 31 - value.leading_zeros();
    (octave - 2) * 8 + ((value >> (octave - 3)) & 7)
}

/// The largest value that falls into a bucket.
pub const fn bucket_max(bucket: u32) -> u32 {
    if bucket < 8 {
        return bucket;
    }
    let octave = bucket / 8 + 2;
    let step = 1u64 << (octave - 3);
    ((8 + (bucket % 8) as u64 + 1) * step - 1) as u32
}

/// The value below which `permille` of the counted values lie (as the upper end of a bucket), from a copy of the
/// buckets; `None` if nothing was counted.
pub fn quantile(buckets: &[u32], permille: u32) -> Option<u32> {
    let total: u64 = buckets.iter().map(|&c| u64::from(c)).sum();
    if total == 0 {
        return None;
    }
    let wanted = (total * u64::from(permille)).div_ceil(1000).max(1);
    let mut seen = 0u64;
    for (index, &count) in buckets.iter().enumerate() {
        seen += u64::from(count);
        if seen >= wanted {
            return Some(bucket_max(index as u32));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for shift in 0..32 {
            for delta in [0u32, 1, 2, 3] {
                let value = (1u32 << shift).wrapping_add(delta);
                let index = bucket(value);
                assert!(index < BUCKETS);
                assert!(value <= bucket_max(index));
                assert!(index == 0 || value > bucket_max(index - 1), "{value}");
            }
        }
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
        assert_eq!(bucket_max(BUCKETS - 1), u32::MAX);
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut buckets = [0u32; BUCKETS as usize];
        for value in 1..=1000u32 {
            buckets[bucket(value) as usize] += 1;
        }
        let median = quantile(&buckets, 500).unwrap();
        assert!((500..=563).contains(&median), "{median}");
        assert_eq!(quantile(&[0; 4], 500), None);
    }
}
