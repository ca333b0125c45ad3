//! The kernels alone and in teams of threads.

extern crate std;

use std::boxed::Box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::vec::Vec;

use super::*;

/// A workspace on its way into a box lies on the stack, more than once without optimization.
const STACK_BYTES: usize = 16 << 20;

/// A worker of a team of threads, with a pipe to and from each other.
struct Worker {
    rank: usize,
    to: Vec<Option<Sender<Vec<u32>>>>,
    from: Vec<Option<Receiver<Vec<u32>>>>,
}

impl Team for Worker {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.to.len()
    }
    fn swap(&mut self, with: usize, give: &[u32], take: &mut dyn FnMut(&[u32])) -> Result<(), Lost> {
        let to = self.to[with].as_ref().ok_or(Lost)?;
        to.send(give.to_vec()).map_err(|_| Lost)?;
        take(&self.from[with].as_ref().ok_or(Lost)?.recv().map_err(|_| Lost)?);
        Ok(())
    }
}

fn team_of<R: Send>(size: usize, work: impl Fn(Worker) -> R + Sync) -> Vec<R> {
    let mut workers: Vec<Worker> = (0..size).map(|rank| Worker { rank, to: Vec::new(), from: Vec::new() }).collect();
    for worker in &mut workers {
        worker.to.resize_with(size, || None);
        worker.from.resize_with(size, || None);
    }
    for (a, b) in (0..size).flat_map(|a| (0..size).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let (to, from) = channel();
        workers[a].to[b] = Some(to);
        workers[b].from[a] = Some(from);
    }
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |worker| {
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || work(worker)).unwrap()
        };
        let threads: Vec<_> = workers.into_iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn is_has_the_published_ranks_in_teams_of_all_sizes() {
    for size in 1..=5 {
        let outcomes = team_of(size, |mut worker| {
            let mut space = Box::new(is::Workspace::new());
            is::prepare(&worker, &mut space);
            let first = is::run(&mut worker, &mut space).unwrap();
            assert_eq!(is::run(&mut worker, &mut space).unwrap(), first, "again");
            first
        });
        assert!(outcomes.iter().all(is::Outcome::is_right), "{size}: {outcomes:?}");
    }
}

#[test]
fn a_wrong_key_is_noticed() {
    let mut space = Box::new(is::Workspace::new());
    assert!(!is::run(&mut Alone, &mut space).unwrap().is_right(), "keys were not made");
}

#[test]
fn ep_does_not_depend_on_the_number_of_workers() {
    let alone = ep::run_of(&mut Alone, 20).unwrap();
    assert!(!alone.are_right(), "fewer pairs have other sums");
    for size in [2, 3] {
        let sums = team_of(size, |mut worker| ep::run_of(&mut worker, 20).unwrap());
        for sum in sums {
            assert_eq!(sum.rings, alone.rings);
            assert!((sum.x - alone.x).abs() < 1e-6 && (sum.y - alone.y).abs() < 1e-6);
        }
    }
}

#[test]
fn ep_has_the_published_sums() {
    let sums = team_of(2, |mut worker| ep::run(&mut worker).unwrap());
    assert!(sums.iter().all(ep::Sums::are_right), "{sums:?}");
    let all: u64 = sums[0].rings.iter().sum();
    assert_eq!(all, 13_176_389, "published count of class S");
}

#[test]
fn cg_has_the_published_value_in_teams_of_all_sizes() {
    for size in 1..=5 {
        let outcomes = team_of(size, |mut worker| {
            let mut space = Box::new(cg::Workspace::new());
            cg::prepare(&worker, &mut space);
            let first = cg::run(&mut worker, &mut space).unwrap();
            assert_eq!(cg::run(&mut worker, &mut space).unwrap(), first, "again");
            first
        });
        assert!(outcomes.iter().all(cg::Outcome::is_right), "{size}: {outcomes:?}");
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0] && outcome.rest < 1e-10), "{size}: {outcomes:?}");
    }
}

#[test]
fn mg_has_the_published_value_in_teams_of_all_sizes() {
    for size in 1..=5 {
        let outcomes = team_of(size, |mut worker| {
            let mut space = Box::new(mg::Workspace::new());
            mg::prepare(&worker, &mut space);
            let first = mg::run(&mut worker, &mut space).unwrap();
            assert_eq!(mg::run(&mut worker, &mut space).unwrap(), first, "again");
            first
        });
        assert!(outcomes.iter().all(mg::Outcome::is_right), "{size}: {outcomes:?}");
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{size}: {outcomes:?}");
    }
}

#[test]
fn a_matrix_or_charges_that_were_not_made_are_noticed() {
    let right = team_of(1, |mut worker| {
        let matrix = cg::run(&mut worker, &mut Box::new(cg::Workspace::new())).unwrap().is_right();
        let charges = mg::run(&mut worker, &mut Box::new(mg::Workspace::new())).unwrap().is_right();
        (matrix, charges)
    });
    assert_eq!(right, [(false, false)]);
}
