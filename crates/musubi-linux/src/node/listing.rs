//! The names of nodes, and which of them are held.
//!
//! What you may rely on: it looks and calls nobody, so nobody notices. It sees nodes of this user, in this network namespace.

use rustix::process::geteuid;

use crate::error::{Error, Tried};
use crate::process::rendezvous::socket_names::Names;

/// Where the kernel lists the names of sockets.
const SOCKETS: &str = "/proc/net/unix";

/// The abstract name (without its leading zero byte) that node number `index` of a system listens at.
///
/// # Errors
/// [`Error::Instance`] if the environment names an instance that cannot be.
pub fn name(system: &str, index: u16) -> Result<String, Error> {
    Ok(Names::new(system, None)?.node(geteuid().as_raw(), index))
}

/// Numbers of the nodes of a system that are on this machine now, in order.
///
/// # Errors
/// As [`name`], or [`Error::System`] if the kernel does not list its sockets.
pub fn present(system: &str) -> Result<Vec<u16>, Error> {
    let sockets = std::fs::read_to_string(SOCKETS).tried("reading the kernel's list of sockets")?;
    let first = name(system, 0)?;
    let prefix = first.strip_suffix('0').unwrap_or(&first);
    let mut found: Vec<u16> = sockets.lines().filter_map(|line| listed(line, prefix)).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The number of the node that a line of the list names.
fn listed(line: &str, prefix: &str) -> Option<u16> {
    // A listening socket and those accepted from it show the same name; the others have none.
    let (_, name) = line.split_once(" @")?;
    name.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_read() {
        let line = "0000000000000000: 00000002 00000000 00010000 0005 01 16023 @musubi/s/default/u0/n17";
        assert_eq!(listed(line, "musubi/s/default/u0/n"), Some(17));
        for other in
            ["0: 2 0 1 5 01 16023 /run/x", "0: 2 0 1 5 01 1 @musubi/t/default/u0/n17", "0: @musubi/s/default/u0/nx"]
        {
            assert_eq!(listed(other, "musubi/s/default/u0/n"), None, "{other}");
        }
    }
}
