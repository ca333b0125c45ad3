//! What a test plays on: both participants, and the steps that most tests begin with.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_core::fifo::Received;

use crate::{Failure, PATIENCE_NS, Pair, Wrapper, ensure, have, plan};

/// Both participants, and the wrapper that lets them work.
pub struct Stage<'w, W: Wrapper> {
    wrapper: &'w mut W,
    /// The Master.
    pub master: W::Attachment,
    remote: Option<W::Attachment>,
}

type Sending<W> = <<W as Wrapper>::Attachment as Attachment>::Sending;
type Receiving<W> = <<W as Wrapper>::Attachment as Attachment>::Receiving;
type Segment<W> = <<W as Wrapper>::Attachment as Attachment>::Segment;

impl<'w, W: Wrapper> Stage<'w, W> {
    /// Fresh participants that know each other.
    pub fn open(wrapper: &'w mut W) -> Result<Self, Failure> {
        let Pair { master, remote } = wrapper.fresh();
        let end_ns = master.now_ns() + PATIENCE_NS;
        while master.attached(plan::REMOTE) != 1 || remote.attached(plan::MASTER) != 1 {
            ensure!(master.now_ns() < end_ns, "both participants know each other");
            wrapper.pause();
        }
        Ok(Stage { wrapper, master, remote: Some(remote) })
    }

    /// The Remote.
    pub fn remote(&self) -> Result<&W::Attachment, Failure> {
        Ok(have!(self.remote.as_ref().ok_or(()), "the Remote has not left"))
    }

    /// The Remote leaves.
    pub fn remote_leaves(&mut self) {
        self.remote = None;
    }

    /// Both ends of a channel, connected.
    pub fn channel(&mut self, fifo: u16) -> Result<(Sending<W>, Receiving<W>), Failure> {
        let (from, to) = match self.master.plan().fifos[usize::from(fifo)].from {
            plan::MASTER => (&self.master, self.remote()?),
            _ => (self.remote()?, &self.master),
        };
        let sending = have!(from.open_sending(fifo), "the sending end opens");
        let receiving = have!(to.open_receiving(fifo), "the receiving end opens");
        let connected = self.eventually(|| {
            // A receiver begins its session when it first looks.
            let _ = receiving.wait(Deadline::Poll);
            sending.usage().connected && receiving.usage().connected
        });
        ensure!(connected, "the ends find each other");
        // What connecting itself may have raised is not a test's event.
        while receiving.wait(Deadline::Poll).is_ok() {}
        Ok((sending, receiving))
    }

    /// The SMEM channel at both sides, ready.
    pub fn segment(&mut self) -> Result<(Segment<W>, Segment<W>), Failure> {
        let deadline = self.within(PATIENCE_NS);
        let master = have!(self.master.open_segment(plan::SHARED, deadline), "the Master opens the memory");
        let remote = have!(self.remote()?.open_segment(plan::SHARED, deadline), "the Remote opens the memory");
        for segment in [&master, &remote] {
            let ready = self.eventually(|| segment.try_lock().is_ok());
            ensure!(ready && segment.unlock().is_ok(), "the lock is ready");
        }
        Ok((master, remote))
    }

    /// Lets the port work until something holds; gives whether it came to hold.
    pub fn eventually(&mut self, mut holds: impl FnMut() -> bool) -> bool {
        let end_ns = self.now_ns() + PATIENCE_NS;
        loop {
            if holds() {
                return true;
            }
            if self.now_ns() > end_ns {
                return false;
            }
            self.wrapper.pause();
        }
    }

    /// The port's clock.
    pub fn now_ns(&self) -> u64 {
        self.master.now_ns()
    }

    /// The instant so long from now.
    pub fn within(&self, ns: u64) -> Deadline {
        Deadline::At(self.now_ns() + ns)
    }
}

/// Sends a message of these bytes and notifies.
pub fn send(end: &impl SendingEnd, bytes: &[u8]) -> Result<(), Failure> {
    enqueue(end, bytes)?;
    let _ = end.notify();
    Ok(())
}

/// Sends a message of these bytes and tells nobody.
pub fn enqueue(end: &impl SendingEnd, bytes: &[u8]) -> Result<(), Failure> {
    let mut loan = have!(end.allocate(Deadline::Poll), "a block is free");
    loan[..bytes.len()].copy_from_slice(bytes);
    ensure!(end.enqueue(loan, bytes.len() as u32).is_ok(), "the block is enqueued");
    Ok(())
}

/// Takes the next message, which must be these bytes, and frees it.
pub fn expect(end: &impl ReceivingEnd, bytes: &[u8]) -> Result<(), Failure> {
    let received = have!(end.dequeue(), "a message is queued");
    ensure!(holds(&received, bytes), "the message is the one that was sent");
    ensure!(end.free(received).is_ok(), "a block of this end is freed");
    Ok(())
}

/// Whether a message has exactly these bytes.
pub fn holds(received: &Received<'_>, bytes: &[u8]) -> bool {
    let byte = |offset: usize| {
        let mut byte = [0];
        (received.copy_to(offset as u32, &mut byte) == 1).then_some(byte[0])
    };
    received.len() as usize == bytes.len() && (0..bytes.len()).all(|offset| byte(offset) == Some(bytes[offset]))
}

/// Whether nothing is queued.
pub fn is_empty(end: &impl ReceivingEnd) -> bool {
    matches!(end.dequeue(), Err(Error::Empty))
}
