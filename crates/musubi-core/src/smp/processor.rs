//! What the multiprocessor layer asks of an architecture.
//!
//! What you may rely on: every function is bounded and never allocates; all are associated functions, so a lock is a
//! plain `static` without a reference to anything.
//!
//! A program for several cores runs on one of them first. [`Processor::alone`], [`Processor::enter`] and
//! [`Processor::leave`] let a port make its locks as cheap then as in a program for one core: by a flag, or by writing
//! the masking instruction of each lock's site over with a branch to the whole lock before the second core starts.

use super::exclusion::Turn;

/// Most cores that one program can drive.
pub const CORES_MAX: usize = 32;
/// Interrupt levels that can nest on one core: 0 is a task, 1 a handler, 2 a handler that interrupted a handler.
pub const LEVELS: usize = 3;

/// The cores of one domain, as the program that runs on them sees them.
///
/// # Safety
/// Locks hand out exclusive references on the word of this: [`Processor::core`] and [`Processor::level`] name no two
/// threads of control at once, a masked core runs no handler that locks, [`Processor::alone`] is true only while no other
/// core runs the program, and a replaced [`Processor::enter`] takes the turn wherever the provided one would.
pub unsafe trait Processor: Sized + 'static {
    /// Cores that this program is built for, 1 to [`CORES_MAX`]. With 1 every lock shrinks to an interrupt mask.
    const CORES: usize;
    /// State of the interrupt mask before [`Processor::mask`].
    type Mask: Copy;

    /// Number of this core, below [`Processor::CORES`].
    fn core() -> usize;
    /// How deep this core is in handlers, below [`LEVELS`].
    fn level() -> usize;
    /// Masks this core's interrupts; gives what was before.
    fn mask() -> Self::Mask;
    /// Puts the mask back as it was. Calls nest like brackets.
    fn restore(before: Self::Mask);
    /// Whether this core's interrupts are masked.
    fn is_masked() -> bool;
    /// Spends a moment of a waiting loop: a hint to the core, or an idling that [`Processor::signal`] and
    /// [`Processor::ring`] end, also if they came just before.
    fn relax();
    /// Makes cores in [`Processor::relax`] look again, where that needs an instruction of its own.
    fn signal();
    /// Serves what other cores ask of this one (cross calls and other causes). Called in waiting loops, also with
    /// interrupts masked, so that two cores that wait for each other go on. What is served here must not wait for a
    /// lock: this core may stand in that very lock's queue. A call that needs one is left for the interrupt, which
    /// comes when the mask opens.
    fn serve();
    /// Raises the inter-processor interrupt at a core. Never waits.
    fn ring(core: usize);
    /// Nanoseconds of a clock that all cores read alike.
    fn now_ns() -> u64;

    /// Whether no other core of the program runs yet. It may change from `true` to `false` once, before the second core
    /// starts and while no lock is held and interrupts are masked; never back.
    #[inline(always)]
    fn alone() -> bool {
        Self::CORES == 1
    }

    /// Masks interrupts and takes the turn, unless alone. Whoever replaces it replaces [`Processor::leave`] as well and
    /// keeps to [`Processor::alone`].
    #[inline(always)]
    fn enter<T: Turn>(turn: &T) -> Self::Mask {
        let before = Self::mask();
        if !Self::alone() {
            turn.take();
        }
        before
    }

    /// Gives the turn back, unless alone, and then the mask.
    ///
    /// # Safety
    /// This core has the turn by [`Processor::enter`], which gave `before`, or alone has entered without it.
    #[inline(always)]
    unsafe fn leave<T: Turn>(turn: &T, before: Self::Mask) {
        if !Self::alone() {
            // SAFETY: `alone` does not change while a lock is held, so `enter` took the turn.
            unsafe { turn.give() };
        }
        Self::restore(before);
    }
}
