//! `musubi bench smp`: what the multiprocessor layer costs (seed 002), as nanoseconds on threads of Linux.
//!
//! How it works: the list of `musubi_measures` runs on two machines made of threads, one built for one core (its locks
//! are a mask), one built for two; the second with all tasks on one core, and with the partner on the other. Each round
//! takes every item once, in all three forms next to each other, so that they see the same machine; a figure is the
//! distribution over the rounds. Instructions instead of nanoseconds: `cargo xtask bench-smp`, on an image.
//!
//! What it does not do: measure interrupts of hardware. An interrupt here is the layer's own path, and the null trap is
//! the cheapest system call.

use std::path::Path;

use anyhow::{Context, ensure};
use musubi_core::smp::{Handlers, Processor};
use musubi_linux::cores::{self, Domain, Program, Threads};
use musubi_measures::list::{Item, Placement, measure};
use musubi_measures::{Machine, Shared};
use serde::Serialize;

use super::figures::{Figure, Report};
use crate::output;

/// Rounds, each of which gives one sample of each figure.
const ROUNDS: u32 = 20;
const ROUNDS_QUICK: u32 = 5;

/// Nothing to do for causes other than calls.
struct Quiet;

impl Handlers for Quiet {
    fn reschedule() {}
    fn tick() {}
    fn flush_instructions() {}
    fn flush_data() {}
    fn flush_translations() {}
    fn stop() {}
}

macro_rules! machine {
    ($name:ident, $cores:literal) => {
        /// A machine of this many cores.
        struct $name;

        impl Program for $name {
            const CORES: usize = $cores;
            fn domain() -> &'static Domain {
                static DOMAIN: Domain = Domain::new();
                &DOMAIN
            }
            fn interrupt() {
                Self::shared().interprocessor.on_interrupt();
            }
            fn serve() {
                Self::shared().interprocessor.serve();
            }
        }

        impl Machine<$cores> for $name {
            type Processor = Threads<Self>;
            type Handlers = Quiet;

            fn shared() -> &'static Shared<Threads<Self>, Quiet, $cores> {
                static SHARED: Shared<Threads<$name>, Quiet, $cores> = Shared::new();
                &SHARED
            }
            fn trap() {
                std::hint::black_box(rustix::process::getppid());
            }
            fn interrupt_self() {
                cores::interrupt_self::<Self>();
            }
            fn switch() {
                cores::switch();
            }
            fn count() -> u64 {
                Threads::<Self>::now_ns()
            }
            fn run(tasks: &[(usize, fn())]) {
                cores::run::<Self>(tasks);
            }
        }
    };
}

machine!(Up, 1);
machine!(Smp, 2);

/// How an item is built and placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Up,
    OneCore,
    TwoCores,
}

impl Form {
    const ALL: [Form; 3] = [Form::Up, Form::OneCore, Form::TwoCores];

    fn suffix(self) -> &'static str {
        match self {
            Form::Up => "up",
            Form::OneCore => "smp_one_core",
            Form::TwoCores => "smp_two_cores",
        }
    }

    fn takes(self, item: Item) -> bool {
        self != Form::TwoCores || item.spans_cores()
    }

    /// Nanoseconds of one operation.
    fn measure(self, item: Item, repeats: u32) -> anyhow::Result<f64> {
        let cost = match self {
            Form::Up => measure::<Up, 1>(item, Placement::OneCore, repeats),
            Form::OneCore => measure::<Smp, 2>(item, Placement::OneCore, repeats),
            Form::TwoCores => measure::<Smp, 2>(item, Placement::TwoCores, repeats),
        };
        ensure!(!cost.lost, "{} ({}): one side waited in vain for the other", item.name(), self.suffix());
        Ok(cost.each)
    }
}

/// Repeats of an item in a round.
fn repeats(item: Item) -> u32 {
    match item {
        Item::NullTrap | Item::InterruptEntry | Item::CrossCall | Item::Lock => 20_000,
        Item::Copy => 2_000,
        Item::Switch2 | Item::Switch8 | Item::Semaphore | Item::Mailbox | Item::Ring => 500,
    }
}

/// What being built for several cores costs while one runs.
#[derive(Debug, Serialize)]
struct Ratio {
    name: &'static str,
    /// Median of the two-core build on one core over that of the one-core build.
    smp_one_core_over_up: f64,
}

/// The report with the ratios.
#[derive(Debug, Serialize)]
struct WithRatios {
    #[serde(flatten)]
    report: Report,
    ratios: Vec<Ratio>,
}

/// Measures, prints, and writes the JSON file if one is named.
pub(super) fn run(json: Option<&Path>, quick: bool) -> anyhow::Result<()> {
    let rounds = if quick { ROUNDS_QUICK } else { ROUNDS };
    let processors = musubi_linux::realtime::cores().len();
    let two = processors >= 2;
    if !two {
        output::note("note: this process may use one processor; what needs two is left out");
    }
    let kinds: Vec<(Item, Form)> = Item::ALL
        .into_iter()
        .flat_map(|item| Form::ALL.map(|form| (item, form)))
        .filter(|(item, form)| form.takes(*item) && (two || *form != Form::TwoCores))
        .collect();
    let mut samples = vec![Vec::new(); kinds.len()];
    for round in 0..=rounds {
        for ((item, form), into) in kinds.iter().zip(&mut samples) {
            let each_ns = form.measure(*item, repeats(*item))?;
            // The first round warms up.
            if round > 0 {
                into.push(each_ns);
            }
        }
    }
    let figure = |((item, form), taken): (&(Item, Form), Vec<f64>)| {
        Figure::of_samples(format!("{}_{}", item.name(), form.suffix()), "ns", taken)
    };
    let results: Vec<Figure> = kinds.iter().zip(samples).map(figure).collect();
    let ratios = Item::ALL.iter().filter_map(|item| ratio(*item, &results)).collect();
    let report = WithRatios { report: Report::new(Vec::new(), results), ratios };
    report.report.print()?;
    for ratio in &report.ratios {
        output::print(&format!("{:<20} SMP on one core / UP: {:.2}\n", ratio.name, ratio.smp_one_core_over_up))?;
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn ratio(item: Item, results: &[Figure]) -> Option<Ratio> {
    let median = |form: Form| {
        let name = format!("{}_{}", item.name(), form.suffix());
        results.iter().find(|figure| figure.name == name).map(|figure| figure.p50)
    };
    Some(Ratio { name: item.name(), smp_one_core_over_up: median(Form::OneCore)? / median(Form::Up)? })
}
