//! Waiting for many channels at once, the most urgent first.
//!
//! What you may rely on: [`WaitSet::wait`] names the receiver of the most urgent class that has something, taking turns
//! within a class, so no channel starves another of its class.
//!
//! How it works: the plan gives each channel a priority class; [`musubi_core::guarantee::Schedule`] picks.

use musubi_core::Error;
use musubi_core::channel::{Attachment, ReceivingEnd, WAIT_MAX};
use musubi_core::guarantee::{Priority, Schedule};

use crate::{Receiver, Wait};

/// A set of receivers to wait for; see [`Receiver::member`].
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-waitset-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Mdcom, Wait, WaitSet};
///
/// let sender = Mdcom::init(&control).sender("greetings")?;
/// let receiver = Mdcom::init(&panel).receiver("greetings")?;
/// let mut set = WaitSet::new([receiver.member()]);
/// sender.send(b"hello", Wait::Forever)?;
/// assert_eq!(set.wait(Wait::Forever)?, 0);
/// assert_eq!(receiver.next(Wait::Poll)?.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WaitSet<'r, A: Attachment, const N: usize> {
    attachment: &'r A,
    members: [&'r A::Receiving; N],
    schedule: Schedule,
}

/// A receiver as a member of a [`WaitSet`], whatever its message type.
#[derive(Debug)]
pub struct Member<'r, A: Attachment> {
    attachment: &'r A,
    end: &'r A::Receiving,
}

impl<'a, A: Attachment, T> Receiver<'a, A, T> {
    /// This receiver as a member of a [`WaitSet`].
    pub fn member(&self) -> Member<'_, A> {
        let (attachment, end) = self.parts();
        Member { attachment, end }
    }
}

impl<'r, A: Attachment, const N: usize> WaitSet<'r, A, N> {
    const FITS: () = assert!(N > 0 && N <= WAIT_MAX, "a wait set has 1 to 60 members");

    /// A set of these receivers, which are named by their index from now on.
    pub fn new(members: [Member<'r, A>; N]) -> Self {
        let () = Self::FITS;
        let mut schedule = Schedule::new();
        for (index, member) in members.iter().enumerate() {
            let priority = Priority::new(member.end.priority()).unwrap_or(Priority::LEAST_URGENT);
            schedule.assign(index as u8, priority);
        }
        WaitSet { attachment: members[0].attachment, members: members.map(|member| member.end), schedule }
    }

    /// Waits until a member has a message, an event or a loss, and names it.
    ///
    /// It takes nothing: go on with `next(Wait::Poll)` of that receiver, which takes a message, or else an event
    /// ([`Error::Timeout`]) or a loss ([`Error::PeerGone`]). With `dequeue` alone, an event or a loss would be named again
    /// and again.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait(&mut self, wait: Wait) -> Result<usize, Error> {
        let deadline = wait.deadline(self.attachment);
        loop {
            for (index, member) in self.members.iter().enumerate() {
                let _ = match member.is_ready() {
                    true => self.schedule.ready(index as u8),
                    false => self.schedule.idle(index as u8),
                };
            }
            if let Some(index) = self.schedule.next() {
                return Ok(usize::from(index));
            }
            self.attachment.wait_any(&self.members, deadline)?;
        }
    }
}
