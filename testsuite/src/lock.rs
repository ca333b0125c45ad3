//! The SMEM channel: its lock and its memory.

use musubi_core::Error;
use musubi_core::channel::SharedSegment;

use crate::stage::Stage;
use crate::{Failure, PATIENCE_NS, Wrapper, ensure, plan};

const SHORT_NS: u64 = 5_000_000;

pub fn one_at_a_time_is_inside<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (master, remote) = stage.segment()?;
    for (one, other) in [(&master, &remote), (&remote, &master), (&master, &remote)] {
        ensure!(one.try_lock().is_ok(), "a free lock is taken");
        ensure!(other.try_lock() == Err(Error::Locked), "a taken one is not");
        ensure!(one.try_lock() == Err(Error::Locked), "nor a second time");
        ensure!(other.unlock() == Err(Error::NotHeld), "only the holder gives it back");
        ensure!(one.unlock().is_ok() && one.unlock() == Err(Error::NotHeld), "and once");
    }
    Ok(())
}

pub fn the_lock_is_handed_over<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (master, remote) = stage.segment()?;
    ensure!(master.lock(stage.within(PATIENCE_NS)).is_ok(), "a free lock is taken");
    let (begin_ns, deadline) = (stage.now_ns(), stage.within(SHORT_NS));
    ensure!(remote.lock(deadline) == Err(Error::Timeout), "a taken one is waited for");
    let took_ns = stage.now_ns() - begin_ns;
    ensure!((SHORT_NS..PATIENCE_NS).contains(&took_ns), "until the deadline");
    ensure!(master.unlock().is_ok(), "the holder gives it back");
    ensure!(remote.lock(stage.within(PATIENCE_NS)).is_ok(), "and the other takes it");
    ensure!(master.try_lock() == Err(Error::Locked) && remote.unlock().is_ok(), "alone");
    Ok(())
}

pub fn memory_is_shared_and_has_an_end<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (master, remote) = stage.segment()?;
    ensure!(master.bytes() == plan::SHARED_BYTES && remote.bytes() == plan::SHARED_BYTES, "the planned size");
    let end = plan::SHARED_BYTES;
    for (offset, value) in [(0, 11u8), (31, 22), (end - 3, 33)] {
        ensure!(master.write(offset, &[value; 3]).is_ok(), "bytes inside are written");
        let mut bytes = [0; 3];
        ensure!(remote.read(offset, &mut bytes).is_ok() && bytes == [value; 3], "and read at the other side");
    }
    let mut bytes = [0; 3];
    for offset in [end - 2, end, end + 1, u32::MAX - 1, u32::MAX] {
        ensure!(master.write(offset, &bytes) == Err(Error::TooLong), "bytes outside are not written");
        ensure!(remote.read(offset, &mut bytes) == Err(Error::TooLong), "nor read");
    }
    Ok(())
}
