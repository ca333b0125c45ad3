//! What a NIC counts of each class, and the picture of it that tools ask for.
//!
//! What you may rely on: counts only grow while the NIC is open, and cost the data path nothing: what no VI asked for is not counted,
//! and descriptors are numbered anyway. A picture is at most [`PICTURE_BYTES_MAX`] bytes; nothing in one can make its reader panic or
//! take more memory than that; a reader passes over records that it does not know, and takes fields that are not there for 0.
//!
//! How it works: little-endian. A version (u32, [`VERSION`]), then records: kind (u8: 1 the NIC, 2 a class), 0 (u8), length of the
//! rest (u16), and fields of 8 bytes in the order of [`NicPicture`] and [`ClassPicture`].
//!
//! What it does not do: say anything of single VIs or of peers.

use alloc::vec::Vec;

use musubi_transport::links::{Block, Links};
use musubi_transport::notifier::WakeCounts;
use musubi_transport::{NodeId, Priority};

use super::frames::Came;
use super::pacing::Pace;
use super::{NicState, ViEntry};
use crate::engine::ViState;
use crate::wire::{NicFrame, ViName};

/// Questions and pictures are of no connection.
const NOBODY: (ViName, ViName) = (ViName(0), ViName(0));
/// Version of the picture.
const VERSION: u32 = 1;
/// Most bytes of one.
pub const PICTURE_BYTES_MAX: usize = crate::wire::PICTURE_BYTES_MAX;
const NIC: u8 = 1;
const CLASS: u8 = 2;
/// Fields of a record of each kind.
const NIC_FIELDS: usize = 10;
const CLASS_FIELDS: usize = 23;

const _: () = assert!(4 + 4 + 8 * NIC_FIELDS + Priority::COUNT * (4 + 8 * CLASS_FIELDS) <= PICTURE_BYTES_MAX);

/// What became of the completions of the VIs of one class, and of what they asked for. All since the NIC was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Of VIs with a notification policy, here and in the next three: wake-ups that their completions asked for.
    pub asked: u64,
    /// Of those, how many came at once.
    pub raised: u64,
    /// Wake-ups that came later, each for all completions until then.
    pub deferred: u64,
    /// The longest that one was put off, nanoseconds.
    pub longest_deferral_ns: u64,
    /// Of VIs with a budget: completions that the program has taken.
    pub timed: u64,
    /// Of those, how many it took later than the budget allows.
    pub over_budget: u64,
    /// The longest that one lay, nanoseconds.
    pub longest_ns: u64,
    /// Descriptors that rates have held back.
    pub held: u64,
    /// How long they waited together, nanoseconds.
    pub held_ns: u64,
    /// Completions that a handler of the program was called for.
    pub handled: u64,
    /// What these calls took together, nanoseconds.
    pub handled_ns: u64,
    /// Descriptors that were posted.
    pub posted: u64,
    /// Descriptors that completed.
    pub completed: u64,
    /// Of those, how many completed because their connection ended.
    pub flushed: u64,
    /// Messages, writes and reads that waited until their target had granted more of the class.
    pub uncredited: u64,
    /// Bytes of these.
    pub uncredited_bytes: u64,
    /// Messages of other nodes that came beyond what this one had granted: each ended its connection.
    pub beyond: u64,
}

impl ClassCounts {
    /// Completions for which nobody was woken, or not yet: another wake-up was theirs, too.
    pub fn suppressed(&self) -> u64 {
        self.asked.saturating_sub(self.raised.saturating_add(self.deferred))
    }

    /// What the rates of a VI that are no more have held back.
    pub(super) fn add_pace(&mut self, pace: Option<&Pace>) {
        let [held, held_ns] = pace.map_or([0, 0], Pace::totals);
        self.held += held;
        self.held_ns += held_ns;
    }

    fn add_vi(&mut self, entry: &ViEntry) {
        self.add_pace(entry.pace.as_deref());
        let [posted, completed, flushed] = entry.vi.totals();
        self.posted += posted;
        self.completed += completed;
        self.flushed += flushed;
    }

    fn fields(&self) -> [u64; 17] {
        let ClassCounts { asked, raised, deferred, longest_deferral_ns, timed, over_budget, longest_ns, .. } = *self;
        let ClassCounts { held, held_ns, handled, handled_ns, posted, completed, flushed, .. } = *self;
        let ClassCounts { uncredited, uncredited_bytes, beyond, .. } = *self;
        [
            asked,
            raised,
            deferred,
            longest_deferral_ns,
            timed,
            over_budget,
            longest_ns,
            held,
            held_ns,
            handled,
            handled_ns,
            posted,
            completed,
            flushed,
            uncredited,
            uncredited_bytes,
            beyond,
        ]
    }

