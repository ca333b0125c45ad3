//! The memory of a link: our section, which only we write, and the peer's, which we can only read.
//!
//! What you may rely on: as `os/sealed.rs` says: nobody can get another writable mapping of ours, and a peer's was
//! checked (seals, length, header) before it was mapped, so reading it cannot fault. Both stay mapped as long as the link
//! or a [`Lent`] block of it lives.
//!
//! How it works: the part with lane and returns has its pages from the begin; a block gets them when it is first written.

use std::io::IoSliceMut;
use std::sync::{Arc, Mutex, PoisonError};

use musubi_core::lane::{self, Returns};
use musubi_core::layout::{LINK_MAGIC, LINK_VERSION, LinkShape, link};
use musubi_core::sync::Site;
use musubi_core::words::{OwnWords, PeerWords};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{AtFlags, FileType, StatxFlags, fstat, statx};
use rustix::io::{Errno, ReadWriteFlags};

use super::hello::{Hello, Refused};
use crate::error::Error;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Run;
use crate::os::mapping::Mapping;
use crate::os::sealed::{self, Unusable};

/// Our section of a link that is being made.
#[derive(Debug)]
pub(super) struct OwnHalf {
    pub(super) fd: Descriptor,
    mapping: Mapping,
}

impl OwnHalf {
    /// Makes the section, sealed, with its header.
    pub(super) fn create(me: &Hello, peer: u16) -> Result<OwnHalf, Error> {
        let bytes = me.shape.section_bytes().ok_or(Error::Plan)?;
        let (fd, mapping) = sealed::new_own("musubi-link", bytes, me.shape.blocks_at())?;
        let half = OwnHalf { fd, mapping };
        write_header(&own_words(&half.mapping), me, peer);
        Ok(half)
    }
}

/// The section that a peer sent.
#[derive(Debug)]
pub(super) struct PeerHalf(Mapping);

impl PeerHalf {
    /// Checks and maps it.
    ///
    /// # Errors
    /// [`Refused::Memory`] if it is not the section of a link that `they` announced for `me`; [`Refused::Busy`] if the kernel
    /// has no room for us to map it now, which is no fault of theirs.
    pub(super) fn adopt(fd: &Descriptor, they: &Hello, me: u16) -> Result<PeerHalf, Refused> {
        let bytes = they.shape.section_bytes().ok_or(Refused::Memory)?;
        let mapping = sealed::adopt(fd, bytes, they.shape.blocks_at()).map_err(|unusable| match unusable {
            Unusable::Unfit => Refused::Memory,
            Unusable::NoRoom(_) => Refused::Busy,
        })?;
        if header_fits(&peer_words(&mapping), they, me) { Ok(PeerHalf(mapping)) } else { Err(Refused::Memory) }
    }
}

/// Both halves, and what gives blocks back.
#[derive(Debug)]
pub(super) struct LinkMemory {
    own: Mapping,
    peer: Mapping,
    shape: LinkShape,
    returns: Mutex<Returns<'static>>,
    /// Rings the peer.
    bell: Descriptor,
    /// A child made by `fork` has copies of blocks, but neither mapping.
    run: Run,
}

/// The lanes in this memory, which must not outlive it.
pub(super) fn join(
    own: OwnHalf,
    peer: PeerHalf,
    bell: Descriptor,
    shape: LinkShape,
) -> Option<(lane::Link<'static>, Arc<LinkMemory>)> {
    let (own, peer) = (own.mapping, peer.0);
    let (lanes, returns) = lane::Link::new(own_words(&own), peer_words(&peer), shape).ok()?;
    Some((lanes, Arc::new(LinkMemory { own, peer, shape, returns: Mutex::new(returns), bell, run: Run::this() })))
}

/// All words of our section.
///
/// The lifetime is a promise to the callers in this module: whatever uses the words is kept beside the mapping.
fn own_words(mapping: &Mapping) -> OwnWords<'static> {
    let words = (mapping.bytes() / 4) as u32;
    // SAFETY: the mapping is page-aligned, readable and writable for `words` words; views are kept only beside it (`Link`,
    // `LinkMemory`). Sealing keeps other processes from writing, and each word has one writing module here.
    unsafe { OwnWords::new(mapping.address().cast(), words) }
}

/// All words of a peer's section; the lifetime as for [`own_words`].
fn peer_words(mapping: &Mapping) -> PeerWords<'static> {
    let words = (mapping.bytes() / 4) as u32;
    // SAFETY: the mapping is page-aligned and readable for `words` words, and views are kept only beside it; its pages
    // cannot vanish, since seals and length were checked before it was mapped.
    unsafe { PeerWords::new(mapping.address().cast_const().cast(), words) }
}

fn write_header(words: &OwnWords<'_>, me: &Hello, peer: u16) {
    words.set(link::VERSION, LINK_VERSION);
    words.set(link::HASH_LOW, me.hash as u32);
    words.set(link::HASH_HIGH, (me.hash >> 32) as u32);
    words.set(link::NODE, u32::from(me.from));
    words.set(link::PEER, u32::from(peer));
    words.set(link::INCARNATION, me.incarnation);
    words.set(link::SLOTS, me.shape.slots);
    words.set(link::BLOCKS, me.shape.blocks);
    words.set(link::BLOCK_BYTES, me.shape.block_bytes);
    words.publish(link::MAGIC, LINK_MAGIC, Site::PublishLink);
}

