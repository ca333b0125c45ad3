//! The outgoing half of a session: frames by class, cut into numbered pieces, kept until they are acknowledged.
//!
//! What you may rely on: a taken frame stays until the peer has acknowledged its last piece. What was written and not
//! acknowledged is given again after [`Outbox::resume`], from exactly the piece that the peer lacks.
//!
//! How it works: a frame's payload is copied once, behind room for the headers, and goes to the stream from there; or it is
//! shared with who sends it, stays where it lies, and goes from there, behind headers of its own. A
//! *lane* is the queue of a class (or, without priorities, one for all); the log remembers of each numbered piece which
//! lane's frame it came from. Acknowledgements pop the log and, with a frame's last piece, the frame.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::account::ClassCounts;
use super::hello::Hello;
use super::pieces::{BEFORE, Frame, LANES, Lane, Logged, Ready};
use super::pool::Pool;
use super::record::{Record, Word};
use super::regulation::Regulators;
use crate::Priority;
use crate::frame::Header;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::links::SharedBytes;
use crate::topology::Network;

/// Bytes of class 0 that a link keeps until they are acknowledged, beside `window_bytes`: control never waits for data.
pub const CONTROL_BYTES: usize = 256 * 1024;

/// What a frame counts for beyond its payload: headers, places in queues and log. So that small ones are bounded too.
const FRAME_COST: usize = 128;
/// The smallest piece that a description may ask for.
const PIECE_BYTES_MIN: usize = 256;

