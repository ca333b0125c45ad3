//! The memory of an SMEM channel as that of nodes.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline};
use musubi_core::lane::{Meeting, RECORD_BYTES_MAX, Region, Turn};
use musubi_core::layout::LinkShape;
use musubi_core::plan::{Plan, Smem};

use crate::world::{MASTER, OTHER, PLAN, Peer, REMOTE, World};

const SHAPE: LinkShape = LinkShape { slots: 16, blocks: 2, block_bytes: 64 };
const BYTES: u32 = Region::bytes(3, SHAPE).unwrap();

/// A channel with just enough room, and one with a byte too few.
static ROOM: Plan<'static> = Plan {
    smems: &[Smem { bytes: BYTES, ..PLAN.smems[0] }, Smem { name: "short", bytes: BYTES - 1, ..PLAN.smems[0] }],
    ..PLAN
};

fn region<'w>(participant: &Peer<'w>) -> Region<'w> {
    participant.region(0, SHAPE, Deadline::Poll).unwrap()
}

/// The meetings of a participant with the two others.
fn begin(region: Region<'_>) -> Vec<Meeting<'_>> {
    region.begin(&[5, 6, 7], 0x1234).collect()
}

/// Gives the incarnation of the other with whom a link came to be.
fn link<'m>(one: &mut Meeting<'m>, other: &mut Meeting<'m>) -> Option<u32> {
    let mut linked = None;
    for _ in 0..8 {
        if let Turn::Linked { incarnation } = one.turn() {
            linked = Some(incarnation);
        }
        other.turn();
    }
    linked
}

#[test]
fn participants_meet_as_nodes_at_the_places_of_their_numbers() {
    let world: World = World::of(&ROOM, 4, Default::default());
    let remote = world.attach(REMOTE);
    assert!(matches!(remote.region(0, SHAPE, Deadline::Poll), Err(Error::Timeout)), "nobody has made the memory");
    let (master, other) = (world.attach(MASTER), world.attach(OTHER));
    let regions = [region(&master), region(&remote), region(&other)];
    assert_eq!(regions.each_ref().map(|region| (region.place(), region.nodes())), [(0, 3), (1, 3), (2, 3)]);
    let [mut of_master, mut of_remote, _of_other] = regions.map(begin);
    assert_eq!(link(&mut of_master[0], &mut of_remote[0]), Some(1));
    of_master[0].link().unwrap().0.send(&[17], b"seventeen", 0).unwrap();
    let mut data = [0; RECORD_BYTES_MAX];
    let message = of_remote[0].link().unwrap().0.receive::<1>(&mut data).unwrap().unwrap();
    assert_eq!((message.head, &data[..9]), ([17], &b"seventeen"[..]));
}

#[test]
fn the_memory_is_given_once_and_not_beside_the_channel() {
    let world: World = World::of(&ROOM, 3, Default::default());
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let segment = master.open_segment(0, Deadline::Poll).unwrap();
    assert_eq!(master.region(0, SHAPE, Deadline::Poll).err(), Some(Error::InUse));
    drop(segment);
    let _region = region(&master);
    assert_eq!(master.region(0, SHAPE, Deadline::Poll).err(), Some(Error::InUse));
    assert_eq!(master.open_segment(0, Deadline::Poll).err(), Some(Error::InUse));
    assert_eq!(remote.region(1, SHAPE, Deadline::Poll).err(), Some(Error::TooLong));
    assert_eq!(remote.region(9, SHAPE, Deadline::Poll).err(), Some(Error::NotOurs));
}

#[test]
fn a_restarted_participant_is_the_next_incarnation_of_its_node() {
    let world: World = World::of(&ROOM, 3, Default::default());
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (mut of_master, mut of_remote) = (begin(region(&master)), begin(region(&remote)));
    assert_eq!(link(&mut of_master[0], &mut of_remote[0]), Some(1));
    drop(of_remote);
    std::mem::forget(remote);
    let successor = world.attach(REMOTE);
    let mut of_successor = begin(region(&successor));
    assert!(matches!(of_master[0].turn(), Turn::Ended { gone: true }), "a new incarnation is the proof");
    of_master[0].part();
    assert_eq!(link(&mut of_master[0], &mut of_successor[0]), Some(2));
}
