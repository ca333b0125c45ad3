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

    #[test]
    fn what_others_owe_is_theirs_and_counts_for_all() {
        let mut abandoned = Abandoned::default();
        let owed = |uid, descriptors| std::iter::repeat_n((uid, descriptors), 8);
        assert!(abandoned.leave_room(1, owed(1, 0)));
        assert!(abandoned.leave_room(1, owed(2, SHARE)), "what another one owes");
        assert!(abandoned.leave_room(1, owed(1, SHARE - 1)));
        assert!(!abandoned.leave_room(1, owed(1, SHARE)), "eight times eight");
        assert!(abandoned.leave_room(1, owed(2, OF_ALL_MAX / 8).chain([(1, SHARE - 1)])), "a share is left");
        assert!(!abandoned.leave_room(1, owed(2, OF_ALL_MAX / 8).chain([(1, SHARE)])));
        assert!(abandoned.leave_room(1, owed(2, OF_ALL_MAX / 8 - 1).chain([(1, 7)])));
    }

    #[test]
    fn what_is_given_up_unread_is_owed_until_it_is_read_or_closed() {
        use std::sync::Arc;

        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

        use crate::os::credentials::Credentials;
        use crate::os::descriptor::Descriptor;
        use crate::process::rendezvous::connection::{Outgoing, Sent, Stage};
        use crate::process::rendezvous::message::Message;

        let uid = Credentials::own().uid;
        let mut abandoned = Abandoned::default();
        let mut others = Vec::new();
        for descriptors in [0, 1, 3] {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            let mut connection = Connection::new(Kept::new(one.into()), Stage::Accepted, Credentials::own(), 0);
            for smem in 0..descriptors {
                let fd = Some(Arc::new(Descriptor::event().unwrap()));
                let outgoing = Outgoing { message: Message::Segment { smem, generation: 1 }, fd };
                assert_eq!(connection.send(outgoing, 0), Sent::Done);
            }
            abandoned.take(connection);
            others.push(other);
        }
        let owed = |abandoned: &Abandoned| abandoned.0.iter().map(|of| of.descriptors).collect::<Vec<_>>();
        assert_eq!(owed(&abandoned), [1, 3], "who owes nothing is let go");
        abandoned.drop_read();
        assert_eq!(owed(&abandoned), [1, 3]);
        assert!(abandoned.leave_room(uid, [(uid, 3)].into_iter()) && abandoned.leave_room(uid + 1, [].into_iter()));
        assert!(!abandoned.leave_room(uid, [(uid, 60)].into_iter()), "sixty and four");
        assert!(abandoned.leave_room(uid + 1, [(uid, 60)].into_iter()));
        others.truncate(2);
        abandoned.drop_read();
        assert_eq!(owed(&abandoned), [1]);
        others.clear();
        abandoned.drop_read();
        assert_eq!(owed(&abandoned), [0; 0]);
    }
}
