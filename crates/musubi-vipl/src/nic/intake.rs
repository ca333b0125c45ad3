//! What this node takes of each class: credit in messages and bytes, granted to the nodes that send to it.
//!
//! What you may rely on: where the description bounds a class of this NIC, the peers together may send at most what its token
//! bucket has let out: over `T` seconds `rate * T` and a burst, and what they had been granted before and not used, which is another
//! burst and a message of each peer at most. In bytes, messages that have begun go on, whatever they are. A peer that sends beyond
//! its credit loses the connection that it did so on; the frame is dropped before anything of it is looked at, and counted. A
//! grant that is lost or comes twice does no harm: grants are running totals.
//!
//! How it works: each linked peer may hold a *share*, the burst by the number of linked peers, at least one message and one
//! byte. Whose credit is down to half of that is filled up from the bucket, peers in turn; what the bucket cannot give now is
//! given later ([`REVIEW_NS`]). Beyond the first message of each, all together hold a burst at most. Both sides count frames of a class in the order in
//! which they go, from headers alone, so what was sent to a connection that is no more is counted too.
//!
//! What it does not do: bound answers to reads of this side's own, words of VIs, or the connection manager's frames.

use alloc::boxed::Box;
use alloc::vec::Vec;

use musubi_transport::frame::Header;
use musubi_transport::links::{Block, Links};
use musubi_transport::topology::ClassIntake;
use musubi_transport::{NodeId, Priority, Regulation, Regulator};

use super::carriage::{CLASSES, Carriage};
use super::frames::Edge;
use super::{Connection, NicState};
use crate::wire::{NicFrame, ViName};

/// Time between two looks whether the bucket has more for who has too little.
const REVIEW_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Most that one grant adds: totals wrap at 32 bits on the wire.
const GRANT_MAX: i64 = 1 << 30;

/// Messages, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// One peer's account of one class.
#[derive(Clone, Copy, Debug, Default)]
struct CreditAccount {
    granted: Amount,
    came: Amount,
    /// The last grant found no room.
    is_untold: bool,
}

impl CreditAccount {
    /// What it may still send; bytes may be owed.
    fn left(&self) -> (i64, i64) {
        let left = |granted: u64, came: u64| granted.wrapping_sub(came) as i64;
        (left(self.granted.messages, self.came.messages), left(self.granted.bytes, self.came.bytes))
    }
}

/// What this node takes of one class.
#[derive(Debug)]
struct ClassBound {
    regulation: Regulation,
    regulator: Regulator,
    /// By the peer's place.
    accounts: Vec<CreditAccount>,
    /// Who is looked at first in the next look.
    first: usize,
    /// When somebody is to be looked at again; `u64::MAX` if nobody lacks anything.
    due_ns: u64,
    /// What each peer may hold, as the last look found.
    share: (i64, i64),
    /// Messages that came beyond credit.
    beyond: u64,
}

/// What this node takes of all classes.
#[derive(Debug, Default)]
pub(super) struct Intake {
    classes: [Option<Box<ClassBound>>; CLASSES],
    is_bounded: bool,
}

impl Intake {
    /// By what the description says of this NIC.
    pub(super) fn of(intakes: &[ClassIntake]) -> Intake {
        let mut intake = Intake::default();
        for ClassIntake { class, regulation } in intakes.iter().filter(|one| !one.regulation.is_none()) {
            let regulation = Regulation {
                messages_burst: regulation.messages_burst.max(1),
                bytes_burst: regulation.bytes_burst.max(1),
                ..*regulation
            };
            let regulator = Regulator::new(regulation);
            let (accounts, first, due_ns, share, beyond) = (Vec::new(), 0, 0, (0, 0), 0);
            let bound = ClassBound { regulation, regulator, accounts, first, due_ns, share, beyond };
            intake.classes[class.index()] = Some(Box::new(bound));
            intake.is_bounded = true;
        }
        intake
    }

    /// Whether any class is bounded.
    #[inline]
    pub(super) fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// Messages of a class that came beyond credit.
    pub(super) fn beyond(&self, class: usize) -> u64 {
        self.classes.get(class).and_then(Option::as_deref).map_or(0, |bound| bound.beyond)
    }

    /// A peer's link is new: its accounts are.
    pub(super) fn begin(&mut self, peer: u16) {
        for bound in self.classes.iter_mut().flatten() {
            *bound.account(peer) = CreditAccount::default();
            bound.due_ns = 0;
        }
    }

