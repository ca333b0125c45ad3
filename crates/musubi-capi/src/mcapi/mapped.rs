//! The node of a program whose memory the other nodes map too: of an RTOS's image, or of a process beside one.
//!
//! What you may rely on: include/mcapi.h as far as it does not speak of processes, descriptions and the environment. A
//! program is one node, that of its place in the table; every task belongs to it, and any may end it and begin it anew. Calls
//! that wait meanwhile hear that it has ended.
//!
//! How it works: the program gives its [`Installation`] once, by [`install`], before anybody calls. Each beginning makes a new
//! incarnation in the same memory.
//!
//! What it does not do: catch panics, print, answer peers while no task calls.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::fmt::{self, Arguments};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use musubi_core::lane::Region;
use musubi_core::mapped::{self as core_mapped, Host, Latch};
use musubi_core::port::Coherence;
use musubi_mcapi::NodeId;
use musubi_mcapi::engine::Engine;
use musubi_mcapi::limits::DOMAIN_MAX;
pub(crate) use musubi_transport::links::NoBlock as Block;
use musubi_transport::mapped::{self, Deadline, MappedLinks, Options, Table};
use musubi_transport::running::Running as _;

use super::node::ThreadNode;
use super::packets_in_hand::Left;
use super::status::Status;

/// The running node.
pub(crate) type Node = mapped::Node<NodeEngine, Carrier>;
/// Its links.
pub(crate) type NodeLinks = MappedLinks<Carrier>;
/// The engine of a node.
pub(crate) type NodeEngine = Engine<Block>;
/// A map whose keys are addresses.
pub(crate) type Addresses<V> = BTreeMap<usize, V>;

/// What the node asks of its host: all of a [`Host`] that it needs.
pub trait Carries: Sync {
    /// [`Host::now_ns`].
    fn now_ns(&self) -> u64;
    /// [`Host::ring`].
    fn ring(&self, place: u16);
    /// [`Host::can_be_woken`].
    fn can_be_woken(&self) -> bool;
    /// [`Host::rest`].
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool);
    /// [`Host::rouse`].
    fn rouse(&self);
}

impl<H: Host + Sync> Carries for H {
    fn now_ns(&self) -> u64 {
        Host::now_ns(self)
    }

    fn ring(&self, place: u16) {
        Host::ring(self, place);
    }

    fn can_be_woken(&self) -> bool {
        Host::can_be_woken(self)
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        Host::rest(self, until_ns, still_needed);
    }

    fn rouse(&self) {
        Host::rouse(self);
    }
}

/// Where the program's node is.
pub struct Installation {
    /// The nodes that share the memory.
    pub table: Table<'static>,
    /// The memory, with the place of this program's.
    pub region: Region<'static>,
    /// What carries it.
    pub host: &'static dyn Carries,
    /// How it waits.
    pub options: Options,
}

impl fmt::Debug for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Installation").field("table", &self.table).field("region", &self.region).finish_non_exhaustive()
    }
}

struct Installed {
    place: Installation,
    /// The node, from its beginning to its end.
    current: Lock<Option<Arc<ThreadNode>>>,
    left: Lock<Left>,
}

/// What was installed. Writer: [`install`], once.
static INSTALLED: AtomicPtr<Installed> = AtomicPtr::new(null_mut());

/// Tells the C interface where its node is. Called once by the program, before any of its functions.
///
/// # Panics
/// If it is called again.
pub fn install(place: Installation) {
    let (current, left) = (Lock::new(None), Lock::new(Left::new()));
    let installed = Box::into_raw(Box::new(Installed { place, current, left }));
    let before = INSTALLED.compare_exchange(null_mut(), installed, Ordering::Release, Ordering::Relaxed);
    assert!(before.is_ok(), "a place is installed once");
}

fn installed() -> Option<&'static Installed> {
    // SAFETY: null, or what `install` leaked, which nobody frees or has mutably.
    unsafe { INSTALLED.load(Ordering::Acquire).as_ref() }
}

/// The host of what was installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier;

impl Carrier {
    fn host(self) -> &'static dyn Carries {
        installed().expect("nothing has a carrier before a place is installed").place.host
    }
}

/// The memory is coherent or uncached, as [`Region`] asks.
impl Coherence for Carrier {}

