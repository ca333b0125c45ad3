//! A plan at each of its limits: the last value that is taken and the first that is not. And what can be asked of a plan.
#![cfg(not(loom))]

use musubi_core::plan::{
    BLOCKS_MAX, DOMAINS_MAX, Domain, FIFOS_MAX, Fifo, FilterRule, Liveness, LockKind, OnRestart, PARTICIPANTS_MAX,
    PAYLOAD_BYTES_MAX, PRIORITIES, Plan, PortKind, Regulation, Role, SMEMS_MAX, Smem, Trust,
};

fn domain(name: &str, role: Role, participants: u16) -> Domain<'_> {
    let (port, trust) = (PortKind::LinuxProcess, Trust::MayCrash);
    Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
}

fn fifo(name: &str, from: u16, to: u16) -> Fifo<'_> {
    Fifo {
        name,
        from,
        to,
        blocks: 1,
        block_bytes: 1,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }
}

fn smem<'a>(name: &'a str, domains: &'a [u16]) -> Smem<'a> {
    Smem { name, domains, bytes: 1, lock: LockKind::Bakery }
}

/// What is checked beside one part that a test chooses.
#[derive(Clone)]
struct Parts<'a> {
    domains: Vec<Domain<'a>>,
    fifos: Vec<Fifo<'a>>,
    smems: Vec<Smem<'a>>,
}

impl Parts<'_> {
    fn are_taken(&self) -> bool {
        let Parts { domains, fifos, smems } = self;
        let liveness = Liveness { heartbeat_ns: 1, stalled_ns: 2 };
        Plan { name: "borders", hash: 1, domains, fifos, smems, liveness }.check().is_ok()
    }
}

/// Master, and as many Remotes as make this many domains.
fn domains(count: usize) -> Vec<Domain<'static>> {
    let role = |number| if number == 0 { Role::Master } else { Role::Remote };
    (0..count).map(|number| domain("d", role(number), 1)).collect()
}

fn usual() -> Parts<'static> {
    Parts { domains: domains(3), fifos: vec![fifo("f", 0, 1)], smems: vec![smem("s", &[0, 2])] }
}

#[test]
fn counts_are_bounded() {
    let fits = |count: usize, with: fn(usize) -> Parts<'static>| with(count).are_taken();
    let of_domains = |count| Parts { domains: domains(count), ..usual() };
    assert!(fits(DOMAINS_MAX, of_domains) && !fits(DOMAINS_MAX + 1, of_domains));
    let of_fifos = |count| Parts { fifos: vec![fifo("f", 0, 1); count], ..usual() };
    assert!(fits(0, of_fifos) && fits(FIFOS_MAX, of_fifos) && !fits(FIFOS_MAX + 1, of_fifos));
    let of_smems = |count| Parts { smems: vec![smem("s", &[0, 1]); count], ..usual() };
    assert!(fits(0, of_smems) && fits(SMEMS_MAX, of_smems) && !fits(SMEMS_MAX + 1, of_smems));
    let of_participants = |count: usize| {
        let mut parts = usual();
        parts.domains[1].participants = (count - 2) as u16;
        parts
    };
    assert!(fits(PARTICIPANTS_MAX, of_participants) && !fits(PARTICIPANTS_MAX + 1, of_participants));
}

#[test]
fn each_domain_has_a_participant_and_one_is_the_master() {
    let roles = |roles: [Role; 3], participants| {
        let domains = roles.map(|role| domain("d", role, participants)).to_vec();
        Parts { domains, ..usual() }.are_taken()
    };
    use Role::{Master, Remote};
    assert!(roles([Remote, Master, Remote], 1));
    assert!(!roles([Remote, Master, Remote], 0));
    assert!(!roles([Remote; 3], 1) && !roles([Remote, Master, Master], 1));
}

