//! The one door to atomics: `core`'s in a build, loom's under `--cfg loom`.
//!
//! What you may rely on: nothing else in this crate names an atomic type or a memory order, so a model sees every
//! access that the product makes.
//!
//! How it works: each place whose order matters has a name, a [`Site`]. The functions here turn a site into its order.
//! Under loom, the environment variable `MUSUBI_MUTANT` names a site to weaken; the models must then fail, which shows
//! that they would have caught the mistake.
//!
//! Two patterns need more than acquire and release: a side that publishes and then looks whether the other sleeps,
//! while the other announces sleep and then looks whether something was published (Dekker's pattern). Here both stores
//! and both looks are sequentially consistent. loom does not model that order on accesses, only on fences, so under
//! loom a fence stands between the two.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

/// Defines a constructor that is `const`, except under loom, whose atomics are made at run time.
macro_rules! constructor {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident$(<const $generic:ident: usize>)?($($argument:ident: $type:ty),*) -> $made:ty $body:block
    ) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name$(<const $generic: usize>)?($($argument: $type),*) -> $made $body

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $name$(<const $generic: usize>)?($($argument: $type),*) -> $made $body
    };
}
/// An array of `$length` values of `$value`, which a [`constructor`] may use.
macro_rules! array {
    ($value:expr; $length:expr) => {{
        #[cfg(not(loom))]
        {
            [const { $value }; $length]
        }
        #[cfg(loom)]
        {
            core::array::from_fn(|_| $value)
        }
    }};
}

pub(crate) use {array, constructor};

/// A place where a memory order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Sender writes a slot's turn after its payload and announcement.
    PublishTurn,
    /// Receiver reads a slot's turn before its announcement and payload.
    SeeTurn,
    /// Receiver writes a return entry after it has read the payload.
    PublishReturn,
    /// Sender reads a return entry before it reuses the block.
    SeeReturn,
    /// Sender writes into a block again after it has seen that the block came back.
    PublishReuse,
    /// Observer looks whether a block came back after it has copied it.
    SeeReuse,
    /// Sender writes the link's epoch after the place to start from.
    PublishLink,
    /// Receiver reads the link's epoch before the place to start from.
    SeeLink,
    /// Receiver writes its link's epoch after it has cleared its returns.
    PublishBegin,
    /// Sender reads the receiver's link epoch before the returns.
    SeeBegin,
    /// Either side raises an event and then looks whether the other sleeps.
    RaiseThenLook,
    /// Either side announces sleep and then looks whether there is an event.
    SleepThenLook,
    /// A lock's contender writes its ticket and then looks at the others'.
    TicketThenLook,
    /// A lock's contender reads another's ticket before it enters.
    SeeTicket,
    /// A lock's holder clears its ticket after its last access.
    PublishTicket,
    // smp: calls
    /// A core adds a cause for another and then looks whether that one polls.
    CauseThenLook,
    /// A core stops polling and then looks whether it has a cause.
    PollThenLook,
    /// A core adds a cause after what the cause is about.
    PublishCause,
    /// A core takes its causes before it looks what they are about.
    TakeCauses,
    /// A caller makes a call ready after its function and argument.
    PublishCall,
    /// The called core accepts a call before it reads function and argument.
    AcceptCall,
    /// A caller notes that a call is queued after it made the call ready.
    PublishQueued,
    /// The called core takes the note before it looks at the call.
    TakeQueued,
    /// The called core says that a call is completed after the function's last access.
    PublishCompleted,
    /// A caller sees that a call is completed before it uses the results or the place again.
    SeeCompleted,
    /// A core asks for a flush after the writes that the flush is to make visible.
    AskFlush,
    /// The asked core sees the request before it flushes.
    SeeFlushAsked,
    /// The asked core says that it has flushed.
    PublishFlushed,
    /// A core sees that another has flushed.
    SeeFlushed,
    /// The boot processor asks a core to start after it filled the mailbox.
    PublishMailbox,
    /// A started core sees that it was asked before it reads the mailbox.
    SeeMailbox,
    /// A started core says that it is ready after it has set itself up.
    PublishReady,
    /// The boot processor sees that a core is ready.
    SeeReady,
    /// The boot processor lets a core go after all that the core may rely on.
    PublishGo,
    /// A started core sees that it may go.
    SeeGo,
    // smp: locks
    /// A core sees that its ticket's number is served before it enters.
    SeeServing,
    /// The holder of a ticket lock serves the next number after its last access.
    PublishServing,
    /// A core sees its predecessor's node free before it enters.
    SeeNode,
    /// The holder of a queue lock frees its node after its last access.
    PublishNode,
    /// The order checker notes a fact about locks and then looks for one that contradicts it.
    NoteThenLook,
    /// A reader sees that the writer's phase has ended.
    SeeWriterLeft,
    /// A writer ends its phase after its last access.
    PublishWriterLeft,
    /// A writer sees that the readers before it have left.
    SeeReadersLeft,
    /// A reader leaves after its last access.
    PublishReaderLeft,
    /// A writer sees that the writer before it has left.
    SeeWriterTurn,
    /// A writer lets the next one come after its last access.
    PublishWriterTurn,
    /// The writer of a sequence lock announces a change before it writes the words.
    PublishChange,
    /// The writer of a sequence lock ends a change after it has written the words.
    PublishChanged,
    /// A reader of a sequence lock looks at the count before it reads the words.
    SeeChanged,
    /// A reader of a sequence lock looks at the count again after it has read the words.
    SeeChange,
    /// A semaphore hands a permit over after the giver's last access.
    PublishGrant,
    /// A waiter sees its permit before its first access.
    SeeGrant,
    /// An atomic operation that returns a value orders what stands around it.
    Exchange,
    // mapped
    /// A participant writes its root's epoch after its section's header and its state.
    PublishRoot,
    /// A peer reads a root's epoch before the section's header.
    SeeRoot,
    /// A participant writes its heartbeat's words one after the other.
    PublishBeat,
    /// A peer reads a heartbeat's words in the other order.
    SeeBeat,
    /// A participant takes note of a peer's epoch and then looks whether it is still that; the successor says that its
    /// predecessor is gone and then looks who has taken note of what.
    MeetThenLook,
    /// A participant says that it holds nothing of a peer's predecessors after its last look at their memory.
    PublishReleased,
    /// A participant reads that before it takes the memory.
    SeeReleased,
    // lane
    /// A node writes a record's tag after the record and its block.
    PublishRecord,
    /// A node reads a record's tag before the record and its block.
    SeeRecord,
    /// A node says how far it is after it has read the records.
    PublishTaken,
    /// A node reads how far the other is before it writes records there.
    SeeTaken,
    /// A node returns a block after it has read it.
    PublishReturned,
    /// A node reads a return before it writes the block.
    SeeReturned,
    /// A node publishes a record, its progress or a return, and then looks whether the other sleeps.
    LaneThenLook,
    /// A node announces sleep and then looks whether something was published.
    LaneSleepThenLook,
}

