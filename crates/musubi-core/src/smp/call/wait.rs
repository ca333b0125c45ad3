//! How a core waits for answers of others: bounded, serving, and named in a report.
//!
//! What you may rely on: every wait ends by its deadline plus one round; interrupts are let in between rounds if the caller
//! had them open; nobody rings at a core that waits. At half the time the core rings once more, so that an interrupt that
//! hardware or firmware lost costs time and not the call.

use crate::guarantee::SPAN_NS_MAX;
use crate::smp::Processor;
use crate::smp::interprocessor::{Handlers, Interprocessor};
use crate::smp::observe::Observer;
use crate::smp::waiting::{self, Awaited};

/// Looks in one round, between which interrupts stay masked.
const LOOKS_MAX: u32 = 64;

/// Something that was asked of other cores.
pub(in crate::smp) trait Asked {
    /// Goes on as far as possible; gives whether nothing more is to come.
    fn advance(&mut self) -> bool;
    /// Rings at those that have not answered.
    fn ring_again(&self);
}

/// Whether an instant has come, on a clock that may wrap.
pub(in crate::smp) const fn is_past(instant_ns: u64, now_ns: u64) -> bool {
    now_ns.wrapping_sub(instant_ns) <= SPAN_NS_MAX
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Interprocessor<P, H, N, O> {
    /// Waits until all that was asked is answered; gives whether it was by the deadline.
    #[cold]
    #[inline(never)]
    pub(in crate::smp) fn wait(&self, what: Awaited, deadline_ns: u64, asked: &mut impl Asked) -> bool {
        let begin_ns = P::now_ns();
        let _noted = waiting::begin::<O::Waits>(P::core(), what, || begin_ns);
        let left_ns = if is_past(deadline_ns, begin_ns) { 0 } else { deadline_ns.wrapping_sub(begin_ns) };
        let mut ring_at_ns = Some(begin_ns.wrapping_add(left_ns / 2));
        while !self.poll(LOOKS_MAX, || asked.advance()) {
            let now_ns = P::now_ns();
            if is_past(deadline_ns, now_ns) {
                return asked.advance();
            }
            if ring_at_ns.is_some_and(|at_ns| is_past(at_ns, now_ns)) {
                ring_at_ns = None;
                asked.ring_again();
            }
        }
        true
    }
}
