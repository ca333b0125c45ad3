//! One look: figures copied out of the participants' sections.
//!
//! What it does not do: freeze the system; figures that are read one after the other may be some messages apart.

use musubi_core::fifo::Ring;
use musubi_core::histogram::{self, BUCKETS, FIRST_BUCKET};
use musubi_core::layout::{Part, rx, ticket, tx};
use musubi_core::plan::Plan;
use musubi_core::words::PeerWords;
use musubi_linux::clock::now_ns;
use musubi_linux::observe::Observed;
use musubi_linux::{Direction, Observer};

/// Everything that one look saw.
pub struct Reading {
    /// When, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Those who answered and those who did not, by number.
    pub participants: Vec<Seen>,
    /// One entry a FIFO channel of the plan.
    pub fifos: Vec<Fifo>,
    /// One list of members an SMEM channel of the plan.
    pub smems: Vec<Vec<Member>>,
}

/// A participant.
pub struct Seen {
    pub participant: u16,
    pub pid: i32,
    /// `None` if it did not answer, or does not let us look.
    pub life: Option<Life>,
    /// Why it does not let us look.
    pub refusal: Option<String>,
}

/// What a participant's section says of it.
pub struct Life {
    pub epoch: u32,
    pub heartbeat_age_ms: u32,
    pub uptime_ns: u64,
}

/// A FIFO channel.
pub struct Fifo {
    pub sender: Option<Sender>,
    pub receiver: Option<Receiver>,
}

/// The sending end.
pub struct Sender {
    /// Participant and epoch.
    pub who: (u16, u32),
    pub queued: u32,
    pub messages: u64,
    pub bytes: u64,
    pub in_use: u32,
    pub high_water: u32,
    pub raised: u32,
    pub suppressed: u32,
    pub throttled: u32,
    pub exhausted: u32,
    pub abandoned: u32,
    pub dropped: u32,
    pub refused: u32,
}

/// The receiving end.
pub struct Receiver {
    /// Participant and epoch.
    pub who: (u16, u32),
    pub messages: u64,
    pub bytes: u64,
    pub held: u32,
    pub slept: u32,
    pub refused: u32,
    pub over_budget: u32,
    pub latency: Option<Latency>,
}

/// One-way latency of the sampled messages, in nanoseconds.
pub struct Latency {
    pub samples: u32,
    pub p50_ns: u32,
    pub p99_ns: u32,
    pub max_ns: u32,
}

/// A member's line in the lock of an SMEM channel.
pub struct Member {
    pub participant: u16,
    pub holds: bool,
    pub acquired: u32,
    pub refused: u32,
}

impl Reading {
    /// Looks at everybody that the observer has found.
    pub fn take(plan: &Plan<'_>, observer: &Observer) -> Reading {
        let at_ns = now_ns();
        let seen = observer.participants().iter().map(|seen| living(seen, at_ns));
        let silent = observer.silent().iter();
        let mut participants: Vec<Seen> = seen
            .chain(silent.map(|slot| Seen { participant: slot.participant, pid: slot.pid, life: None, refusal: None }))
            .collect();
        participants.extend(observer.refused().iter().map(|slot| {
            let refusal = Some(slot.why.to_string());
            Seen { participant: slot.participant, pid: slot.pid, life: None, refusal }
        }));
        participants.sort_by_key(|seen| seen.participant);
        let fifos = (0u16..).zip(plan.fifos).map(|(number, fifo)| read_fifo(observer, number, fifo.blocks)).collect();
        let smems = (0u16..).zip(plan.smems).map(|(number, _)| read_smem(observer, number)).collect();
        Reading { at_ns, participants, fifos, smems }
    }

    /// Of a system without participants.
    pub fn nothing() -> Reading {
        Reading { at_ns: now_ns(), participants: Vec::new(), fifos: Vec::new(), smems: Vec::new() }
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.participants.is_empty()
    }
}

fn living(seen: &Observed, now_ns: u64) -> Seen {
    let life = Life {
        epoch: seen.section.epoch(),
        heartbeat_age_ms: seen.heartbeat_age_ms(),
        uptime_ns: now_ns.saturating_sub(seen.start_ns()),
    };
    Seen { participant: seen.section.participant(), pid: seen.pid, life: Some(life), refusal: None }
}

fn who(holder: &Observed) -> (u16, u32) {
    (holder.section.participant(), holder.section.epoch())
}

