//! A Remote that writes anything into all it can write, while the Master works with it and with an honest one.
//!
//! How it works: the hostile one is a process of its own (this test binary again) that attaches, claims its ends, and
//! then writes its whole section: garbage, boundary values, and announcements, returns and tickets that look right. It
//! also talks nonsense on the Master's socket. The Master keeps calling on the channels with it, and every call is
//! timed; on the channels with the honest one each message must come, once, in order.
//! `MUSUBI_HOSTILE_SECONDS` sets how long; 3 seconds by default.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_core::fifo::Ring;
use musubi_core::layout::{Part, Shape, header, rx, slot, ticket, tx, walk};
use musubi_core::plan::*;
use musubi_core::words::OwnWords;
use musubi_linux::clock::now_ns;
use musubi_linux::message::{BYTES, Message, Party, Refusal};
use musubi_linux::names::Names;
use musubi_linux::{DeadlineExt, Direction, End, Options, Participant};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with};

const CONTROL: u16 = 0;
const HONEST: u16 = 1;
const HOSTILE: u16 = 2;
const OUT: u16 = 0;
const IN: u16 = 1;
const DOWN: u16 = 2;
const UP: u16 = 3;
const SLY: u16 = 4;
const PAIR: u16 = 0;
const OPEN: u16 = 1;
const SECONDS: &str = "MUSUBI_HOSTILE_SECONDS";
const ROLE: &str = "MUSUBI_TEST_HOSTILE";
/// How long a call waits for something of the hostile one.
const WAIT: Duration = Duration::from_millis(5);
/// What a call may be late beyond what plain sleeps are on this machine meanwhile, four times.
const MARGIN: Duration = Duration::from_millis(30);

