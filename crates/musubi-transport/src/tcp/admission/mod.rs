//! Who of those that connect may say who they are: a share for each address, and one of their own for those that the
//! description names.
//!
//! What you may rely on: whatever strangers do, addresses that are [`Known`] have a share of half-open connections, of
//! handshakes of TLS and of answers that nobody else can use up; among themselves the addresses share fairly. An answer to
//! what is neither TLS nor this protocol never costs a handshake, also of the same address. Memory and descriptors are
//! bounded ([`Room`], [`ACCOUNTS_MAX`]). Every call takes a time that grows with the logarithm of what is counted, however many
//! addresses and connections there are.
//!
//! How it works: an account for each address lists what is half open and holds token buckets. Half-open connections are cheap
//! (a descriptor), so there may be many; who comes when there is no room takes the place of the oldest of the address that
//! has most. What costs time or memory, a handshake of TLS or an answer to garbage, takes a token, each from a bucket of
//! its own: who has none is left alone until it is put out, so that it does not come again at once. A handshake that begins
//! when its address has as many as it may takes the place of the oldest. Of a stranger's IPv6 address the first 64 bits
//! count, as that is what one host has. Accounts without connections are forgotten, the least recently used first.
//!
//! What it does not do: tell two programs of one address apart. Who begins handshakes of TLS from the address of a
//! configured peer shares that peer's handshakes.

mod bucket;
mod known;
mod recent;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) use bucket::{Bucket, Rate};
use known::Known;
use recent::Recent;

/// Most connections that are half open at a time from known addresses, and as many from strangers.
pub const HALF_OPEN_MAX: usize = 2048;
/// Fewest of these, whatever the limit of descriptors.
const HALF_OPEN_MIN: usize = 64;
/// Handshakes of TLS under way from one stranger's address,
pub const HANDSHAKES_OF_ADDRESS_MAX: usize = 16;
/// and from one known address.
pub const HANDSHAKES_OF_KNOWN_MAX: usize = 64;
/// Addresses of which something is remembered.
pub const ACCOUNTS_MAX: usize = 5000;
const _: () = assert!(ACCOUNTS_MAX > 2 * HALF_OPEN_MAX, "there is always one to forget");

/// Handshakes, and answers as many again: at once after a quiet time, and then one each so many nanoseconds. Of all strangers,
const STRANGERS: Rate = Rate { burst: 64, each_ns: 4_000_000 };
/// of one stranger's address,
const STRANGER: Rate = Rate { burst: 16, each_ns: 16_000_000 };
/// of one known address.
const KNOWN: Rate = Rate { burst: 64, each_ns: 4_000_000 };

/// How many connections may be half open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// From addresses that are known, together.
    pub known: usize,
    /// From all others, together.
    pub strangers: usize,
}

impl Room {
    /// So that a program that may have so many descriptors keeps at least half of them for itself.
    pub fn of_descriptors(limit: u64) -> Room {
        let known = usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(HALF_OPEN_MIN, HALF_OPEN_MAX);
        Room { known, strangers: known }
    }
}

/// What counts as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Known(IpAddr),
    Stranger(IpAddr),
}

impl Source {
    /// A known address is itself; of a stranger's IPv6 address the first 64 bits count.
    fn of(address: IpAddr, is_known: bool) -> Source {
        match (is_known, address.to_canonical()) {
            (true, address) => Source::Known(address),
            (false, IpAddr::V6(address)) => Source::Stranger(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
            (false, address) => Source::Stranger(address),
        }
    }

    fn is_known(self) -> bool {
        matches!(self, Source::Known(_))
    }

    fn ordered(self) -> (bool, IpAddr) {
        match self {
            Source::Known(address) => (true, address),
            Source::Stranger(address) => (false, address),
        }
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Source) -> Ordering {
        #[cfg(test)]
        tests::count_a_comparison();
        self.ordered().cmp(&other.ordered())
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Source) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How an account is ranked among those of its class: the last one gives way, that is the one with most connections, and
/// of those the one with the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rank {
    connections: usize,
    oldest: u64,
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        #[cfg(test)]
        tests::count_a_comparison();
        self.connections.cmp(&other.connections).then(other.oldest.cmp(&self.oldest))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Default)]
struct Account {
    /// Tokens of connections that are half open; the smallest is the oldest.
    half_open: BTreeSet<u64>,
    /// Those of them whose handshake has begun.
    handshakes: BTreeSet<u64>,
    may_shake_hands: Bucket,
    may_be_answered: Bucket,
}

