//! The limit of large transfers: one process copies a megabyte, and nobody else takes part. It goes through as many bytes as
//! streams do, so that neither has more of them in its caches.

use std::hint::black_box;

use musubi_linux::clock::now_ns;

use super::ends::SHARED_BYTES;
use crate::bench::pair::Pair;
use crate::bench::rounds::{Item, copy_samples};

/// Bytes of one copy, and copies in one sample.
const BYTES: usize = 1 << 20;
const BATCH: usize = 8;

/// One process's copy.
pub(super) struct CopyAlone {
    from: Vec<u8>,
    to: Vec<u8>,
    turn: usize,
}

impl CopyAlone {
    pub fn new() -> CopyAlone {
        CopyAlone {
            from: (0..SHARED_BYTES).map(|place| (place * 7) as u8).collect(),
            to: vec![0; SHARED_BYTES],
            turn: 0,
        }
    }
}

impl Item for CopyAlone {
    fn name(&self) -> String {
        "copy_alone_1m".into()
    }

    fn unit(&self) -> &'static str {
        "MB/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        copy_samples(latency_samples)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        if !pair.is_ping() {
            return Ok(());
        }
        for _ in 0..count {
            let before = now_ns();
            for _ in 0..BATCH {
                let at = self.turn * BYTES % SHARED_BYTES;
                self.turn += 1;
                black_box(&mut self.to[at..at + BYTES]).copy_from_slice(black_box(&self.from[at..at + BYTES]));
            }
            into.push((BATCH * BYTES) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}
