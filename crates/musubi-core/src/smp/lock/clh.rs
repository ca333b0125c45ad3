//! Queue lock with a node for each core and interrupt level: for four cores or more, and for the kernel lock.
//!
//! What you may rely on: first come, first served, like [`crate::smp::Ticket`], with the same bound; but each core looks at a
//! line of its own, so a hand-over disturbs one core only, however many wait.
//!
//! How it works: Craig, "Building FIFO and priority-queuing spin locks from atomic swap" (1993), and Landin and
//! Hagersten (1994). Who comes marks its node busy, swaps it in as the queue's tail and looks at the node that was the
//! tail before. Who leaves frees its node and takes its predecessor's for the next time, as that one's owner has left.
//! A node counts its uses, and the tail names node and use: so a waiter cannot take the end of an older use for that of
//! its predecessor, and `try_take` sees that a tail which it found free is still the same use. (A node's use repeats
//! after 2^24; that many sections within the few instructions of one `try_take`, with interrupts masked, do not fit.)
//!
//! The nodes are per level as well, so that a handler which the mask does not hold back does not write over the node of
//! what it interrupted. Such a handler may only try: it would wait for what it interrupted.
//!
//! What it does not do: let a waiter leave the queue. Who must not wait tries.

use core::marker::PhantomData;

use crate::smp::exclusion::{Lock, Turn};
use crate::smp::watch::{Off, Watch};
use crate::smp::{LEVELS, Processor};
use crate::sync::{AtomicU32, Ordering, Site, acquire, array, constructor, release};

/// Nodes that a lock of so many cores needs: one for each core and level, and the one that stands at the queue's head.
pub const fn nodes(cores: usize) -> usize {
    cores * LEVELS + 1
}

/// How many bits of the tail name the node; the others count its uses.
const INDEX_BITS: u32 = 8;
const USES: u32 = (1 << (32 - INDEX_BITS)) - 1;

/// One place of the queue, in a line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
struct Node {
    /// Use, times 2, plus 1 while busy. Written by whoever has the node.
    state: AtomicU32,
    /// For the core and level with this index (not for the core that has the node): the node that it has.
    own: AtomicU32,
    /// Likewise: the node that it takes when it leaves.
    next_own: AtomicU32,
}

impl Node {
    constructor! {
        fn new() -> Self {
            Node { state: AtomicU32::new(0), own: AtomicU32::new(0), next_own: AtomicU32::new(0) }
        }
    }
}

/// A queue lock of the cores `P`; `NODES` is [`nodes`] of their number.
#[repr(C)]
#[derive(Debug)]
pub struct Clh<P, const NODES: usize, W = Off> {
    /// Node and use of who came last. Written by whoever comes, by swap.
    tail: AtomicU32,
    nodes: [Node; NODES],
    watch: W,
    processor: PhantomData<fn() -> P>,
}

impl<P: Processor, const NODES: usize> Clh<P, NODES> {
    constructor! {
        /// A free lock that nobody watches.
        pub fn new() -> Self {
            Clh::watched(Off)
        }
    }
}

#[cfg(not(loom))]
impl<P: Processor, const NODES: usize> Default for Clh<P, NODES> {
    fn default() -> Self {
        Clh::new()
    }
}

impl<P: Processor, const NODES: usize, W> Clh<P, NODES, W> {
    /// The node that stands at the head at first; the others belong to the core and level with their index.
    const HEAD: u32 = {
        assert!(NODES == nodes(P::CORES) && NODES <= 1 << INDEX_BITS, "NODES must be nodes(CORES)");
        NODES as u32 - 1
    };

    constructor! {
        /// A free lock that is watched.
        pub fn watched(watch: W) -> Self {
            Clh { tail: AtomicU32::new(Self::HEAD), nodes: nodes_at_first(), watch, processor: PhantomData }
        }
    }

    /// What watches it.
    pub fn watch(&self) -> &W {
        &self.watch
    }

    /// The bookkeeping of this core and level. Nobody else writes it.
    #[inline(always)]
    fn place(&self) -> &Node {
        // Core and level are below their bounds, so this is always found; the head's node has no owner to mix up.
        self.nodes.get(P::core() * LEVELS + P::level()).unwrap_or(&self.nodes[Self::HEAD as usize])
    }

