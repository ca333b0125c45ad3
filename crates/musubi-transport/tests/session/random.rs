//! Random steps: whatever breaks, overtakes or crawls, frames arrive exactly once and in order.

use musubi_transport::topology::Network;
use proptest::prelude::*;

use crate::CLASSES;
use crate::world::World;

#[derive(Clone, Debug)]
enum Step {
    Dial { side: usize },
    Send { side: usize, class: u8, length: usize },
    Write { side: usize, bytes: usize },
    Read { side: usize, from_last: usize, bytes: usize },
    Flush { side: usize },
    Drop { side: usize },
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    let side = 0..2usize;
    let length = prop_oneof![0..100usize, 0..3000usize, 4000..6000usize, Just(20_000)];
    prop_oneof![
        1 => side.clone().prop_map(|side| Step::Dial { side }),
        4 => (side.clone(), 0..CLASSES, length).prop_map(|(side, class, length)| Step::Send { side, class, length }),
        6 => (side.clone(), 0..2000usize).prop_map(|(side, bytes)| Step::Write { side, bytes }),
        8 => (side.clone(), 0..3usize, 0..2000usize)
            .prop_map(|(side, from_last, bytes)| Step::Read { side, from_last, bytes }),
        1 => side.clone().prop_map(|side| Step::Flush { side }),
        1 => side.prop_map(|side| Step::Drop { side }),
        1 => Just(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// However connections break, overtake each other and crawl: exactly once, in order, and at last everything.
    #[test]
    fn frames_arrive_exactly_once(steps in proptest::collection::vec(step(), 0..300)) {
        let mut world = World::new();
        world.settle();
        for step in steps {
            match step {
                Step::Dial { side } => world.dial(side),
                Step::Send { side, class, length } => world.send(side, class, length),
                Step::Write { side, bytes } => world.write(side, bytes),
                Step::Read { side, from_last, bytes } => {
                    if let Some(connection) = world.connections.len().checked_sub(1 + from_last) {
                        world.read(side, connection, bytes);
                    }
                }
                Step::Flush { side } => world.sessions[side].flush(),
                Step::Drop { side } => {
                    // One side alone loses its connection; what it wrote may still arrive.
                    if let Some(connection) = world.used[side] {
                        world.sessions[side].disconnected(world.now_ns);
                        world.close(side, connection);
                    }
                }
                Step::Cut => world.cut(),
            }
            let bound = 20_000 + 256 * 1024 + usize::from(CLASSES) * (20_000 + 128);
            prop_assert!(world.sessions.iter().all(|session| session.unacknowledged_bytes() <= bound));
        }
        world.settle();
        prop_assert_eq!(world.downs, 0);
        for side in 0..2 {
            for class in 0..usize::from(CLASSES) {
                prop_assert_eq!(world.came[side][class], world.sent[1 - side][class].len());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Large frames, which are read to where they stay: in rows of one size and not, behind small ones, cut off anywhere.
    #[test]
    fn large_frames_land_whole(
        steps in proptest::collection::vec(
            (1..CLASSES, prop_oneof![Just(9_000_usize), Just(9_000), 0..200_usize, 4_000..30_000_usize],
             0..40_000_usize, 0..40_000_usize, 0..30_u32),
            1..60,
        ),
    ) {
        let network = Network { piece_bytes: 8_000, window_bytes: 200_000, ..Network::default() };
        let mut world = World::of(&network, 24_000);
        world.settle();
        for (class, length, written, read, cut) in steps {
            world.send(0, class, length);
            world.write(0, written);
            let last = world.connections.len() - 1;
            world.read(1, last, read);
            if cut == 0 {
                world.cut();
                world.settle();
            }
        }
        world.settle();
        prop_assert_eq!(world.downs, 0);
        let sent: Vec<usize> = world.sent[0].iter().map(Vec::len).collect();
        prop_assert_eq!(world.came[1].as_slice(), sent.as_slice());
    }
}
