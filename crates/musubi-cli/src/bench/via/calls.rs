//! What each call costs the thread that makes it: post, done, connect, register.
//!
//! What you may rely on: a sample of a post or a done is the mean of [`BATCH`] calls that all do what the figure names, of
//! messages of 4 bytes; posting a send hands it to the other process, whose sleep is looked at; done takes a message from
//! the link, if it is the receive queue's. Nothing else is timed: the other side's part, and what makes the next batch
//! possible, lie before and after.
//!
//! What it does not do: count what the kernel does to pages that are registered for the first time, as the C library has them
//! looked at; here the NIC owns them.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{bail, ensure};
use musubi_linux::clock::now_ns;
use musubi_mcapi::Deadline;
use musubi_vipl::engine::{MemoryAttributes, Queue};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::QueueNumber;

use super::ends::{Address64, OpenNic, Operation, ViEnd, ViKind, patience};
use crate::bench::pair::Pair;
use crate::bench::rounds::Item;

/// Calls of one sample.
const BATCH: usize = 16;
/// Bytes of a message.
const BYTES: usize = 4;
/// Receives of each side: a batch, and the other side's word that it is through.
const RECEIVES: usize = BATCH + 1;
/// Entries of the completion queue.
const ENTRIES: u32 = 64;

/// A call, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// `VipPostSend`.
    PostSend,
    /// `VipSendDone` of a send that has completed.
    SendDone,
    /// `VipPostRecv`.
    PostReceive,
    /// `VipRecvDone` of a message that has arrived.
    ReceiveDone,
    /// `VipCQDone` and `VipRecvDone` of one.
    QueueDone,
    /// `VipRecvDone` when there is nothing.
    NothingDone,
    /// `VipConnectRequest` at a server that waits, until both are connected.
    Connect,
    /// `VipRegisterMem` of so many bytes.
    Register(usize),
}

impl Call {
    pub const ALL: [Call; 11] = [
        Call::PostSend,
        Call::SendDone,
        Call::PostReceive,
        Call::ReceiveDone,
        Call::QueueDone,
        Call::NothingDone,
        Call::Connect,
        Call::Register(4 << 10),
        Call::Register(64 << 10),
        Call::Register(1 << 20),
        Call::Register(16 << 20),
    ];

    /// Names of all figures.
    pub fn names() -> Vec<String> {
        Call::ALL.map(Call::name).to_vec()
    }

    /// Name of the figure.
    pub fn name(self) -> String {
        match self {
            Call::PostSend => "vi_call_post_send_4".into(),
            Call::SendDone => "vi_call_send_done_4".into(),
            Call::PostReceive => "vi_call_post_receive_4".into(),
            Call::ReceiveDone => "vi_call_receive_done_4".into(),
            Call::QueueDone => "vi_call_queue_and_receive_done_4".into(),
            Call::NothingDone => "vi_call_nothing_done".into(),
            Call::Connect => "vi_call_connect".into(),
            Call::Register(bytes) => format!("vi_call_register_{bytes}"),
        }
    }

    /// Whether batches of messages go from us to the other side, or from there.
    fn sender_is_ping(self) -> bool {
        matches!(self, Call::PostSend | Call::SendDone)
    }
}

/// What one call costs.
pub(super) struct CallCost {
    call: Call,
    nic: Arc<OpenNic>,
    end: ViEnd,
    queue: Option<QueueNumber>,
    sends: Vec<Address64>,
    word: Address64,
}

impl CallCost {
    pub fn connect(call: Call, nic: &Arc<OpenNic>) -> anyhow::Result<CallCost> {
        let queue = match call {
            Call::QueueDone => Some(nic.nic.with(|nic| nic.create_queue(ENTRIES))?),
            _ => None,
        };
        let place = nic.room(BYTES)?;
        let describe = |bytes| nic.describe(Operation::Message, (place, bytes));
        let sends = (0..BATCH).map(|_| describe(BYTES)).collect::<anyhow::Result<_>>()?;
        let word = describe(0)?;
        let end = nic.connect(ViKind::RELIABLE, (None, queue), |end| {
            (0..RECEIVES).try_for_each(|_| end.post(Queue::Receive, describe(BYTES)?))
        })?;
        Ok(CallCost { call, nic: Arc::clone(nic), end, queue, sends, word })
    }

