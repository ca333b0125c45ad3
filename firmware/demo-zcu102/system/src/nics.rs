//! VIs between the Cortex-R5F and Linux: which NICs there are, and where they meet.
//!
//! What you may rely on: a NIC's number is its participant's number in the plan: the Cortex-R5F's is 0, Linux's 1.

use musubi_transport::NodeId;
use musubi_transport::mapped::Table;
use musubi_vipl::mapped::{self, MappedNode};

use crate::system::smem;

/// A NIC's node, on a host.
pub type Running<H> = MappedNode<H>;
/// The SMEM channel in whose memory the NICs meet.
pub const MEMORY: u16 = smem::NICS;
/// Names of the NICs, by number.
pub const NAMES: [&str; 2] = ["r5", "linux"];
const NODES: [NodeId; 2] = mapped::nodes();
/// How they share the memory.
pub const TABLE: Table<'static> = Table::new(&NODES);

const _: () = assert!(TABLE.bytes() <= crate::system::PLAN.smems[MEMORY as usize].bytes as usize);
