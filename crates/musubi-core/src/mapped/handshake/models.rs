//! loom models of the handshake and of stamps. Run with `MUSUBI_MUTANT` set to a site of this port, at least one fails.

use std::sync::Arc;

use super::*;
use crate::mapped::stamp;
use crate::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;

const OWNER: u16 = 1;
/// Words of a root that the models need.
const ROOT: usize = root::RELEASED as usize + 2;
/// Words of a section: the header's epoch and contents behind it.
const SECTION: usize = header::EPOCH as usize + 2;
const CONTENT: u32 = header::EPOCH + 1;

struct Slots {
    user: [AtomicU32; ROOT],
    owner: [AtomicU32; ROOT],
    section: [AtomicU32; SECTION],
    bank: UnsafeCell<u32>,
}

// SAFETY: loom checks each access to the cell.
unsafe impl Sync for Slots {}

impl Slots {
    fn new() -> Arc<Slots> {
        Arc::new(Slots {
            user: core::array::from_fn(|_| AtomicU32::new(0)),
            owner: core::array::from_fn(|_| AtomicU32::new(0)),
            section: core::array::from_fn(|_| AtomicU32::new(0)),
            bank: UnsafeCell::new(0),
        })
    }

    fn user(&self) -> OwnWords<'_> {
        OwnWords::of(&self.user)
    }

    fn owner(&self) -> OwnWords<'_> {
        OwnWords::of(&self.owner)
    }

    fn section(&self) -> OwnWords<'_> {
        OwnWords::of(&self.section)
    }

    fn overwrite(&self) {
        self.bank.with_mut(|bank| {
            // SAFETY: loom reports it if another accesses the cell at the same time.
            unsafe { *bank = 3 };
        });
    }

    fn read(&self) {
        self.bank.with(|bank| {
            // SAFETY: as above.
            let _ = unsafe { *bank };
        });
    }
}

/// Runs a thread beside the model's own.
fn explore(own: fn(&Slots), other: fn(&Slots), prepare: fn(&Slots)) {
    loom::model(move || {
        let slots = Slots::new();
        prepare(&slots);
        let shared = Arc::clone(&slots);
        let thread = loom::thread::spawn(move || other(&shared));
        own(&slots);
        thread.join().unwrap();
    });
}

#[test]
fn loom_who_is_met_is_not_overwritten() {
    // The owner is restarted twice: epochs 1, 2, 3; the third takes the bank of the first.
    explore(
        |slots| {
            if meet(&slots.user(), OWNER, slots.owner().as_peer(), 1) {
                slots.read();
            }
        },
        |slots| {
            show(&slots.owner(), 2);
            mark_left(&slots.owner(), 2);
            if released_by(slots.user().as_peer(), OWNER) == 0 {
                slots.overwrite();
            }
        },
        |slots| slots.owner[root::EPOCH as usize].store(1, Ordering::Relaxed),
    );
}

#[test]
fn loom_what_is_released_is_not_read_any_more() {
    explore(
        |slots| {
            slots.read();
            release(&slots.user(), OWNER, 2);
        },
        |slots| {
            mark_left(&slots.owner(), 2);
            if released_by(slots.user().as_peer(), OWNER) == 2 {
                slots.overwrite();
            }
        },
        |slots| slots.user[released(OWNER) as usize].store(1, Ordering::Relaxed),
    );
}

#[test]
fn loom_a_signed_section_has_its_contents() {
    explore(
        |slots| {
            let section = slots.section();
            section.set(CONTENT, 7);
            sign(&section, 2);
            show(&slots.owner(), 2);
        },
        |slots| {
            if signed(slots.section().as_peer()) == 2 {
                assert_eq!(slots.section().get(CONTENT), 7);
            }
        },
        |_| (),
    );
}

#[test]
fn loom_contents_that_were_read_before_the_header_are_the_formers() {
    explore(
        |slots| clear(&slots.section()),
        |slots| {
            let content = slots.section().as_peer().see(CONTENT, Site::SeeRoot);
            if signed(slots.section().as_peer()) == 1 {
                assert_eq!(content, 7);
            }
        },
        |slots| {
            slots.section[CONTENT as usize].store(7, Ordering::Relaxed);
            slots.section[header::EPOCH as usize].store(1, Ordering::Relaxed);
        },
    );
}

#[test]
fn loom_a_stamp_is_whole() {
    let value = |number: u64| number << 32 | number;
    loom::model(move || {
        let words: Arc<[AtomicU32; stamp::WORDS as usize]> = Arc::new(core::array::from_fn(|_| AtomicU32::new(0)));
        let written = Arc::clone(&words);
        let thread = loom::thread::spawn(move || {
            (1..=3).for_each(|number| stamp::publish(&OwnWords::of(&*written), value(number)));
        });
        if let Some((count, seen)) = stamp::see(OwnWords::of(&*words).as_peer()) {
            assert_eq!(seen, value(u64::from(count)));
        }
        thread.join().unwrap();
    });
}

/// Two threads of the user and the owner's next but one: whoever takes the predecessor's bank does it under the latch
/// under which the beat finds it unused, so no use begins after the release and no release before the use has ended.
#[test]
fn loom_a_released_bank_is_not_used_and_a_used_one_is_not_released() {
    loom::model(|| {
        let slots = Slots::new();
        slots.user[released(OWNER) as usize].store(1, Ordering::Relaxed);
        // The latch, and in it how many use the bank.
        let uses = Arc::new(loom::sync::Mutex::new(0));
        let (taker, users) = (Arc::clone(&slots), Arc::clone(&uses));
        let taker = loom::thread::spawn(move || {
            let takes = {
                let mut uses = users.lock().unwrap();
                let keeps = keeps_predecessor(&taker.user(), OWNER, 2);
                *uses += u32::from(keeps);
                keeps
            };
            if takes {
                taker.read();
                *users.lock().unwrap() -= 1;
            }
        });
        let owner = Arc::clone(&slots);
        let owner = loom::thread::spawn(move || {
            mark_left(&owner.owner(), 2);
            if released_by(owner.user().as_peer(), OWNER) == 2 {
                owner.overwrite();
            }
        });
        {
            let uses = uses.lock().unwrap();
            if *uses == 0 {
                release(&slots.user(), OWNER, 2);
            }
        }
        taker.join().unwrap();
        owner.join().unwrap();
    });
}
