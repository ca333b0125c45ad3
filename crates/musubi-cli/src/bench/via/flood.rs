//! Messages without end, as fast as they go.
//!
//! What you may rely on: a flood never waits but for receives, of which there are many, and for room.
//!
//! How it works: the receiving side says now and then, by a message without bytes, how many receives it has posted again. One
//! thread a side serves all VIs of a flood by one completion queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::bail;
use musubi_mcapi::{Deadline, DeadlineExt};
use musubi_vipl::ViError;
use musubi_vipl::engine::{Queue, Reliability};
use musubi_vipl::nic::{QueueNumber, ViNumber};

use super::ends::{Address64, OpenNic, Operation, ViEnd, ViKind};

/// Receives of a flood's VI, after how many the sender is told, and sends posted at a time.
const RECEIVES: usize = 1024;
const TOLD_EVERY: usize = 256;
const SENDS: usize = 64;
/// Longest wait of a load for anything, before it looks whether it is over.
pub(super) const LOAD_SLICE: Duration = Duration::from_millis(100);

/// Our end of a flood's VI.
struct FloodVi {
    end: ViEnd,
    descriptors: Vec<Address64>,
    next: usize,
    posted: usize,
    /// Receives of the other side that may be used; what came since it was told.
    credit: usize,
    since: usize,
    /// Whether this side floods.
    sends: bool,
}

/// Messages without end over some VIs, one way.
pub(super) struct Flood {
    nic: Arc<OpenNic>,
    queue: QueueNumber,
    streams: Vec<FloodVi>,
    sends: bool,
}

/// What a flood is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct FloodKind {
    /// Tells floods of one NIC apart.
    pub name: &'static str,
    /// Bytes of a message.
    pub bytes: usize,
    /// Over how many VIs, and of which class.
    pub vis: usize,
    pub class: u8,
    /// Whether this side sends.
    pub sends: bool,
}

impl Flood {
    /// Connects its VIs.
    ///
    /// # Errors
    /// A VI could not be made or connected.
    pub fn connect(nic: &Arc<OpenNic>, kind: FloodKind) -> anyhow::Result<Flood> {
        let FloodKind { name, bytes, vis, class, sends } = kind;
        let queue = nic.nic.with(|nic| nic.create_queue((vis * (RECEIVES + SENDS)) as u32))?;
        let (out, into, receives) = if sends { (bytes, 0, 64) } else { (0, bytes, RECEIVES) };
        let buffer = nic.shared(0);
        let kind = ViKind { reliability: Reliability::Delivery, class };
        let stream = |turn: usize| {
            let descriptors = (0..SENDS).map(|_| nic.describe(Operation::Message, (buffer, out)));
            let descriptors = descriptors.collect::<anyhow::Result<_>>()?;
            // Who floods waits for room as well as for receives.
            let sends_to = sends.then_some(queue);
            let end = nic.connect_as(&format!("{name} {turn}"), kind, (sends_to, Some(queue)), |end| {
                let mut all = 0..receives;
                all.try_for_each(|_| end.post(Queue::Receive, nic.describe(Operation::Message, (buffer, into))?))
            })?;
            Ok(FloodVi { end, descriptors, next: 0, posted: 0, credit: RECEIVES, since: 0, sends })
        };
        let streams = (0..vis).map(stream).collect::<anyhow::Result<_>>()?;
        Ok(Flood { nic: Arc::clone(nic), queue, streams, sends })
    }

    /// Sends until it is over, or counts what comes.
    ///
    /// # Errors
    /// A call failed.
    pub fn run(&mut self, over: &AtomicBool, carried: &AtomicU64) -> anyhow::Result<()> {
        if self.sends { self.push(over) } else { self.pull(over, carried) }
    }

    fn push(&mut self, over: &AtomicBool) -> anyhow::Result<()> {
        while !over.load(Ordering::Relaxed) {
            let mut went = 0;
            for stream in &mut self.streams {
                went += stream.push()?;
            }
            if went == 0 {
                self.next()?;
            }
            // What has completed meanwhile goes out again at once.
            while self.take()? {}
        }
        Ok(())
    }

    fn pull(&mut self, over: &AtomicBool, carried: &AtomicU64) -> anyhow::Result<()> {
        while !over.load(Ordering::Relaxed) {
            if self.next()? {
                carried.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Takes the next completion of any VI, for which it waits a while; whether it was a message.
    fn next(&mut self) -> anyhow::Result<bool> {
        match self.nic.nic.wait_completion(self.queue, Deadline::after(LOAD_SLICE)) {
            Ok(completed) => self.completed(completed),
            Err(ViError::Timeout) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the next completion, if there is one.
    fn take(&mut self) -> anyhow::Result<bool> {
        match self.nic.nic.wait_completion(self.queue, Deadline::Poll) {
            Ok(completed) => self.completed(completed).map(|_| true),
            Err(ViError::Timeout) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn completed(&mut self, (vi, queue): (ViNumber, Queue)) -> anyhow::Result<bool> {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.end.vi == vi) else { bail!("a VI of nobody") };
        if queue == Queue::Send {
            stream.posted -= usize::from(stream.end.poll(Queue::Send)?.is_some());
            return Ok(false);
        }
        match stream.end.poll(Queue::Receive)? {
            Some(used) => stream.took(used).map(|()| true),
            None => Ok(false),
        }
    }
}

impl FloodVi {
    fn reap(&mut self) -> anyhow::Result<()> {
        while self.end.poll(Queue::Send)?.is_some() {
            self.posted -= 1;
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.end.post(Queue::Send, self.descriptors[self.next])?;
        self.next = (self.next + 1) % SENDS;
        self.posted += 1;
        Ok(())
    }

    /// Sends as many as may be; gives how many.
    fn push(&mut self) -> anyhow::Result<usize> {
        let count = self.credit.min(SENDS - self.posted);
        for _ in 0..count {
            self.send()?;
        }
        self.credit -= count;
        Ok(count)
    }

    /// A message came: of the flood, or that there are receives again.
    fn took(&mut self, used: Address64) -> anyhow::Result<()> {
        self.end.post(Queue::Receive, used)?;
        self.credit += TOLD_EVERY;
        self.since += 1;
        if self.since == TOLD_EVERY && !self.sends {
            self.since = 0;
            self.reap()?;
            if self.posted < SENDS {
                self.send()?;
            }
        }
        Ok(())
    }
}
