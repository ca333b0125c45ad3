//! From the entry code to the program's main function, on the boot core and on others.

use core::marker::PhantomData;

use musubi_core::smp::CORES_MAX;

use crate::arch;
use crate::board::{Board, StartError};
use crate::core_data::{CoreData, STACK_BYTES, core, number_cores, this_core};
use crate::dispatch;
use crate::lock_patching;
use crate::machine::Program;
use crate::start_order::{self, Steps};

/// Memory for the stacks of the secondary cores of a program.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Stacks<const SECONDARIES: usize>(core::cell::UnsafeCell<[[u8; STACK_BYTES]; SECONDARIES]>);

// SAFETY: nobody touches the bytes through this type, which only gives their address; each is used by one core alone.
unsafe impl<const SECONDARIES: usize> Sync for Stacks<SECONDARIES> {}

impl<const SECONDARIES: usize> Stacks<SECONDARIES> {
    /// Stacks that nobody uses yet.
    pub const fn new() -> Self {
        Self(core::cell::UnsafeCell::new([[0; STACK_BYTES]; SECONDARIES]))
    }

    /// First address behind the stack of core `core`, which must be 1 to `SECONDARIES`.
    pub fn top(&self, core: usize) -> usize {
        assert!((1..=SECONDARIES).contains(&core));
        self.0.get() as usize + core * STACK_BYTES
    }
}

impl<const SECONDARIES: usize> Default for Stacks<SECONDARIES> {
    fn default() -> Self {
        Self::new()
    }
}

/// The steps of the core that runs this.
struct Here<P>(PhantomData<P>);

impl<P: Program> Steps for Here<P> {
    fn open_coherence(&mut self) {
        P::Board::open_coherence();
    }

    fn prepare_core(&mut self) {
        arch::prepare_core(P::Board::MEMORY);
    }

    fn prepare_board(&mut self) {
        P::Board::prepare();
    }

    fn prepare_interrupts(&mut self) {
        P::Board::prepare_core();
    }
}

/// The boot core's way to main; [`crate::image!`] has the entry code call this with interrupts masked.
pub fn boot<P: Program>(hardware: usize, main: fn() -> !) -> ! {
    const { assert!(P::CORES >= 1 && P::CORES <= CORES_MAX) }
    number_cores(hardware);
    lock_patching::begin();
    start_order::boot_core(&mut Here::<P>(PhantomData));
    arch::unmask();
    main()
}

/// A secondary core's way to its idle loop; [`crate::image!`] has the entry code call this with interrupts masked.
pub fn secondary<P: Program>(data: &'static CoreData) -> ! {
    arch::set_core_data(data);
    start_order::other_core(&mut Here::<P>(PhantomData));
    P::idle()
}

/// How many cores of those that the program is built for the hardware has.
pub fn cores_present<P: Program>() -> usize {
    (0..P::CORES).filter(|&number| P::Board::exists(core(number).hardware())).count()
}

/// Asks the hardware to start a core of the program; does not wait until it runs. The first call makes locks whole
/// ([`crate::lock_patching`]), so it must come with interrupts open, and with no lock held.
///
/// # Errors
/// Where the hardware says at once that this cannot be; [`StartError::Absent`] also for a number that the program is not
/// built for.
pub fn start_core<P: Program>(number: usize) -> Result<(), StartError> {
    if number == 0 {
        return Err(StartError::Running);
    }
    if number >= P::CORES {
        return Err(StartError::Absent);
    }
    if !lock_patching::make_whole() {
        return Err(StartError::Masked);
    }
    let data = core(number);
    data.set_stack(P::stack_top(number));
    // The other core reads this before its caches are on.
    arch::clean(core::ptr::from_ref(data).cast(), size_of::<CoreData>());
    P::Board::start(data.hardware(), arch::secondary_entry(), core::ptr::from_ref(data) as usize)
}

/// What a core does without work: sleeps, and handles interrupts.
pub fn sleep() -> ! {
    arch::unmask();
    loop {
        arch::wait_for_interrupt();
    }
}

/// Registers of a fault that are printed on a line.
const REGISTERS_A_LINE: usize = 6;

/// Prints what the core did wrong, with its registers where the vectors save them; calls [`dispatch::FAULT`] and ends the
/// program.
pub fn fault<P: Program>(cause: usize, address: usize, at: usize) -> ! {
    crate::println!(P, "FAULT on core {}: cause {cause:#x}, address {address:#x}, at {at:#x}", this_core().number());
    for registers in arch::registers_at_fault().chunks(REGISTERS_A_LINE) {
        crate::println!(P, "  {registers:08x?}");
    }
    dispatch::FAULT.call();
    P::Board::power_off()
}

/// Prints a panic's message and ends the program.
pub fn panicked<P: Program>(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = arch::mask();
    crate::println!(P, "PANIC on core {}: {}", this_core().number(), info.message());
    if let Some(place) = info.location() {
        crate::println!(P, "  at {}:{}", place.file(), place.line());
    }
    P::Board::power_off()
}
