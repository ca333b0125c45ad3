//! How much of a processor receiving takes, over the size of a message (the seed's figure 3).
//!
//! What you may rely on: it is measured as the seed did: a loop of the lowest ordinary priority runs on the receiver's
//! processor, and what it does not get done beside the receiver, of what it gets done alone, is the receiver's. Both are
//! taken in turn.
//!
//! How it works: pong floods ping over one VI in shared memory; ping waits for completions, polling or asleep.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::ends::{OpenNic, Way};
use super::flood::{Flood, FloodKind};
use super::settings::Settings;
use crate::bench::figures::Figure;
use crate::bench::pair::Pair;
use crate::bench::rounds::SAMPLES;
use crate::bench::run::Figures;
use crate::bench::sockets::How;

/// Sizes of messages in bytes.
const SIZES: [usize; 5] = [64, 1024, 4096, 32_768, 65_536];
/// Class of the messages.
const CLASS: u8 = 3;
/// Niceness of the loop.
const NICE: i32 = 19;
/// How long the loop runs alone, and beside the receiver.
const ALONE: Duration = Duration::from_millis(40);
const BESIDE: Duration = Duration::from_millis(120);
/// How often, in a whole run and in a quick one.
const SLICES: u32 = 20;
const SLICES_QUICK: u32 = 3;
/// Steps between two looks at the clock.
const STEPS: u64 = 1000;

/// Names of all figures.
pub(super) fn names() -> Vec<String> {
    all().map(|(how, bytes)| name(how, bytes)).collect()
}

fn all() -> impl Iterator<Item = (How, usize)> {
    [How::Poll, How::Block].into_iter().flat_map(|how| SIZES.map(|bytes| (how, bytes)))
}

fn name(how: How, bytes: usize) -> String {
    format!("vi_load_{}_{bytes}", how.word())
}

/// Measures all that is wanted.
///
/// # Errors
/// A connection failed.
pub(super) fn measure(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    let wanted: Vec<_> = all().filter(|(how, bytes)| settings.wants(&name(*how, *bytes))).collect();
    let mut taken = vec![Vec::new(); wanted.len()];
    for slice in 0..if settings.samples < SAMPLES { SLICES_QUICK } else { SLICES } {
        for ((how, bytes), taken) in wanted.iter().zip(&mut taken) {
            let load =
                take(pair, (*how, *bytes), slice).with_context(|| format!("measuring {}", name(*how, *bytes)))?;
            taken.push(load);
        }
    }
    let figures = wanted.iter().zip(taken);
    let results = figures.map(|((how, bytes), taken)| Figure::of_samples(name(*how, *bytes), "%", taken)).collect();
    Ok(Figures { limits: Vec::new(), results })
}

/// The load in percent, as ping sees it.
fn take(pair: &Pair, (how, bytes): (How, usize), slice: u32) -> anyhow::Result<f64> {
    let nic = OpenNic::open(pair, Way::Memory, how, &format!("load-{bytes}-{slice}"))?;
    let kind = FloodKind { name: "load", bytes, vis: 1, class: CLASS, sends: !pair.is_ping() };
    let mut flood = Flood::connect(&nic, kind)?;
    let alone = if pair.is_ping() { steps_per_s(ALONE)? } else { 0.0 };
    let (over, carried) = (AtomicBool::new(false), AtomicU64::new(0));
    pair.meet()?;
    let beside = thread::scope(|scope| -> anyhow::Result<f64> {
        let running = scope.spawn(|| flood.run(&over, &carried));
        let beside = if pair.is_ping() { steps_per_s(BESIDE)? } else { 0.0 };
        pair.meet()?;
        over.store(true, Ordering::Relaxed);
        running.join().map_err(|_| anyhow::anyhow!("a thread of the flood panicked"))??;
        Ok(beside)
    })?;
    pair.meet()?;
    Ok((1.0 - beside / alone.max(1.0)).max(0.0) * 100.0)
}

/// How many steps a loop of the lowest ordinary priority makes a second.
fn steps_per_s(time: Duration) -> anyhow::Result<f64> {
    let counted = thread::spawn(move || {
        // On Linux this is of the calling thread only. Without it the loop takes its fair share.
        let _ = rustix::process::nice(NICE);
        let (began, mut steps) = (Instant::now(), 0_u64);
        while began.elapsed() < time {
            (0..STEPS).for_each(|_| steps = black_box(steps + 1));
        }
        steps as f64 / began.elapsed().as_secs_f64()
    });
    counted.join().map_err(|_| anyhow::anyhow!("the loop panicked"))
}
