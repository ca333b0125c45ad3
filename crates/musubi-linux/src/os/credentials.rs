//! Who is at the other end of a socket, and whether the plan lets it in.
//!
//! What you may rely on: the answers come from the kernel (`SO_PEERCRED`, `SO_PEERGROUPS`, `SO_PEERPIDFD`), as of the
//! peer's `connect` or `listen`; nothing here believes a message.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use musubi_core::plan::{Domain, Plan};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use crate::os::descriptor::Descriptor;

/// Most supplementary groups of a peer that are looked at.
const GROUPS_MAX: usize = 256;
const ROOT: u32 = 0;

/// A peer, as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Process, 0 if it has no number in our process namespace.
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Credentials {
    /// Those of the process at the other end of a connected Unix socket.
    pub(crate) fn of_peer(socket: BorrowedFd<'_>) -> Option<Credentials> {
        let mut words = [0u32; 3];
        let length = option_words(socket, libc::SO_PEERCRED, &mut words)?;
        let [pid, uid, gid] = words;
        if length != words.len() {
            return None;
        }
        let mut groups = vec![0u32; GROUPS_MAX];
        // A peer with more groups than we look at has none for us.
        let count = option_words(socket, libc::SO_PEERGROUPS, &mut groups).unwrap_or(0);
        groups.truncate(count);
        Some(Credentials { pid: pid as i32, uid, gid, groups })
    }

    /// Our own.
    pub(crate) fn own() -> Credentials {
        let groups = rustix::process::getgroups().unwrap_or_default();
        Credentials {
            pid: std::process::id() as i32,
            uid: geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
        }
    }

    /// Whether the plan lets this user take a slot of the domain. With no user and no group named, only the user of
    /// the process that checks.
    pub(crate) fn may_attach(&self, domain: &Domain<'_>) -> bool {
        if domain.uids.is_empty() && domain.gids.is_empty() {
            return self.uid == geteuid().as_raw();
        }
        let in_group = |gid: &u32| self.gid == *gid || self.groups.contains(gid);
        domain.uids.contains(&self.uid) || domain.gids.iter().any(in_group)
    }

    /// Whether this user may look from outside: whoever may attach anywhere, our own user, and root.
    pub(crate) fn may_observe(&self, plan: &Plan<'_>) -> bool {
        let own = geteuid().as_raw();
        self.uid == own || self.uid == ROOT || plan.domains.iter().any(|domain| self.may_attach(domain))
    }

    /// Whether both are the same process.
    pub(crate) fn same_process(&self, other: &Credentials) -> bool {
        (self.pid, self.uid) == (other.pid, other.uid)
    }
}

/// How a peer's death shows, apart from the socket.
#[derive(Debug)]
pub(crate) enum Mortality {
    /// This descriptor becomes readable.
    Watched(Descriptor),
    /// It is dead already.
    Dead,
    /// The kernel cannot say; the socket's hang-up must do.
    Unknown,
}

/// How the death of the process at the other end of a socket shows.
pub(crate) fn mortality(socket: BorrowedFd<'_>, peer: &Credentials) -> Mortality {
    let mut word = [0u32; 1];
    if option_words(socket, libc::SO_PEERPIDFD, &mut word) == Some(1) {
        // SAFETY: the kernel has just installed this descriptor for us; nobody else owns it.
        return Mortality::Watched(unsafe { OwnedFd::from_raw_fd(word[0] as i32) }.into());
    }
    if std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) {
        return Mortality::Dead;
    }
    // Before Linux 6.5: by number. It is the peer's as long as the peer holds the socket, which the caller still sees.
    let Some(pid) = Pid::from_raw(peer.pid) else { return Mortality::Unknown };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Mortality::Watched(pidfd.into()),
        Err(rustix::io::Errno::SRCH) => Mortality::Dead,
        Err(_) => Mortality::Unknown,
    }
}

/// Reads a socket option made of 32-bit words; gives how many there are.
fn option_words(socket: BorrowedFd<'_>, option: i32, into: &mut [u32]) -> Option<usize> {
    let fd = socket.as_fd().as_raw_fd();
    let mut length = size_of_val(into) as libc::socklen_t;
    let value = into.as_mut_ptr().cast();
    // SAFETY: `value` is valid for `length` bytes, and the kernel writes at most that many; every bit pattern is a u32.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, value, &mut length) };
    (result == 0).then_some(length as usize / size_of::<u32>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use musubi_core::plan::{PortKind, Role, Trust};
    use std::os::unix::net::UnixStream;

    fn domain<'a>(uids: &'a [u32], gids: &'a [u32]) -> Domain<'a> {
        let (role, port, trust) = (Role::Remote, PortKind::LinuxProcess, Trust::MayCrash);
        Domain { name: "d", role, port, trust, participants: 1, uids, gids, spin_ns: 0 }
    }

    #[test]
    fn the_kernel_knows_us() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = Credentials::of_peer(a.as_fd()).unwrap();
        assert_eq!(peer, Credentials::own());
        assert!(matches!(mortality(a.as_fd(), &peer), Mortality::Watched(_)));
    }

    #[test]
    fn users_and_groups_of_the_plan_decide() {
        let own = Credentials::own();
        let other = Credentials { pid: 1, uid: own.uid + 1, gid: 7, groups: vec![8, 9] };
        assert!(own.may_attach(&domain(&[], &[])) && !other.may_attach(&domain(&[], &[])));
        assert!(other.may_attach(&domain(&[own.uid + 1], &[])) && !own.may_attach(&domain(&[own.uid + 1], &[])));
        assert!(other.may_attach(&domain(&[], &[9])) && other.may_attach(&domain(&[], &[7])));
        assert!(!other.may_attach(&domain(&[own.uid + 2], &[10])));
    }

    #[test]
    fn who_may_attach_anywhere_may_look_and_so_may_we_and_root() {
        let own = Credentials::own();
        let user = |uid, gid| Credentials { pid: 1, uid, gid, groups: vec![] };
        let (named, other) = (own.uid + 1, own.uid + 2);
        let (ours, uids) = ([own.uid], [named]);
        let domains = [domain(&ours, &[]), domain(&uids, &[77])];
        let liveness = musubi_core::plan::Liveness { heartbeat_ns: 1, stalled_ns: 2 };
        let plan = Plan { name: "p", hash: 1, domains: &domains, fifos: &[], smems: &[], liveness };
        assert!(own.may_observe(&plan) && user(ROOT, 5).may_observe(&plan));
        assert!(user(named, 5).may_observe(&plan) && user(other, 77).may_observe(&plan));
        assert!(!user(other, 5).may_observe(&plan));
    }

    #[test]
    fn a_process_is_its_number_and_its_user() {
        let own = Credentials::own();
        let as_of = |pid, uid| Credentials { pid, uid, gid: 0, groups: vec![] };
        assert!(own.same_process(&as_of(own.pid, own.uid)));
        assert!(!own.same_process(&as_of(own.pid + 1, own.uid)) && !own.same_process(&as_of(own.pid, own.uid + 1)));
    }
}
