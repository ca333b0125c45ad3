//! What every back end must do, as tests over a pair of lines and the wire between them.

use super::DoorbellDevice;

/// Two sides of a bell and what the model shows of the wire.
pub struct Pair<'m, A, B> {
    /// Rings.
    pub ringer: A,
    /// Is rung.
    pub rung: B,
    /// How the ringer names the other side.
    pub target: u32,
    /// What the other side is told when this one rings.
    pub told: u32,
    /// Whether the interrupt of the other side is raised now. A back end whose interrupt is acknowledged by the
    /// interrupt controller's driver does that here and passes it on.
    pub interrupted: &'m dyn Fn() -> bool,
}

/// Runs all of them.
pub fn check<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    pair.rung.arm();
    a_ring_arrives_once(pair);
    rings_coalesce(pair);
    a_spurious_interrupt_takes_nothing(pair);
    a_ring_while_it_is_taken_interrupts_again(pair);
    a_ring_while_disarmed_is_kept(pair);
    a_lost_interrupt_is_found_by_looking(pair);
}

fn a_ring_arrives_once<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    assert!(!(pair.interrupted)(), "nobody rang yet");
    assert!(pair.ringer.ring(pair.target));
    assert!((pair.interrupted)());
    assert_eq!(pair.rung.take(), pair.told);
    assert!(!(pair.interrupted)(), "taking acknowledges");
}

fn rings_coalesce<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    for _ in 0..10 {
        assert!(pair.ringer.ring(pair.target));
    }
    assert!((pair.interrupted)());
    assert_eq!(pair.rung.take(), pair.told);
    assert!(!(pair.interrupted)());
    assert_eq!(pair.rung.take(), 0, "ten rings, one event");
}

/// An interrupt that came twice, or from nobody.
fn a_spurious_interrupt_takes_nothing<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    assert_eq!(pair.rung.take(), 0);
    assert_eq!(pair.rung.take(), 0);
    assert!(pair.ringer.ring(pair.target));
    assert!((pair.interrupted)());
    assert_eq!(pair.rung.take(), pair.told);
    assert_eq!(pair.rung.take(), 0, "the duplicate");
}

/// The handler has taken, but not yet looked at memory, when the next ring comes.
fn a_ring_while_it_is_taken_interrupts_again<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    assert!(pair.ringer.ring(pair.target));
    assert!((pair.interrupted)());
    assert_eq!(pair.rung.take(), pair.told);
    assert!(pair.ringer.ring(pair.target));
    assert!((pair.interrupted)(), "the second ring is not swallowed by the first one's acknowledgement");
    assert_eq!(pair.rung.take(), pair.told);
}

fn a_ring_while_disarmed_is_kept<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    pair.rung.disarm();
    assert!(pair.ringer.ring(pair.target));
    assert!(!(pair.interrupted)(), "disarmed");
    pair.rung.arm();
    assert!((pair.interrupted)(), "kept");
    assert_eq!(pair.rung.take(), pair.told);
}

/// The interrupt is lost on its way, and the core looks because its deadline has passed: with the bell disarmed, which
/// is how a core without interrupts polls.
fn a_lost_interrupt_is_found_by_looking<A: DoorbellDevice, B: DoorbellDevice>(pair: &Pair<'_, A, B>) {
    pair.rung.disarm();
    assert!(pair.ringer.ring(pair.target));
    let polled = pair.rung.take();
    pair.rung.arm();
    // Where the interrupt controller alone knows of it, the ring is not visible to a poll, and comes with the interrupt.
    let came = if polled == 0 && (pair.interrupted)() { pair.rung.take() } else { polled };
    assert_eq!(came, pair.told);
    assert!(!(pair.interrupted)());
    assert_eq!(pair.rung.take(), 0);
}