impl Account {
    fn rank(&self) -> Option<Rank> {
        Some(Rank { connections: self.half_open.len(), oldest: *self.half_open.first()? })
    }
}

/// What all addresses of a class share.
#[derive(Debug, Default)]
struct Class {
    half_open: usize,
    ranks: BTreeSet<Rank>,
}

/// Tokens that strangers share.
#[derive(Debug, Default)]
struct OfAllStrangers {
    handshakes: Bucket,
    answers: Bucket,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Admission {
    /// Whose addresses have a share of their own.
    pub known: Known,
    room: Room,
    accounts: BTreeMap<Source, Account>,
    /// Accounts without a connection.
    idle: Recent<Source>,
    of_known: Class,
    of_strangers: Class,
    shared: OfAllStrangers,
}

/// Of a connection that was let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    source: Source,
    /// Of the connection; a younger one's is larger.
    token: u64,
}

/// Whether a handshake may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Yes.
    Begins,
    /// Yes, in the place of this connection, which is to be put out.
    BeginsInsteadOf(u64),
    /// There have been too many of late.
    Refused,
}

impl Admission {
    pub fn new(room: Room) -> Admission {
        Admission {
            known: Known::default(),
            room,
            accounts: BTreeMap::new(),
            idle: Recent::default(),
            of_known: Class::default(),
            of_strangers: Class::default(),
            shared: OfAllStrangers::default(),
        }
    }

    fn source(&self, address: IpAddr) -> Source {
        Source::of(address, self.known.has(address))
    }

    fn class(&mut self, source: Source) -> &mut Class {
        if source.is_known() { &mut self.of_known } else { &mut self.of_strangers }
    }

    /// Which connection is to be put out before one from this address is let in, if one is to be.
    pub fn too_many(&mut self, address: IpAddr) -> Option<u64> {
        let source = self.source(address);
        let room = if source.is_known() { self.room.known } else { self.room.strangers };
        let class = self.class(source);
        if class.half_open < room { None } else { class.ranks.last().map(|rank| rank.oldest) }
    }

    /// Which stranger's connection is to be put out when descriptors are short.
    pub fn least_needed(&self) -> Option<u64> {
        self.of_strangers.ranks.last().map(|rank| rank.oldest)
    }

    /// Lets the connection `token` from this address in; [`Admission::done`] is to be told when it is not half open any more.
    pub fn admit(&mut self, address: IpAddr, token: u64) -> Ticket {
        let source = self.source(address);
        self.make_room(source);
        self.idle.forget(&source);
        self.class(source).half_open += 1;
        self.change(source, |account| {
            account.half_open.insert(token);
        });
        Ticket { source, token }
    }

    /// Changes which connections an account has, and its rank by that.
    fn change(&mut self, source: Source, change: impl FnOnce(&mut Account)) {
        let account = self.accounts.entry(source).or_default();
        let before = account.rank();
        change(account);
        let after = account.rank();
        let ranks = &mut self.class(source).ranks;
        if let Some(before) = before {
            ranks.remove(&before);
        }
        match after {
            Some(after) => {
                ranks.insert(after);
            }
            None => self.idle.touch(source),
        }
    }

    /// Whether this connection is answered, though it is refused: it takes a token.
    pub fn may_answer(&mut self, ticket: &Ticket, now_ns: u64) -> bool {
        let Some(account) = self.accounts.get_mut(&ticket.source) else { return false };
        take(&mut account.may_be_answered, &mut self.shared.answers, ticket.source, now_ns)
    }

    /// Whether its handshake of TLS may begin.
    pub fn may_shake_hands(&mut self, ticket: &Ticket, now_ns: u64) -> Handshake {
        let Some(account) = self.accounts.get_mut(&ticket.source) else { return Handshake::Refused };
        if !take(&mut account.may_shake_hands, &mut self.shared.handshakes, ticket.source, now_ns) {
            return Handshake::Refused;
        }
        account.handshakes.insert(ticket.token);
        let known = ticket.source.is_known();
        let most = if known { HANDSHAKES_OF_KNOWN_MAX } else { HANDSHAKES_OF_ADDRESS_MAX };
        match account.handshakes.first() {
            Some(&oldest) if account.handshakes.len() > most => Handshake::BeginsInsteadOf(oldest),
            _ => Handshake::Begins,
        }
    }

