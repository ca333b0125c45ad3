//! The machine's own limits: a bare cache line, a bare futex, a bare copy through two buffers.

use std::sync::atomic::Ordering;

use musubi_linux::bare::{futex_wait, futex_wake};
use musubi_linux::clock::now_ns;

use super::pair::{Pair, Side};
use super::rounds::{COPY_BATCH, COPY_BYTES, Item, copy_samples};

/// Byte offsets in the bare pages: the futex words, the copy buffers with their turn words, and the area from which
/// each round of the ping-pong takes another pair of lines.
const FUTEXES: [usize; 2] = [1536, 1792];
const TURNS: [usize; 2] = [2048, 2304];
const BUFFERS: usize = 8192;
const LINES: usize = 256 << 10;
const LINE_PAIRS: usize = 64;
const LINE_PAIR_BYTES: usize = 4096 + 256;

pub(super) fn items() -> Vec<Box<dyn Item>> {
    vec![Box::new(CacheLine { turn: 0, pair: 0 }), Box::new(Futex { turn: 0 }), Box::new(Copy::new())]
}

/// Two processes hand a counter to and fro, each in a line of its own. How long a line takes depends on where in the
/// chip its address is served, so the rounds use many lines.
struct CacheLine {
    turn: u32,
    pair: usize,
}

impl Item for CacheLine {
    fn name(&self) -> String {
        "cacheline_oneway".into()
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let lines = LINES + self.pair % LINE_PAIRS * LINE_PAIR_BYTES;
        self.pair += 1;
        let (ping, pong) = (pair.pages.word(lines), pair.pages.word(lines + 128));
        self.turn = ping.load(Ordering::Acquire);
        pair.meet()?;
        let mut before = now_ns();
        for _ in 0..count {
            self.turn = self.turn.wrapping_add(1);
            match pair.side {
                Side::Ping => {
                    ping.store(self.turn, Ordering::Release);
                    pair.poll_until(|| pong.load(Ordering::Acquire) == self.turn);
                    let now = now_ns();
                    into.push((now - before) as f64 / 2.0);
                    before = now;
                }
                Side::Pong => {
                    pair.poll_until(|| ping.load(Ordering::Acquire) == self.turn);
                    pong.store(self.turn, Ordering::Release);
                }
            }
        }
        Ok(())
    }
}

/// The same with both sides asleep in the kernel in between. On a fast machine the answer may be there before the one who
/// waits for it has fallen asleep; such a round took no wake-up and is not counted.
struct Futex {
    turn: u32,
}

impl Item for Futex {
    fn name(&self) -> String {
        "futex_oneway".into()
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let (ping, pong) = (pair.pages.word(FUTEXES[0]), pair.pages.word(FUTEXES[1]));
        let mut before = now_ns();
        for _ in 0..count {
            let last = self.turn;
            self.turn = self.turn.wrapping_add(1);
            match pair.side {
                Side::Ping => {
                    ping.store(self.turn, Ordering::Release);
                    let woke = futex_wake(ping);
                    let slept = futex_wait(pong, last);
                    let now = now_ns();
                    if woke && slept {
                        into.push((now - before) as f64 / 2.0);
                    }
                    before = now;
                }
                Side::Pong => {
                    let _ = futex_wait(ping, last);
                    pong.store(self.turn, Ordering::Release);
                    let _ = futex_wake(pong);
                }
            }
        }
        Ok(())
    }
}

/// One side copies into the one of two buffers while the other copies out of the other.
struct Copy {
    turn: u32,
    data: Vec<u8>,
    out: Vec<u8>,
}

impl Copy {
    fn new() -> Copy {
        Copy { turn: 0, data: (0..COPY_BYTES).map(|i| (i * 7) as u8).collect(), out: vec![0; COPY_BYTES] }
    }
}

impl Item for Copy {
    fn name(&self) -> String {
        "shm_copy_64k".into()
    }

    fn unit(&self) -> &'static str {
        "MB/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        copy_samples(latency_samples)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let (filled, emptied) = (pair.pages.word(TURNS[0]), pair.pages.word(TURNS[1]));
        for _ in 0..count {
            let before = now_ns();
            for _ in 0..COPY_BATCH {
                let buffer = BUFFERS + (self.turn as usize & 1) * COPY_BYTES;
                match pair.side {
                    Side::Ping => {
                        pair.poll_until(|| self.turn.wrapping_sub(emptied.load(Ordering::Acquire)) < 2);
                        pair.pages.copy_in(buffer, &self.data);
                        self.turn = self.turn.wrapping_add(1);
                        filled.store(self.turn, Ordering::Release);
                    }
                    Side::Pong => {
                        pair.poll_until(|| filled.load(Ordering::Acquire) != self.turn);
                        pair.pages.copy_out(buffer, &mut self.out);
                        self.turn = self.turn.wrapping_add(1);
                        emptied.store(self.turn, Ordering::Release);
                        anyhow::ensure!(self.out == self.data, "copied bytes differ");
                    }
                }
            }
            into.push((COPY_BATCH * COPY_BYTES) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}
