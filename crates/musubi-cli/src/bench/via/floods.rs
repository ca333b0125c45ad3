//! The response time of an urgent exchange, alone and beside loads (the seed's table 4 and figure 4).
//!
//! What you may rely on: each millisecond ping sends 10 KiB on a VI of the most urgent class and pong answers with 4 bytes;
//! a sample is the time until ping has the answer. Both threads sleep while they wait and have real-time priority, if that may
//! be had; the loads' threads have none. A flood's messages arrive at the NIC at which the exchange arrives. The conditions
//! take turns, a slice each, so that all see the same machine.
//!
//! How it works: with control, the flood's class has a rule at both NICs; without, no class has one; *fixed* is what is usual: one
//! rule for all that arrives, so exchange and flood are of one class then.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use musubi_linux::clock::now_ns;
use musubi_linux::realtime;
use musubi_transport::Priority;
use musubi_transport::topology::{ClassRule, Place, Topology};
use musubi_transport::{FilterRule, Regulation};
use musubi_vipl::address::NicNumber;
use musubi_vipl::engine::{Queue, Reliability};
use musubi_vipl::process::NicSystem;

use super::ends::{Address64, OpenNic, Operation, ViEnd, ViKind, patience};
use super::flood::{Flood, FloodKind, LOAD_SLICE};
use super::settings::Settings;
use crate::bench::figures::Figure;
use crate::bench::pair::Pair;
use crate::bench::rounds::SAMPLES;
use crate::bench::run::Figures;
use crate::output;

/// Bytes of the request, of the answer, and time between two requests.
const REQUEST_BYTES: usize = 10 << 10;
const ANSWER_BYTES: usize = 4;
const EVERY_NS: u64 = 1_000_000;
/// `SCHED_FIFO` priority of the exchange's threads.
const EXCHANGE_FIFO: u8 = 10;
/// Classes of the exchange and of the flood.
const URGENT: u8 = 0;
const FLOOD: u8 = 3;
/// What holds for the flood's class, with control: it wakes at most each so many nanoseconds.
const INTERVAL_NS: u64 = 250_000;
/// What holds for all that arrives, fixed.
const FIXED_NS: u64 = 125_000;
/// Slices of a condition.
const SLICES: u32 = 5;
/// Bytes of the memory load: more than the caches have.
const MEMORY_BYTES: usize = 64 << 20;
/// Bytes of the network load that are under way at a time.
const NETWORK_BYTES: usize = 32 << 10;
/// Byte offset of the words of the bare pages in which pong tells: messages of the flood, wake-ups.
const TOLD: [usize; 2] = [5120, 5248];

/// What runs beside the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Nothing,
    Memory,
    Network,
    /// Messages of so many bytes over so many VIs.
    Flood(usize, usize),
}

/// What is done against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Off,
    On,
    Fixed,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    load: Load,
    control: Control,
}

impl Condition {
    /// All of them; those without load come first.
    pub fn all() -> Vec<Condition> {
        let floods = [(32_768, 1), (1024, 1), (64, 1), (64, 4), (64, 16)].map(|(bytes, vis)| Load::Flood(bytes, vis));
        let loads = [&[Load::Nothing, Load::Memory, Load::Network][..], &floods].concat();
        let controls = [Control::On, Control::Off, Control::Fixed];
        loads.into_iter().flat_map(|load| controls.map(|control| Condition { load, control })).collect()
    }

    /// Name of the exchange's figure.
    pub fn name(self) -> String {
        format!("vi_exchange_{}", self.words())
    }

    fn words(self) -> String {
        let load = match self.load {
            Load::Nothing => "alone".to_owned(),
            Load::Memory => "memory".to_owned(),
            Load::Network => "network".to_owned(),
            Load::Flood(bytes, vis) => format!("flood_{bytes}x{vis}"),
        };
        let control = match self.control {
            Control::Off => "off",
            Control::On => "on",
            Control::Fixed => "fixed",
        };
        format!("{load}_{control}")
    }