    /// It is not half open any more.
    pub fn done(&mut self, ticket: Ticket) {
        let Ticket { source, token } = ticket;
        self.class(source).half_open -= 1;
        self.change(source, |account| {
            account.half_open.remove(&token);
            account.handshakes.remove(&token);
        });
    }

    fn make_room(&mut self, source: Source) {
        if self.accounts.len() < ACCOUNTS_MAX || self.accounts.contains_key(&source) {
            return;
        }
        if let Some(oldest) = self.idle.forget_oldest() {
            self.accounts.remove(&oldest);
        }
    }
}

/// Takes a token of an address, and for a stranger one of those that all strangers share.
fn take(own: &mut Bucket, shared: &mut Bucket, source: Source, now_ns: u64) -> bool {
    if source.is_known() {
        return own.take(KNOWN, now_ns);
    }
    // None of its own is lost while there is none for strangers.
    shared.due_ns(STRANGERS, now_ns) <= now_ns && own.take(STRANGER, now_ns) && shared.take(STRANGERS, now_ns)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_a_comparison() {
        COMPARISONS.set(COMPARISONS.get() + 1);
    }

    const SECOND_NS: u64 = 1_000_000_000;
    const ROOM: Room = Room { known: 64, strangers: 32 };

    fn address(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    fn admission(room: Room) -> Admission {
        let mut admission = Admission::new(room);
        admission.known.name("peer", [address(9)]);
        admission
    }

    /// Those that are half open.
    #[derive(Default)]
    struct Hall {
        tickets: BTreeMap<u64, (IpAddr, Ticket)>,
        next: u64,
    }

    impl Hall {
        /// Lets one in, and puts out who is in its way.
        fn come(&mut self, admission: &mut Admission, from: IpAddr) {
            if let Some(token) = admission.too_many(from) {
                self.put_out(admission, token);
            }
            let ticket = admission.admit(from, self.next);
            self.tickets.insert(self.next, (from, ticket));
            self.next += 1;
        }

        fn put_out(&mut self, admission: &mut Admission, token: u64) {
            admission.done(self.tickets.remove(&token).expect("it is there").1);
        }

        fn of(&self, from: IpAddr) -> usize {
            self.tickets.values().filter(|(other, _)| *other == from).count()
        }
    }

    #[test]
    fn a_flood_of_one_address_puts_out_itself_only() {
        let (mut admission, mut hall) = (admission(ROOM), Hall::default());
        (0..1000).for_each(|_| hall.come(&mut admission, address(1)));
        assert_eq!(hall.of(address(1)), ROOM.strangers);
        (2..6).for_each(|of| hall.come(&mut admission, address(of)));
        hall.come(&mut admission, address(9));
        (0..1000).for_each(|_| hall.come(&mut admission, address(1)));
        assert!((2..6).chain([9]).all(|of| hall.of(address(of)) == 1));
        // Strangers from everywhere: none of that counts against who is known.
        (100..12_000).for_each(|of| hall.come(&mut admission, address(of)));
        (0..1000).for_each(|_| hall.come(&mut admission, address(9)));
        assert_eq!((hall.of(address(9)), hall.tickets.len()), (ROOM.known, ROOM.known + ROOM.strangers));
        assert!(admission.accounts.len() <= ACCOUNTS_MAX);
        std::mem::take(&mut hall.tickets).into_values().for_each(|(_, ticket)| admission.done(ticket));
        assert_eq!((admission.of_known.half_open, admission.of_strangers.half_open), (0, 0));
        assert!(admission.of_known.ranks.is_empty() && admission.of_strangers.ranks.is_empty());
    }

    #[test]
    fn where_nobody_has_more_than_others_the_oldest_goes() {
        let (mut admission, mut hall) = (admission(ROOM), Hall::default());
        // The first one has the largest address.
        (0..ROOM.strangers as u32).for_each(|of| hall.come(&mut admission, address(1000 - of)));
        hall.come(&mut admission, address(2000));
        assert_eq!((hall.of(address(1000)), hall.of(address(999))), (0, 1));
        assert_eq!(admission.least_needed(), Some(1));
    }

    #[test]
    fn neighbours_of_a_known_address_are_strangers_and_share_one_account() {
        let six = |host: u16| IpAddr::V6([0x2001, 0xdb8, 0, 7, 0, 0, 0, host].into());
        let (mut admission, mut hall) = (Admission::new(ROOM), Hall::default());
        admission.known.name("peer", [six(1)]);
        hall.come(&mut admission, six(1));
        (2..1000).for_each(|host| hall.come(&mut admission, six(host)));
        assert_eq!((hall.of(six(1)), hall.tickets.len()), (1, ROOM.strangers + 1));
        assert_eq!(admission.accounts.len(), 2, "all of a stranger's network are one");
        // They have used up what they may; the configured peer has not.
        let strangers: Vec<&Ticket> = hall.tickets.values().map(|(_, ticket)| ticket).collect();
        let mut did = 0;
        for ticket in strangers.iter().filter(|ticket| !ticket.source.is_known()) {
            did += u64::from(admission.may_shake_hands(ticket, SECOND_NS) != Handshake::Refused);
        }
        assert_eq!(did, STRANGER.burst);
        let of_peer = strangers.iter().find(|ticket| ticket.source.is_known()).unwrap();
        assert_eq!(admission.may_shake_hands(of_peer, SECOND_NS), Handshake::Begins);
    }

    #[test]
    fn what_costs_has_a_rate_by_address() {
        let mut admission = admission(ROOM);
        let tickets = [1, 2, 9].map(|of| admission.admit(address(of), of.into()));
        let mut did = [0; 3];
        for now_ns in (SECOND_NS..2 * SECOND_NS).step_by(100_000) {
            for (ticket, did) in tickets.iter().zip(&mut did) {
                *did += u64::from(admission.may_answer(ticket, now_ns));
            }
        }
        let most = |rate: Rate| rate.burst + SECOND_NS / rate.each_ns + 1;
        assert!(did[0] <= most(STRANGER) && did[1] >= STRANGER.burst, "{did:?}");
        assert!(did[2] <= most(KNOWN) && did[2] + 2 >= most(KNOWN), "{did:?}");
    }

    #[test]
    fn answers_to_garbage_cost_no_handshake_of_the_same_address() {
        let mut admission = admission(ROOM);
        for of in [9, 1] {
            let ticket = admission.admit(address(of), of.into());
            while admission.may_answer(&ticket, SECOND_NS) {}
            assert_eq!(admission.may_shake_hands(&ticket, SECOND_NS), Handshake::Begins, "{of}");
        }
    }

    #[test]
    fn of_an_address_with_too_many_handshakes_the_oldest_gives_way() {
        for (of, most) in [(9, HANDSHAKES_OF_KNOWN_MAX), (1, HANDSHAKES_OF_ADDRESS_MAX)] {
            let (room, most) = (Room { known: 100, strangers: 100 }, most as u64);
            let (mut admission, mut hall) = (admission(room), Hall::default());
            (0..most + 2).for_each(|_| hall.come(&mut admission, address(of)));
            let begins = |admission: &mut Admission, hall: &Hall, token: u64| {
                admission.may_shake_hands(&hall.tickets[&token].1, SECOND_NS + token * STRANGER.each_ns)
            };
            for token in 0..most {
                assert_eq!(begins(&mut admission, &hall, token), Handshake::Begins);
            }
            assert_eq!(begins(&mut admission, &hall, most), Handshake::BeginsInsteadOf(0));
            // One that is over makes room as well.
            hall.put_out(&mut admission, 0);
            hall.put_out(&mut admission, 5);
            assert_eq!(begins(&mut admission, &hall, most + 1), Handshake::Begins);
        }
    }

    #[test]
    fn letting_one_in_costs_no_more_among_thousands_than_among_few() {
        let comparisons = |strangers: u32| {
            let room = Room { known: HALF_OPEN_MAX, strangers: HALF_OPEN_MAX };
            let (mut admission, mut hall) = (admission(room), Hall::default());
            (100..100 + strangers).for_each(|of| hall.come(&mut admission, address(of)));
            COMPARISONS.set(0);
            (0..100).for_each(|of| hall.come(&mut admission, address(100_000 + of)));
            (0..100).for_each(|_| hall.come(&mut admission, address(9)));
            COMPARISONS.get() / 200
        };
        let (few, many) = (comparisons(30), comparisons(20_000));
        assert!(many <= 200 && many <= 20 * few, "{few} comparisons among 30 addresses, {many} among 20,000");
    }

    #[test]
    fn a_program_keeps_most_of_its_descriptors() {
        let room = |limit| (Room::of_descriptors(limit).known, Room::of_descriptors(limit).strangers);
        assert_eq!(room(1024), (256, 256));
        assert_eq!(room(20_000), (HALF_OPEN_MAX, HALF_OPEN_MAX));
        assert_eq!((room(10), room(u64::MAX)), ((64, 64), (HALF_OPEN_MAX, HALF_OPEN_MAX)));
    }
}
