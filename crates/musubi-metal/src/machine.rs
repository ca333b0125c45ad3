//! The cores of an image as [`Processor`], the type parameter of its locks and cross calls.

use core::marker::PhantomData;

use musubi_core::smp::{Processor, Turn};

use crate::arch;
use crate::board::Board;
use crate::core_data::{core, this_core};
use crate::lock_patching;

/// An image: its board and how many cores it is built for. [`crate::image!`] implements it.
pub trait Program: Sized + 'static {
    /// The board it runs on.
    type Board: Board;
    /// Cores that it is built for; fewer may be there. With 1 every lock shrinks to an interrupt mask.
    const CORES: usize;

    /// Serves what other cores ask of this one; called in waiting loops.
    fn serve();
    /// Another core has rung; called by the interrupt.
    fn rung() {
        Self::serve();
    }
    /// What a core does for ever once it has started and nothing else was asked of it.
    fn idle() -> !;
    /// First address behind the stack of a secondary core, 1 to `CORES - 1`.
    fn stack_top(core: usize) -> usize;
}

/// The cores that the program `P` runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine<P>(PhantomData<P>);

// SAFETY: a core's data is its own and tells number and level; the mask holds back every handler of the image. That
// the core is alone ends before another core runs; `enter` and `leave` take and give the turn from then on (module
// `lock_patching`).
unsafe impl<P: Program> Processor for Machine<P> {
    const CORES: usize = P::CORES;
    type Mask = arch::Mask;

    #[inline(always)]
    fn core() -> usize {
        if P::CORES == 1 { 0 } else { this_core().number() }
    }

    #[inline(always)]
    fn level() -> usize {
        this_core().level()
    }

    #[inline(always)]
    fn alone() -> bool {
        P::CORES == 1 || lock_patching::alone()
    }

    #[inline(always)]
    fn enter<T: Turn>(turn: &T) -> Self::Mask {
        if P::CORES == 1 { arch::mask() } else { arch::enter(turn) }
    }

    #[inline(always)]
    unsafe fn leave<T: Turn>(turn: &T, before: Self::Mask) {
        if P::CORES == 1 {
            arch::restore(before);
        } else {
            // SAFETY: the caller's promise.
            unsafe { arch::leave(turn, before) };
        }
    }

    #[inline(always)]
    fn mask() -> Self::Mask {
        arch::mask()
    }

    #[inline(always)]
    fn restore(before: Self::Mask) {
        arch::restore(before);
    }

    #[inline(always)]
    fn is_masked() -> bool {
        arch::is_masked()
    }

    #[inline(always)]
    fn relax() {
        arch::relax();
    }

    #[inline(always)]
    fn signal() {
        arch::signal();
    }

    fn serve() {
        P::serve();
    }

    fn ring(number: usize) {
        P::Board::ring(core(number).hardware());
    }

    fn now_ns() -> u64 {
        P::Board::now_ns()
    }
}
