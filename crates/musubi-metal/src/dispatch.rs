//! What happens when a core is interrupted.
//!
//! What you may rely on: rings go to the program's [`Program::rung`]; alarms and devices to the handlers that were set
//! here. A handler runs with interrupts masked and may unmask them with [`Unmasked`] while it is not already the deepest
//! that [`LEVELS`](musubi_core::smp::LEVELS) allows.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arch;
use crate::board::{Board, Event};
use crate::core_data::this_core;
use crate::machine::Program;

/// Most interrupts that are handled in one go, so that a storm cannot keep a core in its vector for ever: it returns, and
/// is interrupted again.
const EVENTS_MAX: usize = 16;

/// What is called for alarms, on the core whose alarm it was.
pub static ALARM: Handler<fn()> = Handler::none();
/// What is called for a device's interrupt, with its number.
pub static DEVICE: Handler<fn(u32)> = Handler::none();

/// What silences a device whose interrupt is a level, with the number, before the controller is told that it is done; else it comes
/// again at once. Called by the board when it accepts the interrupt, so it must be short.
pub static SILENCE: Handler<fn(u32)> = Handler::none();

/// What is called after a fault was printed, on the core that faulted, with interrupts masked. It may begin the program anew
/// (`arch::restart` where that exists); if it returns, or there is none, the program ends.
pub static FAULT: Handler<fn()> = Handler::none();

/// A function that may be set while the program runs. Writer: whoever sets up interrupts, on one core.
#[derive(Debug)]
pub struct Handler<F> {
    function: AtomicPtr<()>,
    kind: core::marker::PhantomData<F>,
}

impl<F> Handler<F> {
    /// No function.
    pub(crate) const fn none() -> Self {
        Self { function: AtomicPtr::new(null_mut()), kind: core::marker::PhantomData }
    }
}

impl Handler<fn()> {
    /// Sets what is called; `None` for nothing.
    pub fn set(&self, function: Option<fn()>) {
        self.function.store(function.map_or(null_mut(), |f| f as *mut ()), Ordering::Release);
    }

    /// Calls it, if there is one.
    pub fn call(&self) {
        let function = self.function.load(Ordering::Acquire);
        // SAFETY: only `set` stores here: null, which is `None`, or a function of this very type.
        let function = unsafe { core::mem::transmute::<*mut (), Option<fn()>>(function) };
        if let Some(function) = function {
            function();
        }
    }
}

impl Handler<fn(u32)> {
    /// Sets what is called; `None` for nothing.
    pub fn set(&self, function: Option<fn(u32)>) {
        self.function.store(function.map_or(null_mut(), |f| f as *mut ()), Ordering::Release);
    }

    /// Calls it, if there is one.
    pub fn call(&self, number: u32) {
        let function = self.function.load(Ordering::Acquire);
        // SAFETY: only `set` stores here: null, which is `None`, or a function of this very type.
        let function = unsafe { core::mem::transmute::<*mut (), Option<fn(u32)>>(function) };
        if let Some(function) = function {
            function(number);
        }
    }
}

/// Handles what is pending; [`crate::image!`] has the vectors call this.
pub fn handle<P: Program>() {
    let core = this_core();
    core.enter_handler();
    for _ in 0..EVENTS_MAX {
        match P::Board::accept() {
            Some(Event::Ring) => P::rung(),
            Some(Event::Alarm) => ALARM.call(),
            Some(Event::Device(number)) => DEVICE.call(number),
            None => break,
        }
    }
    core.leave_handler();
}

/// While this lives, a handler can itself be interrupted.
#[derive(Debug)]
pub struct Unmasked(());

impl Unmasked {
    /// Unmasks interrupts in a handler; `None` where that would nest too deep, or outside of handlers.
    pub fn in_handler() -> Option<Self> {
        let level = this_core().level();
        let may = level > 0 && level < musubi_core::smp::LEVELS - 1;
        may.then(|| {
            arch::unmask();
            Self(())
        })
    }
}

impl Drop for Unmasked {
    fn drop(&mut self) {
        let _ = arch::mask();
    }
}
