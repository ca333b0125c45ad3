//! Four kernels of the NAS Parallel Benchmarks, class S: EP, IS, CG and MG.
//!
//! What you may rely on: each run is verified with the values that the benchmark publishes for its class.
//!
//! How it works: written from the specification, Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007 (1994):
//! section 2.3 for the generator, 2.2 for the kernels; problem sizes and verification values of class S from
//! the tables of the same and of NPB 2. The workers of a [`Team`] share nothing but what they swap.
//!
//! What it does not do: compare with others' figures; it shows that the layer under it costs little.

pub mod cg;
pub mod ep;
pub mod is;
mod kernels;
pub mod mg;
mod random;
mod reals;

pub use kernels::{Kernel, Workspaces};

/// Workers that compute together, seen by one of them.
pub trait Team {
    /// This worker's number, below [`Team::size`].
    fn rank(&self) -> usize;
    /// Number of workers, at most [`WORKERS_MAX`].
    fn size(&self) -> usize;
    /// Gives `give` to another worker and shows `take` what that one gives to us; both call it. `give` is not changed
    /// until the other has read it.
    ///
    /// # Errors
    /// [`Lost`] if the other does not come in time.
    fn swap(&mut self, with: usize, give: &[u32], take: &mut dyn FnMut(&[u32])) -> Result<(), Lost>;
}

/// Most workers of a team.
pub const WORKERS_MAX: usize = 8;

/// A worker did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// One worker that needs nobody.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Team for Alone {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn swap(&mut self, _: usize, _: &[u32], _: &mut dyn FnMut(&[u32])) -> Result<(), Lost> {
        Err(Lost)
    }
}

/// Waits until all are here.
///
/// # Errors
/// [`Lost`].
pub fn barrier(team: &mut impl Team) -> Result<(), Lost> {
    others(team).into_iter().take(team.size() - 1).try_for_each(|other| team.swap(other, &[], &mut |_| {}))
}

/// The other workers in an order in which pairs meet without waiting in a circle: by rounds of exclusive-or where that
/// gives a worker, which for teams of a power of two is a perfect matching in each round.
fn others(team: &impl Team) -> [usize; WORKERS_MAX] {
    let (rank, size) = (team.rank(), team.size());
    let mut order = [0; WORKERS_MAX];
    let partners = (1..size.next_power_of_two()).map(|round| rank ^ round).filter(|other| *other < size);
    for (place, other) in order.iter_mut().zip(partners) {
        *place = other;
    }
    order
}

/// A worker's share of `count` things: the first and the one behind the last.
fn share(worker: usize, size: usize, count: usize) -> (usize, usize) {
    (count * worker / size, count * (worker + 1) / size)
}

#[cfg(test)]
mod tests;
