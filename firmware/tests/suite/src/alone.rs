//! Locks of a core that is alone, and that they are whole as soon as another core runs.

use musubi_core::smp::{Lock, Locked, Processor, Ticket};
use musubi_metal::Machine;

use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{Suite, Target};

/// Before any other core is started.
pub fn first_cases<P: Target>() -> [Case<P>; 1] {
    crate::cases![a_lock_is_a_mask on 1]
}

/// As soon as others run.
pub fn cases<P: Target>() -> [Case<P>; 1] {
    crate::cases![with_others_a_lock_is_whole on 2]
}

fn a_lock_is_a_mask<P: Target>(_: &'static Suite<P>) -> Result<(), Failure> {
    ensure!(Machine::<P>::alone(), "no other core runs yet");
    let lock = Ticket::<Machine<P>>::new();
    let outer = lock.lock();
    ensure!(Machine::<P>::is_masked(), "the section is masked");
    ensure_eq!(lock.interested(), 0, "no number is drawn");
    let inner = lock.try_lock();
    ensure!(inner.is_some(), "nobody else can have it");
    drop(inner);
    ensure!(Machine::<P>::is_masked(), "still masked");
    drop(outer);
    ensure!(!Machine::<P>::is_masked(), "and open afterwards");
    let data = Locked::new(lock, 1);
    let guard = data.lock();
    ensure!(data.try_lock().is_none(), "data are not reached twice");
    drop(guard);
    ensure_eq!(data.try_lock().map_or(0, |guard| *guard), 1, "but again");
    Ok(())
}

fn with_others_a_lock_is_whole<P: Target>(_: &'static Suite<P>) -> Result<(), Failure> {
    ensure!(!Machine::<P>::alone(), "another core runs");
    let lock = Ticket::<Machine<P>>::new();
    for _ in 0..100 {
        let held = lock.lock();
        ensure!(Machine::<P>::is_masked(), "the section is masked");
        ensure_eq!(lock.interested(), 1, "a number is drawn");
        ensure!(lock.try_lock().is_none(), "it is taken");
        drop(held);
        ensure!(!Machine::<P>::is_masked(), "and open afterwards");
        ensure_eq!(lock.interested(), 0, "it is given back");
    }
    Ok(())
}
