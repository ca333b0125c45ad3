//! A board of `musubi-metal` as the kernel's machine: 32-bit Arm.
//!
//! What you may rely on: the tick does not drift: each is set a tick behind the former. Interrupts of devices count as
//! doorbells, so a board's device interrupt that another participant makes pending needs only to be enabled.
//!
//! How it works: the board's alarm is the tick, its ring and its devices are doorbells. A core that no interrupt reaches
//! is one that polls.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use musubi_metal::arch;
use musubi_metal::board::{Board, Event};
use musubi_metal::core_data::this_core;

use crate::{Machine, Served, TICK_NS, machine, trap};

/// Most interrupts that are served in one go.
const EVENTS_MAX: usize = 8;

/// The machine.
pub struct OnBoard<B> {
    next_tick_ns: AtomicU64,
    board: PhantomData<fn() -> B>,
}

impl<B: Board> OnBoard<B> {
    /// A static.
    #[allow(clippy::new_without_default, reason = "a machine is a static")]
    pub const fn new() -> Self {
        OnBoard { next_tick_ns: AtomicU64::new(0), board: PhantomData }
    }

    /// Whether interrupts reach this core.
    pub fn is_interrupted(&self) -> bool {
        !arch::is_polled(this_core().hardware())
    }

    /// Masks interrupts, gives the vectors to the kernel, and runs the tasks for ever. Called once, in the image's main
    /// function.
    pub fn start(&'static self) -> ! {
        let _ = arch::mask();
        // SAFETY: interrupts are masked, images run in supervisor mode, and the vectors were copied to address 0.
        unsafe { trap::install() };
        machine::start(self)
    }
}

impl<B: Board> Machine for OnBoard<B> {
    fn has_interrupts(&self) -> bool {
        self.is_interrupted()
    }

    fn now_ns(&self) -> u64 {
        B::now_ns()
    }

    fn start_tick(&self) {
        let next_ns = B::now_ns() + TICK_NS;
        self.next_tick_ns.store(next_ns, Ordering::Relaxed);
        B::set_alarm(next_ns);
    }

    fn serve(&self) -> Served {
        let mut served = Served::default();
        for _ in 0..EVENTS_MAX {
            match B::accept() {
                Some(Event::Alarm) => {
                    served.tick = true;
                    let next_ns = self.next_tick_ns.load(Ordering::Relaxed) + TICK_NS;
                    self.next_tick_ns.store(next_ns, Ordering::Relaxed);
                    B::set_alarm(next_ns);
                    // One tick an interrupt; one that is late follows at once.
                    break;
                }
                Some(Event::Ring | Event::Device(_)) => served.doorbell = true,
                None => break,
            }
        }
        served
    }

    fn rest(&self) {
        arch::wait_for_interrupt();
    }
}