    /// Does something so many times; gives the time of one.
    fn time(times: usize, mut by: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<f64> {
        let before = now_ns();
        for turn in 0..times {
            by(turn)?;
        }
        Ok((now_ns() - before) as f64 / times as f64)
    }

    fn send_batch(&self) -> anyhow::Result<f64> {
        CallCost::time(BATCH, |turn| self.end.post(Queue::Send, self.sends[turn]))
    }

    /// Takes so many back, at once or with patience.
    fn take_sends(&self, count: usize) -> anyhow::Result<()> {
        (0..count).try_for_each(|_| self.end.wait(Queue::Send, patience()).map(drop))
    }

    fn take_receives(&self, count: usize) -> anyhow::Result<Vec<Address64>> {
        (0..count)
            .map(|_| {
                if let Some(queue) = self.queue {
                    self.nic.nic.wait_completion(queue, patience())?;
                }
                self.end.wait(Queue::Receive, patience())
            })
            .collect()
    }

    fn post_receives(&self, used: &[Address64]) -> anyhow::Result<()> {
        used.iter().try_for_each(|used| self.end.post(Queue::Receive, *used))
    }

    /// Says that we are through, or hears it.
    fn say(&self) -> anyhow::Result<()> {
        self.end.post(Queue::Send, self.word)?;
        self.take_sends(1)
    }

    fn hear(&self) -> anyhow::Result<()> {
        self.post_receives(&self.take_receives(1)?)
    }

    /// A batch from ping, which is timed.
    fn ping_sends(&self) -> anyhow::Result<f64> {
        let posts = self.send_batch()?;
        // The other side has all of it, so all have completed.
        self.hear()?;
        let done = CallCost::time(BATCH, |_| taken(self.end.poll(Queue::Send)?))?;
        Ok(if self.call == Call::PostSend { posts } else { done })
    }

    /// A batch from pong, of which ping times the taking.
    fn ping_receives(&self, pair: &Pair) -> anyhow::Result<f64> {
        pair.meet()?;
        let mut used = Vec::with_capacity(BATCH);
        let done = CallCost::time(BATCH, |_| {
            if let Some(queue) = self.queue {
                self.nic.nic.wait_completion(queue, Deadline::Poll)?;
            }
            used.push(self.end.poll(Queue::Receive)?.ok_or_else(|| anyhow::anyhow!("nothing came"))?);
            Ok(())
        })?;
        let posts = CallCost::time(BATCH, |turn| self.end.post(Queue::Receive, used[turn]))?;
        self.say()?;
        Ok(if self.call == Call::PostReceive { posts } else { done })
    }

    fn register(&self, bytes: usize) -> anyhow::Result<f64> {
        let attributes = MemoryAttributes { tag: self.nic.tag, remote_write: true, remote_read: true };
        let lines = Lines::zeroed(bytes);
        let before = now_ns();
        let (address, handle) = self.nic.nic.with(|nic| nic.register_own(lines, attributes))?;
        let took = (now_ns() - before) as f64;
        self.nic.nic.with(|nic| nic.deregister(address, handle))?;
        Ok(took)
    }

    /// The part of the side that measures.
    fn measure(&self, pair: &Pair) -> anyhow::Result<f64> {
        match self.call {
            Call::PostSend | Call::SendDone => self.ping_sends(),
            Call::PostReceive | Call::ReceiveDone | Call::QueueDone => self.ping_receives(pair),
            Call::NothingDone => CallCost::time(BATCH, |_| match black_box(self.end.poll(Queue::Receive)?) {
                None => Ok(()),
                Some(_) => bail!("something came"),
            }),
            Call::Connect => self.nic.connect_timed(),
            Call::Register(bytes) => self.register(bytes),
        }
    }

    /// The part of the other side.
    fn answer(&self, pair: &Pair) -> anyhow::Result<()> {
        match self.call {
            Call::NothingDone | Call::Register(_) => Ok(()),
            Call::Connect => self.nic.connect_timed().map(drop),
            call if call.sender_is_ping() => {
                let used = self.take_receives(BATCH)?;
                self.post_receives(&used)?;
                self.say()
            }
            _ => {
                self.send_batch()?;
                pair.meet()?;
                self.take_sends(BATCH)?;
                self.hear()
            }
        }
    }
}

fn taken(done: Option<Address64>) -> anyhow::Result<()> {
    ensure!(done.is_some(), "a send has not completed");
    Ok(())
}

impl Item for CallCost {
    fn name(&self) -> String {
        self.call.name()
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        match self.call {
            Call::Connect | Call::Register(_) => latency_samples / 100,
            _ => latency_samples / 10,
        }
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        for _ in 0..count {
            if pair.is_ping() {
                into.push(self.measure(pair)?);
            } else {
                self.answer(pair)?;
            }
        }
        Ok(())
    }
}
