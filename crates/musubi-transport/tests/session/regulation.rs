//! What a session puts onto its connection where classes have rules: never more than these, and everything in the end.

use musubi_core::plan::{FilterRule, Regulation};
use musubi_transport::Priority;
use musubi_transport::session::ClassCounts;
use musubi_transport::topology::{ClassRule, Network};
use proptest::prelude::*;

use crate::world::World;

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

fn class(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

fn rule(number: u8, regulation: Regulation) -> ClassRule {
    ClassRule { class: class(number), regulation, filter: FilterRule::EACH }
}

fn messages(messages_per_s: u32, messages_burst: u32) -> Regulation {
    Regulation { messages_per_s, messages_burst, ..Regulation::NONE }
}

/// Two that are linked and do not mind silence; the rules are those of the first.
fn linked(rules: &[ClassRule], priorities: bool) -> World {
    let quiet_ms = 3_600_000;
    let network = Network {
        piece_bytes: 300,
        window_bytes: 200_000,
        heartbeat_ms: quiet_ms,
        silence_ms: 2 * quiet_ms,
        priorities,
        ..Network::default()
    };
    let mut world = World::of(&network, 1000);
    world.sessions[0].regulate(rules);
    world.settle();
    world
}

/// All that may go now arrives now, and is acknowledged.
fn exchange(world: &mut World) {
    let last = world.connections.len() - 1;
    while world.sessions[0].has_output() || world.sessions[1].has_output() {
        for side in [0, 1] {
            world.write(side, usize::MAX);
            world.read(1 - side, last, usize::MAX);
            world.sessions[1 - side].flush();
        }
    }
}

/// The driver's timer goes off.
fn pass_to(world: &mut World, at_ns: u64) {
    world.now_ns = at_ns;
    world.sessions.iter_mut().for_each(|session| session.tick(at_ns).unwrap());
    exchange(world);
}

#[test]
fn a_class_that_has_used_up_its_rate_waits_and_the_others_go_on() {
    let mut world = linked(&[rule(3, messages(100, 2))], true);
    (0..5).for_each(|_| world.send(0, 3, 700));
    (1..8).for_each(|number| world.send(0, number, 10));
    exchange(&mut world);
    assert_eq!(world.came[1], [0, 1, 1, 2, 1, 1, 1, 1]);
    assert!(!world.sessions[0].has_output() && !world.sessions[0].has_delivered(), "nobody tries in vain");
    for came in 3..=6 {
        let due_ns = world.sessions[0].deadline_ns();
        assert_eq!(due_ns, (came - 2) * 10 * MILLISECOND_NS);
        pass_to(&mut world, due_ns - 1);
        assert_eq!(world.came[1][3] as u64, came - 1, "not before");
        pass_to(&mut world, due_ns);
        assert_eq!(world.came[1][3] as u64, came);
    }
    assert_eq!(world.sessions[0].class_counts(class(3)), ClassCounts { taken: 6, waited: 4 });
    assert_eq!(world.sessions[0].class_counts(class(4)), ClassCounts { taken: 1, waited: 0 });
    assert!(world.sessions[0].deadline_ns() > 3600 * SECOND_NS, "nothing is due any more");
}

#[test]
fn bytes_are_bounded_likewise_and_a_frame_goes_as_a_whole() {
    let bytes = Regulation { bytes_per_s: 100_000, bytes_burst: 1_000, ..Regulation::NONE };
    let mut world = linked(&[rule(2, bytes)], true);
    world.send(0, 2, 3_000);
    world.send(0, 2, 1_000);
    exchange(&mut world);
    // Larger than the burst: it goes while the bucket is full, and leaves a debt.
    assert_eq!(world.came[1][2], 1);
    assert_eq!(world.sessions[0].deadline_ns(), 30 * MILLISECOND_NS);
    pass_to(&mut world, 30 * MILLISECOND_NS);
    assert_eq!(world.came[1][2], 2);
}

#[test]
fn a_full_class_that_is_held_is_refused_more_and_others_have_room() {
    let mut world = linked(&[rule(3, messages(1, 1))], true);
    (0..2_000).for_each(|_| world.send(0, 3, 500));
    exchange(&mut world);
    let kept = world.sessions[0].unacknowledged_bytes();
    assert!(world.sent[0][3].len() < 500 && kept <= 200_000, "{kept}");
    (0..10).for_each(|_| world.send(0, 2, 500));
    exchange(&mut world);
    assert_eq!((world.came[1][2], world.came[1][3]), (10, 1));
}

#[test]
fn what_a_cut_took_is_not_counted_again() {
    let mut world = linked(&[rule(3, messages(1, 2))], true);
    (0..3).for_each(|_| world.send(0, 3, 700));
    world.write(0, 1_000);
    world.cut();
    world.settle_held();
    assert_eq!(world.came[1][3], 2);
    assert_eq!(world.sessions[0].class_counts(class(3)).waited, 1);
    pass_to(&mut world, SECOND_NS);
    assert_eq!(world.came[1][3], 3);
}

#[test]
fn what_a_cut_took_goes_again_at_once_though_the_next_frame_is_held() {
    let mut world = linked(&[rule(3, messages(1, 2))], true);
    (0..3).for_each(|_| world.send(0, 3, 700));
    (0..4).for_each(|_| world.write(0, usize::MAX));
    assert_eq!(world.sessions[0].class_counts(class(3)).waited, 1, "the third is held");
    world.cut();
    world.settle_held();
    assert_eq!(world.came[1][3], 2, "both were admitted");
    assert_eq!(world.sessions[0].class_counts(class(3)).waited, 1);
    assert_eq!(world.sessions[0].deadline_ns(), SECOND_NS);
    pass_to(&mut world, SECOND_NS);
    assert_eq!(world.came[1][3], 3);
}

#[test]
fn a_new_link_finds_the_rate_used_up() {
    let mut world = linked(&[rule(3, messages(1, 1))], true);
    (0..2).for_each(|_| world.send(0, 3, 10));
    exchange(&mut world);
    world.cut();
    let resume_ns = u64::from(Network::default().resume_ms) * MILLISECOND_NS;
    world.sessions[0].disconnected(0);
    world.sessions.iter_mut().for_each(|session| session.tick(resume_ns).unwrap());
    assert!(world.sessions.iter().all(|session| !session.is_up()));
    for side in [0, 1] {
        (world.sent[side], world.came[side]) = Default::default();
    }
    world.sessions.iter_mut().for_each(|session| while session.next_report().is_some() {});
    world.settle();
    (0..2).for_each(|_| world.send(0, 3, 10));
    exchange(&mut world);
    assert_eq!(world.came[1][3], 0, "time stands where the first one went");
}

#[test]
fn without_priorities_what_is_held_holds_up_all() {
    let mut world = linked(&[rule(3, messages(100, 1))], false);
    [3, 3, 1].into_iter().for_each(|number| world.send(0, number, 10));
    exchange(&mut world);
    assert_eq!((world.came[1][3], world.came[1][1]), (1, 0));
    pass_to(&mut world, 10 * MILLISECOND_NS);
    assert_eq!((world.came[1][3], world.came[1][1]), (2, 1));
}

fn regulations() -> impl Strategy<Value = Regulation> {
    let messages = prop_oneof![Just((0, 0)), (1..2_000u32, 1..5u32)];
    let bytes = prop_oneof![Just((0, 0)), (1_000..1_000_000u64, 1..3_000u64)];
    (messages, bytes).prop_map(|((messages_per_s, messages_burst), (bytes_per_s, bytes_burst))| Regulation {
        messages_per_s,
        messages_burst,
        bytes_per_s,
        bytes_burst,
    })
}

/// When frames of a class came, and their bytes.
type Came = Vec<(u64, u64)>;

/// What the rule lets pass in any span of time, besides what lies in its bucket at first.
fn keeps(rule: &Regulation, came: &Came) -> bool {
    (0..came.len()).all(|first| {
        (first..came.len()).all(|last| {
            let span_ns = u128::from(came[last].0 - came[first].0);
            let largest = came[first..=last].iter().map(|frame| frame.1).max().unwrap_or(0);
            let within = |count: u64, rate: u64, burst: u64| {
                let most = u128::from(rate) * span_ns / u128::from(SECOND_NS) + u128::from(burst);
                rate == 0 || u128::from(count) <= most
            };
            let bytes = came[first..=last].iter().map(|frame| frame.1).sum();
            within((last - first + 1) as u64, rule.messages_per_s.into(), rule.messages_burst.max(1).into())
                && within(bytes, rule.bytes_per_s, rule.bytes_burst.max(largest))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever is sent and when: no class above its rule, none without a rule held up, and each frame as soon as its rule
    /// allows, where the driver only looks when the session has asked it to.
    #[test]
    fn no_class_above_its_rate_and_none_starves(
        rules in proptest::array::uniform3(regulations()),
        steps in proptest::collection::vec((1..8u8, 0..2_000usize, prop_oneof![Just(0u64), 0..30 * MILLISECOND_NS], 0..12u8), 1..80),
    ) {
        let of = [2u8, 4, 5];
        let rules: Vec<ClassRule> = of.iter().zip(rules).map(|(number, regulation)| rule(*number, regulation)).collect();
        let mut world = linked(&rules, true);
        let mut came: [Came; 8] = Default::default();
        let mut lengths: [Vec<u64>; 8] = Default::default();
        let note = |world: &World, came: &mut [Came; 8], lengths: &[Vec<u64>; 8]| {
            for number in 0..8 {
                while came[number].len() < world.came[1][number] {
                    let length = lengths[number][came[number].len()];
                    came[number].push((world.now_ns, length));
                }
            }
        };
        for (number, length, pause_ns, cut) in steps {
            let before = world.sent[0][usize::from(number)].len();
            world.send(0, number, length);
            if world.sent[0][usize::from(number)].len() > before {
                lengths[usize::from(number)].push(length as u64);
            }
            if cut == 0 {
                world.write(0, 700);
                world.cut();
                world.settle_held();
            }
            exchange(&mut world);
            note(&world, &mut came, &lengths);
            let until_ns = world.now_ns + pause_ns;
            while world.sessions[0].deadline_ns() <= until_ns {
                let due_ns = world.sessions[0].deadline_ns();
                pass_to(&mut world, due_ns);
                note(&world, &mut came, &lengths);
            }
            world.now_ns = until_ns;
            for number in [1, 3, 6, 7] {
                prop_assert_eq!(world.came[1][number], world.sent[0][number].len(), "class {} has no rule", number);
            }
        }
        // Each look lets something go; so there are no more looks than frames.
        for _ in 0..80 {
            if world.sessions[0].has_delivered() {
                break;
            }
            let due_ns = world.sessions[0].deadline_ns();
            let at_ns = due_ns.max(world.now_ns);
            prop_assert!(due_ns < world.now_ns + 3600 * SECOND_NS);
            let before: usize = world.came[1].iter().sum();
            pass_to(&mut world, at_ns);
            note(&world, &mut came, &lengths);
            prop_assert!(world.came[1].iter().sum::<usize>() > before, "a look in vain");
        }
        prop_assert!(world.sessions[0].has_delivered());
        for rule in &rules {
            prop_assert!(keeps(&rule.regulation, &came[rule.class.index()]), "{rule:?}: {came:?}");
        }
    }
}

#[test]
fn the_most_urgent_class_can_be_capped_and_then_leaves_room_for_others() {
    let mut world = linked(&[rule(0, messages(100, 2))], true);
    (0..20).for_each(|_| world.send(0, 0, 700));
    (0..3).for_each(|_| world.send(0, 7, 10));
    exchange(&mut world);
    assert_eq!((world.came[1][0], world.came[1][7]), (2, 3));
    pass_to(&mut world, 10 * MILLISECOND_NS);
    assert_eq!(world.came[1][0], 3);
}
