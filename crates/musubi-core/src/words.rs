//! Views of section memory: words that this participant writes ([`OwnWords`]) and words of a peer ([`PeerWords`]).
//!
//! What you may rely on: a peer's words can only be loaded, by type; every access is one atomic 32-bit access inside
//! the view, whatever the peer does; an index outside the view is a bug of ours and panics before it touches memory.
//!
//! How it works: a view is a base address and a length. There is never a Rust reference to a peer's payload: bytes are
//! copied out with volatile reads ([`PeerWords::copy_bytes`]), which the compiler may neither repeat nor merge, so a
//! value that was checked is the value that is used.
//!
//! What it does not do: know where the memory comes from or how long it lives. A port makes the views; the lifetime
//! `'m` is its promise.

use core::marker::PhantomData;

use crate::sync::{self, AtomicU32, Ordering, Site};

/// Most words of a view, so that each of its bytes has an offset of 32 bits.
pub const WORDS_MAX: u32 = u32::MAX / 4;

/// A run of words that only this participant writes.
#[derive(Debug)]
pub struct OwnWords<'m> {
    base: *const AtomicU32,
    words: u32,
    memory: PhantomData<&'m AtomicU32>,
}

/// A run of words that a peer writes; its values are claims.
#[derive(Clone, Copy, Debug)]
pub struct PeerWords<'m> {
    base: *const AtomicU32,
    words: u32,
    memory: PhantomData<&'m AtomicU32>,
}

/// A word that is looked at only: what it holds, and where it lies. Nothing can be stored through it.
#[derive(Clone, Copy, Debug)]
pub struct PeerWord<'m>(&'m AtomicU32);

impl PeerWord<'_> {
    /// What the word holds now.
    #[inline(always)]
    pub fn load(self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    /// Where the word lies, for a kernel that compares it and sleeps.
    #[inline(always)]
    pub fn address(self) -> *const u32 {
        core::ptr::from_ref(self.0).cast()
    }
}

/// A word of our own is looked at as a peer's.
impl<'m> From<&'m AtomicU32> for PeerWord<'m> {
    fn from(word: &'m AtomicU32) -> Self {
        PeerWord(word)
    }
}

/// Own words, of which the first `FIXED` are known to be there: at a constant index among them nothing is checked when
/// the program runs.
#[derive(Debug)]
pub struct OwnEnd<'m, const FIXED: u32>(OwnWords<'m>);

/// A peer's words, of which the first `FIXED` are known to be there, as in [`OwnEnd`].
#[derive(Clone, Copy, Debug)]
pub struct PeerEnd<'m, const FIXED: u32>(PeerWords<'m>);

impl<'m, const FIXED: u32> OwnEnd<'m, FIXED> {
    /// The view, which must be as long as that.
    pub fn new(words: OwnWords<'m>) -> Self {
        assert!(words.words >= FIXED, "{FIXED} words of {}", words.words);
        OwnEnd(words)
    }

    /// The fixed part.
    #[inline(always)]
    pub fn fixed(&self) -> OwnWords<'m> {
        OwnWords { base: self.0.base, words: FIXED, memory: PhantomData }
    }

    /// All of the view.
    #[inline(always)]
    pub fn all(&self) -> &OwnWords<'m> {
        &self.0
    }
}

impl<'m, const FIXED: u32> PeerEnd<'m, FIXED> {
    /// The view, which must be as long as that.
    pub fn new(words: PeerWords<'m>) -> Self {
        assert!(words.words >= FIXED, "{FIXED} words of {}", words.words);
        PeerEnd(words)
    }

    /// The fixed part.
    #[inline(always)]
    pub fn fixed(&self) -> PeerWords<'m> {
        PeerWords { base: self.0.base, words: FIXED, memory: PhantomData }
    }

    /// All of the view.
    #[inline(always)]
    pub fn all(&self) -> PeerWords<'m> {
        self.0
    }
}

// SAFETY: all access through the view is an atomic access of 32 bits; beside that it gives addresses of payload bytes, and
// who goes there owns the block. The memory itself is shared between processes, so no thread affinity exists.
unsafe impl Send for OwnWords<'_> {}
// SAFETY: as above; `&OwnWords` gives no other access, `write_bytes` included.
unsafe impl Sync for OwnWords<'_> {}
// SAFETY: `PeerWords` gives loads only, atomic or volatile.
unsafe impl Send for PeerWords<'_> {}
// SAFETY: as above.
unsafe impl Sync for PeerWords<'_> {}

