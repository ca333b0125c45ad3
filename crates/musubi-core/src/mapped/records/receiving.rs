//! What a participant keeps of a FIFO channel that it receives: the core's receivers, one an incarnation of the sender.
//!
//! What you may rely on: messages that a gone sender had committed come before those of its successor, each once; a loss
//! stays noted until somebody is told of it.
//!
//! How it works: the front incarnation is read. When its sender is gone it is drained, then the next is taken: the predecessor
//! in a participant's other bank, if that had a session with us which we have not drained, else the present incarnation.
//! An incarnation that was left while the program holds blocks of it stays, and with it the use of that bank.

use crate::error::Error;
use crate::fifo::{Received, Receiver};
use crate::layout::{Part, rx, tx};
use crate::mapped::latch::Latch;
use crate::mapped::surroundings::{Care, Fate, Surroundings, next_epoch};
use crate::mapped::wake::WakerPlace;
use crate::mapped::{Host, handshake};
use crate::plan::{Fifo, Trust};
use crate::sync::{AtomicU32, Ordering, Site};
use crate::words::{OwnWords, PeerWords};

/// Incarnations of senders that an end keeps: the one it reads, and those of which the program holds blocks.
pub(in crate::mapped) const INCARNATIONS: usize = 3;

/// A receiving end of the plan, open or not.
#[derive(Debug)]
pub(in crate::mapped) struct ReceivingRecord<'m, B: Host> {
    pub fifo: u16,
    pub waker: WakerPlace,
    pub state: Latch<ReceivingState<'m, B>>,
    /// 1 while there is a handle.
    pub handle: AtomicU32,
}

/// One incarnation of a sender.
#[derive(Debug)]
pub(in crate::mapped) struct Incarnation<'m, B: Host> {
    pub core: Receiver<'m, &'m mut [u32], Care<'m, B>>,
    pub participant: u16,
    epoch: u32,
    pub retired: bool,
    pub stalled: bool,
}

