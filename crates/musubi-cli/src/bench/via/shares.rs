//! How two connections of one NIC share it (the seed's table 3).
//!
//! What you may rely on: both carry messages as fast as they go, each by threads of its own, between the same two NICs over
//! shared memory; a sample is what arrived of one of them in a slice. The conditions take turns, so that all see the same
//! machine.
//!
//! How it works: A has messages of 32 KiB throughout, B as many bytes or 128. With control, the
//! receiver takes [`CONTROLLED`] messages a second of B's class, by credit that it grants; or both are of one class, and take turns.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use musubi_transport::topology::{ClassIntake, Place, Topology};
use musubi_transport::{Priority, Regulation};
use musubi_vipl::address::NicNumber;
use musubi_vipl::process::NicSystem;

use super::ends::OpenNic;
use super::flood::{Flood, FloodKind};
use super::settings::Settings;
use crate::bench::figures::Figure;
use crate::bench::pair::{Pair, Side};
use crate::bench::rounds::SAMPLES;
use crate::bench::run::Figures;

/// Bytes of large and of small messages.
const LARGE: usize = 32 << 10;
const SMALL: usize = 128;
/// Classes of A and B.
const CLASSES: [u8; 2] = [2, 3];
/// Messages of B's class that the receiver takes a second, with control by credit.
const CONTROLLED: u32 = 100_000;
/// How long both run before and while they are counted, and how often, of a whole run and of a quick one.
const BEFORE: Duration = Duration::from_millis(20);
const SLICE: Duration = Duration::from_millis(200);
const SLICES: u32 = 20;
const SLICES_QUICK: u32 = 4;
/// Byte offsets of the words of the bare pages in which the receiving side tells what arrived of each.
const TOLD: [usize; 2] = [5376, 5504];

/// Who sends: nobody, or one side messages of so many bytes.
type Stream = Option<(Side, usize)>;

/// What keeps B from taking all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShareControl {
    /// Nothing: it is of a less urgent class.
    Off,
    /// The receiver's credit for its class.
    Credit,
    /// It is of A's class, and of the same weight.
    Turns,
}

/// What runs at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    words: &'static str,
    streams: [Stream; 2],
    control: ShareControl,
}

impl Sharing {
    const ALL: [Sharing; 7] = [
        Sharing { words: "alone_32768", streams: [Some((Side::Ping, LARGE)), None], control: ShareControl::Off },
        Sharing { words: "alone_128", streams: [None, Some((Side::Ping, SMALL))], control: ShareControl::Off },
        Sharing { words: "same_way", streams: [Some((Side::Ping, LARGE)); 2], control: ShareControl::Off },
        Sharing {
            words: "both_ways",
            streams: [Some((Side::Ping, LARGE)), Some((Side::Pong, LARGE))],
            control: ShareControl::Off,
        },
        Sharing {
            words: "mixed_off",
            streams: [Some((Side::Ping, LARGE)), Some((Side::Ping, SMALL))],
            control: ShareControl::Off,
        },
        Sharing {
            words: "mixed_on",
            streams: [Some((Side::Ping, LARGE)), Some((Side::Ping, SMALL))],
            control: ShareControl::Credit,
        },
        Sharing {
            words: "mixed_turns",
            streams: [Some((Side::Ping, LARGE)), Some((Side::Ping, SMALL))],
            control: ShareControl::Turns,
        },
    ];

    /// Names of all figures.
    pub fn names() -> Vec<String> {
        Sharing::ALL.iter().flat_map(Sharing::figures).flatten().collect()
    }

    /// Names of what each stream gives.
    fn figures(&self) -> [Option<String>; 2] {
        [0, 1].map(|which| self.streams[which].map(|_| format!("vi_share_{}_{}", self.words, ["a", "b"][which])))
    }