fn header_fits(words: &PeerWords<'_>, they: &Hello, me: u16) -> bool {
    let hash = u64::from(words.get(link::HASH_LOW)) | u64::from(words.get(link::HASH_HIGH)) << 32;
    words.see(link::MAGIC, Site::SeeLink) == LINK_MAGIC
        && words.get(link::VERSION) == LINK_VERSION
        && hash == they.hash
        && words.get(link::NODE) == u32::from(they.from)
        && words.get(link::PEER) == u32::from(me)
        && words.get(link::INCARNATION) == they.incarnation
        && words.get(link::SLOTS) == they.shape.slots
        && words.get(link::BLOCKS) == they.shape.blocks
        && words.get(link::BLOCK_BYTES) == they.shape.block_bytes
}

/// Whether what a peer sent as its bell may be one: nothing that has a type of file. To read a pipe or a socket one may
/// have to wait for its lock, which a reader keeps whose memory does not answer; those without a type have none such, or
/// cannot be read with `RWF_NOWAIT`. (Whether it can wake the peer is the peer's own affair.) What is asked for is what the
/// kernel has: whoever serves a file need not answer.
pub(super) fn is_bell(fd: &Descriptor) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let mode = match statx(fd, c"", flags, StatxFlags::TYPE) {
        Ok(stat) => Ok(u32::from(stat.stx_mode)),
        // A filter that knows only the older call.
        Err(Errno::NOSYS | Errno::PERM) => fstat(fd).map(|stat| stat.st_mode),
        Err(error) => Err(error),
    };
    mode.is_ok_and(|mode| FileType::from_raw_mode(mode) == FileType::Unknown)
}

/// A bell of our own, to be watched for `EPOLLOUT`, each edge of which is a ring. It is never written after this.
///
/// Who rings it reads 1 of it: of a semaphore in which there is more than is ever taken. A reading, and no writing, can be
/// told for itself not to wait (`RWF_NOWAIT`): the flag of the descriptor is the peer's to change at any time.
pub(super) fn new_bell() -> Option<Descriptor> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
    let bell = Descriptor::from(eventfd(0, flags).ok()?);
    rustix::io::write(&bell, &RINGS.to_ne_bytes()).ok()?;
    Some(bell)
}

fn ring(bell: &Descriptor) {
    let mut taken = [0; 8];
    let into = &mut [IoSliceMut::new(&mut taken)];
    // It has no places to be read from. If that fails, the peer has spoilt its own bell.
    let _ = rustix::io::preadv2(bell, into, u64::MAX, ReadWriteFlags::NOWAIT);
}

/// As often a bell can be rung: for some thousand years.
const RINGS: u64 = 1 << 62;

impl LinkMemory {
    /// Rings the peer. Never waits, whatever the peer has made of its bell.
    pub(super) fn ring(&self) {
        ring(&self.bell);
    }

    fn returns(&self) -> std::sync::MutexGuard<'_, Returns<'static>> {
        self.returns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stays(&self) -> &Mapping {
        &self.own
    }
}

/// A block that came, in our hands until dropped, from whichever thread.
#[derive(Debug)]
pub struct Lent {
    memory: Arc<LinkMemory>,
    offset: u32,
    bytes: u32,
    block: u32,
}

impl Lent {
    /// Takes a block that a message named, if there is such a block and we do not have it.
    pub(super) fn take(memory: &Arc<LinkMemory>, block: u32, bytes: u32) -> Result<Lent, musubi_core::Error> {
        let offset = memory.shape.block_at(block).filter(|_| bytes <= memory.shape.block_bytes);
        let offset = offset.ok_or(musubi_core::Error::PeerFault)?;
        memory.returns().hold(block)?;
        debug_assert!(memory.stays().bytes() > 0);
        Ok(Lent { memory: Arc::clone(memory), offset, bytes, block })
    }

    /// Payload bytes.
    pub fn len(&self) -> usize {
        self.bytes as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies payload bytes from `offset` on; gives how many there were, at most `into.len()`.
    pub fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        let offset = offset.min(self.len());
        let count = (self.len() - offset).min(into.len());
        peer_words(&self.memory.peer).copy_bytes(self.offset + offset as u32, &mut into[..count]);
        count
    }

    /// Where the payload lies. Its bytes are the peer's to change.
    pub fn address(&self) -> *const u8 {
        peer_words(&self.memory.peer).bytes_at(self.offset, self.bytes)
    }

    /// Whether at most half of the peer's blocks are in our hands.
    pub fn may_be_kept(&self) -> bool {
        let (held, all) = self.memory.returns().held();
        held * 2 <= all
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.memory.run.is_this() {
            return;
        }
        // The guard is gone before the ring: a system call under the lock would make other threads wait.
        let sleeps = self.memory.returns().give_back(self.block);
        if sleeps == Ok(true) {
            self.memory.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    use super::*;

    #[test]
    fn an_empty_bell_that_may_wait_does_not_make_us_wait() {
        let bell = Descriptor::from(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            ring(&bell);
            done.send(())
        });
        is_done.recv_timeout(std::time::Duration::from_secs(20)).expect("the ring waits");
    }

    #[test]
    fn only_what_cannot_make_us_wait_is_a_bell() {
        assert!(is_bell(&new_bell().unwrap()));
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let flags = SocketFlags::NONBLOCK;
        let (one, other) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let file = sealed::new_common("musubi-test", 4096).unwrap();
        for fd in [reader.into(), writer.into(), one.into(), other.into(), file] {
            assert!(!is_bell(&fd), "{fd:?}");
        }
    }
}
