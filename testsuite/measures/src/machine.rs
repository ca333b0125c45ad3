//! What the list asks of a target, and the state that its tasks share.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use musubi_core::smp::{Handlers, Interprocessor, Locked, Processor, Semaphore, Ticket};

/// Bytes of a message of the ring.
pub const CHUNK_BYTES: usize = 1024;
/// Messages that the ring holds.
pub const CHUNKS: usize = 16;
/// Bytes of one measured copy.
pub const COPY_BYTES: usize = 16 * 1024;

/// A lock of the layer with data behind it.
pub type Guarded<P, T> = Locked<Ticket<P>, T>;

/// Cores with tasks on them, as the list uses them. A task is a function; the tasks of one core take turns and never run
/// at the same time.
pub trait Machine<const N: usize>: Sized + 'static {
    /// The cores; `N` is [`Processor::CORES`].
    type Processor: Processor;
    /// What cross calls find on each core.
    type Handlers: Handlers;

    /// The one static of this machine.
    fn shared() -> &'static Shared<Self::Processor, Self::Handlers, N>;
    /// Goes from the program to what is beneath it (kernel or firmware) and back, for nothing.
    fn trap();
    /// Interrupts this core; returns once the handler has run.
    fn interrupt_self();
    /// Gives the core to its next task; returns at once if there is none.
    fn switch();
    /// What is counted: nanoseconds or instructions, from some moment on.
    fn count() -> u64;
    /// Runs each task on its core until all have returned. Core 0 is the caller's.
    fn run(tasks: &[(usize, fn())]);
}

/// A mailbox of one word, between one sender and one receiver: the semaphore that counts the word also orders it.
#[allow(missing_debug_implementations, reason = "its semaphore has none")]
pub(crate) struct Mailbox<P: Processor> {
    /// Writer: the sender, before it gives `full`. Read by the receiver once it has that.
    pub word: AtomicU32,
    pub full: Semaphore<P, 2>,
}

/// A ring of messages, copied in and out with its lock held.
#[derive(Debug)]
pub struct Ring {
    /// The messages.
    pub chunks: [[u8; CHUNK_BYTES]; CHUNKS],
    /// Messages put in so far.
    pub put: usize,
    /// Messages taken out so far.
    pub taken: usize,
}

/// State of the tasks of one machine.
#[allow(missing_debug_implementations, reason = "its locks have none")]
#[repr(C)]
pub struct Shared<P: Processor, H: Handlers, const N: usize> {
    /// The lock that a scheduler takes to choose the next task, and how often it chose.
    pub(crate) scheduler: Guarded<P, u32>,
    /// Two semaphores.
    pub(crate) semaphores: [Semaphore<P, 2>; 2],
    /// Two mailboxes.
    pub(crate) mailboxes: [Mailbox<P>; 2],
    /// What the lock item guards.
    pub(crate) counter: Guarded<P, u32>,
    /// How often each task repeats. Writer: the caller of an item, before its tasks run.
    pub(crate) repeats: AtomicU32,
    /// Whether the tasks of the item share one core. Writer: the caller of an item, before its tasks run.
    pub(crate) one_core: AtomicBool,
    /// What task 0 counted. Writer: task 0.
    pub(crate) counted: AtomicU64,
    /// Tasks that are done. Writers: each adds itself.
    pub(crate) done: AtomicU32,
    /// Waits that were given up because the other side did not come. Writers: tasks.
    pub(crate) lost: AtomicU32,
    pub(crate) ring: Guarded<P, Ring>,
    /// Source and destination of the copy.
    pub(crate) copy: Guarded<P, [[u8; COPY_BYTES]; 2]>,
    /// The cores' calls. Last, since its size depends on the number of cores: what stands before it has the same
    /// addresses in each build.
    pub interprocessor: Interprocessor<P, H, N>,
}

impl<P: Processor, H: Handlers, const N: usize> Shared<P, H, N> {
    /// State of which nothing has been used.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self {
            interprocessor: Interprocessor::new(),
            scheduler: Locked::new(Ticket::new(), 0),
            semaphores: [const { Semaphore::new(0) }; 2],
            mailboxes: [const { Mailbox { word: AtomicU32::new(0), full: Semaphore::new(0) } }; 2],
            counter: Locked::new(Ticket::new(), 0),
            ring: Locked::new(Ticket::new(), Ring { chunks: [[0; CHUNK_BYTES]; CHUNKS], put: 0, taken: 0 }),
            copy: Locked::new(Ticket::new(), [[0; COPY_BYTES]; 2]),
            repeats: AtomicU32::new(0),
            one_core: AtomicBool::new(true),
            counted: AtomicU64::new(0),
            done: AtomicU32::new(0),
            lost: AtomicU32::new(0),
        }
    }
}
