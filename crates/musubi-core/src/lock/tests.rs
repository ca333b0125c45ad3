//! Properties of the lock where each operation is one step; what happens inside the steps is in `models`.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::guarantee::tests::{cases, length};
use crate::layout::ticket::WORDS;
use crate::sync::{AtomicU32, Ordering};

const CONTENDERS: usize = 5;

/// Lines of all contenders, as the sections have them.
struct Room {
    lines: Vec<[AtomicU32; WORDS as usize]>,
}

impl Room {
    fn new() -> Self {
        Room { lines: (0..CONTENDERS).map(|_| core::array::from_fn(|_| AtomicU32::new(0))).collect() }
    }

    fn lock(&self, me: usize) -> Bakery<'_> {
        Bakery::new(me as u16, OwnWords::of(&self.lines[me]))
    }

    /// Everybody's line; a contender passes over its own.
    fn all(&self, alive: &[bool; CONTENDERS]) -> Vec<Contender<'_>> {
        let line = |number: usize| OwnWords::of(&self.lines[number]).as_peer();
        (0..CONTENDERS)
            .map(|number| Contender { participant: number as u16, line: line(number), alive: alive[number] })
            .collect()
    }

    fn word(&self, number: usize, word: u32) -> u32 {
        self.lines[number][word as usize].load(Ordering::Relaxed)
    }

    fn words(&self) -> Vec<u32> {
        self.lines.iter().flatten().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

const ALL_ALIVE: [bool; CONTENDERS] = [true; CONTENDERS];

#[test]
fn unlock_without_lock_changes_nothing() {
    let room = Room::new();
    let (mut first, mut second) = (room.lock(0), room.lock(1));
    let all = room.all(&ALL_ALIVE);
    assert_eq!(first.try_lock(&all), Ok(()));
    second.begin(&all).unwrap();
    let before = room.words();
    assert_eq!(second.unlock(), Err(Error::NotHeld), "waiting is not holding");
    assert_eq!(room.lock(2).unlock(), Err(Error::NotHeld));
    assert_eq!(second.begin(&all), Err(Error::Locked), "began already");
    first.abandon();
    assert_eq!(room.words(), before);
    assert_eq!(first.unlock(), Ok(()));
    assert_eq!(first.unlock(), Err(Error::NotHeld), "once");
    assert!(second.poll(&all));
}

#[test]
fn who_waits_goes_before_who_tries() {
    let room = Room::new();
    let (mut holder, mut waiter, mut other) = (room.lock(0), room.lock(1), room.lock(2));
    let all = room.all(&ALL_ALIVE);
    holder.try_lock(&all).unwrap();
    waiter.begin(&all).unwrap();
    holder.unlock().unwrap();
    assert_eq!(other.try_lock(&all), Err(Error::Locked));
    assert_eq!(holder.try_lock(&all), Err(Error::Locked));
    assert!(waiter.poll(&all));
}

#[test]
fn the_dead_are_passed_over_and_named() {
    let room = Room::new();
    let mut alive = ALL_ALIVE;
    room.lock(3).try_lock(&room.all(&alive)).unwrap();
    let mut waiter = room.lock(1);
    waiter.begin(&room.all(&alive)).unwrap();
    assert!(!waiter.poll(&room.all(&alive)));
    assert!(!room.all(&alive)[3].died_inside());
    alive[3] = false;
    assert!(waiter.poll(&room.all(&alive)));
    assert!(room.all(&alive)[3].died_inside());
    waiter.unlock().unwrap();
    assert_eq!(room.lock(0).try_lock(&room.all(&alive)), Ok(()));
}

#[test]
fn without_a_number_one_waits_and_draws_later() {
    let room = Room::new();
    let all = room.all(&ALL_ALIVE);
    let last = &room.lines[4][TICKET as usize];
    last.store(u32::MAX - 1, Ordering::Relaxed);
    let (mut placed, mut unplaced) = (room.lock(1), room.lock(2));
    placed.begin(&all).unwrap();
    unplaced.begin(&all).unwrap();
    assert_eq!((room.word(1, TICKET), room.word(2, TICKET)), (u32::MAX, OUTSIDE));
    assert!(!unplaced.poll(&all) && !placed.poll(&all));
    last.store(OUTSIDE, Ordering::Relaxed);
    assert!(!unplaced.poll(&all) && placed.poll(&all));
    placed.unlock().unwrap();
    assert!(unplaced.poll(&all));
    assert_eq!(room.word(2, TICKET), FIRST, "numbers begin anew");
}

#[test]
fn a_choosing_or_holding_peer_bounds_a_try() {
    let room = Room::new();
    let all = room.all(&ALL_ALIVE);
    for ticket in [CHOOSING, FIRST, 7, u32::MAX] {
        room.lines[4][TICKET as usize].store(ticket, Ordering::Relaxed);
        let mut lock = room.lock(1);
        assert_eq!(lock.try_lock(&all), Err(Error::Locked));
        // The claim too ends, where the peer shows its ticket only after it seemed free.
        assert!(!lock.claim(&all));
        assert_eq!(room.word(1, TICKET), OUTSIDE);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Try(usize),
    Begin(usize),
    Poll(usize),
    Abandon(usize),
    Unlock(usize),
    Die(usize),
    Return(usize),
    Garbage(usize, u32),
}

fn steps(garbage: bool) -> impl Strategy<Value = Vec<Step>> {
    let number = 0..CONTENDERS;
    let ticket = prop_oneof![0..6u32, any::<u32>(), Just(u32::MAX)];
    let step = prop_oneof![
        4 => number.clone().prop_map(Step::Try),
        4 => number.clone().prop_map(Step::Begin),
        8 => number.clone().prop_map(Step::Poll),
        1 => number.clone().prop_map(Step::Abandon),
        6 => number.clone().prop_map(Step::Unlock),
        u32::from(!garbage) => number.clone().prop_map(Step::Die),
        u32::from(!garbage) => number.clone().prop_map(Step::Return),
        4 * u32::from(garbage) => (number, ticket).prop_map(|(number, ticket)| Step::Garbage(number, ticket)),
    ];
    prop::collection::vec(step, 0..length(150))
}

/// What the lock promises: one holder, and a queue.
#[derive(Default)]
struct Model {
    holder: Option<usize>,
    queue: Vec<usize>,
    acquired: [u32; CONTENDERS],
    refused: [u32; CONTENDERS],
}

impl Model {
    fn is_outside(&self, me: usize) -> bool {
        self.holder != Some(me) && !self.queue.contains(&me)
    }

    fn try_lock(&mut self, me: usize) -> Result<(), Error> {
        if self.holder.is_some() || !self.queue.is_empty() {
            self.refused[me] += 1;
            return Err(Error::Locked);
        }
        self.enter(me);
        Ok(())
    }

    fn begin(&mut self, me: usize) -> Result<(), Error> {
        if !self.is_outside(me) {
            return Err(Error::Locked);
        }
        self.queue.push(me);
        Ok(())
    }

    fn poll(&mut self, me: usize) -> bool {
        if self.holder.is_none() && self.queue.first() == Some(&me) {
            self.queue.remove(0);
            self.enter(me);
        }
        self.holder == Some(me)
    }

    fn enter(&mut self, me: usize) {
        self.holder = Some(me);
        self.acquired[me] += 1;
    }

    fn abandon(&mut self, me: usize) {
        if self.queue.contains(&me) {
            self.queue.retain(|&waiting| waiting != me);
            self.refused[me] += 1;
        }
    }

    fn unlock(&mut self, me: usize) -> Result<(), Error> {
        self.holder.take_if(|holder| *holder == me).map(|_| ()).ok_or(Error::NotHeld)
    }

    fn die(&mut self, me: usize) {
        self.holder.take_if(|holder| *holder == me);
        self.queue.retain(|&waiting| waiting != me);
    }
}

proptest! {
    #![proptest_config(cases(250))]

    /// Step for step what a holder and a queue would do, with contenders that die and come back.
    #[test]
    fn agrees_with_a_holder_and_a_queue(steps in steps(false)) {
        let room = Room::new();
        let mut locks: Vec<_> = (0..CONTENDERS).map(|me| room.lock(me)).collect();
        let (mut alive, mut model) = (ALL_ALIVE, Model::default());
        for step in steps {
            let all = room.all(&alive);
            let before = room.words();
            match step {
                Step::Try(me) if alive[me] => prop_assert_eq!(locks[me].try_lock(&all), model.try_lock(me)),
                Step::Begin(me) if alive[me] => prop_assert_eq!(locks[me].begin(&all), model.begin(me)),
                Step::Poll(me) if alive[me] => prop_assert_eq!(locks[me].poll(&all), model.poll(me)),
                Step::Abandon(me) if alive[me] => {
                    locks[me].abandon();
                    model.abandon(me);
                }
                Step::Unlock(me) if alive[me] => {
                    let unlocked = locks[me].unlock();
                    prop_assert_eq!(unlocked, model.unlock(me));
                    prop_assert!(unlocked.is_ok() || room.words() == before);
                }
                Step::Die(me) if alive[me] => {
                    prop_assert_eq!(room.word(me, HOLDS) != 0, model.holder == Some(me));
                    alive[me] = false;
                    model.die(me);
                }
                Step::Return(me) if !alive[me] => {
                    locks[me] = room.lock(me);
                    alive[me] = true;
                }
                _ => {}
            }
            for me in (0..CONTENDERS).filter(|&me| alive[me]) {
                prop_assert_eq!(locks[me].holds(), model.holder == Some(me));
                prop_assert_eq!(room.word(me, TICKET) == OUTSIDE, model.is_outside(me));
            }
        }
        for me in 0..CONTENDERS {
            prop_assert_eq!(room.word(me, ACQUIRED), model.acquired[me]);
            prop_assert_eq!(room.word(me, REFUSED), model.refused[me]);
        }
    }

    /// Two of the contenders write garbage into their lines; of the others still at most one is inside, and they get in
    /// once the garbage is gone.
    #[test]
    fn garbage_lets_no_two_in(steps in steps(true)) {
        let room = Room::new();
        let mut locks: Vec<_> = (0..3).map(|me| room.lock(me)).collect();
        let all = room.all(&ALL_ALIVE);
        for step in steps {
            match step {
                Step::Garbage(number, ticket) => {
                    room.lines[3 + number % 2][TICKET as usize].store(ticket, Ordering::Relaxed);
                }
                Step::Try(me) => drop(locks[me % 3].try_lock(&all)),
                Step::Begin(me) => drop(locks[me % 3].begin(&all)),
                Step::Poll(me) => drop(locks[me % 3].poll(&all)),
                Step::Unlock(me) => drop(locks[me % 3].unlock()),
                Step::Abandon(me) => locks[me % 3].abandon(),
                Step::Die(_) | Step::Return(_) => {}
            }
            prop_assert!(locks.iter().filter(|lock| lock.holds()).count() <= 1);
        }
        (3..CONTENDERS).for_each(|number| room.lines[number][TICKET as usize].store(OUTSIDE, Ordering::Relaxed));
        for lock in &mut locks {
            lock.abandon();
            let _ = lock.unlock();
        }
        prop_assert_eq!(locks[0].try_lock(&all), Ok(()));
    }
}

/// Real threads on real memory: what loom cannot run for long.
#[test]
fn threads_exclude_each_other() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 100_000 };
    let (room, pair) = (Room::new(), [AtomicU32::new(0), AtomicU32::new(0)]);
    let start = std::sync::Barrier::new(2);
    let contend = |me: usize| {
        let (mut lock, all) = (room.lock(me), room.all(&ALL_ALIVE));
        start.wait();
        (0..ROUNDS).filter(|round| change_under_lock(&mut lock, &all, &pair, round % 4 == 0)).count()
    };
    let disturbed = std::thread::scope(|scope| {
        let other = scope.spawn(|| contend(1));
        contend(0) + other.join().unwrap()
    });
    assert_eq!(disturbed, 0, "changes that saw another inside");
    assert_eq!(pair[0].load(Ordering::Relaxed), 2 * ROUNDS, "no change was lost");
}

