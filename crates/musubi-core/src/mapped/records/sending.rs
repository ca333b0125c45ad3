//! What a participant keeps of a FIFO channel that it sends: the core's sender, following its receiver through restarts.
//!
//! What you may rely on: what a gone receiver had not dequeued goes to its successor or is counted as dropped, once, as
//! the plan says; a loss stays noted until somebody is told of it.
//!
//! How it works: each operation that would have to wait, and each beat, compares the receiver's root with the
//! incarnation that the session is with ([`SendingState::follow`]), one change a look.

use crate::error::Error;
use crate::fifo::session::{end_link, publish_link, reached};
use crate::fifo::{Entry, Ring, Sender};
use crate::layout::{Part, rx, tx};
use crate::mapped::Host;
use crate::mapped::latch::Latch;
use crate::mapped::surroundings::{Care, Fate, Surroundings};
use crate::mapped::wake::WakerPlace;
use crate::plan::{Fifo, OnRestart};
use crate::port::Doorbell;
use crate::sync::{AtomicU32, Ordering, Site};
use crate::words::{OwnWords, PeerWords};

/// A sending end of the plan, open or not.
#[derive(Debug)]
pub(in crate::mapped) struct SendingRecord<'m, B: Host> {
    pub fifo: u16,
    pub waker: WakerPlace,
    pub state: Latch<SendingState<'m, B>>,
    /// 1 while there is a handle.
    pub handle: AtomicU32,
}

/// What an end knows and owns; it stays while no handle is open.
#[derive(Debug)]
pub(in crate::mapped) struct SendingState<'m, B: Host> {
    pub core: Sender<'m, &'m mut [Entry], Care<'m, B>>,
    words: OwnWords<'m>,
    channel: &'m Fifo<'m>,
    fifo: u16,
    pub link: Option<Link<'m>>,
    /// Where the present session began or the next one begins.
    start: u32,
    pub loss: bool,
    pub bits: u32,
    is_open: bool,
}

/// The receiver of the present session.
#[derive(Clone, Copy, Debug)]
pub(in crate::mapped) struct Link<'m> {
    participant: u16,
    epoch: u32,
    words: PeerWords<'m>,
    pub stalled: bool,
}

impl<'m, B: Host> SendingRecord<'m, B> {
    /// The end of a channel on fresh words.
    pub fn new(
        (fifo, channel): (u16, &'m Fifo<'m>),
        words: [OwnWords<'m>; 2],
        me: (u16, u32),
        entries: &'m mut [Entry],
        host: &'m B,
    ) -> Result<Self, Error> {
        let [words, of_core] = words;
        let core = Sender::new(of_core, channel, me, entries, Care(host))?;
        let state =
            SendingState { core, words, channel, fifo, link: None, start: 0, loss: false, bits: 0, is_open: false };
        Ok(SendingRecord { fifo, waker: WakerPlace::new(), state: Latch::new(state), handle: AtomicU32::new(0) })
    }

    /// The participant leaves.
    pub fn close(&self, host: &B) {
        let mut state = self.state.lock(host);
        // A beat that is under way links with nobody any more.
        state.is_open = false;
        state.words.set(tx::OPEN, 0);
        drop(state);
        drop(self.waker.take());
    }
}

impl<'m, B: Host> SendingState<'m, B> {
    /// Opens the end for us alone, unless a former handle has left it open.
    pub fn open(&mut self, here: &Surroundings<'m, B>) -> Result<(), Error> {
        if !self.is_open {
            here.claim(&self.words, Part::Tx(self.fifo), tx::OPEN)?;
            self.is_open = true;
        }
        Ok(())
    }

    /// The periodic work; gives whether anything changed.
    pub fn beat(&mut self, here: &Surroundings<'m, B>) -> bool {
        let changed = self.follow(here);
        if self.is_open {
            let bell = here.doorbell(self.receiver());
            self.core.raise_if_due(here, &bell);
        }
        changed
    }

    /// Takes note of a receiver that came or went; gives whether one did.
    pub fn follow(&mut self, here: &Surroundings<'m, B>) -> bool {
        if !self.is_open {
            return false;
        }
        let mut changed = false;
        if let Some(link) = &mut self.link {
            match here.fate(link.participant, link.epoch) {
                Fate::Attached => {
                    let stalled = here.is_stalled(link.participant, link.epoch);
                    let newly = stalled && !link.stalled;
                    link.stalled = stalled;
                    self.loss |= newly;
                    return newly;
                }
                Fate::Gone { .. } => self.end_session(here),
            }
            changed = true;
        }
        self.begin_session(here) || changed
    }

    #[cold]
    fn end_session(&mut self, here: &Surroundings<'m, B>) {
        let Some(link) = self.link.take() else { return };
        // A last look: an event that it raised before it went is not lost with it.
        self.core.poll();
        let reached = reached(link.words, here.identity());
        // In this order: a successor in the same bank says that it is not the former's any more before it changes it.
        let (taken, rule) = match here.fate(link.participant, link.epoch) {
            Fate::Gone { intact: false } => (self.start, OnRestart::Drop),
            _ => (reached.unwrap_or(self.start), self.channel.on_restart),
        };
        let ring = Ring::new(self.channel.blocks);
        self.start = end_link(&self.words, None, ring, here.identity(), taken, rule);
        self.core.set_receiver(None, self.start);
        here.end_use(link.participant, link.epoch);
        self.loss |= !link.stalled;
    }

    /// Opens a session with a participant that has the other end open, if there is one.
    #[cold]
    fn begin_session(&mut self, here: &Surroundings<'m, B>) -> bool {
        for participant in here.participants_of(self.channel.to) {
            let Some((epoch, words)) = self.offer(here, participant) else { continue };
            if here.use_present(participant, epoch) {
                publish_link(&self.words, participant, epoch, self.start);
                self.core.set_receiver(Some(words), self.start);
                self.link = Some(Link { participant, epoch, words, stalled: false });
                // It may have gone to sleep before it could see the session.
                here.doorbell(participant).ring(self.words.word(tx::BELL), 0);
                return true;
            }
        }
        false
    }

    /// The epoch and receiving end of a participant that is attached and has the end open.
    fn offer(&self, here: &Surroundings<'m, B>, participant: u16) -> Option<(u32, PeerWords<'m>)> {
        let epoch = here.peer(participant)?.known.load(Ordering::SeqCst);
        let attached = epoch != 0 && here.fate(participant, epoch) == Fate::Attached;
        let words = attached.then(|| here.part_of(participant, epoch, Part::Rx(self.fifo)))??;
        (words.see(rx::OPEN, Site::SeeRoot) == 1).then_some((epoch, words))
    }

    pub fn receiver(&self) -> u16 {
        self.link.map_or(0, |link| link.participant)
    }

    pub fn set_bits(&mut self, bits: u32) {
        if bits & !self.bits == 0 {
            self.core.withdraw_wait(bits);
        } else {
            self.core.announce_wait(bits);
        }
        self.bits = bits;
    }
}
