//! Who of those that connect may say who they are: a share for each address, and one of their own for those that the
//! description names.
//!
//! What you may rely on: whatever strangers do, addresses that the description names (or from which a certificate was shown
//! lately) have a share of half-open connections, of handshakes of TLS and of answers that nobody else can use up; among
//! themselves the addresses share fairly. Memory and descriptors are bounded ([`Room`], [`ACCOUNTS_MAX`]).
//!
//! How it works: an account for each address counts what is half open and holds token buckets. Half-open connections are cheap
//! (a descriptor), so there may be many; who comes when there is no room takes the place of the oldest of the address that
//! has most. What costs time or memory, a handshake of TLS or an answer to garbage, takes a token: who has none is left
//! alone until it is put out, so that it does not come again at once. Of IPv6 the first 64 bits are the address, as
//! that is what one host has. Accounts without connections are forgotten, the least recently used first.
//!
//! What it does not do: tell two programs of one address apart. Who floods from the address of a configured peer shares that
//! peer's places and tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Most connections that are half open at a time from known addresses, and as many from strangers.
pub const HALF_OPEN_MAX: usize = 2048;
/// Fewest of these, whatever the limit of descriptors.
const HALF_OPEN_MIN: usize = 64;
/// Handshakes of TLS under way from one address.
pub const HANDSHAKES_OF_ADDRESS_MAX: usize = 16;
/// Addresses of which something is remembered.
pub const ACCOUNTS_MAX: usize = 5000;
const _: () = assert!(ACCOUNTS_MAX > 2 * HALF_OPEN_MAX, "there is always one to forget");
/// Addresses from which a certificate was shown that are remembered as known.
const PROVEN_MAX: usize = 64;

/// Handshakes and answers: at once after a quiet time, and then one each so many nanoseconds. Of all strangers,
const STRANGERS: Rate = Rate { burst: 64, each_ns: 4_000_000 };
/// of one stranger's address,
const STRANGER: Rate = Rate { burst: 16, each_ns: 16_000_000 };
/// of one known address.
const KNOWN: Rate = Rate { burst: 64, each_ns: 4_000_000 };

/// How many come at once and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub burst: u64,
    pub each_ns: u64,
}

/// A token bucket: the instant since which its tokens count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket(u64);

impl Bucket {
    /// When the next token is there.
    pub fn due_ns(self, rate: Rate, now_ns: u64) -> u64 {
        self.0.max(now_ns.saturating_sub(rate.burst * rate.each_ns)) + rate.each_ns
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, rate: Rate, now_ns: u64) -> bool {
        let due_ns = self.due_ns(rate, now_ns);
        if due_ns > now_ns {
            return false;
        }
        self.0 = due_ns;
        true
    }
}

/// How many connections may be half open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// From addresses that are known, together.
    pub known: usize,
    /// From all others, together.
    pub strangers: usize,
}

impl Room {
    /// So that a program with so many descriptors keeps at least half of them for itself.
    pub fn of_descriptors(limit: Option<u64>) -> Room {
        let most = limit.unwrap_or(u64::MAX) / 4;
        let known = usize::try_from(most).unwrap_or(usize::MAX).clamp(HALF_OPEN_MIN, HALF_OPEN_MAX);
        Room { known, strangers: known }
    }
}

/// What counts as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source(IpAddr);

impl Source {
    fn of(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V6(address) => Source(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
            address => Source(address),
        }
    }
}

#[derive(Debug, Default)]
struct Account {
    half_open: usize,
    handshakes: usize,
    tokens: Bucket,
    used_ns: u64,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Admission {
    room: Room,
    known: BTreeSet<Source>,
    /// The oldest first.
    proven: Vec<Source>,
    accounts: BTreeMap<Source, Account>,
    strangers: Bucket,
    /// Of strangers, of known addresses.
    half_open: [usize; 2],
}

/// Of a connection that was let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub source: Source,
    pub known: bool,
    /// It has a handshake's place.
    handshake: bool,
}

impl Admission {
    pub fn new(room: Room) -> Admission {
        let (known, accounts) = (BTreeSet::new(), BTreeMap::new());
        Admission { room, known, proven: Vec::new(), accounts, strangers: Bucket::default(), half_open: [0; 2] }
    }

