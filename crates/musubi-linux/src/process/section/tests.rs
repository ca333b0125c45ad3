//! A section as its owner writes it and as a peer sees it.

use musubi_core::layout::{rx, tx};
use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, PortKind, Regulation, Role, Smem, Trust,
};

use super::*;

const fn domain(name: &'static str, role: Role, participants: u16, port: PortKind) -> Domain<'static> {
    Domain { name, role, port, trust: Trust::MayCrash, participants, uids: &[], gids: &[], spin_ns: 0 }
}

const fn smem(name: &'static str, domains: &'static [u16]) -> Smem<'static> {
    Smem { name, domains, bytes: 100, lock: LockKind::Bakery }
}

/// A Master, a Remote with two participants, and one beside them on bare metal.
pub(crate) static PLAN: Plan<'static> = Plan {
    name: "sections",
    hash: 0x1234_5678_9abc_def0,
    domains: &[
        domain("control", Role::Master, 1, PortKind::LinuxProcess),
        domain("panel", Role::Remote, 2, PortKind::LinuxProcess),
        domain("motor", Role::Remote, 1, PortKind::Metal),
    ],
    fifos: &[Fifo {
        name: "down",
        from: 0,
        to: 1,
        blocks: 4,
        block_bytes: 16,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }],
    smems: &[smem("all", &[2, 1, 0]), smem("remotes", &[2, 1])],
    liveness: Liveness { heartbeat_ns: 1_000_000, stalled_ns: 5_000_000 },
};

/// A participant of a domain of [`PLAN`], in this incarnation.
pub(crate) fn party(domain: u16, epoch: u32) -> Party {
    let section_bytes = layout::section_bytes(&PLAN, domain).unwrap();
    Party { hash: PLAN.hash, participant: PLAN.first_participant(domain), domain, epoch, section_bytes }
}

/// Its section, as it has it and as others see it.
pub(crate) fn both(party: Party) -> (Arc<OwnSection>, Arc<PeerSection>) {
    let own = Arc::new(OwnSection::create(&PLAN, party).unwrap());
    let peer = PeerSection::adopt(&PLAN, &own.fd(), party).unwrap();
    (own, peer)
}

#[test]
fn a_peer_sees_in_each_part_what_the_owner_writes_there() {
    let (sender, seen) = both(party(0, 7));
    assert_eq!((seen.participant(), seen.domain(), seen.epoch()), (0, 0, 7));
    assert_eq!(seen.words().len() * 4, party(0, 7).section_bytes);
    for (part, word) in [(Part::Tx(0), tx::OPEN), (Part::Ticket(0), 0)] {
        let (own, peer) = (sender.part(part).unwrap(), seen.part(part).unwrap());
        assert_eq!(own.words().len(), peer.words().len());
        own.words().set(word, 0x77);
        assert_eq!(peer.words().get(word), 0x77, "{part:?}");
        own.words().set(word, 0);
    }
    assert!(sender.part(Part::Rx(0)).is_none() && seen.part(Part::Rx(0)).is_none(), "it receives nothing");
    assert!(sender.part(Part::Ticket(1)).is_none(), "it is no member");
    let (receiver, seen) = both(party(1, 8));
    receiver.part(Part::Rx(0)).unwrap().words().set(rx::OPEN, 1);
    assert_eq!(seen.part(Part::Rx(0)).unwrap().words().get(rx::OPEN), 1);
    assert_eq!(seen.part(Part::Rx(0)).unwrap().section().epoch(), 8);
}

#[test]
fn a_section_whose_header_says_another_thing_than_its_owner_is_not_taken() {
    let me = party(1, 9);
    let own = OwnSection::create(&PLAN, me).unwrap();
    let fits = || header_fits(&own.words().as_peer(), me) && PeerSection::adopt(&PLAN, &own.fd(), me).is_ok();
    assert!(fits());
    let words = [
        header::EPOCH,
        header::MAGIC,
        header::VERSION,
        header::PLAN_LOW,
        header::PLAN_HIGH,
        header::SECTION_BYTES,
        header::PARTICIPANT,
        header::DOMAIN,
    ];
    for word in words {
        let right = own.words().get(word);
        for wrong in [right ^ 1, right ^ 1 << 16, u32::MAX] {
            own.words().set(word, wrong);
            assert!(!header_fits(&own.words().as_peer(), me), "word {word} is {wrong:#x}");
            assert!(PeerSection::adopt(&PLAN, &own.fd(), me).is_err());
        }
        own.words().set(word, right);
        assert!(fits());
    }
    for said in [me.section_bytes - 4096, me.section_bytes + 4096, 0] {
        assert!(PeerSection::adopt(&PLAN, &own.fd(), Party { section_bytes: said, ..me }).is_err(), "{said} bytes");
    }
}

#[test]
fn the_age_of_a_heartbeat_counts_from_the_last_and_one_from_the_future_is_new() {
    let (own, peer) = both(party(0, 3));
    assert!(peer.heartbeat_age_ms() < 60_000, "made just now");
    let now_ms = || (now_ns() / 1_000_000) as u32;
    own.words().set(header::HEARTBEAT_MS, now_ms().wrapping_sub(100_000));
    assert!((100_000..200_000).contains(&peer.heartbeat_age_ms()));
    own.words().set(header::HEARTBEAT_MS, now_ms().wrapping_add(100_000));
    assert_eq!(peer.heartbeat_age_ms(), 0);
}

#[test]
fn a_header_says_when_its_owner_came_and_whether_it_has_left() {
    let before_ns = now_ns();
    let (own, peer) = both(party(0, 3));
    let start_ns = peer.words().counter(header::START_LOW, header::START_HIGH);
    assert!((before_ns..=now_ns()).contains(&start_ns));
    assert_eq!(peer.words().get(header::PROCESS), std::process::id());
    assert!(!peer.terminated());
    own.words().set(header::STATE, state::TERMINATED);
    assert!(peer.terminated());
}
