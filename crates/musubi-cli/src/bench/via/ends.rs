//! The NICs of a measurement and connected VIs of them.
//!
//! What you may rely on: memory and descriptors of a NIC lie in one region that its NIC owns; descriptors are written before
//! anything is measured, and posted again and again.
//!
//! How it works: each process opens two NICs, one that never sleeps while it waits and one that sleeps at once. Both
//! processes connect the same VIs in the same order, so a running number serves as discriminator; ping asks, pong accepts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use musubi_linux::clock::now_ns;
use musubi_mcapi::{Deadline, DeadlineExt};
use musubi_transport::NodeId;
use musubi_transport::runtime::Options;
use musubi_transport::topology::{Network, Place, Topology};
use musubi_vipl::ViError;
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::engine::{
    CONTROL_BYTES, Dequeue, LocalPlace, MemoryAttributes, MemoryHandle, Queue, Reliability, RemotePlace, SEGMENT_BYTES,
    TagHandle, ViAttributes,
};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::{DESCRIPTOR_ALIGNMENT, QueueNumber, ViNumber};
use musubi_vipl::process::{Nic, NicSystem};

use crate::bench::pair::{Pair, Side};
use crate::bench::sockets::How;

/// Longest wait for the other side; far beyond anything measured.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks whether the other side listens.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Bytes of a NIC's region.
const REGION_BYTES: usize = 8 << 20;
/// Of those, bytes that are sent and received by whatever carries many: their content does not matter.
pub(super) const SHARED_BYTES: usize = 4 << 20;
/// Byte offset of the word of the bare pages that tells the first TCP port.
const PORT: usize = 4096;
/// Bytes of a descriptor with an address segment and one data segment.
const DESCRIPTOR_BYTES: usize = CONTROL_BYTES + 2 * SEGMENT_BYTES;
/// Largest message.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// A wait for the other side.
pub(super) fn patience() -> Deadline {
    Deadline::after(PATIENCE)
}

/// What the measured VIs run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Memory,
    Tcp,
}

impl Way {
    pub fn word(self) -> &'static str {
        match self {
            Way::Memory => "shm",
            Way::Tcp => "tcp",
        }
    }

    /// The system of both processes, and our NIC of it. Over TCP, ping finds the ports.
    fn system(self, pair: &Pair, name: &str) -> anyhow::Result<(NicSystem, NicNumber)> {
        let name = format!("{}-{name}", pair.instance);
        if self == Way::Memory {
            return Ok((NicSystem::on_one_machine(&name).trusting(|_| true), NicNumber(0)));
        }
        let mut nodes = BTreeMap::new();
        for nic in [0, 1] {
            let id: NodeId = NicNumber(nic).node(0).context("a NIC within the limits")?;
            let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port(pair)?);
            nodes.insert(id, Place { tcp: Some(address.to_string()), ..Place::default() });
        }
        let network = Network { insecure: true, ..Network::default() };
        let topology = Topology { system: name, hash: 1, nodes, network };
        let nics = [("ping".to_owned(), 1), ("pong".to_owned(), 1)];
        Ok((NicSystem::new(nics, topology), NicNumber(u16::from(pair.side == Side::Pong))))
    }
}

/// A free TCP port that ping found, at both.
fn port(pair: &Pair) -> anyhow::Result<u16> {
    let word = pair.pages.word(PORT);
    if pair.is_ping() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        word.store(u32::from(free), Ordering::Release);
    }
    pair.meet()?;
    let port = word.load(Ordering::Acquire) as u16;
    pair.meet()?;
    Ok(port)
}

/// An opened NIC with its region.
#[derive(Debug)]
pub(super) struct OpenNic {
    pub nic: Nic,
    number: NicNumber,
    peer: NicNumber,
    side: Side,
    pub tag: TagHandle,
    base: u64,
    handle: MemoryHandle,
    /// Where the bytes are that all streams share.
    shared: Address64,
    /// Bytes of the region that are in use.
    taken: AtomicU64,
    /// VIs connected so far.
    connected: AtomicU32,
}

/// What a VI of a measurement is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViKind {
    pub reliability: Reliability,
    pub class: u8,
}

/// Class of what is measured where classes do not matter.
const CLASS: u8 = 3;

impl ViKind {
    /// Delivered in order, or the connection breaks.
    pub const RELIABLE: ViKind = ViKind { reliability: Reliability::Delivery, class: CLASS };
}

/// Where something lies in a region.
pub(super) type Address64 = u64;

