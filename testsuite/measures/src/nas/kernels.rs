//! The kernels as one list, so that what runs them on Linux and on images is the same.

use super::{Lost, Team, cg, ep, is, mg};

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Random numbers and sums.
    Ep,
    /// Sorting of integers.
    Is,
    /// Conjugate gradients.
    Cg,
    /// Multigrid.
    Mg,
}

impl Kernel {
    /// Every kernel.
    pub const ALL: [Kernel; 4] = [Kernel::Ep, Kernel::Is, Kernel::Cg, Kernel::Mg];

    /// The benchmark's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Ep => "EP",
            Kernel::Is => "IS",
            Kernel::Cg => "CG",
            Kernel::Mg => "MG",
        }
    }

    /// How often it runs in one timing, so that a timing takes some tenths of a second on a processor of today.
    pub const fn repeats(self) -> u32 {
        match self {
            Kernel::Ep => 1,
            Kernel::Is => 20,
            Kernel::Cg => 5,
            Kernel::Mg => 20,
        }
    }

    /// Makes a worker's share of the input; not part of what is timed.
    pub fn prepare(self, team: &impl Team, spaces: &mut Workspaces) {
        match self {
            Kernel::Ep => {}
            Kernel::Is => is::prepare(team, &mut spaces.is),
            Kernel::Cg => cg::prepare(team, &mut spaces.cg),
            Kernel::Mg => mg::prepare(team, &mut spaces.mg),
        }
    }

    /// Runs it [`Kernel::repeats`] times; tells whether every run gave the published values.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn run(self, team: &mut impl Team, spaces: &mut Workspaces) -> Result<bool, Lost> {
        let mut right = true;
        for _ in 0..self.repeats() {
            right &= match self {
                Kernel::Ep => ep::run(team)?.are_right(),
                Kernel::Is => is::run(team, &mut spaces.is)?.is_right(),
                Kernel::Cg => cg::run(team, &mut spaces.cg)?.is_right(),
                Kernel::Mg => mg::run(team, &mut spaces.mg)?.is_right(),
            };
        }
        Ok(right)
    }
}

/// A worker's memory for every kernel.
#[derive(Debug)]
pub struct Workspaces {
    is: is::Workspace,
    cg: cg::Workspace,
    mg: mg::Workspace,
}

impl Workspaces {
    /// Memory of which nothing was used.
    #[allow(clippy::new_without_default, reason = "it is a static, or large")]
    pub const fn new() -> Self {
        Self { is: is::Workspace::new(), cg: cg::Workspace::new(), mg: mg::Workspace::new() }
    }
}