    #[inline(always)]
    fn node(&self, index: u32) -> &Node {
        // SAFETY: the index comes from an owner's word or from the tail. Both are private to this lock, begin below
        // `NODES`, and change only among each other.
        unsafe { self.nodes.get_unchecked(index as usize) }
    }

    /// Marks this core's node busy for its next use; gives the tail that names it.
    #[inline(always)]
    fn prepare(&self, own: u32) -> u32 {
        let node = self.node(own);
        let used = ((node.state.load(Ordering::Relaxed) >> 1) + 1) & USES;
        node.state.store(used << 1 | 1, Ordering::Relaxed);
        used << INDEX_BITS | own
    }

    /// Whether the use that a tail names has ended.
    #[inline(always)]
    fn is_free(&self, tail: u32) -> bool {
        let state = self.node(index_in(tail)).state.load(acquire(Site::SeeNode));
        state == (tail >> INDEX_BITS) << 1
    }
}

constructor! {
    /// Free nodes, each with the core and level of its index.
    fn nodes_at_first<const NODES: usize>() -> [Node; NODES] {
        let mut nodes = array![Node::new(); NODES];
        let mut index = 0;
        while index < NODES {
            nodes[index].own = AtomicU32::new(index as u32);
            index += 1;
        }
        nodes
    }
}

#[inline(always)]
fn index_in(tail: u32) -> u32 {
    tail & ((1 << INDEX_BITS) - 1)
}

impl<P: Processor, const NODES: usize, W: Watch> Clh<P, NODES, W> {
    /// Waits until the use that a tail names has ended.
    #[cold]
    #[inline(never)]
    #[cfg_attr(lock_section, unsafe(link_section = ".text.lock"))]
    fn wait(&self, before: u32) {
        while !self.is_free(before) {
            P::relax();
            P::serve();
        }
    }
}

// SAFETY: the tail is swapped, so each waiter has a predecessor of its own, and enters only after that one's use has
// ended; the store that ends it releases what the look acquires.
unsafe impl<P: Processor, const NODES: usize, W: Watch> Turn for Clh<P, NODES, W> {
    #[inline]
    fn take(&self) {
        let asked = self.watch.asks::<P>(false);
        let place = self.place();
        let mine = self.prepare(place.own.load(Ordering::Relaxed));
        // Relaxed: a use's number is enough to tell its state from older ones.
        let before = self.tail.swap(mine, Ordering::Relaxed);
        let waits = !self.is_free(before);
        if waits {
            self.wait(before);
        }
        place.next_own.store(index_in(before), Ordering::Relaxed);
        self.watch.takes::<P>(asked, u32::from(waits));
    }

    #[inline]
    fn try_take(&self) -> bool {
        let asked = self.watch.asks::<P>(true);
        let before = self.tail.load(Ordering::Relaxed);
        if !self.is_free(before) {
            return false;
        }
        let place = self.place();
        let own = place.own.load(Ordering::Relaxed);
        let unused = self.node(own).state.load(Ordering::Relaxed);
        let mine = self.prepare(own);
        let entered = self.tail.compare_exchange(before, mine, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if entered {
            place.next_own.store(index_in(before), Ordering::Relaxed);
            self.watch.takes::<P>(asked, 0);
        } else {
            self.node(own).state.store(unused, Ordering::Relaxed);
        }
        entered
    }

    #[inline]
    unsafe fn give(&self) {
        self.watch.gives::<P>();
        let place = self.place();
        let state = &self.node(place.own.load(Ordering::Relaxed)).state;
        let free = state.load(Ordering::Relaxed) & !1;
        place.own.store(place.next_own.load(Ordering::Relaxed), Ordering::Relaxed);
        state.store(free, release(Site::PublishNode));
        P::signal();
    }
}

// SAFETY: nothing is replaced.
unsafe impl<P: Processor, const NODES: usize, W: Watch> Lock for Clh<P, NODES, W> {
    type Processor = P;
    const WATCHED: bool = W::ON;
}