/// What an end knows and owns; it stays while no handle is open.
#[derive(Debug)]
pub(in crate::mapped) struct ReceivingState<'m, B: Host> {
    words: OwnWords<'m>,
    pub channel: &'m Fifo<'m>,
    fifo: u16,
    trust: Trust,
    pub incarnations: [Option<Incarnation<'m, B>>; INCARNATIONS],
    /// Which incarnation is read.
    pub front: Option<usize>,
    /// Storage of incarnations that are free.
    spare: [Option<&'m mut [u32]>; INCARNATIONS],
    /// For each participant of the sending domain: the epoch of the incarnation that was left last.
    done: &'m mut [u32],
    /// Whether a predecessor could not be taken because somebody else had the watch; so nothing is to be released yet.
    is_postponed: bool,
    pub loss: bool,
    pub bits: u32,
    is_open: bool,
}

impl<'m, B: Host> ReceivingRecord<'m, B> {
    /// The end of a channel on fresh words. `held` has [`Receiver::held_words`] words for each incarnation, `done` one for each
    /// participant of the sending domain, which `trust` is about.
    pub fn new(
        (fifo, channel): (u16, &'m Fifo<'m>),
        words: OwnWords<'m>,
        trust: Trust,
        held: [&'m mut [u32]; INCARNATIONS],
        done: &'m mut [u32],
    ) -> Self {
        let state = ReceivingState {
            words,
            channel,
            fifo,
            trust,
            incarnations: [const { None }; INCARNATIONS],
            front: None,
            spare: held.map(Some),
            done,
            is_postponed: false,
            loss: false,
            bits: 0,
            is_open: false,
        };
        ReceivingRecord { fifo, waker: WakerPlace::new(), state: Latch::new(state), handle: AtomicU32::new(0) }
    }

    /// The participant leaves.
    pub fn close(&self, host: &B) {
        let mut state = self.state.lock(host);
        // A beat that is under way links with nobody any more.
        state.is_open = false;
        state.words.set(rx::OPEN, 0);
        drop(state);
        drop(self.waker.take());
    }
}

impl<'m, B: Host> ReceivingState<'m, B> {
    /// Opens the end for us alone, unless a former handle has left it open.
    pub fn open(&mut self, here: &Surroundings<'m, B>) -> Result<(), Error> {
        if !self.is_open {
            here.claim(&self.words, Part::Rx(self.fifo), rx::OPEN)?;
            self.is_open = true;
        }
        Ok(())
    }

    pub fn front(&mut self) -> Option<&mut Incarnation<'m, B>> {
        self.incarnations.get_mut(self.front?)?.as_mut()
    }

    /// Takes note of a sender that came or went; gives whether one did.
    pub fn follow(&mut self, here: &Surroundings<'m, B>) -> bool {
        if !self.is_open {
            return false;
        }
        let changed = self.front.is_some() && self.follow_front(here);
        if self.front.is_none() { self.take_next(here) || changed } else { changed }
    }

    /// Whether [`ReceivingState::follow`] has to come again before a predecessor may be released.
    pub fn is_postponed(&self) -> bool {
        self.is_postponed
    }

    /// [`ReceivingState::follow`] by a thread, which also takes note of peers if there is no sender that beats.
    pub fn look(&mut self, here: &Surroundings<'m, B>) -> bool {
        let changed = self.follow(here);
        if self.front().is_some_and(|front| !front.stalled) {
            return changed;
        }
        here.note_peers();
        self.follow(here) || changed
    }

    fn follow_front(&mut self, here: &Surroundings<'m, B>) -> bool {
        let Some(incarnation) = self.front() else { return false };
        match here.fate(incarnation.participant, incarnation.epoch) {
            Fate::Attached => {
                let stalled = here.is_stalled(incarnation.participant, incarnation.epoch);
                let newly = stalled && !incarnation.stalled;
                incarnation.stalled = stalled;
                self.loss |= newly;
                newly
            }
            Fate::Gone { intact } => {
                let newly = !incarnation.retired;
                if newly {
                    incarnation.retired = true;
                    incarnation.core.retire();
                }
                let leaves = !intact || incarnation.core.is_drained();
                if leaves {
                    self.leave_front(here);
                }
                newly || leaves
            }
        }
    }

    /// Leaves a sender that is gone and drained, or whose memory was taken by a successor.
    #[cold]
    fn leave_front(&mut self, here: &Surroundings<'m, B>) {
        let Some(index) = self.front.take() else { return };
        let Some(incarnation) = &self.incarnations[index] else { return };
        self.loss |= !incarnation.stalled;
        let first = here.plan.first_participant(self.channel.from);
        if let Some(done) = self.done.get_mut(usize::from(incarnation.participant - first)) {
            *done = incarnation.epoch;
        }
        self.give_up(index, here);
    }

    /// Frees an incarnation that is not the front one, once the program holds nothing of it.
    pub fn give_up(&mut self, index: usize, here: &Surroundings<'m, B>) {
        let is_over = |incarnation: &mut Incarnation<'m, B>| incarnation.core.held() == 0;
        if let Some(incarnation) = self.incarnations[index].take_if(is_over) {
            here.end_use(incarnation.participant, incarnation.epoch);
            self.spare[index] = Some(incarnation.core.into_held());
        }
    }

    /// Takes the next sender, if there is one.
    #[cold]
    fn take_next(&mut self, here: &Surroundings<'m, B>) -> bool {
        self.is_postponed = false;
        let Some(index) = self.incarnations.iter().position(Option::is_none) else { return false };
        for (done, participant) in here.participants_of(self.channel.from).enumerate() {
            let Some(present) = here.peer(participant).map(|peer| peer.known.load(Ordering::SeqCst)) else {
                continue;
            };
            let done = self.done.get(done).copied().unwrap_or(0);
            let Ok(former) = self.predecessor(here, participant, present, done) else {
                // Its messages come first, so its successor has to wait for the next look.
                self.is_postponed = true;
                return false;
            };
            let next = former.or_else(|| self.present(here, participant, present, done));
            if let Some((epoch, words)) = next {
                self.take_incarnation(index, here, (participant, epoch), words);
                return self.front.is_some();
            }
        }
        false
    }

    /// A sender that was gone before we could take it, if it had a session with us; an error if that cannot be told now.
    fn predecessor(
        &self,
        here: &Surroundings<'m, B>,
        participant: u16,
        present: u32,
        done: u32,
    ) -> Result<Option<(u32, PeerWords<'m>)>, Error> {
        let epoch = here.section_of(participant, present ^ 1).map_or(0, handshake::signed);
        let is_next = present != 0 && epoch != 0 && next_epoch(epoch) == present && epoch != done;
        let words = is_next.then(|| here.part_of(participant, epoch, Part::Tx(self.fifo))).flatten();
        let Some(words) = words.filter(|words| is_linked(*words, here.identity())) else { return Ok(None) };
        Ok(here.use_predecessor(participant, epoch, present)?.then_some((epoch, words)))
    }

    /// The sender that the participant's root names, if it has the end open, or has left with messages for us.
    fn present(
        &self,
        here: &Surroundings<'m, B>,
        participant: u16,
        epoch: u32,
        done: u32,
    ) -> Option<(u32, PeerWords<'m>)> {
        if epoch == 0 || epoch == done {
            return None;
        }
        let words = here.part_of(participant, epoch, Part::Tx(self.fifo))?;
        let is_wanted = match here.fate(participant, epoch) {
            Fate::Attached => words.see(tx::OPEN, Site::SeeRoot) == 1,
            Fate::Gone { .. } => is_linked(words, here.identity()),
        };
        (is_wanted && here.use_present(participant, epoch)).then_some((epoch, words))
    }

    fn take_incarnation(&mut self, index: usize, here: &Surroundings<'m, B>, sender: (u16, u32), words: PeerWords<'m>) {
        let own = here.own_part(Part::Rx(self.fifo));
        let (Some(own), Some(held)) = (own, self.spare[index].take()) else {
            return here.end_use(sender.0, sender.1);
        };
        held.fill(0);
        let (me, care) = (here.identity(), Care(here.host));
        // The sizes were checked when the end was made; a plan that lies about them is refused here again.
        let Ok(mut core) = Receiver::new(own, words, self.channel, me, sender, self.trust, held, care) else {
            return here.end_use(sender.0, sender.1);
        };
        if self.bits != 0 {
            core.announce_wait(self.bits);
        }
        let incarnation = Incarnation { core, participant: sender.0, epoch: sender.1, retired: false, stalled: false };
        self.incarnations[index] = Some(incarnation);
        self.front = Some(index);
    }

    pub fn ready(&mut self, here: &Surroundings<'m, B>) -> bool {
        if self.front().is_some_and(|front| front.core.ready()) {
            return true;
        }
        // Once for the sender that is gone, once for its successor.
        (0..2).any(|_| self.look(here) && self.front().is_some_and(|front| front.core.ready()))
    }

    /// [`ReceivingState::ready`] as the end of a wait, which takes an event.
    pub fn take_ready(&mut self, here: &Surroundings<'m, B>) -> Option<()> {
        let ready = self.ready(here);
        if let Some(front) = self.front() {
            front.core.take_event();
        }
        ready.then_some(())
    }

    pub fn dequeue(&mut self, here: &Surroundings<'m, B>) -> Result<Received<'m>, Error> {
        for _ in 0..=INCARNATIONS {
            if let Some(front) = self.front() {
                let bell = here.doorbell(front.participant);
                match front.core.dequeue(here, &bell) {
                    Err(Error::Empty) => (),
                    other => return other,
                }
            }
            if !self.look(here) {
                break;
            }
        }
        Err(Error::Empty)
    }

    pub fn free<'r>(&mut self, here: &Surroundings<'m, B>, mut received: Received<'r>) -> Result<(), Received<'r>> {
        for index in 0..INCARNATIONS {
            let Some(incarnation) = &mut self.incarnations[index] else { continue };
            let bell = here.doorbell(incarnation.participant);
            match incarnation.core.free(received, &bell) {
                Err(other) => received = other,
                Ok(()) => {
                    if self.front != Some(index) {
                        self.give_up(index, here);
                    }
                    return Ok(());
                }
            }
        }
        Err(received)
    }

    pub fn set_bits(&mut self, bits: u32) {
        let announces = bits & !self.bits != 0;
        self.bits = bits;
        match self.front() {
            Some(front) if announces => {
                front.core.announce_wait(bits);
            }
            _ => self.words.set(rx::WAITING, bits),
        }
    }
}

/// Whether a sender has opened its session for us.
fn is_linked(tx: PeerWords<'_>, (participant, epoch): (u16, u32)) -> bool {
    tx.see(tx::LINK_EPOCH, Site::SeeLink) == epoch && tx.get(tx::LINK_PARTICIPANT) == u32::from(participant)
}
