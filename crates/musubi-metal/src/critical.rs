//! The kernel lock as the critical section of crates that use `critical-section` (Embassy, `portable-atomic`, heaps).
//!
//! What you may rely on: sections exclude each other on all cores of the program, nest, are first come, first served,
//! and serve cross calls while they wait. For one core, and alone, a section is a masked stretch.
//!
//! How it works: a program has one [`Kernel`] lock as a static and names it in [`crate::critical_section!`]. What has to
//! be remembered between entering and leaving travels in the crate's restore state, 64 bits: the mask, and in the top
//! bit, which no mask uses, whether the lock was not taken.

pub use critical_section as interface;
use musubi_core::smp::{Kernel, Processor, Watch};

/// The restore state's bit that says that the lock was not taken.
const NESTED: u64 = 1 << 63;

/// A state of the interrupt mask that fits into the restore state.
pub trait MaskBits: Copy {
    /// The state as bits, the top one zero.
    fn to_bits(self) -> u64;
    /// The state that gave these bits.
    fn from_bits(bits: u64) -> Self;
}

impl MaskBits for usize {
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as usize
    }
}

impl MaskBits for u32 {
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.into()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }
}

/// Begins a section; gives what [`leave`] needs.
#[inline(always)]
pub fn enter<P, const NODES: usize, W: Watch>(kernel: &Kernel<P, NODES, W>) -> u64
where
    P: Processor<Mask: MaskBits>,
{
    let (before, nested) = kernel.enter();
    before.to_bits() | if nested { NESTED } else { 0 }
}

/// Ends a section.
///
/// # Safety
/// `state` is from the last [`enter`] of this core that has not been left.
#[inline(always)]
pub unsafe fn leave<P, const NODES: usize, W: Watch>(kernel: &Kernel<P, NODES, W>, state: u64)
where
    P: Processor<Mask: MaskBits>,
{
    let before = P::Mask::from_bits(state & !NESTED);
    // SAFETY: the caller's promise.
    unsafe { kernel.leave(before, state & NESTED != 0) };
}

/// Makes a static [`Kernel`] lock the program's critical section: `critical_section! { KERNEL }`, once in a program.
#[macro_export]
macro_rules! critical_section {
    ($kernel:path) => {
        struct KernelSection;
        $crate::critical::interface::set_impl!(KernelSection);

        // SAFETY: the kernel lock lets one core in at a time, which may enter again.
        unsafe impl $crate::critical::interface::Impl for KernelSection {
            unsafe fn acquire() -> u64 {
                $crate::critical::enter(&$kernel)
            }

            unsafe fn release(state: u64) {
                // SAFETY: the crate hands back what `acquire` gave, last one first.
                unsafe { $crate::critical::leave(&$kernel, state) };
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use musubi_core::smp::{Kernel, Processor, clh::nodes};

    std::thread_local! {
        static CORE: Cell<usize> = const { Cell::new(0) };
        static MASKED: Cell<usize> = const { Cell::new(0) };
    }

    struct Threads;

    // SAFETY: each thread of the test has a number of its own; there are no handlers.
    unsafe impl Processor for Threads {
        const CORES: usize = 2;
        type Mask = usize;
        fn core() -> usize {
            CORE.get()
        }
        fn level() -> usize {
            0
        }
        fn mask() -> usize {
            MASKED.replace(1)
        }
        fn restore(before: usize) {
            MASKED.set(before);
        }
        fn is_masked() -> bool {
            MASKED.get() == 1
        }
        fn relax() {
            std::thread::yield_now();
        }
        fn signal() {}
        fn serve() {}
        fn ring(_: usize) {}
        fn now_ns() -> u64 {
            0
        }
    }

    static KERNEL: Kernel<Threads, { nodes(2) }> = Kernel::new();
    crate::critical_section! { KERNEL }

    #[test]
    fn sections_of_the_crate_nest_and_exclude() {
        static COUNT: critical_section::Mutex<Cell<u32>> = critical_section::Mutex::new(Cell::new(0));
        let add = |core| {
            CORE.set(core);
            for _ in 0..1000 {
                critical_section::with(|outer| {
                    let before = COUNT.borrow(outer).get();
                    critical_section::with(|inner| COUNT.borrow(inner).set(before + 1));
                    assert!(Threads::is_masked() && KERNEL.holder() == Some(core));
                });
                assert!(!Threads::is_masked());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| add(0));
            scope.spawn(|| add(1));
        });
        assert_eq!(critical_section::with(|section| COUNT.borrow(section).get()), 2000);
    }
}
