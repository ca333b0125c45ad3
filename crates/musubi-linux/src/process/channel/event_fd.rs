//! A descriptor for event loops: readable when a peer has rung or the links of an end have changed.
//!
//! What you may rely on: the descriptor stays the same across restarts of peers; [`EventGate::clear`] takes a bounded
//! number of steps, whatever a peer sends.
//!
//! How it works: an epoll descriptor over one datagram socket a link, whose other end the peer holds, and an event
//! descriptor for changes of links.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

use crate::error::{Error, Tried};
use crate::os::descriptor::Descriptor;

/// Most bytes that one clearing takes off one doorbell socket; the kernel queues fewer datagrams by default.
const DRAIN_MAX: usize = 1024;

/// Most doorbells of one link: one for each connection of a peer, since each brings one.
const BELLS_OF_LINK_MAX: usize = 4;

/// Whose doorbell: participant, epoch, serial of its end.
pub(crate) type LinkKey = (u16, u32, u32);

/// What one end offers to event loops.
#[derive(Debug)]
pub(crate) struct EventGate {
    epoll: Descriptor,
    change: Descriptor,
    bells: Mutex<Vec<(LinkKey, Descriptor)>>,
    waker: Mutex<Option<Waker>>,
}

impl EventGate {
    pub(crate) fn new() -> Result<EventGate, Error> {
        let epoll = Descriptor::epoll().tried("creating an event descriptor")?;
        let change = Descriptor::event().tried("creating an event descriptor")?;
        watch(&epoll, change.as_fd())?;
        Ok(EventGate { epoll, change, bells: Mutex::new(Vec::new()), waker: Mutex::new(None) })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Makes a doorbell for a link; gives the side that the peer rings.
    pub(crate) fn add_bell(&self, key: LinkKey) -> Result<Descriptor, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
            .tried("creating a doorbell (socketpair)")?;
        watch(&self.epoll, ours.as_fd())?;
        self.bells().push((key, ours.into()));
        self.drop_oldest_bell(key);
        Ok(theirs.into())
    }

    /// Keeps the bells of one link within their bound.
    fn drop_oldest_bell(&self, key: LinkKey) {
        let mut bells = self.bells();
        if bells.iter().filter(|(of, _)| *of == key).count() > BELLS_OF_LINK_MAX
            && let Some(oldest) = bells.iter().position(|(of, _)| *of == key)
        {
            let (_, socket) = bells.remove(oldest);
            let _ = epoll::delete(&self.epoll, &socket);
        }
    }

    pub(crate) fn remove_bell(&self, key: LinkKey) {
        self.retain_bells(|(of, _)| *of != key);
    }

    /// Makes the descriptor readable.
    pub(crate) fn notify(&self) {
        let _ = rustix::io::write(&self.change, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable until the next ring or change.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.change, &mut count);
        self.retain_bells(|(_, socket)| drain(socket.as_fd()));
    }

    pub(crate) fn set_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.waker.lock().unwrap_or_else(PoisonError::into_inner), waker)
    }

    fn bells(&self) -> MutexGuard<'_, Vec<(LinkKey, Descriptor)>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retain_bells(&self, keep: impl Fn(&(LinkKey, Descriptor)) -> bool) {
        self.bells().retain(|bell| {
            let kept = keep(bell);
            if !kept {
                // Explicitly: a forked child may hold the socket, and then closing ours would not take it off.
                let _ = epoll::delete(&self.epoll, &bell.1);
            }
            kept
        });
    }
}

fn watch(epoll: &Descriptor, fd: BorrowedFd<'_>) -> Result<(), Error> {
    epoll::add(epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
        .tried("watching a descriptor (epoll_ctl)")
}

/// Takes what is queued; false if the socket is broken.
fn drain(socket: BorrowedFd<'_>) -> bool {
    let mut byte = [0u8; 1];
    for _ in 0..DRAIN_MAX {
        match recv(socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{SendFlags, send};

    use super::*;
    use crate::os::clock::timespec;

    const KEY: LinkKey = (1, 2, 3);

    fn is_readable(gate: &EventGate) -> bool {
        poll(&mut [PollFd::new(&gate.fd(), PollFlags::IN)], Some(&timespec(0))).unwrap() > 0
    }

    fn ring(bell: &Descriptor) -> Result<usize, Errno> {
        send(bell, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }

    #[test]
    fn a_change_or_a_ring_is_readable_until_it_is_cleared() {
        let gate = EventGate::new().unwrap();
        let bell = gate.add_bell(KEY).unwrap();
        assert!(!is_readable(&gate));
        (0..3).for_each(|_| gate.notify());
        assert!(is_readable(&gate));
        gate.clear();
        assert!(!is_readable(&gate), "all changes at once");
        (0..3).for_each(|_| assert!(ring(&bell).is_ok()));
        assert!(is_readable(&gate));
        gate.clear();
        assert!(!is_readable(&gate), "all rings at once");
        assert!(ring(&bell).is_ok() && is_readable(&gate), "the bell is still there");
    }

    #[test]
    fn a_link_that_goes_takes_its_own_bells_with_it() {
        let gate = EventGate::new().unwrap();
        let others = [(0, 2, 3), (1, 0, 3), (1, 2, 0)].map(|key| gate.add_bell(key).unwrap());
        let gone = gate.add_bell(KEY).unwrap();
        gate.remove_bell(KEY);
        assert!(ring(&gone).is_err() && !is_readable(&gate));
        for bell in &others {
            assert!(ring(bell).is_ok() && is_readable(&gate));
            gate.clear();
        }
    }

    #[test]
    fn a_link_has_its_latest_bells_and_costs_no_other_one() {
        let gate = EventGate::new().unwrap();
        let other = gate.add_bell((9, 9, 9)).unwrap();
        let bells: Vec<Descriptor> = (0..BELLS_OF_LINK_MAX + 2).map(|_| gate.add_bell(KEY).unwrap()).collect();
        let heard: Vec<bool> = bells.iter().map(|bell| ring(bell).is_ok()).collect();
        assert_eq!(heard, [false, false, true, true, true, true]);
        assert!(ring(&other).is_ok());
    }

    #[test]
    fn the_former_waker_is_given_back() {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(self: Arc<Self>) {}
        }
        let (gate, waker) = (EventGate::new().unwrap(), Waker::from(Arc::new(Nobody)));
        assert!(gate.set_waker(Some(waker.clone())).is_none());
        assert!(gate.set_waker(None).is_some_and(|former| former.will_wake(&waker)));
        assert!(gate.set_waker(None).is_none());
    }
}
