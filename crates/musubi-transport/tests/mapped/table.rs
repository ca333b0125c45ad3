//! Which tables there are, and who meets with whom.

use musubi_core::layout::LinkShape;
use musubi_transport::LinkError;
use musubi_transport::mapped::{Options, Table};
use musubi_transport::running::Running as _;

use crate::world::{Node, World, heard, id};

/// See [`the_hash_is_that_of_all_numbers_and_stays`].
const HASH: u64 = 0x9fac_4ba3_aa04_f7e7;

fn start(world: &World, table: Table<'static>) -> Result<Node, LinkError> {
    Node::start(table, world.region(0), world.seat(true), Options::default())
}

#[test]
fn a_table_is_that_of_the_memory_or_the_node_does_not_start() {
    let world = World::of(3);
    let table = world.table;
    assert!(start(&world, table).is_ok());
    let others = [
        Table { nodes: &table.nodes[..2], ..table },
        Table { shape: LinkShape { slots: 512, ..table.shape }, ..table },
        Table { nodes: [id(0), id(1), id(1)].to_vec().leak(), ..table },
        Table { nodes: [id(1), id(0), id(1)].to_vec().leak(), ..table },
    ];
    for other in others {
        assert_eq!(start(&world, other).unwrap_err(), LinkError::Unavailable, "{other:?}");
    }
}

#[test]
fn links_are_not_too_small() {
    let nodes: &[_] = [id(0), id(1)].to_vec().leak();
    let of = |slots, block_bytes| Table { nodes, shape: LinkShape { slots, blocks: 8, block_bytes } };
    for (table, is_large) in [
        (of(256, 1024), true),
        (of(512, 2048), true),
        (of(128, 1024), false),
        (of(256, 960), false),
        (of(128, 512), false),
    ] {
        let world = World::with(table);
        assert_eq!(start(&world, table).is_ok(), is_large, "{table:?}");
    }
}

#[test]
fn the_hash_is_that_of_all_numbers_and_stays() {
    let nodes: &[_] = [id(0), id(1)].to_vec().leak();
    let table = Table::new(nodes);
    // FNV-1a over 1024, 1025, 256, 8, 4096, each as four bytes, reckoned apart.
    assert_eq!(table.hash(), HASH);
    let shapes = [
        LinkShape { slots: 512, ..table.shape },
        LinkShape { blocks: 16, ..table.shape },
        LinkShape { block_bytes: 8192, ..table.shape },
    ];
    for shape in shapes {
        assert_ne!(Table { shape, ..table }.hash(), HASH);
    }
    assert_ne!(Table::new(&[id(1), id(0)]).hash(), HASH);
}

#[test]
fn a_node_learns_what_it_may_carry_and_how_often_it_has_begun() {
    let world = World::of(2);
    for run in 1..=3 {
        let (node, _) = world.start::<false>(0);
        let seen = node.with(|keeper, _| (keeper.me, keeper.incarnation, keeper.payload_max)).unwrap();
        assert_eq!((seen, node.id()), ((id(0), run, 4096), id(0)));
    }
}

#[test]
fn who_has_another_table_is_a_stranger() {
    let world = World::of(2);
    let (here, _) = world.start::<false>(0);
    let strangers = || here.with(|_, links| links.strangers().collect::<Vec<_>>()).unwrap();
    assert_eq!(strangers(), []);
    let other = Table::new([id(0), id(7)].to_vec().leak());
    let there: Node = Node::start(other, world.region(1), world.seat(true), Options::default()).unwrap();
    crate::world::settle(&[&here, &there]);
    assert_eq!(strangers(), [id(1)]);
    assert_eq!((heard(&here), heard(&there)), (vec![], vec![]));
}