impl Site {
    /// Every site, for the program that weakens one at a time.
    pub const ALL: [Site; 68] = [
        Site::PublishTurn,
        Site::SeeTurn,
        Site::PublishReturn,
        Site::SeeReturn,
        Site::PublishReuse,
        Site::SeeReuse,
        Site::PublishLink,
        Site::SeeLink,
        Site::PublishBegin,
        Site::SeeBegin,
        Site::RaiseThenLook,
        Site::SleepThenLook,
        Site::TicketThenLook,
        Site::SeeTicket,
        Site::PublishTicket,
        // smp: calls
        Site::CauseThenLook,
        Site::PollThenLook,
        Site::PublishCause,
        Site::TakeCauses,
        Site::PublishCall,
        Site::AcceptCall,
        Site::PublishQueued,
        Site::TakeQueued,
        Site::PublishCompleted,
        Site::SeeCompleted,
        Site::AskFlush,
        Site::SeeFlushAsked,
        Site::PublishFlushed,
        Site::SeeFlushed,
        Site::PublishMailbox,
        Site::SeeMailbox,
        Site::PublishReady,
        Site::SeeReady,
        Site::PublishGo,
        Site::SeeGo,
        // smp: locks
        Site::SeeServing,
        Site::PublishServing,
        Site::SeeNode,
        Site::PublishNode,
        Site::NoteThenLook,
        Site::SeeWriterLeft,
        Site::PublishWriterLeft,
        Site::SeeReadersLeft,
        Site::PublishReaderLeft,
        Site::SeeWriterTurn,
        Site::PublishWriterTurn,
        Site::PublishChange,
        Site::PublishChanged,
        Site::SeeChanged,
        Site::SeeChange,
        Site::PublishGrant,
        Site::SeeGrant,
        Site::Exchange,
        // mapped
        Site::PublishRoot,
        Site::SeeRoot,
        Site::PublishBeat,
        Site::SeeBeat,
        Site::MeetThenLook,
        Site::PublishReleased,
        Site::SeeReleased,
        // lane
        Site::PublishRecord,
        Site::SeeRecord,
        Site::PublishTaken,
        Site::SeeTaken,
        Site::PublishReturned,
        Site::SeeReturned,
        Site::LaneThenLook,
        Site::LaneSleepThenLook,
    ];
}

/// Whether this site is the one that a mutant run weakens.
#[cfg(loom)]
fn weakened(site: Site) -> bool {
    use std::sync::OnceLock;
    static MUTANT: OnceLock<Option<std::string::String>> = OnceLock::new();
    let mutant = MUTANT.get_or_init(|| std::env::var("MUSUBI_MUTANT").ok());
    mutant.as_deref() == Some(std::format!("{site:?}").as_str())
}
#[cfg(not(loom))]
#[inline(always)]
const fn weakened(_: Site) -> bool {
    false
}

