//! Credit of a channel: how much may be under way to, and unread at, its receiving end.
//!
//! What you may rely on: the receiver never holds more than the window, whatever the sender does; a sender with
//! something to send is told of every room for it as soon as the receiver has nothing else to do; on a busy channel one
//! frame of credit stands for a quarter of the window.
//!
//! How it works: both sides count items and bytes since the channel was connected, wrapping. A sender that finds no
//! room *asks* once for each credit it gets. The receiver tells what it has given back when that is a quarter of the window,
//! and earlier only if it was asked and its queue has run empty: then nobody but the sender can bring things forward.

use crate::limits::{CHANNEL_BYTES, PACKET_CREDIT, SCALAR_CREDIT};

/// How much a channel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    items: u32,
    bytes: u32,
}

/// Of a packet channel.
pub(crate) const PACKETS: Size = Size { items: PACKET_CREDIT, bytes: CHANNEL_BYTES };
/// Of a scalar channel; its bytes are not counted.
pub(crate) const SCALARS: Size = Size { items: SCALAR_CREDIT, bytes: 0 };

/// Items and bytes since the channel was connected, wrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) items: u32,
    pub(crate) bytes: u32,
}

/// What went through, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

impl Total {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.items += 1;
        self.bytes += bytes as u64;
    }
}

impl Count {
    #[inline]
    fn since(self, earlier: Count) -> Count {
        Count { items: self.items.wrapping_sub(earlier.items), bytes: self.bytes.wrapping_sub(earlier.bytes) }
    }

    #[inline]
    fn add(&mut self, items: u32, bytes: usize) {
        self.items = self.items.wrapping_add(items);
        self.bytes = self.bytes.wrapping_add(bytes as u32);
    }
}

impl Size {
    /// Whether an item of so many bytes fits beside these. One alone always does.
    #[inline]
    fn fits(self, held: Count, bytes: usize) -> bool {
        held.items == 0
            || held.items < self.items && (self.bytes == 0 || held.bytes as usize + bytes <= self.bytes as usize)
    }

    #[inline]
    fn is_quarter(self, count: Count) -> bool {
        count.items * 4 >= self.items || self.bytes != 0 && count.bytes as u64 * 4 >= u64::from(self.bytes)
    }
}

/// The sender's side.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    sent: Count,
    credited: Count,
    asked: bool,
    pub(crate) total: Total,
}

impl Outgoing {
    /// Whether an item of so many bytes may go.
    #[inline]
    pub(crate) fn admits(&self, size: Size, bytes: usize) -> bool {
        size.fits(self.sent.since(self.credited), bytes)
    }

    /// One went.
    #[inline]
    pub(crate) fn send(&mut self, bytes: usize) {
        self.sent.add(1, bytes);
        self.total.add(bytes);
    }

    /// Whether the receiver is to be asked now: there was no room, and it was not asked since its last credit.
    pub(crate) fn ask(&mut self) -> bool {
        !core::mem::replace(&mut self.asked, true)
    }

    /// Takes a credit, if it says neither less than the last one nor more than was sent.
    pub(crate) fn credit(&mut self, taken: Count) -> bool {
        let (fresh, held) = (taken.since(self.credited), self.sent.since(self.credited));
        if fresh.items > held.items || fresh.bytes > held.bytes {
            return false;
        }
        self.credited = taken;
        self.asked = false;
        true
    }

    /// Items sent for which no credit came back.
    pub(crate) fn held(&self) -> u32 {
        self.sent.since(self.credited).items
    }
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    arrived: Count,
    given: Count,
    told: Count,
    asked: bool,
    pub(crate) total: Total,
}

impl Incoming {
    /// Takes note of an item that came, if the sender had credit for it.
    #[inline]
    pub(crate) fn arrive(&mut self, size: Size, bytes: usize) -> bool {
        let fits = size.fits(self.arrived.since(self.told), bytes);
        if fits {
            self.arrived.add(1, bytes);
            self.total.add(bytes);
        }
        fits
    }

