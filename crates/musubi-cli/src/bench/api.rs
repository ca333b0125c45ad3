//! What each call costs (seed 000, table 4): both ends on one core, so that no cache line moves and nobody sleeps.

use std::time::Duration;

use musubi_linux::Participant;
use musubi_linux::clock::now_ns;
use musubi_mdcom::{Bytes, Mdcom, Receiver, Sender, Wait};

use super::channels::Setup;
use super::pair::Pair;
use super::rounds::Item;

/// Calls in one sample.
const BATCH: usize = 32;
/// Longest wait for the two ends to find each other.
const LINK_MAX: Duration = Duration::from_secs(10);
/// The calls of table 4, in the order in which a batch makes them.
const CALLS: [&str; 6] = ["alloc", "enqueue", "notify", "dequeue", "get", "free"];

/// One figure a call; all six come from the same batches, so the first one measures for all.
pub(super) fn items(setup: &Setup) -> anyhow::Result<Vec<Box<dyn Item + '_>>> {
    let shared = std::rc::Rc::new(std::cell::RefCell::new(Calls::open(setup)?));
    let figure = |index| Box::new(Call { index, calls: shared.clone() }) as Box<dyn Item + '_>;
    Ok((0..CALLS.len()).map(figure).collect())
}

/// The batches without a second process.
pub(super) fn run_alone(batches: u32) -> anyhow::Result<()> {
    let instance = format!("calls-{}", std::process::id());
    let (sender, receiver) = super::channels::local_pair(&instance)?;
    let (tx, rx) = (Mdcom::init(&sender).sender("calls")?, Mdcom::init(&receiver).receiver("calls")?);
    // Once around, so that the ends are linked.
    tx.send(&[], Wait::Poll)?;
    drop(rx.next(Wait::For(LINK_MAX))?);
    let mut calls = Calls { ends: Some((tx, rx)), samples: Default::default() };
    for _ in 0..batches {
        calls.batch()?;
    }
    for (call, samples) in CALLS.iter().zip(&mut calls.samples) {
        samples.sort_by(f64::total_cmp);
        let median = samples.get(samples.len() / 2).copied().unwrap_or_default();
        crate::output::print(&format!("{call}: {median:.1} ns\n"))?;
    }
    Ok(())
}

struct Call<'a> {
    index: usize,
    calls: std::rc::Rc<std::cell::RefCell<Calls<'a>>>,
}

struct Calls<'a> {
    ends: Option<(Sender<'a, Participant, Bytes>, Receiver<'a, Participant, Bytes>)>,
    samples: [Vec<f64>; 6],
}

impl<'a> Calls<'a> {
    fn open(setup: &'a Setup) -> anyhow::Result<Calls<'a>> {
        let ends = match &setup.both {
            Some(both) => Some((Mdcom::init(&setup.polling).sender("calls")?, Mdcom::init(both).receiver("calls")?)),
            None => None,
        };
        Ok(Calls { ends, samples: Default::default() })
    }

    /// One batch of each call.
    fn batch(&mut self) -> anyhow::Result<()> {
        let Some((tx, rx)) = &self.ends else { return Ok(()) };
        let mut times = [0; 7];
        let mut blocks = Vec::with_capacity(BATCH);
        let mut messages = Vec::with_capacity(BATCH);
        times[0] = now_ns();
        for _ in 0..BATCH {
            blocks.push(tx.alloc(Wait::Poll)?);
        }
        times[1] = now_ns();
        for block in blocks.drain(..) {
            block.enqueue(8).map_err(|rejected| rejected.error)?;
        }
        times[2] = now_ns();
        for _ in 0..BATCH {
            tx.notify();
        }
        times[3] = now_ns();
        for _ in 0..BATCH {
            messages.push(rx.dequeue()?);
        }
        times[4] = now_ns();
        for message in &messages {
            std::hint::black_box(message.address());
        }
        times[5] = now_ns();
        for message in messages.drain(..) {
            drop(message);
        }
        times[6] = now_ns();
        while rx.wait(Wait::Poll).is_ok() {}
        for (call, samples) in self.samples.iter_mut().enumerate() {
            samples.push((times[call + 1] - times[call]) as f64 / BATCH as f64);
        }
        Ok(())
    }
}

impl Item for Call<'_> {
    fn name(&self) -> String {
        format!("api_{}", CALLS[self.index])
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        latency_samples / BATCH as u32
    }

    fn round(&mut self, _pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut calls = self.calls.borrow_mut();
        if self.index == 0 {
            calls.samples = Default::default();
            for _ in 0..count {
                calls.batch()?;
            }
        }
        into.append(&mut calls.samples[self.index]);
        Ok(())
    }
}
