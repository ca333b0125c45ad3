//! Where a VI can be found: a NIC of the system, and what tells those on it apart.
//!
//! What you may rely on: discriminators are compared as strings of bytes of equal length; an [`Address`] never has a longer
//! one than `VipQueryNic` says.
//!
//! How it works: a NIC's number is its place in the description, so it is the same everywhere. Several processes of a
//! machine may have opened one NIC: each is a *slot* of it, a node of its own to the transport.

use alloc::string::String;
use alloc::vec::Vec;

use musubi_transport::NodeId;
use musubi_transport::limits::SLOTS_MAX;
use musubi_transport::topology::ClassIntake;

/// Longest discriminator, bytes.
pub const DISCRIMINATOR_BYTES_MAX: usize = 128;

/// A NIC, by its place in the description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicNumber(pub u16);

impl NicNumber {
    /// Bytes of a host address.
    pub const BYTES: usize = 4;

    /// The host address that stands for it.
    pub const fn to_host_address(self) -> [u8; NicNumber::BYTES] {
        (self.0 as u32).to_be_bytes()
    }

    /// The NIC of a host address, if that can be one.
    pub fn of_host_address(bytes: &[u8]) -> Option<NicNumber> {
        let number = u32::from_be_bytes(bytes.try_into().ok()?);
        u16::try_from(number).ok().map(NicNumber)
    }

    /// The node that a slot of it is.
    pub fn node(self, slot: u16) -> Option<NodeId> {
        NodeId::of_slot(self.0, slot)
    }

    /// The NIC that a node is a slot of, and which.
    pub fn of_node(node: NodeId) -> Option<(NicNumber, u16)> {
        node.slot().map(|(nic, slot)| (NicNumber(nic), slot))
    }
}

/// `VIP_NET_ADDRESS`, checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Which NIC.
    pub nic: NicNumber,
    /// Which of those who listen or ask there.
    pub discriminator: Vec<u8>,
}

impl Address {
    /// One, unless the discriminator is too long.
    pub fn new(nic: NicNumber, discriminator: &[u8]) -> Option<Address> {
        let fits = discriminator.len() <= DISCRIMINATOR_BYTES_MAX;
        fits.then(|| Address { nic, discriminator: discriminator.to_vec() })
    }
}

/// The NICs of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// By number.
    pub nics: Vec<NicEntry>,
}

/// A NIC as all know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicEntry {
    /// Its name, which is also that of its host to the name service.
    pub name: String,
    /// Other names of its host: its machine's, and what stands for the machine in its network address.
    pub hosts: Vec<String>,
    /// How many processes may have it open at a time.
    pub slots: u16,
    /// Whether its processes are trusted by those that it sends to: these then fetch large payloads from where they lie, and
    /// take as long as the sender makes that take.
    pub is_trusted: bool,
    /// What each of its processes takes of some classes.
    pub intakes: Vec<ClassIntake>,
}

impl NicEntry {
    fn has_host(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host == name)
    }
}

impl Directory {
    /// How many slots a NIC has; 0 if there is no such NIC.
    pub fn slots(&self, nic: NicNumber) -> u16 {
        self.nics.get(usize::from(nic.0)).map_or(0, |entry| entry.slots.min(SLOTS_MAX))
    }

    /// The NICs that a host's name stands for, seen from NIC `here`, whose host has the name `host`: the one of that name;
    /// else those of that host; else the local one for this host's usual names.
    pub fn named<'d>(&'d self, name: &'d str, host: &str, here: NicNumber) -> impl Iterator<Item = NicNumber> + 'd {
        let own = self.find(name);
        let of_host = self.nics.iter().enumerate().filter(move |(_, entry)| own.is_none() && entry.has_host(name));
        let is_known = own.is_some() || self.nics.iter().any(|entry| entry.has_host(name));
        let is_here = !name.is_empty() && (matches!(name, "localhost" | "127.0.0.1" | "::1") || name == host);
        let local = (is_here && !is_known).then_some(here);
        own.into_iter().chain(of_host.map(|(place, _)| NicNumber(place as u16))).chain(local)
    }

    /// Whether a NIC's processes are trusted.
    pub fn trusts(&self, nic: NicNumber) -> bool {
        self.nics.get(usize::from(nic.0)).is_some_and(|entry| entry.is_trusted)
    }

    /// What the processes of a NIC take of some classes.
    pub fn intakes(&self, nic: NicNumber) -> &[ClassIntake] {
        self.nics.get(usize::from(nic.0)).map_or(&[], |entry| &entry.intakes)
    }

    /// The NIC of a name.
    pub fn find(&self, name: &str) -> Option<NicNumber> {
        self.nics.iter().position(|entry| entry.name == name).map(|place| NicNumber(place as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_every_name_that_they_have() {
        let entry = |name: &str, hosts: &[&str]| NicEntry {
            name: name.into(),
            hosts: hosts.iter().map(|host| String::from(*host)).collect(),
            slots: 1,
            is_trusted: false,
            intakes: Vec::new(),
        };
        let nics = alloc::vec![
            entry("a", &["left", "10.0.0.1"]),
            entry("b", &["left"]),
            entry("left", &[]),
            entry("c", &["a"])
        ];
        let directory = Directory { nics };
        let named = |name: &str| directory.named(name, "host", NicNumber(1)).map(|nic| nic.0).collect::<Vec<u16>>();
        assert_eq!(named("b"), [1]);
        assert_eq!(named("a"), [0], "a NIC's own name goes before a machine's");
        assert_eq!(named("left"), [2]);
        assert_eq!(named("10.0.0.1"), [0]);
        assert_eq!((named("localhost"), named("host")), (alloc::vec![1], alloc::vec![1]));
        assert!(named("elsewhere").is_empty() && named("").is_empty());
        let two = Directory { nics: directory.nics[..2].to_vec() };
        assert_eq!(two.named("left", "left", NicNumber(1)).map(|nic| nic.0).collect::<Vec<u16>>(), [0, 1]);
    }

    #[test]
    fn host_addresses_are_read_back_and_others_are_none() {
        let nic = NicNumber(0x1234);
        assert_eq!(nic.to_host_address(), [0, 0, 0x12, 0x34]);
        assert_eq!(NicNumber::of_host_address(&nic.to_host_address()), Some(nic));
        assert_eq!(NicNumber::of_host_address(&[0, 1, 0, 0]), None);
        assert_eq!(NicNumber::of_host_address(&[0, 0, 1]), None);
        assert_eq!(NicNumber::of_host_address(&[]), None);
    }
}
