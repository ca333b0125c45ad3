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
pub(crate) use core::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

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
}

impl Site {
    /// Every site, for the program that weakens one at a time.
    pub const ALL: [Site; 13] = [
        Site::PublishTurn,
        Site::SeeTurn,
        Site::PublishReturn,
        Site::SeeReturn,
        Site::PublishLink,
        Site::SeeLink,
        Site::PublishBegin,
        Site::SeeBegin,
        Site::RaiseThenLook,
        Site::SleepThenLook,
        Site::TicketThenLook,
        Site::SeeTicket,
        Site::PublishTicket,
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