    fn system(&self, pair: &Pair, slice: u32) -> NicSystem {
        let name = format!("{}-{}-{slice}", pair.instance, self.words);
        let regulation =
            Regulation { messages_per_s: CONTROLLED, messages_burst: CONTROLLED / 100, ..Regulation::NONE };
        let intake = Priority::new(CLASSES[1]).map(|class| ClassIntake { class, regulation });
        let intakes: Vec<ClassIntake> = intake.into_iter().filter(|_| self.control == ShareControl::Credit).collect();
        let place = || Place { shared_memory: Some("here".to_owned()), intakes: intakes.clone(), ..Place::default() };
        let nodes = (0..4).filter_map(|slot| Some((NicNumber(0).node(slot)?, place()))).collect();
        NicSystem::new([("nic".to_owned(), 4)], Topology { system: name, hash: 1, nodes, ..Topology::single_machine() })
    }

    /// Megabytes a second of each stream, in one slice; pong's count nothing.
    fn take(&self, pair: &Pair, slice: u32) -> anyhow::Result<[f64; 2]> {
        let system = self.system(pair, slice);
        let nic = OpenNic::of(&system, (NicNumber(0), NicNumber(0)), pair.side, 0)?;
        let mut floods = Vec::new();
        for (which, stream) in self.streams.into_iter().enumerate() {
            let Some((sender, bytes)) = stream else { continue };
            let class = if self.control == ShareControl::Turns { CLASSES[0] } else { CLASSES[which] };
            let name = ["a", "b"][which];
            let kind = FloodKind { name, bytes, vis: 1, class, sends: sender == pair.side };
            floods.push((which, Flood::connect(&nic, kind)?));
        }
        let (over, carried) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
        pair.meet()?;
        let seconds = thread::scope(|scope| -> anyhow::Result<f64> {
            let (over, carried) = (&over, &carried);
            let run = |(which, mut flood): (usize, Flood)| {
                scope.spawn(move || flood.run(over, &carried[which]).map(|()| flood))
            };
            let running: Vec<_> = floods.into_iter().map(run).collect();
            thread::sleep(BEFORE);
            let before = carried.each_ref().map(|count| count.load(Ordering::Relaxed));
            let began = Instant::now();
            thread::sleep(SLICE);
            for which in [0, 1] {
                let count = carried[which].load(Ordering::Relaxed) - before[which];
                if self.streams[which].is_some_and(|(sender, _)| sender != pair.side) {
                    pair.pages.word(TOLD[which]).store(count as u32, Ordering::Release);
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            pair.meet()?;
            over.store(true, Ordering::Relaxed);
            // Kept until both sides are over: a NIC that is closed ends connections.
            let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
            for flood in ended {
                flood.map_err(|_| anyhow::anyhow!("a thread of a stream panicked"))??;
            }
            Ok(seconds)
        })?;
        let told = TOLD.map(|at| f64::from(pair.pages.word(at).load(Ordering::Acquire)));
        pair.meet()?;
        Ok([0, 1].map(|which| self.streams[which].map_or(0.0, |(_, bytes)| told[which] * bytes as f64 / 1e6 / seconds)))
    }
}

/// Measures all that is wanted.
///
/// # Errors
/// A connection failed.
pub(super) fn measure(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    let is_wanted = |sharing: &&Sharing| sharing.figures().iter().flatten().any(|name| settings.wants(name));
    let wanted: Vec<&Sharing> = Sharing::ALL.iter().filter(is_wanted).collect();
    let mut taken = vec![[const { Vec::new() }; 2]; wanted.len()];
    for slice in 0..if settings.samples < SAMPLES { SLICES_QUICK } else { SLICES } {
        for (sharing, taken) in wanted.iter().zip(&mut taken) {
            let rates = sharing.take(pair, slice).with_context(|| format!("measuring {}", sharing.words))?;
            taken.iter_mut().zip(rates).for_each(|(samples, rate)| samples.push(rate));
        }
    }
    let mut figures = Figures::default();
    for (sharing, taken) in wanted.iter().zip(taken) {
        for (name, samples) in sharing.figures().into_iter().zip(taken) {
            figures.results.extend(name.map(|name| Figure::of_samples(name, "MB/s", samples)));
        }
    }
    Ok(figures)
}