    fn rules(self) -> Vec<ClassRule> {
        let interval_ns = match self.control {
            Control::Off => return Vec::new(),
            Control::On => INTERVAL_NS,
            Control::Fixed => FIXED_NS,
        };
        let Ok(class) = Priority::new(FLOOD).ok_or(()) else { return Vec::new() };
        let filter = FilterRule { every: 1, level: 0, interval_ns_min: interval_ns, latest_ns: interval_ns };
        let regulation = Regulation::NONE;
        vec![ClassRule { class, regulation, filter }]
    }

    fn system(self, pair: &Pair, turn: u32) -> NicSystem {
        let name = format!("{}-{}-{turn}", pair.instance, self.words());
        let place = || Place { shared_memory: Some("here".to_owned()), rules: self.rules(), ..Place::default() };
        let nodes = (0..4).filter_map(|slot| Some((NicNumber(0).node(slot)?, place()))).collect();
        NicSystem::new([("nic".to_owned(), 4)], Topology { system: name, hash: 1, nodes, ..Topology::single_machine() })
    }

    /// Class of the exchange.
    fn class(self) -> u8 {
        if self.control == Control::Fixed { FLOOD } else { URGENT }
    }
}

/// What a condition has come to.
#[derive(Debug, Default)]
struct Taken {
    samples: Vec<f64>,
    messages: u64,
    wakes: u64,
    seconds: f64,
}

/// Measures all conditions.
///
/// # Errors
/// A connection failed.
pub(super) fn measure(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    let conditions: Vec<Condition> =
        Condition::all().into_iter().filter(|condition| settings.wants(&condition.name())).collect();
    let mut taken: Vec<Taken> = conditions.iter().map(|_| Taken::default()).collect();
    for slice in 0..SLICES {
        for (condition, taken) in conditions.iter().zip(&mut taken) {
            if pair.is_ping() {
                output::note(&format!(
                    "{}: slice {} of {SLICES}, {}",
                    settings.group.title(),
                    slice + 1,
                    condition.name()
                ));
            }
            let rounds = exchanges(settings.samples).div_ceil(SLICES);
            let more =
                take(pair, *condition, slice, rounds).with_context(|| format!("measuring {}", condition.name()))?;
            taken.samples.extend(more.samples);
            taken.messages += more.messages;
            taken.wakes += more.wakes;
            taken.seconds += more.seconds;
        }
    }
    let mut figures = Figures::default();
    for (condition, taken) in conditions.iter().zip(taken) {
        let per_s = |count: u64| vec![count as f64 / taken.seconds.max(1e-9)];
        let (messages, wakes) = (per_s(taken.messages), per_s(taken.wakes));
        figures.results.push(Figure::of_samples(condition.name(), "ns", taken.samples));
        let words = condition.words();
        figures.results.push(Figure::of_samples(format!("vi_wakes_{words}"), "1/s", wakes));
        if matches!(condition.load, Load::Flood(..)) {
            figures.results.push(Figure::of_samples(format!("vi_rate_{words}"), "msg/s", messages));
        }
    }
    Ok(figures)
}

/// Rounds of the exchange: as many as the seed's, or a tenth of them.
const fn exchanges(samples: u32) -> u32 {
    if samples < SAMPLES { SAMPLES / 10 } else { SAMPLES }
}

/// One slice of a condition.
fn take(pair: &Pair, condition: Condition, slice: u32, rounds: u32) -> anyhow::Result<Taken> {
    let system = condition.system(pair, slice);
    let open = || OpenNic::of(&system, (NicNumber(0), NicNumber(0)), pair.side, 0);
    let nic = open()?;
    let kind = ViKind { reliability: Reliability::Delivery, class: condition.class() };
    let exchange = Exchange::connect(pair, &nic, kind)?;
    // Kept until both sides are over: a NIC that is closed ends connections.
    let mut flood = match condition.load {
        Load::Flood(bytes, vis) => {
            let nic = if pair.is_ping() { open()? } else { Arc::clone(&nic) };
            Some(Flood::connect(&nic, FloodKind { name: "flood", bytes, vis, class: FLOOD, sends: pair.is_ping() })?)
        }
        _ => None,
    };
    let (pings, over) = (pair.is_ping(), AtomicBool::new(false));
    let carried = AtomicU64::new(0);
    pair.meet()?;
    thread::scope(|scope| {
        let load = scope.spawn(|| match (condition.load, &mut flood) {
            (_, Some(flood)) => flood.run(&over, &carried),
            (Load::Memory, _) => copy_memory(&over),
            (Load::Network, _) => use_network(&over),
            _ => Ok(()),
        });
        // The flood is under way before the exchange begins.
        thread::sleep(LOAD_SLICE);
        let (before, woken) = (carried.load(Ordering::Relaxed), nic.nic.node().times_woken()?);
        let began_ns = now_ns();
        let samples = scope.spawn(|| {
            take_priority();
            exchange.run(pings, rounds)
        });
        let samples = samples.join().map_err(|_| anyhow::anyhow!("a thread of the exchange panicked"))??;
        let seconds = (now_ns() - began_ns) as f64 / 1e9;
        tell(pair, [carried.load(Ordering::Relaxed) - before, nic.nic.node().times_woken()? - woken]);
        pair.meet()?;
        let [messages, wakes] = told(pair);
        over.store(true, Ordering::Relaxed);
        load.join().map_err(|_| anyhow::anyhow!("a thread of the load panicked"))??;
        pair.meet()?;
        Ok(Taken { samples, messages, wakes, seconds })
    })
}