    /// The description names this address.
    pub fn know(&mut self, address: IpAddr) {
        self.known.insert(Source::of(address));
    }

    /// Somebody there has shown a certificate of this system.
    pub fn proved(&mut self, address: IpAddr) {
        let source = Source::of(address);
        self.proven.retain(|other| *other != source);
        if self.proven.len() == PROVEN_MAX {
            self.proven.remove(0);
        }
        self.proven.push(source);
    }

    fn is_known(&self, source: Source) -> bool {
        self.known.contains(&source) || self.proven.contains(&source)
    }

    /// Whose oldest connection is to be put out before one from this address is let in, if one is to be.
    pub fn too_many(&self, address: IpAddr) -> Option<(Source, bool)> {
        let known = self.is_known(Source::of(address));
        let room = if known { self.room.known } else { self.room.strangers };
        if self.half_open[usize::from(known)] < room {
            return None;
        }
        // Who was a stranger when it came is counted among them.
        let of_class = self.accounts.iter().filter(|(source, _)| self.is_known(**source) == known);
        of_class.max_by_key(|(_, account)| account.half_open).map(|(source, _)| (*source, known))
    }

    /// Lets a connection from this address in; [`Admission::done`] is to be told when it is not half open any more.
    pub fn admit(&mut self, address: IpAddr, now_ns: u64) -> Ticket {
        let source = Source::of(address);
        let known = self.is_known(source);
        self.make_room(source);
        let account = self.accounts.entry(source).or_default();
        account.used_ns = now_ns;
        account.half_open += 1;
        self.half_open[usize::from(known)] += 1;
        Ticket { source, known, handshake: false }
    }

    /// Whether something that costs may be done for this connection: it takes a token.
    pub fn may_cost(&mut self, ticket: &Ticket, now_ns: u64) -> bool {
        let Some(account) = self.accounts.get_mut(&ticket.source) else { return false };
        account.tokens.take(if ticket.known { KNOWN } else { STRANGER }, now_ns)
            && (ticket.known || self.strangers.take(STRANGERS, now_ns))
    }

    /// Whether its handshake of TLS may begin.
    pub fn may_shake_hands(&mut self, ticket: &mut Ticket, now_ns: u64) -> bool {
        let crowded = |account: &Account| account.handshakes >= HANDSHAKES_OF_ADDRESS_MAX;
        if self.accounts.get(&ticket.source).is_none_or(crowded) || !self.may_cost(ticket, now_ns) {
            return false;
        }
        if let Some(account) = self.accounts.get_mut(&ticket.source) {
            account.handshakes += 1;
            ticket.handshake = true;
        }
        true
    }

    /// It is not half open any more.
    pub fn done(&mut self, ticket: Ticket) {
        if let Some(account) = self.accounts.get_mut(&ticket.source) {
            account.half_open -= 1;
            account.handshakes -= usize::from(ticket.handshake);
        }
        self.half_open[usize::from(ticket.known)] -= 1;
    }

