//! The global timer of a Cortex-A9 MPCore: one 64-bit counter for all cores, one comparator each.
//!
//! What you may rely on: [`now`] never goes backwards and all cores read the same counter. It does not wrap: 64 bits at
//! 1 GHz are five centuries.
//!
//! How it works: the comparator's interrupt (27) is an edge at the interrupt controller: it stays pending there after its source
//! is silent (DDI 0407, clause 3.1.2: interrupts 27 and 29 to 30 are rising edges). So an alarm that went off just before it was
//! set anew still interrupts, and [`take`] tells it from one that is due, by the clock.
//!
//! Source: Cortex-A9 MPCore manual (DDI 0407), clause 4.4. Its advice: set the comparator while it is disabled.

use crate::registers::Registers;

/// Counter, lower and upper half.
const COUNTER: [usize; 2] = [0x00, 0x04];
/// Control register.
const CONTROL: usize = 0x08;
/// Interrupt status, cleared by writing 1; of this core.
const STATUS: usize = 0x0C;
/// Comparator of this core, lower and upper half.
const COMPARATOR: [usize; 2] = [0x10, 0x14];

/// The counter counts. The one bit besides the prescaler that all cores share.
const ENABLE: u32 = 1;
/// This core's comparator compares.
const COMPARE: u32 = 1 << 1;
/// This core is interrupted when the comparator is reached.
const INTERRUPT: u32 = 1 << 2;
/// Place of the prescaler less one.
const PRESCALER_AT: u32 = 8;
/// Readings of the upper half before one is taken as it is; it changes once in 4 s or more.
const READS_MAX: usize = 4;

/// Lets the counter count from where it is, one tick in `prescaler` (1 to 256) clocks. Once, on the boot core.
pub fn start(timer: &impl Registers, prescaler: u32) {
    timer.write_u32(CONTROL, ((prescaler - 1) & 0xFF) << PRESCALER_AT | ENABLE);
}

/// Ticks since the counter was started.
pub fn now(timer: &impl Registers) -> u64 {
    let mut high = timer.read_u32(COUNTER[1]);
    let mut low = timer.read_u32(COUNTER[0]);
    for _ in 0..READS_MAX {
        let again = timer.read_u32(COUNTER[1]);
        if again == high {
            break;
        }
        high = again;
        low = timer.read_u32(COUNTER[0]);
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Interrupts this core when the counter reaches `at`, or at once if it has; `None`: not at all.
pub fn set_alarm(timer: &impl Registers, at: Option<u64>) {
    let control = timer.read_u32(CONTROL) & !(COMPARE | INTERRUPT);
    timer.write_u32(CONTROL, control);
    timer.write_u32(STATUS, 1);
    if let Some(at) = at {
        timer.write_u32(COMPARATOR[0], at as u32);
        timer.write_u32(COMPARATOR[1], (at >> 32) as u32);
        timer.write_u32(CONTROL, control | COMPARE | INTERRUPT);
    }
}

/// The comparator's interrupt was taken: whether the alarm is due, which then is silent. What an earlier alarm left pending changes
/// nothing.
pub fn take(timer: &impl Registers) -> bool {
    let is_set = timer.read_u32(CONTROL) & COMPARE != 0;
    let at = COMPARATOR.map(|half| u64::from(timer.read_u32(half)));
    let is_due = is_set && now(timer) >= at[0] | at[1] << 32;
    if is_due {
        set_alarm(timer, None);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The timer as one core sees it, and the interrupt controller's latch; the counter advances by `step` at each reading of a
    /// half of it.
    struct Model {
        counter: Cell<u64>,
        step: u64,
        control: Cell<u32>,
        /// The event flag: set when the comparator is reached, cleared by writing 1.
        status: Cell<u32>,
        comparator: Cell<u64>,
        /// Pending at the controller: set by the rising edge of the flag, cleared by taking the interrupt only.
        latched: Cell<bool>,
    }

    impl Model {
        fn new(counter: u64, step: u64) -> Self {
            let (control, status, comparator) = (Cell::new(0), Cell::new(0), Cell::new(0));
            Model { counter: Cell::new(counter), step, control, status, comparator, latched: Cell::new(false) }
        }

        /// What the hardware does by itself.
        fn settle(&self) {
            let on = COMPARE | INTERRUPT | ENABLE;
            let reached = self.control.get() & on == on && self.counter.get() >= self.comparator.get();
            if reached && self.status.replace(1) == 0 {
                self.latched.set(true);
            }
        }

        fn pass(&self, to: u64) {
            self.counter.set(to);
            self.settle();
        }

        /// Whether the core is interrupted; taking it clears what is pending.
        fn interrupts(&self) -> bool {
            self.settle();
            self.latched.replace(false)
        }
    }

    impl Registers for Model {
        fn read_u32(&self, offset: usize) -> u32 {
            let counter = self.counter.get();
            match offset {
                0x00 | 0x04 => {
                    self.pass(counter + self.step);
                    (counter >> (8 * offset)) as u32
                }
                0x08 => self.control.get(),
                0x10 => self.comparator.get() as u32,
                0x14 => (self.comparator.get() >> 32) as u32,
                _ => panic!("read {offset:#x}"),
            }
        }
        fn write_u32(&self, offset: usize, value: u32) {
            let half = |low: u64, high: u64| self.comparator.set(high << 32 | low & 0xFFFF_FFFF);
            let comparator = self.comparator.get();
            match offset {
                0x08 => self.control.set(value),
                0x0C => self.status.set(self.status.get() & !value),
                0x10 | 0x14 => assert_eq!(self.control.get() & COMPARE, 0, "comparator set while it compares"),
                _ => panic!("write {offset:#x}"),
            }
            match offset {
                0x10 => half(u64::from(value), comparator >> 32),
                0x14 => half(comparator, u64::from(value)),
                _ => {}
            }
            self.settle();
        }
    }

    #[test]
    fn a_carry_between_the_halves_is_not_seen() {
        for before in 0..6 {
            let model = Model::new(0x0000_0007_0000_0000 - before, 1);
            let first = model.counter.get();
            let now = now(&model);
            assert!((first..=model.counter.get()).contains(&now), "{now:#x}");
        }
    }

    #[test]
    fn an_alarm_fires_at_its_time_and_not_before() {
        let model = Model::new(1000, 0);
        start(&model, 1);
        set_alarm(&model, Some(0x1_0000_0001));
        assert!(!model.interrupts());
        model.pass(0x1_0000_0001);
        assert!(model.interrupts() && take(&model));
        assert!(!model.interrupts());
        assert_eq!(model.control.get(), ENABLE);
    }

    #[test]
    fn an_edge_that_an_earlier_alarm_left_does_not_cancel_the_next() {
        let model = Model::new(1000, 0);
        start(&model, 1);
        set_alarm(&model, Some(2000));
        // It goes off while the core has interrupts masked and sets the next one.
        model.pass(2000);
        set_alarm(&model, Some(5000));
        assert!(model.interrupts(), "the edge is still pending at the controller");
        assert!(!take(&model), "nothing is due");
        model.pass(5000);
        assert!(model.interrupts() && take(&model), "the next alarm still comes");
    }

    #[test]
    fn an_alarm_in_the_past_comes_at_once_and_once() {
        let model = Model::new(1000, 0);
        start(&model, 1);
        set_alarm(&model, Some(10));
        assert!(model.interrupts() && take(&model));
        assert!(!model.interrupts() && !take(&model));
    }
}