impl<'m> OwnWords<'m> {
    /// A view of `words` 32-bit words at `base`.
    ///
    /// # Safety
    /// For all of `'m`, `base` is aligned to 4 and valid for reads and writes of `words` words, and no other
    /// participant and no other [`OwnWords`] writes words that this view is used to write.
    pub const unsafe fn new(base: *mut u32, words: u32) -> Self {
        assert!(words <= WORDS_MAX);
        OwnWords { base: base.cast_const().cast(), words, memory: PhantomData }
    }

    /// A view of atomics that live in a model or a test.
    #[cfg(any(test, loom))]
    pub fn of(atomics: &'m [AtomicU32]) -> Self {
        OwnWords { base: atomics.as_ptr(), words: atomics.len() as u32, memory: PhantomData }
    }

    /// Length in words.
    pub const fn len(&self) -> u32 {
        self.words
    }

    /// Whether the view is empty.
    pub const fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// The part of the view from word `first` on, `words` long.
    #[inline(always)]
    pub fn part(&self, first: u32, words: u32) -> OwnWords<'m> {
        let base = part_of(self.base, self.words, first, words);
        OwnWords { base, words, memory: PhantomData }
    }

    /// The word itself, for a futex or a doorbell that needs its address.
    #[inline(always)]
    pub fn word(&self, index: u32) -> &'m AtomicU32 {
        word_of(self.base, self.words, index)
    }

    /// Loads a word of our own; nobody else writes it.
    #[inline(always)]
    pub fn get(&self, index: u32) -> u32 {
        self.word(index).load(Ordering::Relaxed)
    }

    /// Stores a word that orders nothing.
    #[inline(always)]
    pub fn set(&self, index: u32, value: u32) {
        self.word(index).store(value, Ordering::Relaxed);
    }

    /// Stores a word that publishes what was written before.
    #[inline(always)]
    pub fn publish(&self, index: u32, value: u32, site: Site) {
        self.word(index).store(value, sync::release(site));
    }

    /// Publishes, and keeps a following [`PeerWords::look`] from being taken earlier.
    #[inline(always)]
    pub fn publish_then_look(&self, index: u32, value: u32, site: Site) {
        sync::store_then_look(self.word(index), value, site);
    }

    /// [`OwnWords::publish_then_look`] for a word that a peer polls.
    #[inline(always)]
    pub fn publish_polled_then_look(&self, index: u32, value: u32, site: Site) {
        sync::store_polled_then_look(self.word(index), value, site);
    }

    /// Stores a return entry: publishes that the payload was read, and keeps a following [`PeerWords::look`] from
    /// being taken earlier.
    #[inline(always)]
    pub fn publish_return(&self, index: u32, value: u32) {
        sync::store_return_then_look(self.word(index), value);
    }

    /// Adds to a word that several threads of this one participant may advance; gives the value before.
    #[inline(always)]
    pub fn advance(&self, index: u32, by: u32) -> u32 {
        self.word(index).fetch_add(by, Ordering::AcqRel)
    }

    /// Adds one to a word that several threads of this one participant may advance, and keeps a following
    /// [`PeerWords::look`] from being taken earlier.
    #[inline(always)]
    pub fn advance_then_look(&self, index: u32, site: Site) {
        sync::advance_then_look(self.word(index), site);
    }

    /// Adds to a counter in two words (low, high), for one writing thread.
    #[inline(always)]
    pub fn count(&self, low: u32, high: u32, by: u32) {
        let (sum, carry) = self.get(low).overflowing_add(by);
        self.set(low, sum);
        if carry {
            self.set(high, self.get(high).wrapping_add(1));
        }
    }

    /// Adds one to a counter of one word, for one writing thread.
    #[inline(always)]
    pub fn count_one(&self, index: u32) {
        self.set(index, self.get(index).wrapping_add(1));
    }

    /// The same words, as any peer sees them.
    pub const fn as_peer(&self) -> PeerWords<'m> {
        PeerWords { base: self.base, words: self.words, memory: PhantomData }
    }

    /// Address of the byte at `offset`, from which `bytes` bytes are inside the view.
    #[inline(always)]
    pub fn bytes_at(&self, offset: u32, bytes: u32) -> *mut u8 {
        byte_of(self.base, self.words, offset, bytes).cast_mut()
    }

    /// Address of the byte at `offset`, which need not be inside: to compare, or for a hint.
    #[inline(always)]
    pub fn address(&self, offset: u32) -> *const u8 {
        self.base.cast::<u8>().wrapping_add(offset as usize)
    }

    /// Copies bytes in, by one relaxed store of each word that they touch; a word at either end keeps its other bytes.
    /// So it is aligned, as device memory wants it, and as atomic as every other access of the view.
    pub fn write_bytes(&self, offset: u32, from: &[u8]) {
        let _ = self.bytes_at(offset, count_of(from.len()));
        let head = (offset.wrapping_neg() % 4) as usize;
        let (first, rest) = from.split_at(head.min(from.len()));
        let (words, last) = rest.as_chunks::<4>();
        self.write_in_word(offset, first);
        let middle = self.part(offset.div_ceil(4).min(self.words), words.len() as u32);
        for (place, word) in middle.atomics().iter().zip(words) {
            place.store(u32::from_ne_bytes(*word), Ordering::Relaxed);
        }
        self.write_in_word(offset + (from.len() - last.len()) as u32, last);
    }

    /// Stores bytes that lie in one word, without the others.
    fn write_in_word(&self, offset: u32, from: &[u8]) {
        if !from.is_empty() {
            let word = self.word(offset / 4);
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes[(offset % 4) as usize..][..from.len()].copy_from_slice(from);
            word.store(u32::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    fn atomics(&self) -> &'m [AtomicU32] {
        // SAFETY: the view's maker promised `words` valid, aligned words for 'm, and every part lies inside its whole; an
        // `AtomicU32` may be shared with writers in other processes.
        unsafe { core::slice::from_raw_parts(self.base, self.words as usize) }
    }
}

impl<'m> PeerWords<'m> {
    /// The same view without a lifetime.
    ///
    /// # Safety
    /// Nothing is read through it once the memory may be gone.
    pub unsafe fn unbound(self) -> PeerWords<'static> {
        PeerWords { base: self.base, words: self.words, memory: PhantomData }
    }

    /// A view of `words` 32-bit words at `base`, which others may write at any time.
    ///
    /// # Safety
    /// For all of `'m`, `base` is aligned to 4 and valid for reads of `words` words.
    pub const unsafe fn new(base: *const u32, words: u32) -> Self {
        assert!(words <= WORDS_MAX);
        PeerWords { base: base.cast(), words, memory: PhantomData }
    }

    /// Length in words.
    pub const fn len(&self) -> u32 {
        self.words
    }

    /// Whether the view is empty.
    pub const fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// The part of the view from word `first` on, `words` long.
    #[inline(always)]
    pub fn part(&self, first: u32, words: u32) -> PeerWords<'m> {
        let base = part_of(self.base, self.words, first, words);
        PeerWords { base, words, memory: PhantomData }
    }

    /// The word itself, for a futex that sleeps on it.
    #[inline(always)]
    pub fn word(&self, index: u32) -> PeerWord<'m> {
        PeerWord(word_of(self.base, self.words, index))
    }

    /// Loads a word that orders nothing.
    #[inline(always)]
    pub fn get(&self, index: u32) -> u32 {
        self.word(index).load(Ordering::Relaxed)
    }

    /// Loads a word that publishes others.
    #[inline(always)]
    pub fn see(&self, index: u32, site: Site) -> u32 {
        self.word(index).load(sync::acquire(site))
    }

    /// The look after [`OwnWords::publish_then_look`].
    #[inline(always)]
    pub fn look(&self, index: u32) -> u32 {
        sync::load_after_look(self.word(index).0)
    }

    /// The look after [`OwnWords::publish_then_look`] at a site whose acquiring matters by itself.
    #[inline(always)]
    pub fn look_at(&self, index: u32, site: Site) -> u32 {
        sync::load_after_look_at(self.word(index).0, site)
    }

    /// A counter of two words (low, high), read so that a carry in between is not seen half.
    pub fn counter(&self, low: u32, high: u32) -> u64 {
        let high_before = self.get(high);
        let low_value = self.get(low);
        let high_after = self.get(high);
        let high_value = high_with(low_value, high_before, high_after);
        (u64::from(high_value) << 32) | u64::from(low_value)
    }

    /// Address of the byte at `offset`, from which `bytes` bytes are inside the view.
    #[inline(always)]
    pub fn bytes_at(&self, offset: u32, bytes: u32) -> *const u8 {
        byte_of(self.base, self.words, offset, bytes)
    }

    /// Address of the byte at `offset`, which need not be inside: to compare, or for a hint.
    #[inline(always)]
    pub fn address(&self, offset: u32) -> *const u8 {
        self.base.cast::<u8>().wrapping_add(offset as usize)
    }

    /// Copies bytes out, each read once. The result is whatever the peer had there: a claim.
    #[inline]
    pub fn copy_bytes(&self, offset: u32, into: &mut [u8]) {
        let from = self.bytes_at(offset, count_of(into.len()));
        copy_volatile(from, into);
    }
}

