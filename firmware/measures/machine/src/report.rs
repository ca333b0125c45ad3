//! Runs the list and prints a line for each figure.

use musubi_measures::Machine;
use musubi_measures::list::{Item, Placement, measure};
use musubi_metal::{Program, println};

/// Repeats of an item; the count is exact, so few are enough.
const REPEATS: u32 = 200;
/// Repeats before those that are counted, so that memory is touched and code translated.
const WARM_UP: u32 = 8;

/// Measures every item on one core, then, if `two` starts the second core, those with a partner across both.
pub fn list<P: Program, M: Machine<N>, const N: usize>(two: impl FnOnce() -> bool) {
    let mut counts = (0, 0);
    for item in Item::ALL {
        one::<P, M, N>(item, Placement::OneCore, &mut counts);
    }
    if two() {
        for item in Item::ALL.into_iter().filter(|item| item.spans_cores()) {
            one::<P, M, N>(item, Placement::TwoCores, &mut counts);
        }
    }
    println!(P, "{} passed, {} failed", counts.0, counts.1);
}

fn one<P: Program, M: Machine<N>, const N: usize>(item: Item, placement: Placement, counts: &mut (u32, u32)) {
    let place = match placement {
        Placement::OneCore => "one_core",
        Placement::TwoCores => "two_cores",
    };
    measure::<M, N>(item, placement, WARM_UP);
    let cost = measure::<M, N>(item, placement, REPEATS);
    if cost.lost {
        println!(P, "FAILED {} {place}: one side waited in vain for the other", item.name());
        counts.1 += 1;
    } else {
        println!(P, "count {} {place} {:.2}", item.name(), cost.each);
        counts.0 += 1;
    }
}
