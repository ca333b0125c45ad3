//! Addresses of this system: those that the description names, and those from which a certificate was shown.
//!
//! What you may rely on: an address is known by all of its bits, so a neighbour in the same network is not taken for it; an
//! IPv4 address that is written as one of IPv6 is the IPv4 address. Looking one up takes a time that grows with the
//! logarithm of their number. Of addresses with a certificate [`PROVEN_MAX`] are remembered.
//!
//! How it works: a host of the description keeps the addresses that it had when it was last found, also while the resolver
//! finds none.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::recent::Recent;

/// Addresses from which a certificate was shown that are remembered; the one that was shown longest ago goes first.
pub(super) const PROVEN_MAX: usize = 64;

/// The known addresses.
#[derive(Debug, Default)]
pub(in crate::tcp) struct Known {
    /// By hosts as the description writes them.
    hosts: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Of how many hosts each address is.
    named: BTreeMap<IpAddr, usize>,
    proven: Recent<IpAddr>,
}

impl Known {
    /// A host of the description has these addresses; if none, those that it had.
    pub fn name(&mut self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) {
        let addresses: BTreeSet<IpAddr> = addresses.into_iter().map(|address| address.to_canonical()).collect();
        if addresses.is_empty() || self.hosts.get(host) == Some(&addresses) {
            return;
        }
        for address in &addresses {
            *self.named.entry(*address).or_default() += 1;
        }
        for address in self.hosts.insert(host.to_owned(), addresses).into_iter().flatten() {
            if let Entry::Occupied(mut hosts) = self.named.entry(address) {
                *hosts.get_mut() -= 1;
                if *hosts.get() == 0 {
                    hosts.remove();
                }
            }
        }
    }

    /// Somebody there has shown a certificate of this system.
    pub fn proved(&mut self, address: IpAddr) {
        self.proven.touch(address.to_canonical());
        if self.proven.len() > PROVEN_MAX {
            self.proven.forget_oldest();
        }
    }

    /// Whether it is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.named.contains_key(&address) || self.proven.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_neighbour_is_not_known() {
        let mut known = Known::default();
        known.name("peer", [address("2001:db8:0:7::5")]);
        known.proved(address("2001:db8:0:8::5"));
        for net in ["2001:db8:0:7", "2001:db8:0:8"] {
            assert!(known.has(address(&format!("{net}::5"))));
            assert!(!known.has(address(&format!("{net}::6"))), "it shares the first 64 bits only");
        }
    }

    #[test]
    fn an_address_of_ipv4_is_the_same_however_it_is_written() {
        let (mut known, plain, mapped) = (Known::default(), address("10.0.0.5"), address("::ffff:10.0.0.5"));
        known.name("peer", [mapped]);
        assert!(known.has(plain) && known.has(mapped) && !known.has(address("::ffff:10.0.0.6")));
        let mut known = Known::default();
        known.proved(plain);
        assert!(known.has(mapped));
    }

    #[test]
    fn a_host_that_moves_is_known_where_it_is_and_one_that_is_not_found_where_it_was() {
        let (mut known, [here, there, other]) = (Known::default(), ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(address));
        known.name("moving", [here]);
        known.name("staying", [here, other]);
        known.name("moving", [there]);
        assert!(known.has(there) && known.has(here) && known.has(other));
        known.name("staying", [other]);
        assert!(!known.has(here));
        known.name("moving", []);
        assert!(known.has(there));
    }

    #[test]
    fn of_certificates_the_last_ones_count() {
        let mut known = Known::default();
        let of = |number: usize| IpAddr::V4((0x0a00_0000 + number as u32).into());
        (0..2 * PROVEN_MAX).for_each(|number| known.proved(of(number)));
        known.proved(of(PROVEN_MAX));
        known.proved(of(2 * PROVEN_MAX));
        assert!(known.has(of(2 * PROVEN_MAX)) && known.has(of(PROVEN_MAX)));
        assert!(!known.has(of(PROVEN_MAX + 1)) && !known.has(of(1)), "long ago");
    }
}
