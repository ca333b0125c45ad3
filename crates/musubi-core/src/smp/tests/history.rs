//! Failures of other kernels' locks as models that fail, and the same programs with our rules, which pass.

use std::vec::Vec;

use super::checker::{Model, explore, waits_for_ever};

/// ThreadX SMP #707: a first-come-first-served lock whose waiters stand in the queue with interrupts open. The handler of
/// a waiter's core wants the same lock and stands behind the task that it keeps from running.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Queue {
    /// Whether interrupts are masked before a core enters the queue: our rule.
    masks_first: bool,
    /// Who stands in the queue, the holder first: core, and 1 for its handler.
    queue: Vec<(usize, usize)>,
    cores: [Contexts; 2],
}

/// A core: its task and its handler, of which each takes the lock once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Contexts {
    /// For task and handler: 0 outside, 1 in the queue, 2 inside, 3 finished.
    at: [u8; 2],
    in_handler: bool,
    masked: bool,
}

impl Queue {
    fn new(masks_first: bool) -> Self {
        let core = Contexts { at: [0, 0], in_handler: false, masked: false };
        Queue { masks_first, queue: Vec::new(), cores: [core.clone(), core] }
    }

    /// What the running context of a core does next; `None` while it waits.
    fn step(&self, core: usize) -> Option<Self> {
        let mut state = self.clone();
        let own = &mut state.cores[core];
        let level = usize::from(own.in_handler);
        match own.at[level] {
            0 => {
                own.masked |= self.masks_first || level == 1;
                state.queue.push((core, level));
            }
            1 if self.queue.first() != Some(&(core, level)) => return None,
            1 => own.masked = true,
            2 => {
                state.queue.remove(0);
                own.masked = level == 1;
            }
            _ if level == 1 => {
                // The handler returns; the mask was open, or it would not have come.
                own.in_handler = false;
                own.masked = false;
                return Some(state);
            }
            _ => return None,
        }
        state.cores[core].at[level] += 1;
        Some(state)
    }

    fn interrupt(&self, core: usize) -> Option<Self> {
        let mut state = self.clone();
        let own = &mut state.cores[core];
        if own.masked || own.in_handler || own.at[1] != 0 {
            return None;
        }
        own.in_handler = true;
        own.masked = true;
        Some(state)
    }
}

impl Model for Queue {
    fn next(&self) -> Vec<Self> {
        (0..2).flat_map(|core| [self.step(core), self.interrupt(core)]).flatten().collect()
    }
    fn has_ended(&self) -> bool {
        self.cores.iter().all(|core| core.at == [3, 3] && !core.in_handler)
    }
    fn broken(&self) -> Option<&'static str> {
        let inside = self.cores.iter().flat_map(|core| core.at).filter(|&at| at == 2).count();
        (inside > 1).then_some("two inside")
    }
}

#[test]
#[cfg_attr(miri, ignore = "many states, and no unsafe code")]
fn a_queue_entered_with_interrupts_open_deadlocks() {
    let failure = explore(Queue::new(false)).unwrap_err();
    let last = failure.way().last().unwrap();
    assert!(failure.is_deadlock() && last.cores.iter().any(|core| core.in_handler && core.at == [1, 1]), "{last:?}");
    assert!(explore(Queue::new(true)).is_ok_and(|states| states > 50));
}

/// Zephyr #58086 and Uros #317: a core holds a lock and waits for other cores to confirm a flush, while one of them spins
/// for that lock with interrupts masked. Here each core takes the lock, has the others flush, and leaves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Flush<const CORES: usize> {
    /// Whether waiting loops serve what other cores ask: our rule.
    serves: bool,
    holder: Option<usize>,
    cores: [Flusher; CORES],
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Flusher {
    /// 0 outside, 1 masked and waiting for the lock, 2 inside, 3 waiting for the others, 4 finished with interrupts open.
    at: u8,
    /// Cores that have asked this one to flush and have no answer yet, as bits.
    asked: u8,
}

impl<const CORES: usize> Flush<CORES> {
    fn new(serves: bool) -> Self {
        Flush { serves, holder: None, cores: [const { Flusher { at: 0, asked: 0 } }; CORES] }
    }

    fn step(&self, core: usize) -> Option<Self> {
        let mut state = self.clone();
        let others_asked = self.cores.iter().any(|other| other.asked & 1 << core != 0);
        match self.cores[core].at {
            0 => {}
            1 if self.holder.is_some() => return None,
            1 => state.holder = Some(core),
            2 => (0..CORES).filter(|&other| other != core).for_each(|other| state.cores[other].asked |= 1 << core),
            3 if others_asked => return None,
            3 => state.holder = None,
            _ => return None,
        }
        state.cores[core].at += 1;
        Some(state)
    }

    /// The core flushes: in its handler where interrupts are open, or in a waiting loop that serves.
    fn serve(&self, core: usize) -> Option<Self> {
        let own = &self.cores[core];
        let open = matches!(own.at, 0 | 4);
        let in_loop = matches!(own.at, 1 | 3) && self.serves;
        if own.asked == 0 || !(open || in_loop) {
            return None;
        }
        let mut state = self.clone();
        state.cores[core].asked = 0;
        Some(state)
    }
}