    /// Grants what is due; gives when something is next.
    pub(super) fn grant(&mut self, now_ns: u64, carriage: &mut Carriage, links: &mut impl Links) -> u64 {
        let mut next_ns = u64::MAX;
        for (class, bound) in self.classes.iter_mut().enumerate() {
            let Some(bound) = bound else { continue };
            if bound.due_ns <= now_ns {
                bound.review(now_ns, class, carriage, links);
            }
            next_ns = next_ns.min(bound.due_ns);
        }
        next_ns
    }
}

impl ClassBound {
    fn account(&mut self, peer: u16) -> &mut CreditAccount {
        let place = usize::from(peer);
        if place >= self.accounts.len() {
            self.accounts.resize_with(place + 1, CreditAccount::default);
        }
        &mut self.accounts[place]
    }

    /// Whether a frame is within a peer's credit; it counts then.
    fn takes(&mut self, peer: u16, begins: bool, bytes: u32) -> bool {
        let has = [self.regulation.messages_per_s > 0, self.regulation.bytes_per_s > 0];
        let account = self.account(peer);
        let (messages, bytes_left) = account.left();
        if begins && ((has[0] && messages <= 0) || (has[1] && bytes_left <= 0)) {
            self.beyond += 1;
            return false;
        }
        account.came.messages = account.came.messages.wrapping_add(u64::from(begins));
        account.came.bytes = account.came.bytes.wrapping_add(u64::from(bytes));
        true
    }

    /// What each may hold where so many are linked: messages and bytes; 0 of what is not bounded.
    fn share_of(&self, linked: usize) -> (i64, i64) {
        let linked = linked.max(1) as i64;
        let of = |rate: bool, burst: u64| if rate { ((burst.min(GRANT_MAX as u64) as i64) / linked).max(1) } else { 0 };
        let Regulation { messages_per_s, messages_burst, bytes_per_s, bytes_burst } = self.regulation;
        (of(messages_per_s > 0, messages_burst.into()), of(bytes_per_s > 0, bytes_burst))
    }

    /// Whether a peer is down to half of its share.
    fn lacks(&self, peer: usize, share: (i64, i64)) -> bool {
        let (messages, bytes) = self.accounts.get(peer).copied().unwrap_or_default().left();
        (share.0 > 0 && messages * 2 <= share.0) || (share.1 > 0 && bytes * 2 <= share.1)
    }

    /// Fills up who has too little, as far as the bucket goes.
    fn review(&mut self, now_ns: u64, class: usize, carriage: &mut Carriage, links: &mut impl Links) {
        let peers = carriage.peers.len();
        let linked: Vec<bool> = carriage.peers.iter().map(|peer| peer.is_linked).collect();
        let share = self.share_of(linked.iter().filter(|linked| **linked).count());
        (self.share, self.due_ns) = (share, u64::MAX);
        let first = self.first;
        for peer in (0..peers).map(|turn| (first + turn) % peers.max(1)).filter(|peer| linked[*peer]) {
            if self.lacks(peer, share) {
                self.fill(now_ns, peer, share, &linked);
            }
            let account = *self.account(peer as u16);
            if account.is_untold {
                let is_told = tell(class, (peer as u16, account.granted), carriage, links);
                self.account(peer as u16).is_untold = !is_told;
            }
            if self.lacks(peer, share) || self.account(peer as u16).is_untold {
                self.due_ns = now_ns.saturating_add(self.pause_ns());
            }
        }
        self.first = (self.first + 1) % peers.max(1);
    }

    /// Until the bucket may have more: [`REVIEW_NS`], or what it takes to let one unit out where that is longer.
    fn pause_ns(&self) -> u64 {
        let Regulation { messages_per_s, bytes_per_s, .. } = self.regulation;
        let of = |rate: u64| SECOND_NS.checked_div(rate).unwrap_or(u64::MAX);
        of(messages_per_s.into()).min(of(bytes_per_s)).max(REVIEW_NS)
    }