fn read_fifo(observer: &Observer, number: u16, blocks: u32) -> Fifo {
    let sending = observer.holders(number, Direction::Send).next();
    let receiving = observer.holders(number, Direction::Receive).next();
    let tx = sending.and_then(|holder| Some((who(holder), holder.section.part(Part::Tx(number))?)));
    let rx = receiving.and_then(|holder| Some((who(holder), holder.section.part(Part::Rx(number))?)));
    let rx_words = rx.as_ref().map(|(_, part)| part.words());
    Fifo {
        sender: tx.as_ref().map(|(who, part)| read_sender(*who, part.words(), rx_words, Ring::new(blocks))),
        receiver: rx.as_ref().map(|(who, part)| read_receiver(*who, part.words())),
    }
}

fn read_sender(who: (u16, u32), tx: PeerWords<'_>, rx: Option<PeerWords<'_>>, ring: Ring) -> Sender {
    // First, so that it is never ahead of the tail.
    let ours = rx.and_then(|rx| Some((taken_from(rx, who)?, rx.get(rx::HELD))));
    let (taken, in_its_hands) = ours.unwrap_or_else(|| (tx.get(tx::START), 0));
    let queued = queued(ring, taken, tx.get(tx::TAIL));
    Sender {
        who,
        queued,
        messages: tx.counter(tx::SENT, tx::SENT_HIGH),
        bytes: tx.counter(tx::BYTES, tx::BYTES_HIGH),
        in_use: in_use(ring, [tx.get(tx::HELD), queued, in_its_hands]),
        high_water: tx.get(tx::HIGH_WATER),
        raised: tx.get(tx::RAISED),
        suppressed: tx.get(tx::SUPPRESSED),
        throttled: tx.get(tx::THROTTLED),
        exhausted: tx.get(tx::EXHAUSTED),
        abandoned: tx.get(tx::ABANDONED),
        dropped: tx.get(tx::DROPPED),
        refused: tx.get(tx::REFUSED),
    }
}

/// How far a receiver has got, if its session is with this sender.
fn taken_from(rx: PeerWords<'_>, (participant, epoch): (u16, u32)) -> Option<u32> {
    let is_ours = rx.get(rx::LINK_EPOCH) == epoch && rx.get(rx::LINK_PARTICIPANT) == u32::from(participant);
    is_ours.then(|| rx.get(rx::TAKEN))
}

fn queued(ring: Ring, taken: u32, tail: u32) -> u32 {
    if ring.contains(taken) && ring.contains(tail) { ring.distance(taken, tail).min(ring.slots()) } else { 0 }
}

/// Blocks that are being filled, queued or read. A block that changed hands between the looks counts twice.
fn in_use(ring: Ring, [filled, queued, read]: [u32; 3]) -> u32 {
    filled.saturating_add(queued).saturating_add(read).min(ring.slots())
}

fn read_receiver(who: (u16, u32), rx: PeerWords<'_>) -> Receiver {
    Receiver {
        who,
        messages: rx.counter(rx::RECEIVED, rx::RECEIVED_HIGH),
        bytes: rx.counter(rx::BYTES, rx::BYTES_HIGH),
        held: rx.get(rx::HELD),
        slept: rx.get(rx::SLEPT),
        refused: rx.get(rx::REFUSED),
        over_budget: rx.get(rx::OVER_BUDGET),
        latency: read_latency(rx.part(rx::HISTOGRAM, histogram::WORDS)),
    }
}

fn read_latency(words: PeerWords<'_>) -> Option<Latency> {
    let max_ns = words.get(histogram::MAX);
    let buckets: Vec<u32> = (0..BUCKETS).map(|bucket| words.get(FIRST_BUCKET + bucket)).collect();
    // A bucket's upper end may lie above the largest value.
    let quantile = |permille| histogram::quantile(&buckets, permille).map(|ns| ns.min(max_ns));
    let (p50_ns, p99_ns) = (quantile(500)?, quantile(990)?);
    Some(Latency { samples: words.get(histogram::COUNT), p50_ns, p99_ns, max_ns })
}

fn read_smem(observer: &Observer, number: u16) -> Vec<Member> {
    let member = |seen: &Observed| {
        let part = seen.section.part(Part::Ticket(number))?;
        let words = part.words();
        Some(Member {
            participant: seen.section.participant(),
            holds: words.get(ticket::HOLDS) == 1,
            acquired: words.get(ticket::ACQUIRED),
            refused: words.get(ticket::REFUSED),
        })
    };
    observer.participants().iter().filter_map(member).collect()
}
