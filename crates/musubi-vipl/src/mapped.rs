//! NICs of cores that map one memory.
//!
//! What you may rely on: everything that the engine says holds here as between processes. Peers share the memory of the links
//! and nothing else: what a program registers is memory of its own core, which peers need not be able to reach; what they may
//! touch there is decided and copied by this side.
//!
//! How it works: each place of a [`Table`] is one NIC, of the number of its place, with one slot. All programs have the same
//! table and the same names.
//!
//! What it does not do: notice that a peer stands still, or is gone without a successor: only its new run, or its leaving,
//! ends the connections with it.

use alloc::string::String;

use musubi_transport::NodeId;
use musubi_transport::links::NoBlock;
use musubi_transport::mapped::{Host, Node, Options, Region, Table};

use crate::address::{Directory, NicEntry};
use crate::error::ViError;
use crate::nic::NicState;

/// The node of a NIC over mapped memory.
pub type MappedNode<H> = Node<NicState<NoBlock>, H>;
/// An opened NIC over mapped memory.
pub type Nic<H> = crate::over::Nic<MappedNode<H>>;

/// The nodes of so many NICs, for a [`Table`].
///
/// # Panics
/// If there cannot be so many; in a constant, when it is compiled.
pub const fn nodes<const COUNT: usize>() -> [NodeId; COUNT] {
    let Some(first) = NodeId::of_slot(0, 0) else { panic!("there is a first NIC") };
    let mut nodes = [first; COUNT];
    let mut place = 0;
    while place < COUNT {
        nodes[place] = match NodeId::of_slot(place as u16, 0) {
            Some(node) => node,
            None => panic!("more NICs than there can be"),
        };
        place += 1;
    }
    nodes
}

/// Opens the NIC of a place: `names` are those of all NICs, by place.
///
/// # Errors
/// [`ViError::Resource`] if the memory is not of this table; [`ViError::Parameter`] if there are not as many names as NICs, or
/// the table's nodes are not those of [`nodes`].
pub fn open<H: Host + Sync + 'static>(
    names: &[&str],
    table: Table<'_>,
    region: Region<'static>,
    host: &'static H,
    options: Options,
) -> Result<Nic<H>, ViError> {
    let is_nic = |(place, node): (usize, &NodeId)| NodeId::of_slot(place as u16, 0) == Some(*node);
    if names.len() != table.nodes.len() || !table.nodes.iter().enumerate().all(is_nic) {
        return Err(ViError::Parameter);
    }
    let nic = Nic::of(MappedNode::start(table, region, host, options)?);
    let entry = |name: &&str| NicEntry {
        name: String::from(*name),
        hosts: Default::default(),
        slots: 1,
        is_trusted: false,
        intakes: Default::default(),
    };
    nic.with(|state| {
        state.describe(Directory { nics: names.iter().map(entry).collect() });
        Ok(())
    })?;
    Ok(nic)
}