impl OpenNic {
    /// Opens one of our own; `name` tells systems of one measurement apart.
    pub fn open(pair: &Pair, way: Way, how: How, name: &str) -> anyhow::Result<Arc<OpenNic>> {
        let (system, number) = way.system(pair, &format!("{name}-{}", how.word()))?;
        let spin_ns = if how == How::Poll { u64::MAX } else { 0 };
        let peer = match (way, pair.side) {
            (Way::Memory, _) | (Way::Tcp, Side::Pong) => NicNumber(0),
            (Way::Tcp, Side::Ping) => NicNumber(1),
        };
        OpenNic::of(&system, (number, peer), pair.side, spin_ns)
    }

    /// Opens a NIC of a system.
    pub fn of(
        system: &NicSystem,
        (number, peer): (NicNumber, NicNumber),
        side: Side,
        spin_ns: u64,
    ) -> anyhow::Result<Arc<OpenNic>> {
        let mut options = Options::default();
        (options.spin_ns, options.is_one_of_several) = (spin_ns, true);
        let nic = Nic::open(system, number, options).context("opening a NIC")?;
        let tag = nic.with(|nic| nic.create_tag())?;
        let attributes = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let (base, handle) = nic.with(|nic| nic.register_own(Lines::zeroed(REGION_BYTES), attributes))?;
        let (taken, connected) = (AtomicU64::new(SHARED_BYTES as u64), AtomicU32::new(0));
        Ok(Arc::new(OpenNic { nic, number, peer, side, tag, base, handle, shared: base, taken, connected }))
    }

    /// Room for so many bytes.
    pub fn room(&self, bytes: usize) -> anyhow::Result<Address64> {
        let bytes = (bytes as u64).next_multiple_of(DESCRIPTOR_ALIGNMENT);
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        ensure!(before + bytes <= REGION_BYTES as u64, "the region of the measurement is too small");
        Ok(self.base + before)
    }

    /// Bytes that may be sent and received by whatever carries many.
    pub fn shared(&self, offset: usize) -> Address64 {
        self.shared + (offset % SHARED_BYTES) as u64
    }

    /// Writes bytes into the region.
    pub fn put(&self, address: Address64, bytes: &[u8]) -> anyhow::Result<()> {
        let place = LocalPlace { address, handle: self.handle, bytes: bytes.len() as u32 };
        ensure!(self.nic.with(|nic| Ok(nic.memory().copy_in(place, bytes)))?, "outside the region");
        Ok(())
    }

    /// Reads bytes of the region.
    pub fn get(&self, address: Address64, bytes: usize) -> anyhow::Result<Vec<u8>> {
        let place = LocalPlace { address, handle: self.handle, bytes: bytes as u32 };
        let mut got = Vec::new();
        ensure!(self.nic.with(|nic| Ok(nic.memory().copy_out(place, &mut got)))?, "outside the region");
        Ok(got)
    }

    /// Writes a descriptor of one place; gives its address.
    pub fn describe(&self, operation: Operation, (from, bytes): (Address64, usize)) -> anyhow::Result<Address64> {
        let at = self.room(DESCRIPTOR_BYTES)?;
        let bytes = bytes as u32;
        let (control, remote) = operation.control();
        let mut words = Vec::with_capacity(DESCRIPTOR_BYTES);
        words.extend([0; 12]);
        words.extend((1 + u16::from(remote.is_some())).to_le_bytes());
        words.extend(control.to_le_bytes());
        words.extend([0; 8]);
        words.extend(bytes.to_le_bytes());
        words.extend([0; 4]);
        if let Some(remote) = remote {
            words.extend(remote.address.to_le_bytes());
            words.extend(remote.handle.0.to_le_bytes());
            words.extend([0; 4]);
        }
        words.extend(from.to_le_bytes());
        words.extend(self.handle.0.to_le_bytes());
        words.extend(bytes.to_le_bytes());
        self.put(at, &words)?;
        Ok(at)
    }

    /// Where the other side may write or read.
    pub fn place(&self, address: Address64) -> RemotePlace {
        RemotePlace { address, handle: self.handle }
    }

    /// Connects the next VI with the other side's; `receives` is called before anything can arrive.
    pub fn connect(
        self: &Arc<OpenNic>,
        kind: ViKind,
        queues: (Option<QueueNumber>, Option<QueueNumber>),
        receives: impl FnOnce(&ViEnd) -> anyhow::Result<()>,
    ) -> anyhow::Result<ViEnd> {
        let number = self.connected.fetch_add(1, Ordering::Relaxed);
        self.connect_as(&number.to_string(), kind, queues, receives)
    }

    /// The same of VIs that go by a name.
    pub fn connect_as(
        self: &Arc<OpenNic>,
        name: &str,
        kind: ViKind,
        queues: (Option<QueueNumber>, Option<QueueNumber>),
        receives: impl FnOnce(&ViEnd) -> anyhow::Result<()>,
    ) -> anyhow::Result<ViEnd> {
        let vi = self.nic.with(|nic| nic.create_vi(self.attributes(kind), queues.0, queues.1))?;
        let end = ViEnd { nic: Arc::clone(self), vi };
        receives(&end)?;
        let (ping, pong) = (format!("ping {name}"), format!("pong {name}"));
        match self.side {
            Side::Ping => self.ask(vi, ping.as_bytes(), pong.as_bytes())?,
            Side::Pong => {
                let (caller, ..) = self.nic.wait_caller(&self.own(pong.as_bytes())?, patience()).context("a caller")?;
                self.nic.accept(caller, vi, patience())?;
            }
        }
        Ok(end)
    }