/// Order of a load at this site.
#[inline(always)]
pub(crate) fn acquire(site: Site) -> Ordering {
    if weakened(site) { Ordering::Relaxed } else { Ordering::Acquire }
}

/// Order of a store at this site.
#[inline(always)]
pub(crate) fn release(site: Site) -> Ordering {
    if weakened(site) { Ordering::Relaxed } else { Ordering::Release }
}

/// Order of a read-modify-write at this site.
#[inline(always)]
pub(crate) fn acquire_release(site: Site) -> Ordering {
    if weakened(site) { Ordering::Relaxed } else { Ordering::AcqRel }
}

/// Keeps later loads behind earlier ones.
#[inline(always)]
pub(crate) fn acquire_fence(site: Site) {
    if !weakened(site) {
        fence(Ordering::Acquire);
    }
}

/// Keeps later stores behind earlier ones.
#[inline(always)]
pub(crate) fn release_fence(site: Site) {
    if !weakened(site) {
        fence(Ordering::Release);
    }
}

/// Stands between stores made before and a following [`load_after_look`].
#[inline(always)]
pub(crate) fn look_fence(site: Site) {
    if !weakened(site) {
        fence(Ordering::SeqCst);
    }
}

/// [`store_then_look`] for a word that another core polls. A store and a fence, not one exchange: where the line has to
/// come over first, this store then leaves the store buffer together with those before it, and the poller cannot take
/// the line away in between.
#[inline(always)]
pub(crate) fn store_polled_then_look(word: &AtomicU32, value: u32, site: Site) {
    word.store(value, Ordering::Release);
    if !weakened(site) {
        fence(Ordering::SeqCst);
    }
}

/// Stores so that a following [`load_after_look`] is not taken before the store is seen by others.
#[inline(always)]
pub(crate) fn store_then_look(word: &AtomicU32, value: u32, site: Site) {
    #[cfg(not(loom))]
    {
        let _ = site;
        word.store(value, Ordering::SeqCst);
    }
    #[cfg(loom)]
    {
        word.store(value, Ordering::Release);
        if !weakened(site) {
            fence(Ordering::SeqCst);
        }
    }
}

/// [`store_then_look`] for a return entry, which publishes under a name of its own.
#[inline(always)]
pub(crate) fn store_return_then_look(word: &AtomicU32, value: u32) {
    #[cfg(not(loom))]
    word.store(value, Ordering::SeqCst);
    #[cfg(loom)]
    {
        word.store(value, release(Site::PublishReturn));
        if !weakened(Site::RaiseThenLook) {
            fence(Ordering::SeqCst);
        }
    }
}

/// Adds one so that a following [`load_after_look`] is not taken before the change is seen by others.
#[inline(always)]
pub(crate) fn advance_then_look(word: &AtomicU32, site: Site) {
    #[cfg(not(loom))]
    {
        let _ = site;
        word.fetch_add(1, Ordering::SeqCst);
    }
    #[cfg(loom)]
    {
        word.fetch_add(1, Ordering::AcqRel);
        if !weakened(site) {
            fence(Ordering::SeqCst);
        }
    }
}

/// Sets bits so that a following [`load_after_look`] is not taken before the change is seen by others; gives what was
/// there before.
#[inline(always)]
pub(crate) fn set_then_look(word: &AtomicU32, bits: u32, site: Site) -> u32 {
    #[cfg(not(loom))]
    {
        let _ = site;
        word.fetch_or(bits, Ordering::SeqCst)
    }
    #[cfg(loom)]
    {
        let before = word.fetch_or(bits, Ordering::AcqRel);
        if !weakened(site) {
            fence(Ordering::SeqCst);
        }
        before
    }
}

/// The look that follows a [`store_then_look`].
#[inline(always)]
pub(crate) fn load_after_look(word: &AtomicU32) -> u32 {
    #[cfg(not(loom))]
    {
        word.load(Ordering::SeqCst)
    }
    #[cfg(loom)]
    {
        word.load(Ordering::Acquire)
    }
}

/// [`load_after_look`] at a site whose acquiring matters by itself.
#[inline(always)]
pub(crate) fn load_after_look_at(word: &AtomicU32, site: Site) -> u32 {
    #[cfg(not(loom))]
    {
        let _ = site;
        word.load(Ordering::SeqCst)
    }
    #[cfg(loom)]
    {
        word.load(acquire(site))
    }
}

/// Adds bits, publishing at one site, so that a following [`load_after_look`] is not taken before the change is seen by
/// others; gives the word before.
#[inline(always)]
pub(crate) fn add_bits_then_look(word: &AtomicU32, bits: u32, publish: Site, look: Site) -> u32 {
    #[cfg(not(loom))]
    {
        let _ = (publish, look);
        word.fetch_or(bits, Ordering::SeqCst)
    }
    #[cfg(loom)]
    {
        let before = word.fetch_or(bits, release(publish));
        if !weakened(look) {
            fence(Ordering::SeqCst);
        }
        before
    }
}
