//! The rounds of a measurement: each item takes a part of its samples a round, within a budget of time.
//!
//! What you may rely on: both processes take the same number of samples, however long they take, since the first one
//! says before each part how many come. Every item has samples of every round that was made, and at least of one. An
//! item's part takes no longer than its share of the budget, apart from a sample that has begun.
//!
//! How it works: a warm-up that grows until it takes a share finds out how long a sample takes; each part corrects it.
//! When the budget is used up, no further round begins.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::figures::Figure;
use super::pair::{Pair, Side};
use crate::output;

/// Samples of a latency figure.
pub(super) const SAMPLES: u32 = 100_000;
pub(super) const SAMPLES_QUICK: u32 = 20_000;
/// Rounds over which the samples of each item are spread.
pub(super) const ROUNDS: u32 = 20;

/// Bytes of one copied block, and blocks in one sample of a copy figure.
pub(super) const COPY_BYTES: usize = 64 << 10;
pub(super) const COPY_BATCH: usize = 64;

/// Samples of a copy figure, each a batch.
pub(super) const fn copy_samples(latency_samples: u32) -> u32 {
    latency_samples / 100
}

/// Factor by which a warm-up grows.
const WARM_UP_GROWTH: u32 = 4;
/// A figure stands for what it names only if at least one of so many rounds was such a one.
const COUNTED_ONE_IN: usize = 20;
/// Time between two lines about the progress, where they are not overwritten.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// One thing that is measured.
pub(super) trait Item {
    /// Name of the figure.
    fn name(&self) -> String;
    /// Unit of its samples.
    fn unit(&self) -> &'static str {
        "ns"
    }
    /// How many samples of the whole `latency_samples` this item takes; a throughput item takes fewer, longer ones.
    fn samples(&self, latency_samples: u32) -> u32 {
        latency_samples
    }
    /// Takes `count` samples on the ping side, answers as often on the pong side. A round that was not what the figure
    /// names gives no sample.
    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()>;
}

/// Items of one setup.
pub(super) type Items<'a> = Vec<Box<dyn Item + 'a>>;

/// How much is measured.
pub(super) struct Pace<'a> {
    /// What is measured, for the progress.
    pub title: &'a str,
    /// Most samples of a latency.
    pub samples: u32,
    pub rounds: u32,
    /// Time for all of it.
    pub budget: Duration,
}

/// An item and what it has given.
struct Course<'i, 'a> {
    item: &'i mut Box<dyn Item + 'a>,
    taken: Vec<f64>,
    /// Rounds made for them.
    asked: usize,
    sample: Duration,
}

/// Measures limits and results, and makes figures of them.
///
/// # Errors
/// An item failed, or the other process did not come.
pub(super) fn take(
    pair: &Pair,
    (mut limits, mut results): (Items<'_>, Items<'_>),
    pace: &Pace<'_>,
) -> anyhow::Result<(Vec<Figure>, Vec<Figure>)> {
    let count = limits.len() + results.len();
    let mut progress = Progress::begin(pair, pace, count);
    let share = pace.budget / ((pace.rounds + 1) * count.max(1) as u32);
    let mut courses: Vec<Course> = limits
        .iter_mut()
        .chain(&mut results)
        .map(|item| Course { item, taken: Vec::new(), asked: 0, sample: share })
        .collect();
    for course in &mut courses {
        course.warm_up(pair, pace, share)?;
    }
    for round in 1..=pace.rounds {
        let goes_on = round == 1 || progress.began.elapsed() < pace.budget;
        if pair.agree(u32::from(goes_on))? == 0 {
            break;
        }
        progress.say(&format!("round {round} of {}", pace.rounds));
        for course in &mut courses {
            let fitting = course.fitting(pace, share);
            course.part(pair, fitting, true)?;
        }
    }
    progress.end();
    let samples: Vec<Vec<f64>> = courses.into_iter().map(|course| course.samples(pair)).collect();
    let items = limits.iter().chain(&results).zip(samples);
    let mut figures = items.map(|(item, taken)| Figure::of_samples(item.name(), item.unit(), taken));
    let limits = figures.by_ref().take(limits.len()).collect();
    Ok((limits, figures.collect()))
}

