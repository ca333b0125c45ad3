//! loom models of the lock: every interleaving, and every stale value that the memory model allows, within the bound
//! on preemptions. Run with `MUSUBI_MUTANT` set to a ticket site, at least one of them must fail.

use std::sync::Arc;
use std::vec::Vec;

use super::*;
use crate::sync::{AtomicU32, Ordering};

/// Polls before a model's contender gives up, so that every model ends.
const POLLS: u32 = 3;

/// Lines of all contenders and the memory that the lock guards, which must always be a pair of equal words.
struct Room<const N: usize> {
    lines: [[AtomicU32; 4]; N],
    pair: [AtomicU32; 2],
    dead: Option<usize>,
}

#[derive(Clone, Copy)]
enum How {
    Try,
    Wait,
    /// Ignores the protocol and writes this into its own ticket.
    Garbage(u32),
}

impl<const N: usize> Room<N> {
    fn new(dead: Option<usize>) -> Arc<Self> {
        let word = |_| AtomicU32::new(0);
        let lines = core::array::from_fn(|_| core::array::from_fn(word));
        Arc::new(Room { lines, pair: core::array::from_fn(word), dead })
    }

    fn others(&self, me: usize) -> Vec<Contender<'_>> {
        let others = (0..N).filter(|&number| number != me);
        let contender = |number: usize| Contender {
            participant: number as u16,
            line: OwnWords::of(&self.lines[number]).as_peer(),
            alive: self.dead != Some(number),
        };
        others.map(contender).collect()
    }

    /// Contends once for each way; gives how often it was inside.
    fn contend(&self, me: usize, ways: &[How]) -> u32 {
        let others = self.others(me);
        let mut lock = Bakery { me: me as u16, own: OwnWords::of(&self.lines[me]), stage: Stage::Outside };
        ways.iter().map(|how| u32::from(self.contend_once(&mut lock, &others, *how))).sum()
    }

    fn contend_once(&self, lock: &mut Bakery<'_>, others: &[Contender<'_>], how: How) -> bool {
        let inside = match how {
            How::Try => lock.try_lock(others).is_ok(),
            How::Wait => lock.begin(others).is_ok() && self.wait(lock, others),
            How::Garbage(ticket) => {
                lock.own.set(TICKET, ticket);
                false
            }
        };
        if inside {
            self.change_pair();
            lock.unlock().unwrap();
        }
        inside
    }

    fn wait(&self, lock: &mut Bakery<'_>, others: &[Contender<'_>]) -> bool {
        for _ in 0..POLLS {
            if lock.poll(others) {
                return true;
            }
            loom::thread::yield_now();
        }
        lock.abandon();
        false
    }

    fn change_pair(&self) {
        let [first, second] = [0, 1].map(|index| self.pair[index].load(Ordering::Relaxed));
        assert_eq!(first, second, "another was inside");
        self.pair[0].store(first + 1, Ordering::Relaxed);
        self.pair[1].store(second + 1, Ordering::Relaxed);
    }
}

/// Runs one thread a contender (the model's own thread is the last) and checks that no change of the pair was lost.
fn explore<const N: usize>(dead: Option<usize>, prepare: fn(&Room<N>), ways: &'static [&'static [How]]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(move || {
        let room = Room::<N>::new(dead);
        prepare(&room);
        let (last, first) = ways.split_last().unwrap();
        let threads: Vec<_> = first
            .iter()
            .enumerate()
            .map(|(me, ways)| {
                let room = room.clone();
                loom::thread::spawn(move || room.contend(me, ways))
            })
            .collect();
        let inside = room.contend(first.len(), last);
        let inside: u32 = inside + threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>();
        assert_eq!(room.pair[0].load(Ordering::Relaxed), inside);
    });
}

fn fresh<const N: usize>(_: &Room<N>) {}

#[test]
fn loom_two_try() {
    explore::<2>(None, fresh, &[&[How::Try], &[How::Try]]);
}

#[test]
fn loom_two_try_twice() {
    explore::<2>(None, fresh, &[&[How::Try, How::Try], &[How::Try, How::Try]]);
}

#[test]
fn loom_two_wait() {
    explore::<2>(None, fresh, &[&[How::Wait], &[How::Wait]]);
}

#[test]
fn loom_wait_again_against_wait() {
    explore::<2>(None, fresh, &[&[How::Wait, How::Wait], &[How::Wait]]);
}

#[test]
fn loom_try_against_wait() {
    explore::<2>(None, fresh, &[&[How::Try, How::Wait], &[How::Wait]]);
}

#[test]
fn loom_three_try() {
    explore::<3>(None, fresh, &[&[How::Try], &[How::Try], &[How::Try]]);
}

#[test]
fn loom_three_mixed() {
    explore::<3>(None, fresh, &[&[How::Wait], &[How::Try], &[How::Wait]]);
}

#[test]
fn loom_dead_holder_is_passed_over() {
    let died_inside = |room: &Room<3>| {
        room.lines[2][TICKET as usize].store(FIRST, Ordering::Relaxed);
        room.lines[2][HOLDS as usize].store(1, Ordering::Relaxed);
        assert!(room.others(0)[1].died_inside());
    };
    explore::<3>(Some(2), died_inside, &[&[How::Try], &[How::Wait]]);
}

#[test]
fn loom_garbage_of_a_third_lets_no_two_in() {
    explore::<3>(None, fresh, &[&[How::Garbage(u32::MAX), How::Garbage(OUTSIDE)], &[How::Wait], &[How::Wait]]);
}
