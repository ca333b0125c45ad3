//! In which order a core is made ready, apart from what each step does, so that the host tests it.
//!
//! What you may rely on: what keeps the caches of cores alike is open before any core's cache is on, on the boot core and on
//! others.
//!
//! How it works: a line that a core allocates before the snoop control unit is on is not in that unit's tags; another core
//! then reads what memory has. Cortex-A9 MPCore manual (DDI 0407, clause 5.3.5) has the order: invalidate the core's caches (the
//! entry code does), invalidate and enable the unit, then set the core's SMP bit and switch its caches on. Linux enables the
//! unit late (`arch/arm/kernel/smp_scu.c`) and flushes the caches after it; here nothing has to be flushed.

/// What is done for a core; the architecture and the board do it, and a model in tests.
pub trait Steps {
    /// Opens what keeps the caches of several cores alike. Nothing is cached yet.
    fn open_coherence(&mut self);
    /// Vectors, memory map, the core's part in coherence, caches.
    fn prepare_core(&mut self);
    /// Console and clock.
    fn prepare_board(&mut self);
    /// Interrupts of this core.
    fn prepare_interrupts(&mut self);
}

/// The boot core.
pub fn boot_core(steps: &mut impl Steps) {
    steps.open_coherence();
    steps.prepare_core();
    steps.prepare_board();
    steps.prepare_interrupts();
}

/// A core that the boot core has started.
pub fn other_core(steps: &mut impl Steps) {
    steps.prepare_core();
    steps.prepare_interrupts();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores of a Cortex-A9 cluster: whether the snoop control unit is on, and whether a core has lines that the unit
    /// does not know of.
    #[derive(Default)]
    struct Cluster {
        snooped: bool,
        untracked: bool,
        cores_cached: u32,
        interrupted: u32,
    }

    impl Steps for Cluster {
        fn open_coherence(&mut self) {
            self.snooped = true;
        }
        fn prepare_core(&mut self) {
            self.cores_cached += 1;
            // From here on whatever the core touches may be in its cache.
            self.untracked |= !self.snooped;
        }
        fn prepare_board(&mut self) {
            assert!(self.cores_cached > 0, "the board's registers are mapped");
        }
        fn prepare_interrupts(&mut self) {
            self.interrupted += 1;
        }
    }

    #[test]
    fn no_cache_holds_a_line_that_the_snoop_control_unit_does_not_know() {
        let mut cluster = Cluster::default();
        boot_core(&mut cluster);
        other_core(&mut cluster);
        assert!(cluster.snooped && !cluster.untracked);
        assert_eq!((cluster.cores_cached, cluster.interrupted), (2, 2));
    }
}
