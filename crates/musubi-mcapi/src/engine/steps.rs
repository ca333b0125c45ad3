//! In tests: counts looks at tables and rounds of loops over them, to show what does not grow.

/// Outside tests this is nothing.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn step() {}

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts one.
#[cfg(test)]
pub(super) fn step() {
    STEPS.set(STEPS.get() + 1);
}

/// How many this thread has counted.
#[cfg(test)]
pub(super) fn count() -> u64 {
    STEPS.get()
}