impl PeerWords<'_> {
    /// Copies bytes out, by one relaxed load of each word that they touch: for whoever has no claim on them, so that they
    /// may be written meanwhile.
    pub fn load_bytes(&self, offset: u32, into: &mut [u8]) {
        let _ = self.bytes_at(offset, count_of(into.len()));
        let head = (offset.wrapping_neg() % 4) as usize;
        let (first, rest) = into.split_at_mut(head.min(into.len()));
        self.load_in_word(offset, first);
        let mut at = offset + first.len() as u32;
        for part in rest.chunks_mut(4) {
            self.load_in_word(at, part);
            at += 4;
        }
    }

    /// Loads bytes that lie in one word.
    fn load_in_word(&self, offset: u32, into: &mut [u8]) {
        if !into.is_empty() {
            let bytes = self.get(offset / 4).to_ne_bytes();
            into.copy_from_slice(&bytes[(offset % 4) as usize..][..into.len()]);
        }
    }
}

/// Copies from memory that another party may write, with volatile reads of 8 bytes where alignment allows.
#[inline]
fn copy_volatile(from: *const u8, into: &mut [u8]) {
    if let Ok(word) = <&mut [u8; 4]>::try_from(&mut *into)
        && from.cast::<u32>().is_aligned()
    {
        // SAFETY: `copy_bytes` checked that four bytes lie inside the view; the address is aligned.
        *word = unsafe { from.cast::<u32>().read_volatile() }.to_ne_bytes();
        return;
    }
    copy_volatile_bulk(from, into);
}

