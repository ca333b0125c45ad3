//! Locks of a program for several cores while only one of them runs: as cheap as in a program for one core.
//!
//! What you may rely on: until the first other core is asked to start, entering a lock costs the instructions that mask
//! interrupts and nothing else. From then on, and for ever, locks are taken in full.
//!
//! How it works: the instruction that masks at each lock, and the one that puts the mask back, is a *site*. The linker
//! collects the addresses of all sites, each with that of an out-of-line piece of code that does the same and takes or gives
//! the lock. [`make_whole`] writes a jump to it over each site. It runs before any other core may run, with interrupts masked and
//! no lock held, so nobody executes what is being written, and no lock is given that was not taken. (Linux does the same to
//! lock prefixes on x86 and to barriers on 32-bit Arm, in the other direction.)
//!
//! What it does not do: go back when the last other core stops, or when the program begins anew.

use core::sync::atomic::{AtomicBool, Ordering};

use musubi_core::smp::Turn;

use crate::arch;

// Around the records of all sites, by the linker script.
unsafe extern "C" {
    static __musubi_sites: [Site; 0];
    static __musubi_sites_end: [Site; 0];
}

/// Whether another core was asked to start. Written once, by the boot core.
static ENDED: AtomicBool = AtomicBool::new(false);

/// A site: where it is, and where a jump written over it leads. Made by the architecture's `enter` and `leave`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Address of the masking instruction.
    pub at: usize,
    /// Address of the code out of line.
    pub target: usize,
}

/// Whether no other core was asked to start yet.
#[inline(always)]
pub fn alone() -> bool {
    !ENDED.load(Ordering::Relaxed)
}

/// To be called before any lock is used: a program that begins anew in the same memory finds its locks whole already.
pub fn begin() {
    if sites().first().is_some_and(|site| !arch::is_site(site)) {
        ENDED.store(true, Ordering::Relaxed);
    }
}

/// Makes all locks whole; does nothing if they are. To be called by the boot core before it asks another to start.
///
/// Gives `false`, and changes nothing, if interrupts are masked, as a lock might be held then, or if a site cannot be written
/// over.
pub fn make_whole() -> bool {
    if !alone() {
        return true;
    }
    if arch::is_masked() {
        return false;
    }
    let before = arch::mask();
    let written = write_over_sites();
    if written {
        ENDED.store(true, Ordering::SeqCst);
    }
    arch::restore(before);
    written
}

/// Writes a jump over every site. Gives `false`, with nothing written, if one is not what it should be or is too far from its
/// target. No other core runs, and no handler does, as interrupts were open and are masked now.
fn write_over_sites() -> bool {
    let sites = sites();
    if !sites.iter().all(|site| arch::is_site(site) && arch::jump(site).is_some()) {
        return false;
    }
    for site in sites {
        if let Some(jump) = arch::jump(site) {
            arch::write_instruction(site.at, jump);
        }
    }
    arch::flush_instructions();
    true
}

fn sites() -> &'static [Site] {
    let (first, end) = (&raw const __musubi_sites, &raw const __musubi_sites_end);
    let count = (end.addr() - first.addr()) / size_of::<Site>();
    // SAFETY: the linker script puts these symbols around the records, which nothing changes.
    unsafe { core::slice::from_raw_parts(first.cast(), count) }
}

/// What the code out of line of an entering site calls.
pub(crate) extern "C" fn take<T: Turn>(turn: &T) {
    turn.take();
}

/// What the code out of line of a leaving site calls.
///
/// # Safety
/// This core has the turn.
pub(crate) unsafe extern "C" fn give<T: Turn>(turn: &T) {
    // SAFETY: only `leave` comes here, whose caller has the turn.
    unsafe { turn.give() };
}