/// The payload of a frame that is handed over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// It is copied behind its headers.
    Copied(&'a [u8]),
    /// It stays where it lies.
    Shared(&'a SharedBytes),
}

/// The outgoing half of a session.
#[derive(Debug)]
pub(super) struct Outbox {
    piece_bytes: usize,
    window_bytes: usize,
    priorities: bool,
    lanes: [Lane; LANES],
    /// Lanes that have something to cut, a bit each.
    waiting: u8,
    /// Those of them whose next frame its class's rule does not let go yet.
    held: u8,
    /// `None` if no class has a bound.
    regulators: Option<Box<Regulators>>,
    log: VecDeque<Logged>,
    /// Number of the last piece that was cut.
    last_piece: u32,
    last_frame: u64,
    /// Cost of the frames of data classes.
    data_cost: usize,
    control_cost: usize,
    frames_of: [usize; LANES],
    /// Frames that were ever taken, by class.
    taken: [u64; LANES],
    /// Cost of a frame that was refused, by class; 0 for none.
    refused: [usize; LANES],
    /// By class, the last frame that was acknowledged; those in `acknowledged_classes` are news.
    acknowledged: [u64; LANES],
    acknowledged_classes: u8,
    pool: Pool,
    greeting: Option<([u8; Hello::BYTES], usize)>,
    ready: VecDeque<Ready>,
    ready_bytes: usize,
    ready_pieces: usize,
    /// Bytes of the first of `ready` that are written.
    written: usize,
    /// Pieces given again.
    pub repeated: u64,
}

impl Outbox {
    pub(super) fn new(network: &Network) -> Outbox {
        Outbox {
            piece_bytes: (network.piece_bytes as usize).max(PIECE_BYTES_MIN),
            window_bytes: network.window_bytes as usize,
            priorities: network.priorities,
            lanes: Default::default(),
            waiting: 0,
            held: 0,
            regulators: None,
            log: VecDeque::new(),
            last_piece: 0,
            last_frame: 0,
            data_cost: 0,
            control_cost: 0,
            frames_of: [0; LANES],
            taken: [0; LANES],
            refused: [0; LANES],
            acknowledged: [0; LANES],
            acknowledged_classes: 0,
            pool: Pool::default(),
            greeting: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            ready_pieces: 0,
            written: 0,
            repeated: 0,
        }
    }

    /// Takes a frame and gives its number; `None` if its class has no room.
    #[inline]
    pub(super) fn enqueue(&mut self, header: &Header, body: Body<'_>) -> Option<u64> {
        let (payload, shared) = match body {
            Body::Copied(payload) => (payload, None),
            Body::Shared(shared) => (&[][..], Some(shared)),
        };
        let class = header.class.index();
        let cost = FRAME_COST + payload.len() + shared.map_or(0, |shared| shared.len());
        if !self.has_room(class, cost) {
            self.refused[class] = self.refused[class].max(cost);
            return None;
        }
        let mut buffer = self.pool.take(BEFORE + payload.len());
        buffer.clear();
        buffer.extend_from_slice(&[0; Record::BYTES]);
        buffer.extend_from_slice(&header.encode());
        buffer.extend_from_slice(payload);
        self.last_frame += 1;
        *self.cost_of(class) += cost;
        self.frames_of[class] += 1;
        self.taken[class] += 1;
        let lane = if self.priorities { class } else { 0 };
        self.waiting |= 1 << lane;
        let frame = Frame {
            number: self.last_frame,
            class: header.class,
            buffer,
            shared: shared.cloned(),
            cut: 0,
            admitted: false,
        };
        self.lanes[lane].frames.push_back(frame);
        Some(self.last_frame)
    }

    /// A class may always have one frame. Beyond that data shares the window, of which each class leaves a sixteenth to
    /// every more urgent one; control has room of its own.
    fn has_room(&self, class: usize, cost: usize) -> bool {
        let room = match class {
            0 => CONTROL_BYTES - self.control_cost.min(CONTROL_BYTES),
            _ => (self.window_bytes - self.window_bytes / 16 * (class - 1)).saturating_sub(self.data_cost),
        };
        self.frames_of[class] == 0 || cost <= room
    }

    fn cost_of(&mut self, class: usize) -> &mut usize {
        if class == 0 { &mut self.control_cost } else { &mut self.data_cost }
    }

    /// Whether a class that was refused a frame could have it now; says so once.
    pub(super) fn room_again(&mut self) -> bool {
        if self.refused == [0; LANES] {
            return false;
        }
        let mut again = false;
        for class in 0..LANES {
            if self.refused[class] != 0 && self.has_room(class, self.refused[class]) {
                self.refused[class] = 0;
                again = true;
            }
        }
        again
    }

    /// The hello goes out before anything else.
    pub(super) fn greet(&mut self, bytes: [u8; Hello::BYTES]) {
        self.greeting = Some((bytes, 0));
    }

    /// Bounds what goes out from now on.
    pub(super) fn regulate(&mut self, regulators: Option<Regulators>) {
        self.regulators = regulators.map(Box::new);
        self.held = 0;
    }

    /// What became of the frames of a class.
    pub(super) fn class_counts(&self, class: Priority) -> ClassCounts {
        let waited = self.regulators.as_ref().map_or(0, |regulators| regulators.waited(class));
        ClassCounts { taken: self.taken[class.index()], waited }
    }

    /// What was held and may go now, may.
    #[inline]
    pub(super) fn release(&mut self, now_ns: u64) {
        if let (Some(regulators), 1..) = (&mut self.regulators, self.held) {
            let released = regulators.release(now_ns);
            self.held &= if self.priorities { !released } else { 0 };
        }
    }

    /// When [`Outbox::release`] lets something go; `u64::MAX` if nothing is held.
    pub(super) fn due_ns(&self) -> u64 {
        match &self.regulators {
            Some(regulators) if self.held != 0 => regulators.due_ns(),
            _ => u64::MAX,
        }
    }

    /// Lanes that have something to cut and may.
    #[inline]
    fn open(&self) -> u8 {
        self.waiting & !self.held
    }

    /// Whether pieces wait to be cut, and may be.
    pub(super) fn has_open(&self) -> bool {
        self.open() != 0
    }

    /// Bytes that are ready.
    pub(super) fn ready_bytes(&self) -> usize {
        self.ready_bytes - self.written + self.greeting.as_ref().map_or(0, |(bytes, from)| bytes.len() - from)
    }

    /// Whether to cut more, up to `budget_bytes` that are ready. Once half of it is, not from a frame that does not go whole:
    /// who takes the bytes at once takes more at once next time, and the peer reads frames that come whole to where they stay.
    pub(super) fn may_cut(&self, budget_bytes: usize) -> bool {
        let ready_bytes = self.ready_bytes();
        if self.open() == 0 || ready_bytes >= budget_bytes {
            return false;
        }
        let lane = &self.lanes[self.open().trailing_zeros() as usize];
        let goes_whole = |frame: &Frame| frame.uncut() <= self.piece_max(frame, budget_bytes - ready_bytes);
        ready_bytes < budget_bytes / 2 || lane.frames.get(lane.cursor).is_some_and(goes_whole)
    }

    /// Whether the rule of its class lets the frame go that [`Outbox::cut`] would cut from. If not, its lane is held.
    #[inline]
    pub(super) fn admits_next(&mut self, now_ns: u64) -> bool {
        let lane_number = self.open().trailing_zeros() as usize;
        let Some(regulators) = &mut self.regulators else { return true };
        let next = self.lanes.get_mut(lane_number).and_then(|lane| lane.frames.get_mut(lane.cursor));
        let Some(frame) = next else { return true };
        let bytes = (frame.len() - BEFORE) as u32;
        frame.admitted = frame.admitted || regulators.admit(now_ns, frame.class, bytes);
        if !frame.admitted {
            self.held |= 1 << lane_number;
        }
        frame.admitted
    }

    /// Most bytes of the next piece of a frame where there is room for so many.
    fn piece_max(&self, frame: &Frame, room_bytes: usize) -> usize {
        let room_bytes = room_bytes.clamp(1, PAYLOAD_BYTES_MAX);
        room_bytes.next_multiple_of(self.piece_bytes) + if frame.cut == 0 { Header::BYTES } else { 0 }
    }

    /// Cuts from the most urgent frame until at least `budget_bytes` are ready. What is ready is not overtaken, so what
    /// would be cut from one frame piece by piece goes as one record. `received` goes into its header.
    pub(super) fn cut(&mut self, received: u32, budget_bytes: usize) {
        let room_bytes = budget_bytes.saturating_sub(self.ready_bytes());
        let lane_number = self.open().trailing_zeros() as usize;
        let next = self.lanes.get(lane_number).and_then(|lane| lane.frames.get(lane.cursor));
        let Some(most) = next.map(|frame| self.piece_max(frame, room_bytes)) else { return };
        let lane = &mut self.lanes[lane_number];
        let frame = &mut lane.frames[lane.cursor];
        let first = frame.cut == 0;
        let length = frame.uncut().min(most);
        self.last_piece = self.last_piece.wrapping_add(1);
        let word = if first { Word::First } else { Word::More };
        let (class, number) = (frame.class, self.last_piece);
        let own = Record { word, class, flags: 0, length: length as u32, number, received }.encode();
        let start = Record::BYTES + frame.cut;
        let ordinal = lane.popped + lane.cursor as u64;
        let end = start + length;
        let ready = if first {
            frame.buffer[..Record::BYTES].copy_from_slice(&own);
            Ready { own, own_length: 0, lane: lane_number as u8, ordinal, start: 0, end }
        } else {
            Ready { own, own_length: Record::BYTES as u8, lane: lane_number as u8, ordinal, start, end }
        };
        frame.cut += length;
        let last = end == frame.len();
        if last {
            lane.cursor += 1;
            if lane.cursor == lane.frames.len() {
                self.waiting &= !(1 << lane_number);
            }
        }
        self.log.push_back(Logged { lane: lane_number as u8, last, bytes: length as u32 });
        self.ready_bytes += ready.len();
        self.ready_pieces += 1;
        self.ready.push_back(ready);
    }

    /// Makes a record ready that is no piece.
    pub(super) fn say(&mut self, word: Word, flags: u8, received: u32) {
        let own = Record { word, class: Priority::MOST_URGENT, flags, length: 0, number: 0, received }.encode();
        self.ready_bytes += own.len();
        self.ready.push_back(Ready { own, own_length: Record::BYTES as u8, lane: 0, ordinal: 0, start: 0, end: 0 });
    }

    /// What is ready, in order.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let greeting = self.greeting.as_ref().map(|(bytes, from)| &bytes[*from..]);
        let mut skip = self.written;
        let records = self.ready.iter().flat_map(move |ready| {
            let own = &ready.own[..usize::from(ready.own_length)];
            let [buffer, shared] = self.parts(ready);
            [own, buffer, shared].map(|part| {
                let skipped = skip.min(part.len());
                skip -= skipped;
                &part[skipped..]
            })
        });
        greeting.into_iter().chain(records).filter(|slice| !slice.is_empty())
    }

    /// The same where it is the beginning of one frame: what lies in the frame's buffer, and what is shared.
    #[inline]
    pub(super) fn only_frame(&self) -> Option<[&[u8]; 2]> {
        match self.ready.front() {
            Some(ready) if self.ready.len() == 1 && ready.own_length == 0 && self.greeting.is_none() => {
                let [buffer, shared] = self.parts(ready);
                let of_buffer = self.written.min(buffer.len());
                Some([&buffer[of_buffer..], &shared[self.written - of_buffer..]])
            }
            _ => None,
        }
    }

    #[inline]
    fn parts(&self, ready: &Ready) -> [&[u8]; 2] {
        let lane = &self.lanes[usize::from(ready.lane)];
        if ready.start == ready.end {
            return [&[], &[]];
        }
        lane.frames[(ready.ordinal - lane.popped) as usize].parts(ready.start, ready.end)
    }

    /// So many bytes of it have been written.
    pub(super) fn consumed(&mut self, mut bytes: usize) {
        if let Some((greeting, from)) = &mut self.greeting {
            let taken = bytes.min(greeting.len() - *from);
            *from += taken;
            bytes -= taken;
            if *from == greeting.len() {
                self.greeting = None;
            }
        }
        self.written += bytes;
        while let Some(ready) = self.ready.front()
            && ready.len() <= self.written
        {
            self.written -= ready.len();
            self.ready_bytes -= ready.len();
            self.ready_pieces -= usize::from(ready.start != ready.end);
            self.ready.pop_front();
        }
    }

    /// The peer has every piece up to this number. False if that cannot be.
    pub(super) fn acknowledge(&mut self, received: u32) -> bool {
        let acknowledged = self.last_piece.wrapping_sub(self.log.len() as u32);
        let news = received.wrapping_sub(acknowledged) as usize;
        if news > self.log.len() - self.ready_pieces {
            return false;
        }
        for _ in 0..news {
            self.acknowledge_piece();
        }
        true
    }

    fn acknowledge_piece(&mut self) {
        let Some(piece) = self.log.pop_front() else { return };
        let lane = &mut self.lanes[usize::from(piece.lane)];
        if !piece.last {
            lane.acknowledged += piece.bytes as usize;
            return;
        }
        let Some(frame) = lane.frames.pop_front() else { return };
        lane.acknowledged = 0;
        lane.popped += 1;
        lane.cursor -= 1;
        let class = frame.class.index();
        self.acknowledged[class] = frame.number;
        self.acknowledged_classes |= 1 << class;
        *self.cost_of(class) -= FRAME_COST + frame.len() - BEFORE;
        self.frames_of[class] -= 1;
        self.pool.give(frame.buffer);
    }

    /// The next class whose frames have been acknowledged, by the last of them; says each once.
    pub(super) fn next_acknowledged(&mut self) -> Option<u64> {
        let class = self.acknowledged_classes.trailing_zeros() as usize;
        let number = *self.acknowledged.get(class)?;
        self.acknowledged_classes &= self.acknowledged_classes - 1;
        Some(number)
    }

    /// The connection is gone, and with it what was ready.
    pub(super) fn disconnect(&mut self) {
        self.greeting = None;
        self.ready.clear();
        (self.ready_bytes, self.ready_pieces, self.written) = (0, 0, 0);
    }

    /// On a new connection: the peer has every piece up to this number, and wants the rest. False if that cannot be.
    pub(super) fn resume(&mut self, received: u32) -> bool {
        if !self.acknowledge(received) {
            return false;
        }
        self.repeated += self.log.len() as u64;
        self.log.clear();
        self.last_piece = received;
        // What goes again was admitted; who comes behind it is asked about, and held, again.
        self.held = 0;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            for frame in lane.frames.iter_mut().take(lane.cursor + 1) {
                frame.cut = 0;
            }
            lane.cursor = 0;
            if let Some(front) = lane.frames.front_mut() {
                front.cut = lane.acknowledged;
                self.waiting |= 1 << number;
            }
        }
        true
    }

    /// Forgets everything: the link is no more.
    pub(super) fn reset(&mut self) {
        self.disconnect();
        self.lanes = Default::default();
        self.log = VecDeque::new();
        (self.waiting, self.held, self.last_piece, self.last_frame) = (0, 0, 0, 0);
        (self.data_cost, self.control_cost) = (0, 0);
        self.frames_of = [0; LANES];
        self.refused = [0; LANES];
        self.acknowledged_classes = 0;
        self.pool = Pool::default();
    }

    /// Nothing is left that the peer has not been given.
    pub(super) fn is_spent(&self) -> bool {
        self.waiting == 0 && self.ready.is_empty()
    }

    /// What the taken frames count for.
    pub(super) fn cost(&self) -> usize {
        self.data_cost + self.control_cost
    }
}
