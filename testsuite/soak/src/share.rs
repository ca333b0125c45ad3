//! The thread of the SMEM channel: a counter kept twice under the lock.
//!
//! How it works: who is inside writes its name and the first copy, waits a little, looks whether its name is still there,
//! and writes the second copy. Copies that differ mean that the one before died inside; another name means that two were
//! inside. The counter cannot be less than all completed turns.

use std::time::Duration;

use anyhow::Context;
use musubi_core::Error;
use musubi_core::channel::{Attachment, SharedSegment};
use musubi_linux::{Deadline, DeadlineExt, SharedEnd};

use crate::place::{PAUSE, Phase, Place};
use crate::record::Of;
use crate::system::SHARED;

/// How long taking the lock may wait; a stopped holder keeps it.
const WAIT: Duration = Duration::from_millis(20);
/// How long opening may wait.
const OPEN_WAIT: Duration = Duration::from_secs(5);
/// Longest stay inside, in rounds of a loop.
const STAY_MAX: u32 = 2_000;
/// Longest pause between turns, in microseconds.
const PAUSE_US_MAX: u64 = 3_000;
/// Length of what the lock protects, in words: first copy, second copy, name.
const WORDS: usize = 3;

/// Takes turns until the phase says end.
pub fn run(place: Place<'_>) -> anyhow::Result<()> {
    let deadline = Deadline::after(OPEN_WAIT);
    let shared = Attachment::open_segment(place.participant, SHARED, deadline).context("opening the segment")?;
    let timing = place.timing("taking the lock")?;
    let mut random = place.random(u16::MAX);
    while place.phase() != Phase::End {
        let entered = match random.bool() {
            true => timing.timed(WAIT, |deadline| shared.lock(deadline)),
            false => timing.timed(Duration::ZERO, |_| shared.try_lock()),
        };
        match entered {
            Ok(()) => turn(place, &shared, random.u32(0..STAY_MAX))?,
            Err(Error::Timeout | Error::Locked | Error::NotReady) => {}
            Err(_) => place.record.of(place.domain, Of::Faults).count(),
        }
        std::thread::sleep(PAUSE + Duration::from_micros(random.u64(0..PAUSE_US_MAX)));
    }
    Ok(())
}

fn turn(place: Place<'_>, shared: &SharedEnd, stay: u32) -> anyhow::Result<()> {
    let of = |what| place.record.of(place.domain, what);
    let name = place.incarnation << 8 | u32::from(place.domain) | 1 << 7;
    let [first, second, _] = read(shared)?;
    if first != second {
        of(Of::Torn).count();
    }
    let next = first + 1;
    shared.write(0, &next.to_le_bytes())?;
    shared.write(8, &name.to_le_bytes())?;
    for _ in 0..stay {
        std::hint::spin_loop();
    }
    let [seen, _, owner] = read(shared)?;
    if (seen, owner) != (next, name) {
        of(Of::Intruders).count();
    }
    shared.write(4, &next.to_le_bytes())?;
    shared.unlock()?;
    of(Of::Turns).count();
    of(Of::Counter).raise(next);
    Ok(())
}

/// The three words.
fn read(shared: &SharedEnd) -> Result<[u32; WORDS], Error> {
    let mut bytes = [0; WORDS * 4];
    shared.read(0, &mut bytes)?;
    let word = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[index * 4 + byte]));
    Ok([word(0), word(1), word(2)])
}