    /// Makes a VI, connects it with one of the other side, and gives it up again; gives the time until ping's request had its
    /// answer.
    pub fn connect_timed(&self) -> anyhow::Result<f64> {
        const PLACES: (&[u8], &[u8]) = (b"timed ping", b"timed pong");
        let vi = self.nic.with(|nic| nic.create_vi(self.attributes(ViKind::RELIABLE), None, None))?;
        let took = match self.side {
            Side::Ping => self.ask_timed(vi, PLACES)?,
            Side::Pong => {
                let (caller, ..) = self.nic.wait_caller(&self.own(PLACES.1)?, patience()).context("a caller")?;
                self.nic.accept(caller, vi, patience())?;
                0.0
            }
        };
        self.nic.disconnect(vi)?;
        self.nic.with(|nic| nic.destroy_vi(vi))?;
        Ok(took)
    }

    fn ask_timed(&self, vi: ViNumber, (from, to): (&[u8], &[u8])) -> anyhow::Result<f64> {
        let to = Address::new(self.peer, to).context("a discriminator within the limits")?;
        let began = Instant::now();
        loop {
            let (from, before) = (self.own(from)?, now_ns());
            match self.nic.request(vi, from, to.clone(), patience()) {
                Ok(_) => return Ok((now_ns() - before) as f64),
                // The other side does not wait yet.
                Err(ViError::NoMatch | ViError::Timeout) if began.elapsed() < PATIENCE => std::thread::yield_now(),
                Err(error) => return Err(error).context("connecting a VI"),
            }
        }
    }

    fn attributes(&self, kind: ViKind) -> ViAttributes {
        ViAttributes {
            reliability: kind.reliability,
            transfer_bytes_max: TRANSFER_BYTES_MAX,
            class: kind.class,
            tag: self.tag,
            remote_write: true,
            remote_read: kind.reliability.is_reliable(),
            credit: false,
        }
    }

    fn own(&self, discriminator: &[u8]) -> anyhow::Result<Address> {
        Address::new(self.number, discriminator).context("a discriminator within the limits")
    }

    fn ask(&self, vi: ViNumber, from: &[u8], to: &[u8]) -> anyhow::Result<()> {
        let to = Address::new(self.peer, to).context("a discriminator within the limits")?;
        let began = Instant::now();
        loop {
            match self.nic.request(vi, self.own(from)?, to.clone(), patience()) {
                Err(ViError::NoMatch | ViError::Timeout) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(LOOK_EVERY);
                }
                other => return other.map(drop).context("connecting a VI"),
            }
        }
    }
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// A send or a receive.
    Message,
    /// A write into the other side's region.
    Write(RemotePlace),
    /// A read from there.
    Read(RemotePlace),
}

impl Operation {
    fn control(self) -> (u16, Option<RemotePlace>) {
        match self {
            Operation::Message => (0, None),
            Operation::Write(to) => (1, Some(to)),
            Operation::Read(from) => (2, Some(from)),
        }
    }
}

/// Our end of a connection.
#[derive(Clone, Debug)]
pub(super) struct ViEnd {
    pub nic: Arc<OpenNic>,
    pub vi: ViNumber,
}

impl ViEnd {
    /// Posts a descriptor that was written by [`OpenNic::describe`].
    #[inline(always)]
    pub fn post(&self, queue: Queue, descriptor: Address64) -> anyhow::Result<()> {
        Ok(self.nic.nic.post(self.vi, queue, (descriptor, self.nic.handle))?)
    }

    /// Waits for the oldest descriptor of a queue.
    #[inline(always)]
    pub fn wait(&self, queue: Queue, until: Deadline) -> anyhow::Result<Address64> {
        match self.nic.nic.wait(self.vi, queue, until)? {
            Dequeue::Complete { address, is_error: false } => Ok(address),
            other => bail!("a descriptor came back as {other:?}"),
        }
    }

    /// The oldest descriptor of a queue, if it is complete.
    #[inline(always)]
    pub fn poll(&self, queue: Queue) -> anyhow::Result<Option<Address64>> {
        match self.nic.nic.dequeue(self.vi, queue)? {
            Dequeue::Complete { address, is_error: false } => Ok(Some(address)),
            Dequeue::Pending | Dequeue::Empty => Ok(None),
            other => bail!("a descriptor came back as {other:?}"),
        }
    }
}
