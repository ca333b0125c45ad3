//! The program's memory that VIs may touch: the one place of this crate that follows addresses.
//!
//! What you may rely on: nothing is read or written outside the bytes that somebody vouched for by
//! [`RegisteredMemory::enter`] and has not taken back by [`RegisteredMemory::leave`], whatever address or length is asked for.
//!
//! How it works: a table of spans, found by the place that a [`MemoryHandle`] names, checked to the byte before each access.
//! [`Protection`](crate::engine::Protection) decides before that who may touch what; this table makes a mistake there harmless.
//! A descriptor's status is written last, with release order, so a program that polls the word sees all that came before it.
//!
//! What it does not do: keep memory alive. Who enters a span says that it stays.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_transport::links::Block;

use crate::engine::{CONTROL_BYTES, Completion, ControlWords, LocalPlace, MemoryHandle, SEGMENT_BYTES, SegmentWords};

/// Where the words lie in a control segment: those that are read, and those into which a completion is written.
const SEGMENTS_AT: usize = 12;
const CONTROL_AT: usize = 14;
const IMMEDIATE_AT: u64 = 20;
const LENGTH_AT: u64 = 24;
const STATUS_AT: u64 = 28;

/// Alignment of memory that the table owns: that of descriptors.
const LINE_BYTES: usize = 64;

/// Memory that is aligned as descriptors are.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct MemoryLine([u8; LINE_BYTES]);

/// Zeroed memory, in whole lines.
#[derive(Debug)]
pub struct Lines(Vec<MemoryLine>);

impl Lines {
    /// As many bytes, rounded up to whole lines.
    pub fn zeroed(bytes: usize) -> Lines {
        Lines(alloc::vec![MemoryLine([0; LINE_BYTES]); bytes.div_ceil(LINE_BYTES)])
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        (self.0.len() * LINE_BYTES) as u64
    }

    /// Where it begins.
    pub fn address(&mut self) -> u64 {
        self.0.as_mut_ptr().expose_provenance() as u64
    }
}

#[derive(Debug, Default)]
struct Span {
    handle: MemoryHandle,
    address: u64,
    bytes: u64,
    /// The memory itself, if it is the table's.
    owned: Option<Lines>,
    /// The same, if it is the table's for a while.
    lent: Option<Box<Lent>>,
}

/// Memory that changes hands: all bytes of a region. In a box, as it is handed on often and so costs a word each time.
#[derive(Debug)]
pub struct Lent {
    /// The region.
    pub handle: MemoryHandle,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The registered memory of one opened NIC.
#[derive(Debug, Default)]
pub struct RegisteredMemory {
    /// By the place that a handle names.
    spans: Vec<Span>,
}

impl RegisteredMemory {
    /// None.
    pub const fn new() -> RegisteredMemory {
        RegisteredMemory { spans: Vec::new() }
    }

    /// From now on these bytes may be touched under this handle, which names no other span.
    ///
    /// # Safety
    /// Until [`RegisteredMemory::leave`] of the handle, or the end of this table, the bytes are memory of this process that can
    /// be read and written, whose address was exposed; and whenever a call of the engine may touch them (places of posted
    /// descriptors, and all of a region that peers may write or read), no other code has a reference to them, nor accesses them
    /// in a way that must not overlap with a read or write of another thread's.
    #[inline]
    pub unsafe fn enter(&mut self, handle: MemoryHandle, address: u64, bytes: u64) {
        let Some(place) = handle.place() else { return };
        if self.spans.len() <= place {
            self.spans.resize_with(place + 1, Span::default);
        }
        self.spans[place] = Span { handle, address, bytes, ..Span::default() };
    }

    /// The same of memory that the table owns until [`RegisteredMemory::leave`].
    pub fn adopt(&mut self, handle: MemoryHandle, mut lines: Lines) {
        let (address, bytes) = (lines.address(), lines.bytes());
        // SAFETY: the lines are memory of the process whose address has just been exposed; the span keeps them for as long as
        // it has them, they do not move when their vector does, and nobody else has a reference to them.
        unsafe { self.enter(handle, address, bytes) };
        if let Some(span) = handle.place().and_then(|place| self.spans.get_mut(place)) {
            span.owned = Some(lines);
        }
    }

    /// The same of memory that the table owns until [`RegisteredMemory::take_back`]: who lends it cannot reach it meanwhile.
    #[inline]
    pub fn lend(&mut self, mut lent: Box<Lent>) {
        let handle = lent.handle;
        let address = lent.bytes.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the vector's bytes are initialized memory of the process whose address has just been exposed; the span keeps
        // the vector, which does not move its bytes, for as long as it has their address, and nobody else has a reference to them.
        unsafe { self.enter(handle, address, lent.bytes.len() as u64) };
        if let Some(span) = handle.place().and_then(|place| self.spans.get_mut(place)) {
            span.lent = Some(lent);
        }
    }