impl Host for Carrier {
    fn now_ns(&self) -> u64 {
        self.host().now_ns()
    }

    fn has_common_clock(&self) -> bool {
        false
    }

    fn ring(&self, place: u16) {
        self.host().ring(place);
    }

    fn can_be_woken(&self) -> bool {
        self.host().can_be_woken()
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        self.host().rest(until_ns, still_needed);
    }

    fn rouse(&self) {
        self.host().rouse();
    }
}

/// A lock that tasks hold for a few steps.
#[derive(Debug)]
pub(crate) struct Lock<T>(Latch<T>);

/// What its holder has.
pub(crate) type Guard<'l, T> = core_mapped::Guard<'l, T>;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock(Latch::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock(&Carrier)
    }
}

/// What is kept of a node's life: nothing, as it is [`Installed::current`] while it lives.
#[derive(Debug)]
pub(crate) struct Life;

/// `mcapi_timeout_t`, milliseconds, as a deadline.
pub(crate) fn deadline(node: &Node, timeout_ms: u32) -> Deadline {
    match timeout_ms {
        0 => Deadline::Poll,
        u32::MAX => Deadline::Forever,
        ms => node.within(u64::from(ms) * 1_000_000),
    }
}

/// Calls `by` with the node.
pub(crate) fn bound<R>(by: impl FnOnce(&ThreadNode) -> Result<R, Status>) -> Result<R, Status> {
    let current = installed().and_then(|installed| installed.current.lock().clone());
    by(&*current.ok_or(Status::NodeNotInit)?)
}

/// Starts the node; gives what `told` makes of it.
pub(crate) fn initialize<R>(domain: u32, node: u32, told: impl FnOnce(&Node) -> R) -> Result<R, Status> {
    if domain > DOMAIN_MAX {
        return Err(Status::DomainInvalid);
    }
    let id = NodeId::new(domain, node).ok_or(Status::NodeInvalid)?;
    let Installed { place, current, .. } = installed().ok_or(Status::NodeInitFailed)?;
    if place.table.nodes.get(usize::from(place.region.place())) != Some(&id) {
        return Err(Status::NodeInvalid);
    }
    let mut current = current.lock();
    if current.is_some() {
        return Err(Status::NodeInitialized);
    }
    // SAFETY: the former node, if there was one, was finished by `finalize`, and touches its row no more; this one begins
    // and is noted under the latch, so there is no other.
    let region = unsafe { place.region.again() };
    let node = Node::start(place.table, region, &Carrier, place.options)?;
    let result = told(&node);
    *current = Some(Arc::new(ThreadNode::new(node, Life)));
    Ok(result)
}

/// Ends the node.
pub(crate) fn finalize() -> Result<(), Status> {
    let installed = installed().ok_or(Status::NodeNotInit)?;
    let mut current = installed.current.lock();
    let bound = current.take().ok_or(Status::NodeNotInit)?;
    // What the program has not released stays readable for it.
    bound.held().leave(bound.id());
    Ok(bound.node.finish()?)
}

/// Does something with what the ended node's program had not given back.
pub(crate) fn with_left<R>(by: impl FnOnce(&mut Left) -> R) -> R {
    by(&mut installed().expect("nobody has packets before a place is installed").left.lock())
}

/// Calls `by`. A panic in it is the image's, or ends the process.
pub(crate) fn guarded<T>(by: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    by()
}

/// Calls `by`: tasks are not cancelled.
pub(crate) fn uncancelled<R>(by: impl FnOnce() -> R) -> R {
    by()
}

/// How many domains there are, and how many nodes in the node's own.
pub(crate) fn counts(node: &Node) -> Option<(u32, u32)> {
    let nodes = installed()?.place.table.nodes;
    let domains: BTreeSet<u32> = nodes.iter().map(|id| id.domain()).collect();
    let here = nodes.iter().filter(|id| id.domain() == node.id().domain()).count();
    Some((domains.len() as u32, here as u32))
}

/// How long a link may be cut before what is under way counts as lost, milliseconds: memory is not cut.
pub(crate) fn cut_ms_max(_: &Node) -> u32 {
    0
}

/// Nothing is reported: there is no standard error.
pub(crate) fn set_debug_level(_: i32) {}

/// Shows nothing, as there is nowhere to show it.
pub(crate) fn show(_: Arguments<'_>) {}
