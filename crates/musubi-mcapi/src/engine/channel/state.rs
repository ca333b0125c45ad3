//! What one end of a channel is in: connected or not, opened or not, here and there.
//!
//! What you may rely on: pure; every input in every state either changes it and says what is to be done, or is refused
//! and changes nothing. Two ends joined by ordered links agree in the end, whatever orders the two programs choose.
//!
//! How it works: connecting has two steps. The owner of the sending end *asks* the owner of the receiving end, which is
//! *joined* at once if it accepts; the sending end is joined when the answer comes. So every connection of two ends is
//! decided by one node. Each connection has a number by which frames of an earlier one are known. After that the two
//! ends only tell each other: opened, no longer opened, closed. A close or data imply that the opening came before, since
//! they may travel in another class than it.
//!
//! What it does not do: hold queues, requests or names; see the engine's `channels`.

use super::ChannelKind;
use crate::Error;

/// What an end is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    /// Packets or scalars.
    pub(crate) kind: ChannelKind,
    /// Whether it receives.
    pub(crate) receives: bool,
}

impl Role {
    /// Whether an end of this role may be used as one of that.
    pub(crate) fn check(self, wanted: Role) -> Result<(), Error> {
        match wanted {
            Role { kind, .. } if kind != self.kind => Err(Error::ChannelType),
            Role { receives, .. } if receives != self.receives => Err(Error::ChannelDirection),
            _ => Ok(()),
        }
    }
}

/// How far an end is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// Not at all.
    No,
    /// It is a sending end whose receiving end's owner has been asked.
    Asking(Role),
    /// It is.
    Joined(Role),
    /// It was, and the other end is lost.
    Broken(Role),
}

/// How far an end is opened here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Local {
    Shut,
    Opening(Role),
    Open,
    Closing,
}

/// One end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelState {
    join: Join,
    local: Local,
    /// The other end is open, as far as it said.
    peer_open: bool,
    /// The other end was open and has been closed.
    peer_closed: bool,
    /// This end was once opened since it was joined, or the other one was without it: it may have sent or closed.
    told: bool,
}

/// What is to be done after an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Todo {
    /// Tell the other end: opened (or no longer).
    pub(crate) tell_open: Option<bool>,
    /// Tell the other end: closed.
    pub(crate) tell_close: bool,
    /// The pending opening is over, like this.
    pub(crate) opened: Option<Result<(), Error>>,
    /// The pending closing is over.
    pub(crate) closed: bool,
    /// The other end sends and takes nothing more, for this reason.
    pub(crate) peer_ended: Option<Error>,
    /// The connection is no more: the end is as new, but for an opening that may still be pending.
    pub(crate) parted: bool,
}

/// The input cannot be from a peer that follows the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAllowed;

impl ChannelState {
    /// An endpoint that is no channel's end.
    pub(crate) const NEW: ChannelState =
        ChannelState { join: Join::No, local: Local::Shut, peer_open: false, peer_closed: false, told: false };

    /// Whether nothing is known of it.
    pub(crate) fn is_idle(&self) -> bool {
        *self == ChannelState::NEW
    }

    /// Its role, once it is connected.
    pub(crate) fn role(&self) -> Option<Role> {
        match self.join {
            Join::No | Join::Asking(_) => None,
            Join::Joined(role) | Join::Broken(role) => Some(role),
        }
    }

    /// Its role, as far as the connection or the program's opening says.
    pub(crate) fn role_so_far(&self) -> Option<Role> {
        match self.local {
            Local::Opening(wanted) => self.role().or(Some(wanted)),
            _ => self.role(),
        }
    }

    /// Whether a connection exists or is being made.
    pub(crate) fn is_bound(&self) -> bool {
        self.join != Join::No
    }