/// [`copy_volatile`] of any length and alignment.
fn copy_volatile_bulk(from: *const u8, into: &mut [u8]) {
    let head = from.align_offset(8).min(into.len());
    let (first, rest) = into.split_at_mut(head);
    for (index, byte) in first.iter_mut().enumerate() {
        *byte = read_byte(from.wrapping_add(index));
    }
    let aligned = from.wrapping_add(head).cast::<u64>();
    let mut words = rest.chunks_exact_mut(8);
    let mut index = 0;
    for chunk in &mut words {
        // SAFETY: `copy_bytes` checked that all of `into.len()` bytes are inside the view; the address is aligned to 8
        // because `head` made it so.
        let word = unsafe { aligned.wrapping_add(index).read_volatile() };
        chunk.copy_from_slice(&word.to_ne_bytes());
        index += 1;
    }
    let tail = aligned.wrapping_add(index).cast::<u8>();
    for (index, byte) in words.into_remainder().iter_mut().enumerate() {
        *byte = read_byte(tail.wrapping_add(index));
    }
}

fn read_byte(from: *const u8) -> u8 {
    // SAFETY: the caller stays inside the bytes that `copy_bytes` checked.
    unsafe { from.read_volatile() }
}

/// The length of a slice for a check against a view, in which no slice of 4 GiB and more fits.
#[inline(always)]
fn count_of(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[inline(always)]
fn word_of<'m>(base: *const AtomicU32, words: u32, index: u32) -> &'m AtomicU32 {
    assert!(index < words, "word {index} of {words}");
    let word = base.wrapping_add(index as usize);
    // SAFETY: the index is inside the view, whose maker promised valid, aligned memory for 'm; an `AtomicU32` may be
    // shared with writers in other processes.
    unsafe { &*word }
}

/// The high word that goes with a low one. A carry between the two reads of the high word shows as a small low word; the
/// later high word goes with it.
#[inline(always)]
fn high_with(low: u32, high_before: u32, high_after: u32) -> u32 {
    if low < u32::MAX / 2 { high_after } else { high_before }
}

#[inline(always)]
fn part_of(base: *const AtomicU32, words: u32, first: u32, part: u32) -> *const AtomicU32 {
    if first > words || part > words - first {
        no_part(first, part, words);
    }
    base.wrapping_add(first as usize)
}

/// A function, as what the message is made of would be stored beforehand, on the way of each record of a lane.
#[cold]
#[inline(never)]
fn no_part(first: u32, part: u32, words: u32) -> ! {
    panic!("words {first}+{part} of {words}");
}

#[inline(always)]
fn byte_of(base: *const AtomicU32, words: u32, offset: u32, bytes: u32) -> *const u8 {
    let all = words * 4;
    assert!(offset <= all && bytes <= all - offset, "bytes {offset}+{bytes} of {all}");
    base.cast::<u8>().wrapping_add(offset as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn memory(words: usize) -> Vec<AtomicU32> {
        (0..words as u32).map(|i| AtomicU32::new(i.wrapping_mul(0x0403_0201))).collect()
    }

    /// Begins and lengths in 64 bytes. Miri gets each alignment of both ends, without a whole word between and with some,
    /// and what ends with the memory.
    fn places() -> impl Iterator<Item = (usize, usize)> {
        let all = (0..20).flat_map(|start| (0..(64 - start)).map(move |len| (start, len)));
        all.filter(|&(start, len)| !cfg!(miri) || (start < 4 && len < 13) || start + len == 63 || len == 0)
    }

    #[test]
    fn copies_at_every_alignment() {
        let atomics = memory(16);
        let own = OwnWords::of(&atomics);
        let bytes: Vec<u8> = atomics.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
        for (start, len) in places() {
            let mut into = std::vec![0; len];
            own.as_peer().copy_bytes(start as u32, &mut into);
            assert_eq!(into, bytes[start..start + len]);
            into.fill(0);
            own.as_peer().load_bytes(start as u32, &mut into);
            assert_eq!(into, bytes[start..start + len]);
        }
    }

    #[test]
    fn writes_at_every_alignment() {
        for (start, len) in places() {
            let atomics: Vec<AtomicU32> = (0..16).map(|_| AtomicU32::new(0)).collect();
            let from: Vec<u8> = (1..=len as u8).collect();
            OwnWords::of(&atomics).write_bytes(start as u32, &from);
            let bytes: Vec<u8> = atomics.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
            assert_eq!(bytes[start..start + len], from);
            assert!(bytes[..start].iter().chain(&bytes[start + len..]).all(|byte| *byte == 0));
        }
    }

    /// Where several threads write words and parts of words of one participant, each byte is somebody's; Miri finds
    /// nothing that is not atomic, or atomic in two sizes.
    #[test]
    fn threads_may_write_the_same_bytes() {
        let atomics: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(0)).collect();
        let own = OwnWords::of(&atomics);
        std::thread::scope(|scope| {
            let own = &own;
            scope.spawn(move || own.write_bytes(1, &[1; 12]));
            scope.spawn(move || own.write_bytes(4, &[2; 8]));
            scope.spawn(move || own.set(2, 0x0303_0303));
        });
        let bytes: Vec<u8> = atomics.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
        assert!(bytes[1..4].iter().chain(&bytes[12..13]).all(|byte| *byte == 1), "{bytes:?}");
        assert!(bytes[4..12].iter().all(|byte| (1..=3).contains(byte)), "{bytes:?}");
    }

    #[test]
    #[should_panic(expected = "bytes 4+4294967295 of")]
    fn no_slice_of_4_gib_fits() {
        let atomics = memory(4);
        let _ = byte_of(atomics.as_ptr(), 4, 4, count_of((1 << 32) + 8));
    }

    #[test]
    fn counters_carry() {
        let atomics = memory(2);
        let own = OwnWords::of(&atomics);
        own.set(0, u32::MAX);
        own.set(1, 7);
        own.count(0, 1, 3);
        assert_eq!(own.as_peer().counter(0, 1), (8u64 << 32) + 2);
    }

    #[test]
    #[should_panic(expected = "word 2 of 2")]
    fn outside_is_our_bug() {
        let atomics = memory(2);
        OwnWords::of(&atomics).get(2);
    }

    #[test]
    fn a_counter_is_not_seen_half_carried() {
        let half = u32::MAX / 2;
        let pairs = [(0, 2), (1, 2), (half - 1, 2), (half, 1), (half + 1, 1), (u32::MAX, 1)];
        for (low, high) in pairs {
            assert_eq!(high_with(low, 1, 2), high, "{low}");
        }
    }

    #[test]
    fn a_part_outside_is_a_panic_that_names_it() {
        let atomics = memory(4);
        let whole = OwnWords::of(&atomics);
        for (first, part) in [(0, 4), (2, 2), (4, 0)] {
            assert_eq!(whole.as_peer().part(first, part).len(), part);
        }
        for (first, part) in [(5, 0), (2, 3), (4, 1), (6, 1), (u32::MAX, 2)] {
            let panicked = std::panic::catch_unwind(|| whole.as_peer().part(first, part).len()).unwrap_err();
            let message = panicked.downcast_ref::<std::string::String>().unwrap();
            assert_eq!(*message, std::format!("words {first}+{part} of 4"));
        }
    }
}
