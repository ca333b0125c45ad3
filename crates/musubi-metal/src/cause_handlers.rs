//! What a core of an image does for each cause of an inter-processor interrupt.
//!
//! What you may rely on: flushes and stop are the architecture's and the board's; for the others a program sets a
//! function, and without one nothing happens.

use core::marker::PhantomData;

use musubi_core::smp::interprocessor::Handlers;

use crate::arch;
use crate::board::Board;
use crate::dispatch::Handler;
use crate::machine::Program;

/// What is called for a reschedule.
pub static RESCHEDULE: Handler<fn()> = Handler::none();
/// What is called for the tick that another core passes on.
pub static TICK: Handler<fn()> = Handler::none();
/// What is called for a cause of the program's own, with its number.
pub static PROGRAM: Handler<fn(u32)> = Handler::none();

/// The handlers of an image.
#[derive(Debug)]
pub struct CauseHandlers<P>(PhantomData<P>);

impl<P: Program> Handlers for CauseHandlers<P> {
    fn reschedule() {
        RESCHEDULE.call();
    }

    fn tick() {
        TICK.call();
    }

    fn flush_instructions() {
        arch::flush_instructions();
    }

    fn flush_data() {
        arch::flush_data();
    }

    fn flush_translations() {
        arch::flush_translations();
    }

    fn stop() {
        P::Board::stop()
    }

    fn program(number: u32) {
        PROGRAM.call(number);
    }
}