    /// Takes note of an item that needs its place no more. No more are taken back than came.
    #[inline]
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let held = self.arrived.since(self.given);
        if held.items > 0 {
            self.given.add(1, bytes.min(held.bytes as usize));
        }
    }

    /// Takes note that the sender found no room.
    pub(crate) fn asked(&mut self) {
        self.asked = true;
    }

    /// What the sender is to be told now, if anything.
    #[inline]
    pub(crate) fn due(&self, size: Size, queue_is_empty: bool) -> Option<Count> {
        let owed = self.given.since(self.told);
        let now = owed.items > 0 && (size.is_quarter(owed) || self.asked && queue_is_empty);
        now.then_some(self.given)
    }

    /// The sender has been told.
    pub(crate) fn told(&mut self, count: Count) {
        self.told = count;
        self.asked = false;
    }

    /// Items that are queued or in a program's hand.
    pub(crate) fn held(&self) -> u32 {
        self.arrived.since(self.given).items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn what_went_through_is_added_up_and_what_is_held_known() {
        let (mut sender, mut receiver) = (Outgoing::default(), Incoming::default());
        for bytes in [5, 0, 7] {
            sender.send(bytes);
            assert!(receiver.arrive(PACKETS, bytes));
        }
        assert_eq!((sender.total, sender.held()), (Total { items: 3, bytes: 12 }, 3));
        assert_eq!((receiver.total, receiver.held()), (Total { items: 3, bytes: 12 }, 3));
        for held in [2, 1, 0, 0] {
            receiver.give_back(6);
            assert_eq!(receiver.held(), held, "no more goes back than came");
        }
        assert!(sender.credit(receiver.given));
        assert_eq!((sender.held(), sender.total.items), (0, 3));
    }

    #[test]
    fn one_packet_always_fits_and_more_only_within_the_bytes() {
        let mut window = Outgoing::default();
        let beyond = CHANNEL_BYTES + 1;
        assert!(window.admits(PACKETS, beyond as usize));
        window.send(beyond as usize);
        assert!(!window.admits(PACKETS, 0));
        assert!(window.credit(Count { items: 1, bytes: beyond }));
        window.send(CHANNEL_BYTES as usize - 1);
        assert!(window.admits(PACKETS, 1) && !window.admits(PACKETS, 2));
    }

    #[test]
    fn credit_that_was_never_sent_or_goes_back_is_refused() {
        let mut window = Outgoing::default();
        window.send(10);
        window.send(10);
        assert!(!window.credit(Count { items: 3, bytes: 20 }));
        assert!(!window.credit(Count { items: 2, bytes: 21 }));
        assert!(window.credit(Count { items: 2, bytes: 20 }));
        assert!(!window.credit(Count { items: 1, bytes: 10 }));
        assert_eq!(window.held(), 0);
    }

    #[test]
    fn a_sender_beyond_its_credit_is_refused() {
        let mut window = Incoming::default();
        for _ in 0..PACKET_CREDIT {
            assert!(window.arrive(PACKETS, 1));
        }
        assert!(!window.arrive(PACKETS, 1));
    }

    #[test]
    fn a_busy_channel_gets_a_credit_a_quarter_and_an_idle_one_none() {
        let mut window = Incoming::default();
        let mut frames = 0;
        for _ in 0..1000 {
            assert!(window.arrive(SCALARS, 8));
            window.give_back(8);
            if let Some(count) = window.due(SCALARS, true) {
                window.told(count);
                frames += 1;
            }
        }
        assert_eq!(frames, 1000 / (SCALAR_CREDIT / 4));
    }

    /// How many items of so many bytes come and are given back before the sender is told, who asked for nothing.
    fn given_back_before_told(size: Size, bytes: usize) -> u32 {
        let mut window = Incoming::default();
        for count in 1.. {
            assert!(window.arrive(size, bytes));
            window.give_back(bytes);
            if let Some(told) = window.due(size, false) {
                assert_eq!(told.items, count);
                return count;
            }
        }
        unreachable!()
    }

    #[test]
    fn the_sender_is_told_of_a_quarter_of_the_window_and_of_no_less() {
        assert_eq!(given_back_before_told(SCALARS, 8), SCALAR_CREDIT / 4);
        assert_eq!(given_back_before_told(PACKETS, 1), PACKET_CREDIT / 4);
        let quarter = CHANNEL_BYTES as usize / 4;
        assert_eq!(given_back_before_told(PACKETS, quarter), 1);
        assert_eq!(given_back_before_told(PACKETS, quarter - 1), 2);
        assert_eq!(given_back_before_told(PACKETS, quarter / 2), 2);
        assert_eq!(given_back_before_told(PACKETS, 4 * quarter), 1);
    }

    #[test]
    fn bytes_of_scalars_are_not_counted() {
        let huge = CHANNEL_BYTES as usize;
        assert_eq!(given_back_before_told(SCALARS, huge), SCALAR_CREDIT / 4);
    }

    proptest! {
        /// With whatever lengths, and some packets never released, a sender with something to send always gets on once
        /// the receiver has taken all that arrived and has any room.
        #[test]
        fn nobody_starves(lengths in proptest::collection::vec(0..CHANNEL_BYTES as usize * 4 / 3, 1..200), kept in 0_u32..3) {
            let (mut sender, mut receiver) = (Outgoing::default(), Incoming::default());
            let (mut queue, mut in_hand) = (VecDeque::new(), VecDeque::new());
            for length in lengths {
                let length = length / (kept as usize * 40 + 1);
                let mut rounds = 0;
                while !sender.admits(PACKETS, length) {
                    rounds += 1;
                    prop_assert!(rounds < 40, "starves with {} held", sender.held());
                    if sender.ask() {
                        receiver.asked();
                    }
                    in_hand.extend(queue.pop_front());
                    if in_hand.len() > kept as usize || queue.is_empty() && in_hand.len() > kept as usize {
                        receiver.give_back(in_hand.pop_front().unwrap());
                    }
                    if let Some(count) = receiver.due(PACKETS, queue.is_empty()) {
                        receiver.told(count);
                        prop_assert!(sender.credit(count));
                    }
                }
                sender.send(length);
                prop_assert!(receiver.arrive(PACKETS, length));
                prop_assert!(receiver.held() <= PACKET_CREDIT);
                queue.push_back(length);
            }
        }
    }
}
