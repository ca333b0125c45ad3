//! Turns of the VIs of one class that have something to say to one other node and found no room: weighted deficit round robin.
//!
//! What you may rely on: while VIs of a class wait, each gets, of what the class may send to that node, a share by its weight:
//! what one that waits all the time has sent is within one quantum, times its weight, of what it is due, so two differ by less than two.
//! More urgent classes go first. Nobody of the class overtakes those who wait. Where none waits, nothing of this costs anything.
//!
//! How it works: a message's part costs its bytes and [`PART_COST`]. In its turn a VI may spend a quantum (the cost of one
//! piece) times its weight, and what it had left; so a VI of weight 1 whose messages are large sends one piece a turn. Who has
//! nothing more to say leaves and saves nothing. A turn that is cut short by a full link goes on when there is room.
//!
//! What it does not do: share between VIs of this NIC itself, which take turns of what the queue between them holds.

use alloc::collections::VecDeque;

use musubi_transport::links::{Block, Links};

use super::carriage::{CLASSES, ViWire};
use super::frames::Edge;
use super::{NicState, ViNumber};
use crate::error::ViError;

/// What a part of a message costs besides its bytes: about what handling it costs, in bytes that could be copied meanwhile.
pub(super) const PART_COST: u32 = 512;

/// A VI's share beside the others of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(u8);

impl Weight {
    /// What VIs have that do not say.
    pub const DEFAULT: Weight = Weight(1);

    /// So many parts; `None` of 0.
    pub const fn new(weight: u8) -> Option<Weight> {
        if weight == 0 { None } else { Some(Weight(weight)) }
    }
}

/// How a turn goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It has not begun.
    Waits,
    /// It goes on.
    Begun,
    /// What is left does not pay for the next part.
    Spent,
    /// There is no room.
    Blocked,
}

/// The turn of the VI in a place.
#[derive(Debug)]
pub(super) struct Turn {
    place: u16,
    /// What it may still spend.
    saved: u32,
    course: Course,
}

impl Turn {
    fn begin(&mut self, quantum: u32) {
        if self.course == Course::Waits {
            self.saved = self.saved.saturating_add(quantum);
        }
        self.course = Course::Begun;
    }

    /// Whose it was waits no more.
    fn leave(&mut self) {
        self.course = Course::Begun;
    }

    /// Whether a part of so many bytes may go.
    pub(super) fn affords(&mut self, bytes: u32) -> bool {
        let affords = self.saved >= bytes.saturating_add(PART_COST);
        if !affords {
            self.course = Course::Spent;
        }
        affords
    }

    /// It has gone.
    pub(super) fn pay(&mut self, bytes: u32) {
        self.saved = self.saved.saturating_sub(bytes.saturating_add(PART_COST));
    }

    /// There is no room.
    pub(super) fn block(&mut self) {
        self.course = Course::Blocked;
    }
}

/// VIs that wait for one node, by class.
#[derive(Debug)]
pub(super) struct Turns {
    /// Classes of which some wait, a bit each.
    pub(super) waiting: u8,
    of: [VecDeque<Turn>; CLASSES],
}

const _: () = assert!(CLASSES <= u8::BITS as usize);

impl Default for Turns {
    fn default() -> Turns {
        Turns { waiting: 0, of: core::array::from_fn(|_| VecDeque::new()) }
    }
}

impl Turns {
    /// A VI waits, if it does not already.
    pub(super) fn join(&mut self, class: usize, place: u16) {
        let turns = &mut self.of[class];
        if !turns.iter().any(|turn| turn.place == place) {
            turns.push_back(Turn { place, saved: 0, course: Course::Waits });
        }
        self.waiting |= 1 << class;
    }

    /// Whose turn it is; it stays counted as waiting until [`Turns::end`].
    fn next(&mut self, class: usize) -> Option<Turn> {
        self.of[class].pop_front()
    }

    /// A turn is over, or cut short; whether the next may begin.
    fn end(&mut self, class: usize, mut turn: Turn) -> bool {
        match turn.course {
            Course::Blocked => {
                self.of[class].push_front(turn);
                return false;
            }
            Course::Spent => {
                turn.course = Course::Waits;
                self.of[class].push_back(turn);
            }
            Course::Waits | Course::Begun => {
                if self.of[class].is_empty() {
                    self.waiting &= !(1 << class);
                }
            }
        }
        true
    }
}

impl<B: Block> NicState<B> {
    /// Sets what a VI gets beside others of its class, from its next turn on.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI.
    pub fn set_weight(&mut self, vi: ViNumber, weight: Weight) -> Result<(), ViError> {
        self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?.weight = weight;
        Ok(())
    }

    /// Lets those speak who waited for room with a peer, the most urgent class first.
    pub(super) fn room(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        if self.carriage.empty_outbox(peer, links) {
            (0..CLASSES).for_each(|class| self.serve(peer, class, links));
        }
    }

    /// Lets those of one class speak in turn, until there is no room or nothing left.
    pub(super) fn serve(&mut self, peer: u16, class: usize, links: &mut impl Links<Block = B>) {
        while let Some(mut turn) = self.carriage.peer(peer).turns.next(class) {
            self.take_turn(peer, class, &mut turn, links);
            if !self.carriage.peer(peer).turns.end(class, turn) {
                return;
            }
        }
    }

    fn take_turn(&mut self, peer: u16, class: usize, turn: &mut Turn, links: &mut impl Links<Block = B>) {
        let place = turn.place;
        let quantum = self.carriage.piece_bytes_max.saturating_add(PART_COST);
        let Some((_, entry)) = self.vis.at_place_mut(place) else { return turn.leave() };
        let is_here = |connection: &&mut super::Connection| {
            connection.peer == peer && usize::from(connection.class.class()) == class
        };
        // Who waited here may be connected elsewhere by now.
        let Some(connection) = entry.connection.as_mut().filter(is_here) else { return turn.leave() };
        turn.begin(quantum.saturating_mul(u32::from(entry.weight.0)));
        let (carriage, memory) = (&mut self.carriage, &self.memory);
        let pace = entry.pace.as_deref_mut().map(|pace| (pace, self.now_ns));
        let is_alone = entry.vi.has_one_send();
        let mut wire = ViWire { carriage, links, memory, connection, pace, place, is_alone, turn: Some(turn) };
        entry.vi.pump(&self.protection, &mut wire, &mut Edge::<B>::of(memory));
        self.settle(place);
        self.note_pace(place);
    }
}
