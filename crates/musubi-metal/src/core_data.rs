//! What each core knows of itself, found through a register of the core.
//!
//! What you may rely on: the program's core numbers run from 0, the core that booted; the others follow in the order of
//! their hardware numbers. Reading one's own number is one register and one load.

use core::sync::atomic::{AtomicUsize, Ordering};

use musubi_core::smp::{CORES_MAX, LEVELS};

use crate::arch;

/// Bytes of a secondary core's stack. The boot core's is laid out by the linker script.
pub const STACK_BYTES: usize = 32 * 1024;

/// One core's own data. Each word has one writer, named beside it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct CoreData {
    /// First address behind the stack; the entry code loads it from offset 0. Writer: the boot core, before the start.
    stack_top: AtomicUsize,
    /// The hardware's number of this core; the entry code may look for it, at offset of one word. Writer: the boot core.
    hardware: AtomicUsize,
    /// The program's number of this core. Constant.
    number: usize,
    /// How deep it is in handlers. Writer: this core.
    level: AtomicUsize,
}

/// Not a core's hardware number.
const NO_CORE: usize = usize::MAX;

/// The data of every core that a program may have; entry code that is given no argument searches it.
#[unsafe(no_mangle)]
static MUSUBI_METAL_CORES: [CoreData; CORES_MAX] = all_cores();

const fn all_cores() -> [CoreData; CORES_MAX] {
    let mut cores = [const { CoreData::new(0) }; CORES_MAX];
    let mut number = 0;
    while number < CORES_MAX {
        cores[number] = CoreData::new(number);
        number += 1;
    }
    cores
}

impl CoreData {
    const fn new(number: usize) -> Self {
        let (stack_top, hardware) = (AtomicUsize::new(0), AtomicUsize::new(NO_CORE));
        Self { stack_top, hardware, number, level: AtomicUsize::new(0) }
    }

    /// The program's number of this core.
    #[inline(always)]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The hardware's number of this core, once [`number_cores`] has run.
    pub fn hardware(&self) -> usize {
        self.hardware.load(Ordering::Relaxed)
    }

    /// How deep this core is in handlers, below [`LEVELS`].
    #[inline(always)]
    pub fn level(&self) -> usize {
        self.level.load(Ordering::Relaxed)
    }

    /// Notes that a handler begins, with interrupts masked. Gives whether it may let others interrupt it.
    pub fn enter_handler(&self) -> bool {
        let level = self.level() + 1;
        self.level.store(level, Ordering::Relaxed);
        level < LEVELS - 1
    }

    /// Notes that a handler ends, with interrupts masked.
    pub fn leave_handler(&self) {
        self.level.store(self.level() - 1, Ordering::Relaxed);
    }

    /// Gives the core its stack, before it is started.
    pub(crate) fn set_stack(&self, top: usize) {
        self.stack_top.store(top, Ordering::Relaxed);
    }
}

/// The data of the core that asks.
#[inline(always)]
pub fn this_core() -> &'static CoreData {
    // SAFETY: the entry code put the address of an element of `MUSUBI_METAL_CORES` into the register before it called
    // any Rust function, and nothing changes the register afterwards.
    unsafe { &*arch::core_data() }
}

/// The data of a core by the program's number.
pub fn core(number: usize) -> &'static CoreData {
    &MUSUBI_METAL_CORES[number]
}

/// Makes the core that asks number 0 and numbers the others in the order of their hardware numbers. On the boot core,
/// before any other runs.
pub(crate) fn number_cores(boot: usize) {
    let first = core(0);
    first.hardware.store(boot, Ordering::Relaxed);
    arch::set_core_data(first);
    let others = (0..).filter(|&hardware| hardware != boot);
    for (data, hardware) in MUSUBI_METAL_CORES[1..].iter().zip(others) {
        data.hardware.store(hardware, Ordering::Relaxed);
    }
}
