//! The clock and the alarm against a model of the counters.

use core::cell::{Cell, RefCell};

use super::*;

const HZ: u32 = 133_000_000;
const MS: u64 = 1_000_000;

/// One counter: when it was started, as the registers tell.
#[derive(Clone, Copy, Default)]
struct Counter {
    clock: u32,
    control: u32,
    interval: u32,
    enabled: u32,
    started_ns: u64,
}

/// A TTC at a time that the test sets; each access takes `access_ns`, and the access number `stall.0` takes `stall.1` more.
struct Model {
    now_ns: Cell<u64>,
    access_ns: u64,
    accesses: Cell<u64>,
    stall: Cell<(u64, u64)>,
    width: u32,
    counters: RefCell<[Counter; 3]>,
}

impl Model {
    fn new(width: u32) -> Self {
        Model {
            now_ns: Cell::new(77),
            access_ns: 300,
            accesses: Cell::new(0),
            stall: Cell::new((u64::MAX, 0)),
            width,
            counters: RefCell::new([Counter { control: 0x21, ..Counter::default() }; 3]),
        }
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.width)
    }

    fn pass(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }

    fn access(&self) -> u64 {
        self.accesses.set(self.accesses.get() + 1);
        let (at, stall_ns) = self.stall.get();
        self.pass(self.access_ns + if self.accesses.get() == at { stall_ns } else { 0 });
        self.now_ns.get()
    }

    fn ticks(&self, counter: &Counter) -> u64 {
        let division = if counter.clock & 1 == 0 { 0 } else { (counter.clock >> 1 & 0xF) + 1 };
        let passed = u128::from(self.now_ns.get() - counter.started_ns);
        ((passed * u128::from(HZ) / 1_000_000_000) >> division) as u64
    }

    fn is_raised(&self, number: usize) -> bool {
        let counter = self.counters.borrow()[number];
        let by_interval = counter.control & 0b11 == 0b10 && counter.enabled & 1 != 0;
        by_interval && self.ticks(&counter) > u64::from(counter.interval)
    }
}

impl Registers for Model {
    fn read_u32(&self, offset: usize) -> u32 {
        self.access();
        let counter = self.counters.borrow()[offset / 4 % 3];
        match offset {
            0x18..0x24 => self.ticks(&counter) as u32 & self.mask(),
            0x24..0x30 => counter.interval,
            0x54..0x60 => 0,
            _ => panic!("read {offset:#x}"),
        }
    }
    fn write_u32(&self, offset: usize, value: u32) {
        let now = self.access();
        let counter = &mut self.counters.borrow_mut()[offset / 4 % 3];
        match offset {
            0x00..0x0C => counter.clock = value,
            0x0C..0x18 => {
                counter.control = value;
                counter.started_ns = if value & 0x10 != 0 { now } else { counter.started_ns };
            }
            0x24..0x30 => counter.interval = value & self.mask(),
            0x60..0x6C => counter.enabled = value,
            _ => panic!("write {offset:#x}"),
        }
    }
}

/// Asserts that the clock tells the model's time, but for the readings' own duration, a step and 10 in 10^9.
fn check(clock: &Clock<&Model>, model: &Model, start_ns: u64) {
    let before = model.now_ns.get() - start_ns;
    let told = clock.now_ns();
    let after = model.now_ns.get() - start_ns;
    let slack = 130 + 3 * model.access_ns + after / 100_000_000;
    assert!(told + slack >= before && told <= after + slack, "{told} is not in {before}..{after}");
}

fn tells_the_time(width: u32, gaps_ms: &[u64]) {
    let model = Model::new(width);
    let clock = Clock::new(&model, HZ);
    clock.start(HZ);
    let start_ns = model.counters.borrow()[0].started_ns;
    for round in 0..2_000 {
        model.pass(gaps_ms[round % gaps_ms.len()] * MS + round as u64 * 977);
        check(&clock, &model, start_ns);
    }
}

#[test]
fn narrow_counters_tell_the_time_after_any_gap_up_to_the_longest() {
    tells_the_time(16, &[0, 0, 0, 1, 3, 4, 7, 8, 12, 33, 500, 5_000, 15_000, 0]);
}

#[test]
fn wide_counters_tell_the_time_after_any_gap_up_to_the_longest() {
    tells_the_time(32, &[0, 0, 1, 100, 10_000, 30_000, 0]);
}

#[test]
fn a_reading_that_is_interrupted_is_made_again() {
    for stalled in 0..12 {
        let model = Model::new(16);
        let clock = Clock::new(&model, HZ);
        clock.start(HZ);
        let start_ns = model.counters.borrow()[0].started_ns;
        model.stall.set((model.accesses.get() + stalled, 50 * MS));
        for _ in 0..6 {
            check(&clock, &model, start_ns);
        }
    }
}

#[test]
fn the_longest_gap_is_what_the_page_says() {
    for (width, at_least, at_most) in [(16, 15_000 * MS, 17_000 * MS), (32, 31_000 * MS, 33_000 * MS)] {
        let model = Model::new(width);
        let clock = Clock::new(&model, HZ);
        clock.start(HZ);
        assert!((at_least..at_most).contains(&clock.gap_ns_max()), "{}", clock.gap_ns_max());
    }
}

#[test]
fn an_alarm_comes_not_before_its_time() {
    for width in [16, 32] {
        let model = Model::new(width);
        let alarm = Alarm::new(&model, 1);
        alarm.set(2 * MS, HZ);
        model.pass(2 * MS - 10_000);
        assert!(!model.is_raised(1));
        model.pass(20_000);
        assert!(model.is_raised(1));
        alarm.clear();
        assert!(!model.is_raised(1));
    }
}

#[test]
fn an_alarm_too_far_away_comes_when_the_counter_can_count_no_longer() {
    let model = Model::new(16);
    let alarm = Alarm::new(&model, 0);
    alarm.set(60_000 * MS, HZ);
    model.pass(9 * MS);
    assert!(model.is_raised(0));
}

#[test]
fn a_clock_that_is_started_again_with_the_right_rate_tells_the_time() {
    let model = Model::new(32);
    let clock = Clock::new(&model, HZ / 2);
    clock.start(HZ / 2);
    model.pass(MS);
    clock.start(HZ);
    assert_eq!(clock.input_hz(), HZ);
    let start_ns = model.counters.borrow()[0].started_ns;
    model.pass(5 * MS);
    check(&clock, &model, start_ns);
}
