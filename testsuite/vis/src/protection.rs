//! What a partner may not touch.
//!
//! How it works: one side has regions in which every byte is known; the other one tries to write and read what it may not.
//! Then all bytes of all regions are compared. Afterwards the other way round.

use alloc::vec;
use alloc::vec::Vec;

use musubi_vipl::engine::{
    AsyncError, LocalPlace, MemoryAttributes, MemoryHandle, Queue, Reliability, RemotePlace, ViState,
};
use musubi_vipl::memory::Lines;
use musubi_vipl::over::NicNode;

use crate::descriptors::{Asks, INTO, OUT, Written};
use crate::remote::{behind, remote_place};
use crate::{Failure, Part, ensure, have};

/// Bytes of a region, and of what is tried.
const REGION_BYTES: usize = 1024;
const TRIED: usize = 32;
/// What the regions are filled with, and what is to be written.
const KEPT: u8 = 0xee;
const HARM: u8 = 0x11;
/// Statuses of writes and reads: done; refused by the target.
const WRITTEN: u32 = 0x2_0001;
const WRITE_REFUSED: u32 = 0x2_0081;
const READ_REFUSED: u32 = 0x4_0081;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trespass {
    /// The last byte is one behind the region.
    Behind,
    /// The first byte is one before it.
    Before,
    /// The region has not the enable bits.
    Closed,
    /// The region has another tag than the VI.
    OtherTag,
    /// There is no such handle.
    MadeUp,
    /// The VI has not the enable bits.
    ViClosed,
}

const ALL: [Trespass; 6] =
    [Trespass::Behind, Trespass::Before, Trespass::Closed, Trespass::OtherTag, Trespass::MadeUp, Trespass::ViClosed];

/// The regions of the side that is trespassed on: open ones, one without enable bits, one of another tag.
#[derive(Debug)]
struct Regions([(u64, MemoryHandle); 3]);

impl Regions {
    fn register<R: NicNode>(part: &Part<'_, R>) -> Result<Regions, Failure> {
        let other = have!(part.nic().with(|nic| nic.create_tag()), "there are tags");
        let kinds = [(part.tag, true), (part.tag, false), (other, true)];
        let mut regions = [(0, MemoryHandle(0)); 3];
        for (region, (tag, open)) in regions.iter_mut().zip(kinds) {
            let attributes = MemoryAttributes { tag, remote_write: open, remote_read: open };
            let lines = Lines::zeroed(REGION_BYTES);
            *region = have!(part.nic().with(|nic| nic.register_own(lines, attributes)), "memory is registered");
        }
        let regions = Regions(regions);
        regions.places().into_iter().try_for_each(|place| part.put_at(place, &[KEPT; REGION_BYTES]))?;
        Ok(regions)
    }

    fn places(&self) -> [LocalPlace; 3] {
        self.0.map(|(address, handle)| LocalPlace { address, handle, bytes: REGION_BYTES as u32 })
    }

    fn are_untouched<R: NicNode>(&self, part: &Part<'_, R>) -> Result<bool, Failure> {
        let mut untouched = true;
        for place in self.places() {
            untouched &= part.get_at(place)?.iter().all(|byte| *byte == KEPT);
        }
        Ok(untouched)
    }

    fn told(&self) -> Vec<u8> {
        let told =
            self.0.iter().flat_map(|(address, handle)| [address.to_le_bytes(), u64::from(handle.0).to_le_bytes()]);
        told.flatten().collect()
    }
}

/// Where a trespasser goes, of the regions that it was told of.
fn aim(trespass: Trespass, told: &[u8]) -> Result<RemotePlace, Failure> {
    let region = |index: usize| remote_place(told.get(index * 16..).unwrap_or_default());
    Ok(match trespass {
        Trespass::Behind => behind(region(0)?, REGION_BYTES - TRIED + 1),
        Trespass::Before => RemotePlace { address: region(0)?.address - 1, ..region(0)? },
        Trespass::Closed => region(1)?,
        Trespass::OtherTag => region(2)?,
        Trespass::MadeUp => RemotePlace { handle: MemoryHandle(region(0)?.handle.0 ^ 1 << 31), ..region(0)? },
        Trespass::ViClosed => region(0)?,
    })
}

pub fn nothing_is_touched_without_permission<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    for target_serves in [true, false] {
        let regions = (part.serves() == target_serves).then(|| Regions::register(part)).transpose()?;
        let told = regions.as_ref().map(Regions::told).unwrap_or_default();
        let told = part.exchange(&told)?;
        for level in Reliability::ALL {
            for trespass in ALL {
                for writes in [true, false] {
                    // A read of an unreliable VI does not leave its side.
                    if writes || level.is_reliable() {
                        attempt(part, &regions, (level, trespass, writes), &told)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn attempt<R: NicNode>(
    part: &mut Part<'_, R>,
    regions: &Option<Regions>,
    (level, trespass, writes): (Reliability, Trespass, bool),
    told: &[u8],
) -> Result<(), Failure> {
    let mut attributes = part.usual(level);
    if trespass == Trespass::ViClosed && regions.is_some() {
        (attributes.remote_write, attributes.remote_read) = (false, false);
    }
    let vi = part.vi(attributes)?;
    part.connect(vi)?;
    match regions {
        None => trespass_by(part, vi, (level, writes), aim(trespass, told)?)?,
        Some(regions) => {
            if level.is_reliable() {
                part.lost(vi)?;
            }
            part.meet()?;
            ensure!(regions.are_untouched(part)?, "nothing is touched without permission");
            let error = if writes { AsyncError::WriteProtection } else { AsyncError::ReadProtection };
            ensure!(part.news()?.contains(&(Some(vi), error)), "the target is told");
        }
    }
    let expected = if level.is_reliable() { ViState::Error } else { ViState::Connected };
    ensure!(part.state(vi)? == expected, "a reliable connection has ended, and no other");
    part.end(vi)
}

fn trespass_by<R: NicNode>(
    part: &mut Part<'_, R>,
    vi: musubi_vipl::nic::ViNumber,
    (level, writes): (Reliability, bool),
    aim: RemotePlace,
) -> Result<(), Failure> {
    part.put(OUT, &[HARM; TRIED])?;
    part.put(INTO, &[KEPT; TRIED])?;
    let (asks, from) = if writes { (Asks::Write(aim), OUT) } else { (Asks::Read(aim), INTO) };
    let tried = Written { asks, immediate: None, segments: vec![(from, TRIED)] };
    part.post(vi, Queue::Send, 0, &tried)?;
    let expected = match (writes, level) {
        (true, Reliability::Reception) => WRITE_REFUSED,
        (true, _) => WRITTEN,
        (false, _) => READ_REFUSED,
    };
    ensure!(part.wait(vi, Queue::Send)?.status == expected, "it ends as its level says");
    if level.is_reliable() {
        part.lost(vi)?;
    }
    part.meet()?;
    ensure!(part.get(INTO, TRIED)? == [KEPT; TRIED], "nothing was read");
    Ok(())
}