    fn make_room(&mut self, source: Source) {
        if self.accounts.len() < ACCOUNTS_MAX || self.accounts.contains_key(&source) {
            return;
        }
        let idle = self.accounts.iter().filter(|(_, account)| account.half_open == 0);
        let oldest = idle.min_by_key(|(_, account)| account.used_ns).map(|(source, _)| *source);
        if let Some(oldest) = oldest {
            self.accounts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const ROOM: Room = Room { known: 64, strangers: 32 };

    fn address(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    /// Those that are half open, the oldest first.
    #[derive(Default)]
    struct Hall(Vec<(IpAddr, Ticket)>);

    impl Hall {
        /// Lets one in, and puts out who is in its way.
        fn come(&mut self, admission: &mut Admission, from: IpAddr) {
            if let Some((source, known)) = admission.too_many(from) {
                let of = |(_, ticket): &(IpAddr, Ticket)| ticket.source == source && ticket.known == known;
                let oldest = self.0.iter().position(of).expect("it has one");
                admission.done(self.0.remove(oldest).1);
            }
            let ticket = admission.admit(from, SECOND_NS);
            self.0.push((from, ticket));
        }

        fn of(&self, from: IpAddr) -> usize {
            self.0.iter().filter(|(other, _)| *other == from).count()
        }
    }

    #[test]
    fn a_flood_of_one_address_puts_out_itself_only() {
        let (mut admission, mut hall) = (Admission::new(ROOM), Hall::default());
        admission.know(address(9));
        (0..1000).for_each(|_| hall.come(&mut admission, address(1)));
        assert_eq!(hall.of(address(1)), ROOM.strangers);
        (2..6).for_each(|of| hall.come(&mut admission, address(of)));
        hall.come(&mut admission, address(9));
        (0..1000).for_each(|_| hall.come(&mut admission, address(1)));
        assert!((2..6).chain([9]).all(|of| hall.of(address(of)) == 1));
        // Strangers from everywhere: none of that counts against who is known.
        (100..12_000).for_each(|of| hall.come(&mut admission, address(of)));
        (0..1000).for_each(|_| hall.come(&mut admission, address(9)));
        assert_eq!((hall.of(address(9)), hall.0.len()), (ROOM.known, ROOM.known + ROOM.strangers));
        assert!(admission.accounts.len() <= ACCOUNTS_MAX);
        hall.0.into_iter().for_each(|(_, ticket)| admission.done(ticket));
        assert_eq!(admission.half_open, [0, 0]);
    }

    #[test]
    fn what_costs_has_a_rate_by_address() {
        let mut admission = Admission::new(ROOM);
        admission.know(address(9));
        let tickets = [1, 2, 9].map(|of| admission.admit(address(of), SECOND_NS));
        let mut did = [0; 3];
        for now_ns in (SECOND_NS..2 * SECOND_NS).step_by(100_000) {
            for (ticket, did) in tickets.iter().zip(&mut did) {
                *did += u64::from(admission.may_cost(ticket, now_ns));
            }
        }
        let most = |rate: Rate| rate.burst + SECOND_NS / rate.each_ns + 1;
        assert!(did[0] <= most(STRANGER) && did[1] >= STRANGER.burst, "{did:?}");
        assert!(did[2] <= most(KNOWN) && did[2] + 2 >= most(KNOWN), "{did:?}");
    }

    #[test]
    fn handshakes_of_an_address_are_few_at_a_time() {
        let mut admission = Admission::new(ROOM);
        admission.know(address(9));
        let mut tickets: Vec<Ticket> = (0..40).map(|_| admission.admit(address(9), SECOND_NS)).collect();
        let began = |admission: &mut Admission, tickets: &mut [Ticket]| {
            tickets.iter_mut().map(|ticket| usize::from(admission.may_shake_hands(ticket, SECOND_NS))).sum::<usize>()
        };
        assert_eq!(began(&mut admission, &mut tickets), HANDSHAKES_OF_ADDRESS_MAX);
        assert_eq!(began(&mut admission, &mut tickets[HANDSHAKES_OF_ADDRESS_MAX..]), 0);
        admission.done(tickets.remove(0));
        assert_eq!(began(&mut admission, &mut tickets[HANDSHAKES_OF_ADDRESS_MAX..]), 1);
    }

    #[test]
    fn addresses_of_one_host_are_one_and_who_has_shown_a_certificate_is_known() {
        let six = |host: u16| Source::of(IpAddr::V6([0x2001, 0xdb8, 0, 7, 0, 0, 0, host].into()));
        assert_eq!(six(1), six(2));
        assert_eq!(Source::of("::ffff:10.0.0.5".parse().unwrap()), Source::of(address(5)));
        let mut admission = Admission::new(ROOM);
        (0..2 * PROVEN_MAX as u32).for_each(|of| admission.proved(address(of)));
        assert_eq!(admission.proven.len(), PROVEN_MAX);
        assert!(admission.admit(address(100), SECOND_NS).known);
        assert!(!admission.admit(address(1), SECOND_NS).known, "long ago");
    }

    #[test]
    fn a_program_keeps_most_of_its_descriptors() {
        let room = |limit| (Room::of_descriptors(limit).known, Room::of_descriptors(limit).strangers);
        assert_eq!(room(Some(1024)), (256, 256));
        assert_eq!(room(Some(20_000)), (HALF_OPEN_MAX, HALF_OPEN_MAX));
        assert_eq!((room(Some(10)), room(None)), ((64, 64), (HALF_OPEN_MAX, HALF_OPEN_MAX)));
    }
}