impl<const CORES: usize> Model for Flush<CORES> {
    fn next(&self) -> Vec<Self> {
        (0..CORES).flat_map(|core| [self.step(core), self.serve(core)]).flatten().collect()
    }
    fn has_ended(&self) -> bool {
        self.cores.iter().all(|core| core.at == 4)
    }
}

#[test]
#[cfg_attr(miri, ignore = "many states, and no unsafe code")]
fn a_lock_spun_for_with_interrupts_masked_blocks_a_flush() {
    assert!(explore(Flush::<2>::new(false)).is_err_and(|failure| failure.is_deadlock()));
    assert!(explore(Flush::<3>::new(false)).is_err_and(|failure| failure.is_deadlock()));
    assert!(explore(Flush::<2>::new(true)).is_ok());
    assert!(explore(Flush::<4>::new(true)).is_ok_and(|states| states > 1000));
}

/// Linux/M32R's reader-writer lock: a word from which readers take one and writers all; who finds too little puts it back
/// and tries again. Readers that come and go by turns keep a writer out for ever.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Biased {
    readers_inside: [bool; 2],
    /// 0 outside, 1 waiting, 2 inside.
    writer: u8,
}

impl Model for Biased {
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for reader in 0..2 {
            if self.readers_inside[reader] || self.writer != 2 {
                let mut state = self.clone();
                state.readers_inside[reader] ^= true;
                next.push(state);
            }
        }
        if self.writer != 1 || self.readers_inside == [false; 2] {
            next.push(Biased { writer: (self.writer + 1) % 3, ..self.clone() });
        }
        next
    }
    fn has_ended(&self) -> bool {
        false
    }
    fn broken(&self) -> Option<&'static str> {
        (self.writer == 2 && self.readers_inside != [false; 2]).then_some("a reader beside the writer")
    }
}

/// Ours, phase-fair: a reader that finds a writer waits for the end of that writer's phase, and a writer for the readers
/// that were there before it. Counts are modulo 4, which two readers cannot confuse.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct PhaseFair {
    readers_in: u8,
    readers_out: u8,
    /// Whether a writer is present, and the number of its phase.
    writer_bits: u8,
    /// For each reader: 0 outside, 1 waiting for the end of the phase in the second field, 2 inside.
    readers: [(u8, u8); 2],
    /// 0 outside, 1 waiting for the readers up to the second field, 2 inside.
    writer: (u8, u8),
    phase: u8,
}

impl PhaseFair {
    fn new() -> Self {
        let readers = [(0, 0); 2];
        PhaseFair { readers_in: 0, readers_out: 0, writer_bits: 0, readers, writer: (0, 0), phase: 0 }
    }

    fn read(&self, reader: usize) -> Option<Self> {
        let mut state = self.clone();
        let own = &mut state.readers[reader];
        match own.0 {
            0 => {
                state.readers_in = (state.readers_in + 1) % 4;
                *own = if self.writer_bits == 0 { (2, 0) } else { (1, self.writer_bits) };
            }
            1 if self.writer_bits == own.1 => return None,
            1 => *own = (2, 0),
            _ => {
                state.readers_out = (state.readers_out + 1) % 4;
                *own = (0, 0);
            }
        }
        Some(state)
    }

    fn write(&self) -> Option<Self> {
        let mut state = self.clone();
        match self.writer {
            (0, _) => {
                state.writer_bits = 2 | self.phase;
                state.writer = (1, self.readers_in);
            }
            (1, before) if self.readers_out != before => return None,
            (1, _) => state.writer = (2, 0),
            _ => {
                state.writer_bits = 0;
                state.phase ^= 1;
                state.writer = (0, 0);
            }
        }
        Some(state)
    }
}

impl Model for PhaseFair {
    fn next(&self) -> Vec<Self> {
        [self.read(0), self.read(1), self.write()].into_iter().flatten().collect()
    }
    fn has_ended(&self) -> bool {
        false
    }
    fn broken(&self) -> Option<&'static str> {
        let read = self.readers.iter().any(|reader| reader.0 == 2);
        (self.writer.0 == 2 && read).then_some("a reader beside the writer")
    }
}

#[test]
#[cfg_attr(miri, ignore = "many states, and no unsafe code")]
fn readers_starve_the_writer_of_a_biased_lock_only() {
    let biased = Biased { readers_inside: [false; 2], writer: 0 };
    assert!(explore(biased.clone()).is_ok());
    assert!(waits_for_ever(biased, |state| state.writer == 1));
    assert!(explore(PhaseFair::new()).is_ok());
    assert!(!waits_for_ever(PhaseFair::new(), |state| state.writer.0 == 1));
    // A reader whose phase has ended may go on; while it may not, and no later writer has ended either, nobody circles.
    assert!(!waits_for_ever(PhaseFair::new(), |state| state.readers[0].0 == 1 && state.writer_bits != 0));
}
