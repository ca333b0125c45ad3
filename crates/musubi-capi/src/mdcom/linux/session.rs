//! The process's attachment: one at a time, from `mdcom_init` to `mdcom_term`.
//!
//! What you may rely on: a call finds the attachment up, or says why not, by reading one word. Whoever waits while the
//! attachment ends is woken and told.
//!
//! How it works: channels stand in static tables ([`super::fifo`], [`super::smem`]) and are opened by their first use,
//! which takes the attachment's lock; afterwards a call needs its channel's lock only. Ending takes the attachment away
//! first, so that nothing can be opened any more, then closes every channel, then leaves the system. Each attachment has
//! a number, so that a thread that slept through an end and a new beginning knows that its channel is another.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use musubi_core::channel::Attachment;
use musubi_core::plan::{Plan, Role};
use musubi_linux::clock::now_ns;
use musubi_linux::{Deadline, DeadlineExt, Memory, Options, Participant};

use super::failure::Failure;
use crate::mdcom::contract::abi::{FOREVER, LOCK_MEMORY, PREFAULT, Wanted};
use crate::mdcom::contract::status::Status;

/// Longest wait for a free slot of the domain, in nanoseconds.
const SLOT_NS_MAX: u64 = 5_000_000_000;
/// How often a Remote that waits for the Master looks whether it was told to stop, in nanoseconds.
const MASTER_SLICE_NS: u64 = 50_000_000;

mod phase {
    pub(super) const NEVER: u32 = 0;
    pub(super) const BEGINNING: u32 = 1;
    pub(super) const UP: u32 = 2;
    pub(super) const ENDING: u32 = 3;
    pub(super) const ENDED: u32 = 4;
    pub(super) const FORKED: u32 = 5;
}

static PHASE: AtomicU32 = AtomicU32::new(phase::NEVER);
static GIVE_UP: AtomicBool = AtomicBool::new(false);
static ATTACHED: Mutex<Option<Attached>> = Mutex::new(None);

/// The attachment.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) participant: Participant,
    /// Different for each attachment of this process; never 0.
    pub(crate) serial: u64,
}

/// A lock whose data stay usable if a thread panicked with it: every change here is a single step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether calls may go on.
#[inline]
pub(crate) fn check() -> Result<(), Failure> {
    if PHASE.load(Ordering::SeqCst) == phase::UP { Ok(()) } else { Err(absent()) }
}

/// Why there is no attachment.
#[cold]
pub(crate) fn absent() -> Failure {
    match PHASE.load(Ordering::SeqCst) {
        phase::NEVER | phase::BEGINNING => Status::NotInit,
        phase::FORKED => Status::Forked,
        _ => Status::Terminated,
    }
    .into()
}

/// Calls `by` with the attachment.
pub(crate) fn with<R>(by: impl FnOnce(&Attached) -> Result<R, Failure>) -> Result<R, Failure> {
    check()?;
    match &*lock(&ATTACHED) {
        Some(attached) => by(attached),
        None => Err(absent()),
    }
}

/// How many participants of a domain are attached.
pub(crate) fn attached(domain: u32) -> Result<u16, Failure> {
    with(|Attached { participant, .. }| {
        let domain =
            u16::try_from(domain).ok().filter(|domain| usize::from(*domain) < participant.plan().domains.len());
        let domain = domain.ok_or_else(|| Failure::with_text(Status::Domain, "no domain has this number"))?;
        Ok(Attachment::attached(participant, domain))
    })
}

/// What the plan says.
pub(crate) fn with_plan<R>(by: impl FnOnce(&Plan<'_>) -> R) -> Result<R, Failure> {
    with(|attached| Ok(by(attached.participant.plan())))
}

/// `mdcom_init`.
pub(crate) fn init(wanted: Wanted<'_>) -> Result<(), Failure> {
    begin()?;
    let attached = attach(wanted);
    match attached {
        Ok(attached) => {
            *lock(&ATTACHED) = Some(attached);
            PHASE.store(phase::UP, Ordering::SeqCst);
            Ok(())
        }
        Err(failure) => {
            PHASE.store(phase::NEVER, Ordering::SeqCst);
            Err(failure)
        }
    }
}

fn begin() -> Result<(), Failure> {
    notice_forks();
    let moved = PHASE.try_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
        matches!(now, phase::NEVER | phase::ENDED).then_some(phase::BEGINNING)
    });
    match moved {
        Ok(_) => {
            GIVE_UP.store(false, Ordering::SeqCst);
            Ok(())
        }
        Err(phase::FORKED) => Err(Status::Forked.into()),
        Err(_) => Err(Status::Already.into()),
    }
}

