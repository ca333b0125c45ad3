//! The Cortex-R5F's end of the doorbells: the inter-processor interrupts of the description, and what QEMU has in their place.
//!
//! What you may rely on: the description's bells are ones that each side reaches on the chip, which is checked when this is compiled.
//! Rings are kept while this core does not listen.
//!
//! How it works: on the chip channel 1 of the block is ours (interrupt 65, a level), and Linux owns the first channel of the programmable
//! logic, which the firmware of the Cortex-A53s leaves alone. Where the board is emulated, the bells are pending bits of
//! the interrupt controllers ([`qemu`]).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU8, Ordering};

use musubi_metal::board::zcu102_r5::{self, GIC, qemu};
use musubi_metal::board::zynqmp_map::{Master, reaches};
use musubi_metal::core_data::this_core;
use musubi_metal::dispatch;
use musubi_metal::doorbell::DoorbellDevice;
use musubi_metal::doorbell::gic_level::GicLevel;
use musubi_metal::doorbell::gic_spi::GicSpi;
use musubi_metal::doorbell::zynqmp_ipi::{Agent, ZynqmpIpi};
use musubi_metal::registers::Window;
use zcu102_demo::system::doorbell;

/// Our channel of the block; its TRIG comes first.
const RPU0_BLOCK: usize = 0xFF31_0000;
const BLOCK_BYTES: usize = 0x20;

// Each side stores in a register that it reaches: Linux's bell is rung by us, ours by Linux.
const _: () = assert!(reaches(Master::Apu, doorbell::R5.register), "Linux cannot reach the Cortex-R5F's doorbell");
const _: () = assert!(reaches(Master::Rpu, doorbell::LINUX.register), "the Cortex-R5F cannot reach Linux's doorbell");
const _: () = assert!(
    doorbell::LINUX.register == RPU0_BLOCK as u64 && doorbell::LINUX.value == Agent::Pl0.bit(),
    "Linux's doorbell is not our channel's trigger"
);

/// The doorbell's end, for where we are.
enum Bell {
    /// The inter-processor interrupts.
    Chip(GicLevel<'static, ZynqmpIpi<Window>, Window>),
    /// QEMU's stand-in.
    Qemu(GicSpi<'static, Window>),
    /// On the chip, but our interrupt controller has not the description's number: nobody can be rung.
    None,
}

impl Bell {
    fn found() -> Self {
        if zcu102_r5::is_emulated() {
            let rung = GicSpi::new(&qemu::APU_GIC, &GIC, qemu::R5_BELL);
            return Bell::Qemu(rung.unwrap_or_else(|| GicSpi::that_only_rings(&qemu::APU_GIC)));
        }
        // SAFETY: our channel's registers lie there, and nobody else uses them.
        let block = unsafe { Window::new(RPU0_BLOCK, BLOCK_BYTES) };
        let bell = GicLevel::new(ZynqmpIpi::new(block, Agent::Pl0.bit()), &GIC, doorbell::R5.interrupt);
        bell.map_or(Bell::None, Bell::Chip)
    }

    fn device(&self) -> Option<&dyn DoorbellDevice> {
        match self {
            Bell::Chip(bell) => Some(bell),
            Bell::Qemu(bell) => Some(bell),
            Bell::None => None,
        }
    }
}

/// The end, once it was made.
struct Place {
    bell: UnsafeCell<Option<Bell>>,
    /// 0: none yet; 1: being made; 2: made. Writer: whoever makes it, the first one to ask.
    state: AtomicU8,
}

// SAFETY: the cell is written by who changes the state from 0 to 1, and read after it became 2.
unsafe impl Sync for Place {}

static PLACE: Place = Place { bell: UnsafeCell::new(None), state: AtomicU8::new(0) };

/// The end; `None` while it is being made, to a handler that comes in between.
fn bell() -> Option<&'static Bell> {
    if PLACE.state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        // SAFETY: the state says that nobody else is here, and that nobody reads yet.
        unsafe { *PLACE.bell.get() = Some(Bell::found()) };
        PLACE.state.store(2, Ordering::Release);
    }
    let is_made = PLACE.state.load(Ordering::Acquire) == 2;
    // SAFETY: made, so nobody writes any more.
    is_made.then(|| unsafe { &*PLACE.bell.get() })?.as_ref()
}

/// Rings Linux.
pub fn ring_linux() {
    let Some(bell) = bell() else { return };
    let target = if matches!(bell, Bell::Qemu(_)) { qemu::LINUX_BELL } else { Agent::Pl0 as u32 };
    // Both are targets that there are; a core without a bell is one whose peers look by themselves.
    let _ = bell.device().is_some_and(|device| device.ring(target));
}

/// Lets Linux's rings interrupt this core, if anything can.
pub fn listen() {
    dispatch::SILENCE.set(Some(silence));
    let Some(bell) = bell() else { return };
    if zcu102_r5::has_interrupts(this_core().hardware()) {
        let number = if matches!(bell, Bell::Qemu(_)) { qemu::R5_BELL } else { doorbell::R5.interrupt };
        // A shared interrupt, which this controller has.
        let _ = GIC.target(number, GIC.own_bit());
        bell.device().inspect(|device| device.arm());
    }
}

/// Silences the doorbell, before its interrupt is done.
fn silence(number: u32) {
    let _ = match bell() {
        Some(Bell::Chip(bell)) => bell.note(number),
        Some(Bell::Qemu(bell)) => bell.note(number),
        Some(Bell::None) | None => false,
    };
}