const fn domain(name: &'static str, role: Role, trust: Trust) -> Domain<'static> {
    let port = PortKind::LinuxProcess;
    Domain { name, role, port, trust, participants: 1, uids: &[], gids: &[], spin_ns: 5_000 }
}

const fn fifo(name: &'static str, (from, to): (u16, u16), blocks: u32, block_bytes: u32) -> Fifo<'static> {
    let (filter, regulation) = (FilterRule::EACH, Regulation::NONE);
    let (priority, budget_ns, on_restart, sample_every) = (0, 1_000, OnRestart::Keep, 1);
    Fifo { name, from, to, blocks, block_bytes, priority, filter, regulation, budget_ns, on_restart, sample_every }
}

static PLAN: Plan<'static> = Plan {
    name: "hostile-test",
    hash: 0xbad0_bad0,
    domains: &[
        domain("control", Role::Master, Trust::MayCrash),
        domain("honest", Role::Remote, Trust::MayCrash),
        domain("hostile", Role::Remote, Trust::Hostile),
    ],
    fifos: &[
        fifo("out", (CONTROL, HONEST), 16, 64),
        fifo("in", (HONEST, CONTROL), 16, 64),
        fifo("down", (CONTROL, HOSTILE), 8, 100),
        fifo("up", (HOSTILE, CONTROL), 8, 100),
        fifo("sly", (HOSTILE, HONEST), 3, 5_000),
    ],
    smems: &[
        Smem { name: "pair", domains: &[CONTROL, HONEST], bytes: 64, lock: LockKind::Bakery },
        Smem { name: "open", domains: &[CONTROL, HOSTILE], bytes: 64, lock: LockKind::Bakery },
    ],
    liveness: Liveness { heartbeat_ns: 10_000_000, stalled_ns: 100_000_000 },
};

fn attach(domain: u16, instance: &str) -> Participant {
    Participant::attach(Options { instance: Some(instance.to_owned()), ..Options::new(&PLAN, domain) }).unwrap()
}

fn lasting() -> Duration {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

// ---- what the others do meanwhile ----

/// When to end, and how late calls were.
#[derive(Default)]
struct Watch {
    done: AtomicBool,
    late_ns_max: AtomicU64,
    plain_late_ns_max: AtomicU64,
    calls: AtomicU64,
}

impl Watch {
    fn goes_on(&self) -> bool {
        !self.done.load(Ordering::SeqCst)
    }

    /// Makes a call that may wait this long. Time in which the kernel ran other threads does not count as late.
    fn timed<T>(&self, wait: Duration, call: impl FnOnce(Deadline) -> T) -> T {
        let waited_ns = waited_for_processor_ns();
        let deadline_ns = now_ns() + wait.as_nanos() as u64;
        let result = call(Deadline::At(deadline_ns));
        let late_ns = now_ns().saturating_sub(deadline_ns);
        if late_ns > self.late_ns_max.load(Ordering::SeqCst) {
            let own_ns = late_ns.saturating_sub(waited_for_processor_ns() - waited_ns);
            self.late_ns_max.fetch_max(own_ns, Ordering::SeqCst);
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// How late sleeps are that use nothing of Musubi.
    fn sleep_plainly(&self) {
        while self.goes_on() {
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(1));
            let late = begin.elapsed() - Duration::from_millis(1);
            self.plain_late_ns_max.fetch_max(late.as_nanos() as u64, Ordering::SeqCst);
        }
    }
}

/// How long this thread was ready while the kernel ran others.
fn waited_for_processor_ns() -> u64 {
    thread_local!(static SCHEDSTAT: File = File::open("/proc/thread-self/schedstat").unwrap());
    let mut text = [0; 96];
    let count = SCHEDSTAT.with(|file| file.read_at(&mut text, 0).unwrap());
    let text = std::str::from_utf8(&text[..count]).unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sends numbers in order until the end; gives how many.
fn send_honestly(watch: &Watch, end: impl SendingEnd) -> u64 {
    let mut number = 0u64;
    while watch.goes_on() {
        let Ok(mut loan) = end.allocate(soon()) else { continue };
        loan[..8].copy_from_slice(&number.to_le_bytes());
        assert!(end.enqueue(loan, 8).is_ok());
        end.notify();
        number += 1;
        if number.is_multiple_of(64) {
            thread::sleep(Duration::from_micros(200));
        }
    }
    number
}

/// Receives numbers, which must come in order; gives how many.
fn receive_honestly(watch: &Watch, end: impl ReceivingEnd) -> u64 {
    let mut expected = 0u64;
    loop {
        let waited = watch.timed(Duration::from_millis(20), |deadline| end.wait(deadline));
        if waited.is_err() && !watch.goes_on() {
            return expected;
        }
        while let Ok(received) = end.dequeue() {
            let mut bytes = [0; 8];
            assert_eq!(received.copy_to(0, &mut bytes), 8);
            assert_eq!(u64::from_le_bytes(bytes), expected, "lost or disordered on an honest channel");
            assert!(end.free(received).is_ok());
            expected += 1;
        }
    }
}

/// Sends to the hostile one whatever it lets us.
fn send_to_hostile(watch: &Watch, end: impl SendingEnd) -> u64 {
    let (mut number, blocks) = (0u64, end.usage().blocks);
    while watch.goes_on() {
        match watch.timed(WAIT, |deadline| end.allocate(deadline)) {
            Ok(mut loan) => {
                loan.fill(number as u8);
                let bytes = number as u32 % (end.block_bytes() + 1);
                assert!(watch.timed(Duration::ZERO, |_| end.enqueue(loan, bytes)).is_ok());
                watch.timed(Duration::ZERO, |_| end.notify());
                number += 1;
            }
            // A hostile receiver can keep blocks, as any receiver can; initialising the channel does not bring back
            // what it holds, so there is nothing to do but to go on.
            Err(error) => assert!(matches!(error, Error::Timeout | Error::PeerGone), "{error}"),
        }
        if number.is_multiple_of(1_000) {
            watch.timed(Duration::ZERO, |_| end.reset());
            let _ = watch.timed(WAIT, |deadline| end.wait(deadline));
        }
        let usage = end.usage();
        assert!(usage.blocks == blocks && usage.free <= blocks && usage.queued <= blocks && usage.held <= blocks);
    }
    number
}

/// Receives from the hostile one whatever it claims.
fn receive_from_hostile(watch: &Watch, end: impl ReceivingEnd) -> (u64, u64) {
    let (mut taken, mut refused) = (0u64, 0u64);
    let mut kept = Vec::new();
    while watch.goes_on() {
        let _ = watch.timed(WAIT, |deadline| end.wait(deadline));
        for _ in 0..100 {
            match watch.timed(Duration::ZERO, |_| end.dequeue()) {
                Ok(received) => {
                    assert!(received.len() <= end.block_bytes());
                    let mut bytes = vec![0; end.block_bytes() as usize];
                    assert_eq!(received.copy_to(0, &mut bytes), received.len() as usize);
                    kept.push(received);
                    taken += 1;
                }
                Err(Error::PeerFault) => refused += 1,
                Err(error) => {
                    assert_eq!(error, Error::Empty);
                    break;
                }
            }
            while kept.len() > taken as usize % 3 {
                assert!(end.free(kept.swap_remove(0)).is_ok());
            }
        }
        let usage = end.usage();
        assert!(usage.queued <= usage.blocks && usage.held as usize == kept.len());
        watch.timed(Duration::ZERO, |_| end.notify());
    }
    (taken, refused)
}

/// Counts under the lock with the honest one; gives how often.
fn count_under_lock(watch: &Watch, shared: impl SharedSegment) -> u64 {
    let mut turns = 0;
    while watch.goes_on() {
        if watch.timed(Duration::from_millis(50), |deadline| shared.lock(deadline)).is_ok() {
            let mut bytes = [0; 8];
            shared.read(0, &mut bytes).unwrap();
            shared.write(0, &(u64::from_le_bytes(bytes) + 1).to_le_bytes()).unwrap();
            shared.unlock().unwrap();
            turns += 1;
        }
        thread::sleep(Duration::from_micros(100));
    }
    turns
}

/// Takes a lock that the hostile one can withhold, but not for longer than the deadline.
fn lock_with_hostile(watch: &Watch, shared: impl SharedSegment) -> u64 {
    let mut turns = 0;
    while watch.goes_on() {
        let locked = watch.timed(WAIT, |deadline| shared.lock(deadline));
        let tried = locked.is_err() && watch.timed(Duration::ZERO, |_| shared.try_lock()).is_ok();
        if locked.is_ok() || tried {
            turns += 1;
            shared.unlock().unwrap();
        }
        assert_eq!(shared.unlock(), Err(Error::NotHeld));
    }
    turns
}

fn soon() -> Deadline {
    musubi_linux::Deadline::after(Duration::from_millis(20))
}

#[test]
fn a_hostile_peer_harms_only_its_own_channels() {
    let instance = format!("h{}", std::process::id());
    let control = attach(CONTROL, &instance);
    let honest = attach(HONEST, &instance);
    let mut hostile = start_hostile(&instance);
    control.wait_for(HOSTILE, musubi_linux::Deadline::after(Duration::from_secs(5))).unwrap();
    let watch = Watch::default();
    let (sent, received, turns) = thread::scope(|scope| {
        let open = |smem| Attachment::open_segment(&control, smem, soon()).unwrap();
        let pair = Attachment::open_segment(&honest, PAIR, soon()).unwrap();
        let watch = &watch;
        scope.spawn(|| watch.sleep_plainly());
        let sent: Vec<_> = [(&control, OUT), (&honest, IN)]
            .map(|(from, fifo)| from.open_sending(fifo).unwrap())
            .map(|end| scope.spawn(|| send_honestly(watch, end)))
            .into();
        let received: Vec<_> = [(&honest, OUT), (&control, IN)]
            .map(|(to, fifo)| to.open_receiving(fifo).unwrap())
            .map(|end| scope.spawn(|| receive_honestly(watch, end)))
            .into();
        let down = control.open_sending(DOWN).unwrap();
        let down = scope.spawn(|| send_to_hostile(watch, down));
        let hostile_ends: Vec<_> = [(&control, UP), (&honest, SLY)]
            .map(|(to, fifo)| to.open_receiving(fifo).unwrap())
            .map(|end| scope.spawn(|| receive_from_hostile(watch, end)))
            .into();
        let turns: Vec<_> = [open(PAIR), pair].map(|shared| scope.spawn(|| count_under_lock(watch, shared))).into();
        let withheld = open(OPEN);
        let withheld = scope.spawn(|| lock_with_hostile(watch, withheld));
        let end = Instant::now() + lasting();
        while Instant::now() < end && hostile.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(20));
        }
        assert!(Instant::now() >= end, "the hostile one ended by itself");
        watch.done.store(true, Ordering::SeqCst);
        println!("sent to the hostile one: {}", down.join().unwrap());
        for (end, name) in hostile_ends.into_iter().zip(["up", "sly"]) {
            let (taken, refused) = end.join().unwrap();
            println!("{name}: taken {taken}, refused {refused}");
            assert!(taken > 0 && refused > 0, "the hostile one did not get through to {name}");
        }
        println!("locks with the hostile one: {}", withheld.join().unwrap());
        let join = |threads: Vec<thread::ScopedJoinHandle<'_, u64>>| -> Vec<u64> {
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        };
        (join(sent), join(received), join(turns))
    });
    hostile.kill().unwrap();
    hostile.wait().unwrap();
    assert!(sent.iter().all(|count| *count > 1_000), "{sent:?}");
    assert_eq!(sent, received, "messages were lost on honest channels");
    assert_eq!(counter(&control), turns.iter().sum::<u64>(), "turns under the honest lock were lost");
    let late = |word: &AtomicU64| Duration::from_nanos(word.load(Ordering::SeqCst));
    let (worst, plain) = (late(&watch.late_ns_max), late(&watch.plain_late_ns_max));
    println!(
        "honest messages {sent:?}, turns {turns:?}, {} calls, latest {worst:?}, plain sleeps {plain:?}, {:?}",
        watch.calls.load(Ordering::SeqCst),
        control.strangers()
    );
    assert!(worst <= MARGIN + 4 * plain, "a call was {worst:?} late; plain sleeps were {plain:?} late");
    assert!(control.strangers().garbage > 0, "the nonsense on the socket was not noticed");
}

fn counter(control: &Participant) -> u64 {
    let shared = Attachment::open_segment(control, PAIR, soon()).unwrap();
    let mut bytes = [0; 8];
    shared.read(0, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

// ---- the hostile one ----

fn start_hostile(instance: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "hostile", "--nocapture", "--test-threads=1"]).env(ROLE, instance);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// Not a test: what runs in the hostile process.
#[test]
fn hostile() {
    let Ok(instance) = std::env::var(ROLE) else { return };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let me = attach(HOSTILE, &instance);
    let mut ends = Vec::from(
        [(DOWN, Direction::Receive), (UP, Direction::Send), (SLY, Direction::Send)]
            .map(|(fifo, direction)| me.claim_end(fifo, direction).unwrap()),
    );
    let talker = instance.clone();
    thread::spawn(move || talk_nonsense(&talker));
    let end = Instant::now() + lasting() + Duration::from_secs(30);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    while Instant::now() < end {
        let mut vandal = Vandal { words: me.section_words(), parts: parts(), ends: &ends, state };
        for _ in 0..20_000 {
            vandal.act();
        }
        state = vandal.state;
        // Now and then it begins anew, so that the others have blocks again that can be stolen.
        let index = state as usize % ends.len();
        let closed = ends.swap_remove(index);
        let (fifo, direction) = (closed.fifo(), closed.direction());
        drop(closed);
        ends.push(me.claim_end(fifo, direction).unwrap());
    }
}

/// The parts of the hostile section: kind, first word, words.
fn parts() -> Vec<(Part, u32, u32)> {
    let mut parts = Vec::new();
    walk(&PLAN, HOSTILE, |part, offset, bytes| parts.push((part, offset / 4, bytes / 4)));
    parts
}

struct Vandal<'p> {
    words: OwnWords<'p>,
    parts: Vec<(Part, u32, u32)>,
    ends: &'p [End],
    state: u64,
}

impl Vandal<'_> {
    fn random(&mut self) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.random() % limit
    }

    fn act(&mut self) {
        let index = self.below(self.parts.len() as u32) as usize;
        let (part, first, words) = self.parts[index];
        match (part, self.below(16)) {
            (_, 0) => {
                let (word, value) = (first + self.below(words), self.value());
                self.words.set(word, value);
            }
            // For a while everything looks right, so that the wrong things are believed.
            (Part::Tx(fifo) | Part::Rx(fifo), 1..4) => self.look_honest(part, fifo, first),
            (Part::Tx(fifo), 4..14) => self.forge_announcement(fifo, first),
            (Part::Rx(fifo), 4..14) => self.forge_return(fifo, first),
            (Part::Tx(_), _) => {
                self.disturb(first, &[tx::WAITING, tx::EVENTS, tx::BELL, tx::SKIP, tx::START, tx::TAIL])
            }
            (Part::Rx(_), _) => self.disturb(first, &[rx::WAITING, rx::EVENTS, rx::BELL, rx::TAKEN, rx::HELD]),
            (Part::Ticket(_), _) => self.disturb(first, &[ticket::TICKET, ticket::TICKET, ticket::HOLDS]),
            (Part::Header, _) => {
                self.disturb(first, &[header::EPOCH, header::STATE, header::HEARTBEAT_MS, header::MAGIC])
            }
        }
    }

    fn value(&mut self) -> u32 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u32::MAX,
            3 => u32::MAX - self.below(4),
            4 => 1 << 31,
            5 => self.below(32),
            6 => 1 << self.below(32),
            _ => self.random(),
        }
    }

    fn disturb(&mut self, first: u32, words: &[u32]) {
        let (word, value) = (words[self.below(words.len() as u32) as usize], self.value());
        self.words.set(first + word, value);
    }

    /// Puts the link right again.
    fn look_honest(&mut self, part: Part, fifo: u16, first: u32) {
        let Some(end) = self.ends.iter().find(|end| end.fifo() == fifo) else { return };
        let (participant, epoch) = match (end.tx_links(), end.rx_links()) {
            (Some(links), _) => match &links.lock().receiver {
                Some(link) => (link.participant, link.epoch),
                None => return,
            },
            (_, Some(links)) => match links.lock().senders.front() {
                Some(sender) => (sender.participant, sender.epoch),
                None => return,
            },
            _ => return,
        };
        let (word, link_epoch) = match part {
            Part::Tx(_) => (tx::LINK_PARTICIPANT, tx::LINK_EPOCH),
            _ => (rx::LINK_PARTICIPANT, rx::LINK_EPOCH),
        };
        self.words.set(first + word, participant.into());
        self.words.set(first + link_epoch, epoch);
    }

    /// Announces blocks in many slots of one of the next laps, some of them impossible.
    fn forge_announcement(&mut self, fifo: u16, first: u32) {
        let plan = &PLAN.fifos[usize::from(fifo)];
        let (Some(shape), ring) = (Shape::of(plan), Ring::new(plan.blocks)) else { return };
        let Some(end) = self.ends.iter().find(|end| end.fifo() == fifo) else { return };
        let taken = end.tx_links().and_then(|links| {
            let links = links.lock();
            links.receiver.as_ref().map(|link| link.words.words().get(rx::TAKEN))
        });
        let epoch = end.me().1;
        let mut cursor = ring.cursor(taken.filter(|taken| ring.contains(*taken)).unwrap_or(0));
        for _ in 0..=self.below(plan.blocks) {
            let at = first + shape.slot(cursor.index);
            let block = if self.below(3) == 0 { self.below(plan.blocks + 2) } else { cursor.index };
            let bytes = if self.below(8) == 0 { self.value() } else { self.below(plan.block_bytes + 1) };
            self.words.set(at + slot::LEN, bytes);
            self.words.set(at + slot::BLOCK, block | epoch << 16);
            let stamp = self.value();
            self.words.set(at + slot::STAMP, stamp);
            let notified = self.below(2);
            self.words.set(at + slot::TURN, cursor.turn() | notified);
            cursor = cursor.next(ring);
        }
    }

    /// Returns blocks in many entries about where the sender looks next: sent ones, held ones, the same one twice.
    fn forge_return(&mut self, fifo: u16, first: u32) {
        let plan = &PLAN.fifos[usize::from(fifo)];
        let ring = Ring::new(plan.blocks);
        let Some(end) = self.ends.iter().find(|end| end.fifo() == fifo) else { return };
        let tail = end.rx_links().and_then(|links| {
            let links = links.lock();
            links.senders.front().map(|sender| sender.words.words().get(tx::TAIL))
        });
        let before = self.below(plan.blocks + 1);
        let mut cursor = ring.cursor(tail.unwrap_or(0).saturating_sub(before));
        for _ in 0..=self.below(plan.blocks) {
            let block = self.below(plan.blocks + 1);
            self.words.set(first + rx::WORDS + cursor.index, cursor.return_entry(block));
            cursor = cursor.next(ring);
        }
    }
}

