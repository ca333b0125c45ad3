//! Packets in a program's hands: which addresses were given out, and what lies there.
//!
//! What you may rely on: an address is taken back once, in any order, by the node that received it; any other is refused.
//! What is there stays readable until then: also when the channel closes, and when the node ends (then until the
//! process ends, or a node of the same number takes it back).
//!
//! How it works: large packets stay where the peer's lane or the network's link put them; short ones get a place of their
//! own. Behind each there is a zero byte, for programs that send text without its end; only a packet that fills a block
//! of a lane has no room for it. The addresses are the keys of a map.

use alloc::vec;
use alloc::vec::Vec;

use musubi_mcapi::engine::ChannelHandle;
use musubi_transport::NodeId;
use musubi_transport::links::{Block as _, Payload};

use super::port::{Addresses, Block, with_left};

/// A packet given to the program.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Where it came through.
    pub(crate) handle: ChannelHandle,
    /// How long it is.
    pub(crate) bytes: usize,
    /// Keeps what is at the address.
    place: Place,
}

impl Packet {
    /// Frees its place. A buffer that the links can use again is the result.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.place {
            Place::Received(buffer) => Some(buffer),
            Place::Own { .. } | Place::Lent { .. } => None,
        }
    }
}

/// Memory at an address.
#[derive(Debug)]
enum Place {
    /// In words, so that a program may read any type there.
    Own { _words: Vec<u64> },
    /// In place.
    Lent { _block: Block },
    /// In the buffer in which a link received it.
    Received(Vec<u8>),
}

/// The packets that a node's program has.
#[derive(Debug, Default)]
pub(crate) struct PacketsInHand {
    packets: Addresses<Packet>,
}

/// What ended nodes' programs had not given back, by address.
pub(crate) type Left = Vec<(NodeId, usize, Packet)>;

impl PacketsInHand {
    /// Keeps a packet for the program; gives its address, which is not NULL.
    pub(crate) fn keep(&mut self, handle: ChannelHandle, payload: Payload<Block>) -> *mut u8 {
        let bytes = payload.len();
        let (address, place) = match payload {
            Payload::Lent(block) if block.may_be_kept() && bytes > 0 => {
                (block.address().cast_mut(), Place::Lent { _block: block })
            }
            Payload::Owned(buffer) if may_be_kept(&buffer) => received(buffer),
            payload => own(&payload),
        };
        self.packets.insert(address.addr(), Packet { handle, bytes, place });
        address
    }

    /// Takes the packet at an address back.
    pub(crate) fn release(&mut self, address: usize, me: NodeId) -> Option<Packet> {
        self.packets.remove(&address).or_else(|| take_left(address, me))
    }

    /// How many packets the program has.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The node ends: what is left stays where it is.
    pub(crate) fn leave(&mut self, me: NodeId) {
        let packets = core::mem::take(&mut self.packets);
        with_left(|left| left.extend(packets.into_iter().map(|(address, packet)| (me, address, packet))));
    }
}

/// Whether a program can have a buffer as it is: it may read any type there, and there is room for a byte more.
fn may_be_kept(buffer: &Vec<u8>) -> bool {
    !buffer.is_empty() && buffer.capacity() > buffer.len() && buffer.as_ptr().cast::<u64>().is_aligned()
}

fn received(mut buffer: Vec<u8>) -> (*mut u8, Place) {
    buffer.push(0);
    (buffer.as_mut_ptr(), Place::Received(buffer))
}

/// A copy in memory of the program's own.
fn own(payload: &Payload<Block>) -> (*mut u8, Place) {
    let bytes = payload.len();
    // One byte more at least: an empty packet has an address too, and text its end.
    let mut words = vec![0u64; bytes / 8 + 1];
    let address: *mut u8 = words.as_mut_ptr().cast();
    // SAFETY: the words are at least so many bytes, all initialised, and nobody else knows them yet.
    let room = unsafe { core::slice::from_raw_parts_mut(address, bytes) };
    payload.copy_to(room);
    (address, Place::Own { _words: words })
}

#[cold]
fn take_left(address: usize, me: NodeId) -> Option<Packet> {
    with_left(|left| {
        let place = left.iter().position(|(node, at, _)| *node == me && *at == address)?;
        Some(left.swap_remove(place).2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: &[u8]) -> Payload<Block> {
        Payload::Owned(bytes.to_vec())
    }

    #[test]
    fn an_address_is_taken_back_once_in_any_order_by_its_node() {
        let (me, other) = (NodeId::new(1, 1).unwrap(), NodeId::new(1, 2).unwrap());
        let mut held = PacketsInHand::default();
        let at: Vec<*mut u8> =
            [&b"one"[..], b"", b"three"].iter().map(|bytes| held.keep(ChannelHandle(5), packet(bytes))).collect();
        // SAFETY: five bytes are there while the packet is held.
        assert_eq!(unsafe { core::slice::from_raw_parts(at[2], 5) }, b"three");
        assert!(at.iter().all(|address| address.addr() % 8 == 0));
        let text = held.keep(ChannelHandle(5), packet(b"sixteen letters!"));
        // SAFETY: the packet's sixteen bytes are there while it is held, and one more.
        assert_eq!(unsafe { core::ffi::CStr::from_ptr(text.cast()) }, c"sixteen letters!");
        let mut roomy = b"forty-one bytes, of which none is a zero".to_vec();
        roomy.reserve(100);
        roomy.extend_from_slice(&[b'!'; 60]);
        roomy.truncate(41);
        let (was_at, roomy_bytes) = (roomy.as_ptr().addr(), roomy.len());
        let kept = held.keep(ChannelHandle(5), Payload::Owned(roomy));
        assert_eq!(kept.addr(), was_at, "what a link received is not copied");
        // SAFETY: the packet's bytes are there while it is held, and one more.
        assert_eq!(unsafe { core::ffi::CStr::from_ptr(kept.cast()) }.to_bytes().len(), roomy_bytes);
        let buffer = held.release(kept.addr(), me).unwrap().into_buffer().unwrap();
        assert_eq!(buffer.as_ptr().addr(), was_at, "and given back");
        assert!(held.release(kept.addr(), me).is_none());
        assert!(held.release(0x1000, me).is_none());
        assert_eq!(held.release(text.addr(), me).unwrap().bytes, 16);
        for place in [2, 0, 1] {
            let length = [3, 0, 5][place];
            assert_eq!(held.release(at[place].addr(), me).unwrap().bytes, length);
            assert!(held.release(at[place].addr(), me).is_none());
        }
        let late = held.keep(ChannelHandle(5), packet(b"late"));
        held.leave(me);
        assert_eq!(held.len(), 0);
        let mut next = PacketsInHand::default();
        assert!(next.release(late.addr(), other).is_none());
        assert_eq!(next.release(late.addr(), me).unwrap().bytes, 4);
    }
}