/// Changes the pair of words under the lock; gives whether another was inside.
fn change_under_lock(lock: &mut Bakery<'_>, all: &[Contender<'_>], pair: &[AtomicU32; 2], tries: bool) -> bool {
    if tries {
        spin_until(|| lock.try_lock(all).is_ok());
    } else {
        lock.begin(all).unwrap();
        spin_until(|| lock.poll(all));
    }
    let [first, second] = [0, 1].map(|index: usize| pair[index].load(Ordering::Relaxed));
    pair[0].store(first + 1, Ordering::Relaxed);
    pair[1].store(second + 1, Ordering::Relaxed);
    lock.unlock().unwrap();
    first != second
}

fn spin_until(mut done: impl FnMut() -> bool) {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
    let begin = std::time::Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "the lock is never free");
        (0..50).for_each(|_| std::hint::spin_loop());
    }
}

/// Whoever was passed once stays passed, so who waits for many looks at each only until it is past it.
#[test]
fn passed_once_stays_passed() {
    let room = Room::new();
    let all = room.all(&ALL_ALIVE);
    let ticket = |number: usize, ticket| room.lines[number][TICKET as usize].store(ticket, Ordering::Relaxed);
    ticket(4, FIRST);
    let mut lock = room.lock(2);
    lock.begin(&all).unwrap();
    assert_eq!(room.word(2, TICKET), FIRST + 1);
    assert!(!lock.poll(&all), "it waits for the last one");
    // The first, which was passed, lies about its number: it is not waited for again.
    ticket(0, FIRST);
    assert!(!lock.poll(&all));
    ticket(4, OUTSIDE);
    assert!(lock.poll(&all), "nobody who comes later comes first");
}

