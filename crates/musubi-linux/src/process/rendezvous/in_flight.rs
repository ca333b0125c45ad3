//! Descriptors that we have sent and nobody has read yet.
//!
//! What you may rely on: at most [`super::connection::UNREAD_MAX`] are unread on one connection. Callers without a link of one user,
//! and connections given up with some unread, owe at most [`OF_USER_MAX`], all of them together [`OF_ALL_MAX`] and
//! [`SHARE`] more for each user; who owes more gets no descriptor, and no other user notices.
//!
//! How it works: the kernel lets a user have as many descriptors in flight as a process may have open, and refuses every
//! further one, to whomever it goes. What was sent stays in flight although we close our end, as long as the other end
//! is open and not read. So a connection that is given up is kept until the kernel says that nothing of it is unread.

use rustix::net::{Shutdown, shutdown};

use crate::os::forks::Kept;
use crate::os::packet_socket::unread_bytes;
use crate::process::rendezvous::connection::Connection;

/// Most descriptors that one user leaves unread outside of links, when it is given another.
const OF_USER_MAX: usize = 64;
/// Most that all users together do, apart from their shares.
const OF_ALL_MAX: usize = 256;
/// What every user may leave unread, whatever all others do.
const SHARE: usize = 8;

/// A connection given up while descriptors that we sent were unread.
#[derive(Debug)]
struct Unread {
    socket: Kept,
    uid: u32,
    descriptors: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Abandoned(Vec<Unread>);

impl Abandoned {
    /// Lets a connection go, but keeps count of what is unread of it.
    pub(crate) fn take(&mut self, mut connection: Connection) {
        let (uid, descriptors) = (connection.credentials.uid, connection.unread());
        if descriptors > 0 {
            let socket = connection.into_socket();
            let _ = shutdown(&socket, Shutdown::Both);
            self.0.push(Unread { socket, uid, descriptors });
        }
    }

    /// Takes off what has been read meanwhile, or whose reader has closed it.
    pub(crate) fn drop_read(&mut self) {
        self.0.retain(|of| unread_bytes(&of.socket) > 0);
    }

    /// Whether a user may be given another descriptor without being linked; `unlinked` are the users of connections
    /// without a link, with how much is unread on each.
    pub(crate) fn leave_room(&mut self, uid: u32, unlinked: impl Iterator<Item = (u32, usize)>) -> bool {
        self.drop_read();
        let abandoned = self.0.iter().map(|of| (of.uid, of.descriptors));
        let (mut of_user, mut of_all) = (0, 0);
        for (owner, descriptors) in unlinked.chain(abandoned) {
            of_all += descriptors;
            of_user += if owner == uid { descriptors } else { 0 };
        }
        has_room(of_user, of_all)
    }
}

/// Whether a user that owes `of_user` may be given one more while all users together owe `of_all`.
fn has_room(of_user: usize, of_all: usize) -> bool {
    of_user < SHARE || (of_user < OF_USER_MAX && of_all < OF_ALL_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_users_that_read_nothing_leave_a_fifth_its_share() {
        let hostile = 4 * OF_USER_MAX;
        assert!(!has_room(OF_USER_MAX, hostile) && !has_room(OF_USER_MAX, OF_USER_MAX));
        for owed in 0..SHARE {
            assert!(has_room(owed, hostile + owed));
        }
        assert!(!has_room(SHARE, hostile + SHARE));
        assert!(has_room(OF_USER_MAX - 1, OF_USER_MAX - 1), "alone it may owe more");
    }
}