    fn of_fields(of: &mut impl FnMut() -> u64) -> ClassCounts {
        ClassCounts {
            asked: of(),
            raised: of(),
            deferred: of(),
            longest_deferral_ns: of(),
            timed: of(),
            over_budget: of(),
            longest_ns: of(),
            held: of(),
            held_ns: of(),
            handled: of(),
            handled_ns: of(),
            posted: of(),
            completed: of(),
            flushed: of(),
            uncredited: of(),
            uncredited_bytes: of(),
            beyond: of(),
        }
    }
}

/// One class of a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassPicture {
    /// Which.
    pub class: u64,
    /// VIs of it that there are.
    pub vis: u64,
    /// What became of the wake-ups that its frames asked for, by the rule of the class; zeros where it has none.
    pub by_rule: WakeCounts,
    /// What its VIs asked for and did.
    pub counts: ClassCounts,
}

/// An opened NIC, as its process describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NicPicture {
    /// VIs that there are.
    pub vis: u64,
    /// Of those, how many are connected.
    pub connected: u64,
    /// Are to be connected.
    pub pending: u64,
    /// Have lost their connection and were not disconnected.
    pub in_error: u64,
    /// Completion queues.
    pub queues: u64,
    /// Connections that were made, since the NIC was opened as the following.
    pub connections: u64,
    /// Connections that were lost: by an error, or because the other side ended them.
    pub lost: u64,
    /// Frames of peers that were against the rules.
    pub refused: u64,
    /// Times that threads of the program which slept in a call were woken to look again; 0 where nobody counts.
    pub woken: u64,
    /// Errors for the handler that were lost because it did not ask.
    pub errors_lost: u64,
    /// Classes, by number.
    pub classes: Vec<ClassPicture>,
}

impl NicPicture {
    /// The bytes of a picture.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        let nic: [u64; NIC_FIELDS] = [
            self.vis,
            self.connected,
            self.pending,
            self.in_error,
            self.queues,
            self.connections,
            self.lost,
            self.refused,
            self.woken,
            self.errors_lost,
        ];
        put_record(&mut bytes, NIC, &nic);
        for ClassPicture { class, vis, by_rule, counts } in &self.classes {
            let rule = [by_rule.frames, by_rule.raised, by_rule.deferred, by_rule.longest_deferral_ns];
            let mut fields = [0; CLASS_FIELDS];
            let all = [*class, *vis].into_iter().chain(rule).chain(counts.fields());
            fields.iter_mut().zip(all).for_each(|(field, value)| *field = value);
            put_record(&mut bytes, CLASS, &fields);
        }
        bytes
    }

    /// The picture that these bytes are; `None` if they are none, or of another version.
    pub fn decode(bytes: &[u8]) -> Option<NicPicture> {
        let (version, mut rest) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || bytes.len() > PICTURE_BYTES_MAX {
            return None;
        }
        let (mut picture, mut has_nic) = (NicPicture::default(), false);
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let (mut fields, after) = after.split_at_checked(usize::from(u16::from_le_bytes([head[2], head[3]])))?;
            rest = after;
            let mut next = || {
                let (field, left) = fields.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
                fields = left;
                u64::from_le_bytes(*field)
            };
            match head[0] {
                NIC => {
                    picture.read(&mut next);
                    has_nic = true;
                }
                CLASS if picture.classes.len() < Priority::COUNT => {
                    picture.classes.push(ClassPicture::of_fields(&mut next));
                }
                _ => {}
            }
        }
        (has_nic && rest.is_empty()).then_some(picture)
    }

    fn read(&mut self, of: &mut impl FnMut() -> u64) {
        self.vis = of();
        self.connected = of();
        self.pending = of();
        self.in_error = of();
        self.queues = of();
        self.connections = of();
        self.lost = of();
        self.refused = of();
        self.woken = of();
        self.errors_lost = of();
    }
}

impl ClassPicture {
    fn of_fields(of: &mut impl FnMut() -> u64) -> ClassPicture {
        let (class, vis) = (of(), of());
        let by_rule = WakeCounts { frames: of(), raised: of(), deferred: of(), longest_deferral_ns: of() };
        ClassPicture { class, vis, by_rule, counts: ClassCounts::of_fields(of) }
    }
}

fn put_record(bytes: &mut Vec<u8>, kind: u8, fields: &[u64]) {
    bytes.extend_from_slice(&[kind, 0]);
    bytes.extend_from_slice(&(fields.len() as u16 * 8).to_le_bytes());
    fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
}

/// Nodes that this one has asked for their pictures, and what they said.
#[derive(Debug, Default)]
pub(super) struct Asked {
    of: Vec<(NodeId, Option<NicPicture>)>,
}