/// The numbers decide, and only between equal ones the participants' own; each of the two is refused in turn.
#[test]
fn the_smaller_number_stays() {
    let room = Room::new();
    let all = room.all(&ALL_ALIVE);
    let mut lock = room.lock(2);
    let cases =
        [(1, FIRST - 1, true), (1, 4, true), (1, 5, true), (1, 6, false), (3, 4, true), (3, 5, false), (3, 6, false)];
    for (other, number, is_waited_for) in cases {
        room.lines[4][TICKET as usize].store(4, Ordering::Relaxed);
        lock.begin(&all).unwrap();
        assert_eq!(room.word(2, TICKET), 5);
        room.lines[4][TICKET as usize].store(OUTSIDE, Ordering::Relaxed);
        room.lines[other][TICKET as usize].store(number, Ordering::Relaxed);
        assert_eq!(lock.poll(&all), !is_waited_for, "{other} with {number}");
        room.lines[other][TICKET as usize].store(OUTSIDE, Ordering::Relaxed);
        assert!(lock.poll(&all));
        lock.unlock().unwrap();
    }
}

/// Of two that try at once, the one with the smaller participant number keeps its claim and waits for the other to give
/// way; the other gives way at once.
#[test]
fn of_two_that_try_the_smaller_one_stays() {
    let room = Room::new();
    let all = room.all(&ALL_ALIVE);
    room.lines[3][TICKET as usize].store(FIRST, Ordering::Relaxed);
    let mut looks_left = LOOKS_MAX;
    assert!(!room.lock(2).outlasts(&all[3], &mut looks_left), "the other never gives way");
    assert_eq!(looks_left, 0);
    looks_left = LOOKS_MAX;
    assert!(!room.lock(4).outlasts(&all[3], &mut looks_left));
    assert_eq!(looks_left, LOOKS_MAX, "without a further look");
}

#[test]
fn each_participant_that_a_plan_allows_has_a_bit_of_its_own() {
    let max = PARTICIPANTS_MAX as u16;
    let all = (0..max).fold(0, |all, participant| {
        assert_eq!((bit(participant).count_ones(), all & bit(participant)), (1, 0), "{participant}");
        all | bit(participant)
    });
    assert_eq!(all.count_ones(), u32::from(max));
    assert_eq!([bit(max), bit(max + 1), bit(u16::MAX)], [0; 3]);
}