/// Pong says its counts.
fn tell(pair: &Pair, counts: [u64; 2]) {
    if !pair.is_ping() {
        for (at, count) in TOLD.into_iter().zip(counts) {
            pair.pages.word(at).store(count as u32, Ordering::Release);
        }
    }
}

fn told(pair: &Pair) -> [u64; 2] {
    TOLD.map(|at| u64::from(pair.pages.word(at).load(Ordering::Acquire)))
}

fn take_priority() {
    if let Err(error) = realtime::set_fifo_priority(EXCHANGE_FIFO) {
        output::note(&format!("note: no real-time priority {EXCHANGE_FIFO} for a thread of the exchange: {error}"));
    }
}

/// The urgent exchange.
struct Exchange {
    end: ViEnd,
    send: Address64,
}

impl Exchange {
    fn connect(pair: &Pair, nic: &Arc<OpenNic>, kind: ViKind) -> anyhow::Result<Exchange> {
        let (out, into) = if pair.is_ping() { (REQUEST_BYTES, ANSWER_BYTES) } else { (ANSWER_BYTES, REQUEST_BYTES) };
        let send = nic.describe(Operation::Message, (nic.room(out)?, out))?;
        let end = nic.connect(kind, (None, None), |end| {
            (0..2)
                .try_for_each(|_| end.post(Queue::Receive, nic.describe(Operation::Message, (nic.room(into)?, into))?))
        })?;
        Ok(Exchange { end, send })
    }

    fn run(&self, pings: bool, rounds: u32) -> anyhow::Result<Vec<f64>> {
        let mut samples = Vec::with_capacity(rounds as usize);
        let first_ns = now_ns() + EVERY_NS;
        for turn in 0..u64::from(rounds) {
            if pings {
                let due_ns = first_ns + turn * EVERY_NS;
                thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
                let before = now_ns();
                self.end.post(Queue::Send, self.send)?;
                let used = self.end.wait(Queue::Receive, patience())?;
                samples.push((now_ns() - before) as f64);
                self.end.post(Queue::Receive, used)?;
            } else {
                let used = self.end.wait(Queue::Receive, patience())?;
                self.end.post(Queue::Send, self.send)?;
                self.end.post(Queue::Receive, used)?;
            }
            self.end.wait(Queue::Send, patience())?;
        }
        Ok(samples)
    }
}

/// Sends itself bytes over the network's loopback, again and again.
fn use_network(over: &AtomicBool) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut out = TcpStream::connect(listener.local_addr()?)?;
    let (mut into, _) = listener.accept()?;
    let mut bytes = vec![7; NETWORK_BYTES];
    while !over.load(Ordering::Relaxed) {
        out.write_all(&bytes)?;
        into.read_exact(&mut bytes)?;
    }
    Ok(())
}

/// Copies more than the caches have, again and again.
fn copy_memory(over: &AtomicBool) -> anyhow::Result<()> {
    let (from, mut to) = (vec![7_u8; MEMORY_BYTES], vec![0_u8; MEMORY_BYTES]);
    while !over.load(Ordering::Relaxed) {
        std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
    }
    Ok(())
}
