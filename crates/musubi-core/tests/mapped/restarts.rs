//! Restarts of either side, at every step, twice before the other looks, and of both.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};
use musubi_core::layout::{self, Part, root, rx, tx};

use crate::world::{
    BLOCKS, DOWN, DROPPING, MASTER, Manual, OTHER, PLAN, Patience, Peer, REMOTE, Receiving, Sending, UP, World, kill,
    receiving, send, sending, take,
};

fn master(world: &World) -> (Peer<'_>, Sending<'_>) {
    let participant = world.attach(MASTER);
    let end = sending(&participant, DOWN);
    (participant, end)
}

fn remote(world: &World) -> (Peer<'_>, Receiving<'_>) {
    let participant = world.attach(REMOTE);
    let end = receiving(&participant, DOWN);
    (participant, end)
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_dead_receivers_successor_goes_on_with_the_next_message() {
    // The receiver dies after so many messages, with the last one in its hands or not.
    for (count, keeps) in (0..=3).flat_map(|count| [(count, false), (count, true)]) {
        let world = World::new(3);
        let (_master, tx) = master(&world);
        let (first, rx) = remote(&world);
        (0..3).for_each(|number| assert!(send(&tx, number)));
        let mut numbers: Vec<u32> = (0..count).filter_map(|at| take(&rx, keeps && at + 1 == count)).collect();
        kill(first, rx);
        let (_second, rx) = remote(&world);
        assert_eq!(tx.wait(Deadline::Poll), Err(Error::PeerGone));
        assert_eq!(tx.wait(Deadline::Poll), Err(Error::Timeout), "reported once");
        assert!(tx.usage().connected);
        assert!(send(&tx, 3));
        numbers.extend(std::iter::from_fn(|| take(&rx, false)));
        assert_eq!(numbers, [0, 1, 2, 3], "died after {count}");
        assert_eq!(tx.usage().free, BLOCKS, "every block has come back");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_dead_senders_messages_come_before_those_of_its_successor() {
    // The sender dies after so many messages, of which the receiver has taken so many.
    for (sent, taken) in [(0, 0), (1, 0), (1, 1), (4, 0), (4, 2), (4, 4)] {
        let world = World::new(3);
        let (_remote, rx) = remote(&world);
        let (first, tx) = master(&world);
        (0..sent).for_each(|number| assert!(send(&tx, number)));
        let mut numbers: Vec<u32> = (0..taken).filter_map(|_| take(&rx, false)).collect();
        assert_eq!(numbers.len(), taken as usize);
        let _ = rx.usage();
        kill(first, tx);
        let (_second, tx) = master(&world);
        (sent..sent + 2).for_each(|number| assert!(send(&tx, number)));
        numbers.extend(std::iter::from_fn(|| take(&rx, false)));
        let _ = tx.usage();
        numbers.extend(std::iter::from_fn(|| take(&rx, false)));
        assert_eq!(numbers, Vec::from_iter(0..sent + 2), "died after {sent}, {taken} taken");
        assert_eq!(rx.wait(Deadline::Poll), Err(Error::PeerGone));
        assert_eq!(rx.wait(Deadline::Poll), Err(Error::Timeout), "reported once");
    }
}

#[test]
fn a_block_of_a_dead_sender_can_still_be_read_and_freed() {
    let world = World::new(5);
    let (remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    assert!(send(&tx, 7));
    let kept = rx.dequeue().unwrap();
    kill(first, tx);
    let (second, tx) = master(&world);
    assert!(send(&tx, 8));
    assert_eq!(take(&rx, false), Some(8));
    let mut bytes = [0; 4];
    assert_eq!((kept.copy_to(0, &mut bytes), bytes), (4, [7, 0, 0, 0]));
    // While we hold it, the bank must not be taken.
    remote.beat();
    kill(second, tx);
    let (third, tx) = master(&world);
    assert_eq!(world.forced(MASTER), 1, "nobody released it in time");
    assert!(rx.free(kept).is_ok());
    remote.beat();
    kill(third, tx);
    let (_fourth, _tx) = master(&world);
    assert_eq!(world.forced(MASTER), 1, "now it was released");
}

#[test]
fn a_sender_that_was_restarted_twice_before_we_looked_loses_nothing_we_knew() {
    let world = World::new(4);
    let (remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    assert!(send(&tx, 0) && send(&tx, 1));
    remote.beat();
    kill(first, tx);
    let (second, tx) = master(&world);
    assert!(send(&tx, 2) && send(&tx, 3));
    kill(second, tx);
    // The receiver looks for the first time while the third waits for it: here it drains before.
    let mut numbers: Vec<u32> = std::iter::from_fn(|| take(&rx, false)).collect();
    remote.beat();
    let (_third, tx) = master(&world);
    assert_eq!(world.forced(MASTER), 0);
    assert!(send(&tx, 4));
    numbers.extend(std::iter::from_fn(|| take(&rx, false)));
    let _ = tx.usage();
    numbers.extend(std::iter::from_fn(|| take(&rx, false)));
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn messages_of_a_bank_that_was_taken_by_force_are_not_delivered_as_new_ones() {
    let world = World::new(4);
    let (_remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    assert!(send(&tx, 0) && send(&tx, 1));
    assert_eq!(take(&rx, false), Some(0));
    kill(first, tx);
    let (second, tx) = master(&world);
    assert!(send(&tx, 2));
    kill(second, tx);
    let (_third, tx) = master(&world);
    assert_eq!(world.forced(MASTER), 1);
    let _ = rx.wait(Deadline::Poll);
    let _ = tx.usage();
    assert!(send(&tx, 3));
    let numbers: Vec<u32> = std::iter::from_fn(|| take(&rx, false)).collect();
    // What the first had queued is gone, what the second had queued is not.
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn resetting_takes_nothing_from_a_bank_that_has_another_owner() {
    let world = World::new(4);
    let (remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    assert!(send(&tx, 0));
    assert_eq!(take(&rx, true), Some(0));
    kill(first, tx);
    let (second, tx) = master(&world);
    let _ = rx.wait(Deadline::Poll);
    kill(second, tx);
    let (_third, tx) = master(&world);
    assert_eq!(world.forced(MASTER), 1);
    let _ = (rx.wait(Deadline::Poll), tx.usage());
    // The third's second message lies where the first's next one would.
    assert!(send(&tx, 1) && send(&tx, 2));
    rx.reset();
    let mut end = 0;
    let find = |part, offset, _| end = if part == Part::Rx(DOWN) { offset / 4 } else { end };
    layout::walk(&PLAN, 1, find).unwrap();
    let bank = layout::bank_offset(&PLAN, 1, remote.epoch()).unwrap() as u32 / 4;
    let refused = &world.slot(REMOTE)[(bank + end + rx::REFUSED) as usize];
    assert_eq!(refused.load(Ordering::Relaxed), 0, "nobody has sent anything that cannot be");
    assert_eq!((rx.usage().held, tx.usage().free), (0, BLOCKS));
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn a_receiver_whose_place_cannot_be_read_any_more_gets_nothing_twice() {
    let world = World::new(4);
    let (_master, tx) = master(&world);
    let (first, rx) = remote(&world);
    assert!(send(&tx, 0) && send(&tx, 1) && send(&tx, 2));
    assert_eq!(take(&rx, false), Some(0));
    kill(first, rx);
    let (second, rx) = remote(&world);
    kill(second, rx);
    let (_third, rx) = remote(&world);
    assert_eq!(world.forced(REMOTE), 1);
    assert!(tx.usage().connected && tx.usage().queued == 0);
    assert!(send(&tx, 3));
    assert_eq!((take(&rx, false), take(&rx, false)), (Some(3), None));
    assert_eq!(tx.usage().free, BLOCKS);
}

#[test]
fn a_plan_that_drops_drops() {
    let world = World::new(3);
    let master = world.attach(MASTER);
    let tx = sending(&master, DROPPING);
    let first = world.attach(REMOTE);
    let rx = receiving(&first, DROPPING);
    assert!(send(&tx, 0) && send(&tx, 1) && send(&tx, 2));
    assert_eq!(take(&rx, false), Some(0));
    kill(first, rx);
    let second = world.attach(REMOTE);
    let rx = receiving(&second, DROPPING);
    assert_eq!(tx.usage().free, BLOCKS);
    assert!(send(&tx, 3));
    assert_eq!((take(&rx, false), take(&rx, false)), (Some(3), None));
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn both_can_die() {
    let world = World::new(4);
    let ((first, tx), (second, rx)) = (master(&world), remote(&world));
    assert!(send(&tx, 0) && send(&tx, 1));
    assert_eq!(take(&rx, false), Some(0));
    kill(first, tx);
    kill(second, rx);
    let ((_first, tx), (_second, rx)) = (master(&world), remote(&world));
    assert!(send(&tx, 2));
    let numbers: Vec<u32> = std::iter::from_fn(|| take(&rx, false)).collect();
    assert_eq!(numbers, [2], "what only their memory knew is gone with it");
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn epochs_wrap_past_zero_and_change_banks() {
    let mut world = World::new(9);
    world.first_epoch = u32::MAX - 2;
    let (remote, rx) = remote(&world);
    let mut epochs = Vec::new();
    for number in 0..6 {
        let (participant, tx) = master(&world);
        epochs.push(participant.epoch());
        let _ = (rx.wait(Deadline::Poll), tx.usage());
        assert!(send(&tx, number));
        assert_eq!(take(&rx, false), Some(number));
        let _ = rx.wait(Deadline::Poll);
        remote.beat();
        kill(participant, tx);
    }
    assert_eq!(epochs, [u32::MAX - 2, u32::MAX - 1, u32::MAX, 2, 3, 4]);
    assert_eq!(world.forced(MASTER), 0);
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn cold_memory_of_one_side_does_not_repeat_an_epoch_that_the_other_knows() {
    let world = World::new(4);
    let (_remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    assert!(send(&tx, 0));
    assert_eq!(take(&rx, false), Some(0));
    let epoch = first.epoch();
    kill(first, tx);
    // The Master's slot loses its contents.
    world.slot(MASTER).iter().for_each(|word| word.store(0xffff_ffff, Ordering::Relaxed));
    let (second, tx) = master(&world);
    assert_ne!(second.epoch() & 1, epoch & 1);
    let _ = (rx.wait(Deadline::Poll), tx.usage());
    assert!(send(&tx, 1));
    assert_eq!(take(&rx, false), Some(1));
}

#[test]
fn cold_memory_does_not_repeat_an_epoch_of_which_the_other_has_not_spoken_yet() {
    let world = World::new(4);
    let (remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    remote.beat();
    kill(first, tx);
    let (second, tx) = master(&world);
    assert!(send(&tx, 0));
    // It reads from the second already, but has not released the first since.
    assert_eq!(take(&rx, false), Some(0));
    let epoch = second.epoch();
    kill(second, tx);
    world.slot(MASTER).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let (third, tx) = master(&world);
    assert_ne!(third.epoch(), epoch);
    let _ = (rx.wait(Deadline::Poll), tx.usage());
    assert!(send(&tx, 1));
    assert_eq!((take(&rx, false), take(&rx, false)), (Some(1), None));
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn an_end_has_one_holder_and_a_sibling_takes_over() {
    let world = World::new(5);
    let (_master, tx) = master(&world);
    let (first, rx) = remote(&world);
    let other = world.attach(OTHER);
    assert_eq!(other.open_receiving(DOWN).err(), Some(Error::InUse));
    assert!(send(&tx, 0) && send(&tx, 1));
    assert_eq!(take(&rx, false), Some(0));
    drop((first, rx));
    let rx = receiving(&other, DOWN);
    assert!(tx.usage().connected);
    assert_eq!((take(&rx, false), take(&rx, false)), (Some(1), None));
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn leaving_is_seen_and_counted() {
    let world = World::new(3);
    let (master, tx) = master(&world);
    let (remote, rx) = remote(&world);
    assert_eq!((master.attached(1), remote.attached(0)), (1, 1));
    assert!(tx.usage().connected);
    drop(rx);
    assert!(tx.usage().connected, "a closed handle is not a lost end");
    let open = word_of(&world, REMOTE, remote.epoch(), Part::Rx(DOWN), rx::OPEN);
    assert_eq!(open.load(Ordering::Relaxed), 1);
    drop(remote);
    assert_eq!(open.load(Ordering::Relaxed), 0, "nobody takes it for open");
    assert_eq!((master.attached(1), master.attached(0)), (0, 1));
    assert_eq!(tx.wait(Deadline::Poll), Err(Error::PeerGone));
    assert!(!tx.usage().connected);
}

/// A small generator; tests must not depend on the day.
pub struct Dice(pub u32);

impl Dice {
    pub fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % sides
    }
}

/// Random play: sends, takes, kills of the sides that may die. Gives what was sent and what was received.
fn play(seed: u32, sender_dies: bool, receiver_dies: bool) -> (Vec<u32>, Vec<u32>, u32) {
    const STEPS: u32 = if cfg!(miri) { 60 } else { 400 };
    let world = World::new(STEPS as usize + 2);
    let mut dice = Dice(seed);
    let (mut tx, mut rx) = (Some(master(&world)), Some(remote(&world)));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for step in 0..STEPS {
        let ((from, sending), (to, receiving)) = (tx.take().unwrap(), rx.take().unwrap());
        match dice.roll(12) {
            0..=3 => sent.extend(send(&sending, step).then_some(step)),
            4..=7 => received.extend(take(&receiving, false)),
            8 => from.beat(),
            9 => to.beat(),
            10 if sender_dies && dice.roll(3) == 0 => {
                kill(from, sending);
                tx = Some(master(&world));
                rx = Some((to, receiving));
                continue;
            }
            11 if receiver_dies && dice.roll(3) == 0 => {
                kill(to, receiving);
                rx = Some(remote(&world));
                tx = Some((from, sending));
                continue;
            }
            _ => world.advance(u64::from(dice.roll(1_000_000))),
        }
        (tx, rx) = (Some((from, sending)), Some((to, receiving)));
    }
    let ((_from, sending), (_to, receiving)) = (tx.unwrap(), rx.unwrap());
    for _ in 0..4 {
        let _ = (sending.usage(), receiving.usage());
        received.extend(std::iter::from_fn(|| take(&receiving, false)));
    }
    (sent, received, world.forced(MASTER) + world.forced(REMOTE))
}

const GAMES: u32 = if cfg!(miri) { 2 } else { 300 };

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn nothing_is_lost_or_repeated_while_one_side_lives() {
    let mut unforced = 0;
    for seed in 0..GAMES {
        for (sender_dies, receiver_dies) in [(false, false), (true, false), (false, true)] {
            let (sent, received, forced) = play(seed, sender_dies, receiver_dies);
            assert!(received.is_sorted_by(|one, next| one < next), "seed {seed}: repeated or out of order");
            assert!(received.iter().all(|number| sent.contains(number)), "seed {seed}: made up");
            if forced == 0 {
                unforced += 1;
                assert_eq!(received, sent, "seed {seed}, {sender_dies} {receiver_dies}");
            }
        }
    }
    assert!(unforced > GAMES, "most games are without force");
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn nothing_is_repeated_whoever_dies() {
    for seed in 0..GAMES {
        let (sent, received, _) = play(seed, true, true);
        assert!(received.is_sorted_by(|one, next| one < next), "seed {seed}: repeated or out of order");
        assert!(received.iter().all(|number| sent.contains(number)), "seed {seed}: made up");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn two_threads_survive_restarts_of_the_sender() {
    const MESSAGES: u32 = if cfg!(miri) { 60 } else { 3_000 };
    const LIVES: u32 = if cfg!(miri) { 3 } else { 60 };
    let world: World<crate::waking::Real> = World::with(LIVES as usize + 2, crate::waking::hosts());
    let (done, patience) = (AtomicBool::new(false), Patience::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            for life in 1..=LIVES {
                let from = world.setup(REMOTE, 60_000_000_000);
                let tx = sending(&from, UP);
                while number < MESSAGES / LIVES * life {
                    patience.check("a block");
                    match send(&tx, number) {
                        true => number += 1,
                        false => drop(tx.allocate(Deadline::At(from.now_ns() + 1_000_000)).map(|loan| tx.free(loan))),
                    }
                }
                // The receiver must have met it, else its messages are nobody's.
                while !tx.usage().connected {
                    patience.check("the receiver");
                    from.sleep_until(from.now_ns() + 10_000);
                }
                kill(from, tx);
            }
            done.store(true, Ordering::SeqCst);
        });
        let to = world.setup(MASTER, 60_000_000_000);
        let rx = receiving(&to, UP);
        let mut next = 0;
        while next < MESSAGES / LIVES * LIVES {
            patience.check("a message");
            match take(&rx, false) {
                Some(number) => {
                    assert_eq!(number, next);
                    next += 1;
                }
                None => {
                    let _ = rx.wait(Deadline::At(to.now_ns() + 1_000_000));
                }
            }
            if next % 7 == 0 {
                to.beat();
            }
        }
    });
    assert!(done.load(Ordering::SeqCst));
    assert_eq!(world.forced(REMOTE), 0);
}

#[test]
fn storage_in_use_is_refused_and_can_be_used_again() {
    use musubi_core::mapped::{Memory, Participant, Setup, StorageLine, storage_lines};
    let plan = &crate::world::PLAN;
    let bytes = musubi_core::layout::mapped_bytes(plan).unwrap();
    let mut memory = vec![[0u64; 8]; bytes as usize / 64 + 1];
    let base = memory.as_mut_ptr().cast::<u8>();
    let base = base.wrapping_add(base.align_offset(64));
    let storage: Vec<_> = (0..storage_lines::<Manual>(plan, 0)).map(|_| StorageLine::new()).collect();
    let host = Manual::default();
    let attach = |storage| {
        // SAFETY: the memory is long enough, aligned, and reached through the participant only.
        let memory = unsafe { Memory::whole(base, plan, MASTER) }.unwrap();
        Participant::attach(Setup::new(plan, MASTER, &host, memory, storage))
    };
    for _ in 0..3 {
        let participant = attach(&storage).unwrap();
        assert_eq!(attach(&storage).err(), Some(Error::InUse));
        let end = sending(&participant, DOWN);
        drop(participant);
        assert_eq!(attach(&storage).err(), Some(Error::InUse), "an end keeps it");
        drop(end);
    }
    assert_eq!(attach(&storage[1..]).err(), Some(Error::Plan), "too little storage");
}

/// The word of a participant's own section of an incarnation.
fn word_of(world: &World, participant: u16, epoch: u32, part: Part, word: u32) -> &AtomicU32 {
    let domain = PLAN.domain_of(participant).unwrap();
    let bank = layout::bank_offset(&PLAN, domain, epoch).unwrap() as u32 / 4;
    let (first, _) = layout::place(&PLAN, domain, part).unwrap();
    &world.slot(participant)[(bank + first + word) as usize]
}

fn epoch_of(world: &World, participant: u16) -> u32 {
    world.slot(participant)[root::EPOCH as usize].load(Ordering::Relaxed)
}

fn released(world: &World, by: u16, of: u16) -> u32 {
    world.slot(by)[(root::RELEASED + u32::from(of)) as usize].load(Ordering::Relaxed)
}

/// A bank that our root has released may be cleared at any time, so nothing of it is used, whatever it claims.
#[test]
fn a_bank_that_was_released_is_not_used_again() {
    let world = World::new(4);
    let remote = world.attach(REMOTE);
    let first = world.attach(MASTER);
    remote.beat();
    let epoch = epoch_of(&world, MASTER);
    kill(first, ());
    let _second = world.attach(MASTER);
    (0..2).for_each(|_| remote.beat());
    assert_eq!(released(&world, REMOTE, MASTER), epoch_of(&world, MASTER));
    // Its bank claims a session with us, with nothing in it.
    let claim = |word, value| word_of(&world, MASTER, epoch, Part::Tx(DOWN), word).store(value, Ordering::Relaxed);
    claim(tx::LINK_PARTICIPANT, u32::from(REMOTE));
    claim(tx::LINK_EPOCH, epoch_of(&world, REMOTE));
    let rx = receiving(&remote, DOWN);
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::Timeout), "nobody was there who could be lost");
}

/// A bank that is used is not released until its last block has gone back and its messages were taken.
#[test]
fn a_bank_is_not_released_before_its_messages_were_taken() {
    let world = World::new(4);
    let (remote, rx) = remote(&world);
    let (first, tx) = master(&world);
    let epoch = epoch_of(&world, MASTER);
    assert!(rx.usage().connected && send(&tx, 0) && send(&tx, 1));
    kill(first, tx);
    let (_second, tx) = master(&world);
    assert!(send(&tx, 2));
    let beat = || (0..3).for_each(|_| remote.beat());
    beat();
    assert_eq!(released(&world, REMOTE, MASTER), epoch, "two messages are still there");
    assert_eq!(take(&rx, false), Some(0));
    let held = rx.dequeue().unwrap();
    assert_eq!(take(&rx, false), Some(2));
    beat();
    assert_eq!(released(&world, REMOTE, MASTER), epoch, "the program reads the last one");
    assert!(rx.free(held).is_ok());
    beat();
    assert_eq!(released(&world, REMOTE, MASTER), epoch_of(&world, MASTER));
}

/// What the former incarnation had released is not what the new one has: it has to meet everybody anew.
#[test]
fn a_warm_restart_releases_nothing_of_its_predecessors() {
    let world = World::new(5);
    let first = world.attach(MASTER);
    let remote = world.attach(REMOTE);
    let former = epoch_of(&world, MASTER);
    assert_eq!(released(&world, REMOTE, MASTER), former);
    kill(remote, ());
    kill(first, ());
    let _second = world.attach(MASTER);
    let present = epoch_of(&world, MASTER);
    let _remote = world.attach(REMOTE);
    assert_ne!(former, present);
    assert_eq!(released(&world, REMOTE, MASTER), present, "met as it is now");
    assert_eq!(released(&world, REMOTE, OTHER), 0, "nobody is there");
}
