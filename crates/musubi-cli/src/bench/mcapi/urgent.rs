//! An urgent message each millisecond, while a bulk channel saturates the same TCP link.
//!
//! What you may rely on: a latency is from before the call that sends until after the call that receives, in two
//! processes on one clock. The load is a thread of its own at either end, on the same nodes, so on the same link. All of
//! them have real-time priority where the system permits it, the urgent ones, also without load, a higher one.
//!
//! How it works: three conditions, one after the other, each with nodes of its own: without load, with load, and with
//! load on a link that knows no priorities. The receiver sends its samples home in messages when it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use musubi_linux::clock::now_ns;
use musubi_linux::realtime;
use musubi_mcapi::{Deadline, DeadlineExt, Error, PacketReceiver, PacketSender, attribute};

use super::ends::{Ends, Ours, patience};
use super::names::URGENT_NAMES;
use super::rates::End;
use super::settings::Settings;
use crate::bench::figures::Figure;
use crate::bench::pair::Pair;
use crate::bench::run::Figures;
use crate::bench::sockets::How;
use crate::output;

/// Bytes of an urgent message, its time between two, and its priority.
const URGENT_BYTES: usize = 64;
const URGENT_EVERY_NS: u64 = 1_000_000;
const URGENT: u32 = 0;
/// `SCHED_FIFO` priorities of the threads that send and receive urgent messages, and of those that carry the load.
const URGENT_FIFO: u8 = 10;
const BULK_FIFO: u8 = 1;
/// Bytes of a bulk packet, and its priority.
const BULK_BYTES: usize = 256 << 10;
const BULK: u32 = 3;
/// Samples in a message home.
const HOME_SAMPLES: usize = 8000;
/// Longest wait of the load for anything, before it looks whether it is over.
const LOAD_SLICE: Duration = Duration::from_millis(100);

/// Measures all conditions.
///
/// # Errors
/// A link failed.
pub(super) fn measure(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let wanted = |name: &str, bulk: Option<&str>| settings.wants(name) || bulk.is_some_and(|bulk| settings.wants(bulk));
    for (name, bulk, priorities) in [
        (URGENT_NAMES[0], None, true),
        (URGENT_NAMES[1], Some(URGENT_NAMES[3]), true),
        (URGENT_NAMES[2], Some(URGENT_NAMES[4]), false),
    ] {
        // Without load is the limit of the others.
        if bulk.is_some() && !wanted(name, bulk) {
            continue;
        }
        if pair.is_ping() {
            output::note(&format!("{}: {name}, {} s", settings.title(), settings.seconds));
        }
        let (samples, rate) =
            condition(pair, settings, bulk.is_some(), priorities).with_context(|| format!("measuring {name}"))?;
        figures.results.push(Figure::of_samples(name.to_owned(), "ns", samples));
        figures.results.extend(bulk.map(|bulk| Figure::of_samples(bulk.to_owned(), "MB/s", vec![rate])));
    }
    Ok(figures)
}

/// Samples, and the load's rate; both mean something on ping only.
fn condition(pair: &Pair, settings: &Settings, load: bool, priorities: bool) -> anyhow::Result<(Vec<f64>, f64)> {
    let ends = Ends::over_tcp(pair, settings, priorities)?;
    let urgent = ends.pair_up(How::Block)?;
    let channel = ends.pair_up(How::Block)?;
    channel.own.set(attribute::PRIORITY, BULK)?;
    pair.meet()?;
    let end = End::open(pair.side, channel)?;
    pair.meet()?;
    let over = AtomicBool::new(false);
    let count = u64::from(settings.seconds) * 1_000_000_000 / URGENT_EVERY_NS;
    let sends = pair.is_ping();
    thread::scope(|scope| {
        let began_ns = now_ns();
        let bulk = load.then(|| scope.spawn(|| carry(end, &over)));
        let samples = scope.spawn(|| {
            take_priority(URGENT_FIFO);
            if sends { send(&urgent, count) } else { receive(&urgent, count) }
        });
        let samples = samples.join();
        let seconds = (now_ns() - began_ns) as f64 / 1e9;
        over.store(true, Ordering::Relaxed);
        let (Ok(samples), Ok(carried)) = (samples, bulk.map_or(Ok(Ok(0)), |bulk| bulk.join())) else {
            anyhow::bail!("a thread of the measurement panicked");
        };
        let (samples, carried) = (samples?, carried?);
        pair.meet()?;
        Ok((samples, carried as f64 / 1e6 / seconds))
    })
}

/// What is urgent runs before what is not, and both before other programs, as they would in a product. Else the load's thread,
/// which is told by the same frames, may take the processor from a thread that has its message in hand, for as long as the
/// scheduler thinks fair; or another program from a thread that has the node's lock.
fn take_priority(priority: u8) {
    if let Err(error) = realtime::set_fifo_priority(priority) {
        output::note(&format!("note: no real-time priority {priority} for a thread beside bulk: {error}"));
    }
}

/// Bytes that went through until it was over.
fn carry(end: End, over: &AtomicBool) -> anyhow::Result<u64> {
    take_priority(BULK_FIFO);
    match end {
        End::Sending(tx) => push(&tx, over),
        End::Receiving(rx) => pull(&rx, over),
    }
}

fn push(tx: &PacketSender, over: &AtomicBool) -> anyhow::Result<u64> {
    let packet = vec![7; BULK_BYTES];
    let mut carried = 0;
    while !over.load(Ordering::Relaxed) {
        match tx.send(&packet, Deadline::after(LOAD_SLICE)) {
            Ok(()) => carried += BULK_BYTES as u64,
            Err(Error::Timeout) => {}
            // The other side was over first.
            Err(Error::ChannelInvalid) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(carried)
}

fn pull(rx: &PacketReceiver, over: &AtomicBool) -> anyhow::Result<u64> {
    let mut carried = 0;
    while !over.load(Ordering::Relaxed) {
        match rx.receive(Deadline::after(LOAD_SLICE)) {
            Ok(packet) => carried += packet.len() as u64,
            Err(Error::Timeout) => {}
            // The other side was over first.
            Err(Error::ChannelInvalid) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(carried)
}

/// Sends all and takes the samples that come home.
fn send(ends: &Ours, count: u64) -> anyhow::Result<Vec<f64>> {
    let mut message = [0; URGENT_BYTES];
    let first_ns = now_ns() + URGENT_EVERY_NS;
    for turn in 0..count {
        let due_ns = first_ns + turn * URGENT_EVERY_NS;
        thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        message[..8].copy_from_slice(&now_ns().to_le_bytes());
        ends.own.send(&ends.peer, URGENT, &message, patience())?;
    }
    let mut samples = Vec::with_capacity(count as usize);
    while samples.len() < count as usize {
        let home = ends.own.receive(patience())?.to_vec();
        samples.extend(home.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default())));
    }
    Ok(samples)
}

/// Receives all and sends the samples home.
fn receive(ends: &Ours, count: u64) -> anyhow::Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let message = ends.own.receive(patience())?;
        let now = now_ns();
        let mut sent = [0; 8];
        ensure!(message.len() == URGENT_BYTES && message.copy_to(&mut sent) == 8, "a message arrived as another");
        samples.push(now.saturating_sub(u64::from_le_bytes(sent)) as f64);
    }
    for part in samples.chunks(HOME_SAMPLES) {
        let home: Vec<u8> = part.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        ends.own.send(&ends.peer, URGENT, &home, patience())?;
    }
    Ok(samples)
}