    /// Gives back what was lent under this handle: from now on it is not touched any more.
    #[inline]
    pub fn take_back(&mut self, handle: MemoryHandle) -> Option<Box<Lent>> {
        let span = self.spans.get_mut(handle.place()?).filter(|span| span.handle == handle)?;
        let lent = span.lent.take()?;
        *span = Span::default();
        Some(lent)
    }

    /// The bytes of this handle are not touched any more.
    pub fn leave(&mut self, handle: MemoryHandle) {
        if let Some(span) = handle.place().and_then(|place| self.spans.get_mut(place))
            && span.handle == handle
        {
            *span = Span::default();
        }
    }

    /// Copies bytes into a place. False, and nothing is written, if it is not registered or has another length.
    #[must_use]
    pub fn copy_in(&self, place: LocalPlace, from: &[u8]) -> bool {
        let Some(to) = self.find(place).filter(|_| from.len() == place.bytes as usize) else { return false };
        // SAFETY: `find` gives an address from which `place.bytes` bytes can be written, and `from` has as many; a shared slice
        // does not overlap with memory to which, by `enter`, no reference is held.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }

    /// Copies bytes of a block, from `offset` on, into a place. False if it is not registered or the block has not as many.
    #[must_use]
    pub fn copy_block_in(&self, place: LocalPlace, block: &impl Block, offset: usize) -> bool {
        let Some(to) = self.find(place) else { return false };
        // SAFETY: `find` gives an address from which `place.bytes` bytes can be read and written; by `enter` nobody else has a
        // reference to them, and this one ends with the call.
        let into = unsafe { core::slice::from_raw_parts_mut(to, place.bytes as usize) };
        block.copy_to(offset, into) == into.len()
    }

    /// Lets `by` fill a place; what it says. False, and it is not called, if the place is not registered.
    #[must_use]
    pub fn fetch_in(&self, place: LocalPlace, by: impl FnOnce(&mut [u8]) -> bool) -> bool {
        let Some(to) = self.find(place) else { return false };
        // SAFETY: `find` gives an address from which `place.bytes` bytes can be read and written; by `enter` nobody else has a
        // reference to them, and this one ends with the call.
        by(unsafe { core::slice::from_raw_parts_mut(to, place.bytes as usize) })
    }

    /// Copies the bytes of a place behind what `into` has. False, and nothing is read, if it is not registered.
    #[must_use]
    pub fn copy_out(&self, place: LocalPlace, into: &mut Vec<u8>) -> bool {
        let Some(from) = self.find(place) else { return false };
        let bytes = place.bytes as usize;
        into.reserve(bytes);
        let room = into.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: `find` gives an address from which `bytes` bytes can be read; `reserve` made room for as many, in memory of
        // the vector's own.
        unsafe { core::ptr::copy_nonoverlapping(from, room, bytes) };
        // SAFETY: so many bytes behind the vector's length have just been written, and it has room for them.
        unsafe { into.set_len(into.len() + bytes) };
        true
    }

    /// Calls `by` with the bytes of a place of a posted descriptor, which lie still while it is posted; none if the place is not
    /// registered.
    pub fn with_posted<R>(&self, place: LocalPlace, by: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let from = self.find(place)?;
        // SAFETY: `find` gives an address from which `place.bytes` bytes can be read; by `enter` nobody writes them while they
        // are posted, and the engine, whose node's lock is held, copies nothing in before `by` returns.
        Some(by(unsafe { core::slice::from_raw_parts(from, place.bytes as usize) }))
    }

    /// What counts of the control segment at this address; none if it is not registered. Each word is read once, and as
    /// programs write it.
    #[inline]
    pub fn control(&self, handle: MemoryHandle, address: u64) -> Option<ControlWords> {
        let from = self.find(LocalPlace { address, handle, bytes: CONTROL_BYTES as u32 })?;
        let half = |at: usize| {
            let half = from.wrapping_add(at).cast::<u16>();
            // SAFETY: `find` gives an address from which `CONTROL_BYTES` bytes can be read, and both halves lie within.
            u16::from_le(unsafe { half.read_unaligned() })
        };
        let word = |at: u64| {
            let word = from.wrapping_add(at as usize).cast::<u32>();
            // SAFETY: the same of the words.
            u32::from_le(unsafe { word.read_unaligned() })
        };
        let (segments, control) = (half(SEGMENTS_AT), half(CONTROL_AT));
        Some(ControlWords { segments, control, immediate: word(IMMEDIATE_AT), length: word(LENGTH_AT) })
    }

    /// The segments behind a control segment: so many, appended to `into`. None if they are not all registered.
    #[inline]
    pub fn segments(&self, handle: MemoryHandle, control: u64, count: u16, into: &mut Vec<SegmentWords>) -> Option<()> {
        let (address, bytes) = (control.checked_add(CONTROL_BYTES as u64)?, u32::from(count) * SEGMENT_BYTES as u32);
        let first = self.find(LocalPlace { address, handle, bytes })?;
        for segment in 0..usize::from(count) {
            let from = first.wrapping_add(segment * SEGMENT_BYTES);
            // SAFETY: `find` gives an address from which `count` segments can be read; this is the address of one of them.
            let address = u64::from_le(unsafe { from.cast::<u64>().read_unaligned() });
            let word = |at: usize| {
                let word = from.wrapping_add(at).cast::<u32>();
                // SAFETY: the same; both words lie within the segment.
                u32::from_le(unsafe { word.read_unaligned() })
            };
            into.push((address, word(8), word(12)));
        }
        Some(())
    }

    /// Writes a completion into the control segment at this address. False if it is not registered.
    #[must_use]
    pub fn complete(&self, handle: MemoryHandle, control: u64, completion: &Completion) -> bool {
        let status = self.find(LocalPlace { address: control + STATUS_AT, handle, bytes: 4 });
        let Some(status) = status.map(<*mut u8>::cast::<u32>).filter(|status| status.is_aligned()) else {
            return false;
        };
        let immediate = (IMMEDIATE_AT, completion.immediate, completion.has_immediate());
        for (at, word, is_said) in [immediate, (LENGTH_AT, completion.bytes, completion.has_length())] {
            if is_said && !self.copy_in(LocalPlace { address: control + at, handle, bytes: 4 }, &word.to_le_bytes()) {
                return false;
            }
        }
        // SAFETY: `find` gives an address at which 4 bytes can be written, aligned as was just seen; by `enter` no other code
        // accesses them in a way that must not overlap with a write, and programs read the word as they read any that another
        // thread sets.
        let status = unsafe { AtomicU32::from_ptr(status) };
        status.store(completion.status.0.to_le(), Ordering::Release);
        true
    }

    /// The address of a place, if all its bytes are registered under its handle. Of an empty one any address will do.
    #[inline]
    fn find(&self, place: LocalPlace) -> Option<*mut u8> {
        if place.bytes == 0 {
            return Some(core::ptr::NonNull::dangling().as_ptr());
        }
        let span = self.spans.get(place.handle.place()?).filter(|span| span.handle == place.handle)?;
        let offset = place.address.checked_sub(span.address)?;
        let left = span.bytes.checked_sub(offset)?;
        (u64::from(place.bytes) <= left).then(|| core::ptr::with_exposed_provenance_mut(place.address as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Status;

    const HANDLE: MemoryHandle = MemoryHandle(1 << 20 | 3);

    /// Memory that is entered for as long as a test runs.
    fn entered(bytes: &mut [u64]) -> (RegisteredMemory, u64) {
        let address = bytes.as_mut_ptr().expose_provenance() as u64;
        let mut memory = RegisteredMemory::new();
        // SAFETY: the tests keep the slice borrowed mutably and touch it through the table only.
        unsafe { memory.enter(HANDLE, address, size_of_val(bytes) as u64) };
        (memory, address)
    }

    fn place(address: u64, bytes: u32) -> LocalPlace {
        LocalPlace { address, handle: HANDLE, bytes }
    }

    fn read(memory: &RegisteredMemory, place: LocalPlace) -> Option<Vec<u8>> {
        let mut into = alloc::vec![0xee];
        memory.copy_out(place, &mut into).then(|| into.split_off(1))
    }

    #[test]
    fn every_byte_inside_can_be_reached_and_none_outside() {
        let mut words = [0_u64; 4];
        let (memory, address) = entered(&mut words);
        for first in 0..=33_u64 {
            for bytes in 0..=34_u32 {
                let is_inside = bytes == 0 || first + u64::from(bytes) <= 32;
                assert_eq!(read(&memory, place(address + first, bytes)).is_some(), is_inside, "{first} {bytes}");
            }
        }
        assert_eq!(read(&memory, place(address - 1, 1)), None);
        assert_eq!(read(&memory, place(u64::MAX, 2)), None);
        assert_eq!(read(&memory, LocalPlace { handle: MemoryHandle(2 << 20 | 3), ..place(address, 1) }), None);
        assert_eq!(read(&memory, LocalPlace { handle: MemoryHandle(4), ..place(address, 1) }), None);
    }

    #[test]
    fn what_is_copied_in_lies_there_and_nowhere_else() {
        let mut words = [0_u64; 2];
        let (memory, address) = entered(&mut words);
        assert!(memory.copy_in(place(address + 3, 2), &[1, 2]));
        assert!(!memory.copy_in(place(address + 3, 2), &[3]) && !memory.copy_in(place(address + 15, 2), &[3, 3]));
        assert_eq!(memory.with_posted(place(address + 2, 4), <[u8]>::to_vec), Some(alloc::vec![0, 1, 2, 0]));
        assert_eq!(memory.with_posted(place(address + 14, 4), <[u8]>::to_vec), None);
        drop(memory);
        assert_eq!(words[0].to_le_bytes(), [0, 0, 0, 1, 2, 0, 0, 0]);
    }

    #[test]
    fn a_span_that_was_left_is_not_touched_any_more() {
        let mut words = [0_u64; 4];
        let (mut memory, address) = entered(&mut words);
        memory.leave(MemoryHandle(5 << 20 | 3));
        assert!(memory.copy_in(place(address, 1), &[7]));
        memory.leave(HANDLE);
        assert!(!memory.copy_in(place(address, 1), &[8]));
        assert!(!memory.complete(HANDLE, address, &Completion { bytes: 0, immediate: 0, status: Status::DONE }));
        assert!(memory.control(HANDLE, address).is_none());
    }

    #[test]
    fn what_is_lent_is_touched_until_it_is_taken_back() {
        let mut memory = RegisteredMemory::new();
        let bytes = alloc::vec![1, 2, 3];
        let address = bytes.as_ptr().addr() as u64;
        memory.lend(Box::new(Lent { handle: HANDLE, bytes }));
        assert!(memory.copy_in(place(address + 1, 2), &[8, 9]) && !memory.copy_in(place(address + 1, 3), &[7; 3]));
        assert_eq!(memory.with_posted(place(address, 3), <[u8]>::to_vec), Some(alloc::vec![1, 8, 9]));
        assert!(memory.take_back(MemoryHandle(5 << 20 | 3)).is_none());
        let mut back = memory.take_back(HANDLE).unwrap();
        assert!(back.bytes.as_ptr().addr() as u64 == address && memory.take_back(HANDLE).is_none());
        back.bytes[0] = 4;
        assert!(!memory.copy_in(place(address, 1), &[7]));
        assert_eq!(back.bytes, [4, 8, 9]);
        memory.lend(back);
        assert_eq!(read(&memory, place(address, 3)), Some(alloc::vec![4, 8, 9]));
    }

    #[test]
    fn a_completion_is_written_where_the_descriptor_has_it() {
        let mut words = [u64::MAX; 6];
        let (memory, address) = entered(&mut words);
        let plain = Completion { bytes: 5, immediate: 9, status: Status::DONE };
        assert!(memory.complete(HANDLE, address, &plain));
        let word = |at: u64| memory.with_posted(place(address + at, 4), <[u8]>::to_vec);
        assert_eq!([word(20), word(24), word(28)].map(Option::unwrap), [[0xff; 4], [0xff; 4], [1, 0, 0, 0]]);
        let plain = Completion { status: Status::DONE.and(Status::OP_RECEIVE), ..plain };
        assert!(memory.complete(HANDLE, address, &plain));
        assert_eq!([word(20), word(24), word(28)].map(Option::unwrap), [[0xff; 4], [5, 0, 0, 0], [1, 0, 1, 0]]);
        let told = Completion { status: plain.status.and(Status::IMMEDIATE), ..plain };
        assert!(memory.complete(HANDLE, address, &told));
        assert_eq!(word(20).unwrap(), [9, 0, 0, 0]);
        assert!(!memory.complete(HANDLE, address + 1, &plain), "a status word that is not aligned");
        assert!(!memory.complete(HANDLE, address + 24, &plain), "outside");
    }

    #[test]
    fn words_of_a_descriptor_lie_where_the_standard_puts_them() {
        let mut words: [u64; 8] =
            core::array::from_fn(|word| u64::from_le_bytes([word as u8 * 8; 8]) + 0x0706_0504_0302_0100);
        let (memory, address) = entered(&mut words);
        let u16_of = |at: u8| u16::from_le_bytes([at, at + 1]);
        let u32_of = |at: u8| u32::from_le_bytes([at, at + 1, at + 2, at + 3]);
        let u64_of = |at: u8| u64::from(u32_of(at)) | u64::from(u32_of(at + 4)) << 32;
        let control =
            ControlWords { segments: u16_of(12), control: u16_of(14), immediate: u32_of(20), length: u32_of(24) };
        assert_eq!(memory.control(HANDLE, address), Some(control));
        assert_eq!(
            (memory.control(HANDLE, address + 32).is_some(), memory.control(HANDLE, address + 33)),
            (true, None)
        );
        let mut segments = Vec::new();
        assert!(memory.segments(HANDLE, address, 2, &mut segments).is_some());
        let segment = |at: u8| (u64_of(at), u32_of(at + 8), u32_of(at + 12));
        assert_eq!(segments, [segment(32), segment(48)]);
        assert!(memory.segments(HANDLE, address, 3, &mut segments).is_none());
        assert_eq!(segments.len(), 2);
    }
}
