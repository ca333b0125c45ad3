//! The queue of cross calls to one core: fixed places, one writer each, no heap.
//!
//! What you may rely on: a call is run once or, once withdrawn, never. It lies in the queue's own memory, so a core that
//! comes to it late touches no dead stack. Queueing, taking and withdrawing are a bounded number of steps on every core,
//! whatever the others do. A sweep serves every caller that had queued when it began.
//!
//! How it works: each caller core has [`SLOTS`] places in the queue of each target, and a word of bits notes which are
//! queued. A place goes *free* → *posted* (caller) → *accepted* → *free* (target); or *posted* → *free* by the caller,
//! which withdraws. Both leave *posted* by compare-and-swap, so exactly one of them succeeds, and both know which. A note
//! may outlive the call that it was made for; then it finds a free place, or a later call that is as good. Calls that may
//! run only in the interrupt have notes of their own, and the phase says which kind was posted.
//!
//! Why not a linked list: a list is taken as a whole, and what a core has taken but not yet run is out of reach of the
//! calls that it serves while one of them waits; and a withdrawn node could not be used again before a core that may be
//! dead has unlinked it. Places with notes have neither trouble, and cost N times [`SLOTS`] places a core.

use crate::smp::CORES_MAX;
use crate::sync::{self, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Site, array, constructor};

/// Cross calls of one core that can be under way at a time: a task's, and those of the handlers and of the served calls
/// that interrupted it.
pub const SLOTS: usize = 4;
const CALLERS_PER_WORD: usize = u32::BITS as usize / SLOTS;
const WORDS: usize = CORES_MAX / CALLERS_PER_WORD;

const FREE: u32 = 0;
const ACCEPTED: u32 = 1;
/// Posted, plus the context.
const POSTED: u32 = 2;

/// Where a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Wherever the core looks, also while it waits for a lock; so it must not itself wait for one.
    Anywhere,
    /// In the interrupt only, which comes when the core has interrupts open; it may wait for locks.
    Interrupt,
}

impl Context {
    const fn posted(self) -> u32 {
        POSTED + self as u32
    }
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is there; or the call has completed.
    Free,
    /// The target has not looked yet.
    Posted,
    /// The target has accepted and runs it, or soon will.
    Accepted,
}

/// A call as the target sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// What is called, with interrupts masked.
    pub function: fn(usize),
    /// Its argument.
    pub argument: usize,
    /// Where it may run.
    pub context: Context,
    /// Low half of the instant when it was posted, in nanoseconds; 0 if nobody observes.
    pub posted_ns: u32,
}

/// One call. Writer of function, argument and time: the caller, while free. Writers of the phase: see the module.
#[derive(Debug)]
struct Place {
    phase: AtomicU32,
    posted_ns: AtomicU32,
    function: AtomicPtr<()>,
    argument: AtomicUsize,
}

/// The calls to one core from `N` cores.
#[derive(Debug)]
pub struct Queue<const N: usize> {
    /// By context: bit `caller * SLOTS + slot`, 32 a word. Writers: the caller sets its bits, the target clears them.
    noted: [[AtomicU32; WORDS]; 2],
    places: [[Place; SLOTS]; N],
}

impl Place {
    constructor! {
        fn new() -> Self {
            let word = AtomicU32::new(FREE);
            Self {
                phase: word,
                posted_ns: AtomicU32::new(0),
                function: AtomicPtr::new(core::ptr::null_mut()),
                argument: AtomicUsize::new(0),
            }
        }
    }

    /// Takes the call if there is one for this context; the load spares a read-modify-write where a note has outlived its
    /// call.
    fn accept(&self, context: Context) -> Option<Task> {
        let posted = context.posted();
        if self.phase.load(Ordering::Relaxed) != posted
            || !self.change(posted, ACCEPTED, sync::acquire(Site::AcceptCall))
        {
            return None;
        }
        let function = self.function.load(Ordering::Relaxed);
        // SAFETY: the place was posted, and `post` stored the address of a function of this type before it said so; it
        // cannot store another before this core has said that the call is completed.
        let function = unsafe { core::mem::transmute::<*mut (), fn(usize)>(function) };
        let argument = self.argument.load(Ordering::Relaxed);
        Some(Task { function, argument, context, posted_ns: self.posted_ns.load(Ordering::Relaxed) })
    }

