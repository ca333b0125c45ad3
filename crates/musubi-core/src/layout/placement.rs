//! Where everything lies in a memory that all participants map: slots, then segments.
//!
//! What you may rely on: a *slot* for each participant of the plan, in the order of their numbers: its root page and two
//! banks, each as long as a section of its domain. Then the SMEM channels' segments in the plan's order. All begin on a
//! page; nothing overlaps. Ports with fixed addresses go by this computation, and the configurator asks it for its map.
//!
//! How it works: an incarnation's section is the bank that the lowest bit of its epoch names, so the memory of its
//! predecessor stays as it was until the next but one, while peers take from it what is still to be had.

use super::{PAGE_BYTES, root, section_bytes, segment_bytes};
use crate::plan::Plan;

/// Banks of a slot.
pub const BANKS: u64 = 2;

/// Bytes of the slot of each participant of a domain; `None` if a section passes 4 GiB.
pub fn slot_bytes(plan: &Plan<'_>, domain: u16) -> Option<u64> {
    Some(u64::from(root::WORDS * 4) + BANKS * u64::from(section_bytes(plan, domain)?))
}

/// Byte at which a participant's slot begins; for the number after the last one, the byte where segments begin. `None`
/// beyond that.
pub fn slot_offset(plan: &Plan<'_>, participant: u16) -> Option<u64> {
    let mut offset = 0;
    let mut left = u64::from(participant);
    for (domain, entry) in (0u16..).zip(plan.domains) {
        let here = left.min(u64::from(entry.participants));
        offset += here * slot_bytes(plan, domain)?;
        left -= here;
    }
    (left == 0).then_some(offset)
}

/// Byte at which the section of a participant's incarnation begins, from the begin of its slot.
pub fn bank_offset(plan: &Plan<'_>, domain: u16, epoch: u32) -> Option<u64> {
    Some(bank(section_bytes(plan, domain)?, epoch))
}

/// [`bank_offset`] in a slot whose sections have this length.
pub(crate) const fn bank(section_bytes: u32, epoch: u32) -> u64 {
    (root::WORDS * 4) as u64 + (epoch & 1) as u64 * section_bytes as u64
}

/// Byte at which an SMEM channel's segment begins; for the number after the last one, the length of all. `None` beyond
/// that.
pub fn segment_offset(plan: &Plan<'_>, smem: u16) -> Option<u64> {
    let before = plan.smems.get(..usize::from(smem))?;
    let begin = slot_offset(plan, plan.participants())?;
    before.iter().try_fold(begin, |offset, smem| Some(offset + u64::from(segment_bytes(smem.bytes)?)))
}

/// Length of all slots and segments in bytes, a multiple of the page.
pub fn mapped_bytes(plan: &Plan<'_>) -> Option<u64> {
    segment_offset(plan, plan.smems.len() as u16)
}

const _: () = {
    assert!((root::WORDS * 4).is_multiple_of(PAGE_BYTES));
    // Whoever renews its heartbeat disturbs no reader of the rest.
    let line = super::LINE_BYTES / 4;
    assert!(root::BEAT / line != root::EPOCH / line && root::BEAT_HIGH_ODD / line == root::BEAT / line);
    assert!(root::RELEASED / line > root::BEAT / line);
    assert!(root::RELEASED + crate::plan::PARTICIPANTS_MAX as u32 <= root::WORDS);
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::{
        Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, PortKind, Regulation, Role, Smem, Trust,
    };

    const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
        let (port, trust) = (PortKind::Metal, Trust::MayCrash);
        Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
    }

    const PLAN: Plan<'static> = Plan {
        name: "places",
        hash: 0,
        domains: &[domain("a", Role::Master, 1), domain("b", Role::Remote, 3)],
        fifos: &[Fifo {
            name: "f",
            from: 0,
            to: 1,
            blocks: 70,
            block_bytes: 100,
            priority: 0,
            filter: FilterRule::EACH,
            regulation: Regulation::NONE,
            budget_ns: 0,
            on_restart: OnRestart::Keep,
            sample_every: 0,
        }],
        smems: &[
            Smem { name: "s", domains: &[0, 1], bytes: 5000, lock: LockKind::Bakery },
            Smem { name: "t", domains: &[0, 1], bytes: 1, lock: LockKind::Bakery },
        ],
        liveness: Liveness { heartbeat_ns: 1, stalled_ns: 2 },
    };

    #[test]
    fn regions_follow_one_another_without_overlap() {
        let mut end = 0;
        for participant in 0..PLAN.participants() {
            let domain = PLAN.domain_of(participant).unwrap();
            assert_eq!(slot_offset(&PLAN, participant), Some(end));
            let section = u64::from(section_bytes(&PLAN, domain).unwrap());
            assert_eq!(bank_offset(&PLAN, domain, 6), Some(4096));
            assert_eq!(bank_offset(&PLAN, domain, 7), Some(4096 + section));
            end += 4096 + 2 * section;
        }
        for (number, smem) in (0..).zip(PLAN.smems) {
            assert_eq!(segment_offset(&PLAN, number), Some(end));
            end += u64::from(segment_bytes(smem.bytes).unwrap());
        }
        assert_eq!(mapped_bytes(&PLAN), Some(end));
        assert!(end.is_multiple_of(u64::from(PAGE_BYTES)));
    }

    #[test]
    fn there_is_nothing_beyond_the_last() {
        assert_eq!(slot_offset(&PLAN, PLAN.participants() + 1), None);
        assert_eq!(segment_offset(&PLAN, PLAN.smems.len() as u16 + 1), None);
    }
}