    fn fill(&mut self, now_ns: u64, peer: usize, share: (i64, i64), linked: &[bool]) {
        let held = |of: fn((i64, i64)) -> i64| -> i64 {
            let accounts = self.accounts.iter().zip(linked).filter(|(_, linked)| **linked);
            accounts.map(|(account, _)| of(account.left()).max(0)).sum()
        };
        let all = (held(|left| left.0), held(|left| left.1));
        let left = self.account(peer as u16).left();
        // Beyond what it needs to go on at all, only what all together may hold.
        let wanted = |share: i64, left: i64, free: i64| {
            let least = if left <= 0 { 1 - left } else { 0 };
            if share > 0 { (share - left).min(free).max(least).clamp(0, GRANT_MAX) as u32 } else { 0 }
        };
        let Regulation { messages_burst, bytes_burst, .. } = self.regulation;
        let messages = wanted(share.0, left.0, i64::from(messages_burst) - all.0);
        let bytes = wanted(share.1, left.1, bytes_burst.min(1 << 60) as i64 - all.1);
        let (messages, bytes) = self.regulator.draw(now_ns, messages, bytes);
        let account = self.account(peer as u16);
        account.granted.messages = account.granted.messages.wrapping_add(u64::from(messages));
        account.granted.bytes = account.granted.bytes.wrapping_add(u64::from(bytes));
        account.is_untold |= messages > 0 || bytes > 0;
    }
}

/// Tells a peer what it has been granted. False if there is no room.
fn tell(class: usize, (peer, granted): (u16, Amount), carriage: &mut Carriage, links: &mut impl Links) -> bool {
    let Amount { messages, bytes } = granted;
    let frame = NicFrame::Grant { class: class as u8, messages: messages as u32, bytes: bytes as u32 };
    let header = frame.header(ViName::default(), Priority::MOST_URGENT, 0);
    carriage.put(peer, &header, &[], ViName::default(), links)
}

impl<B: Block> NicState<B> {
    /// Grants what is due; gives when something is next.
    pub(super) fn tick_intake(&mut self, links: &mut impl Links<Block = B>) -> u64 {
        if !self.intake.is_bounded() {
            return u64::MAX;
        }
        self.intake.grant(self.now_ns, &mut self.carriage, links)
    }

    /// Whether a frame of a VI's peer may come in; if not, its connection has ended. Where some class is bounded only.
    #[cold]
    pub(super) fn takes_in(&mut self, from: NodeId, header: &Header, links: &mut impl Links<Block = B>) -> bool {
        if from == self.carriage.me {
            return true;
        }
        let peer = self.carriage.enter(from);
        let charge = NicFrame::charge(header);
        let class = header.class.index();
        let Some(bound) = self.intake.classes.get_mut(class).and_then(Option::as_deref_mut) else {
            return charge.is_none() || self.is_of_its_class(peer, header, links);
        };
        let Some((begins, bytes)) = charge else { return true };
        if NicFrame::is_offer(header.kind) || !bound.takes(peer, begins, bytes) {
            self.end_beyond(peer, ViName(header.to), links);
            return false;
        }
        if bound.due_ns == u64::MAX && bound.lacks(usize::from(peer), bound.share) {
            bound.review(self.now_ns, class, &mut self.carriage, links);
        }
        self.is_of_its_class(peer, header, links)
    }

    /// Whether a frame is of the class of the VI that it is for: else it would come in by the credit of another.
    fn is_of_its_class(&mut self, peer: u16, header: &Header, links: &mut impl Links<Block = B>) -> bool {
        let name = ViName(header.to);
        let entry = name.place().and_then(|place| Some(self.vis.at_place_mut(place)?.1));
        let connection = entry.and_then(|entry| entry.connection.as_ref());
        let is_other = connection.is_some_and(|connection| connection.here == name && connection.class != header.class);
        if is_other {
            self.end_beyond(peer, name, links);
        }
        !is_other
    }

    /// A peer does not keep to its credit: the connection that it names, if it is one with it, ends.
    fn end_beyond(&mut self, peer: u16, name: ViName, links: &mut impl Links<Block = B>) {
        self.refuse();
        let Some(place) = name.place() else { return };
        let Some((_, entry)) = self.vis.at_place_mut(place) else { return };
        let is_it = |connection: &mut Connection| connection.here == name && connection.peer == peer;
        let Some(connection) = entry.connection.take_if(is_it) else { return };
        entry.vi.lose(&mut Edge::<B>::of(&self.memory));
        let Connection { here, there, class, .. } = connection;
        self.say(peer, &NicFrame::Disconnect, (here, there), class, links);
        self.lost += 1;
        self.settle(place);
        self.changes += 1;
        self.review_wants(links);
    }
}