    fn change(&self, from: u32, to: u32, order: Ordering) -> bool {
        self.phase.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }
}

impl<const N: usize> Queue<N> {
    constructor! {
        /// A queue without calls.
        #[allow(clippy::new_without_default, reason = "queues are part of a static")]
        pub fn new() -> Self {
            Self { noted: array![array![AtomicU32::new(0); WORDS]; 2], places: array![array![Place::new(); SLOTS]; N] }
        }
    }

    /// How far the call in a place has come. To the caller, *free* means that it sees all that the function did.
    #[inline]
    pub fn phase(&self, caller: usize, slot: usize) -> Phase {
        match self.places[caller][slot].phase.load(sync::acquire(Site::SeeCompleted)) {
            FREE => Phase::Free,
            ACCEPTED => Phase::Accepted,
            _ => Phase::Posted,
        }
    }

    /// Queues a call, if the place is free. Only the core `caller` calls this, and only the task or handler that owns the slot.
    pub fn post(&self, caller: usize, slot: usize, task: Task) -> bool {
        if self.phase(caller, slot) != Phase::Free {
            return false;
        }
        let place = &self.places[caller][slot];
        place.function.store(task.function as *mut (), Ordering::Relaxed);
        place.argument.store(task.argument, Ordering::Relaxed);
        place.posted_ns.store(task.posted_ns, Ordering::Relaxed);
        place.phase.store(task.context.posted(), sync::release(Site::PublishCall));
        let (word, bit) = note(caller, slot);
        self.noted[task.context as usize][word].fetch_or(bit, sync::release(Site::PublishQueued));
        true
    }

    /// Takes a posted call back; gives whether it will not be run. Otherwise it has been accepted, or has completed.
    pub fn withdraw(&self, caller: usize, slot: usize) -> bool {
        // No order: what the caller wrote into the place nobody else has read.
        let place = &self.places[caller][slot];
        let withdraw = |context: Context| place.change(context.posted(), FREE, Ordering::Relaxed);
        withdraw(Context::Anywhere) || withdraw(Context::Interrupt)
    }

    /// Whether no call for a context is noted.
    #[inline]
    pub fn is_quiet(&self, context: Context) -> bool {
        self.words(context).iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    /// Runs `serve` for each place noted for a context once, `(caller, slot)`; calls noted meanwhile may be among them. Only
    /// the target calls this. What is not yet served stays in reach of a sweep that `serve` itself makes.
    pub fn sweep(&self, context: Context, mut serve: impl FnMut(usize, usize)) {
        for (index, word) in self.words(context).iter().enumerate() {
            let mut ahead = u32::MAX;
            while let Some(bit) = lowest(word.load(Ordering::Relaxed) & ahead) {
                ahead = (!1u32) << bit;
                let taken = word.fetch_and(!(1 << bit), sync::acquire(Site::TakeQueued));
                if taken & 1 << bit != 0 {
                    let place = bit as usize;
                    serve(index * CALLERS_PER_WORD + place / SLOTS, place % SLOTS);
                }
            }
        }
    }

    /// Accepts the call in a place, unless it was withdrawn. Only the target calls this, and [`Queue::complete`] later.
    pub fn accept(&self, context: Context, caller: usize, slot: usize) -> Option<Task> {
        self.places[caller][slot].accept(context)
    }

    /// Says that an accepted call has completed.
    pub fn complete(&self, caller: usize, slot: usize) {
        self.places[caller][slot].phase.store(FREE, sync::release(Site::PublishCompleted));
    }

    /// Frees what an earlier life of the target had accepted. Only the target calls this, before it serves.
    pub(in crate::smp) fn forget_accepted(&self) {
        for place in self.places.iter().flatten() {
            place.change(ACCEPTED, FREE, Ordering::Release);
        }
    }

    fn words(&self, context: Context) -> &[AtomicU32] {
        &self.noted[context as usize][..N.div_ceil(CALLERS_PER_WORD)]
    }
}

/// Word and bit that note a place.
fn note(caller: usize, slot: usize) -> (usize, u32) {
    (caller / CALLERS_PER_WORD, 1 << (caller % CALLERS_PER_WORD * SLOTS + slot))
}

fn lowest(bits: u32) -> Option<u32> {
    (bits != 0).then(|| bits.trailing_zeros())
}