    /// Whether the other end's node knows this connection.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.join, Join::Joined(_))
    }

    /// Whether the other end was lost.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.join, Join::Broken(_))
    }

    /// Whether the opening is pending.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.local, Local::Opening(_))
    }

    /// Whether the program may use it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.local == Local::Open
    }

    /// Whether the closing is pending: nobody reads what comes.
    pub(crate) fn is_closing(&self) -> bool {
        self.local == Local::Closing
    }

    /// Whether the other end has been closed.
    #[inline]
    pub(crate) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Whether it may be connected.
    pub(crate) fn may_join(&self) -> Result<(), Error> {
        match (self.join, self.local) {
            (Join::No, _) => Ok(()),
            (_, Local::Closing) => Err(Error::ChannelClosePending),
            _ => Err(Error::ChannelConnected),
        }
    }

    /// The other end's owner is being asked.
    pub(crate) fn ask(&mut self, role: Role) {
        self.join = Join::Asking(role);
    }

    /// It refused, or cannot be asked.
    pub(crate) fn ask_failed(&mut self) -> Todo {
        self.join = Join::No;
        Todo { parted: true, ..Todo::default() }
    }

    /// It is connected. An opening that was made for another role fails here.
    pub(crate) fn join(&mut self, role: Role) -> Todo {
        self.join = Join::Joined(role);
        let Local::Opening(wanted) = self.local else { return Todo::default() };
        match role.check(wanted) {
            Ok(()) => self.tell_opening(),
            Err(error) => {
                self.local = Local::Shut;
                Todo { opened: Some(Err(error)), ..Todo::default() }
            }
        }
    }

    /// The connecting was cancelled in time, if it was: the sending end's owner says so.
    pub(crate) fn may_part(&self) -> bool {
        match self.join {
            Join::Asking(_) => true,
            Join::Joined(_) => !self.told,
            _ => false,
        }
    }

    /// The connecting was cancelled.
    pub(crate) fn part(&mut self) -> Result<Todo, NotAllowed> {
        if matches!(self.local, Local::Open | Local::Closing) {
            return Err(NotAllowed);
        }
        *self = ChannelState { local: self.local, ..ChannelState::NEW };
        Ok(Todo { parted: true, ..Todo::default() })
    }

    /// The owner of this receiving end gives up a connection that neither end has used.
    pub(crate) fn give_up(&mut self) -> Result<Todo, NotAllowed> {
        if self.peer_open || self.peer_closed {
            return Err(NotAllowed);
        }
        self.part()
    }

    /// The owner of the receiving end has given the connection up. For who has this one open already that is a close.
    pub(crate) fn given_up(&mut self) -> Result<Todo, NotAllowed> {
        match self.local {
            Local::Open | Local::Closing => self.peer_close(false),
            Local::Shut | Local::Opening(_) => self.part(),
        }
    }

    /// The program opens it.
    pub(crate) fn open(&mut self, wanted: Role) -> Result<Todo, Error> {
        if let Some(role) = self.role() {
            role.check(wanted)?;
        }
        match self.local {
            Local::Opening(_) => return Err(Error::ChannelOpenPending),
            Local::Open => return Err(Error::ChannelOpen),
            Local::Closing => return Err(Error::ChannelClosePending),
            Local::Shut => {}
        }
        self.local = Local::Opening(wanted);
        Ok(if self.is_joined() { self.tell_opening() } else { Todo::default() })
    }

    fn tell_opening(&mut self) -> Todo {
        self.told = true;
        let opened = (self.peer_open || self.peer_closed).then(|| {
            self.local = Local::Open;
            Ok(())
        });
        Todo {
            tell_open: Some(true),
            opened,
            peer_ended: self.peer_closed.then_some(Error::ChannelInvalid),
            ..Todo::default()
        }
    }

    /// The program gets its end without the other one; see the engine's `polled`. That one must expect it, and may be opened later.
    pub(crate) fn open_alone(&mut self) -> Todo {
        if !self.is_joined() {
            return Todo::default();
        }
        self.implied_open()
    }

    /// The other end, which is of the same node, has been opened without this one.
    pub(crate) fn expect_alone(&mut self) {
        self.told = true;
        self.peer_open = true;
    }

    /// The program takes a pending opening back. What the other end, for which the channel may be open, sends, stays.
    pub(crate) fn cancel_open(&mut self) -> Todo {
        self.local = Local::Shut;
        Todo { tell_open: self.is_joined().then_some(false), ..Todo::default() }
    }

    /// The other end was opened, or its opening was taken back.
    pub(crate) fn peer_opened(&mut self, open: bool) -> Result<Todo, NotAllowed> {
        if !self.is_joined() {
            return Err(NotAllowed);
        }
        if self.peer_closed {
            return Ok(Todo::default());
        }
        self.peer_open = open;
        Ok(if open { self.implied_open() } else { Todo::default() })
    }

    /// Data came from the other end, so it is open.
    #[inline]
    pub(crate) fn peer_sent(&mut self) -> Result<Todo, NotAllowed> {
        if !self.is_joined() || !self.told || self.peer_closed {
            return Err(NotAllowed);
        }
        if self.peer_open && !self.is_opening() {
            return Ok(Todo::default());
        }
        self.peer_open = true;
        Ok(self.implied_open())
    }

    fn implied_open(&mut self) -> Todo {
        if !self.is_opening() {
            return Todo::default();
        }
        self.local = Local::Open;
        Todo { opened: Some(Ok(())), ..Todo::default() }
    }

    /// The other end was closed. `unread`: something is queued here.
    pub(crate) fn peer_close(&mut self, unread: bool) -> Result<Todo, NotAllowed> {
        if !self.is_joined() || !self.told || self.peer_closed {
            return Err(NotAllowed);
        }
        self.peer_closed = true;
        let mut todo = Todo { peer_ended: Some(Error::ChannelInvalid), ..self.implied_open() };
        match self.local {
            Local::Closing => Ok(self.finish(Todo { closed: true, ..todo })),
            // Our opening was taken back after the other end had seen it: there is nobody here who could close.
            Local::Shut if !unread => {
                todo.tell_close = true;
                Ok(self.finish(todo))
            }
            _ => Ok(todo),
        }
    }

    /// The program closes it.
    pub(crate) fn close(&mut self) -> Result<Todo, Error> {
        if self.local != Local::Open {
            return Err(Error::ChannelNotOpen);
        }
        self.local = Local::Closing;
        let tell_close = self.is_joined();
        if self.is_broken() || self.peer_closed {
            return Ok(self.finish(Todo { tell_close, closed: true, ..Todo::default() }));
        }
        Ok(Todo { tell_close, ..Todo::default() })
    }

    /// The other end's node, or the way to it, is gone.
    pub(crate) fn lost(&mut self) -> Todo {
        let role = match self.join {
            Join::No | Join::Broken(_) => return Todo::default(),
            Join::Asking(_) => return self.ask_failed(),
            Join::Joined(role) => role,
        };
        let todo = Todo { peer_ended: Some(Error::Transmission), ..Todo::default() };
        match self.local {
            Local::Open => {
                self.join = Join::Broken(role);
                todo
            }
            Local::Shut => self.finish(todo),
            Local::Opening(_) => self.finish(Todo { opened: Some(Err(Error::Transmission)), ..todo }),
            Local::Closing => self.finish(Todo { closed: true, ..todo }),
        }
    }

    fn finish(&mut self, todo: Todo) -> Todo {
        *self = ChannelState::NEW;
        Todo { parted: true, ..todo }
    }
}

#[cfg(test)]
mod tests;
