//! A peer that writes anything into its own slot at any time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _, SharedSegment};
use musubi_core::layout::{self, header, root};

use crate::restarts::Dice;
use crate::world::{BLOCKS, DOWN, MASTER, PLAN, REMOTE, UP, World, receiving, sending};

/// Rounds after which the peer attaches anew.
const LIFE: u32 = 50;
const ROUNDS: u32 = if cfg!(miri) { 150 } else { 60_000 };

/// Words that matter most: those of the root, the headers, and the first lines of the ends.
fn place(dice: &mut Dice, words: usize) -> usize {
    let section = layout::section_bytes(&PLAN, 1).unwrap() as usize / 4;
    match dice.roll(4) {
        0 => dice.roll(root::RELEASED + 3) as usize,
        1 => 1024 + dice.roll(2) as usize * section + dice.roll(header::WORDS) as usize,
        2 => 1024 + dice.roll(2) as usize * section + dice.roll(section as u32) as usize,
        _ => dice.roll(words as u32) as usize,
    }
}

fn value(dice: &mut Dice, former: u32) -> u32 {
    match dice.roll(6) {
        0 => dice.roll(8),
        1 => former.wrapping_add(1),
        2 => former ^ 1 << dice.roll(32),
        3 => u32::MAX - dice.roll(3),
        4 => 0,
        _ => dice.roll(0x1_0000) << 16 | dice.roll(0x1_0000),
    }
}

fn scribble(slot: &[AtomicU32], dice: &mut Dice) {
    let word = &slot[place(dice, slot.len())];
    word.store(value(dice, word.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// Puts back what makes the peer believed.
fn mend(slot: &[AtomicU32], sound: &[u32], dice: &mut Dice) {
    let restored: &mut dyn Iterator<Item = usize> = match dice.roll(2) {
        0 => &mut (0..root::RELEASED as usize),
        _ => &mut (1024..slot.len()),
    };
    restored.for_each(|word| slot[word].store(sound[word], Ordering::Relaxed));
}

/// The peer attaches anew and behaves for a while. Gives what its slot then holds; its own side is not what is tested.
fn live(world: &World) -> Vec<u32> {
    let remote = world.attach(REMOTE);
    let (rx, tx) = (receiving(&remote, DOWN), sending(&remote, UP));
    (0..3).for_each(|number| assert!(crate::world::send(&tx, number)));
    let _ = rx.wait(Deadline::Poll);
    crate::world::kill(remote, (rx, tx));
    world.slot(REMOTE).iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn whatever_a_peer_writes_every_call_ends_and_stays_inside() {
    let world = World::new(2 + (ROUNDS / LIFE) as usize);
    let master = world.attach(MASTER);
    let (tx, rx) = (sending(&master, DOWN), receiving(&master, UP));
    let segment = master.open_segment(0, Deadline::Poll).unwrap();
    let slot = world.slot(REMOTE);
    let (mut dice, mut taken, mut sound) = (Dice(1), 0u32, Vec::new());
    for round in 0..ROUNDS {
        if round % LIFE == 0 {
            sound = live(&world);
        }
        scribble(slot, &mut dice);
        if round % 16 == 0 {
            mend(slot, &sound, &mut dice);
        }
        match dice.roll(12) {
            0 => drop(crate::world::send(&tx, round)),
            1 => {
                if let Ok(received) = rx.dequeue() {
                    taken += 1;
                    assert!(received.len() <= rx.block_bytes() && received.block() < BLOCKS);
                    let _ = received.copy_to(0, &mut [0; 64]);
                    // A hostile root may have ended the lane meanwhile.
                    let _ = rx.free(received);
                }
            }
            2 => drop(tx.wait(Deadline::Poll)),
            3 => drop(rx.wait(Deadline::Poll)),
            4 => master.beat(),
            5 => assert!(tx.usage().free <= BLOCKS),
            6 => assert!(rx.usage().held <= 3 * BLOCKS),
            7 => drop(segment.try_lock().map(|()| segment.unlock())),
            8 => rx.notify(),
            9 if round % 7 == 0 => (tx.reset(), rx.reset()).0,
            10 => drop(rx.wait(Deadline::At(master.now_ns() + 100_000))),
            11 => drop(segment.lock(Deadline::Poll).map(|()| segment.unlock())),
            _ => assert!(master.attached(1) <= 2),
        }
    }
    assert!(taken > 0, "the peer was believed now and then");
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn attaching_ends_whatever_the_peers_say() {
    let attempts = if cfg!(miri) { 5 } else { 200 };
    let world = World::new(2 * attempts + 1);
    let remote = world.attach(REMOTE);
    let mut dice = Dice(3);
    for _ in 0..attempts {
        (0..50).for_each(|_| scribble(world.slot(REMOTE), &mut dice));
        let master = world.attach(MASTER);
        let before = master.now_ns();
        assert_ne!(master.epoch(), 0);
        master.beat();
        assert!(master.now_ns() - before < 1_000_000_000);
    }
    std::mem::forget(remote);
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_root_that_changes_at_every_look_holds_nobody_up() {
    if cfg!(miri) {
        return;
    }
    let world: World<crate::waking::Real> = World::with(3, crate::waking::hosts());
    let remote = world.setup(REMOTE, 1_000_000);
    let master = world.setup(MASTER, 1_000_000);
    let (tx, rx) = (sending(&master, DOWN), receiving(&master, UP));
    let stop = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let slot = world.slot(REMOTE);
            while stop.load(Ordering::Relaxed) == 0 {
                let word = &slot[root::EPOCH as usize];
                word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                slot[root::BEAT as usize].fetch_add(1, Ordering::Relaxed);
                let bank = 1024 + header::EPOCH as usize;
                slot[bank].store(word.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        for _ in 0..5_000 {
            let _ = (tx.wait(Deadline::Poll), rx.wait(Deadline::Poll), tx.usage(), rx.usage());
            let _ = (rx.dequeue().is_ok(), master.attached(1));
            master.beat();
        }
        stop.store(1, Ordering::Relaxed);
    });
    std::mem::forget(remote);
}