impl<B: Block> NicState<B> {
    /// What is counted of a class; nothing of one that is none.
    pub fn class_counts(&self, class: u8) -> ClassCounts {
        let mut counts = self.counts.get(usize::from(class)).copied().unwrap_or_default();
        let of_class = self.vis.iter().filter(|(_, entry)| entry.vi.attributes().class == class);
        of_class.for_each(|(_, entry)| counts.add_vi(entry));
        for peer in &self.carriage.peers {
            let (messages, bytes) = peer.grants.held.get(usize::from(class)).copied().unwrap_or_default();
            counts.uncredited += messages;
            counts.uncredited_bytes += bytes;
        }
        counts.beyond = self.intake.beyond(usize::from(class));
        counts
    }

    /// The picture of this NIC.
    pub fn picture(&self, links: &impl Links<Block = B>) -> NicPicture {
        let count = |state: ViState| self.vis.iter().filter(|(_, entry)| entry.vi.state() == state).count() as u64;
        let by_rule = links.class_wakes();
        let class = |class: Priority| {
            let rule =
                by_rule.iter().find(|(of, _)| *of == class).map_or_else(WakeCounts::default, |(_, counts)| *counts);
            let number = class.class();
            let vis = self.vis.iter().filter(|(_, entry)| entry.vi.attributes().class == number).count() as u64;
            ClassPicture { class: u64::from(number), vis, by_rule: rule, counts: self.class_counts(number) }
        };
        NicPicture {
            vis: self.vis.iter().count() as u64,
            connected: count(ViState::Connected),
            pending: count(ViState::ConnectPending),
            in_error: count(ViState::Error),
            queues: self.queues.iter().count() as u64,
            connections: self.connections,
            lost: self.lost,
            refused: self.refused,
            woken: links.wakes().map_or(0, |wakes| wakes.woken),
            errors_lost: self.news_lost,
            classes: (0..Priority::COUNT as u8).filter_map(Priority::new).map(class).collect(),
        }
    }

    /// A handler was called for a completion of this VI, and took so long, nanoseconds.
    pub fn note_handled(&mut self, vi: super::ViNumber, took_ns: u64) {
        let class = self.vis.get(vi.0).map(|entry| usize::from(entry.vi.attributes().class));
        if let Some(counts) = class.and_then(|class| self.counts.get_mut(class)) {
            counts.handled += 1;
            counts.handled_ns += took_ns;
        }
    }

    /// A VI is no more: what it did stays counted.
    pub(super) fn count_gone(&mut self, entry: &ViEntry) {
        if let Some(counts) = self.counts.get_mut(usize::from(entry.vi.attributes().class)) {
            counts.add_vi(entry);
        }
    }

    // ---- asking others ----

    /// Asks a node for its picture, once there is a link with it.
    pub fn ask_picture(&mut self, node: NodeId, links: &mut impl Links<Block = B>) {
        self.asked.of.retain(|(asked, _)| *asked != node);
        self.asked.of.push((node, None));
        let peer = self.carriage.enter(node);
        if self.carriage.peer(peer).is_linked {
            self.ask_if_asked(peer, links);
        } else {
            self.want(peer, links);
        }
    }

    /// The picture that a node gave since it was last asked.
    pub fn take_picture(&mut self, node: NodeId) -> Option<NicPicture> {
        let place = self.asked.of.iter().position(|(asked, picture)| *asked == node && picture.is_some())?;
        self.asked.of.swap_remove(place).1
    }

    /// There is a link with a node now, which may have been asked before.
    pub(super) fn ask_if_asked(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let node = self.carriage.peer(peer).node;
        if self.asked.of.iter().any(|(asked, picture)| *asked == node && picture.is_none()) {
            self.say(peer, &NicFrame::Inspect, NOBODY, Priority::MOST_URGENT, links);
        }
    }

    /// A node asks for a picture.
    pub(super) fn inspect_came(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let picture = self.picture(links).encode();
        self.say(peer, &NicFrame::Picture(picture), NOBODY, Priority::MOST_URGENT, links);
    }

    /// A node gives its picture; one that was not asked gives none.
    pub(super) fn picture_came(&mut self, from: NodeId, came: &Came<'_, B>) {
        let Some(asked) = self.asked.of.iter_mut().find(|(asked, picture)| *asked == from && picture.is_none()) else {
            return self.refuse();
        };
        // Not on the stack, which is short where a NIC is a task's.
        let mut bytes = alloc::vec![0; PICTURE_BYTES_MAX];
        let length = came.copy_to(&mut bytes);
        match bytes.get(..length).and_then(NicPicture::decode) {
            Some(picture) => {
                asked.1 = Some(picture);
                self.changes += 1;
            }
            None => self.refuse(),
        }
    }
}