#[test]
fn a_fifo_is_between_two_domains_and_bounded() {
    let fits = |fifo: Fifo<'static>| Parts { fifos: vec![fifo], ..usual() }.are_taken();
    assert!(fits(fifo("f", 2, 0)) && fits(fifo("f", 0, 2)));
    assert!(!fits(fifo("f", 3, 0)) && !fits(fifo("f", 0, 3)) && !fits(fifo("f", 1, 1)));
    let of_blocks = |blocks| fits(Fifo { blocks, ..fifo("f", 0, 1) });
    assert!(!of_blocks(0) && of_blocks(1) && of_blocks(BLOCKS_MAX) && !of_blocks(BLOCKS_MAX + 1));
    let of_bytes = |block_bytes| fits(Fifo { block_bytes, ..fifo("f", 0, 1) });
    assert!(!of_bytes(0) && of_bytes(1) && of_bytes(PAYLOAD_BYTES_MAX) && !of_bytes(PAYLOAD_BYTES_MAX + 1));
    let of_priority = |priority| fits(Fifo { priority, ..fifo("f", 0, 1) });
    assert!(of_priority(PRIORITIES - 1) && !of_priority(PRIORITIES));
    assert!(
        !fits(Fifo { blocks: BLOCKS_MAX, block_bytes: PAYLOAD_BYTES_MAX, ..fifo("f", 0, 1) }),
        "no section fits it"
    );
}

#[test]
fn an_smem_has_two_members_and_is_bounded() {
    let fits = |smem: Smem<'static>| Parts { smems: vec![smem], ..usual() }.are_taken();
    assert!(fits(smem("s", &[0, 2])) && fits(smem("s", &[0, 1, 2])));
    assert!(!fits(smem("s", &[0])) && !fits(smem("s", &[])) && !fits(smem("s", &[0, 3])));
    let of_bytes = |bytes| fits(Smem { bytes, ..smem("s", &[0, 1]) });
    assert!(!of_bytes(0) && of_bytes(1) && of_bytes(PAYLOAD_BYTES_MAX) && !of_bytes(PAYLOAD_BYTES_MAX + 1));
}

#[test]
fn parts_are_found_by_name_and_number() {
    let domains = [domain("a", Role::Master, 2), domain("b", Role::Remote, 1), domain("c", Role::Remote, 3)];
    let fifos = [fifo("ab", 0, 1), fifo("ba", 1, 0)];
    let smems = [smem("s", &[0, 2]), smem("t", &[2, 0])];
    let liveness = Liveness { heartbeat_ns: 1, stalled_ns: 2 };
    let plan = Plan { name: "asked", hash: 1, domains: &domains, fifos: &fifos, smems: &smems, liveness };
    assert_eq!(["a", "b", "c", "d"].map(|name| plan.domain(name)), [Some(0), Some(1), Some(2), None]);
    assert_eq!(["ab", "ba", "s"].map(|name| plan.fifo(name)), [Some(0), Some(1), None]);
    assert_eq!(["s", "t", "ab"].map(|name| plan.smem(name)), [Some(0), Some(1), None]);
    assert_eq!((plan.participants(), [0, 1, 2].map(|d| plan.first_participant(d))), (6, [0, 2, 3]));
    let of = [0, 1, 2, 3, 5, 6].map(|participant| plan.domain_of(participant));
    assert_eq!(of, [Some(0), Some(0), Some(1), Some(2), Some(2), None]);
    let linked = |a, b| (plan.linked(a, b), plan.linked(b, a));
    assert_eq!([linked(0, 1), linked(0, 2), linked(1, 2)], [(true, true), (true, true), (false, false)]);
    let one_way = Plan { fifos: &fifos[..1], smems: &[], ..plan };
    assert!(one_way.linked(0, 1) && one_way.linked(1, 0) && !one_way.linked(0, 2));
}

#[test]
fn a_rule_says_what_it_asks_for() {
    let each = |every, interval_ns_min| FilterRule { every, interval_ns_min, ..FilterRule::EACH }.is_each();
    assert!(each(0, 0) && each(1, 0) && !each(2, 0) && !each(1, 1));
    let none = |messages_per_s, bytes_per_s| Regulation { messages_per_s, bytes_per_s, ..Regulation::NONE }.is_none();
    assert!(none(0, 0) && !none(1, 0) && !none(0, 1));
}