/// In a child made by `fork`, other threads' locks may be taken for ever, so nothing is done there any more.
fn notice_forks() {
    extern "C" fn in_child() {
        PHASE.store(phase::FORKED, Ordering::SeqCst);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler lives as long as the program and stores one word.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

fn attach(wanted: Wanted<'_>) -> Result<Attached, Failure> {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let plan = find_plan(wanted)?;
    let deadline = deadline(wanted.timeout_ns);
    let participant = Participant::attach(Options {
        slot: wanted.slot,
        instance: wanted.instance.map(str::to_owned),
        deadline: deadline.within_ns(SLOT_NS_MAX),
        memory: memory(wanted.flags),
        ..Options::new(plan, wanted.domain)
    })?;
    let role = plan.domains.get(usize::from(participant.domain())).map(|domain| domain.role);
    if role == Some(Role::Remote) && wanted.timeout_ns != 0 {
        wait_for_master(&participant, deadline)?;
    }
    Ok(Attached { participant, serial: SERIAL.fetch_add(1, Ordering::Relaxed) })
}

fn find_plan(wanted: Wanted<'_>) -> Result<&'static Plan<'static>, Failure> {
    let explicit = wanted.description.map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
    let path = musubi_config::find(explicit)?;
    let description = musubi_config::load_by(crate::reading::read, &path)?;
    if !description.has_domains() {
        let text = format!("{} describes nodes, but no domains to attach to", path.display());
        return Err(Failure::with_text(Status::Plan, text));
    }
    if wanted.plan_hash != 0 && wanted.plan_hash != description.hash() {
        let text = format!(
            "the program was built with the header of plan {:#018x}, {} is plan {:#018x}: generate the header again",
            wanted.plan_hash,
            path.display(),
            description.hash()
        );
        return Err(Failure::with_text(Status::Plan, text));
    }
    Ok(kept(description))
}

/// The plan for the rest of the process; the same memory for the same plan, however often it is loaded.
fn kept(description: musubi_config::Description) -> &'static Plan<'static> {
    static PLANS: Mutex<Vec<&'static Plan<'static>>> = Mutex::new(Vec::new());
    let mut plans = lock(&PLANS);
    let known = description.with_plan(|plan| plans.iter().copied().find(|known| *known == plan));
    known.unwrap_or_else(|| {
        let plan = description.leak();
        plans.push(plan);
        plan
    })
}

fn wait_for_master(participant: &Participant, deadline: Deadline) -> Result<(), Failure> {
    loop {
        match participant.wait_for_master(deadline.within_ns(MASTER_SLICE_NS)) {
            Ok(_) => return Ok(()),
            Err(_) if GIVE_UP.load(Ordering::SeqCst) => return Err(Status::Terminated.into()),
            Err(musubi_linux::Error::TimedOut(_)) if !deadline.passed() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The instant that ends a timeout which begins now.
pub(crate) fn deadline(timeout_ns: u64) -> Deadline {
    match timeout_ns {
        0 => Deadline::Poll,
        FOREVER => Deadline::Forever,
        ns => Deadline::At(now_ns().saturating_add(ns)),
    }
}

fn memory(flags: u32) -> Memory {
    match flags {
        0 => Memory::Lazy,
        PREFAULT => Memory::Prefault,
        bits => {
            debug_assert!(bits & LOCK_MEMORY != 0, "other bits are refused");
            Memory::Lock
        }
    }
}

/// Ends the attachment; `close` closes the channels, when none can be opened any more.
pub(crate) fn end(close: impl FnOnce()) -> Result<(), Failure> {
    match PHASE.compare_exchange(phase::UP, phase::ENDING, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {}
        Err(phase::BEGINNING) => {
            GIVE_UP.store(true, Ordering::SeqCst);
            return Ok(());
        }
        Err(_) => return Err(absent()),
    }
    let attached = lock(&ATTACHED).take();
    close();
    drop(attached);
    PHASE.store(phase::ENDED, Ordering::SeqCst);
    Ok(())
}