/// Packets on the Master's socket: noise, and messages at the wrong time about things that are not so.
fn talk_nonsense(instance: &str) {
    let name = Names::new(PLAN.name, Some(instance)).unwrap().participant(CONTROL);
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    loop {
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        if connect(&fd, &address).is_ok() {
            for _ in 0..random() % 4 + 1 {
                let bytes = match random() % 4 {
                    0 => (0..random() % 100).map(|_| random() as u8).collect(),
                    1 => vec![0; BYTES],
                    _ => lie(&mut random).bytes().to_vec(),
                };
                let _ = send(&fd, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn lie(random: &mut impl FnMut() -> u32) -> Message {
    let party = Party {
        hash: if random().is_multiple_of(2) { PLAN.hash } else { random().into() },
        participant: random() as u16 % 4,
        domain: random() as u16 % 4,
        epoch: random(),
        section_bytes: random(),
    };
    let (fifo, serial) = (random() as u16 % 6, random());
    let direction = if random().is_multiple_of(2) { Direction::Send } else { Direction::Receive };
    match random() % 6 {
        0 => Message::Hello(party),
        1 => Message::Welcome(party),
        2 => Message::End { fifo, direction, open: random().is_multiple_of(2), serial },
        3 => Message::Doorbell { fifo, direction, serial },
        4 => Message::Ready,
        _ => Message::Refuse { reason: Refusal::Plan, hash: random().into() },
    }
}