impl Course<'_, '_> {
    /// Samples of a whole part.
    fn whole(&self, pace: &Pace<'_>) -> u32 {
        self.item.samples(pace.samples).div_ceil(pace.rounds).max(1)
    }

    /// Samples of a part that fits into its share of the time.
    fn fitting(&self, pace: &Pace<'_>, share: Duration) -> u32 {
        let fit = share.as_nanos() / self.sample.as_nanos().max(1);
        self.whole(pace).min(u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
    }

    fn warm_up(&mut self, pair: &Pair, pace: &Pace<'_>, share: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        let (mut next, whole) = (1, self.whole(pace));
        while self.part(pair, next, false)? {
            let enough = next == whole || began.elapsed() >= share;
            next = if enough { 0 } else { (next * WARM_UP_GROWTH).min(whole) };
        }
        Ok(())
    }

    /// Takes so many samples, or as many as the first process says; whether there were any.
    fn part(&mut self, pair: &Pair, count: u32, keep: bool) -> anyhow::Result<bool> {
        let count = pair.agree(count)?;
        if count == 0 {
            return Ok(false);
        }
        let mut taken = Vec::with_capacity(count as usize);
        let began = Instant::now();
        self.item.round(pair, count, &mut taken).with_context(|| format!("measuring {}", self.item.name()))?;
        self.sample = began.elapsed() / count;
        if keep {
            self.asked += count as usize;
            self.taken.append(&mut taken);
        }
        Ok(true)
    }

    /// The samples, or none, with a word about it, if too few rounds were what the figure names.
    fn samples(self, pair: &Pair) -> Vec<f64> {
        if is_measured(self.taken.len(), self.asked) {
            return self.taken;
        }
        if pair.side == Side::Ping {
            let (name, counted, asked) = (self.item.name(), self.taken.len(), self.asked);
            output::note(&format!(
                "{name} cannot be measured here: only {counted} of {asked} rounds were what it names"
            ));
        }
        Vec::new()
    }
}

/// Whether enough rounds were counted.
fn is_measured(counted: usize, asked: usize) -> bool {
    counted > 0 && counted * COUNTED_ONE_IN >= asked
}

/// What is said on standard error meanwhile: one line that is overwritten on a terminal, else a line now and then.
struct Progress<'a> {
    title: &'a str,
    shown: bool,
    terminal: bool,
    began: Instant,
    said: Instant,
}

impl<'a> Progress<'a> {
    fn begin(pair: &Pair, pace: &Pace<'a>, count: usize) -> Progress<'a> {
        let now = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        let progress = Progress { title: pace.title, shown: pair.side == Side::Ping, terminal, began: now, said: now };
        if progress.shown && !terminal {
            output::note(&format!("{}: {count} figures, {} s at most", progress.title, pace.budget.as_secs()));
        }
        progress
    }

    fn say(&mut self, text: &str) {
        if self.shown && self.terminal {
            output::say(&format!("\r{}: {text} ", self.title));
        } else if self.shown && self.said.elapsed() >= LINE_EVERY {
            self.said = Instant::now();
            output::note(&format!("{}: {text}", self.title));
        }
    }

    fn end(&self) {
        if self.shown {
            let start = if self.terminal { "\r" } else { "" };
            output::note(&format!("{start}{}: done in {:.1} s      ", self.title, self.began.elapsed().as_secs_f64()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_too_few_rounds_is_none() {
        assert!(is_measured(1, 1) && is_measured(5, 100) && is_measured(100, 100));
        assert!(!is_measured(0, 0) && !is_measured(0, 100) && !is_measured(4, 100));
    }
}
