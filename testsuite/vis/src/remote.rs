//! RDMA: writes into the partner's memory and reads of it.

use musubi_vipl::engine::{MemoryHandle, Queue, Reliability, RemotePlace};
use musubi_vipl::over::NicNode;

use crate::descriptors::{Asks, INTO, OUT, Written};
use crate::messages::{bytes, scattered};
use crate::{Failure, Part, ensure};

/// Statuses: of a write, of a read, of the receive that a write with immediate data takes.
const WRITTEN: u32 = 0x2_0001;
const READ: u32 = 0x4_0001;
const TOLD_OF: u32 = 0xb_0001;
const LENGTHS: [usize; 7] = [1, 8, 400, 4095, 4097, 8192, 20_000];
/// What stands before and behind what is written, bytes.
const MARGIN: usize = 64;

impl<R: NicNode> Part<'_, R> {
    /// Tells the partner of this side's region, and hears of its.
    pub(crate) fn exchange_regions(&mut self) -> Result<RemotePlace, Failure> {
        let (address, handle) = self.region;
        let mut told = alloc::vec::Vec::from(address.to_le_bytes());
        told.extend(handle.0.to_le_bytes());
        remote_place(&self.exchange(&told)?)
    }
}

/// An address and a handle, as they were told.
pub(crate) fn remote_place(told: &[u8]) -> Result<RemotePlace, Failure> {
    let address = told.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let handle = told.get(8..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
    let (Some(address), Some(handle)) = (address, handle) else {
        return Err(Failure { file: file!(), line: line!(), expected: "the partner tells of a region", found: None });
    };
    Ok(RemotePlace { address, handle: MemoryHandle(handle) })
}

/// A place behind another one.
pub(crate) fn behind(place: RemotePlace, offset: usize) -> RemotePlace {
    RemotePlace { address: place.address + offset as u64, ..place }
}

pub fn writes_and_reads_arrive_exact<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let there = part.exchange_regions()?;
    for level in Reliability::ALL {
        let vi = part.vi(part.usual(level))?;
        part.connect(vi)?;
        for (turn, length) in LENGTHS.into_iter().enumerate() {
            let acts = part.serves() == (turn % 2 == 0);
            let message = bytes(length, turn);
            if !acts {
                part.put(INTO, &alloc::vec![0xee; length + 2 * MARGIN])?;
            }
            part.meet()?;
            if acts {
                let segments = scattered(OUT, length, 1 + turn);
                part.scatter(&segments, &message)?;
                let asks = Asks::Write(behind(there, INTO + MARGIN));
                part.post(vi, Queue::Send, 0, &Written { asks, immediate: None, segments })?;
                ensure!(part.wait(vi, Queue::Send)?.status == WRITTEN, "a write ends");
            }
            part.meet()?;
            if !acts {
                let found = part.get(INTO, length + 2 * MARGIN)?;
                ensure!(found[MARGIN..MARGIN + length] == message[..], "it is what was written");
                let (before, after) = (&found[..MARGIN], &found[MARGIN + length..]);
                ensure!(before.iter().chain(after).all(|byte| *byte == 0xee), "and nothing beside it");
            }
            if acts && level.is_reliable() {
                let segments = scattered(INTO, length, 1 + (turn + 3) % 5);
                part.scatter(&segments, &alloc::vec![0; length])?;
                let asks = Asks::Read(behind(there, INTO + MARGIN));
                part.post(vi, Queue::Send, 1, &Written { asks, immediate: None, segments: segments.clone() })?;
                ensure!(part.wait(vi, Queue::Send)?.status == READ, "a read ends");
                ensure!(part.gather(&segments)? == message, "it is what was written before");
            }
            part.meet()?;
        }
        part.end(vi)?;
    }
    Ok(())
}

pub fn immediate_data_tells_of_a_write<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let there = part.exchange_regions()?;
    for level in Reliability::ALL {
        let vi = part.vi(part.usual(level))?;
        part.post(vi, Queue::Receive, 0, &Written::message(INTO, 8))?;
        part.connect(vi)?;
        // Both write at the same time.
        let mine = if part.serves() { 77 } else { 78 };
        part.put(OUT, &bytes(100, mine))?;
        let asks = Asks::Write(behind(there, INTO + 64));
        let write = Written { asks, immediate: Some(mine as u32), segments: alloc::vec![(OUT, 100)] };
        part.post(vi, Queue::Send, 1, &write)?;
        ensure!(part.wait(vi, Queue::Send)?.status == WRITTEN, "a write ends");
        let came = part.wait(vi, Queue::Receive)?;
        let theirs = 77 + 78 - mine;
        let expected = (TOLD_OF, 100, theirs as u32);
        ensure!((came.status, came.bytes, came.immediate) == expected, "a receive tells of it");
        ensure!(part.get(INTO + 64, 100)? == bytes(100, theirs), "what was written lies there by then");
        part.end(vi)?;
    }
    Ok(())
}
