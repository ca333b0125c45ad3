//! NICs in processes of Linux.
//!
//! What you may rely on: a process takes the first slot of a NIC that no living process has; when it ends, however it ends,
//! the slot is free again.

use std::sync::Arc;

use musubi_transport::LinkError;
use musubi_transport::limits::SLOTS_MAX;
use musubi_transport::runtime::{self, Block, Options};
use musubi_transport::topology::{Place, Topology};

use crate::address::{Directory, NicEntry, NicNumber};
use crate::error::ViError;
use crate::nic::NicState;

/// The node of a NIC in a process of Linux.
pub type ProcessNode = runtime::Node<NicState<Block>>;
/// An opened NIC in a process of Linux.
pub type Nic = crate::over::Nic<ProcessNode>;

/// What VIs run on: the NICs of a system, and where they are.
#[derive(Clone, Debug)]
pub struct NicSystem {
    /// Every NIC.
    pub directory: Directory,
    /// Where their slots are, as nodes.
    pub topology: Arc<Topology>,
}

impl NicSystem {
    /// One NIC for all processes of this machine, by shared memory: what holds where there is no description.
    pub fn single_machine() -> NicSystem {
        NicSystem::on_one_machine("default/vi")
    }

    /// The same of a system of this name: what holds where a description has no NICs.
    pub fn on_one_machine(system: &str) -> NicSystem {
        let topology = Topology { system: String::from(system), ..Topology::single_machine() };
        let nic = NicEntry {
            name: String::from("VINIC0"),
            hosts: Vec::new(),
            slots: SLOTS_MAX,
            is_trusted: false,
            intakes: Vec::new(),
        };
        NicSystem { directory: Directory { nics: vec![nic] }, topology: Arc::new(topology) }
    }

    /// The NICs of a description: name and how many processes each, and where their slots are, as nodes.
    pub fn new(nics: impl IntoIterator<Item = (String, u16)>, topology: Topology) -> NicSystem {
        let entry = |(number, (name, slots))| {
            let place = NicNumber(number).node(0).and_then(|node| topology.nodes.get(&node));
            let intakes = place.map(|place| place.intakes.clone()).unwrap_or_default();
            NicEntry { name, hosts: place.map(hosts).unwrap_or_default(), slots, is_trusted: false, intakes }
        };
        let nics = (0..).zip(nics).map(entry).collect();
        NicSystem { directory: Directory { nics }, topology: Arc::new(topology) }
    }
}

impl NicSystem {
    /// The same with the processes of some NICs trusted, by the NIC's name: see [`NicEntry::is_trusted`].
    #[must_use]
    pub fn trusting(mut self, is_trusted: impl Fn(&str) -> bool) -> NicSystem {
        self.directory.nics.iter_mut().for_each(|entry| entry.is_trusted = is_trusted(&entry.name));
        self
    }
}

/// Names of the host of a place: its machine's, and the host in its address.
fn hosts(place: &Place) -> Vec<String> {
    let machine = place.shared_memory.iter().filter(|machine| !machine.is_empty()).cloned();
    let address = place.tcp.iter().filter_map(|address| Some(address.rsplit_once(':')?.0));
    machine.chain(address.map(|host| host.trim_matches(['[', ']']).to_owned())).collect()
}

/// Names of devices that programs of the period open.
const KNOWN_NAMES: [&str; 6] = ["VINIC", "VINIC0", "/dev/clanvi0", "/dev/via_lo", "/dev/via_eth0", "nic0"];

impl NicSystem {
    /// The NIC that a program means which opens this name: the one of that name, else the `preferred` one, else
    /// the only one.
    pub fn choose(&self, name: &str, preferred: Option<&str>) -> Option<NicNumber> {
        let only = || (self.directory.nics.len() == 1 && KNOWN_NAMES.contains(&name)).then_some(NicNumber(0));
        self.directory.find(name).or_else(|| self.directory.find(preferred?)).or_else(only)
    }
}

impl Nic {
    /// Opens a NIC of a system.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if the system has no such NIC; [`ViError::Resource`] if as many processes have it open as may, or
    /// memory, descriptors or threads cannot be had.
    pub fn open(system: &NicSystem, nic: NicNumber, options: Options) -> Result<Nic, ViError> {
        let slots = system.directory.slots(nic);
        if slots == 0 {
            return Err(ViError::Parameter);
        }
        for node in (0..slots).filter_map(|slot| nic.node(slot)) {
            match ProcessNode::start(Arc::clone(&system.topology), node, options.clone()) {
                Err(LinkError::NodeRuns) => {}
                Err(error) => return Err(error.into()),
                Ok(running) => {
                    running.with(|state, links| {
                        state.describe(system.directory.clone());
                        state.see_links(links);
                    })?;
                    return Ok(Nic::of(running));
                }
            }
        }
        Err(ViError::Resource)
    }
}
